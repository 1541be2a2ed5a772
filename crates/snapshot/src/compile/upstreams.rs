//! Upstreams with their targets and balancers, and how services lead to them.

use super::health;
use super::url::{check_host, check_path, parse_url};
use crate::carry::Carry;
use crate::health::Checks;
use crate::tls::ClientTls;
use crate::upstream::{HashSource, Target, Upstream, UpstreamBudget};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_flow::balancer::{self, Balancer, TargetSpec};
use weir_flow::hash_bytes;
use weir_flow::retry_budget::BudgetRules;
use weir_model::{self as model, Algorithm, Diagnostic, DocPath, HashOn, Model, Scheme, Service};
use weir_plugin::{Template, headers};

/// How services are reached.
pub(super) struct Services<'m>(HashMap<&'m str, CompiledService<'m>>);

/// How one service is reached.
pub(super) struct CompiledService<'m> {
    pub service: &'m Service,
    /// Its name, shared by all that carry it.
    pub name: Arc<str>,
    /// Position in the snapshot's upstreams.
    pub upstream: u32,
    /// The path put before those of calls.
    pub path: Option<&'m str>,
    /// How its targets are met over TLS, where they are.
    pub tls: Option<Arc<ClientTls>>,
}

impl<'m> Services<'m> {
    /// Compiles all services and upstreams of the model.
    pub(super) fn compile(
        model: &'m Model,
        carry: &Carry,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> (Self, Vec<Upstream>) {
        let mut compiler = Compiler {
            carry,
            diagnostics,
            upstreams: Vec::with_capacity(model.upstreams.len()),
            by_origin: HashMap::new(),
        };
        let mut by_name = HashMap::with_capacity(model.upstreams.len());
        for (index, upstream) in model.upstreams.iter().enumerate() {
            compiler.check(index, upstream);
            by_name.insert(upstream.name.as_str(), index as u32);
            let mut compiled = compiler.upstream(upstream);
            compiled.checks = compiler.checks(index, upstream);
            compiler.upstreams.push(compiled);
        }
        compiler
            .diagnostics
            .extend(health::check_sharing(&model.upstreams));
        let mut services = HashMap::with_capacity(model.services.len());
        for (index, service) in model.services.iter().enumerate() {
            let Some((upstream, path)) = compiler.destination(index, service, &by_name) else {
                continue;
            };
            let compiled = CompiledService {
                service,
                name: service.name.as_str().into(),
                upstream,
                path: path.filter(|path| *path != "/"),
                tls: compiler.tls(index, service, upstream),
            };
            services.insert(service.name.as_str(), compiled);
        }
        (Self(services), compiler.upstreams)
    }

    /// The service of this name; `None` where there is none or it is broken, which has been reported.
    pub(super) fn get(&self, name: &str) -> Option<&CompiledService<'m>> {
        self.0.get(name)
    }
}

/// The scheme, host and port of a server, and whether its name is looked up as SRV records first.
type Origin<'m> = (Scheme, &'m str, u16, bool);

struct Compiler<'c, 'm> {
    carry: &'c Carry,
    diagnostics: &'c mut Vec<Diagnostic>,
    upstreams: Vec<Upstream>,
    /// Upstreams of services with a `url`: services of one server share it and its connections.
    by_origin: HashMap<Origin<'m>, u32>,
}

impl<'m> Compiler<'_, 'm> {
    /// The upstream of a service, and its path.
    fn destination(
        &mut self,
        index: usize,
        service: &'m Service,
        by_name: &HashMap<&str, u32>,
    ) -> Option<(u32, Option<&'m str>)> {
        let place = || DocPath::root().field("services").index(index);
        if let Some(Err(message)) = service.path.as_deref().map(check_path) {
            self.diagnostics
                .push(Diagnostic::error(place().field("path"), message));
        }
        if let Some(upstream) = &service.upstream {
            let upstream = by_name.get(upstream.as_str())?;
            return Some((*upstream, service.path.as_deref()));
        }
        let url = match parse_url(service.url.as_deref()?) {
            Ok(url) => url,
            Err(message) => {
                self.diagnostics
                    .push(Diagnostic::error(place().field("url"), message));
                return None;
            }
        };
        if service.path.is_some() {
            let message = "expected no path beside a url, which has its own";
            self.diagnostics
                .push(Diagnostic::error(place().field("path"), message));
        }
        let origin = (url.scheme, url.host, url.port, service.srv);
        let known = self.by_origin.get(&origin).copied();
        Some((known.unwrap_or_else(|| self.server(origin)), url.path))
    }

    /// How the targets of a service are met over TLS; `None`: they are met in the clear.
    fn tls(&mut self, index: usize, service: &Service, upstream: u32) -> Option<Arc<ClientTls>> {
        if !self.upstreams[upstream as usize].scheme.is_tls() {
            return None;
        }
        let place = DocPath::root().field("services").index(index).field("tls");
        let build = |id| ClientTls::compile(&service.tls, &place, self.carry, id);
        match self.carry.client(&service.tls, build) {
            Ok(tls) => Some(tls),
            Err(found) => {
                self.diagnostics.push(found);
                None
            }
        }
    }

    /// The upstream of a single server.
    fn server(&mut self, origin: Origin<'m>) -> u32 {
        let (scheme, host, port, srv) = origin;
        let word = scheme.as_str();
        let compiled = self.upstream(&model::Upstream {
            name: format!("{word}://{}:{port}", bracketed(host)),
            scheme,
            algorithm: Algorithm::default(),
            hash_on: Vec::new(),
            targets: vec![model::Target {
                host: host.to_owned(),
                port,
                weight: 1,
                priority: 0,
            }],
            keepalive: Default::default(),
            srv,
            checks: None,
            retry_budget: None,
        });
        let index = self.upstreams.len() as u32;
        self.upstreams.push(compiled);
        self.by_origin.insert(origin, index);
        index
    }

    /// How the health of the upstream's targets is found out.
    fn checks(&mut self, index: usize, upstream: &model::Upstream) -> Option<Arc<Checks>> {
        let checks = upstream.checks.as_ref()?;
        let place = DocPath::root().field("upstreams").index(index).field("checks");
        health::check(checks, &place, self.diagnostics);
        match health::compile(checks, &place, self.carry) {
            Ok(compiled) => Some(Arc::new(compiled)),
            Err(found) => {
                self.diagnostics.push(found);
                None
            }
        }
    }

    fn check(&mut self, index: usize, upstream: &model::Upstream) {
        let here = || DocPath::root().field("upstreams").index(index);
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
            Algorithm::RoundRobin => balancer::Algorithm::RoundRobin,
            Algorithm::ConsistentHashing => balancer::Algorithm::ConsistentHash,
            Algorithm::LeastConnections => balancer::Algorithm::LeastConnections,
            Algorithm::Ewma => balancer::Algorithm::Ewma,
        };
        let wants_hash = algorithm == balancer::Algorithm::ConsistentHash;
        let hash_on = upstream.hash_on.iter().filter(|_| wants_hash);
        Upstream {
            name: upstream.name.clone(),
            scheme: upstream.scheme,
            targets,
            balancer: Balancer::new(&specs, algorithm, hash_bytes(upstream.name.as_bytes())),
            hash_on: hash_on.map(hash_source).collect(),
            keepalive: upstream.keepalive,
            srv: upstream.srv,
            checks: None,
            retry_budget: upstream.retry_budget.map(|budget| UpstreamBudget {
                rules: BudgetRules {
                    percent: budget.percent,
                    burst: budget.burst,
                },
                left: self.carry.budget(&upstream.name),
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
            state: self.carry.target(&upstream.name, id),
            health: upstream.checks.as_ref().map(|checks| {
                let owner = checks.shared_with.as_ref().unwrap_or(&upstream.name);
                self.carry.health(owner, id, address)
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
fn bracketed(host: &str) -> Cow<'_, str> {
    if host.contains(':') {
        format!("[{host}]").into()
    } else {
        host.into()
    }
}

/// Whether a cookie that the gateway may set can stand in `Set-Cookie` (RFC 6265, section 4.1.1); the field that
/// cannot, and why.
fn check_cookie(source: &HashOn) -> Result<(), (&'static str, String)> {
    let HashOn::Cookie { name, set_for_path } = source else {
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
            Err(("set_for_path", message))
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
        HashOn::Cookie { name, set_for_path } => HashSource::Cookie {
            name: bytes(name),
            set_for_path: set_for_path.clone(),
        },
        HashOn::Template(text) => HashSource::Template(Template::parse(text)),
    }
}
