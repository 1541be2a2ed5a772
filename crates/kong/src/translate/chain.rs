//! Chains: which instance of each plugin runs for a call, and in which order.
//!
//! Of each plugin one instance runs, the most specific: of route, service and consumer before route and consumer,
//! service and consumer, route and service, consumer, route, service, and last the global one. What belongs to a
//! consumer stands in tables. A table for consumers alone is shared by all routes.

use super::graphql::GraphqlServices;
use super::{agent_documents, forward_proxy, stream};
use crate::document::{
    CaCertificate, Consumer, Document, Entity, Plugin, Route, Service, find_key_set, find_signing_keys,
    find_vault,
};
use crate::plugins::{
    self, CataloguePlugin, Consumers, DEFINITIONS, Definition, GRAPHQL_PLUGINS, prometheus, unreadable,
    unserved,
};
use crate::schema::ItemLocation;
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;
use weir_model::{ChainStep, ConsumerTable, Diagnostic, PluginInstance, PluginRef};
use weir_plugins::SERVICE_LABEL;

/// Plugins whose counts belong to the place of an instance, and not to the instance.
const COUNTED_BY_PLACE: [&str; 2] = ["rate-limiting", "response-ratelimiting"];

/// The owner of an instance, consumers aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Scope {
    route: Option<Uuid>,
    service: Option<Uuid>,
}

impl Scope {
    const EVERYTHING: Self = Self {
        route: None,
        service: None,
    };
}

/// The instances of one plugin.
struct Instances {
    definition: &'static Definition,
    /// For everybody: their ids.
    plain: HashMap<Scope, Uuid>,
    /// For consumers: the position of the table.
    tables: HashMap<Scope, usize>,
    /// Whether some tell others what is written about routes or services.
    tell_documents: bool,
}

/// The instances of a document, and what chains share of them.
pub struct Chains {
    /// By descending priority; only plugins that have instances.
    plugins: Vec<Instances>,
    /// Instances that are not shared.
    own: HashMap<Uuid, PluginInstance>,
    /// The ids of those that refuse calls.
    refusing: HashSet<String>,
    shared: Vec<PluginInstance>,
    tables: Vec<ConsumerTable>,
    /// Whether a chain may be asked for again.
    is_kept: bool,
}

impl Chains {
    /// Sorts all instances that are enabled by plugin and scope.
    pub fn translate(plugins: Vec<Entity<Plugin>>, document: &Document, found: &mut Vec<Diagnostic>) -> Self {
        let consumers = Consumers {
            find: &consumer_finder(&document.consumers),
            authority: &|id| find_authority(&document.ca_certificates, id),
            key_set: &|name| find_key_set(&document.key_sets, &document.keys, name),
            signing_keys: &|name| find_signing_keys(document, name),
            vault: &|name| find_vault(&document.vault_auth_vaults, name),
            // Said for each instance.
            graphql: &Vec::new,
        };
        let services = OnceCell::new();
        Self::collect(plugins, false, |definition, place, plugin| {
            // Taken, so that of many instances the two forms are never in memory at once.
            let config = std::mem::take(&mut plugin.config);
            if let Some(warning) = forward_proxy::warning(plugin, &config, document) {
                let path = place.to_path().field("config").field("https_verify");
                found.push(Diagnostic::warning(path, warning));
            }
            let services = || services.get_or_init(|| GraphqlServices::of(document));
            let consumers = Consumers {
                graphql: &|| services().for_plugin(plugin.service, plugin.route),
                ..consumers
            };
            let translated = match plugins::missing(definition.name, &config, &consumers) {
                Some(missing) => Err(missing),
                None => definition.translated(&config, &consumers),
            };
            if !is_served(definition) {
                let warning = unserved::warning(definition.name, translated.is_err());
                found.push(Diagnostic::warning(place.to_path().field("name"), warning));
            }
            match translated {
                // Some do nothing to calls.
                Ok(Value::Null) => None,
                Ok(config) => Some(CataloguePlugin {
                    name: definition.catalogue_name,
                    config,
                }),
                Err(_) if !is_served(definition) => None,
                Err(unfit) => {
                    let path = unfit.place(&place.to_path());
                    found.push(Diagnostic::error(path, unfit.to_string()));
                    None
                }
            }
        })
    }

    /// Sorts all instances that are enabled by plugin and scope. `make` says what they are in the catalogue; those that are
    /// nothing there are left out. `is_kept`: a route's chain may be asked for more than once.
    pub fn collect(
        mut plugins: Vec<Entity<Plugin>>,
        is_kept: bool,
        mut make: impl FnMut(&'static Definition, &ItemLocation, &mut Plugin) -> Option<CataloguePlugin>,
    ) -> Self {
        let mut chains = Self {
            plugins: Vec::new(),
            own: HashMap::new(),
            refusing: HashSet::new(),
            shared: Vec::new(),
            tables: Vec::new(),
            is_kept,
        };
        for definition in by_priority() {
            let mut instances = Instances {
                definition,
                plain: HashMap::new(),
                tables: HashMap::new(),
                tell_documents: false,
            };
            for Entity { place, value: plugin } in &mut plugins {
                if plugin.name != definition.name || !plugin.enabled {
                    continue;
                }
                if let Some(made) = make(definition, place, plugin) {
                    chains.add(&mut instances, plugin, made);
                }
            }
            if !instances.plain.is_empty() || !instances.tables.is_empty() {
                chains.plugins.push(instances);
            }
        }
        chains
    }

    fn add(&mut self, instances: &mut Instances, plugin: &Plugin, made: CataloguePlugin) {
        if made.name != instances.definition.catalogue_name {
            self.refusing.insert(plugin.id.to_string());
        }
        let scope = Scope {
            route: plugin.route,
            service: plugin.service,
        };
        if made.name == plugins::OPA {
            let tells = |part: &str| made.config[part] == true;
            instances.tell_documents |= tells("route") || tells("service");
        }
        instances.tell_documents |= plugins::reads_documents(&made);
        // Instances for more than one route are shared, so that they have one state.
        let is_placeholder =
            !is_served(instances.definition) || self.refusing.contains(&plugin.id.to_string());
        let made = PluginInstance {
            placeholder_for: is_placeholder.then(|| plugin.name.clone()),
            ..instance(plugin, made)
        };
        if plugin.consumer.is_some() || plugin.route.is_none() {
            self.shared.push(made);
        } else {
            self.own.insert(plugin.id, made);
        }
        let Some(consumer) = plugin.consumer else {
            instances.plain.insert(scope, plugin.id);
            return;
        };
        let table = *instances.tables.entry(scope).or_insert_with(|| {
            self.tables.push(ConsumerTable {
                id: table_id(instances.definition.name, scope),
                instances: BTreeMap::new(),
            });
            self.tables.len() - 1
        });
        self.tables[table]
            .instances
            .insert(consumer.to_string(), Some(plugin.id.to_string()));
    }

    /// The chain of a route of connections or datagrams: the instances of plugins that work on these. There are no
    /// consumers. `None`: one of them cannot be served, so its sessions are refused.
    pub fn stream_steps(&mut self, route: Uuid, service: Option<Uuid>) -> Option<Vec<ChainStep>> {
        let is_served = |definition: &Definition| {
            stream::PLUGINS.contains(&definition.name) || unreadable::is_placeholder(definition)
        };
        let mut steps = self.steps_of(route, service, is_served);
        steps.iter_mut().for_each(|step| step.consumer_overrides.clear());
        steps.retain(|step| step.plugin.is_some());
        let is_refusing = |step: &ChainStep| match &step.plugin {
            Some(PluginRef::Shared(id)) => self.refusing.contains(id),
            Some(PluginRef::Inline(instance)) => self.refusing.contains(&instance.id),
            None => false,
        };
        (!steps.iter().any(is_refusing)).then_some(steps)
    }

    /// The plugins of a route of connections or datagrams that do nothing on these.
    pub fn idle_on_streams(&self, route: Uuid) -> impl Iterator<Item = &'static str> {
        let scope = Scope {
            route: Some(route),
            service: None,
        };
        let own = self
            .plugins
            .iter()
            .filter(move |it| it.plain.contains_key(&scope));
        own.map(|it| it.definition.name)
            .filter(|name| !stream::PLUGINS.contains(name))
    }

    /// A route's labels about itself, its service and its workspace, if that is not the one of calls that name none, for
    /// plugins, if one of those has to know it.
    pub fn labels(
        &self,
        document: &Route,
        of_service: Option<&Service>,
        workspace: Option<&str>,
    ) -> BTreeMap<String, String> {
        let (route, service) = (Some(document.id), document.service);
        let scopes = [
            Scope { route, service: None },
            Scope { route, service },
            Scope { route: None, service },
            Scope::EVERYTHING,
        ];
        let asks = |it: &&Instances| {
            it.definition.catalogue_name == plugins::OAUTH2 || GRAPHQL_PLUGINS.contains(&it.definition.name)
        };
        let is_in = |it: &Instances| {
            let mut scopes = scopes.iter();
            scopes.any(|scope| it.plain.contains_key(scope) || it.tables.contains_key(scope))
        };
        let is_asked = self.plugins.iter().filter(asks).any(is_in);
        let label = service
            .filter(|_| is_asked)
            .map(|id| (SERVICE_LABEL.to_owned(), id.to_string()));
        let mut labels: BTreeMap<String, String> = label.into_iter().collect();
        if self.plugins.iter().any(|it| it.tell_documents && is_in(it)) {
            labels.extend(agent_documents::labels(document, of_service));
        }
        let counts = |it: &&Instances| it.definition.name == prometheus::DEFINITION.name;
        if let Some(workspace) = workspace
            && self.plugins.iter().filter(counts).any(is_in)
        {
            labels.insert(prometheus::WORKSPACE_LABEL.to_owned(), workspace.to_owned());
        }
        labels
    }

    /// The chain of a route.
    pub fn steps(&mut self, route: Uuid, service: Option<Uuid>) -> Vec<ChainStep> {
        self.steps_of(route, service, |_| true)
    }

    fn steps_of(
        &mut self,
        route: Uuid,
        service: Option<Uuid>,
        wanted: impl Fn(&Definition) -> bool,
    ) -> Vec<ChainStep> {
        let of_route = Scope {
            route: Some(route),
            service: None,
        };
        let of_both = service.map(|_| Scope {
            route: Some(route),
            service,
        });
        let of_service = service.map(|_| Scope { route: None, service });
        let mut steps = Vec::new();
        let (own, tables, is_kept) = (&mut self.own, &self.tables, self.is_kept);
        for instances in self.plugins.iter().filter(|it| wanted(it.definition)) {
            let plain = |scope: Option<Scope>| scope.and_then(|scope| instances.plain.get(&scope)).copied();
            let narrow = plain(of_both);
            let base = narrow
                .or_else(|| plain(Some(of_route)))
                .or_else(|| plain(of_service))
                .or_else(|| plain(Some(Scope::EVERYTHING)));
            // An instance of route and service goes before one of the consumer alone.
            let everywhere = narrow.is_none().then_some(Scope::EVERYTHING);
            let overrides: Vec<String> = [of_both, Some(of_route), of_service, everywhere]
                .into_iter()
                .filter_map(|scope| instances.tables.get(&scope?))
                .map(|table| tables[*table].id.clone())
                .collect();
            if base.is_some() || !overrides.is_empty() {
                steps.push(ChainStep {
                    plugin: base.map(|id| used(id, own, is_kept)),
                    consumer_overrides: overrides,
                    ..ChainStep::default()
                });
            }
        }
        steps
    }

    /// The chain for calls that match no route: of global instances the original does the response work only.
    pub fn unmatched(&self) -> Vec<ChainStep> {
        self.plugins
            .iter()
            .filter_map(|instances| instances.plain.get(&Scope::EVERYTHING))
            .map(|id| ChainStep {
                response_only: true,
                ..ChainStep::shared(id.to_string())
            })
            .collect()
    }

    /// The shared instances and the tables, once more.
    pub fn parts(&self) -> (Vec<PluginInstance>, Vec<ConsumerTable>) {
        (self.shared.clone(), self.tables.clone())
    }

    /// The shared instances and the tables.
    pub fn into_parts(self) -> (Vec<PluginInstance>, Vec<ConsumerTable>) {
        (self.shared, self.tables)
    }
}

fn instance(plugin: &Plugin, made: CataloguePlugin) -> PluginInstance {
    PluginInstance {
        id: plugin.id.to_string(),
        state: COUNTED_BY_PLACE
            .contains(&plugin.name.as_str())
            .then(|| place(plugin)),
        name: made.name.to_owned(),
        config: made.config,
        when: None,
        on_refusal: None,
        workspace: None,
        placeholder_for: None,
    }
}

/// What counts belong to: as in the original not to the instance, so that one that is deleted and made again goes on. There is one
/// enabled instance for each of these.
fn place(plugin: &Plugin) -> String {
    let ids = [plugin.route, plugin.service, plugin.consumer];
    let ids = ids.map(|id| id.map_or_else(|| "-".to_owned(), |id| id.to_string()));
    format!("{}/{}", plugin.name, ids.join("/"))
}

/// An instance of a route stands in its chain alone.
fn used(id: Uuid, own: &mut HashMap<Uuid, PluginInstance>, is_kept: bool) -> PluginRef {
    let made = if is_kept {
        own.get(&id).cloned()
    } else {
        own.remove(&id)
    };
    match made {
        Some(made) => PluginRef::Inline(made.into()),
        None => PluginRef::Shared(id.to_string()),
    }
}

fn by_priority() -> Vec<&'static Definition> {
    let mut definitions: Vec<&'static Definition> = plugins::all().chain(unreadable::PLACEHOLDERS).collect();
    definitions.sort_by_key(|definition| std::cmp::Reverse(definition.priority));
    definitions
}

/// Whether the plugin is more than described.
pub fn is_served(definition: &Definition) -> bool {
    DEFINITIONS.iter().any(|served| std::ptr::eq(served, definition))
}

fn table_id(plugin: &str, scope: Scope) -> String {
    let mut id = format!("{plugin} by consumer");
    if let Some(route) = scope.route {
        id.push_str(&format!(", route {route}"));
    }
    if let Some(service) = scope.service {
        id.push_str(&format!(", service {service}"));
    }
    id
}

/// Finds the certificate of an authority, in PEM.
pub fn find_authority(authorities: &[Entity<CaCertificate>], id: &str) -> Option<String> {
    let id = Uuid::try_parse(id).ok()?;
    let found = authorities.iter().find(|it| it.value.id == id)?;
    Some(found.value.cert.clone())
}

/// Finds consumers by user name or id.
pub fn consumer_finder(consumers: &[Entity<Consumer>]) -> impl Fn(&str) -> Option<String> + use<> {
    let mut ids: HashMap<String, String> = HashMap::new();
    for Entity { value: consumer, .. } in consumers {
        let id = consumer.id.to_string();
        if let Some(username) = &consumer.username {
            ids.entry(username.clone()).or_insert_with(|| id.clone());
        }
        ids.insert(id.clone(), id);
    }
    move |name| ids.get(name).cloned()
}
