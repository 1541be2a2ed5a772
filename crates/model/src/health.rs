//! Health checks of an upstream: the probes, the results of calls, and the limits after which a target is taken out.

use crate::{UpstreamTls, is_default};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the health of an upstream's targets is found out. A target that is unhealthy gets no calls while another is
/// healthy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HealthChecks {
    /// Probes that the gateway itself sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveChecks>,
    /// Checks by the results of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveChecks>,
    /// Percent of the targets' weight that must be healthy, or the whole upstream counts as unhealthy and its calls
    /// are refused; 0: no such bound.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(max = 100))]
    pub min_healthy_percent: u8,
    /// What happens to calls while no target is healthy.
    #[serde(skip_serializing_if = "is_default")]
    pub when_none_healthy: NoneHealthy,
    /// Name of an upstream with the same targets, whose probes and whose knowledge of them this one shares: the same
    /// servers, called in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_with: Option<String>,
}

/// What happens to calls while no target is healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoneHealthy {
    /// They are shared by all targets, as if all were healthy.
    #[default]
    UseAll,
    /// They are answered 503.
    Refuse,
}

/// Probes that the gateway itself sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActiveChecks {
    /// The kind of the probes.
    #[serde(rename = "type")]
    pub kind: ProbeKind,
    /// The method of an HTTP probe.
    pub method: String,
    /// The path, and query, of an HTTP probe.
    pub path: String,
    /// `Host` of an HTTP probe; absent: the target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port that is probed; absent: the target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Further headers of an HTTP probe, name and value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body of an HTTP probe.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The service that a gRPC probe checks; empty: the server as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// The TLS settings of probes. If there is no server name, it is that of `host` or of the target.
    #[serde(skip_serializing_if = "is_default")]
    pub tls: UpstreamTls,
    /// Milliseconds that a probe may take.
    #[schemars(range(min = 1))]
    pub timeout_ms: u64,
    /// Probes of an upstream that may be under way at once.
    #[schemars(range(min = 1))]
    pub concurrency: u32,
    /// Probes of healthy targets, and what makes targets healthy.
    #[serde(skip_serializing_if = "is_default")]
    pub healthy: ActiveHealthy,
    /// Probes of unhealthy targets, and what makes targets unhealthy.
    #[serde(skip_serializing_if = "is_default")]
    pub unhealthy: ActiveUnhealthy,
}

impl Default for ActiveChecks {
    fn default() -> Self {
        Self {
            kind: ProbeKind::Http,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            host: None,
            port: None,
            headers: Vec::new(),
            body: String::new(),
            service: String::new(),
            tls: UpstreamTls::default(),
            timeout_ms: 1_000,
            concurrency: 10,
            healthy: ActiveHealthy::default(),
            unhealthy: ActiveUnhealthy::default(),
        }
    }
}

/// The kind of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A request whose answer's status counts.
    #[default]
    Http,
    /// The same over TLS.
    Https,
    /// A connection that is established and closed again.
    Tcp,
    /// A call of gRPC's health service, over HTTP/2 in cleartext. A server that lacks the service is healthy.
    Grpc,
    /// The same over TLS.
    Grpcs,
}

/// Probes of healthy targets, and what makes targets healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActiveHealthy {
    /// Milliseconds between two probes of a healthy target; 0: healthy targets are not probed.
    pub interval_ms: u64,
    /// Statuses that count as a success.
    #[serde(skip_serializing_if = "are_good")]
    pub statuses: Vec<u16>,
    /// Successes after which a target is healthy; 0: successes do not count.
    pub successes: u8,
}

impl Default for ActiveHealthy {
    fn default() -> Self {
        Self {
            interval_ms: 5_000,
            statuses: good_statuses(),
            successes: 2,
        }
    }
}

/// Probes of unhealthy targets, and what makes targets unhealthy. A number of 0: the failure does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActiveUnhealthy {
    /// Milliseconds between two probes of an unhealthy target; 0: unhealthy targets are not probed.
    pub interval_ms: u64,
    /// Statuses that count as a failure.
    #[serde(skip_serializing_if = "are_bad_probes")]
    pub statuses: Vec<u16>,
    /// Answers with such a status after which a target is unhealthy.
    pub http_failures: u8,
    /// Connections that failed or broke after which a target is unhealthy.
    pub tcp_failures: u8,
    /// Time-outs after which a target is unhealthy.
    pub timeouts: u8,
}

impl Default for ActiveUnhealthy {
    fn default() -> Self {
        Self {
            interval_ms: 1_000,
            statuses: bad_probe_statuses(),
            http_failures: 3,
            tcp_failures: 2,
            timeouts: 3,
        }
    }
}

/// Checks by the results of calls.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PassiveChecks {
    /// What makes targets healthy.
    #[serde(skip_serializing_if = "is_default")]
    pub healthy: PassiveHealthy,
    /// What makes targets unhealthy.
    #[serde(skip_serializing_if = "is_default")]
    pub unhealthy: PassiveUnhealthy,
    /// Milliseconds after which an unhealthy target gets calls again although nothing has shown that it is healthy.
    /// Absent: the value of `--passive-ejection`, or no limit if probes can find the target healthy; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ejection_ms: Option<u64>,
}

/// The results of calls that make targets healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PassiveHealthy {
    /// Statuses that count as a success.
    #[serde(skip_serializing_if = "are_good")]
    pub statuses: Vec<u16>,
    /// Successes after which a target is healthy, and which make its failures forgotten; 0: they do not count.
    pub successes: u8,
}

impl Default for PassiveHealthy {
    fn default() -> Self {
        Self {
            statuses: good_statuses(),
            successes: 1,
        }
    }
}

/// The results of calls that make targets unhealthy. A number of 0: the failure does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PassiveUnhealthy {
    /// Statuses that count as a failure.
    pub statuses: Vec<u16>,
    /// Answers with such a status after which a target is unhealthy.
    pub http_failures: u8,
    /// Connections that failed or broke after which a target is unhealthy.
    pub tcp_failures: u8,
    /// Time-outs after which a target is unhealthy.
    pub timeouts: u8,
}

impl Default for PassiveUnhealthy {
    fn default() -> Self {
        Self {
            statuses: vec![429, 500, 502, 503, 504],
            http_failures: 5,
            tcp_failures: 2,
            timeouts: 3,
        }
    }
}

/// A bound on the share of calls that are tries after the first, so that an upstream in trouble is not given more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryBudget {
    /// Further tries for each hundred calls.
    #[schemars(range(max = 100))]
    pub percent: u8,
    /// Further tries that may be made at once when there were none for a while, so that a quiet API has some too.
    pub burst: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            percent: 20,
            burst: 10,
        }
    }
}

fn good_statuses() -> Vec<u16> {
    (200..400).collect()
}

fn are_good(statuses: &[u16]) -> bool {
    statuses == good_statuses()
}

fn bad_probe_statuses() -> Vec<u16> {
    [429].into_iter().chain(500..600).collect()
}

fn are_bad_probes(statuses: &[u16]) -> bool {
    statuses == bad_probe_statuses()
}
