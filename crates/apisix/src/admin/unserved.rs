//! The warnings in the answer to a write about what is stored and not served as it is written: in a header, so that no
//! one has to look at the gateway's status to learn it. What is found is what the translation finds of the written
//! documents, with those that they refer to, and what the catalogue finds of their plugins.

use super::AdminOptions;
use super::kind::Kind;
use super::references::references;
use super::state::AdminState;
use crate::schema::is_secret_reference;
use crate::secrets::Vaults;
use crate::{IncrementalModel, Options};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use weir_dialect::SecretSyntax;
use weir_model::{Model, PluginInstance, PluginRef};

/// The id of the route that a document is translated for which only routes use.
const TRIAL: &str = "trial";

/// What is to be said of documents that are about to be stored.
pub fn warnings(
    state: &AdminState,
    changes: &[(String, Option<Value>)],
    options: &AdminOptions,
) -> Vec<String> {
    let written: BTreeMap<&str, &Value> = changes
        .iter()
        .filter(|(key, _)| Kind::of_key(key).is_some())
        .filter_map(|(key, value)| Some((key.as_str(), value.as_ref()?)))
        .collect();
    if written.is_empty() {
        return Vec::new();
    }
    let (model, skipped) = translated(state, &written, options);
    let own = skipped
        .into_iter()
        .filter(|it| written.contains_key(&*it.document));
    let mut found: Vec<String> = own.map(|it| it.reason).collect();
    let vaults = vaults(state, &written);
    for instance in instances(&model).filter(|it| is_of(it, &written)) {
        let name = instance.id.rsplit('/').next().unwrap_or_default();
        let references = secret_references(&instance.config);
        if references.is_empty() {
            let check = &options.plugin_check;
            let findings = check.findings(&instance.name, &instance.config, crate::NAME);
            found.extend(
                findings
                    .iter()
                    .map(|it| format!("plugins.{name}: {}", it.message)),
            );
        }
        // The values of variables are those of the gateways.
        let located = references
            .iter()
            .map(|it| (it, vaults.locate(it, &|_| None).err()));
        found.extend(located.filter_map(|(it, error)| Some(format!("plugins.{name}: {it}: {}", error?))));
    }
    found
}

/// The vaults that are described, those that are about to be stored included.
fn vaults(state: &AdminState, written: &BTreeMap<&str, &Value>) -> Vaults {
    let mut vaults = Vaults::default();
    let stored = state.of_kind(Kind::Secret).map(|it| (&*it.key, &it.value));
    for (key, value) in stored.chain(written.iter().map(|(key, value)| (*key, *value))) {
        // Keys of other kinds are not taken.
        vaults.apply(key, Some(value.to_string().as_bytes()));
    }
    vaults
}

/// What the translation makes of documents, with what it says of them.
fn translated(
    state: &AdminState,
    written: &BTreeMap<&str, &Value>,
    options: &AdminOptions,
) -> (Model, Vec<weir_dialect::SkippedDocument>) {
    let mut model = IncrementalModel::new(Options {
        router: options.router,
        settings: options.settings,
        ..Options::default()
    });
    let mut apply = |key: &str, value: &Value| model.apply(key, Some(value.to_string().as_bytes()));
    for entry in state.of_kind(Kind::PluginMetadata) {
        apply(&entry.key, &entry.value);
    }
    let mut known: BTreeSet<String> = written.keys().map(|key| (*key).to_owned()).collect();
    let mut due: Vec<String> = written
        .iter()
        .flat_map(|(key, value)| references(key, value))
        .collect();
    while let Some(key) = due.pop() {
        if known.insert(key.clone())
            && let Some(entry) = state.get(&key)
        {
            apply(&key, &entry.value);
            due.extend(references(&key, &entry.value));
        }
    }
    for (key, value) in written {
        apply(key, value);
        if let Some(route) = trial_route(key) {
            let id = route["id"].as_str().unwrap_or_default();
            apply(&format!("routes/{id}"), &route);
        }
    }
    model.model()
}

/// A route that uses a document which is translated for routes only.
fn trial_route(key: &str) -> Option<Value> {
    let (collection, id) = key.split_once('/')?;
    let route = format!("{TRIAL}-{collection}-{id}");
    match Kind::of_key(key)? {
        Kind::Service => Some(json!({"id": route, "uri": "/", "service_id": id})),
        Kind::Upstream => Some(json!({"id": route, "uri": "/", "upstream_id": id})),
        Kind::PluginConfig => {
            let upstream = json!({"nodes": {"127.0.0.1:1": 1}});
            Some(json!({"id": route, "uri": "/", "plugin_config_id": id, "upstream": upstream}))
        }
        _ => None,
    }
}

fn instances(model: &Model) -> impl Iterator<Item = &PluginInstance> {
    let routes = model.routes.iter().flat_map(|route| &route.plugins);
    let streams = model.stream_routes.iter().flat_map(|route| &route.plugins);
    let inline = routes.chain(streams).filter_map(|step| match &step.plugin {
        Some(PluginRef::Inline(instance)) => Some(&**instance),
        _ => None,
    });
    model.plugins.iter().chain(inline)
}

/// Whether an instance stands in one of the documents: its id begins with the key.
fn is_of(instance: &PluginInstance, written: &BTreeMap<&str, &Value>) -> bool {
    let key = instance.id.rsplit_once('/').map(|(key, _)| key);
    key.is_some_and(|key| written.contains_key(key))
}

/// The references to secrets in a configuration.
fn secret_references(config: &Value) -> Vec<&str> {
    match config {
        Value::String(text) if is_secret_reference(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(secret_references).collect(),
        Value::Object(fields) => fields.values().flat_map(secret_references).collect(),
        _ => Vec::new(),
    }
}
