//! Services: the APIs that calls are forwarded to.

use crate::{UpstreamTls, is_default};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An API behind the gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Unique name; routes refer to it, metrics and logs carry it.
    pub name: String,
    /// `http://host:port/path` of a single target. Exactly one of `url` and `upstream` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The name in `url` is looked up as SRV records (RFC 2782) first, as with an upstream's `srv`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub srv: bool,
    /// Name of the upstream that shares the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Path put before the call's own, with `upstream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How often another try is made after a call could not be delivered.
    #[serde(default = "default_retries", skip_serializing_if = "is_default_retries")]
    pub retries: u32,
    /// Milliseconds that all tries of a call may take together before no further one is made; 0: no bound.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_timeout_ms: u64,
    /// Try again also for methods that are not idempotent, even when the call may have arrived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_non_idempotent: bool,
    /// Also retry if an upstream answers with one of these statuses. The last response is passed on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_statuses: Vec<u16>,
    /// The TLS settings for targets (an `https` url, or an upstream with the scheme `https`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: UpstreamTls,
    /// How long to wait for the upstream.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeouts: Timeouts,
}

fn default_retries() -> u32 {
    1
}

fn is_default_retries(retries: &u32) -> bool {
    *retries == default_retries()
}

/// Time-outs towards an upstream, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To establish a connection.
    pub connect_ms: u64,
    /// Between two successful writes of the request.
    pub write_ms: u64,
    /// Between two successful reads of the response.
    pub read_ms: u64,
    /// For all tries of a call together, from the first one until the response is complete; 0: no limit. For calls
    /// only.
    #[serde(skip_serializing_if = "is_default")]
    pub total_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_ms: 5_000,
            write_ms: 60_000,
            read_ms: 60_000,
            total_ms: 0,
        }
    }
}
