//! Flags of `weir run` that are about the store and the Admin APIs.

use super::dialects::{AdminFlag, OriginalAdminArgs};
use super::listen::AdminListen;
use super::server_url;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use weir_dialect::DialectName;

/// The store of the configuration, and the access to it.
#[derive(Clone, Args)]
#[command(next_help_heading = "Management")]
pub struct ManagementArgs {
    /// The folder for data that outlives the process: the store, unless --store names another, and the last known good
    /// configuration.
    #[arg(long, value_name = "DIR", env = "WEIR_DATA")]
    pub data: Option<PathBuf>,
    /// The store: `sqlite:FOLDER`, `etcd://HOST:PORT` or `memory:` [default: SQLite in --data; without it, in memory].
    #[arg(long, value_name = "URL", env = "WEIR_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// A file with keys that encrypt the store and the files in --data. It is created if it is missing, but not beside a
    /// store that needs the missing one. Keep it apart from the store [default: nothing is encrypted].
    #[arg(long, value_name = "FILE", env = "WEIR_STORE_KEY")]
    pub store_key: Option<PathBuf>,
    /// Days for which the store keeps the history: what was changed, by whom, and the former values.
    #[arg(long, value_name = "DAYS", env = "WEIR_HISTORY", default_value_t = 30)]
    pub history: u16,
    /// Days for which the audit log is kept.
    #[arg(long, value_name = "DAYS", env = "WEIR_AUDIT", default_value_t = 400)]
    pub audit: u16,
    /// The tasks of this process.
    #[arg(long, value_name = "ROLE", env = "WEIR_ROLE", value_enum, default_value_t = RoleArg::All)]
    pub role: RoleArg,
    /// The Admin APIs of originals.
    #[command(flatten)]
    pub originals: OriginalAdminArgs,
    /// Address of Weir's own API and, at `/ui/`, of the console; several, and TLS, as with --kong-admin [default:
    /// 127.0.0.1:8002 with a store if no Admin API is named].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_CONSOLE", value_delimiter = ' ', value_parser = AdminListen::read)]
    pub console: Vec<AdminListen>,
    /// Address of the developer portal; several, and TLS, as with --kong-admin. It serves no Admin API [default: no
    /// portal].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_PORTAL", value_delimiter = ' ', value_parser = AdminListen::read)]
    pub portal: Vec<AdminListen>,
    /// The certificate of the Admin APIs over TLS, with its chain, as PEM. A changed file is read again [default: a
    /// self-signed certificate].
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
    /// Certificate authorities, as PEM. Over TLS, the Admin APIs accept only clients with a certificate from one of
    /// them [default: all clients].
    #[arg(
        long,
        value_name = "FILE",
        env = "WEIR_ADMIN_CLIENT_CA",
        requires = "admin_certificate"
    )]
    pub admin_client_ca: Option<PathBuf>,
    /// The control plane to follow: the URL of its --console. The gateway then needs no access to the store.
    #[arg(long, value_name = "URL", env = "WEIR_CONTROL", value_parser = server_url, conflicts_with = "store")]
    pub control: Option<String>,
    /// The token for --control, of a user with the role `gateway`.
    #[arg(long, value_name = "TOKEN", env = "WEIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// The name of this gateway in the list of gateways [default: the host name and the proxy's port].
    #[arg(long, value_name = "NAME", env = "WEIR_NAME")]
    pub name: Option<String>,
    /// An environment whose publications this gateway serves, in addition to what is in no environment. Repeat the flag
    /// for several; in the variable, separate them with spaces.
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
    /// All Admin APIs, each at the addresses that its flag names. Weir's own is the last.
    pub fn admins(&self) -> Vec<AdminFlag> {
        let mut all = self.originals.admins();
        all.push(AdminFlag {
            dialect: DialectName::NATIVE,
            flag: "--console",
            listeners: self.console.clone(),
            usual: AdminListen::local(8002),
        });
        all
    }

    /// Whether a store outlives the process.
    pub fn names_a_store(&self) -> bool {
        self.data.is_some() || self.store.is_some()
    }

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
