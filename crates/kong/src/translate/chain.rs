//! Chains: which instance of each plugin runs for a call, and in which order.
//!
//! Of each plugin one instance runs, the most specific: of route, service and consumer before route and consumer,
//! service and consumer, route and service, consumer, route, service, and last the global one. What belongs to a
//! consumer stands in tables. A table for consumers alone is shared by all routes.

use crate::document::{Document, Entity, Plugin};
use crate::plugins::{DEFINITIONS, Definition};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;
use weir_model::{ChainStep, ConsumerTable, Diagnostic, PluginInstance, PluginUse};

/// What an instance belongs to, consumers aside.
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
struct Instances<'d> {
    definition: &'static Definition,
    /// For everybody.
    plain: HashMap<Scope, &'d Plugin>,
    /// For consumers: the id of the table.
    tables: HashMap<Scope, String>,
}

/// The instances of a document, and what chains share of them.
pub struct Chains<'d> {
    /// By descending priority; only plugins that have instances.
    plugins: Vec<Instances<'d>>,
    /// Configurations for the catalogue, by instance.
    configs: HashMap<Uuid, Value>,
    shared: Vec<PluginInstance>,
    tables: Vec<ConsumerTable>,
}

impl<'d> Chains<'d> {
    /// Sorts all instances that are enabled by plugin and scope.
    pub fn translate(document: &'d Document, found: &mut Vec<Diagnostic>) -> Self {
        let mut chains = Self {
            plugins: Vec::new(),
            configs: HashMap::new(),
            shared: Vec::new(),
            tables: Vec::new(),
        };
        let consumers = consumer_finder(document);
        for definition in by_priority() {
            let mut instances = Instances {
                definition,
                plain: HashMap::new(),
                tables: HashMap::new(),
            };
            let mut by_consumer: Vec<(Scope, BTreeMap<String, Option<String>>)> = Vec::new();
            for Entity { place, value: plugin } in &document.plugins {
                if plugin.name != definition.name || !plugin.enabled {
                    continue;
                }
                match (definition.translate)(&plugin.config, &consumers) {
                    Ok(config) => {
                        chains.configs.insert(plugin.id, config);
                    }
                    Err(unfit) => {
                        let place = place.field("config").field(unfit.field);
                        found.push(Diagnostic::error(place, unfit.to_string()));
                        continue;
                    }
                }
                let scope = Scope {
                    route: plugin.route,
                    service: plugin.service,
                };
                let Some(consumer) = plugin.consumer else {
                    instances.plain.insert(scope, plugin);
                    continue;
                };
                let entry = (consumer.to_string(), Some(plugin.id.to_string()));
                match by_consumer.iter_mut().find(|(known, _)| *known == scope) {
                    Some((_, table)) => {
                        table.insert(entry.0, entry.1);
                    }
                    None => by_consumer.push((scope, BTreeMap::from([entry]))),
                }
                chains.share(definition, plugin.id);
            }
            if instances.plain.is_empty() && by_consumer.is_empty() {
                continue;
            }
            for (scope, table) in by_consumer {
                let id = table_id(definition.name, scope);
                instances.tables.insert(scope, id.clone());
                chains.tables.push(ConsumerTable { id, instances: table });
            }
            chains.share_wide(&instances);
            chains.plugins.push(instances);
        }
        chains
    }

    /// Instances for more than one route are shared, so that they have one state.
    fn share_wide(&mut self, instances: &Instances<'d>) {
        let mut wide: Vec<&Plugin> = instances
            .plain
            .iter()
            .filter(|(scope, _)| scope.route.is_none())
            .map(|(_, plugin)| *plugin)
            .collect();
        wide.sort_by_key(|plugin| plugin.id);
        for plugin in wide {
            self.share(instances.definition, plugin.id);
        }
    }

    fn share(&mut self, definition: &Definition, id: Uuid) {
        let instance = self.instance(definition, id);
        self.shared.push(instance);
    }

    fn instance(&self, definition: &Definition, id: Uuid) -> PluginInstance {
        PluginInstance {
            id: id.to_string(),
            name: definition.catalogue_name.to_owned(),
            config: self.configs.get(&id).cloned().unwrap_or_default(),
            when: None,
            on_refusal: None,
        }
    }

    /// The chain of a route.
    pub fn steps(&self, route: Uuid, service: Option<Uuid>) -> Vec<ChainStep> {
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
        for instances in &self.plugins {
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
                .filter_map(|scope| instances.tables.get(&scope?).cloned())
                .collect();
            if base.is_some() || !overrides.is_empty() {
                steps.push(ChainStep {
                    plugin: base.map(|plugin| self.used(instances.definition, plugin)),
                    overrides,
                    ..ChainStep::default()
                });
            }
        }
        steps
    }

    fn used(&self, definition: &Definition, plugin: &Plugin) -> PluginUse {
        match plugin.route {
            Some(_) => PluginUse::Inline(Box::new(self.instance(definition, plugin.id))),
            None => PluginUse::Shared(plugin.id.to_string()),
        }
    }

    /// The chain for calls that match no route: of global instances the original does the response work only.
    pub fn unmatched(&self) -> Vec<ChainStep> {
        self.plugins
            .iter()
            .filter_map(|instances| instances.plain.get(&Scope::EVERYTHING))
            .map(|plugin| ChainStep {
                response_only: true,
                ..ChainStep::shared(plugin.id.to_string())
            })
            .collect()
    }

    /// The shared instances and the tables.
    pub fn into_parts(self) -> (Vec<PluginInstance>, Vec<ConsumerTable>) {
        (self.shared, self.tables)
    }
}

fn by_priority() -> Vec<&'static Definition> {
    let mut definitions: Vec<&'static Definition> = DEFINITIONS.iter().collect();
    definitions.sort_by_key(|definition| std::cmp::Reverse(definition.priority));
    definitions
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

/// Finds consumers by user name or id.
fn consumer_finder(document: &Document) -> impl Fn(&str) -> Option<String> + use<> {
    let mut ids: HashMap<String, String> = HashMap::new();
    for Entity { value: consumer, .. } in &document.consumers {
        let id = consumer.id.to_string();
        if let Some(username) = &consumer.username {
            ids.entry(username.clone()).or_insert_with(|| id.clone());
        }
        ids.insert(id.clone(), id);
    }
    move |name| ids.get(name).cloned()
}
