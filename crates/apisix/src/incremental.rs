//! From the documents of a store to the model, incrementally.
//!
//! [`IncrementalModel`] receives each document as it changes, reads it once, and makes a model of all that are good.
//! What was read and translated before is kept: after a change, only what the change is about is translated again. A
//! document that cannot be served is left out and named; it never stops the rest.

pub mod missing_plugins;

use crate::admin::Kind;
use crate::document::{
    Documents, Item, Route, Ssl, check_route, consumer_group_shape, consumer_shape, cost_decoration,
    credential_shape, global_rule_shape, id_text, name_upstreams, plugin_config_shape, proto, read_one,
    route_shape, service_shape, ssl, stream_route, upstream_rules, upstream_shape,
};
use crate::plugins::{Checker, PluginLocation};
use crate::schema::Schema;
use crate::settings::Settings;
use crate::translate::Options;
use crate::translate::incremental::TranslationCache;
use missing_plugins::MissingPlugins;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use weir_dialect::SkippedDocument;
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, DocPath, Model, Severity};

/// The documents of a store, as they were read.
pub struct IncrementalModel {
    options: Options,
    /// Each list is sorted by id.
    documents: Documents,
    memory: TranslationCache,
    /// Why documents are left out, by key.
    unread: BTreeMap<String, String>,
    /// The parts that translating documents had to leave out, by key.
    untranslated: BTreeMap<String, BTreeSet<String>>,
    /// Plugins that documents use and Weir lacks, by key.
    lacks: BTreeMap<String, MissingPlugins>,
}

impl IncrementalModel {
    /// No documents yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            documents: Documents::default(),
            memory: TranslationCache::default(),
            unread: BTreeMap::new(),
            untranslated: BTreeMap::new(),
            lacks: BTreeMap::new(),
        }
    }

    /// Takes over what has become of a document; `None`: it is gone. `key` is without the dialect's prefix.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        let Some(kind) = Kind::of_key(key) else {
            return;
        };
        self.unread.remove(key);
        self.untranslated.remove(key);
        self.lacks.remove(key);
        self.forget(kind, key);
        let Some(bytes) = value else {
            self.remove(kind, key);
            return;
        };
        if let Err(reason) = self.read(kind, key, bytes) {
            self.remove(kind, key);
            // That it lacks a plugin matters only if calls are refused for it.
            if self.lacks.get(key).is_some_and(|lack| !lack.refuses) {
                self.lacks.remove(key);
            }
            self.unread.insert(key.to_owned(), reason);
        }
    }

    /// The model of all documents that can be served, and those that cannot.
    pub fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let mut diagnostics = Vec::new();
        let lacks = &self.lacks;
        let refuses = |prefix: &str, id: &str| {
            let lack = lacks.get(&format!("{prefix}/{id}"));
            lack.is_some_and(|lack| lack.refuses)
        };
        let all_refuse = lacks
            .iter()
            .any(|(key, lack)| lack.refuses && key.starts_with("global_rules/"));
        let is_refused = |item: &Item<Box<Route>>| {
            let route = &item.value;
            let by = |prefix, id: &Option<crate::document::Id>| {
                id.as_ref().is_some_and(|id| refuses(prefix, &id.0))
            };
            all_refuse
                || refuses("routes", &item.id)
                || by("services", &route.service_id)
                || by("plugin_configs", &route.plugin_config_id)
        };
        let model = self
            .memory
            .model(&self.documents, &self.options, &is_refused, &mut diagnostics);
        for diagnostic in diagnostics {
            if let Some((key, reason)) = broken(&diagnostic) {
                self.untranslated.entry(key).or_default().insert(reason);
            }
        }
        (model, self.broken())
    }

    fn broken(&self) -> Vec<SkippedDocument> {
        let unread = self.unread.iter().map(|(key, reason)| (key, reason.clone()));
        let untranslated = self
            .untranslated
            .iter()
            .flat_map(|(key, reasons)| reasons.iter().map(move |reason| (key, reason.clone())));
        let lacks = self.lacks.iter().map(|(key, lack)| (key, lack.to_string()));
        unread
            .chain(untranslated)
            .chain(lacks)
            .map(|(key, reason)| SkippedDocument {
                document: key.clone(),
                reason,
            })
            .collect()
    }

    /// Forgets what was translated of a document, and of those that depend on it.
    fn forget(&mut self, kind: Kind, key: &str) {
        let id = id_of(kind, key);
        match kind {
            Kind::Route => self.memory.forget_route(id),
            Kind::Service => {
                self.memory.forget_upstream(key);
                self.memory.forget_plugins(&format!("{key}/"));
                self.forget_routes_that(|route| is(&route.service_id, id));
                self.forget_costs();
            }
            Kind::Upstream => {
                self.memory.forget_upstream(key);
                self.forget_costs();
                if self.documents.have_shared_plugins_that_name_upstreams() {
                    self.memory.forget_plugins_and_routes();
                }
                let services: BTreeSet<String> = self
                    .documents
                    .services
                    .iter()
                    .filter(|service| is(&service.value.upstream_id, id))
                    .map(|service| service.id.clone())
                    .collect();
                self.forget_routes_that(|route| {
                    let service = route.service_id.as_ref();
                    is(&route.upstream_id, id)
                        || service.is_some_and(|service| services.contains(&service.0))
                        || name_upstreams(&route.plugins)
                });
            }
            Kind::PluginConfig => {
                self.memory.forget_plugins(&format!("{key}/"));
                self.forget_routes_that(|route| is(&route.plugin_config_id, id));
            }
            Kind::Consumer | Kind::Credential | Kind::ConsumerGroup => self.memory.forget_consumers(),
            Kind::GlobalRule => {
                self.memory.forget_plugins(&format!("{key}/"));
                self.memory.forget_routes();
            }
            // Any plugin may name one.
            Kind::PluginMetadata | Kind::Proto | Kind::CostDecoration => self.forget_all_plugins(),
            Kind::Ssl => {
                let known = self.documents.ssls.iter().find(|ssl| ssl.id == id);
                if known.is_none_or(|ssl| ssl.value.kind == "client") {
                    self.memory.forget_client_certificates();
                }
            }
            Kind::StreamRoute | Kind::Secret => {}
        }
    }

    /// All plugins depend on something that is another one.
    fn forget_all_plugins(&mut self) {
        self.memory.forget_plugins_and_routes();
        for reasons in self.untranslated.values_mut() {
            reasons.retain(|reason| !reason.starts_with("plugins."));
        }
        self.untranslated.retain(|_, reasons| !reasons.is_empty());
    }

    /// Plugins get the costs of GraphQL together with the addresses of the services' schemas.
    fn forget_costs(&mut self) {
        if !self.documents.graphql_costs.is_empty() {
            self.forget_all_plugins();
        }
    }

    fn forget_routes_that(&mut self, depend: impl Fn(&Route) -> bool) {
        for item in &self.documents.routes {
            if depend(&item.value) {
                self.memory.forget_route(&item.id);
                self.untranslated.remove(&format!("routes/{}", item.id));
            }
        }
    }

    fn remove(&mut self, kind: Kind, key: &str) {
        let id = id_of(kind, key);
        let documents = &mut self.documents;
        match kind {
            Kind::Route => take(&mut documents.routes, id),
            Kind::Service => take(&mut documents.services, id),
            Kind::Upstream => take(&mut documents.upstreams, id),
            Kind::Consumer => take(&mut documents.consumers, id),
            Kind::Credential => {
                let consumer = owner_of(key);
                let credentials = &mut documents.credentials;
                credentials.retain(|(owner, item)| owner != consumer || item.id != id);
            }
            Kind::ConsumerGroup => take(&mut documents.consumer_groups, id),
            Kind::PluginConfig => take(&mut documents.plugin_configs, id),
            Kind::GlobalRule => take(&mut documents.global_rules, id),
            Kind::PluginMetadata => {
                documents.metadata.shift_remove(id);
            }
            Kind::Ssl => take(&mut documents.ssls, id),
            Kind::StreamRoute => take(&mut documents.stream_routes, id),
            Kind::Proto => {
                documents.protos.remove(id);
            }
            Kind::CostDecoration => {
                let costs = &mut documents.graphql_costs;
                if let Some(of_service) = costs.get_mut(owner_of(key)) {
                    of_service.remove(id);
                }
                costs.retain(|_, of_service| !of_service.is_empty());
            }
            Kind::Secret => {}
        }
    }

    fn read(&mut self, kind: Kind, key: &str, bytes: &[u8]) -> Result<(), String> {
        let mut value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        crate::expiry::strip(&mut value);
        let Value::Object(mut map) = value else {
            return Err("expected a map".to_owned());
        };
        // The client that put the whole configuration may have counted its items' changes.
        map.shift_remove("modifiedIndex");
        let id = id_of(kind, key);
        if let Some(lack) = MissingPlugins::of(&map) {
            // No consumer is known by it.
            if lack.refuses && kind == Kind::Credential {
                return Err(lack.to_string());
            }
            self.lacks.insert(key.to_owned(), lack);
        }
        let from = (self.options.settings, key);
        let documents = &mut self.documents;
        let request = Some(PluginLocation::Request);
        let consumer = Some(PluginLocation::Consumer);
        match kind {
            Kind::Route => {
                let route = one(from, &map, route_shape(), request, check_route)?;
                put(&mut documents.routes, key, id, route);
            }
            Kind::Service => {
                let service = one(from, &map, service_shape(), request, ssl::check_upstream)?;
                put(&mut documents.services, key, id, service);
            }
            Kind::Upstream => {
                let upstream = one(from, &map, upstream_shape(), None, upstream_rules::check_item)?;
                put(&mut documents.upstreams, key, id, upstream);
            }
            Kind::Consumer => {
                let read = one(from, &map, consumer_shape(), consumer, |_, _| Ok(()))?;
                put(&mut documents.consumers, key, id, read);
            }
            Kind::Credential => {
                let value = one(from, &map, credential_shape(), consumer, |_, _| Ok(()))?;
                let item = item(key, id, value);
                let owner = owner_of(key);
                documents
                    .credentials
                    .retain(|(known, other)| known != owner || other.id != id);
                documents.credentials.push((owner_of(key).to_owned(), item));
                documents
                    .credentials
                    .sort_by(|(one, this), (other, that)| (one, &this.id).cmp(&(other, &that.id)));
            }
            Kind::ConsumerGroup => {
                let group = one(from, &map, consumer_group_shape(), request, |_, _| Ok(()))?;
                put(&mut documents.consumer_groups, key, id, group);
            }
            Kind::PluginConfig => {
                let config = one(from, &map, plugin_config_shape(), request, |_, _| Ok(()))?;
                put(&mut documents.plugin_configs, key, id, config);
            }
            Kind::GlobalRule => {
                let rule = one(from, &map, global_rule_shape(), request, |_, _| Ok(()))?;
                put(&mut documents.global_rules, key, id, rule);
            }
            Kind::PluginMetadata => {
                let mut metadata = Value::Object(map);
                match Checker::new(from.0).check_metadata(id, &mut metadata)? {
                    true => documents.metadata.insert(id.to_owned(), metadata),
                    false => documents.metadata.shift_remove(id),
                };
            }
            Kind::Ssl => {
                let ssl: Ssl = match one(from, &map, ssl::shape(), None, ssl::check) {
                    Ok(ssl) => ssl,
                    Err(reason) => {
                        let refusing = ssl::refusing(&map).ok_or_else(|| reason.clone())?;
                        self.unread.insert(key.to_owned(), ssl::refused(&reason));
                        refusing
                    }
                };
                if ssl.kind == "client" {
                    self.memory.forget_client_certificates();
                }
                put(&mut documents.ssls, key, id, ssl);
            }
            Kind::StreamRoute => {
                let route = one(from, &map, stream_route::shape(), None, ssl::check_upstream)?;
                put(&mut documents.stream_routes, key, id, route);
            }
            Kind::Proto => {
                let proto: proto::Proto = one(from, &map, proto::shape(), None, proto::check)?;
                documents.protos.insert(id.to_owned(), proto.content);
            }
            Kind::CostDecoration => {
                let decoration = one(from, &map, cost_decoration::shape(), None, |_, _| Ok(()))?;
                let costs = documents.graphql_costs.entry(owner_of(key).to_owned());
                costs.or_default().insert(id.to_owned(), decoration);
            }
            Kind::Secret => {}
        }
        Ok(())
    }
}

impl weir_dialect::IncrementalModel for IncrementalModel {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        Self::model(self)
    }
}

/// The id of a document: what stands last in its key.
fn id_of(_: Kind, key: &str) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

/// The consumer of a credential, or the service of a decoration, by its key.
fn owner_of(key: &str) -> &str {
    key.split('/').nth(1).unwrap_or_default()
}

fn is(reference: &Option<crate::document::Id>, id: &str) -> bool {
    reference.as_ref().is_some_and(|reference| reference.0 == id)
}

fn place(key: &str) -> DocPath {
    DocPath(vec![PathStep::Field(key.to_owned())])
}

fn item<T>(key: &str, id: &str, value: T) -> Item<T> {
    Item {
        id: id.to_owned(),
        path: place(key),
        value,
    }
}

fn one<T: DeserializeOwned>(
    (settings, key): (&'static Settings, &str),
    map: &Map<String, Value>,
    shape: &Schema,
    side: Option<PluginLocation>,
    check: fn(&Map<String, Value>, &DocPath) -> Result<(), crate::document::ItemError>,
) -> Result<T, String> {
    // A number in the place of an id is one that a text would be too.
    let mut map = map.clone();
    if let Some(id) = map.get("id").and_then(id_text) {
        map.insert("id".to_owned(), Value::String(id));
    }
    read_one(&mut Checker::new(settings), &map, &place(key), shape, side, check)
        .map_err(|(path, message)| message_at(&path, &message))
}

fn put<T>(items: &mut Vec<Item<T>>, key: &str, id: &str, value: T) {
    let item = item(key, id, value);
    match items.binary_search_by(|known| known.id.as_str().cmp(id)) {
        Ok(at) => items[at] = item,
        Err(at) => items.insert(at, item),
    }
}

fn take<T>(items: &mut Vec<Item<T>>, id: &str) {
    if let Ok(at) = items.binary_search_by(|known| known.id.as_str().cmp(id)) {
        items.remove(at);
    }
}

/// The key of the document that a diagnostic is about, and what it says; `None`: everything is served.
fn broken(diagnostic: &Diagnostic) -> Option<(String, String)> {
    match (diagnostic.severity, diagnostic.path.0.first()) {
        (Severity::Error | Severity::Dropped, Some(PathStep::Field(key))) => {
            Some((key.clone(), message_at(&diagnostic.path, &diagnostic.message)))
        }
        _ => None,
    }
}

/// A message with its place inside of the document.
fn message_at(path: &DocPath, message: &str) -> String {
    match path.0.get(1..) {
        Some(inside) if !inside.is_empty() => format!("{}: {message}", DocPath(inside.to_vec())),
        _ => message.to_owned(),
    }
}
