//! Programs that tests start and that a machine may lack.

/// Reports that a program is missing, and that the caller tests nothing therefore.
///
/// # Panics
/// If `WEIR_REQUIRE_TOOLS` is set, as in CI: a test must not pass by absence.
pub fn report_missing(program: &str) {
    let message = format!("{program} is not installed; `make deps` installs it");
    assert!(std::env::var_os("WEIR_REQUIRE_TOOLS").is_none(), "{message}");
    eprintln!("not tested: {message}");
}
