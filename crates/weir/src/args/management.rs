//! Flags of `weir run` that are about the store and the Admin APIs.

use super::listen;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where the configuration is kept, and who may change it.
#[derive(Clone, Args)]
#[command(next_help_heading = "Management")]
pub struct ManagementArgs {
    /// A folder for what outlives the process: the store, unless --store names another, and the last known good
    /// configuration.
    #[arg(long, value_name = "DIR", env = "WEIR_DATA")]
    pub data: Option<PathBuf>,
    /// The store: `sqlite:FOLDER`, `etcd://HOST:PORT` or `memory:` [default: SQLite in --data; without it, in memory].
    #[arg(long, value_name = "URL", env = "WEIR_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// A file of keys that encrypt what is in the store and on disk; it is made where it is missing. Keep it away from
    /// the store [default: nothing is encrypted].
    #[arg(long, value_name = "FILE", env = "WEIR_STORE_KEY")]
    pub store_key: Option<PathBuf>,
    /// For how many days the store knows what was changed, by whom, and what was before.
    #[arg(long, value_name = "DAYS", env = "WEIR_HISTORY", default_value_t = 30)]
    pub history: u16,
    /// For how many days the audit log knows who wrote what.
    #[arg(long, value_name = "DAYS", env = "WEIR_AUDIT", default_value_t = 400)]
    pub audit: u16,
    /// What this process does.
    #[arg(long, value_name = "ROLE", env = "WEIR_ROLE", value_enum, default_value_t = RoleArg::All)]
    pub role: RoleArg,
    /// Address of Kong's Admin API, with `,tls` of TLS; may be given several times, in the variable with spaces between
    /// [default: 127.0.0.1:8001, with a store and no other Admin API; also beside a kong.yml, if the port is free].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_KONG_ADMIN", value_delimiter = ' ', value_parser = listen)]
    pub kong_admin: Vec<AdminListen>,
    /// Lets `/config` of Kong's Admin API read and replace a whole workspace also where the store outlives the process.
    /// Kong itself has `/config` only without a database.
    #[arg(long, env = "WEIR_KONG_ADMIN_CONFIG")]
    pub kong_admin_config: bool,
    /// Address of APISIX's Admin API, likewise [default: 127.0.0.1:9180, with a store and no other Admin API].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_APISIX_ADMIN", value_delimiter = ' ', value_parser = listen)]
    pub apisix_admin: Vec<AdminListen>,
    /// Address of Weir's own API and, at `/ui/`, of the console, likewise [default: 127.0.0.1:8002, with a store and no other Admin API].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_CONSOLE", value_delimiter = ' ', value_parser = listen)]
    pub console: Vec<AdminListen>,
    /// Address of the developer portal, likewise. It serves no Admin API [default: there is no portal].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_PORTAL", value_delimiter = ' ', value_parser = listen)]
    pub portal: Vec<AdminListen>,
    /// The certificate that Admin APIs show over TLS, with what leads to its authority, as PEM. A changed file is read
    /// again [default: one that Weir has signed itself].
    #[arg(
        long,
        value_name = "FILE",
        env = "WEIR_ADMIN_CERTIFICATE",
        requires = "admin_key"
    )]
    pub admin_certificate: Option<PathBuf>,
    /// The private key of --admin-certificate, as PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "WEIR_ADMIN_KEY",
        requires = "admin_certificate"
    )]
    pub admin_key: Option<PathBuf>,
    /// Authorities, as PEM: over TLS, the Admin APIs let in only clients that show a certificate which one of them has
    /// signed [default: all clients].
    #[arg(
        long,
        value_name = "FILE",
        env = "WEIR_ADMIN_CLIENT_CA",
        requires = "admin_certificate"
    )]
    pub admin_client_ca: Option<PathBuf>,
    /// A key that may do everything at APISIX's Admin API.
    #[arg(
        long,
        value_name = "KEY",
        env = "WEIR_APISIX_ADMIN_KEY",
        hide_env_values = true
    )]
    pub apisix_admin_key: Option<String>,
    /// A key that may read at APISIX's Admin API.
    #[arg(
        long,
        value_name = "KEY",
        env = "WEIR_APISIX_VIEWER_KEY",
        hide_env_values = true
    )]
    pub apisix_viewer_key: Option<String>,
    /// A control plane to follow, by the URL of its --console, where this gateway has no access to the store.
    #[arg(long, value_name = "URL", env = "WEIR_CONTROL", conflicts_with = "store")]
    pub control: Option<String>,
    /// The token for --control: that of a user with the role `gateway`.
    #[arg(long, value_name = "TOKEN", env = "WEIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// What this gateway is called in the list of gateways [default: the machine's name and the proxy's port].
    #[arg(long, value_name = "NAME", env = "WEIR_NAME")]
    pub name: Option<String>,
    /// An environment whose publications this gateway serves, beside what is in no environment; may be given several
    /// times, in the variable with spaces between.
    #[arg(
        long,
        value_name = "NAME",
        env = "WEIR_ENVIRONMENT",
        value_delimiter = ' ',
        value_parser = environment,
        default_value = "default"
    )]
    pub environment: Vec<String>,
}

fn environment(text: &str) -> Result<String, String> {
    match weir_apis::naming::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected {}", weir_apis::naming::EXPECTED_NAME)),
    }
}

impl ManagementArgs {
    /// For how long the store knows what was changed.
    pub fn kept_history(&self) -> Duration {
        days(self.history)
    }

    /// For how long the audit log knows who wrote what.
    pub fn kept_audit(&self) -> Duration {
        days(self.audit)
    }
}

fn days(count: u16) -> Duration {
    Duration::from_secs(86_400 * u64::from(count))
}

/// Keys, tokens and the passwords of stores are secrets.
impl std::fmt::Debug for ManagementArgs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ManagementArgs")
            .field("role", &self.role)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Where an Admin API listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminListen {
    /// The address.
    pub address: SocketAddr,
    /// Whether its clients speak TLS.
    pub is_tls: bool,
}

fn listen(text: &str) -> Result<AdminListen, String> {
    let (address, is_tls) = listen::read(text, false, &[("tls", true)])?;
    Ok(AdminListen { address, is_tls })
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Serves calls, and the Admin APIs.
    All,
    /// Serves calls, and follows the store or a control plane.
    Gateway,
    /// Serves the Admin APIs alone.
    Control,
}
