//! Flags of `weir portal`: a developer portal as files.

use super::RemoteArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub const PORTAL_EXAMPLES: &str = "\
Exit status: 0 done, 1 refused, 2 wrong usage or no connection.

Examples:
  weir portal export main portal/ --url https://test.example.com:8002
  weir portal apply main portal/ --dry-run
  weir portal apply main portal/";

/// Flags of `weir portal`.
#[derive(Debug, Args)]
pub struct PortalArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PortalCommand,
}

/// What to do with a portal.
#[derive(Debug, Subcommand)]
pub enum PortalCommand {
    /// Write a portal to a folder: portal.yaml, its logo, and a file for each page.
    Export {
        /// The portal.
        name: String,
        /// The folder. It is created if it is missing. Pages in it that the portal does not have are removed.
        folder: PathBuf,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Apply a folder to a portal, as one change. Pages that are not in the folder are removed.
    Apply {
        /// The portal.
        name: String,
        /// The folder.
        folder: PathBuf,
        /// Only print what would change.
        #[arg(long)]
        dry_run: bool,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
}
