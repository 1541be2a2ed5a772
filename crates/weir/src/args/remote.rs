//! Flags of the commands that talk to a running Weir.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Which Weir.
#[derive(Clone, Args)]
pub struct RemoteArgs {
    /// Where its own API is: the address of its --console.
    #[arg(
        long,
        value_name = "URL",
        env = "WEIR_URL",
        default_value = "http://127.0.0.1:8002"
    )]
    pub url: String,
    /// The token of a user; needed as soon as there are users.
    #[arg(long, value_name = "TOKEN", env = "WEIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// The token is a secret.
impl std::fmt::Debug for RemoteArgs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RemoteArgs")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Flags of `weir user`.
#[derive(Debug, Args)]
pub struct UserArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: UserCommand,
}

/// What to do with users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Make a user, or give one other rights and a new token, and print the token. It is shown this once.
    Add {
        /// The name under which changes are recorded.
        name: String,
        /// What the user may do.
        #[arg(long, value_enum)]
        role: UserRole,
        /// Where; may be given several times; `*` is everywhere.
        #[arg(long, value_name = "NAME", default_value = "*")]
        workspace: Vec<String>,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Print all users.
    List {
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Remove a user.
    Remove {
        /// The user.
        name: String,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UserRole {
    /// Follow the configuration as a gateway does (for --control).
    Gateway,
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Also manage users, roll back and read the audit log.
    Admin,
}

/// Flags of `weir history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Changes of documents whose names begin so, such as `kong/default/routes/`.
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// At most so many commits.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Flags of `weir diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The revision to compare with, as `weir history` tells it.
    #[arg(value_name = "FROM")]
    pub from: u64,
    /// The other revision [default: the newest].
    #[arg(value_name = "TO")]
    pub to: Option<u64>,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Flags of `weir rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// What the configuration was right after this revision, it shall be again.
    #[arg(value_name = "REVISION")]
    pub revision: u64,
    /// Only say what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Flags of `weir import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// An OpenAPI document, in YAML or JSON.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The service's name [default: after the document's title].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where its calls go [default: the document's first server].
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Only say what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}
