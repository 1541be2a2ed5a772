//! Services, and the upstreams whose names are their hosts.

use super::certificate::Certificates;
use super::health;
use crate::document::{Document, Entity, Service, Target, Upstream};
use crate::schema::{ItemLocation, text};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;
use weir_model::{
    BalancingAlgorithm, Diagnostic, HashOn, HealthChecks, KeepalivePool, Scheme, Timeouts, UpstreamTls,
};

/// The port of targets that name none.
const TARGET_PORT: u16 = 8000;

/// The facts about a service that routes need.
pub struct ServiceInfo<'d> {
    /// The service as written.
    pub service: &'d Service,
    /// Its name in the model; `None`: its protocol is not served.
    pub name: Option<String>,
    /// It takes sessions of stream routes rather than calls.
    pub is_stream: bool,
    /// The upstream of which it is one, if its host is the name of one.
    pub upstream: Option<&'d Upstream>,
}

impl<'d> ServiceInfo<'d> {
    /// The facts about a service, whose host is the name of `upstream`, if there is one.
    pub fn of(service: &'d Service, upstream: Option<&'d Upstream>) -> Self {
        Self {
            service,
            name: scheme(service).map(|_| name(service)),
            is_stream: scheme(service).is_some_and(Scheme::is_stream),
            upstream,
        }
    }
}

/// The scheme in which a service is met; `None`: it is disabled, or its protocol is not served.
fn scheme(service: &Service) -> Option<Scheme> {
    match service.protocol.as_str() {
        _ if !service.enabled => None,
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        "grpc" => Some(Scheme::Grpc),
        "grpcs" => Some(Scheme::Grpcs),
        // What passes through is under TLS of its own.
        "tcp" | "tls_passthrough" => Some(Scheme::Tcp),
        "tls" => Some(Scheme::Tls),
        "udp" => Some(Scheme::Udp),
        _ => None,
    }
}

/// The schemes of upstreams; those for datagrams are the same as for connections.
const SCHEMES: [Scheme; 6] = [
    Scheme::Http,
    Scheme::Https,
    Scheme::Grpc,
    Scheme::Grpcs,
    Scheme::Tcp,
    Scheme::Tls,
];

/// The scheme of the upstream of a service of this scheme.
fn of_upstream(scheme: Scheme) -> Scheme {
    match scheme {
        Scheme::Udp => Scheme::Tcp,
        scheme => scheme,
    }
}

/// The services of a document by id, and what became of them.
pub struct Services<'d> {
    certificates: Certificates<'d>,
    by_id: HashMap<Uuid, ServiceInfo<'d>>,
    /// In the document's order.
    pub services: Vec<Arc<weir_model::Service>>,
    /// In the document's order; those that are used over several protocols are there for each.
    pub upstreams: Vec<Arc<weir_model::Upstream>>,
}

impl<'d> Services<'d> {
    /// Translates services and upstreams. Disabled services are left out, as if they were not written.
    pub fn translate(document: &'d Document, found: &mut Vec<Diagnostic>) -> Self {
        let by_name: HashMap<&str, &'d Upstream> = document
            .upstreams
            .iter()
            .map(|upstream| (upstream.value.name.as_str(), &upstream.value))
            .collect();
        let mut services = Self {
            certificates: Certificates::of(document),
            by_id: HashMap::new(),
            services: Vec::new(),
            upstreams: Vec::new(),
        };
        let mut used: HashSet<(Scheme, &str)> = HashSet::new();
        for Entity { place, value } in &document.services {
            let upstream = by_name.get(value.host.as_str()).copied();
            if let (Some(scheme), Some(upstream)) = (services.add(value, upstream, place, found), upstream) {
                used.insert((of_upstream(scheme), &upstream.name));
            }
        }
        let targets = targets_by_upstream(document);
        for Entity { value: upstream, .. } in &document.upstreams {
            let targets = targets.get(&upstream.id).map_or(&[][..], Vec::as_slice);
            for scheme in SCHEMES {
                if scheme == Scheme::Http || used.contains(&(scheme, upstream.name.as_str())) {
                    let upstream = translate_upstream(upstream, scheme, targets);
                    services.upstreams.push(Arc::new(upstream));
                }
            }
        }
        services
    }

    /// Adds a service; its scheme, if it is served.
    fn add(
        &mut self,
        service: &'d Service,
        upstream: Option<&'d Upstream>,
        place: &ItemLocation,
        found: &mut Vec<Diagnostic>,
    ) -> Option<Scheme> {
        let scheme = scheme(service);
        if scheme.is_none() && service.enabled {
            let protocol = &service.protocol;
            let message = format!("services of protocol '{protocol}' are not served by this version of Weir");
            found.push(Diagnostic::dropped(place.to_path(), message));
        }
        if let Some(scheme) = scheme {
            self.services.push(Arc::new(weir_model::Service {
                tls: match scheme.is_tls() {
                    false => UpstreamTls::default(),
                    true => self.certificates.upstream_tls(service, upstream),
                },
                ..translate_service(service, scheme, upstream)
            }));
        }
        self.by_id.insert(service.id, ServiceInfo::of(service, upstream));
        scheme
    }

    /// The service with this id; services that routes refer to exist.
    pub fn get(&self, id: Uuid) -> Option<&ServiceInfo<'d>> {
        self.by_id.get(&id)
    }
}

pub(super) fn name(service: &Service) -> String {
    service.name.clone().unwrap_or_else(|| service.id.to_string())
}

fn upstream_name(name: &str, scheme: Scheme) -> String {
    match scheme {
        Scheme::Http | Scheme::H2c => name.to_owned(),
        Scheme::Https | Scheme::H2 => format!("{name} over TLS"),
        Scheme::Grpc => format!("{name} for gRPC"),
        Scheme::Grpcs => format!("{name} for gRPC over TLS"),
        Scheme::Tcp | Scheme::Udp => format!("{name} for streams"),
        Scheme::Tls => format!("{name} for streams over TLS"),
    }
}

fn translate_service(service: &Service, scheme: Scheme, upstream: Option<&Upstream>) -> weir_model::Service {
    let is_bare_ipv6 = service.host.contains(':') && !service.host.starts_with('[');
    let host = if is_bare_ipv6 {
        format!("[{}]", service.host)
    } else {
        service.host.clone()
    };
    let standard = Timeouts::default();
    weir_model::Service {
        name: name(service),
        tls: UpstreamTls::default(),
        url: upstream
            .is_none()
            .then(|| format!("{}://{host}:{}", scheme.as_str(), service.port)),
        // The order in which Kong asks for records is LAST, SRV, A.
        srv: upstream.is_none() && is_name(&service.host),
        upstream: upstream.map(|upstream| upstream_name(&upstream.name, of_upstream(scheme))),
        path: None,
        retries: service.retries.unwrap_or(5),
        retry_timeout_ms: 0,
        retry_non_idempotent: false,
        retry_statuses: Vec::new(),
        timeouts: Timeouts {
            connect_ms: service.connect_timeout.unwrap_or(60_000),
            write_ms: service.write_timeout.unwrap_or(standard.write_ms),
            read_ms: service.read_timeout.unwrap_or(standard.read_ms),
            total_ms: 0,
        },
    }
}

/// Whether a host has to be looked up.
fn is_name(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_err()
}

fn target_host(target: &str) -> &str {
    text::split_port(target).map_or(target, |(host, _)| host)
}

fn targets_by_upstream(document: &Document) -> HashMap<Uuid, Vec<&Target>> {
    let mut targets: HashMap<Uuid, Vec<&Target>> = HashMap::new();
    for target in &document.targets {
        targets
            .entry(target.value.upstream)
            .or_default()
            .push(&target.value);
    }
    targets
}

fn translate_upstream(upstream: &Upstream, scheme: Scheme, targets: &[&Target]) -> weir_model::Upstream {
    let hash_on = hash_inputs(upstream);
    weir_model::Upstream {
        name: upstream_name(&upstream.name, scheme),
        scheme,
        algorithm: match upstream.algorithm.as_str() {
            "least-connections" => BalancingAlgorithm::LeastConnections,
            "latency" => BalancingAlgorithm::Ewma,
            "consistent-hashing" if !hash_on.is_empty() => BalancingAlgorithm::ConsistentHashing,
            _ => BalancingAlgorithm::RoundRobin,
        },
        hash_on,
        targets: targets
            .iter()
            .map(|target| {
                let (host, port) = text::split_port(&target.target).unwrap_or((&target.target, None));
                weir_model::Target {
                    host: host.trim_matches(['[', ']']).to_owned(),
                    port: port.unwrap_or(TARGET_PORT),
                    weight: target.weight,
                    priority: 0,
                    zone: None,
                }
            })
            .collect(),
        keepalive: KeepalivePool::default(),
        srv: targets.iter().any(|target| is_name(target_host(&target.target))),
        checks: health::checks(upstream).map(|checks| HealthChecks {
            // Kong has one set of states for an upstream, however its services call it.
            shared_with: (scheme != Scheme::Http).then(|| upstream.name.clone()),
            ..checks
        }),
        retry_budget: None,
        slow_start: None,
        zones: None,
        sticky: None,
        hedge: None,
        adaptive_concurrency: None,
    }
}

fn hash_inputs(upstream: &Upstream) -> Vec<HashOn> {
    let cookie = || {
        Some(HashOn::Cookie {
            name: upstream.hash_on_cookie.clone()?,
            set_for_path: upstream.hash_on_cookie_path.clone(),
            // The original writes the first of them like this, so browsers pass it by.
            attributes: Some("Same-Site=Lax; HttpOnly".to_owned()),
        })
    };
    let first = hash_input(
        &upstream.hash_on,
        &upstream.hash_on_header,
        &upstream.hash_on_query_arg,
        &upstream.hash_on_uri_capture,
        cookie,
    );
    let second = hash_input(
        &upstream.hash_fallback,
        &upstream.hash_fallback_header,
        &upstream.hash_fallback_query_arg,
        &upstream.hash_fallback_uri_capture,
        cookie,
    );
    first.into_iter().chain(second).collect()
}

fn hash_input(
    input: &str,
    header: &Option<String>,
    query_arg: &Option<String>,
    capture: &Option<String>,
    cookie: impl Fn() -> Option<HashOn>,
) -> Option<HashOn> {
    match input {
        "consumer" => Some(HashOn::Consumer),
        "ip" => Some(HashOn::Ip),
        "path" => Some(HashOn::Path),
        "header" => header.clone().map(HashOn::Header),
        "query_arg" => query_arg.clone().map(HashOn::QueryArg),
        "uri_capture" => capture.clone().map(HashOn::Capture),
        "cookie" => cookie(),
        _ => None,
    }
}
