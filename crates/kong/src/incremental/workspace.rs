//! The documents of a workspace, and what has been made of each.
//!
//! Parts that depend on others are made again when one of them changes: a route when its service does, its chain when a
//! plugin does that may stand in it. All else is kept from one model to the next.

mod routes;
mod streams;
mod unserved;

use super::match_order::{MatchOrder, SortKey};
use super::workspace_scope;
use super::{DEFAULT_WORKSPACE, SkippedDocument, key_of, name_in};
use crate::RouterFlavor;
use crate::document::entity_store::EntityStore;
use crate::document::entity_type::{DEGRAPHQL_ROUTES, EntityType, GRAPHQL_COSTS, SIGNER_KEYS};
use crate::document::{Entity, Plugin, find_key_set, find_signing_keys, find_vault};
use crate::plugins::unserved::{self as unserved_plugins, REFUSED};
use crate::plugins::{CataloguePlugin, Consumers, GRAPHQL_PLUGINS, PluginSupport, acme, known, unreadable};
use crate::schema::ItemLocation;
use crate::translate::chain::{self, Chains};
use crate::translate::graphql::GraphqlServices;
use crate::translate::service::Services;
use crate::translate::{certificate, consumer, dialect_settings};
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;
use weir_model::{Certificate, Consumer, Diagnostic, DocPath, Model, Service, Severity};

/// The documents of a workspace.
pub struct Workspace {
    /// Its name; `None`: it is the one whose resources have the names that they are given.
    prefix: Option<Arc<str>>,
    /// The name again, as keys of matches hold it.
    name: Arc<str>,
    store: EntityStore,
    changed: Invalidation,
    routes: HashMap<Uuid, Route>,
    /// Those of connections and datagrams.
    streams: BTreeSet<Uuid>,
    /// The router for which all was made.
    router: RouterFlavor,
    /// Routes by their services.
    routes_of: HashMap<Uuid, HashSet<Uuid>>,
    services: Vec<Arc<Service>>,
    upstreams: Vec<Arc<weir_model::Upstream>>,
    services_broken: Vec<SkippedDocument>,
    consumers: Vec<Consumer>,
    certificates: Vec<Certificate>,
    /// Configurations of plugins for the catalogue.
    configs: HashMap<Uuid, Config>,
    chains: Option<Chains>,
    plugins_broken: BTreeMap<Uuid, SkippedDocument>,
    /// The stand-ins for plugins and groups that cannot be read, by their ids.
    unreadable: BTreeMap<Uuid, Plugin>,
}

/// The parts that have been made of a route.
#[derive(Default)]
struct Route {
    /// With its chain, and the places of its matches.
    made: Option<Arc<weir_model::Route>>,
    /// The sort keys of its matches.
    keys: Vec<SortKey>,
    broken: Option<SkippedDocument>,
}

/// A plugin's translated configuration.
struct Config {
    made: Result<Value, String>,
    /// Whether calls may pass without it.
    may_be_missed: bool,
    /// Whether consumers may have been looked up for it.
    names_consumers: bool,
    /// Whether authorities may have been looked up for it.
    names_authorities: bool,
    /// Whether keys may have been looked up for it.
    names_keys: bool,
    /// Whether a vault may have been looked up for it.
    names_vault: bool,
    /// Whether the costs and schemas of GraphQL that entities describe are in it.
    tells_graphql: bool,
    /// The route by whose service that has been found.
    route_of_graphql: Option<Uuid>,
}

impl Config {
    /// Whether calls are refused for it.
    fn refuses(&self) -> bool {
        self.made.is_err() && !self.may_be_missed
    }
}

/// Fields of plugins that name sets of keys.
const NAMES_OF_KEY_SETS: [&str; 3] = ["access_token_keyset", "channel_token_keyset", "key_sets"];

/// The parts that are to be made again.
#[derive(Default)]
struct Invalidation {
    routes: HashSet<Uuid>,
    /// Routes that have another service than before.
    moved_routes: HashSet<Uuid>,
    all_routes: bool,
    chains: HashSet<Uuid>,
    all_chains: bool,
    services: bool,
    consumers: bool,
    certificates: bool,
    plugins: bool,
}

impl Workspace {
    /// Without documents.
    pub fn new(name: &str) -> Self {
        Self {
            prefix: (name != DEFAULT_WORKSPACE).then(|| name.into()),
            name: name.into(),
            store: EntityStore::default(),
            changed: Invalidation::default(),
            routes: HashMap::new(),
            streams: BTreeSet::new(),
            router: RouterFlavor::default(),
            routes_of: HashMap::new(),
            services: Vec::new(),
            upstreams: Vec::new(),
            services_broken: Vec::new(),
            consumers: Vec::new(),
            certificates: Vec::new(),
            configs: HashMap::new(),
            chains: None,
            plugins_broken: BTreeMap::new(),
            unreadable: BTreeMap::new(),
        }
    }

    /// Takes over what became of a document.
    ///
    /// # Errors
    /// Why it is left out.
    pub fn apply(
        &mut self,
        entity_type: &'static EntityType,
        id: Uuid,
        value: Option<&[u8]>,
        place: DocPath,
    ) -> Result<(), String> {
        // What comes from a store has its passwords hashed.
        self.store.document.hashed_passwords = true;
        let was_there = self.store.position(entity_type.name, id).is_some();
        let service_before = self.service_of_route(entity_type, id);
        self.note(entity_type, id, false);
        let result = match value {
            Some(value) => self.store.put(entity_type, id, value, place),
            None => {
                self.store.remove(entity_type, id);
                Ok(())
            }
        };
        self.note(entity_type, id, true);
        if self.service_of_route(entity_type, id) != service_before {
            self.changed.moved_routes.insert(id);
        }
        if entity_type.name == "routes" {
            self.note_stream(id);
        }
        let is_there = self.store.position(entity_type.name, id).is_some();
        // Instances for what is not there are left out.
        if was_there != is_there && matches!(entity_type.name, "routes" | "services" | "consumers") {
            self.changed.plugins = true;
        }
        self.note_unreadable(entity_type, id, value.filter(|_| result.is_err()));
        result.map_err(|reason| match self.unreadable.contains_key(&id) {
            true => format!("{reason}; {REFUSED}"),
            false => reason,
        })
    }

    /// Notes what stands in for a document that cannot be read (`None`: it can, or is gone).
    fn note_unreadable(&mut self, entity_type: &EntityType, id: Uuid, value: Option<&[u8]>) {
        let placeholder = match (entity_type.name, value) {
            ("plugins", Some(value)) => unreadable::plugin(id, value),
            ("acls", Some(value)) => Some(unreadable::group(id, value)),
            ("plugins" | "acls", None) => None,
            _ => return,
        };
        let is_new = placeholder.is_some();
        let before = match placeholder {
            Some(plugin) => self.unreadable.insert(id, plugin),
            None => self.unreadable.remove(&id),
        };
        if is_new || before.is_some() {
            self.changed.plugins = true;
            self.changed.all_chains = true;
        }
    }

    /// The service of a route; `None` for other entities.
    fn service_of_route(&self, entity_type: &EntityType, id: Uuid) -> Option<Uuid> {
        (entity_type.name == "routes").then_some(())?;
        let at = self.store.position(entity_type.name, id)?;
        self.store.document.routes[at].value.service
    }

    /// Notes what depends on an entity: as it was, and as it is now.
    fn note(&mut self, entity_type: &EntityType, id: Uuid, is_new: bool) {
        let position = self.store.position(entity_type.name, id);
        let document = &self.store.document;
        match entity_type.name {
            "routes" => {
                self.changed.routes.insert(id);
                let service = position.and_then(|at| document.routes[at].value.service);
                if let Some(service) = service {
                    let routes = self.routes_of.entry(service).or_default();
                    if is_new {
                        routes.insert(id);
                    } else {
                        routes.remove(&id);
                    }
                }
            }
            "services" => {
                self.changed.services = true;
                let routes = self.routes_of.get(&id).into_iter().flatten();
                self.changed.routes.extend(routes);
                self.forget_configs(|config| config.tells_graphql);
            }
            "targets" => {
                self.changed.services = true;
                self.forget_configs(|config| config.tells_graphql);
            }
            GRAPHQL_COSTS | DEGRAPHQL_ROUTES => self.forget_configs(|config| config.tells_graphql),
            "snis" => self.changed.certificates = true,
            "plugins" => {
                self.configs.remove(&id);
                self.changed.plugins = true;
                if let Some(at) = position {
                    let Plugin { route, service, .. } = document.plugins[at].value;
                    match (route, service) {
                        (Some(route), _) => {
                            self.changed.chains.insert(route);
                        }
                        (None, Some(service)) => {
                            let routes = self.routes_of.get(&service).into_iter().flatten();
                            self.changed.chains.extend(routes);
                        }
                        (None, None) => self.changed.all_chains = true,
                    }
                }
            }
            "consumers" => {
                self.changed.consumers = true;
                self.forget_configs(|config| config.names_consumers);
            }
            "upstreams" | "certificates" | "ca_certificates" => {
                self.changed.services = true;
                self.changed.certificates = true;
                self.changed.all_routes = true;
                self.forget_configs(|config| {
                    config.tells_graphql || entity_type.name == "ca_certificates" && config.names_authorities
                });
            }
            "key_sets" | "keys" | SIGNER_KEYS => self.forget_configs(|config| config.names_keys),
            "vault_auth_vaults" => self.forget_configs(|config| config.names_vault),
            _ => self.changed.consumers = true,
        }
    }

    /// Has configurations of plugins made again, and the chains that they may stand in.
    fn forget_configs(&mut self, is_touched: impl Fn(&Config) -> bool) {
        let before = self.configs.len();
        self.configs.retain(|_, config| !is_touched(config));
        if self.configs.len() < before {
            self.changed.plugins = true;
            self.changed.all_chains = true;
        }
    }

    /// Makes again what has changed; the places of matches are decided in `numbers`.
    pub fn prepare(&mut self, router: RouterFlavor, numbers: &mut MatchOrder) {
        self.router = router;
        let moved = std::mem::take(&mut self.changed.moved_routes);
        if !moved.is_empty() {
            self.forget_configs(|config| config.route_of_graphql.is_some_and(|it| moved.contains(&it)));
        }
        let changed = std::mem::take(&mut self.changed);
        self.make_again(&changed, router, numbers);
    }

    /// The model of the workspace, which is prepared; adds what had to be left out to `broken`.
    pub fn model(
        &mut self,
        numbers: &MatchOrder,
        all_are_numbered: bool,
        broken: &mut Vec<SkippedDocument>,
    ) -> Model {
        broken.extend(self.services_broken.iter().cloned());
        broken.extend(self.plugins_broken.values().cloned());
        let (mut plugins, mut consumer_tables) = self.chains.as_ref().map(Chains::parts).unwrap_or_default();
        let unmatched = self.chains.as_ref().map(Chains::unmatched).unwrap_or_default();
        let mut acme = acme::entries(self.store.document.plugins.iter().map(|it| &it.value));
        if let Some(prefix) = &self.prefix {
            workspace_scope::qualify_parts(&mut plugins, &mut consumer_tables, &mut acme, prefix);
        }
        Model {
            weir: 1,
            dialect: crate::NAME,
            certificates: self.certificates.clone(),
            services: self.services.clone(),
            routes: self.collect_routes(numbers, all_are_numbered, broken),
            stream_routes: self.stream_routes(broken),
            upstreams: self.upstreams.clone(),
            consumers: self.consumers.clone(),
            plugins,
            consumer_tables,
            // Global plugins are those of their workspace; calls that match no route are in none.
            unmatched: if self.prefix.is_some() {
                Vec::new()
            } else {
                unmatched
            },
            dialect_settings: vec![dialect_settings()],
            acme,
            ..Model::default()
        }
    }

    fn make_again(&mut self, changed: &Invalidation, router: RouterFlavor, numbers: &mut MatchOrder) {
        if changed.services {
            self.make_services();
        }
        if changed.consumers {
            self.consumers = consumer::translate(&self.store.document, &mut Vec::new());
            if let Some(prefix) = &self.prefix {
                workspace_scope::qualify_consumers(&mut self.consumers, prefix);
            }
        }
        if changed.certificates {
            self.certificates = certificate::translate(&self.store.document);
        }
        let has_other_chains = changed.plugins && self.collect_chains();
        self.make_routes(changed, router, numbers);
        let all = || self.store.document.routes.iter().map(|route| route.value.id);
        let with_chains: Vec<Uuid> = if changed.all_chains || has_other_chains {
            all().collect()
        } else {
            changed.chains.union(&changed.routes).copied().collect()
        };
        for id in with_chains {
            self.make_chain(id);
        }
        if changed.all_routes {
            let ids: Vec<Uuid> = self.store.document.routes.iter().map(|it| it.value.id).collect();
            ids.into_iter().for_each(|id| self.make_chain(id));
        }
    }

    /// Translates all services and upstreams again; what comes out as it was stays the same.
    fn make_services(&mut self) {
        let mut found = Vec::new();
        let made = Services::translate(&self.store.document, &mut found);
        let (mut services, mut upstreams) = (made.services, made.upstreams);
        if let Some(prefix) = &self.prefix {
            services
                .iter_mut()
                .for_each(|it| workspace_scope::qualify_service(Arc::make_mut(it), prefix));
            upstreams
                .iter_mut()
                .for_each(|it| workspace_scope::qualify_upstream(Arc::make_mut(it), prefix));
        }
        keep_equal(&mut services, &self.services, |it| &it.name);
        keep_equal(&mut upstreams, &self.upstreams, |it| &it.name);
        (self.services, self.upstreams) = (services, upstreams);
        self.services_broken = found.iter().filter_map(skipped).collect();
    }

    /// Sorts all instances by plugin and scope again. Returns whether others are left out than before.
    fn collect_chains(&mut self) -> bool {
        let before: Vec<Uuid> = self.plugins_broken.keys().copied().collect();
        self.plugins_broken.clear();
        let document = &self.store.document;
        let mut finder = None;
        let services = OnceCell::new();
        let mut instances: Vec<Entity<Plugin>> = Vec::with_capacity(document.plugins.len());
        let is_there = |entity_type: &str, id: Option<Uuid>| {
            id.is_none_or(|id| self.store.position(entity_type, id).is_some())
        };
        let has_all = |plugin: &Plugin| {
            is_there("services", plugin.service)
                && is_there("routes", plugin.route)
                && is_there("consumers", plugin.consumer)
        };
        for entity in &document.plugins {
            let plugin = &entity.value;
            let config = self.configs.entry(plugin.id).or_insert_with(|| {
                let finder = finder.get_or_insert_with(|| chain::consumer_finder(&document.consumers));
                let find = |name: &str| {
                    let found = finder(name);
                    match &self.prefix {
                        None => found,
                        Some(prefix) => Some(name_in(prefix, found.as_deref().unwrap_or(name))),
                    }
                };
                let services = || services.get_or_init(|| GraphqlServices::of(document));
                let known = Consumers {
                    find: &find,
                    authority: &|id| chain::find_authority(&document.ca_certificates, id),
                    key_set: &|name| find_key_set(&document.key_sets, &document.keys, name),
                    signing_keys: &|name| find_signing_keys(document, name),
                    vault: &|name| find_vault(&document.vault_auth_vaults, name),
                    graphql: &|| services().for_plugin(plugin.service, plugin.route),
                };
                make_config(plugin, &known)
            });
            let has_all = has_all(plugin);
            let is_refused = has_all && plugin.enabled && config.refuses();
            let reason = match &config.made {
                _ if !has_all => Some(DANGLING.to_owned()),
                Err(reason) if is_refused => Some(format!("{reason}; {REFUSED}")),
                Err(reason) => Some(reason.clone()),
                Ok(_) => None,
            };
            if let Some(reason) = reason {
                if let Some(key) = key_of(&entity.place.list) {
                    self.plugins_broken.insert(
                        plugin.id,
                        SkippedDocument {
                            document: key,
                            reason,
                        },
                    );
                }
                if !is_refused {
                    continue;
                }
            }
            instances.push(Entity {
                place: entity.place.clone(),
                value: without_config(plugin),
            });
        }
        let stand_ins = self.unreadable.values().filter(|it| has_all(it));
        instances.extend(stand_ins.map(|plugin| Entity {
            place: ItemLocation {
                list: Arc::new(DocPath::root()),
                index: 0,
            },
            value: without_config(plugin),
        }));
        let configs = &self.configs;
        self.chains = Some(Chains::collect(instances, true, |definition, _, plugin| {
            match configs.get(&plugin.id).map(|it| &it.made) {
                Some(Ok(Value::Null)) => None,
                Some(Ok(config)) => Some(CataloguePlugin {
                    name: definition.catalogue_name,
                    config: config.clone(),
                }),
                // What cannot be served and may be missed is not among the instances.
                Some(Err(_)) | None => Some(unserved_plugins::refusal()),
            }
        }));
        !before.iter().eq(self.plugins_broken.keys())
    }
}

/// An instance by its place alone: what its configuration is in the catalogue is known already.
fn without_config(plugin: &Plugin) -> Plugin {
    Plugin {
        name: plugin.name.clone(),
        config: Value::Null,
        ..*plugin
    }
}

/// What is said of a document that names another that is not there.
const DANGLING: &str = "refers to an entity that is not there";

/// What is said of a route whose service is not there. It stays, as one without a service, so that no other route takes
/// its calls.
fn dangling(place: &DocPath) -> Option<SkippedDocument> {
    key_of(place).map(|key| SkippedDocument {
        document: key,
        reason: DANGLING.to_owned(),
    })
}

/// Puts those that were there before in the places of those that are equal to them, so that a caller that has made something
/// of them sees that they are the same.
fn keep_equal<T: PartialEq>(fresh: &mut [Arc<T>], before: &[Arc<T>], name: fn(&T) -> &String) {
    let before: HashMap<&str, &Arc<T>> = before.iter().map(|it| (name(it).as_str(), it)).collect();
    for it in fresh {
        if let Some(known) = before.get(name(it).as_str())
            && ***known == **it
        {
            *it = Arc::clone(known);
        }
    }
}

fn make_config(plugin: &Plugin, consumers: &Consumers<'_>) -> Config {
    let names_consumers = plugin.config.get("anonymous").is_some_and(Value::is_string);
    let names_authorities = plugin.config.get("ca_certificates").is_some();
    let names_keys = NAMES_OF_KEY_SETS
        .iter()
        .any(|field| plugin.config.get(*field).is_some());
    let names_vault = plugin.config.get("vault").is_some();
    let tells_graphql = GRAPHQL_PLUGINS.contains(&plugin.name.as_str());
    let mut may_be_missed = false;
    let made = match known(&plugin.name) {
        PluginSupport::Yes(definition) => match definition.translated(&plugin.config, consumers) {
            Ok(config) => Ok(config),
            // Kept, and not served.
            Err(_) if !chain::is_served(definition) => Ok(Value::Null),
            Err(unfit) => {
                may_be_missed = weir_plugins::is_skippable(definition.catalogue_name);
                Err(unfit.to_string())
            }
        },
        PluginSupport::Unavailable(_) | PluginSupport::No => {
            Err(format!("there is no plugin \"{}\"", plugin.name))
        }
    };
    Config {
        made,
        may_be_missed,
        names_consumers,
        names_authorities,
        names_keys,
        names_vault,
        tells_graphql,
        route_of_graphql: plugin.route.filter(|_| tells_graphql),
    }
}

fn skipped(found: &Diagnostic) -> Option<SkippedDocument> {
    (found.severity != Severity::Warning).then_some(())?;
    Some(SkippedDocument {
        document: key_of(&found.path)?,
        reason: found.message.clone(),
    })
}
