//! Flags of the commands that look at a configuration and serve nothing.

use super::{RouterArgs, server_url};
use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

pub const CHECK_EXAMPLES: &str = "\
Several files are checked as one configuration, as `weir run` would serve them. Secrets need not be available: a
reference to a variable that is not set is a warning.
Exit status: 0 valid, perhaps with warnings; 1 something is refused or left out, or with --strict there is a warning;
2 a file cannot be read. A plugin that Weir lacks is an error in an apisix.yaml and a warning in a kong.yml, because
Kong accepts such a file. Weir refuses the calls that the plugin would have decided about.

Examples:
  weir check weir.yaml
  weir check --strict kong.yml apisix.yaml";

pub const EXPLAIN_EXAMPLES: &str = "\
Examples:
  weir explain -c weir.yaml 'GET http://localhost/hello'
  weir explain -c kong.yml 'POST https://api.example.com/orders?x=1' -H 'apikey: my-key' --client 10.1.2.3
  weir explain -c apisix.yaml http://localhost/hello --json
  weir explain --data /var/lib/weir http://localhost/hello
  weir explain --data /var/lib/weir --environment test http://localhost/v1/pets -H 'X-API-Key: my-key'
  weir explain --control http://127.0.0.1:8002 http://localhost/hello";

/// Flags of `weir check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The files to check.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Fail if there are warnings, too.
    #[arg(long)]
    pub strict: bool,
    /// The folder for files of logging plugins: the same value as for `weir run`.
    #[arg(long, value_name = "DIR", env = "WEIR_LOG_DIR")]
    pub log_dir: Option<PathBuf>,
    /// Which rules the foreign routers follow.
    #[command(flatten)]
    pub routers: RouterArgs,
}

/// Flags of `weir explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The call: a method and a URL. Without a method it is GET.
    #[arg(value_name = "CALL")]
    pub call: String,
    /// The configuration file. Repeat the flag for several.
    #[arg(
        short,
        long,
        value_name = "FILE",
        env = "WEIR_CONFIG",
        value_delimiter = ',',
        required_unless_present_any = ["data", "store", "control"]
    )]
    pub config: Vec<PathBuf>,
    /// A configuration that is not in files.
    #[command(flatten)]
    pub stored: ConfigSourceArgs,
    /// A header of the call, `name: value`. Repeat the flag for several.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// The client's address.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub client: IpAddr,
    /// The server name of the TLS handshake [default: the URL's host].
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
    /// The consumer to assume if the call carries no valid credential: an id or a user name.
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// An environment whose publications count, with a store or a running Weir. Repeat the flag for several.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub environment: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    /// Which rules the foreign routers follow.
    #[command(flatten)]
    pub routers: RouterArgs,
}

/// A source of the configuration other than files.
#[derive(Args)]
pub struct ConfigSourceArgs {
    /// The folder of the store: the same value as for `weir run`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["store", "control"])]
    pub data: Option<PathBuf>,
    /// The store: the same value as for `weir run`.
    #[arg(long, value_name = "URL", conflicts_with = "control")]
    pub store: Option<String>,
    /// The file with the keys of the store.
    #[arg(long, value_name = "FILE", env = "WEIR_STORE_KEY")]
    pub store_key: Option<PathBuf>,
    /// A running Weir: the URL of its --console. All that it serves counts, its files too.
    #[arg(long, value_name = "URL", value_parser = server_url)]
    pub control: Option<String>,
    /// The token for --control, of a user who may read the configuration.
    #[arg(long, value_name = "TOKEN", env = "WEIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Locations may hold passwords, and tokens are secrets.
impl std::fmt::Debug for ConfigSourceArgs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConfigSourceArgs")
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}
