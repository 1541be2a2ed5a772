//! `request-termination`: answers calls itself, for maintenance, mocks and blocked consumers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `request-termination`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Status of the answer, 100 to 599.
    #[schemars(range(min = 100, max = 599))]
    pub status: u16,
    /// A sentence for the caller, sent as the `detail` of a problem document (RFC 9457). Not together with `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The body of the answer; without `message` and `body` it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// `Content-Type` of `body`; absent: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Name of a request header or query argument: only calls that have one of them are answered, whatever its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Answers with an account of the request in JSON, with `message` in it, for debugging.
    pub echo: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            status: 503,
            message: None,
            body: None,
            content_type: None,
            trigger: None,
            echo: false,
        }
    }
}
