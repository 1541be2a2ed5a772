//! The output of a command that serves nothing: its texts and its exit status.

use std::io::{self, Write};
use std::process::ExitCode;

/// Texts for the terminal, and an exit status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// Exit status; 0: all is good.
    pub code: u8,
}

impl CommandOutput {
    /// Text for standard output, exit status 0.
    pub fn succeeded(stdout: impl Into<String>) -> Self {
        Self {
            stdout: stdout.into(),
            ..Self::default()
        }
    }

    /// Nothing but a complaint.
    pub fn failed(code: u8, stderr: impl Into<String>) -> Self {
        Self {
            stderr: stderr.into(),
            code,
            ..Self::default()
        }
    }

    /// Prints it.
    pub fn print(&self) -> ExitCode {
        // A reader that has gone needs no error (`weir convert … | head`).
        let _gone = io::stderr().write_all(self.stderr.as_bytes());
        let _gone = io::stdout().write_all(self.stdout.as_bytes());
        ExitCode::from(self.code)
    }
}
