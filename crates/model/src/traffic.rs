//! How an upstream's traffic is distributed beyond balancing itself: slow start, zones, sticky sessions, hedged calls,
//! adaptive concurrency, and bandwidth. Health and retries have files of their own.

use crate::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Targets that have just come, or come back, get a growing share of their calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlowStart {
    /// Milliseconds until a target gets its whole share.
    pub window_ms: u64,
    /// The share at the beginning, in percent.
    #[schemars(range(min = 1, max = 100))]
    pub min_percent: u8,
    /// 1: the share grows evenly. Above 1 it grows faster at the beginning, below 1 slower.
    pub aggression: f64,
}

impl Default for SlowStart {
    fn default() -> Self {
        Self {
            window_ms: 30_000,
            min_percent: 10,
            aggression: 1.0,
        }
    }
}

/// Calls stay in the gateway's own zone as far as its targets can carry them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZoneAwareness {
    /// By zone, its share of the calls that come to all gateways, relative to the others; as a rule the number of its
    /// gateways. Zones that are left out have none. Empty: the same to each zone that has targets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<String, u32>,
}

/// A client's calls go to the target that its cookie names, as long as that target is there and healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StickySessions {
    /// The name of the cookie.
    pub cookie: String,
    /// The path that the cookie is set for.
    pub path: String,
    /// Seconds after which the client forgets the cookie; absent: when it closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u64>,
    /// The attributes of the cookie after its path and age.
    pub attributes: String,
}

impl Default for StickySessions {
    fn default() -> Self {
        Self {
            cookie: "weir-target".to_owned(),
            path: "/".to_owned(),
            max_age_s: None,
            attributes: "HttpOnly; SameSite=Lax".to_owned(),
        }
    }
}

/// A second copy of a call is sent to another target if the first is not answered in time; the first answer counts. Only
/// calls of idempotent methods without a body, to upstreams over HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hedge {
    /// Milliseconds after which the copy is sent; absent: once the call takes longer than `percentile` of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// The percentage of calls that are faster than the moment of the copy.
    #[schemars(range(min = 50, max = 99))]
    pub percentile: u8,
    /// Copies for each hundred calls.
    #[schemars(range(min = 1, max = 100))]
    pub percent: u8,
    /// Copies that may be sent at once when there were none for a while.
    pub burst: u32,
}

impl Default for Hedge {
    fn default() -> Self {
        Self {
            after_ms: None,
            percentile: 95,
            percent: 10,
            burst: 10,
        }
    }
}

/// How many calls may be in flight is found out from how long the upstream takes; calls above that are refused, those of
/// low priority first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveConcurrency {
    /// The limit is never lower.
    #[schemars(range(min = 1))]
    pub min: u32,
    /// And never higher.
    #[schemars(range(min = 1))]
    pub max: u32,
    /// The limit at the beginning.
    #[schemars(range(min = 1))]
    pub initial: u32,
    /// Up to which part of the usual latency, in percent, an average latency is no sign of overload.
    #[schemars(range(min = 101, max = 1000))]
    pub tolerance_percent: u32,
    /// Milliseconds over which latencies are averaged.
    #[schemars(range(min = 10, max = 60000))]
    pub window_ms: u64,
    /// Milliseconds after which a usual latency that was not seen again is measured again, with half the limit.
    #[schemars(range(min = 1000))]
    pub probe_ms: u64,
}

impl Default for AdaptiveConcurrency {
    fn default() -> Self {
        Self {
            min: 4,
            max: 10_000,
            initial: 50,
            tolerance_percent: 150,
            window_ms: 200,
            probe_ms: 10_000,
        }
    }
}

/// How important a route's calls are if an upstream is overloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// They may use the whole limit.
    Critical,
    /// They may use nine tenths of it.
    High,
    /// They may use eight tenths.
    #[default]
    Normal,
    /// They may use half of it.
    Low,
}

/// How many bytes of a body pass in a second, for each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bandwidth {
    /// Of request bodies that are passed on as they come; 0: no bound.
    #[serde(skip_serializing_if = "is_default")]
    pub request_bytes_per_second: u64,
    /// Of response bodies; 0: no bound.
    #[serde(skip_serializing_if = "is_default")]
    pub response_bytes_per_second: u64,
}
