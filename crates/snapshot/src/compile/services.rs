//! How services lead to upstreams: to one of the model, or to a server that they name by `url`.

use super::cache::{CachedItem, CompileCache, Map};
use super::compiled::CompiledService;
use super::health;
use super::traffic;
use super::upstreams::{Compiler, Origin, bracketed};
use super::url::{check_path, parse_url};
use crate::persistent_state::PersistentState;
use crate::tls::ClientTls;
use crate::upstream::Upstream;
use std::collections::HashSet;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Model, Scheme, Service};

/// How services are reached.
pub(super) struct Services<'m>(Map<&'m str, Arc<CompiledService>>);

impl<'m> Services<'m> {
    /// Compiles all services and upstreams of the model, but for what is known in `cache`.
    pub(super) fn compile(
        model: &'m Model,
        persistent: &PersistentState,
        cache: &mut CompileCache,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> (Self, Vec<Arc<Upstream>>) {
        let mut compiler = Compiler {
            persistent,
            diagnostics,
            round: cache.round(),
        };
        let destinations: Vec<_> = (model.services.iter().enumerate())
            .map(|(index, service)| compiler.destination(index, service))
            .collect();
        let servers = servers(&destinations);
        let names: Vec<&str> = (model.upstreams.iter().map(|it| it.name.as_str()))
            .chain(servers.iter().map(|(name, _)| name.as_str()))
            .collect();
        let stable_indices = cache.stable_indices(&names);
        let mut upstreams: Vec<Option<Arc<Upstream>>> = vec![None; names.len()];
        for ((index, upstream), place) in model.upstreams.iter().enumerate().zip(&stable_indices) {
            upstreams[*place as usize] = Some(compiler.own(index, upstream, cache));
        }
        compiler
            .diagnostics
            .extend(health::check_sharing(&model.upstreams));
        for ((name, origin), place) in servers.iter().zip(&stable_indices[model.upstreams.len()..]) {
            upstreams[*place as usize] = Some(compiler.server(name, *origin, cache));
        }
        let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().flatten().collect();
        let by_name: Map<&str, u32> = names.iter().copied().zip(stable_indices).collect();
        let mut services = Map::with_capacity_and_hasher(model.services.len(), Default::default());
        for ((index, service), destination) in model.services.iter().enumerate().zip(destinations) {
            let upstream = destination.and_then(|it| by_name.get(it.name()).map(|place| (*place, it.path())));
            if let Some((place, path)) = upstream {
                let at = (place, upstreams[place as usize].scheme);
                let compiled = compiler.service((index, service), at, path, cache);
                services.insert(service.name.as_str(), compiled);
            }
        }
        (Self(services), upstreams)
    }

    /// The service of this name; `None` if there is none or it is broken, which has been reported.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<CompiledService>> {
        self.0.get(name)
    }
}

/// Where a service leads.
enum Destination<'m> {
    /// To an upstream of the model, by its name.
    Upstream(&'m str, Option<&'m str>),
    /// To a server, with the name of its upstream. Services of one server share it and its connections.
    Server(String, Origin<'m>, Option<&'m str>),
}

impl<'m> Destination<'m> {
    /// What the upstream is known by.
    fn name(&self) -> &str {
        match self {
            Self::Upstream(name, _) => name,
            Self::Server(name, ..) => name,
        }
    }

    fn path(&self) -> Option<&'m str> {
        match self {
            Self::Upstream(_, path) | Self::Server(_, _, path) => *path,
        }
    }
}

/// The servers to which services lead, each once.
fn servers<'m>(destinations: &[Option<Destination<'m>>]) -> Vec<(String, Origin<'m>)> {
    let mut known: HashSet<&str, foldhash::fast::RandomState> = HashSet::default();
    let mut servers = Vec::new();
    for destination in destinations.iter().flatten() {
        if let Destination::Server(name, origin, _) = destination
            && known.insert(name)
        {
            servers.push((name.clone(), *origin));
        }
    }
    servers
}

/// What a server's upstream is known by. No upstream of a model has such a name: theirs hold no control characters.
fn server_name((scheme, host, port, srv): Origin<'_>) -> String {
    let kind = if srv { "srv" } else { "host" };
    format!("{kind}\u{0}{}://{}:{port}", scheme.as_str(), bracketed(host))
}

impl Compiler<'_> {
    /// Where a service leads, and its path.
    fn destination<'m>(&mut self, index: usize, service: &'m Service) -> Option<Destination<'m>> {
        let place = || DocPath::root().field("services").index(index);
        traffic::check_retry_statuses(service, &place, self.diagnostics);
        if let Some(Err(message)) = service.path.as_deref().map(check_path) {
            self.diagnostics
                .push(Diagnostic::error(place().field("path"), message));
        }
        if let Some(upstream) = &service.upstream {
            return Some(Destination::Upstream(upstream, service.path.as_deref()));
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
            let message = "expected no path together with a url, which has its own";
            self.diagnostics
                .push(Diagnostic::error(place().field("path"), message));
        }
        let origin = (url.scheme, url.host, url.port, service.srv);
        Some(Destination::Server(server_name(origin), origin, url.path))
    }

    /// A service whose upstream, of this scheme, stands at `upstream`.
    fn service(
        &mut self,
        (index, service): (usize, &Arc<Service>),
        (upstream, scheme): (u32, Scheme),
        path: Option<&str>,
        cache: &mut CompileCache,
    ) -> Arc<CompiledService> {
        let is_tls = scheme.is_tls();
        let holds = |known: &CompiledService| known.upstream == upstream && known.scheme == scheme;
        if let Some(known) = CachedItem::find(&mut cache.services, service, self.round, holds) {
            return known;
        }
        let tls = is_tls.then(|| self.tls(index, service)).flatten();
        let is_good = tls.is_some() == is_tls;
        let compiled = Arc::new(CompiledService {
            service: Arc::clone(service),
            name: service.name.as_str().into(),
            scheme,
            upstream,
            path: path.filter(|path| *path != "/").map(str::to_owned),
            tls,
            retry_statuses: service.retry_statuses.as_slice().into(),
        });
        if is_good {
            CachedItem::note(&mut cache.services, service, &compiled, self.round);
        }
        compiled
    }

    /// How the targets of a service are met over TLS.
    fn tls(&mut self, index: usize, service: &Service) -> Option<Arc<ClientTls>> {
        let place = DocPath::root().field("services").index(index).field("tls");
        let build = |id| ClientTls::compile(&service.tls, &place, self.persistent.roots(), id);
        match self.persistent.client(&service.tls, build) {
            Ok(tls) => Some(tls),
            Err(found) => {
                self.diagnostics.push(found);
                None
            }
        }
    }
}
