//! Upstreams to which plugins send calls: those that their configurations bring along, or name.

use super::Translation;
use crate::document::{self, Documents, Item, Route};
use crate::plugins::{PluginUpstreamRef, mapping};
use serde_json::json;
use std::collections::HashSet;
use weir_model::DocPath;

/// An upstream to which a plugin sends calls.
pub struct PluginUpstream {
    /// The name of its service in the model.
    name: String,
    upstream: PluginUpstreamRef,
    /// The place of the plugin.
    place: DocPath,
}

/// All that plugins bring, or name.
pub fn plugin_upstreams<'d>(
    documents: &'d Documents,
    routes: impl Iterator<Item = &'d Item<Box<Route>>>,
) -> Vec<PluginUpstream> {
    let mut found = Vec::new();
    documents.each_with_plugins(routes, |path, plugins| {
        for (name, config) in plugins {
            let upstreams = mapping(name).map(|mapping| mapping.upstreams(config));
            for (name, upstream) in upstreams.into_iter().flatten() {
                let place = path.field("plugins");
                found.push(PluginUpstream {
                    name,
                    upstream,
                    place,
                });
            }
        }
    });
    found
}

impl Translation<'_> {
    /// Adds upstreams to the model that it does not have yet. One that does not exist, or has no node, has no target:
    /// calls to it are refused.
    pub(super) fn add_plugin_upstreams(&mut self, upstreams: Vec<PluginUpstream>) {
        if upstreams.is_empty() {
            return;
        }
        let services = self.model.services.iter().map(|service| service.name.clone());
        let mut there: HashSet<String> = services.collect();
        for PluginUpstream {
            name,
            upstream,
            place,
        } in upstreams
        {
            if !there.insert(name.clone()) {
                continue;
            }
            let own = |upstream: &document::Upstream, path: &DocPath| (upstream.clone(), path.clone());
            let found = match &upstream {
                PluginUpstreamRef::Known(id) => {
                    let known = self.upstreams.get(id.as_str());
                    known.map(|known| own(&known.value, &known.path))
                }
                PluginUpstreamRef::Own(upstream) => Some(own(upstream, &place)),
            };
            if let Some((upstream, path)) = found {
                self.use_upstream(name.clone(), &upstream, &|| path.clone());
            }
            let last = self.model.services.last().map(|service| service.name.as_str());
            if last != Some(name.as_str()) {
                self.add_empty_upstream(&name, place);
            }
        }
    }

    fn add_empty_upstream(&mut self, name: &str, place: DocPath) {
        self.warn(
            place,
            format!("there is no upstream '{name}' with nodes, to which calls are sent"),
        );
        let service = serde_json::from_value(json!({"name": name, "upstream": name}));
        let upstream = serde_json::from_value(json!({"name": name, "targets": []}));
        if let (Ok(service), Ok(upstream)) = (service, upstream) {
            self.model.services.push(service);
            self.model.upstreams.push(upstream);
        }
    }
}
