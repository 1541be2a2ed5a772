//! Upstreams: groups of targets, and how calls are shared between them.

use crate::{
    AdaptiveConcurrency, HealthChecks, Hedge, RetryBudget, SlowStart, StickySessions, ZoneAwareness,
    is_default,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group of targets that serve the same API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Unique name; services refer to it.
    pub name: String,
    /// `http` or `https`; over HTTP/2, `h2c` or `h2`, and for gRPC `grpc` or `grpcs`; for stream routes `tcp`, `tls` or `udp`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scheme: Scheme,
    /// How the next target is chosen.
    #[serde(default, skip_serializing_if = "is_default")]
    pub algorithm: BalancingAlgorithm,
    /// What `consistent-hashing` hashes, the first that the call has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hash_on: Vec<HashOn>,
    /// The servers.
    pub targets: Vec<Target>,
    /// Idle connections kept for the next call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keepalive: KeepalivePool,
    /// Names of targets are resolved as SRV records (RFC 2782) first, which then give ports and weights; if there are
    /// none, as addresses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub srv: bool,
    /// How the health of the targets is found out; absent: all count as healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<HealthChecks>,
    /// How many further tries there may be; absent: as many as the services want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<RetryBudget>,
    /// Targets that have just come, or come back, get a growing share of their calls; absent: their whole share at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start: Option<SlowStart>,
    /// Calls stay in the gateway's own zone as far as its targets can carry them; absent: zones do not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneAwareness>,
    /// A client's calls go to the target that its cookie names; absent: to any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky: Option<StickySessions>,
    /// A second copy of a slow call is sent to another target; absent: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedge: Option<Hedge>,
    /// Bounds the calls in flight by how long the upstream takes; absent: there is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive_concurrency: Option<AdaptiveConcurrency>,
}

/// The protocol spoken to targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Cleartext HTTP/1.1.
    #[default]
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// Cleartext HTTP/2, as gRPC wants it.
    Grpc,
    /// HTTP/2 over TLS.
    Grpcs,
    /// Cleartext HTTP/2, without asking (prior knowledge).
    H2c,
    /// HTTP over TLS: HTTP/2 if the target chooses it (ALPN), otherwise HTTP/1.1.
    H2,
    /// Whatever a stream route's clients speak, as it comes.
    Tcp,
    /// The same over TLS.
    Tls,
    /// Whatever a stream route's clients speak; for services of datagrams.
    Udp,
}

impl Scheme {
    /// Whether targets are met over TLS.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Grpcs | Self::H2 | Self::Tls)
    }

    /// Whether calls to targets use HTTP/2; with [`Scheme::H2`] only if the target chooses it.
    pub fn is_http2(self) -> bool {
        matches!(self, Self::Grpc | Self::Grpcs | Self::H2c | Self::H2)
    }

    /// Whether targets are there for gRPC.
    pub fn is_grpc(self) -> bool {
        matches!(self, Self::Grpc | Self::Grpcs)
    }

    /// Whether targets get the bytes of stream routes rather than calls.
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Tcp | Self::Tls | Self::Udp)
    }

    /// The scheme as it stands in front of a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Grpc => "grpc",
            Self::Grpcs => "grpcs",
            Self::H2c => "h2c",
            Self::H2 => "h2",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Udp => "udp",
        }
    }

    /// The default port. Streams have no such port: their targets name one.
    pub fn default_port(self) -> u16 {
        match self.is_tls() {
            false => 80,
            true => 443,
        }
    }
}

/// How the next target is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BalancingAlgorithm {
    /// In turn, in proportion to the weights.
    #[default]
    RoundRobin,
    /// The same value of `hash_on` goes to the same target.
    ConsistentHashing,
    /// The target with the fewest open calls for its weight.
    LeastConnections,
    /// The target that answered fastest lately.
    Ewma,
}

/// The value that is hashed to choose a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashOn {
    /// The consumer, once authenticated.
    Consumer,
    /// The client's address.
    Ip,
    /// The call's path.
    Path,
    /// A request header.
    Header(String),
    /// A query argument.
    QueryArg(String),
    /// A capture of the route's path pattern.
    Capture(String),
    /// A cookie; if the client has none, one is made and set for this path.
    Cookie {
        /// The cookie's name.
        name: String,
        /// The path of a new cookie; absent: no cookie is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set_for_path: Option<String>,
        /// The attributes of a new cookie after its path; absent: `HttpOnly`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<String>,
    },
    /// Any variable, or a text with `$variables`.
    Template(String),
    /// The client's id in a session of MQTT (`mqtt` of a stream route).
    MqttClientId,
}

/// A server of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// An address or a name; names are resolved with the TTL of their records.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Share of the calls relative to the other targets; 0: none.
    #[serde(default = "default_weight", skip_serializing_if = "is_default_weight")]
    pub weight: u32,
    /// Targets of a lower tier get calls only while no higher one can.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The zone that the target is in, for the upstream's `zones`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

fn default_weight() -> u32 {
    100
}

fn is_default_weight(weight: &u32) -> bool {
    *weight == default_weight()
}

/// Bounds of the idle connections that each worker keeps to each target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeepalivePool {
    /// Idle connections kept at most for each target and worker; 0: none.
    pub size: u32,
    /// Milliseconds after which an idle connection is closed.
    pub idle_timeout_ms: u64,
    /// Calls after which a connection is closed; 0: no bound.
    pub requests: u64,
}

impl Default for KeepalivePool {
    fn default() -> Self {
        Self {
            size: 512,
            idle_timeout_ms: 60_000,
            requests: 10_000,
        }
    }
}
