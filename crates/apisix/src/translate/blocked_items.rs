//! Plugins that a file asks for and Weir lacks: what is served without them, and what is not. As for documents of a
//! store, only the items with such a plugin are concerned.

use crate::document::{Documents, Item, Plugins, Route};
use crate::incremental::missing_plugins::MissingPlugins;
use std::collections::HashSet;
use weir_model::{Diagnostic, DocPath};

/// The items whose calls are refused for a plugin that Weir lacks, by their ids.
#[derive(Debug, Default)]
pub struct BlockedItems {
    routes: HashSet<String>,
    services: HashSet<String>,
    plugin_configs: HashSet<String>,
    /// Whether a global rule is among them.
    all: bool,
}

impl BlockedItems {
    /// Looks through all items, and reports each plugin. Credentials that lack a plugin are taken out: they identify no
    /// consumer. Consumers and groups stay: the calls of these consumers are refused.
    pub fn find(documents: &mut Documents, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut refuses = |path: &DocPath, plugins: &Plugins| report_missing(path, plugins, diagnostics);
        let mut lacking = Self::default();
        for it in &documents.routes {
            if refuses(&it.path, &it.value.plugins) {
                lacking.routes.insert(it.id.clone());
            }
        }
        for it in &documents.services {
            if refuses(&it.path, &it.value.plugins) {
                lacking.services.insert(it.id.clone());
            }
        }
        for it in &documents.plugin_configs {
            if refuses(&it.path, &it.value.plugins) {
                lacking.plugin_configs.insert(it.id.clone());
            }
        }
        for it in &documents.global_rules {
            lacking.all |= refuses(&it.path, &it.value.plugins);
        }
        for it in &documents.consumers {
            refuses(&it.path, &it.value.plugins);
        }
        (documents.credentials).retain(|(_, it)| !refuses(&it.path, &it.value.plugins));
        for it in &documents.consumer_groups {
            refuses(&it.path, &it.value.plugins);
        }
        lacking
    }

    /// Whether the calls of a route are refused.
    pub fn refuses(&self, item: &Item<Box<Route>>) -> bool {
        let route = &item.value;
        let is_in = |known: &HashSet<String>, id: &Option<crate::document::Id>| {
            id.as_ref().is_some_and(|id| known.contains(&id.0))
        };
        self.all
            || self.routes.contains(&item.id)
            || is_in(&self.services, &route.service_id)
            || is_in(&self.plugin_configs, &route.plugin_config_id)
    }
}

/// Reports the plugins that Weir lacks. Returns whether calls must not be served without them.
fn report_missing(path: &DocPath, plugins: &Plugins, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let Some(lack) = MissingPlugins::of_plugins(plugins.iter()) else {
        return false;
    };
    for name in lack.names() {
        let alone = plugins.get_key_value(name.as_str());
        if let Some(message) = MissingPlugins::of_plugins(alone.into_iter()).map(|alone| alone.to_string()) {
            diagnostics.push(Diagnostic::dropped(
                path.field("plugins").field(name.as_str()),
                message,
            ));
        }
    }
    lack.refuses
}
