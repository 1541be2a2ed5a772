//! Stream routes: their conditions, services and plugins.

use super::chains::Chains;
use super::routes::forward;
use super::services::Services;
use crate::chain::Chain;
use crate::route::Forward;
use crate::stream::{Conditions, StreamRoute, StreamRoutes};
use std::cmp::Reverse;
use std::sync::Arc;
use weir_model::{
    self as model, Diagnostic, DialectName, DocPath, Model, PathRewrite, Scheme, StreamProtocol, Timeouts,
    UpstreamHost,
};
use weir_plugin::{Registry, RouteInfo};

/// Compiles all stream routes of the model.
pub(super) fn compile<'m>(
    model: &'m Model,
    registry: &Registry,
    services: &Services<'m>,
    chains: &mut Chains<'m>,
    diagnostics: &mut Vec<Diagnostic>,
) -> StreamRoutes {
    let mut compiler = Compiler {
        registry,
        services,
        diagnostics,
    };
    let routes: Vec<StreamRoute> = (model.stream_routes.iter().enumerate())
        .map(|(index, route)| compiler.route(index, route, chains))
        .collect();
    let mut error_renderers: Vec<DialectName> = Vec::new();
    for route in &model.stream_routes {
        if !error_renderers.contains(&route.dialect) {
            error_renderers.push(route.dialect);
        }
    }
    let mut by_rank: Vec<u32> = (0..routes.len() as u32).collect();
    // Stable, so that of equals the first in the model stays the first.
    by_rank.sort_by_key(|position| {
        let route = &model.stream_routes[*position as usize];
        let dialect = error_renderers
            .iter()
            .position(|dialect| *dialect == route.dialect);
        let specificity = routes[*position as usize].conditions.specificity();
        (dialect, Reverse((route.precedence, specificity)))
    });
    StreamRoutes::new(routes, by_rank)
}

struct Compiler<'c, 'm> {
    registry: &'c Registry,
    services: &'c Services<'m>,
    diagnostics: &'c mut Vec<Diagnostic>,
}

impl<'m> Compiler<'_, 'm> {
    fn route(&mut self, index: usize, route: &'m model::StreamRoute, chains: &mut Chains<'m>) -> StreamRoute {
        let place = || DocPath::root().field("stream_routes").index(index);
        let forward = self.forward(route, &place);
        let owner = format!("stream/{}", route.name);
        let chain = chains.chain(&route.plugins, route.dialect, &owner, &|| {
            place().field("plugins")
        });
        self.check_plugins(&chain, || place().field("plugins"));
        let idle_ms = forward
            .as_ref()
            .map_or(Timeouts::default().read_ms, |forward| forward.timeouts.read_ms);
        StreamRoute {
            facts: Arc::new(RouteInfo {
                name: route.name.clone(),
                service: route.service.clone().unwrap_or_default(),
                dialect: route.dialect,
                ..RouteInfo::default()
            }),
            forward,
            idle_timeout_ms: route.idle_timeout_ms.unwrap_or(idle_ms),
            udp_responses: route.udp_responses,
            proxy_protocol: route.proxy_protocol,
            mqtt: route.mqtt.clone(),
            chain: Arc::new(chain),
            conditions: conditions(route),
        }
    }

    /// Where sessions go. A service that does not exist has been reported before.
    fn forward(&mut self, route: &model::StreamRoute, place: &dyn Fn() -> DocPath) -> Option<Forward> {
        let compiled = self.services.get(route.service.as_deref()?)?;
        let scheme = compiled.scheme;
        let has = |protocol| route.protocols.contains(&protocol);
        let refusal = if !scheme.is_stream() {
            let word = scheme.as_str();
            Some(format!(
                "expected a service of tcp, tls or udp, found one of {word}, which is for HTTP calls"
            ))
        } else if scheme == Scheme::Tls && has(StreamProtocol::TlsPassthrough) {
            Some("expected a service of tcp: a passed-through stream already uses TLS".to_owned())
        } else if scheme == Scheme::Tls && has(StreamProtocol::Udp) {
            Some("expected a service of udp, found one of tls, which accepts no datagrams".to_owned())
        } else {
            None
        };
        if let Some(message) = refusal {
            self.diagnostics
                .push(Diagnostic::error(place().field("service"), message));
            return None;
        }
        Some(forward(compiled, PathRewrite::default(), &UpstreamHost::Target))
    }

    fn check_plugins(&mut self, chain: &Chain, place: impl Fn() -> DocPath) {
        let instances = chain.steps.iter().flat_map(|step| step.instances());
        for instance in instances {
            let plugin = self.registry.get(instance.plugin);
            if !plugin.is_some_and(|plugin| plugin.works_on_streams()) {
                let message = format!("the plugin '{}' does not work on stream routes", instance.plugin);
                self.diagnostics.push(Diagnostic::error(place(), message));
            }
        }
    }
}

fn conditions(route: &model::StreamRoute) -> Conditions {
    let mut conditions = Conditions {
        protocols: match (&route.mqtt, route.protocols.is_empty()) {
            (Some(_), true) => vec![StreamProtocol::Tcp, StreamProtocol::Tls],
            _ => route.protocols.clone(),
        },
        sources: route.sources.clone(),
        destinations: route.destinations.clone(),
        ..Conditions::default()
    };
    for name in &route.snis {
        // A last dot is no part of a name as clients send it (RFC 6066, section 3).
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        match name.strip_prefix('*') {
            Some(suffix) => conditions.suffixes.push(suffix.to_owned()),
            None => conditions.exact.push(name),
        }
    }
    conditions
}
