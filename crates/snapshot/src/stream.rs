//! Compiled stream routes: which route takes a session, and the destination of its bytes.

use crate::chain::Chain;
use crate::route::Forward;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_model::{Endpoint, MqttConnect, ProxyProtocol, StreamProtocol};
use weir_plugin::RouteInfo;

/// A stream route: what happens to the sessions that it takes.
pub struct StreamRoute {
    /// What filters and logs may know of it.
    pub facts: Arc<RouteInfo>,
    /// Where its sessions go; `None`: they are closed.
    pub forward: Option<Forward>,
    /// The longest, in milliseconds, that nothing moves on a session.
    pub idle_timeout_ms: u64,
    /// Datagrams that answer each one of a client; `None`: unknown.
    pub udp_responses: Option<u32>,
    /// How the client's address is sent to targets.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// What its sessions begin with.
    pub mqtt: Option<MqttConnect>,
    /// Its plugins, which are asked once when a session begins, and log it when it is over. Shared with open sessions.
    pub chain: Arc<Chain>,
    pub(crate) conditions: Conditions,
}

/// What a route asks of a session.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub protocols: Vec<StreamProtocol>,
    /// In lower case.
    pub exact: Vec<String>,
    /// What follows `*`, in lower case and with its dot.
    pub suffixes: Vec<String>,
    pub sources: Vec<Endpoint>,
    pub destinations: Vec<Endpoint>,
}

/// What a session is like before anything of it is forwarded.
#[derive(Debug, Clone, Copy)]
pub struct SessionInfo<'s> {
    /// What may become of it: `tls` stands for `tls-passthrough` too.
    pub transport: StreamTransport,
    /// The server name of the TLS handshake, in lower case.
    pub server_name: Option<&'s str>,
    /// The client.
    pub source: SocketAddr,
    /// The gateway's address that it has come to.
    pub destination: SocketAddr,
}

/// What listeners of streams take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamTransport {
    /// Connections of which nothing is read before they are forwarded.
    Tcp,
    /// Connections that begin with a TLS handshake.
    Tls,
    /// Datagrams.
    Udp,
}

/// All stream routes, in the order in which they are asked.
#[derive(Default)]
pub struct StreamRoutes {
    /// The routes, in the model's order.
    pub routes: Vec<StreamRoute>,
    /// Positions of routes, the strongest first.
    by_rank: Vec<u32>,
    /// The positions in `by_rank` of the routes that match one of these names, in order.
    by_name: HashMap<String, Vec<u32>>,
    /// The positions in `by_rank` of the routes that match no full name, in order.
    others: Vec<u32>,
}

impl StreamRoutes {
    /// The routes with an index over them; `by_rank` holds their positions, the strongest first.
    pub(crate) fn new(routes: Vec<StreamRoute>, by_rank: Vec<u32>) -> Self {
        let mut by_name: HashMap<String, Vec<u32>> = HashMap::new();
        let mut others = Vec::new();
        for (place, position) in (0..).zip(&by_rank) {
            let conditions = &routes[*position as usize].conditions;
            for name in &conditions.exact {
                by_name.entry(name.clone()).or_default().push(place);
            }
            if conditions.exact.is_empty() || !conditions.suffixes.is_empty() {
                others.push(place);
            }
        }
        Self {
            routes,
            by_rank,
            by_name,
            others,
        }
    }

    /// The route that takes a session, by its position, and how.
    pub fn find(&self, session: &SessionInfo<'_>) -> Option<(usize, StreamProtocol)> {
        let first = |places: &[u32]| {
            places.iter().find_map(|place| {
                let position = self.by_rank[*place as usize] as usize;
                let protocol = self.routes[position].conditions.admit(session)?;
                Some((*place, position, protocol))
            })
        };
        let named = session.server_name.and_then(|name| self.by_name.get(name));
        let named = named.and_then(|places| first(places));
        let other = first(&self.others);
        let (_, position, protocol) = match (named, other) {
            (Some(named), Some(other)) if other.0 < named.0 => other,
            (Some(named), _) => named,
            (None, other) => other?,
        };
        Some((position, protocol))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

impl Conditions {
    /// How the session is taken; `None`: it is not.
    fn admit(&self, session: &SessionInfo<'_>) -> Option<StreamProtocol> {
        let protocol = self.protocol(session.transport)?;
        let has_names = !(self.exact.is_empty() && self.suffixes.is_empty());
        if has_names && session.transport == StreamTransport::Tls {
            let name = session.server_name?;
            let is_known = self.exact.iter().any(|it| it == name)
                || self
                    .suffixes
                    .iter()
                    .any(|it| name.len() > it.len() && name.ends_with(it));
            if !is_known {
                return None;
            }
        }
        let is_any = |ends: &[Endpoint], end| ends.is_empty() || ends.iter().any(|it| it.contains(end));
        let fits = is_any(&self.sources, session.source) && is_any(&self.destinations, session.destination);
        fits.then_some(protocol)
    }

    fn protocol(&self, transport: StreamTransport) -> Option<StreamProtocol> {
        let known = |protocol| self.protocols.contains(&protocol).then_some(protocol);
        let any = self.protocols.is_empty();
        match transport {
            StreamTransport::Tcp if any => Some(StreamProtocol::Tcp),
            StreamTransport::Tcp => known(StreamProtocol::Tcp),
            StreamTransport::Tls if any => Some(StreamProtocol::Tls),
            StreamTransport::Tls => {
                known(StreamProtocol::Tls).or_else(|| known(StreamProtocol::TlsPassthrough))
            }
            StreamTransport::Udp if any => Some(StreamProtocol::Udp),
            StreamTransport::Udp => known(StreamProtocol::Udp),
        }
    }

    /// How much is asked: the number of kinds of conditions, whether all names are full ones, the longest name.
    pub(crate) fn specificity(&self) -> (usize, bool, usize) {
        let names = self.exact.iter().chain(&self.suffixes);
        let has_names = !(self.exact.is_empty() && self.suffixes.is_empty());
        let kinds = [has_names, !self.sources.is_empty(), !self.destinations.is_empty()];
        (
            kinds.iter().filter(|given| **given).count(),
            has_names && self.suffixes.is_empty(),
            names.map(String::len).max().unwrap_or(0),
        )
    }
}
