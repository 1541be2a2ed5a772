//! The command line: every flag, its environment variable, its default and its help.

mod analytics;
mod api;
mod dialects;
mod http3;
mod inspection;
mod limits;
mod listen;
mod management;
mod manual;
mod outbox;
mod portal;
mod remote;
mod streams;
mod upstreams;

pub use analytics::{AnalyticsArgs, AnalyticsLocation};
pub use api::{
    ApiArgs, ApiCommand, LevelArg, LintArgs, LintOutput, OnServer, Output, PublicationArgs, ReviewArgs,
    StepArgs, VersionArgs,
};
pub use dialects::{AdminFlag, RouterArgs};
pub use http3::Http3Args;
pub use inspection::{CheckArgs, ConfigSourceArgs, ExplainArgs};
pub use limits::LimitArgs;
pub use listen::AdminListen;
pub use management::{ManagementArgs, RoleArg};
pub use manual::{CompletionsArgs, ManArgs};
pub use outbox::OutboxArgs;
pub use portal::{PortalArgs, PortalCommand};
pub use remote::{
    DeveloperArgs, DeveloperCommand, DiffArgs, HistoryArgs, ImportArgs, RemoteArgs, RollbackArgs, UserArgs,
    UserCommand,
};
pub use streams::StreamArgs;
pub use upstreams::UpstreamArgs;

use crate::seconds::Seconds;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_control::limit_counts;

/// An API gateway and API management in one program. It serves weir.yaml, kong.yml and apisix.yaml.
#[derive(Debug, Parser)]
#[command(name = "weir", version = VERSION, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The version, and whether a profile guided the build: both differ in CPU per call.
const VERSION: &str = match option_env!("GUIDED_BUILD") {
    Some(_) => concat!(env!("CARGO_PKG_VERSION"), " (guided build)"),
    None => concat!(env!("CARGO_PKG_VERSION"), " (plain build)"),
};

const EXAMPLES: &str = "\
Examples:
  weir run -c weir.yaml                                   serve a configuration
  weir check kong.yml                                     report every problem with its place
  weir convert kong.yml --to weir > weir.yaml             convert to Weir's own format
  weir explain -c weir.yaml 'GET http://localhost/hello'  show the route and the plugins of this call

Every flag of `weir run` has an environment variable: --status is WEIR_STATUS. See `weir COMMAND --help`.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a configuration.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Check a configuration and report every problem with its place.
    #[command(after_help = inspection::CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Print a configuration in another form.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Explain a call: which route takes it, why, why the others do not, and which plugins run.
    #[command(after_help = inspection::EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// List the plugins: what each does, its names in Kong and APISIX, its phases, its page.
    #[command(after_help = PLUGINS_EXAMPLES)]
    Plugins(PluginsArgs),
    /// Create, list and remove users of a running Weir.
    #[command(after_help = USER_EXAMPLES)]
    User(UserArgs),
    /// Erase a developer of a portal of a running Weir, with all that is kept about this person.
    Developer(DeveloperArgs),
    /// Print the changes of a running Weir's configuration: what, when, by whom.
    History(HistoryArgs),
    /// Print the difference between two revisions of a running Weir's configuration.
    Diff(DiffArgs),
    /// Restore a running Weir's configuration to a revision: all of it, or nothing.
    Rollback(RollbackArgs),
    /// Import an OpenAPI document as a service with routes. A second import applies what has changed.
    Import(ImportArgs),
    /// Define, lint, compare, test, publish, promote, roll back and deprecate an API of a running Weir.
    // The word `--version` would be taken for that of an API.
    #[command(after_help = api::API_EXAMPLES, disable_version_flag = true)]
    Api(ApiArgs),
    /// Export a developer portal with its pages and logo to files, and apply such files to another Weir.
    #[command(after_help = portal::PORTAL_EXAMPLES)]
    Portal(PortalArgs),
    /// Run the experiments that compare Weir with other gateways (the program `weir-bench`).
    #[command(disable_help_flag = true)]
    Bench(BenchArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Write man pages.
    Man(ManArgs),
}

const RUN_EXAMPLES: &str = "\
The kind of each file is recognised from its content: `weir:` is a weir.yaml, `_format_version:` a kong.yml,
anything else an apisix.yaml. Several files, of one kind or of different ones, are served together. A changed
file is loaded without a restart. If it is invalid, the previous configuration stays in use.

Examples:
  weir run -c weir.yaml
  weir run -c kong.yml -c apisix.yaml --listen 127.0.0.1:8000 --workers 2
  weir run -c weir.yaml --access-log -
  weir run --data /var/lib/weir --kong-admin 127.0.0.1:8001
  WEIR_CONFIG=weir.yaml WEIR_LISTEN=0.0.0.0:8000,[::]:8000 weir run";

const CONVERT_EXAMPLES: &str = "\
Exit status: the same as `weir check`. Standard error names what the result does not contain.

Examples:
  weir convert kong.yml --to weir > weir.yaml
  weir convert apisix.yaml --to weir";

const PLUGINS_EXAMPLES: &str = "\
The phases of a plugin depend on its configuration. Those shown are of its short example in docs/configuration.md.

Examples:
  weir plugins
  weir plugins rate-limiting limit-count
  weir plugins cors --page
  weir plugins --originals";

const USER_EXAMPLES: &str = "\
The first user must be an admin. From then on every call of an Admin API needs a token: in `Kong-Admin-Token`,
`X-API-KEY`, or `Authorization: Bearer`. These commands take it from --token, --token-file or WEIR_TOKEN.

Examples:
  export WEIR_TOKEN=$(weir user add alice --role admin)
  weir user add ci --role write --workspace team-a
  weir user add edge-1 --role gateway";

/// Flags of `weir run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A configuration file to serve. Repeat the flag for several; in the variable, separate them with commas.
    #[arg(short, long, value_name = "FILE", env = "WEIR_CONFIG", value_delimiter = ',')]
    pub config: Vec<PathBuf>,
    /// Address of the proxy. Repeat the flag for several; in the variable, separate them with commas. Port 0 selects a
    /// free port, which the `ready` line names [default: 0.0.0.0:8000 if no address is given].
    #[arg(long, value_name = "ADDR", env = "WEIR_LISTEN", value_delimiter = ',', value_parser = address)]
    pub listen: Vec<SocketAddr>,
    /// Address of the proxy for TLS; several as with --listen [default: 0.0.0.0:8443 if no address is given].
    #[arg(long, value_name = "ADDR", env = "WEIR_LISTEN_TLS", value_delimiter = ',', value_parser = address)]
    pub listen_tls: Vec<SocketAddr>,
    /// Whether and how HTTP/3 is served.
    #[command(flatten)]
    pub http3: Http3Args,
    /// Number of workers. Each is a thread with its own listeners and connections [default: one for each core].
    #[arg(long, value_name = "N", env = "WEIR_WORKERS", value_parser = at_least_one)]
    pub workers: Option<NonZeroUsize>,
    /// Address of /status, /status/ready and /metrics.
    #[arg(
        long,
        value_name = "ADDR",
        env = "WEIR_STATUS",
        value_parser = address,
        default_value = "127.0.0.1:8007"
    )]
    pub status: SocketAddr,
    /// Write a line of JSON for each call to this file; `-` is standard output [default: no access log].
    #[arg(long, value_name = "PATH", env = "WEIR_ACCESS_LOG")]
    pub access_log: Option<PathBuf>,
    /// The folder for files of logging plugins, which cannot write elsewhere [default: DIR/logs with --data DIR;
    /// without it, they write no files].
    #[arg(long, value_name = "DIR", env = "WEIR_LOG_DIR")]
    pub log_dir: Option<PathBuf>,
    /// The file that keeps the counts of limits over a restart, if their windows last for another minute or more
    /// [default: DIR/limit-counts with --data DIR; without it, a restart sets them to zero].
    #[arg(long, value_name = "FILE", env = "WEIR_LIMIT_COUNTS")]
    pub limit_counts: Option<PathBuf>,
    /// Seconds that calls in progress have after SIGTERM, before they are cut off.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_DRAIN_TIMEOUT",
        default_value = "30"
    )]
    pub drain_timeout: Seconds,
    /// Which rules the foreign routers follow.
    #[command(flatten)]
    pub routers: RouterArgs,
    /// Bounds on what clients send.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Streams below HTTP, and the PROXY protocol.
    #[command(flatten)]
    pub streams: StreamArgs,
    /// How the servers that calls go to are found, and left out.
    #[command(flatten)]
    pub upstreams: UpstreamArgs,
    /// Whether calls are counted, and where.
    #[command(flatten)]
    pub analytics: AnalyticsArgs,
    /// The store of the configuration, and the access to it.
    #[command(flatten)]
    pub management: ManagementArgs,
    /// What sends mails and webhooks.
    #[command(flatten)]
    pub outbox: OutboxArgs,
}

impl RunArgs {
    /// The file of the counts of limits; `None`: they are not kept.
    pub fn limit_counts_file(&self) -> Option<PathBuf> {
        let in_data = || Some(self.management.data.as_ref()?.join(limit_counts::FILE_NAME));
        self.limit_counts.clone().or_else(in_data)
    }

    /// The addresses of the proxy.
    pub fn listen(&self) -> Vec<SocketAddr> {
        match self.listens_by_default() {
            true => vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8000))],
            false => self.listen.clone(),
        }
    }

    /// The addresses of the proxy for TLS.
    pub fn listen_tls(&self) -> Vec<SocketAddr> {
        match self.listens_by_default() {
            true => vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8443))],
            false => self.listen_tls.clone(),
        }
    }

    /// A named address replaces the default ones.
    fn listens_by_default(&self) -> bool {
        self.listen.is_empty() && self.listen_tls.is_empty() && self.streams.listen_stream.is_empty()
    }
}

/// Flags of `weir convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The files to convert. Several become one configuration.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The format of the result.
    #[arg(long, value_enum, default_value_t = ConvertTarget::Weir)]
    pub to: ConvertTarget,
    /// Which rules the foreign routers follow.
    #[command(flatten)]
    pub routers: RouterArgs,
}

/// A form of configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConvertTarget {
    /// `weir.yaml`.
    Weir,
}

/// Flags of `weir plugins`.
#[derive(Debug, Clone, Args)]
pub struct PluginsArgs {
    /// Show only the plugins with one of these names, in Weir, Kong or APISIX.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    /// Print the tables of fields of the plugins' pages, for Weir, Kong and APISIX.
    #[arg(long, conflicts_with = "json")]
    pub page: bool,
    /// Print for every plugin name of Kong and APISIX, free and paid, what Weir does with it.
    #[arg(long, conflicts_with = "page")]
    pub originals: bool,
}

/// Arguments of `weir bench`, passed on as they are.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Arguments for weir-bench; see `weir bench --help`.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

/// Reads the address of a listener.
fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected ADDRESS:PORT, such as 127.0.0.1:8000".to_owned();
    text.parse().map_err(|_| expected())
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number from 1".to_owned())
}

/// Checks the URL of a server.
fn server_url(text: &str) -> Result<String, String> {
    weir_control::http::check_url(text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests;
