//! From a parsed document to typed resources, leaving out what is wrong.

use super::consumer::{Consumer, Credential, consumer_shape, credential_of, credential_shape};
use super::item::{Item, ItemError};
use super::plugin_set::{PluginSet, consumer_group_shape, global_rule_shape, plugin_config_shape};
use super::{
    CostDecoration, Plugins, Route, SECTIONS, Service, Ssl, StreamRoute, Upstream, id_text, ignored_sections,
    proto, route, service, ssl, stream_route, upstream, upstream_rules,
};
use crate::plugins::{Checker, PluginLocation};
use crate::schema::Schema;
use crate::settings::Settings;
use crate::translate::vars;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, DocPath};

/// All good resources of a document, in its order.
#[derive(Debug, Default)]
pub struct Documents {
    /// In boxes, so that each gives its memory back as soon as it is translated.
    pub routes: Vec<Item<Box<Route>>>,
    pub services: Vec<Item<Service>>,
    pub upstreams: Vec<Item<Upstream>>,
    pub consumers: Vec<Item<Consumer>>,
    /// With the ids of their consumers.
    pub credentials: Vec<(String, Item<Credential>)>,
    pub consumer_groups: Vec<Item<PluginSet>>,
    pub plugin_configs: Vec<Item<PluginSet>>,
    pub global_rules: Vec<Item<PluginSet>>,
    pub ssls: Vec<Item<Ssl>>,
    pub stream_routes: Vec<Item<StreamRoute>>,
    /// Protocol Buffers definitions by id.
    pub protos: BTreeMap<String, String>,
    /// The GraphQL costs of services: decorations by their ids, by the ids of services.
    pub graphql_costs: BTreeMap<String, BTreeMap<String, CostDecoration>>,
    /// Metadata of plugins by plugin name.
    pub metadata: Map<String, Value>,
}

impl Documents {
    /// Shows everything that has plugins, but stream routes, to `look`. `routes` are given: a translation takes them
    /// out.
    pub fn each_with_plugins<'d>(
        &'d self,
        routes: impl Iterator<Item = &'d Item<Box<Route>>>,
        mut look: impl FnMut(&'d DocPath, &'d Plugins),
    ) {
        routes.for_each(|it| look(&it.path, &it.value.plugins));
        self.services
            .iter()
            .for_each(|it| look(&it.path, &it.value.plugins));
        self.consumers
            .iter()
            .for_each(|it| look(&it.path, &it.value.plugins));
        self.credentials
            .iter()
            .for_each(|(_, it)| look(&it.path, &it.value.plugins));
        let sets = [&self.plugin_configs, &self.consumer_groups, &self.global_rules];
        sets.into_iter()
            .flatten()
            .for_each(|it| look(&it.path, &it.value.plugins));
    }
}

impl Documents {
    /// Whether plugins that several routes share name upstreams.
    pub fn have_shared_plugins_that_name_upstreams(&self) -> bool {
        let mut found = false;
        self.each_with_plugins(std::iter::empty(), |_, plugins| found |= name_upstreams(plugins));
        found
    }
}

/// Whether one of the plugins names upstreams.
pub fn name_upstreams(plugins: &Plugins) -> bool {
    plugins.contains_key("traffic-split")
}

/// Reads all resources. Reports what is left out, and what is not served, in `diagnostics`.
pub fn read(document: &Value, settings: &'static Settings, diagnostics: &mut Vec<Diagnostic>) -> Documents {
    let mut reader = Reader {
        document,
        diagnostics,
        checker: Checker::new(settings),
    };
    reader.report_unknown_sections();
    reader.report_unserved_sections();
    let mut documents = Documents {
        metadata: reader.metadata(),
        protos: reader.protos(),
        ssls: reader.ssls(),
        upstreams: reader.items("upstreams", upstream::shape(), None, upstream_rules::check_item),
        services: reader.items(
            "services",
            service::shape(),
            Some(PluginLocation::Request),
            ssl::check_upstream,
        ),
        plugin_configs: reader.plugin_items("plugin_configs", plugin_config_shape(), PluginLocation::Request),
        consumer_groups: reader.plugin_items(
            "consumer_groups",
            consumer_group_shape(),
            PluginLocation::Request,
        ),
        global_rules: reader.plugin_items("global_rules", global_rule_shape(), PluginLocation::Request),
        routes: reader.items(
            "routes",
            route::shape(),
            Some(PluginLocation::Request),
            check_route,
        ),
        // Their plugins are checked when they are translated: they are others than those of calls.
        stream_routes: reader.items("stream_routes", stream_route::shape(), None, ssl::check_upstream),
        ..Documents::default()
    };
    reader.consumers(&mut documents);
    documents
}

/// Checks a route beyond its shape.
///
/// # Errors
/// In APISIX's words.
pub fn check_route(route: &Map<String, Value>, place: &DocPath) -> Result<(), ItemError> {
    match route
        .get("vars")
        .and_then(Value::as_array)
        .map(|vars| vars::check(vars))
    {
        Some(Err(error)) => Err((
            place.field("vars"),
            format!("failed to validate the 'vars' expression: {error}"),
        )),
        _ => ssl::check_upstream(route, place),
    }
}

/// Reads one item: checks its shape, its plugins (`side` says how; `None`: it has none) and what else must hold, and
/// fills in defaults.
///
/// # Errors
/// What is wrong with it.
pub fn read_one<T: DeserializeOwned>(
    checker: &mut Checker,
    map: &Map<String, Value>,
    place: &DocPath,
    shape: &Schema,
    side: Option<PluginLocation>,
    check: fn(&Map<String, Value>, &DocPath) -> Result<(), ItemError>,
) -> Result<T, ItemError> {
    let mut value = given(map);
    fill_empty_plugins(&mut value);
    forget_nulls(&mut value);
    shape.check(&mut value).map_err(|error| (place.clone(), error))?;
    if let Value::Object(map) = &mut value {
        if let (Some(side), Some(Value::Object(plugins))) = (side, map.get_mut("plugins")) {
            let place = place.field("plugins");
            for (name, config) in plugins.iter_mut() {
                checker
                    .check(name, config, side)
                    .map_err(|error| (place.field(name.as_str()), error))?;
            }
        }
        check(map, place)?;
    }
    T::deserialize(value).map_err(|error| (place.clone(), error.to_string()))
}

/// The fields of an item. A client that writes the whole configuration may have counted the item's changes in it.
fn given(map: &Map<String, Value>) -> Value {
    let mut map = map.clone();
    map.shift_remove("modifiedIndex");
    Value::Object(map)
}

/// Items of which the last with an id counts, in the place of the first.
struct DuplicatePolicy<T> {
    items: Vec<Item<T>>,
    by_id: HashMap<String, usize>,
}

impl<T> DuplicatePolicy<T> {
    /// None, with room for so many.
    fn with_capacity(count: usize) -> Self {
        Self {
            items: Vec::with_capacity(count),
            by_id: HashMap::with_capacity(count),
        }
    }

    fn keep(&mut self, item: Item<T>, diagnostics: &mut Vec<Diagnostic>) {
        match self.by_id.get(&item.id) {
            None => {
                self.by_id.insert(item.id.clone(), self.items.len());
                self.items.push(item);
            }
            Some(known) => {
                let known = &mut self.items[*known];
                let message = format!("the id '{}' is given again below; the last one counts", item.id);
                diagnostics.push(Diagnostic::warning(known.path.clone(), message));
                *known = item;
            }
        }
    }
}

struct Reader<'d> {
    document: &'d Value,
    diagnostics: &'d mut Vec<Diagnostic>,
    checker: Checker,
}

impl<'d> Reader<'d> {
    /// The raw items of a list, with their places and what identifies them.
    fn raw(&mut self, section: &'static str) -> Vec<(DocPath, String, &'d Map<String, Value>)> {
        let place = || DocPath::root().field(section);
        let items = match self.document.get(section) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                let message = format!("expected '{section}' to be a list");
                self.diagnostics.push(Diagnostic::dropped(place(), message));
                return Vec::new();
            }
        };
        let mut found = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = DocPath(vec![PathStep::Field(section.to_owned()), PathStep::Index(index)]);
            match item {
                Value::Object(map) => {
                    let named = ["id", "username"].iter().find_map(|key| id_text(map.get(*key)?));
                    let id = named.unwrap_or_else(|| format!("arr_{}", index + 1));
                    found.push((place, id, map));
                }
                _ => {
                    let message = format!(
                        "invalid item data of [{section}/{}], it should be an object",
                        index + 1
                    );
                    self.diagnostics.push(Diagnostic::dropped(place, message));
                }
            }
        }
        found
    }

    fn plugin_items<T: DeserializeOwned>(
        &mut self,
        section: &'static str,
        shape: &Schema,
        side: PluginLocation,
    ) -> Vec<Item<T>> {
        self.items(section, shape, Some(side), |_, _| Ok(()))
    }

    /// The good items of a list; `side` says how their plugins are checked.
    fn items<T: DeserializeOwned>(
        &mut self,
        section: &'static str,
        shape: &Schema,
        side: Option<PluginLocation>,
        check: fn(&Map<String, Value>, &DocPath) -> Result<(), ItemError>,
    ) -> Vec<Item<T>> {
        let raw = self.raw(section);
        let mut kept = DuplicatePolicy::with_capacity(raw.len());
        for (path, id, map) in raw {
            match read_one(&mut self.checker, map, &path, shape, side, check) {
                Ok(value) => kept.keep(Item { id, path, value }, self.diagnostics),
                Err((place, message)) => self.diagnostics.push(Diagnostic::dropped(place, message)),
            }
        }
        kept.items
    }

    /// Certificates; of some that are not good, the names are left.
    fn ssls(&mut self) -> Vec<Item<Ssl>> {
        let raw = self.raw("ssls");
        let mut kept = DuplicatePolicy::with_capacity(raw.len());
        for (path, id, map) in raw {
            let read = read_one(&mut self.checker, map, &path, ssl::shape(), None, ssl::check);
            let value = match read {
                Ok(value) => Some(value),
                Err((place, message)) => {
                    let refusing = ssl::refusing(map);
                    let message = match refusing {
                        Some(_) => ssl::refused(&message),
                        None => message,
                    };
                    self.diagnostics.push(Diagnostic::dropped(place, message));
                    refusing
                }
            };
            if let Some(value) = value {
                kept.keep(Item { id, path, value }, self.diagnostics);
            }
        }
        kept.items
    }

    fn consumers(&mut self, documents: &mut Documents) {
        let (mut consumers, mut credentials) = (
            DuplicatePolicy::with_capacity(0),
            DuplicatePolicy::with_capacity(0),
        );
        for (path, id, map) in self.raw("consumers") {
            let read = if credential_of(&id).is_some() {
                read_one(
                    &mut self.checker,
                    map,
                    &path,
                    credential_shape(),
                    Some(PluginLocation::Consumer),
                    |_, _| Ok(()),
                )
                .map(|value| credentials.keep(Item { id, path, value }, self.diagnostics))
            } else {
                read_one(
                    &mut self.checker,
                    map,
                    &path,
                    consumer_shape(),
                    Some(PluginLocation::Consumer),
                    |_, _| Ok(()),
                )
                .map(|value| consumers.keep(Item { id, path, value }, self.diagnostics))
            };
            if let Err((place, message)) = read {
                self.diagnostics.push(Diagnostic::dropped(place, message));
            }
        }
        for item in credentials.items {
            let Some((consumer, name)) = credential_of(&item.id) else {
                continue;
            };
            let (consumer, id) = (consumer.to_owned(), name.to_owned());
            if consumers.by_id.contains_key(&consumer) {
                documents.credentials.push((consumer, Item { id, ..item }));
            } else {
                let message =
                    format!("failed to get the consumer for the credential: no consumer '{consumer}'");
                self.diagnostics.push(Diagnostic::dropped(item.path, message));
            }
        }
        documents.consumers = consumers.items;
    }

    fn protos(&mut self) -> BTreeMap<String, String> {
        let items: Vec<Item<proto::Proto>> = self.items("protos", proto::shape(), None, proto::check);
        let content = |it: Item<proto::Proto>| (it.id, it.value.content);
        items.into_iter().map(content).collect()
    }

    fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        for (place, id, map) in self.raw("plugin_metadata") {
            let mut value = given(map);
            forget_nulls(&mut value);
            match self.checker.check_metadata(&id, &mut value) {
                Ok(true) => {
                    metadata.insert(id, value);
                }
                Ok(false) => {
                    let message = format!("metadata of plugin \"{id}\" is not served yet");
                    self.diagnostics.push(Diagnostic::warning(place, message));
                }
                Err(message) => self.diagnostics.push(Diagnostic::dropped(place, message)),
            }
        }
        metadata
    }

    fn report_unknown_sections(&mut self) {
        let sections = self.document.as_object().into_iter().flatten();
        for (name, _) in sections.filter(|(name, _)| !SECTIONS.contains(&name.as_str())) {
            let message = format!("'{name}' is not a resource of APISIX; it is passed over");
            self.diagnostics
                .push(Diagnostic::warning(DocPath::root().field(name.as_str()), message));
        }
    }

    fn report_unserved_sections(&mut self) {
        for (section, shape_of) in ignored_sections::SECTIONS {
            for (place, id, map) in self.raw(section) {
                let mut value = given(map);
                forget_nulls(&mut value);
                let checked = match shape_of(&id) {
                    Some(shape) => shape.check(&mut value),
                    None => Err(format!("no kind of '{section}' has the id '{id}'")),
                };
                self.diagnostics.push(match checked {
                    Ok(()) => Diagnostic::warning(place, format!("'{section}' are not served yet")),
                    Err(error) => Diagnostic::dropped(place, error),
                });
            }
        }
        if self.document.get("plugins").is_some_and(|list| !list.is_null()) {
            self.diagnostics.push(Diagnostic::warning(
                DocPath::root().field("plugins"),
                "the list of plugins to load is not served yet: all available ones are",
            ));
        }
    }
}

/// A plugin that is named without a configuration (`key-auth:`) is on, with all its defaults: who writes that
/// wants the plugin, and a call must not slip past it.
fn fill_empty_plugins(value: &mut Value) {
    if let Some(Value::Object(plugins)) = value.get_mut("plugins") {
        for config in plugins.values_mut().filter(|config| config.is_null()) {
            *config = Value::Object(Map::new());
        }
    }
}

/// Takes empty fields out of maps: in APISIX's scripting language a field without a value is not there.
fn forget_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(forget_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_nulls),
        _ => {}
    }
}
