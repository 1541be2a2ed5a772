//! Regular expressions of configurations, compiled within a memory limit. An invalid one is refused with its place.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::newline_tolerant;

/// The most memory that one compiled expression may take, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Compiles an expression for texts of bytes.
///
/// # Errors
/// The fault, at `path`.
pub fn compile(pattern: &str, path: DocPath) -> Result<Regex, Diagnostic> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(MAX_BYTES)
        .build()
        .map_err(|error| Diagnostic::error(path, format!("not a regular expression: {error}")))
}

/// Compiles expressions so that all are searched for at once.
///
/// # Errors
/// The faults of all of them.
pub fn compile_set(
    patterns: &[String],
    ignore_case: bool,
    path: &DocPath,
) -> Result<RegexSet, Vec<Diagnostic>> {
    compile_list(patterns, path)?;
    RegexSetBuilder::new(patterns.iter().map(|pattern| newline_tolerant(pattern)))
        .unicode(false)
        .case_insensitive(ignore_case)
        .size_limit(MAX_BYTES)
        .dfa_size_limit(MAX_BYTES)
        .build()
        .map_err(|error| {
            vec![Diagnostic::error(
                path.clone(),
                format!("not regular expressions: {error}"),
            )]
        })
}

/// Compiles a list of expressions.
///
/// # Errors
/// The faults of all of them.
pub fn compile_list(patterns: &[String], path: &DocPath) -> Result<Vec<Regex>, Vec<Diagnostic>> {
    let mut compiled = Vec::with_capacity(patterns.len());
    let mut faults = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        match compile(pattern, path.index(index)) {
            Ok(regex) => compiled.push(regex),
            Err(fault) => faults.push(fault),
        }
    }
    match faults.is_empty() {
        true => Ok(compiled),
        false => Err(faults),
    }
}
