//! Labels: what variables tell about a route besides its id. They cost memory, so only routes have them about which
//! something may ask.

use super::instances::{ConfiguredPlugin, table_id};
use crate::document::{self, Item};
use serde_json::Value;
use std::collections::BTreeMap;
use weir_model::{ChainStep, PluginRef};

const NAMES: [&str; 5] = [
    "route_name",
    "service_id",
    "service_name",
    "matched_uri",
    "matched_host",
];

/// The labels that plugins need of a route.
pub enum RequiredLabels {
    Nothing,
    /// Its service, at which `consumer-restriction` and `graphql-limit-count` may look.
    Service,
    Everything,
}

impl RequiredLabels {
    /// For a chain. `are_named`: a variable of the configuration reads one.
    pub fn of(plugins: &[ChainStep], are_named: bool) -> Self {
        if are_named || plugins.iter().any(tells) {
            Self::Everything
        } else if plugins.iter().any(uses_service_name) {
            Self::Service
        } else {
            Self::Nothing
        }
    }
}

/// Whether a variable in a plugin's configuration may read a label.
pub fn reads_labels(plugin: &ConfiguredPlugin<'_>) -> bool {
    match plugin.mapping.name() {
        // Its `type` is no variable.
        "consumer-restriction" => plugin.config.get("_meta").is_some_and(mentions_labels),
        _ => mentions_labels(plugin.config),
    }
}

fn mentions_labels(config: &Value) -> bool {
    match config {
        Value::String(text) => are_named_in(text),
        Value::Array(items) => items.iter().any(mentions_labels),
        Value::Object(map) => map.values().any(mentions_labels),
        _ => false,
    }
}

/// Whether a text may have such a variable.
pub fn are_named_in(text: &str) -> bool {
    text.contains('_') && NAMES.iter().any(|name| text.contains(name))
}

/// Whether a step reports on calls, for which it reads labels that its configuration does not name.
fn tells(step: &ChainStep) -> bool {
    const TELLING: [&str; 4] = ["logger", "prometheus", "statsd", "tracing"];
    const SHARED: [&str; 7] = [
        "-logger",
        "-logging",
        "/datadog",
        "/opentelemetry",
        "/prometheus",
        "/syslog",
        "/zipkin",
    ];
    let is_shared = |id: &String| SHARED.iter().any(|end| id.ends_with(end));
    let own = match &step.plugin {
        Some(PluginRef::Inline(instance)) => TELLING.contains(&instance.name.as_str()),
        Some(PluginRef::Shared(id)) => is_shared(id),
        None => false,
    };
    own || step.consumer_overrides.iter().any(is_shared)
}

fn uses_service_name(step: &ChainStep) -> bool {
    const BY_SERVICE: [&str; 2] = ["consumer-restriction", "graphql-limit-count"];
    match &step.plugin {
        Some(PluginRef::Inline(instance)) if instance.name == "acl" => {
            instance.config["require"] == "service"
        }
        Some(PluginRef::Inline(instance)) if instance.name == "graphql-limit" => true,
        Some(PluginRef::Shared(id)) if BY_SERVICE.iter().any(|name| id.ends_with(name)) => true,
        _ => {
            let mut overrides = step.consumer_overrides.iter();
            overrides.any(|id| BY_SERVICE.iter().any(|name| *id == table_id(name)))
        }
    }
}

/// The label about a route's service; empty: it has none.
pub fn service_id(service: Option<&Item<document::Service>>) -> (String, String) {
    let id = service.map(|service| service.id.clone()).unwrap_or_default();
    ("service_id".to_owned(), id)
}

/// All labels of a route.
pub fn all(
    item: &Item<Box<document::Route>>,
    service: Option<&Item<document::Service>>,
    hosts: Option<&[&str]>,
) -> BTreeMap<String, String> {
    let paths: Vec<&str> = item.value.paths().collect();
    let id = service.map(|service| service.id.clone()).unwrap_or_default();
    let name = service.and_then(|service| service.value.name.clone());
    let mut labels = BTreeMap::from([
        ("matched_uri".to_owned(), paths.join(" ")),
        ("service_name".to_owned(), name.unwrap_or(id)),
        service_id(service),
    ]);
    if let Some(name) = &item.value.name {
        labels.insert("route_name".to_owned(), name.clone());
    }
    if let Some(hosts) = hosts {
        labels.insert("matched_host".to_owned(), hosts.join(" "));
    }
    labels
}
