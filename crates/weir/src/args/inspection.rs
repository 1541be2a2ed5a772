//! Flags of the commands that look at a configuration and serve nothing.

use super::RouterArgs;
use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

pub const CHECK_EXAMPLES: &str = "\
Several files are checked as one configuration, as `weir run` would serve them. Secrets need not be there: a reference
to a variable that is not set is a warning.
Exit status: 0 all good, perhaps with warnings; 1 something is refused or left out, or with --strict there is a warning;
2 a file cannot be read. A plugin that Weir lacks is left out of an apisix.yaml (1). In a kong.yml it is a warning,
because Kong accepts such a file; Weir refuses the calls that come to it.

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
    /// Fail for warnings, too.
    #[arg(long)]
    pub strict: bool,
    /// The folder for files of logging plugins, as `weir run` will be given it.
    #[arg(long, value_name = "DIR", env = "WEIR_LOG_DIR")]
    pub log_dir: Option<PathBuf>,
    /// Which rules the foreign routers follow.
    #[command(flatten)]
    pub routers: RouterArgs,
}

/// Flags of `weir explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The call: a method (GET where it is left out) and a URL.
    #[arg(value_name = "CALL")]
    pub call: String,
    /// The configuration; may be given several times.
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
    /// A header of the call, `name: value`; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// The client's address.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub client: IpAddr,
    /// The server name of the TLS handshake; if left out, the URL's host.
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
    /// The consumer that the call is taken for if it carries no good credential: an id or a user name.
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// The environments whose publications count, with a store or a Weir that runs; may be given several times.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub environment: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    /// Which rules the foreign routers follow.
    #[command(flatten)]
    pub routers: RouterArgs,
}

/// Where a configuration is that is not in files. What is given here goes before files.
#[derive(Args)]
pub struct ConfigSourceArgs {
    /// The folder that `weir run` was given, with the store in it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["store", "control"])]
    pub data: Option<PathBuf>,
    /// The store, as `weir run` was given it.
    #[arg(long, value_name = "URL", conflicts_with = "control")]
    pub store: Option<String>,
    /// The file of keys that the store is encrypted with.
    #[arg(long, value_name = "FILE", env = "WEIR_STORE_KEY")]
    pub store_key: Option<PathBuf>,
    /// A running Weir with a store, by the URL of its --console.
    #[arg(long, value_name = "URL")]
    pub control: Option<String>,
    /// The token for --control: that of a user with the role `gateway` or `admin`.
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
