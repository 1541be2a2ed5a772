//! Stream routes: conditions, upstream and plugins.

use super::instances::{ConfiguredPlugin, PluginOwner, chain_step};
use super::stream_plugins::{stream_mapping, stream_service};
use super::{Translation, matching, upstream};
use crate::document::{self, Item, StreamRoute};
use crate::plugins::{Checker, Meta, PluginAdapter, PluginLocation, PluginUpstreamRef, mqtt_proxy};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use weir_model::{ChainStep, Diagnostic, DocPath, Endpoint, MqttConnect, StreamProtocol};

/// The default of the milliseconds in which nothing may move, as in the original's server.
const IDLE_MS: u64 = 600_000;

impl Translation<'_> {
    /// Adds all stream routes to the model, with the upstreams that they use.
    pub(super) fn stream_routes(&mut self) {
        let documents = self.documents;
        let mut upstreams = HashSet::new();
        let mut ranks = Vec::with_capacity(documents.stream_routes.len());
        for (position, item) in documents.stream_routes.iter().enumerate() {
            if let Some(route) = self.stream_route(item, &mut upstreams) {
                let name = item.value.sni.as_deref().unwrap_or_default();
                // Full names first, then longer ones; of equals the first in the document.
                let is_full = !name.is_empty() && !name.starts_with('*');
                ranks.push((is_full, name.len(), Reverse(position)));
                self.model.stream_routes.push(route);
            }
        }
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|index| ranks[*index]);
        for (ordinal, index) in order.into_iter().enumerate() {
            self.model.stream_routes[index].precedence = Some(ordinal as u64 + 1);
        }
    }

    fn stream_route(
        &mut self,
        item: &Item<StreamRoute>,
        upstreams: &mut HashSet<String>,
    ) -> Option<weir_model::StreamRoute> {
        let route = &item.value;
        if let Some(protocol) = &route.protocol {
            let name = protocol.get("name").and_then(Value::as_str).unwrap_or_default();
            let message = format!(
                "the protocol \"{name}\" (xRPC) is not available in this version of Weir; sessions are refused"
            );
            self.diagnostics
                .push(Diagnostic::error(item.path.field("protocol"), message));
        }
        let plugins = self.stream_plugins(item, upstreams);
        let mqtt = self.mqtt(item);
        let is_lacking = plugins.is_none() || mqtt.is_err() || route.protocol.is_some();
        let ends = |address: &Option<String>, port: Option<u16>| -> Vec<Endpoint> {
            let networks = matching::networks(address.as_deref().into_iter());
            match (networks.first().copied(), port) {
                (None, None) => Vec::new(),
                (network, port) => vec![Endpoint { network, port }],
            }
        };
        let (service, has_timeout) = self.stream_destination(item, upstreams).unzip();
        let mut made = weir_model::StreamRoute {
            name: item.id.clone(),
            dialect: crate::NAME,
            // Only sessions of TLS have a name; by `*`, any is meant.
            protocols: match route.sni {
                Some(_) => vec![StreamProtocol::Tls],
                None => Vec::new(),
            },
            snis: route.sni.iter().filter(|name| *name != "*").cloned().collect(),
            sources: ends(&route.remote_addr, None),
            destinations: ends(&route.server_addr, route.server_port),
            service,
            idle_timeout_ms: (has_timeout != Some(true)).then_some(IDLE_MS),
            plugins: plugins.unwrap_or_default(),
            mqtt: mqtt.unwrap_or_default(),
            ..weir_model::StreamRoute::default()
        };
        if is_lacking {
            made.refuse_sessions();
        }
        Some(made)
    }

    /// The target of sessions, and whether time-outs are given there; `None`: none. A route's own upstream goes before
    /// its service's, and of the two ways to name one the id counts.
    fn stream_destination(
        &mut self,
        item: &Item<StreamRoute>,
        upstreams: &mut HashSet<String>,
    ) -> Option<(String, bool)> {
        let route = &item.value;
        let service_id = route.service_id.as_ref().map(|id| id.0.as_str());
        let service = service_id.and_then(|id| self.services.get(id).copied());
        if let (Some(id), None) = (service_id, service) {
            let message = format!("no service has the id '{id}'");
            self.warn(item.path.field("service_id"), message);
            return None;
        }
        let is_own = route.upstream_id.is_some() || route.upstream.is_some();
        let (id, inline, owner, place) = match service.filter(|_| !is_own) {
            Some(service) => (
                &service.value.upstream_id,
                &service.value.upstream,
                format!("services/{}", service.id),
                service.path.clone(),
            ),
            None => (
                &route.upstream_id,
                &route.upstream,
                format!("stream_routes/{}", item.id),
                item.path.clone(),
            ),
        };
        let (name, used, place) = match (id, inline) {
            (Some(id), _) => match self.upstreams.get(id.0.as_str()).copied() {
                Some(known) => (format!("upstreams/{}", id.0), &known.value, known.path.clone()),
                None => {
                    let message = format!("no upstream has the id '{}'", id.0);
                    self.warn(place.field("upstream_id"), message);
                    return None;
                }
            },
            (None, Some(inline)) => (owner, inline, place.field("upstream")),
            (None, None) => return None,
        };
        let name = stream_service(&name);
        self.stream_upstream(&name, used, &place, upstreams)
            .then(|| (name, used.timeout.is_some()))
    }

    /// Adds an upstream for sessions to the model, unless it is there. False: it has no targets.
    fn stream_upstream(
        &mut self,
        name: &str,
        used: &document::Upstream,
        place: &DocPath,
        upstreams: &mut HashSet<String>,
    ) -> bool {
        if upstreams.contains(name) {
            return true;
        }
        let made = upstream::translate_for_streams(name, used, &|| place.clone(), self.diagnostics);
        let Some(mut made) = made else {
            return false;
        };
        upstreams.insert(name.to_owned());
        if self.options.settings.has_no_health_checks {
            Arc::make_mut(&mut made.upstream).checks = None;
        }
        self.model.upstreams.push(made.upstream);
        self.model.services.push(made.service);
        true
    }

    /// Adds the upstreams that a plugin brings or names. False: one has no targets, or does not exist, which has been
    /// told.
    fn stream_plugin_upstreams(
        &mut self,
        mapping: &dyn PluginAdapter,
        config: &Value,
        place: &DocPath,
        upstreams: &mut HashSet<String>,
    ) -> bool {
        mapping.upstreams(config).into_iter().all(|(name, upstream)| {
            let is_there = match upstream {
                PluginUpstreamRef::Own(own) => self.stream_upstream(&name, &own, place, upstreams),
                PluginUpstreamRef::Known(id) => {
                    let known = self.upstreams.get(id.as_str()).copied();
                    known.is_some_and(|it| self.stream_upstream(&name, &it.value, &it.path, upstreams))
                }
            };
            if !is_there {
                let message = format!("there is no upstream '{name}' with nodes, to which sessions are sent");
                self.diagnostics.push(Diagnostic::dropped(place.clone(), message));
            }
            is_there
        })
    }

    /// What sessions of a route begin with. An error: the plugin is given and cannot be read, which has been told.
    fn mqtt(&mut self, item: &Item<StreamRoute>) -> Result<Option<MqttConnect>, ()> {
        let config = item.value.plugins.get(mqtt_proxy::NAME);
        let Some(config) = config.filter(|it| !Meta::of(it).disable) else {
            return Ok(None);
        };
        mqtt_proxy::translate(config).map(Some).map_err(|message| {
            let place = item.path.field("plugins").field(mqtt_proxy::NAME);
            self.diagnostics.push(Diagnostic::dropped(place, message));
        })
    }

    /// The chain of a route: its own plugins and, unless it has the same, its service's. `None`: the route needs
    /// something without which it cannot be served.
    fn stream_plugins(
        &mut self,
        item: &Item<StreamRoute>,
        upstreams: &mut HashSet<String>,
    ) -> Option<Vec<ChainStep>> {
        let service = item.value.service_id.as_ref();
        let service = service.and_then(|id| self.services.get(id.0.as_str()).copied());
        let own = item.value.plugins.iter();
        let mut found: Vec<(&str, &Value, &DocPath)> = own
            .map(|(name, config)| (name.as_str(), config, &item.path))
            .collect();
        if let Some(service) = service {
            // A service's plugins that are for calls do nothing on sessions.
            let theirs = service.value.plugins.iter();
            let theirs = theirs.filter(|(name, _)| {
                stream_mapping(name).is_some() && !item.value.plugins.contains_key(*name)
            });
            found.extend(theirs.map(|(name, config)| (name.as_str(), config, &service.path)));
        }
        let mut steps = Vec::new();
        for (name, config, path) in found {
            if Meta::of(config).disable || name == mqtt_proxy::NAME {
                continue;
            }
            let place = path.field("plugins").field(name);
            let Some(mapping) = stream_mapping(name) else {
                let message =
                    format!("plugin \"{name}\" is not available on stream routes in this version of Weir");
                self.diagnostics.push(Diagnostic::error(place, message));
                return None;
            };
            let mut config = config.clone();
            if let Err(message) =
                Checker::new(self.options.settings).check(name, &mut config, PluginLocation::Request)
            {
                self.diagnostics.push(Diagnostic::dropped(place, message));
                return None;
            }
            if !self.stream_plugin_upstreams(mapping, &config, &place, upstreams) {
                return None;
            }
            let owner = PluginOwner {
                section: "stream_routes",
                id: &item.id,
                path,
            };
            let written = ConfiguredPlugin {
                mapping,
                config: &config,
                owner,
            };
            let used = self.instances.step(written, None, owner, self.diagnostics)?;
            steps.push((Reverse(mapping.priority()), chain_step(Some(used), Vec::new())));
        }
        steps.sort_by_key(|(priority, _)| *priority);
        Some(steps.into_iter().map(|(_, step)| step).collect())
    }
}
