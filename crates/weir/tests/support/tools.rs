//! Programs that tests start and that a machine may lack.

use std::path::{Path, PathBuf};

/// The path of a program that `make deps` or the system has installed. Reports it if it is missing.
#[allow(dead_code, reason = "some tests know where theirs are")]
pub fn program(name: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::iter::once(tools)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        report_missing(name);
    }
    found
}

/// Reports that a program is missing, and that the caller tests nothing therefore.
///
/// # Panics
/// If `WEIR_REQUIRE_TOOLS` is set, as in CI: a test must not pass by absence.
pub fn report_missing(program: &str) {
    let message = format!("{program} is not installed; `make deps` installs it");
    assert!(std::env::var_os("WEIR_REQUIRE_TOOLS").is_none(), "{message}");
    eprintln!("not tested: {message}");
}
