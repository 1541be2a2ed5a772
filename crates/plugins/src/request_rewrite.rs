//! `request-rewrite`: changes the request on its way to the upstream.

use crate::header_steps::HeaderStep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `request-rewrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The new path, with variables (`/v2$uri`). What stands behind a `?` becomes the query, the caller's own behind
    /// it. Goes before `path_patterns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Replacements of the path; the first whose pattern finds something is used.
    pub path_patterns: Vec<PathReplacement>,
    /// Forwards the request target exactly as the client wrote it, before any normalization. The upstream then may
    /// understand another path than the one that the gateway's rules were checked against. Goes before `path`.
    pub unsafe_original_target: bool,
    /// The new method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The `Host` that the upstream is told, with its port where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Changes of the headers. Values may hold variables, and `$1` to `$9` for what the groups of the pattern that
    /// was used have found (without one, they are empty).
    pub headers: Vec<HeaderStep>,
    /// Whether `$` in header values stands for variables rather than for itself.
    pub variables: bool,
    /// Whether the paths of this chain's calls are decoded before they are matched, so that the result is escaped
    /// whole; otherwise only what cannot stand in a path is.
    pub decoded_paths: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: None,
            path_patterns: Vec::new(),
            unsafe_original_target: false,
            method: None,
            host: None,
            headers: Vec::new(),
            variables: true,
            decoded_paths: false,
        }
    }
}

/// A replacement of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathReplacement {
    /// A regular expression that is looked for in the path, without its query.
    pub pattern: String,
    /// What stands in place of the part that it found, with `$1` for its groups. What stands behind a `?` becomes the
    /// query.
    pub replacement: String,
}
