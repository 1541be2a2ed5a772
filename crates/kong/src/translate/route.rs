//! Routes: for each route and path one match, ranked among all others.

use super::chain::Chains;
use super::path;
use super::precedence::{Rank, rank};
use super::service::{ServiceInfo, Services};
use super::stream;
use crate::RouterFlavor;
use crate::document::{Document, Entity, Route};
use crate::errors::PSEUDONYM;
use crate::schema::{ItemLocation, text};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{
    Comparison, Diagnostic, ForwardedHeaders, GatewayHeader, GatewayHeaderValue, HeaderMatch, HostPattern,
    Operator, PathJoin, PathPattern, PathRewrite, Predicate, RouteMatch, RouteTarget, UpstreamHost,
};

/// The status of calls to gRPC routes that are no gRPC.
pub const NOT_GRPC: u16 = 415;

/// Translates all routes that Weir serves; the others are left out with a diagnostic, those of disabled services
/// without one.
pub fn translate(
    document: &Document,
    router: RouterFlavor,
    services: &Services<'_>,
    chains: &mut Chains,
    found: &mut Vec<Diagnostic>,
) -> Vec<Arc<weir_model::Route>> {
    let mut routes = Vec::with_capacity(document.routes.len());
    let mut ranks: Vec<(Rank, usize, usize)> = Vec::new();
    for (position, entity) in document.routes.iter().enumerate() {
        let backend = entity.value.service.and_then(|id| services.get(id));
        let Some(mut one) = translate_one(entity, position, router, backend, found) else {
            continue;
        };
        one.route.plugins = chains.steps(entity.value.id, entity.value.service);
        one.route.labels = chains.labels(&entity.value, backend.map(|backend| backend.service), None);
        let index = routes.len();
        let numbered = one.ranks.into_iter().enumerate();
        ranks.extend(numbered.map(|(number, rank)| (rank, index, number)));
        routes.push(one.route);
    }
    number(&mut routes, ranks);
    routes.into_iter().map(Arc::new).collect()
}

/// A route by itself: its place among others is not decided, and its chain is not there.
#[derive(Clone)]
pub struct UnorderedRoute {
    /// The route.
    pub route: weir_model::Route,
    /// The rank of each of its matches.
    pub ranks: Vec<Rank>,
}

/// Gives matches, each by the positions of its route and in it, their place among all others.
fn number(routes: &mut [weir_model::Route], mut ranks: Vec<(Rank, usize, usize)>) {
    ranks.sort_unstable();
    for (ordinal, (_, route, number)) in ranks.into_iter().enumerate() {
        routes[route].matches[number].precedence = Some(ordinal as u64 + 1);
    }
}

/// Translates a route, the one at `position` of its document; `None`: it is not served.
pub fn translate_one(
    Entity { place, value: route }: &Entity<Route>,
    position: usize,
    router: RouterFlavor,
    backend: Option<&ServiceInfo<'_>>,
    found: &mut Vec<Diagnostic>,
) -> Option<UnorderedRoute> {
    let target = target(route, backend, place, found)?;
    let (matches, ranks) = matches(route, router, position);
    let route = weir_model::Route {
        name: route.name.clone().unwrap_or_else(|| route.id.to_string()),
        dialect: crate::NAME,
        matches,
        target,
        https_only_status: https_only_status(route),
        grpc_only_status: is_grpc(route).then_some(NOT_GRPC),
        path: path_rewrite(route, router, backend),
        upstream_host: upstream_host(route, backend),
        forwarded: ForwardedHeaders {
            standard: true,
            path: true,
            prefix: true,
            via: Some(PSEUDONYM.to_owned()),
            first_line_only: true,
            // The original's name for itself.
            default_host: Some("kong".to_owned()),
            ..ForwardedHeaders::default()
        },
        response_headers: response_headers(),
        request_headers: vec![gateway_header("X-Kong-Request-Id", GatewayHeaderValue::RequestId)],
        timeouts: None,
        upgrade: true,
        connect: false,
        max_body_bytes: None,
        priority: weir_model::Priority::default(),
        bandwidth: None,
        labels: std::collections::BTreeMap::new(),
        plugins: Vec::new(),
    };
    Some(UnorderedRoute { route, ranks })
}

/// The target of the route's calls; `None`: it is not served, as of a disabled service.
fn target(
    route: &Route,
    backend: Option<&ServiceInfo<'_>>,
    place: &ItemLocation,
    found: &mut Vec<Diagnostic>,
) -> Option<RouteTarget> {
    if backend.is_some_and(|backend| !backend.service.enabled) {
        return None;
    }
    if stream::is_stream(route) {
        return None;
    }
    let name = backend.and_then(|backend| backend.name.as_ref().filter(|_| !backend.is_stream));
    if backend.is_some() && name.is_none() {
        found.push(Diagnostic::dropped(
            place.to_path(),
            stream::UNSUPPORTED_SERVICE_MESSAGE,
        ));
    }
    Some(match name {
        Some(name) => RouteTarget::Service(name.clone()),
        // As in the original, it stays as a route without a service.
        None => RouteTarget::respond_after_plugins(503),
    })
}

fn is_grpc(route: &Route) -> bool {
    let mut protocols = route.protocols.iter();
    protocols.any(|protocol| protocol.starts_with("grpc"))
}

fn https_only_status(route: &Route) -> Option<u16> {
    (!takes_cleartext(route)).then_some(route.https_redirect_status_code)
}

/// Whether the route serves calls that come without TLS.
pub fn takes_cleartext(route: &Route) -> bool {
    let mut protocols = route.protocols.iter();
    protocols.any(|protocol| matches!(protocol.as_str(), "http" | "grpc"))
}

fn path_rewrite(route: &Route, router: RouterFlavor, backend: Option<&ServiceInfo<'_>>) -> PathRewrite {
    let is_v1 = router == RouterFlavor::Traditional && route.path_handling.as_deref() == Some("v1");
    let base = backend
        .and_then(|backend| backend.service.path.clone())
        .filter(|path| path != "/");
    PathRewrite {
        strip_matched: route.strip_path,
        base,
        join: if is_v1 {
            PathJoin::Concatenate
        } else {
            PathJoin::Segments
        },
    }
}

fn upstream_host(route: &Route, backend: Option<&ServiceInfo<'_>>) -> UpstreamHost {
    if route.preserve_host {
        return UpstreamHost::Client;
    }
    let upstream = backend.and_then(|backend| backend.upstream);
    match upstream.and_then(|upstream| upstream.host_header.clone()) {
        Some(host) => UpstreamHost::WithTargetPort(host),
        None => UpstreamHost::Target,
    }
}

fn gateway_header(name: &str, value: GatewayHeaderValue) -> GatewayHeader {
    GatewayHeader {
        name: name.to_owned(),
        value,
    }
}

fn response_headers() -> Vec<GatewayHeader> {
    vec![
        gateway_header("X-Kong-Upstream-Latency", GatewayHeaderValue::UpstreamLatencyMs),
        gateway_header("X-Kong-Proxy-Latency", GatewayHeaderValue::GatewayLatencyMs),
        gateway_header("X-Kong-Response-Latency", GatewayHeaderValue::ResponseLatencyMs),
        gateway_header("X-Kong-Request-Id", GatewayHeaderValue::RequestId),
        gateway_header("Server", GatewayHeaderValue::TextIfAbsent(PSEUDONYM.to_owned())),
    ]
}

/// For each path one match, with its rank; more where hosts of one route are found in different ways.
pub fn matches(route: &Route, router: RouterFlavor, position: usize) -> (Vec<RouteMatch>, Vec<Rank>) {
    let paths: Vec<Option<&str>> = match route.paths.as_slice() {
        [] => vec![None],
        paths => paths.iter().map(|path| Some(path.as_str())).collect(),
    };
    let groups = HostGroup::all(route, router);
    let headers = header_matches(route);
    let mut matches = Vec::with_capacity(paths.len() * groups.len());
    let mut ranks = Vec::with_capacity(matches.capacity());
    for path in paths {
        for group in &groups {
            matches.push(RouteMatch {
                hosts: group
                    .hosts
                    .iter()
                    .flat_map(|host| host_patterns(host, router))
                    .collect(),
                path: path.map_or(PathPattern::Any, path::pattern),
                methods: route.methods.clone(),
                headers: headers.clone(),
                remote_addrs: Vec::new(),
                snis: route.snis.clone(),
                when: group.has_capitals.then(|| in_this_case(&group.hosts)),
                precedence: None,
            });
            ranks.push(rank(router, route, path, group.has_port, position));
        }
    }
    (matches, ranks)
}

/// Hosts of a route that are found in the same way.
struct HostGroup<'r> {
    /// Found only by calls in the same case.
    has_capitals: bool,
    /// Full names with a port, which the router `traditional` prefers.
    has_port: bool,
    hosts: Vec<&'r str>,
}

impl<'r> HostGroup<'r> {
    /// All hosts of a route; at least one group.
    fn all(route: &'r Route, router: RouterFlavor) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::with_capacity(1);
        for host in &route.hosts {
            let has_capitals = host.bytes().any(|byte| byte.is_ascii_uppercase());
            let is_full = !host.contains('*');
            let has_port = router == RouterFlavor::Traditional
                && is_full
                && matches!(text::split_port(host), Ok((_, Some(_))));
            match groups
                .iter_mut()
                .find(|group| (group.has_capitals, group.has_port) == (has_capitals, has_port))
            {
                Some(group) => group.hosts.push(host),
                None => groups.push(Self {
                    has_capitals,
                    has_port,
                    hosts: vec![host],
                }),
            }
        }
        if groups.is_empty() {
            groups.push(Self {
                has_capitals: false,
                has_port: false,
                hosts: Vec::new(),
            });
        }
        groups
    }
}

/// Addresses stand in calls as they do in URLs, IPv6 ones in brackets. For the router `traditional_compatible` the
/// wildcard of `*.x.test` may stand for nothing.
fn host_patterns(host: &str, router: RouterFlavor) -> Vec<HostPattern> {
    let pattern = match host.parse::<std::net::Ipv6Addr>() {
        Ok(_) => HostPattern::parse(&format!("[{host}]")),
        Err(_) => HostPattern::parse(host),
    };
    match pattern {
        Ok(HostPattern::Suffix { suffix, port }) if router != RouterFlavor::Traditional => vec![
            HostPattern::Exact {
                host: suffix.clone(),
                port,
            },
            HostPattern::Suffix { suffix, port },
        ],
        Ok(pattern) => vec![pattern],
        Err(_) => Vec::new(),
    }
}

/// The original compares hosts byte by byte: one that is written with capitals is only found by them.
fn in_this_case(hosts: &[&str]) -> Predicate {
    let patterns: Vec<String> = hosts
        .iter()
        .map(|host| {
            let (name, _) = text::split_port(host).unwrap_or((host, None));
            regex::escape(name).replace(r"\*", ".+")
        })
        .collect();
    Predicate::Compare(Comparison {
        variable: "http_host".to_owned(),
        operator: Operator::Matches,
        value: format!("^(?:{})(?::[0-9]+)?$", patterns.join("|")).into(),
    })
}

/// A single value that begins with `~*` is a regular expression.
fn header_matches(route: &Route) -> Vec<HeaderMatch> {
    route
        .headers
        .iter()
        .map(|(name, values)| {
            let values = values.as_array().map_or(&[][..], Vec::as_slice);
            let (patterns, values): (Vec<&str>, Vec<&str>) = values
                .iter()
                .filter_map(Value::as_str)
                .partition(|value| value.starts_with("~*"));
            let patterns: Vec<String> = patterns
                .iter()
                .map(|pattern| format!("(?:{})", pattern[2..].to_lowercase()))
                .collect();
            HeaderMatch {
                name: name.clone(),
                values: values.into_iter().map(str::to_owned).collect(),
                regex: (!patterns.is_empty()).then(|| format!("(?i){}", patterns.join("|"))),
            }
        })
        .collect()
}
