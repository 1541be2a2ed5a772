//! Upstreams with their targets and balancers.

use super::cache::{CachedItem, CompileCache};
use super::health;
use super::traffic;
use super::url::check_host;
use crate::health::Checks;
use crate::persistent_state::PersistentState;
use crate::upstream::{HashSource, Target, Upstream, UpstreamBudget};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_flow::balancer::{self, Balancer, TargetSpec};
use weir_flow::hash_bytes;
use weir_flow::retry_budget::BudgetRules;
use weir_model::{self as model, BalancingAlgorithm, Diagnostic, DocPath, HashOn, Scheme};
use weir_plugin::{Template, headers};

/// The scheme, host and port of a server, and whether its name is looked up as SRV records first.
pub(super) type Origin<'m> = (Scheme, &'m str, u16, bool);

/// Compiles upstreams and services.
pub(super) struct Compiler<'c> {
    pub persistent: &'c PersistentState,
    pub diagnostics: &'c mut Vec<Diagnostic>,
    /// Which compile this is.
    pub round: u64,
}

impl Compiler<'_> {
    /// An upstream of the model.
    pub(super) fn own(
        &mut self,
        index: usize,
        upstream: &Arc<model::Upstream>,
        cache: &mut CompileCache,
    ) -> Arc<Upstream> {
        if let Some(known) = CachedItem::find(&mut cache.upstreams, upstream, self.round, |_| true) {
            return known;
        }
        let found_before = self.diagnostics.len();
        self.check(index, upstream);
        let mut compiled = self.upstream(upstream);
        compiled.checks = self.checks(index, upstream);
        let compiled = Arc::new(compiled);
        if self.diagnostics.len() == found_before {
            CachedItem::note(&mut cache.upstreams, upstream, &compiled, self.round);
        }
        compiled
    }

    /// The upstream of a single server.
    pub(super) fn server(&self, name: &str, origin: Origin<'_>, cache: &mut CompileCache) -> Arc<Upstream> {
        if let Some((known, used)) = cache.servers.get_mut(name) {
            *used = self.round;
            return Arc::clone(known);
        }
        let (scheme, host, port, srv) = origin;
        let word = scheme.as_str();
        let compiled = Arc::new(self.upstream(&model::Upstream {
            name: format!("{word}://{}:{port}", bracketed(host)),
            scheme,
            algorithm: BalancingAlgorithm::default(),
            hash_on: Vec::new(),
            targets: vec![model::Target {
                host: host.to_owned(),
                port,
                weight: 1,
                priority: 0,
                zone: None,
            }],
            keepalive: Default::default(),
            srv,
            checks: None,
            retry_budget: None,
            slow_start: None,
            zones: None,
            sticky: None,
            hedge: None,
            adaptive_concurrency: None,
        }));
        let known = (Arc::clone(&compiled), self.round);
        cache.servers.insert(name.into(), known);
        compiled
    }

    /// How the health of the upstream's targets is found out.
    fn checks(&mut self, index: usize, upstream: &model::Upstream) -> Option<Arc<Checks>> {
        let checks = upstream.checks.as_ref()?;
        let place = DocPath::root().field("upstreams").index(index).field("checks");
        health::check(checks, &place, self.diagnostics);
        match health::compile(checks, &place, self.persistent) {
            Ok(compiled) => Some(Arc::new(compiled)),
            Err(found) => {
                self.diagnostics.push(found);
                None
            }
        }
    }

    fn check(&mut self, index: usize, upstream: &model::Upstream) {
        let here = || DocPath::root().field("upstreams").index(index);
        traffic::check(upstream, &here(), self.diagnostics);
        if let Some(budget) = &upstream.retry_budget
            && budget.percent > 100
        {
            let message = format!("expected a percentage up to 100, found {}", budget.percent);
            let place = here().field("retry_budget").field("percent");
            self.diagnostics.push(Diagnostic::error(place, message));
        }
        for (position, source) in upstream.hash_on.iter().enumerate() {
            if let Err((field, message)) = check_cookie(source) {
                let place = here()
                    .field("hash_on")
                    .index(position)
                    .field("cookie")
                    .field(field);
                self.diagnostics.push(Diagnostic::error(place, message));
            }
        }
        for (position, target) in upstream.targets.iter().enumerate() {
            let place = || here().field("targets").index(position);
            if let Err(message) = check_host(without_brackets(&target.host)) {
                self.diagnostics
                    .push(Diagnostic::error(place().field("host"), message));
            }
            if target.port == 0 {
                let message = "expected a port from 1 to 65535, found 0";
                self.diagnostics
                    .push(Diagnostic::error(place().field("port"), message));
            }
        }
    }

    fn upstream(&self, upstream: &model::Upstream) -> Upstream {
        let specs: Vec<_> = upstream
            .targets
            .iter()
            .map(|target| TargetSpec {
                id: target_id(target),
                weight: target.weight,
                priority: target.priority,
            })
            .collect();
        let targets = upstream.targets.iter().zip(&specs);
        let targets = targets.map(|(target, spec)| self.target(upstream, target, &spec.id));
        let targets: Vec<_> = targets.collect();
        let algorithm = match upstream.algorithm {
            BalancingAlgorithm::RoundRobin => balancer::BalancingAlgorithm::RoundRobin,
            BalancingAlgorithm::ConsistentHashing => balancer::BalancingAlgorithm::ConsistentHash,
            BalancingAlgorithm::LeastConnections => balancer::BalancingAlgorithm::LeastConnections,
            BalancingAlgorithm::Ewma => balancer::BalancingAlgorithm::Ewma,
        };
        let wants_hash = algorithm == balancer::BalancingAlgorithm::ConsistentHash;
        let hash_on = upstream.hash_on.iter().filter(|_| wants_hash);
        let balancer = Balancer::new(&specs, algorithm, hash_bytes(upstream.name.as_bytes()));
        Upstream {
            name: upstream.name.clone(),
            scheme: upstream.scheme,
            targets,
            balancer: traffic::balancer(upstream, balancer, self.persistent.zone()),
            traffic: traffic::compile(upstream, &specs, self.persistent),
            hash_on: hash_on.map(hash_source).collect(),
            keepalive: upstream.keepalive,
            srv: upstream.srv,
            checks: None,
            retry_budget: upstream.retry_budget.map(|budget| UpstreamBudget {
                rules: BudgetRules {
                    percent: budget.percent,
                    burst: budget.burst,
                },
                left: self.persistent.budget(&upstream.name),
            }),
        }
    }

    fn target(&self, upstream: &model::Upstream, target: &model::Target, id: &str) -> Target {
        let host = without_brackets(&target.host);
        let address = host.parse::<IpAddr>().ok();
        let address = address.map(|address| SocketAddr::new(address, target.port));
        let host_header = if target.port == upstream.scheme.default_port() {
            bracketed(host).into_owned()
        } else {
            id.to_owned()
        };
        Target {
            host: host.to_owned(),
            port: target.port,
            weight: target.weight,
            address,
            host_header: host_header.into_bytes(),
            state: self.persistent.target(&upstream.name, id),
            health: upstream.checks.as_ref().map(|checks| {
                let owner = checks.shared_with.as_ref().unwrap_or(&upstream.name);
                self.persistent.health(owner, id, address)
            }),
        }
    }
}

/// What a target is known by over reloads and on the ring of consistent hashing.
fn target_id(target: &model::Target) -> String {
    format!("{}:{}", bracketed(without_brackets(&target.host)), target.port)
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// The host as it stands before a port: IPv6 addresses in brackets.
pub(super) fn bracketed(host: &str) -> Cow<'_, str> {
    if host.contains(':') {
        format!("[{host}]").into()
    } else {
        host.into()
    }
}

/// Whether a cookie that the gateway may set can stand in `Set-Cookie` (RFC 6265, section 4.1.1); the field that
/// cannot, and why.
fn check_cookie(source: &HashOn) -> Result<(), (&'static str, String)> {
    let HashOn::Cookie {
        name,
        set_for_path,
        attributes,
    } = source
    else {
        return Ok(());
    };
    if !headers::is_name(name.as_bytes()) {
        let message = format!("expected the name of a cookie, found '{}'", name.escape_debug());
        return Err(("name", message));
    }
    match set_for_path {
        Some(path) if path.contains(|it: char| it == ';' || it.is_control()) => {
            let message = format!(
                "expected a path without ';' and control characters, found '{}'",
                path.escape_debug()
            );
            return Err(("set_for_path", message));
        }
        _ => {}
    }
    match attributes {
        Some(text) if text.is_empty() || text.contains(char::is_control) => {
            Err(("attributes", "expected attributes of a cookie".to_owned()))
        }
        _ => Ok(()),
    }
}

fn hash_source(source: &HashOn) -> HashSource {
    let bytes = |text: &String| text.as_bytes().to_vec();
    match source {
        HashOn::Consumer => HashSource::Consumer,
        HashOn::Ip => HashSource::Ip,
        HashOn::Path => HashSource::Path,
        HashOn::Header(name) => HashSource::Header(bytes(name)),
        HashOn::QueryArg(name) => HashSource::QueryArg(bytes(name)),
        HashOn::Capture(name) => HashSource::Capture(name.clone()),
        HashOn::Cookie {
            name,
            set_for_path,
            attributes,
        } => HashSource::Cookie {
            name: bytes(name),
            set_for_path: set_for_path.clone(),
            attributes: attributes.clone().unwrap_or_else(|| "HttpOnly".to_owned()),
        },
        HashOn::Template(text) => HashSource::Template(Template::parse(text)),
        HashOn::MqttClientId => HashSource::MqttClientId,
    }
}
