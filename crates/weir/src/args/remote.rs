//! Flags of the commands that talk to a running Weir.

use super::server_url;
use crate::command_output::CommandOutput;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_control::access::{Right, Role, Scope};

/// Which Weir.
#[derive(Clone, Args)]
pub struct RemoteArgs {
    /// The URL of the running Weir's own API: that of its --console.
    #[arg(
        long,
        visible_alias = "server",
        value_name = "URL",
        env = "WEIR_URL",
        value_parser = server_url,
        default_value = "http://127.0.0.1:8002"
    )]
    pub url: String,
    /// The token of a user. It is needed once there are users.
    #[arg(long, value_name = "TOKEN", env = "WEIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// A file with the token.
    #[arg(long, value_name = "FILE", env = "WEIR_TOKEN_FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
}

impl RemoteArgs {
    /// The token, read from the flag or from its file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_token(&self) -> Result<Option<String>, CommandOutput> {
        let Some(file) = &self.token_file else {
            return Ok(self.token.clone());
        };
        match std::fs::read_to_string(file) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) => {
                let message = format!("--token-file {}: cannot be read: {error}\n", file.display());
                Err(CommandOutput::failed(2, message))
            }
        }
    }
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
    /// Create a user, or give a user other rights and a new token. Prints the token, which is never shown again.
    Add {
        /// The user's name, which the history and the audit log record.
        name: String,
        /// What the user may do.
        #[command(flatten)]
        rights: RightArgs,
        /// A file whose first line is the password for logins; `-` is standard input [default: no password].
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// Create no token: the user logs in with the password.
        #[arg(long, requires = "password_file")]
        without_token: bool,
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
    /// Change what a user may do.
    Rights {
        /// The user.
        name: String,
        /// The user's new rights.
        #[command(flatten)]
        rights: RightArgs,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Set a user's password and end all sessions of the user.
    Password {
        /// The user.
        name: String,
        /// A file whose first line is the password; `-` is standard input.
        #[arg(long, value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// End all sessions of a user.
    Logout {
        /// The user.
        name: String,
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

/// Flags of `weir developer`.
#[derive(Debug, Args)]
pub struct DeveloperArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DeveloperCommand,
}

/// What to do with developers of a portal.
#[derive(Debug, Subcommand)]
pub enum DeveloperCommand {
    /// Erase a developer: the account, applications with their keys, messages, and names in analytics. Counts stay.
    Erase {
        /// The mail address, or the id.
        developer: String,
        /// The portal.
        #[arg(long, value_name = "NAME", default_value = "default")]
        portal: String,
        /// Only print what would be erased.
        #[arg(long)]
        dry_run: bool,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

/// Rights: a role in scopes, or several such.
#[derive(Debug, Args)]
pub struct RightArgs {
    /// What the user may do.
    #[arg(long, value_parser = PossibleValuesParser::new(roles()), required_unless_present = "right")]
    pub role: Option<String>,
    /// The workspace in which the role applies; `*` is everywhere. Repeat the flag for several [default: everywhere].
    #[arg(long, value_name = "NAME", requires = "role")]
    pub workspace: Vec<String>,
    /// The scope in which the role applies: `everything`, `workspace:NAME`, `environment:NAME`, `api:NAME` or
    /// `portal:NAME`. Repeat the flag for several.
    #[arg(long, value_name = "SCOPE", requires = "role", value_parser = Scope::parse)]
    pub scope: Vec<Scope>,
    /// A role with its scope, such as `write@workspace:team-a`. Repeat the flag for several roles.
    #[arg(long, value_name = "ROLE@SCOPE", value_parser = right)]
    pub right: Vec<Right>,
}

fn roles() -> Vec<&'static str> {
    Role::all().map(Role::as_str).collect()
}

fn role(name: &str) -> Result<Role, String> {
    let found = Role::all().find(|it| it.as_str() == name);
    found.ok_or_else(|| format!("'{name}' is not a role: expected {}", roles().join(", ")))
}

fn right(text: &str) -> Result<Right, String> {
    let (name, scope) = text.split_once('@').unwrap_or((text, "everything"));
    Ok(Right {
        role: role(name)?,
        scope: Scope::parse(scope)?,
    })
}

impl RightArgs {
    /// All of them.
    pub fn rights(&self) -> Vec<Right> {
        let mut rights = self.right.clone();
        if let Some(role) = self.role.as_deref().and_then(|it| role(it).ok()) {
            let workspaces = self.workspace.iter().map(|it| Scope::workspace(it));
            let mut scopes: Vec<Scope> = workspaces.chain(self.scope.iter().cloned()).collect();
            if scopes.is_empty() {
                scopes.push(Scope::Everything);
            }
            rights.extend(scopes.into_iter().map(|scope| Right { role, scope }));
        }
        rights
    }
}

/// Flags of `weir history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Only changes of documents whose names begin with this text, such as `kong/default/routes/`.
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// The number of commits to print.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Flags of `weir diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The older revision; `weir history` lists them.
    #[arg(value_name = "FROM")]
    pub from: u64,
    /// The newer revision [default: the latest].
    #[arg(value_name = "TO")]
    pub to: Option<u64>,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Flags of `weir rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// The revision to restore. `weir history` lists them.
    #[arg(value_name = "REVISION")]
    pub revision: u64,
    /// Only print what would change.
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
    /// The name of the service [default: made from the document's title].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The URL that calls are sent to [default: the document's first server].
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Only print what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}
