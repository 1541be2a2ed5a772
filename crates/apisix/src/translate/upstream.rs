//! Upstreams: what APISIX says about nodes, balancing and hosts, in the model's words.

use super::checks;
use crate::document::{Node, Timeout, Upstream};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_model::{
    BalancingAlgorithm, Diagnostic, DocPath, HashOn, KeepalivePool, KeyPair, Scheme, Service, Target,
    Timeouts, UpstreamHost, UpstreamTls,
};

/// The default time-outs towards upstreams, as in NGINX.
const TIMEOUTS: Timeouts = Timeouts {
    connect_ms: 60_000,
    write_ms: 60_000,
    read_ms: 60_000,
    total_ms: 0,
};
/// The default pool of idle connections, as in APISIX's configuration.
const KEEPALIVE: KeepalivePool = KeepalivePool {
    size: 320,
    idle_timeout_ms: 60_000,
    requests: 1000,
};

/// An upstream in the model: the targets, and the service that says how they are called.
#[derive(Debug)]
pub struct Translated {
    pub upstream: Arc<weir_model::Upstream>,
    pub service: Arc<Service>,
}

/// Translates an upstream under a name. `None` if it has no node or a scheme that is none of HTTP, so that calls cannot go
/// there. `place` is
/// its place in the document.
pub fn translate(
    name: &str,
    upstream: &Upstream,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Translated> {
    let scheme = scheme(upstream, place, diagnostics)?;
    translate_as(scheme, name, upstream, place, diagnostics)
}

/// Likewise for stream routes, for which all schemes but `tls` and `udp` mean `tcp`.
pub fn translate_for_streams(
    name: &str,
    upstream: &Upstream,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Translated> {
    let scheme = match upstream.scheme.as_str() {
        "tls" => Scheme::Tls,
        "udp" => Scheme::Udp,
        _ => Scheme::Tcp,
    };
    translate_as(scheme, name, upstream, place, diagnostics)
}

fn translate_as(
    scheme: Scheme,
    name: &str,
    upstream: &Upstream,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Translated> {
    let targets = targets(upstream, scheme, place, diagnostics);
    if targets.is_empty() {
        return None;
    }
    let algorithm = algorithm(upstream, place, diagnostics);
    let service = Service {
        name: name.to_owned(),
        url: None,
        srv: false,
        tls: tls(upstream),
        upstream: Some(name.to_owned()),
        path: None,
        retries: upstream.retries.unwrap_or_else(|| match upstream.service_name {
            // How many addresses the name has is known with the call: another one is tried, if there is any.
            Some(_) => 1,
            None => u32::try_from(targets.len() - 1).unwrap_or(u32::MAX),
        }),
        retry_timeout_ms: milliseconds(upstream.retry_timeout.unwrap_or(0.0)),
        retry_non_idempotent: false,
        retry_statuses: Vec::new(),
        timeouts: upstream.timeout.map_or(TIMEOUTS, timeouts),
    };
    let upstream = weir_model::Upstream {
        name: name.to_owned(),
        scheme,
        algorithm,
        hash_on: match algorithm {
            BalancingAlgorithm::ConsistentHashing => hash_on(upstream),
            _ => Vec::new(),
        },
        targets,
        keepalive: upstream.keepalive_pool.map_or(KEEPALIVE, |pool| KeepalivePool {
            size: pool.size,
            idle_timeout_ms: milliseconds(pool.idle_timeout),
            requests: pool.requests,
        }),
        // The order in which APISIX's discovery asks for records is "last", SRV, A.
        srv: upstream.service_name.is_some(),
        checks: upstream.checks.as_ref().and_then(checks::translate),
        retry_budget: None,
        slow_start: None,
        zones: None,
        sticky: None,
        hedge: None,
        adaptive_concurrency: None,
    };
    Some(Translated {
        upstream: Arc::new(upstream),
        service: Arc::new(service),
    })
}

/// The `Host` for the upstream's nodes.
pub fn upstream_host(upstream: &Upstream) -> UpstreamHost {
    match (upstream.pass_host.as_str(), &upstream.upstream_host) {
        ("node", _) => UpstreamHost::Target,
        ("rewrite", Some(host)) => UpstreamHost::Fixed(host.clone()),
        _ => UpstreamHost::Client,
    }
}

/// How nodes are met over TLS. APISIX checks no certificate of theirs: `tls.verify` is for another kind of upstream
/// (Kafka), and changes nothing here.
fn tls(upstream: &Upstream) -> UpstreamTls {
    let text = |field: &str| upstream.tls.as_ref()?.get(field)?.as_str().map(str::to_owned);
    let pair = text("client_cert").zip(text("client_key"));
    match upstream.scheme.as_str() {
        "https" | "grpcs" | "tls" => UpstreamTls {
            verify: false,
            certificate: pair.map(|(certificate, key)| KeyPair { certificate, key }),
            ..UpstreamTls::default()
        },
        _ => UpstreamTls::default(),
    }
}

/// Time-outs in the model's units.
pub fn timeouts(timeout: Timeout) -> Timeouts {
    Timeouts {
        connect_ms: milliseconds(timeout.connect),
        write_ms: milliseconds(timeout.send),
        read_ms: milliseconds(timeout.read),
        total_ms: 0,
    }
}

fn milliseconds(seconds: f64) -> u64 {
    // The conversion saturates, and the shapes allow no negative numbers.
    (seconds * 1000.0).ceil() as u64
}

fn not_available(place: DocPath, what: &str) -> Diagnostic {
    Diagnostic::error(place, format!("{what} is not available in this version of Weir"))
}

/// How HTTP is spoken with an upstream's nodes; `None`: it is not.
fn scheme(
    upstream: &Upstream,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Scheme> {
    Some(match upstream.scheme.as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "grpc" => Scheme::Grpc,
        "grpcs" => Scheme::Grpcs,
        other => {
            diagnostics.push(not_available(
                place().field("scheme"),
                &format!("the upstream scheme \"{other}\""),
            ));
            return None;
        }
    })
}

fn algorithm(
    upstream: &Upstream,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> BalancingAlgorithm {
    match upstream.algorithm.as_str() {
        "roundrobin" => BalancingAlgorithm::RoundRobin,
        "chash" => BalancingAlgorithm::ConsistentHashing,
        "ewma" => BalancingAlgorithm::Ewma,
        "least_conn" => BalancingAlgorithm::LeastConnections,
        other => {
            let message = format!("no balancer is named \"{other}\"; the nodes are called in turn");
            diagnostics.push(Diagnostic::warning(place().field("type"), message));
            BalancingAlgorithm::RoundRobin
        }
    }
}

/// What is hashed; if the call has no such thing, the client's address.
fn hash_on(upstream: &Upstream) -> Vec<HashOn> {
    let key = upstream.key.clone().unwrap_or_default();
    let first = match upstream.hash_on.as_str() {
        "consumer" => Some(HashOn::Consumer),
        _ if key.is_empty() => None,
        "header" => Some(HashOn::Header(key)),
        "cookie" => Some(HashOn::Cookie {
            name: key,
            set_for_path: None,
            attributes: None,
        }),
        "vars_combinations" => Some(HashOn::Template(key)),
        _ if key == "remote_addr" => None,
        _ if key == "mqtt_client_id" => Some(HashOn::MqttClientId),
        _ => Some(HashOn::Template(format!("${{{key}}}"))),
    };
    first.into_iter().chain([HashOn::Ip]).collect()
}

fn targets(
    upstream: &Upstream,
    scheme: Scheme,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Target> {
    let standard_port = scheme.default_port();
    let named;
    let nodes = match (&upstream.nodes, &upstream.service_name) {
        (Some(nodes), _) => nodes,
        (None, Some(name)) => {
            named = discovered(name, upstream, place, diagnostics);
            &named
        }
        (None, None) => return Vec::new(),
    };
    let mut targets: Vec<Target> = nodes
        .iter()
        .map(|node| Target {
            // The model writes IPv6 addresses without brackets.
            host: node
                .host
                .strip_prefix('[')
                .and_then(|host| host.strip_suffix(']'))
                .unwrap_or(&node.host)
                .to_owned(),
            port: node.port.unwrap_or(standard_port),
            weight: u32::try_from(node.weight).unwrap_or(u32::MAX),
            priority: i32::try_from(node.priority).unwrap_or(if node.priority < 0 {
                i32::MIN
            } else {
                i32::MAX
            }),
            zone: None,
        })
        .collect();
    assign_default_weights(&mut targets, &upstream.algorithm, upstream.checks.is_some());
    targets
}

/// Weight 0 means no calls in the model. In APISIX it means none beside nodes of weight:
/// - A node that is alone is called whatever its weight.
/// - Where no node of a priority has weight, all of them are called in turn.
/// - Where checks find every node of weight unhealthy, those without take over, before any lower priority. With
///   `least_conn` a node of weight that failed the call is enough, and no checks are needed.
///
/// `chash` gives nodes without weight no place on its ring, so that they are never called.
fn assign_default_weights(targets: &mut [Target], algorithm: &str, has_checks: bool) {
    if let [only] = targets {
        only.weight = only.weight.max(1);
        return;
    }
    if algorithm == "chash" || targets.iter().all(|target| target.weight > 0) {
        return;
    }
    let weighted: BTreeSet<i32> = targets
        .iter()
        .filter(|target| target.weight > 0)
        .map(|target| target.priority)
        .collect();
    let mut priorities: Vec<i32> = targets.iter().map(|target| target.priority).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    let is_last_resort = has_checks || algorithm == "least_conn";
    for target in targets {
        let has_rivals = weighted.contains(&target.priority);
        let is_weightless = target.weight == 0;
        if is_weightless && (!has_rivals || is_last_resort) {
            target.weight = 1;
        }
        if is_last_resort {
            // Each priority becomes two: after the nodes of weight come those without.
            let rank = priorities.partition_point(|priority| *priority > target.priority);
            let rank = i32::try_from(2 * rank + usize::from(is_weightless && has_rivals));
            target.priority = -rank.unwrap_or(i32::MAX);
        }
    }
}

/// A name that is looked up. Only DNS is available, which the model's targets know by themselves.
fn discovered(
    name: &str,
    upstream: &Upstream,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Node> {
    let kind = upstream.discovery_type.as_deref().unwrap_or_default();
    if kind != "dns" {
        let what = format!("the service discovery \"{kind}\"");
        diagnostics.push(not_available(place().field("discovery_type"), &what));
        return Vec::new();
    }
    let (host, port) = crate::document::split_port(name);
    vec![Node {
        host: host.to_owned(),
        port,
        weight: 1,
        priority: 0,
    }]
}
