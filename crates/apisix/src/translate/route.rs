//! Routes: matches, target, host, and the rest of what a route says.

use super::chain::Chains;
use super::labels::{self, RequiredLabels};
use super::{Conditions, Translation, certificates, matching, unknown_variables, upstream, vars};
use crate::document::{self, Item};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_model::{
    Diagnostic, DocPath, ForwardedHeaders, GatewayHeader, GatewayHeaderValue, PathRewrite, Route,
    RouteTarget, UpstreamHost,
};

/// The target of a route's calls.
pub(super) struct Destination {
    target: RouteTarget,
    host: UpstreamHost,
    /// Whether the choice of a node may depend on the route's labels.
    reads_labels: bool,
}

impl Destination {
    fn nowhere(target: RouteTarget) -> Self {
        Self {
            target,
            host: UpstreamHost::Client,
            reads_labels: false,
        }
    }
}

impl<'d> Translation<'d> {
    /// Adds a route to the model.
    pub(super) fn route(&mut self, item: &Item<Box<document::Route>>, chains: &Chains) {
        let service = self.service_of(item);
        let function = unavailable_function(item, service);
        if let Some((path, field)) = function {
            self.diagnostics.push(Diagnostic::error(
                path.field(field),
                format!(
                    "\"{field}\" (a function in Lua) is not available in this version of Weir; calls are refused"
                ),
            ));
        }
        let (conditions, has_condition_fault) = self.conditions(item);
        let service_hosts = service
            .and_then(|service| service.value.hosts.as_ref())
            .map(|hosts| hosts.iter().map(String::as_str).collect());
        let hosts: Option<Vec<&str>> = item.value.own_hosts().or(service_hosts);
        let candidates = matching::candidates(
            self.options.router,
            self.options.delete_uri_tail_slash,
            item.value.paths(),
            hosts.as_deref(),
            &conditions,
        );
        // With room for what is there and no more: there may be very many routes.
        let mut matches = Vec::with_capacity(candidates.len());
        let mut ranks = Vec::with_capacity(candidates.len());
        for (rank, candidate) in candidates {
            ranks.push(rank);
            matches.push(candidate);
        }
        if matches.is_empty() {
            let message = "no call can ever match this route's hosts and paths; it is left out";
            self.diagnostics
                .push(Diagnostic::warning(item.path.clone(), message));
            return;
        }
        let destination = self.destination(item);
        let sources = self.sources(item);
        let websocket = item.value.enable_websocket;
        let chain = chains.of_route(&sources, &mut self.instances, self.diagnostics);
        let plugins = chain.steps;
        let mut route = Route {
            name: item.id.clone(),
            dialect: crate::NAME,
            matches,
            target: destination.target,
            https_only_status: None,
            grpc_only_status: None,
            path: PathRewrite::default(),
            upstream_host: destination.host,
            forwarded: forwarded(&self.options.settings.trusted_addresses),
            response_headers: vec![GatewayHeader {
                name: "X-APISIX-Upstream-Status".to_owned(),
                value: match self.options.settings.shows_upstream_status {
                    true => GatewayHeaderValue::UpstreamStatus,
                    false => GatewayHeaderValue::UpstreamErrorStatus,
                },
            }],
            request_headers: Vec::new(),
            timeouts: item.value.timeout.map(upstream::timeouts),
            connect: false,
            upgrade: websocket
                .or_else(|| service?.value.enable_websocket)
                .unwrap_or(false),
            max_body_bytes: None,
            priority: weir_model::Priority::default(),
            bandwidth: None,
            labels: match RequiredLabels::of(&plugins, chain.reads_labels || destination.reads_labels) {
                RequiredLabels::Everything => labels::all(item, service, hosts.as_deref()),
                RequiredLabels::Service => BTreeMap::from([labels::service_id(service)]),
                RequiredLabels::Nothing => BTreeMap::new(),
            },
            plugins,
        };
        // Without the function or the condition, nothing says which calls the route would take, or what would become of them: it
        // takes all, so that none goes to a route that asks for less.
        if chain.is_lacking || function.is_some() || has_condition_fault {
            route.refuse_calls();
        }
        self.ranks.push(ranks);
        self.model.routes.push(Arc::new(route));
    }

    /// The conditions of a route, and whether one of them is missing because Weir cannot serve it.
    fn conditions(&mut self, item: &Item<Box<document::Route>>) -> (Conditions, bool) {
        let route = &item.value;
        let compiled = route.vars.as_deref().map(vars::compile_for_matching);
        let when = match compiled.unwrap_or(Ok(None)) {
            Ok(condition) => Some(condition),
            Err(fault) => {
                let message = format!("{fault}; calls are refused");
                self.diagnostics
                    .push(Diagnostic::error(item.path.field("vars"), message));
                None
            }
        };
        let is_faulty = when.is_none();
        let when = when.flatten();
        if let Some(when) = &when {
            unknown_variables::warn_of_condition(when, &item.path.field("vars"), self.diagnostics);
        }
        let conditions = Conditions {
            methods: route.methods.clone().unwrap_or_default(),
            remote_addrs: matching::networks(route.addresses()),
            when,
            priority: route.priority,
        };
        (conditions, is_faulty)
    }

    /// The target of calls, and APISIX's answer if they have none: a plugin config that does not exist is
    /// noticed first, then a service, both before any plugin works; an upstream only after them.
    fn destination(&mut self, item: &Item<Box<document::Route>>) -> Destination {
        let route = &item.value;
        let missing = |kind: &str, id: &str| format!("no {kind} has the id '{id}'");
        if let Some(id) = &route.plugin_config_id
            && !self.plugin_configs.contains_key(id.0.as_str())
        {
            self.warn(
                item.path.field("plugin_config_id"),
                missing("plugin config", &id.0),
            );
            return Destination::nowhere(RouteTarget::respond_before_plugins(503));
        }
        let service = self.service_of(item);
        if let (Some(id), None) = (&route.service_id, service) {
            self.warn(item.path.field("service_id"), missing("service", &id.0));
            return Destination::nowhere(RouteTarget::respond_before_plugins(404));
        }
        // A route's own upstream goes before its service's; of the two ways to name one, the id counts.
        let (id, inline, section, owner, place) = match service {
            Some(service) if route.upstream_id.is_none() && route.upstream.is_none() => (
                &service.value.upstream_id,
                &service.value.upstream,
                "services",
                &service.id,
                &service.path,
            ),
            _ => (
                &route.upstream_id,
                &route.upstream,
                "routes",
                &item.id,
                &item.path,
            ),
        };
        match (id, inline) {
            (Some(id), _) => match self.upstreams.get(id.0.as_str()).copied() {
                Some(known) => {
                    let name = format!("upstreams/{}", id.0);
                    self.use_upstream(name, &known.value, &|| known.path.clone())
                }
                None => {
                    self.warn(place.field("upstream_id"), missing("upstream", &id.0));
                    Destination::nowhere(RouteTarget::respond_after_plugins(502))
                }
            },
            (None, Some(inline)) => {
                self.use_upstream(format!("{section}/{owner}"), inline, &|| place.field("upstream"))
            }
            (None, None) => Destination::nowhere(RouteTarget::respond_after_plugins(503)),
        }
    }

    /// The destination of calls to an upstream, which is added to the model when it is first used.
    pub(super) fn use_upstream(
        &mut self,
        name: String,
        used: &document::Upstream,
        place: &dyn Fn() -> DocPath,
    ) -> Destination {
        let translated = self.upstreams_made.entry(name.clone());
        let translated = translated.or_insert_with(|| {
            let mut translated = upstream::translate(&name, used, place, self.diagnostics);
            if self.options.settings.has_no_health_checks
                && let Some(translated) = &mut translated
            {
                Arc::make_mut(&mut translated.upstream).checks = None;
            }
            let Some(id) = client_certificate_id(used) else {
                return translated;
            };
            match certificates::of_upstream(self.documents, &id) {
                Some(certificate) => {
                    Arc::make_mut(&mut translated.as_mut()?.service).tls.certificate = Some(certificate)
                }
                // Without it, an upstream may take the gateway for another client.
                None => {
                    let place = place().field("tls").field("client_cert_id");
                    let message = format!("no client certificate has the id '{id}': calls are refused");
                    self.diagnostics.push(Diagnostic::warning(place, message));
                    translated = None;
                }
            }
            translated
        });
        let has_nodes = translated.is_some();
        if self.upstreams_used.insert(name.clone())
            && let Some(translated) = translated
        {
            self.model.upstreams.push(Arc::clone(&translated.upstream));
            self.model.services.push(Arc::clone(&translated.service));
        }
        if !has_nodes {
            let certificate =
                client_certificate_id(used).map(|id| certificates::of_upstream(self.documents, &id));
            let status = if certificate == Some(None) { 502 } else { 503 };
            return Destination::nowhere(RouteTarget::respond_after_plugins(status));
        }
        Destination {
            target: RouteTarget::Service(name),
            host: upstream::upstream_host(used),
            reads_labels: used.key.as_deref().is_some_and(labels::are_named_in),
        }
    }

    pub(super) fn warn(&mut self, place: DocPath, message: String) {
        self.diagnostics.push(Diagnostic::warning(place, message));
    }
}

/// The id of the certificate that an upstream is shown.
fn client_certificate_id(upstream: &document::Upstream) -> Option<String> {
    document::id_text(upstream.tls.as_ref()?.get("client_cert_id")?)
}

/// The place of a function in Lua that would decide about a route's calls.
fn unavailable_function<'d>(
    route: &'d Item<Box<document::Route>>,
    service: Option<&'d Item<document::Service>>,
) -> Option<(&'d DocPath, &'static str)> {
    if route.value.filter_func.is_some() {
        return Some((&route.path, "filter_func"));
    }
    if route.value.script.is_some() {
        return Some((&route.path, "script"));
    }
    let service = service.filter(|service| service.value.script.is_some())?;
    Some((&service.path, "script"))
}

/// The headers about the client that APISIX sends to upstreams.
fn forwarded(trusted: &[IpNet]) -> ForwardedHeaders {
    ForwardedHeaders {
        standard: true,
        via: None,
        host_as_written: true,
        drop_forwarded: true,
        default_host: Some("localhost".to_owned()),
        trusted: trusted.to_vec(),
        ..ForwardedHeaders::default()
    }
}
