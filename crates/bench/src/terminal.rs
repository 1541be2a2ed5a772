//! What the bench says while it runs: results on the standard output, what happens now on the error output.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

use crate::table::Table;

/// Prints one line of the report.
///
/// # Errors
/// The reader has gone.
pub fn note(line: &str) -> Result<()> {
    clear_progress();
    writeln!(std::io::stdout().lock(), "{line}").context("writing the report")
}

/// Prints a table.
///
/// # Errors
/// The reader has gone.
pub fn table(table: &Table) -> Result<()> {
    note(&table.to_text())
}

/// Says what happens now: on a terminal on one line that changes, else line after line.
pub fn progress(text: &str) {
    let mut out = std::io::stderr().lock();
    // Progress that cannot be shown stops nothing.
    let _ = if out.is_terminal() {
        write!(out, "\r\x1b[K· {text}").and_then(|()| out.flush())
    } else {
        writeln!(out, "· {text}")
    };
}

fn clear_progress() {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K");
    }
}
