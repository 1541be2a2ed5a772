//! `response-rewrite`: changes the response on its way to the client, the upstream's and the gateway's own.

use crate::header_steps::HeaderStep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::Predicate;

/// Configuration of `response-rewrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Only responses are changed for which this holds; `status` is the response's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// The new status, 200 to 598.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 200, max = 598))]
    pub status: Option<u16>,
    /// The new body, as it is. Headers that tell about the old one (`Content-Encoding`, `ETag`, `Last-Modified`) are
    /// taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether `body` is Base64.
    pub body_is_base64: bool,
    /// Changes of the headers. Values may hold variables.
    pub headers: Vec<HeaderStep>,
    /// Whether `$` in header values stands for variables rather than for itself.
    pub variables: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            when: None,
            status: None,
            body: None,
            body_is_base64: false,
            headers: Vec::new(),
            variables: true,
        }
    }
}
