//! Routes of connections and datagrams: conditions, rank and service.

use super::chain::Chains;
use super::service::{ServiceInfo, Services};
use crate::RouterFlavor;
use crate::document::{Address, Document, Entity, Route};
use crate::schema::ItemLocation;
use std::cmp::Reverse;
use weir_model::{Diagnostic, Endpoint, StreamProtocol, StreamRoute};

/// The plugins that work on these routes.
pub const PLUGINS: &[&str] = &[
    "file-log",
    "http-log",
    "ip-restriction",
    "kafka-log",
    "loggly",
    "syslog",
    "tcp-log",
    "udp-log",
];

/// What becomes of a route whose service is for the other kind of routes. It stays, so that no other route takes what is
/// its own.
pub const UNSUPPORTED_SERVICE_MESSAGE: &str =
    "the protocols of the route and of its service do not go together: what comes to it is refused";

/// Whether a route takes connections or datagrams rather than calls.
pub fn is_stream(route: &Route) -> bool {
    let mut protocols = route.protocols.iter();
    protocols.any(|it| matches!(it.as_str(), "tcp" | "tls" | "tls_passthrough" | "udp"))
}

/// Translates all routes of connections and datagrams; those of disabled services are left out.
pub fn translate(
    document: &Document,
    router: RouterFlavor,
    services: &Services<'_>,
    chains: &mut Chains,
    found: &mut Vec<Diagnostic>,
) -> Vec<StreamRoute> {
    let streams = document.routes.iter().enumerate();
    let streams = streams.filter(|(_, it)| is_stream(&it.value));
    let made = streams.filter_map(|(position, entity)| {
        let backend = entity.value.service.and_then(|id| services.get(id));
        let mut single = translate_one(entity, position, router, backend, found)?;
        found.extend(chains.idle_on_streams(entity.value.id).map(|name| {
            let message = format!("plugin \"{name}\" does nothing on streams in this version of Weir");
            Diagnostic::warning(entity.place.to_path(), message)
        }));
        match chains.stream_steps(entity.value.id, entity.value.service) {
            Some(steps) => single.route.plugins = steps,
            None => single.route.refuse_sessions(),
        }
        Some(single)
    });
    number(made.collect())
}

/// A route by itself: its place among others is not decided, and its chain is not there.
#[derive(Clone)]
pub struct UnorderedStreamRoute {
    /// The route.
    pub route: StreamRoute,
    /// Its rank among others.
    pub rank: Rank,
}

/// The rule that decides between routes that both take a session; the greater wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Of the router `traditional_compatible`: a packed number, then the route's id.
    Compatible(u64, uuid::Uuid),
    /// Of the router `traditional`.
    Traditional {
        /// How many kinds of conditions there are.
        conditions: u32,
        /// Which kinds: server names before sources, and these before destinations.
        category: u32,
        /// An address together with a port is asked for.
        has_full_end: bool,
        /// The route that comes first in the document.
        position: Reverse<usize>,
    },
}

/// Gives routes their places among each other.
pub fn number(mut routes: Vec<UnorderedStreamRoute>) -> Vec<StreamRoute> {
    let mut order: Vec<usize> = (0..routes.len()).collect();
    order.sort_by(|one, other| routes[*one].rank.cmp(&routes[*other].rank));
    for (ordinal, index) in order.into_iter().enumerate() {
        routes[index].route.precedence = Some(ordinal as u64 + 1);
    }
    routes.into_iter().map(|it| it.route).collect()
}

/// Translates a route, the one at `position` of its document; `None`: it is not served.
pub fn translate_one(
    Entity { place, value: route }: &Entity<Route>,
    position: usize,
    router: RouterFlavor,
    backend: Option<&ServiceInfo<'_>>,
    found: &mut Vec<Diagnostic>,
) -> Option<UnorderedStreamRoute> {
    if backend.is_some_and(|backend| !backend.service.enabled) {
        return None;
    }
    let protocols = protocols(route);
    let would_wrap_twice = protocols
        .iter()
        .any(|it| matches!(it, StreamProtocol::TlsPassthrough | StreamProtocol::Udp));
    let is_unfit = |backend: &&ServiceInfo<'_>| {
        !backend.is_stream || would_wrap_twice && backend.service.protocol == "tls"
    };
    if backend.is_some_and(|backend| is_unfit(&backend)) {
        found.push(Diagnostic::dropped(place.to_path(), UNSUPPORTED_SERVICE_MESSAGE));
    }
    let backend = backend.filter(|backend| !is_unfit(backend));
    let route_made = StreamRoute {
        service: backend.and_then(|backend| backend.name.clone()),
        ..conditions(route, place, found)
    };
    Some(UnorderedStreamRoute {
        route: route_made,
        rank: match router {
            RouterFlavor::Traditional => traditional(route, position),
            RouterFlavor::TraditionalCompatible => Rank::Compatible(packed_priority(route), route.id),
        },
    })
}

/// Which connections and datagrams a route takes, without a service for them.
pub fn conditions(route: &Route, place: &ItemLocation, found: &mut Vec<Diagnostic>) -> StreamRoute {
    StreamRoute {
        name: route.name.clone().unwrap_or_else(|| route.id.to_string()),
        dialect: crate::NAME,
        protocols: protocols(route),
        snis: route.snis.clone(),
        sources: ends(&route.sources, place, found),
        destinations: ends(&route.destinations, place, found),
        ..StreamRoute::default()
    }
}

/// The original's router does not look at protocols: a `tcp` route takes what was inside of TLS, too, if the listener
/// has ended that.
fn protocols(route: &Route) -> Vec<StreamProtocol> {
    let mut protocols = Vec::new();
    for protocol in &route.protocols {
        match protocol.as_str() {
            "tcp" => protocols.extend([StreamProtocol::Tcp, StreamProtocol::Tls]),
            "tls" => protocols.push(StreamProtocol::Tls),
            "tls_passthrough" => protocols.push(StreamProtocol::TlsPassthrough),
            "udp" => protocols.push(StreamProtocol::Udp),
            _ => {}
        }
    }
    protocols.sort_unstable_by_key(|it| *it as u8);
    protocols.dedup();
    protocols
}

fn ends(addresses: &[Address], place: &ItemLocation, found: &mut Vec<Diagnostic>) -> Vec<Endpoint> {
    let mut ends = Vec::with_capacity(addresses.len());
    for address in addresses {
        let network = address.ip.as_deref().map(Endpoint::parse).transpose();
        match network {
            Ok(network) => ends.push(Endpoint {
                network: network.and_then(|end| end.network),
                port: address.port,
            }),
            // The schema lets none pass.
            Err(message) => found.push(Diagnostic::error(place.to_path(), message)),
        }
    }
    ends
}

/// Server names, or sources and destinations together, go before all else; then the kinds of ends that are asked for:
/// addresses, ports and networks, of sources and then of destinations.
fn packed_priority(route: &Route) -> u64 {
    let is_strong = !route.snis.is_empty() || (!route.sources.is_empty() && !route.destinations.is_empty());
    let weight = |addresses: &[Address]| {
        addresses.iter().fold(0, |weight, address| {
            let network = match &address.ip {
                Some(ip) if ip.contains('/') => 1,
                Some(_) => 8,
                None => 0,
            };
            weight | network | if address.port.is_some() { 4 } else { 0 }
        })
    };
    (u64::from(is_strong) << 61) | (weight(&route.sources) << 4) | weight(&route.destinations)
}

fn traditional(route: &Route, position: usize) -> Rank {
    let kinds = [
        !route.snis.is_empty(),
        !route.sources.is_empty(),
        !route.destinations.is_empty(),
    ];
    let category = kinds
        .iter()
        .fold(0, |category, given| (category << 1) | u32::from(*given));
    let is_full = |address: &Address| address.ip.is_some() && address.port.is_some();
    Rank::Traditional {
        conditions: category.count_ones(),
        category,
        has_full_end: route.sources.iter().chain(&route.destinations).any(is_full),
        position: Reverse(position),
    }
}
