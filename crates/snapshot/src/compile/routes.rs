//! Routes beside their matches and chains, which have compilers of their own.

use super::cache::{CachedItem, CompileCache};
use super::chains::Chains;
use super::compiled::{CompiledRoute, CompiledService, RecentValues};
use super::services::Services;
use super::traffic;
use super::url::{check_host_header, check_path};
use crate::route::{Action, Forward, ForwardedHeaderPolicy, GatewayHeader, Route, RouteRules};
use std::sync::Arc;
use weir_model::{
    self as model, Diagnostic, DocPath, GatewayHeaderValue, PathJoin, PathRewrite, RouteTarget, UpstreamHost,
};
use weir_plugin::{RouteInfo, headers};

/// Compiles routes; equal parts of routes near each other are shared.
pub(super) struct RouteCompiler<'c, 'm> {
    services: &'c Services<'m>,
    diagnostics: &'c mut Vec<Diagnostic>,
    cache: &'c mut CompileCache,
    no_service: Arc<str>,
    /// Not kept for the next compile: rules hold clients of TLS.
    rules: RecentValues<RouteRules, Arc<RouteRules>>,
}

impl<'c, 'm> RouteCompiler<'c, 'm> {
    pub(super) fn new(
        services: &'c Services<'m>,
        cache: &'c mut CompileCache,
        diagnostics: &'c mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            services,
            diagnostics,
            cache,
            no_service: Arc::default(),
            rules: RecentValues::default(),
        }
    }

    /// The route at `index` of the model: as it is known, or compiled.
    pub(super) fn route(
        &mut self,
        index: usize,
        route: &'m Arc<model::Route>,
        chains: &mut Chains<'m>,
    ) -> Arc<Route> {
        let service = match &route.target {
            RouteTarget::Service(name) => self.services.get(name),
            RouteTarget::Respond(_) => None,
        };
        let round = self.cache.round();
        let known = CachedItem::find(&mut self.cache.routes, route, round, |known| {
            known.service.as_ref().map(Arc::as_ptr) == service.map(Arc::as_ptr)
        });
        if let Some(known) = known {
            return Arc::clone(&known.route);
        }
        let found_before = (self.diagnostics.len(), chains.findings());
        let compiled = Arc::new(self.compile(index, route, service, chains));
        let is_good = found_before == (self.diagnostics.len(), chains.findings())
            && (service.is_some() || !matches!(route.target, RouteTarget::Service(_)));
        if is_good {
            let piece = CompiledRoute {
                route: Arc::clone(&compiled),
                service: service.cloned(),
            };
            CachedItem::note(&mut self.cache.routes, route, &Arc::new(piece), round);
        }
        compiled
    }

    fn compile(
        &mut self,
        index: usize,
        route: &'m model::Route,
        service: Option<&Arc<CompiledService>>,
        chains: &mut Chains<'m>,
    ) -> Route {
        let place = || DocPath::root().field("routes").index(index);
        let (service, action) = self.action(route, service, &place);
        if let Some(status) = route.https_only_status {
            self.check_status(status, 300, || place().field("https_only_status"));
        }
        if let Some(status) = route.grpc_only_status {
            self.check_status(status, 400, || place().field("grpc_only_status"));
        }
        let is_for_responses =
            |it: &model::GatewayHeader| matches!(it.value, GatewayHeaderValue::TextIfAbsent(_));
        if route.request_headers.iter().any(is_for_responses) {
            self.diagnostics.push(Diagnostic::error(
                place().field("request_headers"),
                "expected no 'text-if-absent', which is for responses",
            ));
        }
        if route.connect && !matches!(action, Action::Forward(_)) {
            self.diagnostics.push(Diagnostic::error(
                place().field("connect"),
                "expected a service: tunnels lead to the targets of its upstream",
            ));
        }
        let chain = chains.chain(&route.plugins, route.dialect, &route.name, &|| {
            place().field("plugins")
        });
        let rules = RouteRules {
            action,
            dialect: route.dialect,
            https_only_status: route.https_only_status,
            grpc_only_status: route.grpc_only_status,
            request_headers: self
                .gateway_headers(&route.request_headers, || place().field("request_headers")),
            response_headers: self
                .gateway_headers(&route.response_headers, || place().field("response_headers")),
            forwarded: self.forwarded(&route.forwarded, || place().field("forwarded")),
            upgrade: route.upgrade,
            connect: route.connect,
            max_body_bytes: route.max_body_bytes,
            priority: traffic::priority(route.priority),
            bandwidth: route.bandwidth.map(Box::new),
        };
        Route {
            rules: self.rules.share(rules),
            chain,
            facts: Arc::new(RouteInfo {
                name: route.name.clone(),
                service: service.to_string(),
                dialect: route.dialect,
                labels: route.labels.clone(),
            }),
            series_names: (service, route.name.as_str().into()),
        }
    }

    /// The service's name, and the destination of calls. A service that does not exist has been reported before.
    fn action(
        &mut self,
        route: &model::Route,
        service: Option<&Arc<CompiledService>>,
        place: &dyn Fn() -> DocPath,
    ) -> (Arc<str>, Action) {
        match &route.target {
            RouteTarget::Service(_) => {}
            RouteTarget::Respond(respond) => {
                let action = if respond.before_plugins {
                    Action::Reject(respond.status)
                } else {
                    Action::Unavailable(respond.status)
                };
                self.check_status(respond.status, 200, || place().field("to"));
                return (Arc::clone(&self.no_service), action);
            }
        }
        let Some(compiled) = service else {
            return (Arc::clone(&self.no_service), Action::Reject(503));
        };
        if compiled.scheme.is_stream() {
            let word = compiled.scheme.as_str();
            let message = format!("expected a service for HTTP calls, found one of {word}");
            self.diagnostics
                .push(Diagnostic::error(place().field("service"), message));
        }
        if let Some(Err(message)) = route.path.base.as_deref().map(check_path) {
            let place = place().field("path").field("base");
            self.diagnostics.push(Diagnostic::error(place, message));
        }
        if let UpstreamHost::Fixed(host) | UpstreamHost::WithTargetPort(host) = &route.upstream_host
            && let Err(message) = check_host_header(host)
        {
            let place = place().field("upstream_host");
            self.diagnostics.push(Diagnostic::error(place, message));
        }
        let path = PathRewrite {
            base: joined_base(
                compiled.path.as_deref(),
                route.path.base.as_deref(),
                route.path.join,
            ),
            ..route.path
        };
        let mut forward = forward(compiled, path, &route.upstream_host);
        if let Some(timeouts) = route.timeouts {
            forward.timeouts = timeouts;
        }
        (Arc::clone(&compiled.name), Action::Forward(forward))
    }

    fn check_status(&mut self, status: u16, least: u16, place: impl FnOnce() -> DocPath) {
        if !(least..=599).contains(&status) {
            let message = format!("expected a status from {least} to 599, found {status}");
            self.diagnostics.push(Diagnostic::error(place(), message));
        }
    }

    fn gateway_headers(
        &mut self,
        headers: &Vec<model::GatewayHeader>,
        place: impl Fn() -> DocPath,
    ) -> Arc<[GatewayHeader]> {
        if let Some(known) = self.cache.gateway_headers.get(headers) {
            return known;
        }
        for (index, header) in headers.iter().enumerate() {
            if !headers::is_name(header.name.as_bytes()) {
                let message = format!("expected a header name, found '{}'", header.name);
                let place = place().index(index).field("name");
                self.diagnostics.push(Diagnostic::error(place, message));
            }
            if let GatewayHeaderValue::Text(text) | GatewayHeaderValue::TextIfAbsent(text) = &header.value
                && !headers::is_value(text.as_bytes())
            {
                let message = "expected a header value without control characters";
                let place = place().index(index).field("value");
                self.diagnostics.push(Diagnostic::error(place, message));
            }
        }
        let compiled = headers
            .iter()
            .map(|header| GatewayHeader::new(&header.name, header.value.clone()));
        self.cache
            .gateway_headers
            .remember(headers.clone(), compiled.collect())
    }

    fn forwarded(
        &mut self,
        forwarded: &model::ForwardedHeaders,
        place: impl Fn() -> DocPath,
    ) -> Arc<ForwardedHeaderPolicy> {
        if let Some(known) = self.cache.forwardings.get(forwarded) {
            return known;
        }
        let texts = [
            ("via", "a pseudonym for the header 'Via'", &forwarded.via),
            ("default_host", "a host", &forwarded.default_host),
        ];
        let unfit = |text: &&str| !headers::is_value(text.as_bytes());
        for (field, what, text) in texts {
            if let Some(text) = text.as_deref().filter(unfit) {
                let message = format!("expected {what}, found '{}'", text.escape_debug());
                self.diagnostics
                    .push(Diagnostic::error(place().field(field), message));
            }
        }
        let compiled = ForwardedHeaderPolicy {
            standard: forwarded.standard,
            path: forwarded.path,
            prefix: forwarded.prefix,
            via: forwarded.via.as_ref().map(|via| via.as_bytes().to_vec()),
            trusted: forwarded.trusted.clone(),
            host_as_written: forwarded.host_as_written,
            drop_forwarded: forwarded.drop_forwarded,
            first_line_only: forwarded.first_line_only,
            default_host: (forwarded.default_host.as_ref()).map(|host| host.as_bytes().to_vec()),
        };
        self.cache
            .forwardings
            .remember(forwarded.clone(), Arc::new(compiled))
    }
}

/// The destinations of filters: services with the Host for each. They were checked when a filter added them; a broken
/// service has been reported, and nothing is served.
pub(super) fn destinations(services: &Services<'_>, asked: &[(String, UpstreamHost)]) -> Vec<Forward> {
    let reached = asked.iter().filter_map(|(name, host)| {
        let compiled = services.get(name)?;
        let path = PathRewrite {
            base: compiled.path.clone(),
            ..PathRewrite::default()
        };
        Some(forward(compiled, path, host))
    });
    reached.collect()
}

/// How calls and sessions reach a service.
pub(super) fn forward(compiled: &CompiledService, path: PathRewrite, host: &UpstreamHost) -> Forward {
    let service = &compiled.service;
    Forward {
        upstream: compiled.upstream,
        path,
        tls: compiled.tls.clone(),
        upstream_host: host.clone(),
        timeouts: service.timeouts,
        retries: service.retries,
        retry_timeout_ms: service.retry_timeout_ms,
        retry_non_idempotent: service.retry_non_idempotent,
        retry_statuses: Arc::clone(&compiled.retry_statuses),
    }
}

/// The service's path, then the route's.
fn joined_base(service: Option<&str>, route: Option<&str>, join: PathJoin) -> Option<String> {
    let (first, second) = match (service, route) {
        (Some(first), Some(second)) => (first, second),
        (only, None) | (None, only) => return only.map(str::to_owned),
    };
    Some(match join {
        PathJoin::Segments => format!(
            "{}/{}",
            first.trim_end_matches('/'),
            second.trim_start_matches('/')
        ),
        PathJoin::Concatenate => format!("{first}{second}").replace("//", "/"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_join() {
        for (service, route, join, wanted) in [
            (None, None, PathJoin::Segments, None),
            (Some("/a"), None, PathJoin::Segments, Some("/a")),
            (None, Some("/b/"), PathJoin::Concatenate, Some("/b/")),
            (Some("/a/"), Some("/b"), PathJoin::Segments, Some("/a/b")),
            (Some("/a"), Some("/b"), PathJoin::Segments, Some("/a/b")),
            (Some("/a/"), Some("/b"), PathJoin::Concatenate, Some("/a/b")),
        ] {
            assert_eq!(
                joined_base(service, route, join).as_deref(),
                wanted,
                "{service:?} {route:?}"
            );
        }
    }
}
