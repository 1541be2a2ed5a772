//! Routes: which calls go to which service, and what happens to them on the way.

use crate::{
    Bandwidth, ChainStep, DialectName, HostPattern, PathPattern, Predicate, Priority, Timeouts, is_default,
};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A route: conditions, a chain of plugins, and a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Unique name within its dialect; metrics and logs carry it.
    pub name: String,
    /// The dialect of this route's refusals.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: DialectName,
    /// The route takes calls for which any of these holds.
    #[serde(rename = "match")]
    pub matches: Vec<RouteMatch>,
    /// The destination of the calls.
    #[serde(rename = "to")]
    pub target: RouteTarget,
    /// Calls that are not over TLS are answered with this status: 426, or a 3xx to the same place over TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_only_status: Option<u16>,
    /// Calls that are not gRPC over HTTP/2 are answered with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_only_status: Option<u16>,
    /// The changes of the call's path.
    #[serde(default, skip_serializing_if = "is_default")]
    pub path: PathRewrite,
    /// The Host that the upstream sees.
    #[serde(default, skip_serializing_if = "is_default")]
    pub upstream_host: UpstreamHost,
    /// Headers that describe the client to the upstream.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forwarded: ForwardedHeaders,
    /// Headers that the gateway adds to every response of this route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_headers: Vec<GatewayHeader>,
    /// Headers that the gateway adds to every request of this route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_headers: Vec<GatewayHeader>,
    /// Overrides the service's time-outs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// Whether `Upgrade` (WebSocket) is passed on.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub upgrade: bool,
    /// Whether `CONNECT` (of HTTP/1.1) opens tunnels to targets of the service's upstream, and to no others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub connect: bool,
    /// The largest request body in bytes; absent: the listener's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<u64>,
    /// How important the calls are to an upstream with `adaptive_concurrency`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// How many bytes of bodies pass in a second, for each call; absent: as many as can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Further facts about the route, for variables: `route_name`, `service_id`, `service_name`, `matched_uri` (several
    /// patterns are separated by spaces) and `matched_host`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The plugins, in the order in which they process the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<ChainStep>,
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

/// The destination of a route's calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteTarget {
    /// To a service, by name.
    Service(String),
    /// To no service: the gateway responds itself.
    Respond(Respond),
}

/// A response of the gateway itself, in the format of the route's dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// Its status, 200 to 599.
    pub status: u16,
    /// Whether it responds before any plugin runs. Otherwise plugins run first, and one of them may respond.
    #[serde(default, skip_serializing_if = "is_default")]
    pub before_plugins: bool,
    /// Whether the route stands behind those of all dialects: it takes the calls that no other route takes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: bool,
}

impl RouteTarget {
    /// No service: a response with this status, unless a plugin responds first.
    pub fn respond_after_plugins(status: u16) -> Self {
        Self::Respond(Respond {
            status,
            before_plugins: false,
            last: false,
        })
    }

    /// No service: a response with this status before any plugin runs.
    pub fn respond_before_plugins(status: u16) -> Self {
        Self::Respond(Respond {
            status,
            before_plugins: true,
            last: false,
        })
    }
}

/// One set of conditions; all that are given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteMatch {
    /// Any of these hosts; empty: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPattern>,
    /// The path.
    #[serde(default, skip_serializing_if = "is_default")]
    pub path: PathPattern,
    /// Any of these methods; empty: every method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// All of these headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderMatch>,
    /// The client's address is in any of these networks; empty: every client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub remote_addrs: Vec<IpNet>,
    /// Server names of the TLS handshake; they bind only calls over TLS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snis: Vec<String>,
    /// A condition over the call's variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// Among matches that hold, the highest wins, then the first in the document. Absent: more specific
    /// hosts, then exact paths, then longer paths, then more conditions win.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<u64>,
}

/// A condition on a request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderMatch {
    /// The header's name, in any case.
    pub name: String,
    /// Any of these values, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Or a value that this regular expression finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// The changes of the call's path on its way to the upstream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathRewrite {
    /// The part that the route's path pattern matched is cut off.
    #[serde(skip_serializing_if = "is_default")]
    pub strip_matched: bool,
    /// Put before what is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// How `base` and the rest are joined.
    #[serde(skip_serializing_if = "is_default")]
    pub join: PathJoin,
}

/// How two parts of a path become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathJoin {
    /// As segments, with exactly one `/` between them.
    #[default]
    Segments,
    /// As texts, with double slashes merged.
    Concatenate,
}

/// The Host that the upstream sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamHost {
    /// The target's own name, with its port if it is not the scheme's.
    #[default]
    Target,
    /// The `Host` that the client sent.
    Client,
    /// This one.
    Fixed(String),
    /// This name, with the target's port if it is not the scheme's.
    WithTargetPort(String),
}

/// Headers that describe the client to the upstream.
///
/// `X-Forwarded-For` is appended to for every client. The others are replaced, but kept unchanged if the peer is in
/// `trusted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ForwardedHeaders {
    /// `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `X-Real-IP`.
    pub standard: bool,
    /// `X-Forwarded-Path`: the path that the client requested.
    #[serde(skip_serializing_if = "is_default")]
    pub path: bool,
    /// `X-Forwarded-Prefix`: the part of the path that was cut off, without escapes that a header does not need.
    #[serde(skip_serializing_if = "is_default")]
    pub prefix: bool,
    /// `Via`, in both directions, under this pseudonym (RFC 9110, 7.6.3); `null`: none is sent.
    #[serde(skip_serializing_if = "is_default_via")]
    pub via: Option<String>,
    /// Peers whose `X-Forwarded-*` are trusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub trusted: Vec<IpNet>,
    /// `X-Forwarded-Host` and `-Port` repeat the client's `Host` as written (case and port; if it has no port, the
    /// listener's). Otherwise: the host in lower case without a port, and the listener's port.
    #[serde(skip_serializing_if = "is_default")]
    pub host_as_written: bool,
    /// Headers of untrusted peers about other hops are removed: `Forwarded` (RFC 7239) and, if some peers are trusted,
    /// `X-Forwarded-For`.
    #[serde(skip_serializing_if = "is_default")]
    pub drop_forwarded: bool,
    /// Of an `X-Forwarded-For` or `Via` on several lines only the first is passed on. Otherwise they are joined.
    #[serde(skip_serializing_if = "is_default")]
    pub first_line_only: bool,
    /// `X-Forwarded-Host` of a call that names no host (HTTP/1.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_host: Option<String>,
}

impl Default for ForwardedHeaders {
    fn default() -> Self {
        Self {
            standard: true,
            path: false,
            prefix: false,
            via: default_via(),
            trusted: Vec::new(),
            host_as_written: false,
            drop_forwarded: false,
            first_line_only: false,
            default_host: None,
        }
    }
}

fn default_via() -> Option<String> {
    Some("weir".to_owned())
}

// Absent means the default, so "none" has to be written.
fn is_default_via(via: &Option<String>) -> bool {
    *via == default_via()
}

/// A header that the gateway itself adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayHeader {
    /// The header's name.
    pub name: String,
    /// Its value.
    pub value: GatewayHeaderValue,
}

/// The value of a [`GatewayHeader`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayHeaderValue {
    /// A fixed text.
    Text(String),
    /// A fixed text, if the response has no header of this name. Not for requests.
    TextIfAbsent(String),
    /// The call's id: 32 hexadecimal digits.
    RequestId,
    /// Milliseconds that the upstream took; absent when no upstream was asked.
    UpstreamLatencyMs,
    /// Milliseconds that the gateway itself took; absent when no upstream was asked.
    GatewayLatencyMs,
    /// Milliseconds that the whole call took; absent when an upstream was asked.
    ResponseLatencyMs,
    /// The status of the upstream's own answer, or of each failed try (`502, 502`); absent when none was asked.
    UpstreamStatus,
    /// The same, but only if the last of them is 500 or more.
    UpstreamErrorStatus,
}
