//! Flags of the commands that describe the command line itself.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// Flags of `weir completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell. Example: `weir completions bash > /etc/bash_completion.d/weir`.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Flags of `weir man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder for the pages. It is created if it is missing.
    #[arg(long, value_name = "DIR", default_value = "man")]
    pub out: PathBuf,
}
