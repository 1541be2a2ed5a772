//! Routes as they are executed: what happens to a call once it is found. How they match stands in the table.

use crate::chain::Chain;
use crate::tls::ClientTls;
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;
use weir_flow::overload::Priority;
use weir_model::{Bandwidth, DialectName, GatewayHeaderValue, PathRewrite, Timeouts, UpstreamHost};
use weir_plugin::RouteInfo;

/// A route: what happens to the calls that it takes.
///
/// A gateway with many routes has them in no near cache. What a call without plugins reads of its route alone lies in one
/// line of 64 bytes; the rules stand elsewhere, once for all routes that have the same.
#[repr(C, align(64))]
pub struct Route {
    /// How its calls are served.
    pub rules: Arc<RouteRules>,
    /// Its plugins.
    pub chain: Chain,
    /// What filters and conditions may know of it.
    pub facts: Arc<RouteInfo>,
    /// The names of service and route in metrics.
    pub series_names: (Arc<str>, Arc<str>),
}

/// How the calls of a route are served. Many routes have the same rules.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteRules {
    /// Where calls go.
    pub action: Action,
    /// Whose words answer refusals.
    pub dialect: DialectName,
    /// Calls that are not over TLS are answered with this status.
    pub https_only_status: Option<u16>,
    /// Calls that are not gRPC are answered with this status.
    pub grpc_only_status: Option<u16>,
    /// Headers that the gateway adds to requests.
    pub request_headers: Arc<[GatewayHeader]>,
    /// Headers that the gateway adds to responses.
    pub response_headers: Arc<[GatewayHeader]>,
    /// Headers that describe the client to the upstream.
    pub forwarded: Arc<ForwardedHeaderPolicy>,
    /// Whether `Upgrade` is passed on.
    pub upgrade: bool,
    /// Whether `CONNECT` opens tunnels to its upstream's targets.
    pub connect: bool,
    /// The largest request body in bytes; `None`: the listener's.
    pub max_body_bytes: Option<u64>,
    /// How important calls are to an upstream that is overloaded.
    pub priority: Priority,
    /// The limit for bytes of bodies per second, if there is one.
    pub bandwidth: Option<Box<Bandwidth>>,
}

/// Where a route's calls go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// To an upstream.
    Forward(Forward),
    /// Nowhere: a refusal with this status, unless a plugin answers first.
    Unavailable(u16),
    /// Nowhere: a refusal with this status before any plugin runs.
    Reject(u16),
}

/// How calls are forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// Position in the snapshot's list of upstreams.
    pub upstream: u32,
    /// What happens to the path; `base` is the service's path joined with the route's.
    pub path: PathRewrite,
    /// How targets are met over TLS; `None`: they speak cleartext.
    pub tls: Option<Arc<ClientTls>>,
    /// The Host that the upstream sees.
    pub upstream_host: UpstreamHost,
    /// The route's time-outs, or the service's.
    pub timeouts: Timeouts,
    /// How often another try is made after a call could not be delivered.
    pub retries: u32,
    /// Milliseconds that all tries may take together before no further one is made; 0: no bound.
    pub retry_timeout_ms: u64,
    /// Try again also for methods that are not idempotent.
    pub retry_non_idempotent: bool,
    /// Answers of these statuses are tried again, too.
    pub retry_statuses: Arc<[u16]>,
}

/// A header that the gateway adds by itself; its name and a fixed value are known to be well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayHeader {
    /// The header's name.
    pub name: Vec<u8>,
    /// Its value.
    pub value: GatewayHeaderValue,
    /// The part of its line that is the same for every call: the whole line if the value is a fixed text, otherwise the
    /// part before the value.
    pub line: Vec<u8>,
}

impl GatewayHeader {
    /// A header of this name.
    pub fn new(name: &str, value: GatewayHeaderValue) -> Self {
        let mut line = format!("{name}: ");
        if let GatewayHeaderValue::Text(text) | GatewayHeaderValue::TextIfAbsent(text) = &value {
            line.push_str(text);
            line.push_str("\r\n");
        }
        Self {
            name: name.as_bytes().to_vec(),
            value,
            line: line.into_bytes(),
        }
    }
}

/// Headers that describe the client to the upstream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForwardedHeaderPolicy {
    /// `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `X-Real-IP`.
    pub standard: bool,
    /// `X-Forwarded-Path`.
    pub path: bool,
    /// `X-Forwarded-Prefix`.
    pub prefix: bool,
    /// The pseudonym in `Via`; `None`: no such header.
    pub via: Option<Vec<u8>>,
    /// Peers whose `X-Forwarded-*` are trusted.
    pub trusted: Vec<IpNet>,
    /// `X-Forwarded-Host` and `-Port` repeat the client's `Host` as written.
    pub host_as_written: bool,
    /// `Forwarded` of untrusted peers is not passed on; nor, if some peers are trusted, is their `X-Forwarded-For`.
    pub drop_forwarded: bool,
    /// Of an `X-Forwarded-For` or `Via` on several lines only the first is passed on.
    pub first_line_only: bool,
    /// `X-Forwarded-Host` of a call that names no host.
    pub default_host: Option<Vec<u8>>,
}

impl ForwardedHeaderPolicy {
    /// Whether the `X-Forwarded-*` of this peer are believed.
    #[inline]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        !self.trusted.is_empty() && contains(&self.trusted, peer)
    }
}

/// Whether one of the networks has this address, be it written as IPv4 or as IPv4 within IPv6.
pub(crate) fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    let canonical = address.to_canonical();
    networks
        .iter()
        .any(|network| network.contains(&canonical) || network.contains(&address))
}
