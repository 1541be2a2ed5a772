//! The warnings in the answer to a write about what is stored and not served as it is written: in a header, so that no
//! one has to look at the gateway's status to learn it. What is found is what the translation finds of the written
//! documents, with those that they refer to, and what the catalogue finds of their plugins.

use super::AdminOptions;
use super::kind::Kind;
use super::references::references;
use super::state::{AdminState, DocumentEntry};
use crate::schema::is_secret_reference;
use crate::secrets::Vaults;
use crate::{IncrementalModel, Options};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_dialect::{PluginCheck, SecretSyntax, SkippedDocument};
use weir_model::{Model, PluginInstance, x509};

/// The id of the route that a document is translated for which only routes use.
const TRIAL: &str = "trial";

/// The changes of a write by key, without the dialect's prefix; `None`: the document is removed.
pub type DocumentChanges = Vec<(String, Option<Value>)>;

/// The warnings of one write, as a job of its own: it holds the documents that it needs, and the state need not be held
/// while they are translated.
pub struct WarningsJob {
    written: BTreeMap<String, Value>,
    /// Applied before what is written, in this order: metadata of plugins, then what is referred to.
    context: Vec<Arc<DocumentEntry>>,
    secrets: Vec<Arc<DocumentEntry>>,
    options: Options,
    plugin_check: PluginCheck,
}

impl WarningsJob {
    /// Takes what is needed out of the state. `None`: there is nothing that could be warned about.
    pub fn new(state: &AdminState, changes: DocumentChanges, options: &AdminOptions) -> Option<Self> {
        let written: BTreeMap<String, Value> = changes
            .into_iter()
            .filter(|(key, _)| Kind::of_key(key).is_some())
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        if written.is_empty() {
            return None;
        }
        let mut context: Vec<_> = state.of_kind(Kind::PluginMetadata).cloned().collect();
        context.extend(referenced(state, &written));
        Some(Self {
            written,
            context,
            secrets: state.of_kind(Kind::Secret).cloned().collect(),
            options: Options {
                router: options.router,
                settings: options.settings,
                ..Options::default()
            },
            plugin_check: options.plugin_check.clone(),
        })
    }

    /// What is to be said of the written documents.
    pub fn run(&self) -> Vec<String> {
        let (model, skipped) = self.translated();
        let own = skipped
            .into_iter()
            .filter(|it| self.written.contains_key(&*it.document));
        let mut found: Vec<String> = own.map(|it| it.reason).collect();
        let certificates = self.written.values().flat_map(certificates);
        found.extend(certificates.filter_map(x509::unserved_key).map(str::to_owned));
        let vaults = self.vaults();
        for instance in model.plugin_instances().filter(|it| self.has(it)) {
            let name = instance.id.rsplit('/').next().unwrap_or_default();
            let references = secret_references(&instance.config);
            if references.is_empty() {
                let check = &self.plugin_check;
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

    /// What the translation makes of the documents, with what it says of them.
    fn translated(&self) -> (Model, Vec<SkippedDocument>) {
        let mut model = IncrementalModel::new(self.options);
        let mut apply = |key: &str, value: &Value| model.apply(key, Some(value.to_string().as_bytes()));
        for entry in &self.context {
            apply(&entry.key, &entry.value);
        }
        for (key, value) in &self.written {
            apply(key, value);
            if let Some(route) = trial_route(key) {
                let id = route["id"].as_str().unwrap_or_default();
                apply(&format!("routes/{id}"), &route);
            }
        }
        model.model()
    }

    /// The vaults that are described.
    fn vaults(&self) -> Vaults {
        let mut vaults = Vaults::default();
        let stored = self.secrets.iter().map(|it| (&*it.key, &it.value));
        let written = self.written.iter().map(|(key, value)| (key.as_str(), value));
        for (key, value) in stored.chain(written) {
            // Keys of other kinds are not taken.
            vaults.apply(key, Some(value.to_string().as_bytes()));
        }
        vaults
    }

    /// Whether an instance stands in one of the written documents: its id begins with the key.
    fn has(&self, instance: &PluginInstance) -> bool {
        let key = instance.id.rsplit_once('/').map(|(key, _)| key);
        key.is_some_and(|key| self.written.contains_key(key))
    }
}

/// The certificates of a document that the gateway shows: to clients, or to upstreams.
fn certificates(value: &Value) -> impl Iterator<Item = &str> {
    let places = ["/cert", "/tls/client_cert", "/upstream/tls/client_cert"];
    let one = places.into_iter().filter_map(move |place| value.pointer(place));
    let further = value.get("certs").and_then(Value::as_array);
    one.chain(further.into_iter().flatten()).filter_map(Value::as_str)
}

/// The stored documents that written ones refer to, and those that these refer to.
fn referenced(state: &AdminState, written: &BTreeMap<String, Value>) -> Vec<Arc<DocumentEntry>> {
    let mut known: BTreeSet<String> = written.keys().cloned().collect();
    let mut due: Vec<String> = written
        .iter()
        .flat_map(|(key, value)| references(key, value))
        .collect();
    let mut found = Vec::new();
    while let Some(key) = due.pop() {
        if known.insert(key.clone())
            && let Some(entry) = state.get(&key)
        {
            due.extend(references(&key, &entry.value));
            found.push(Arc::clone(entry));
        }
    }
    found
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

/// The references to secrets in a configuration.
fn secret_references(config: &Value) -> Vec<&str> {
    match config {
        Value::String(text) if is_secret_reference(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(secret_references).collect(),
        Value::Object(fields) => fields.values().flat_map(secret_references).collect(),
        _ => Vec::new(),
    }
}
