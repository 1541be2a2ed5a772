//! Plugin chains of a `weir.yaml`.
//!
//! A plugin instance is a map with the plugin's name as a key and the configuration as its value
//! (`rate-limit: {…}`), or with `name` and `config`; `id`, `when` and `on_refusal` may stand beside. A chain
//! step is an instance, or `use`, with the step's own fields beside.

use super::reader::{Reader, kind, only};
use crate::messages::closest;
use crate::shorthand::{FIELDS, PLUGINS};
use serde_json::{Map, Value, json};
use weir_model::{ChainStep, DocPath, PluginInstance, PluginRef};

impl Reader {
    /// The chain in the map's `plugins`.
    pub(super) fn chain(&mut self, map: &Map<String, Value>, place: &DocPath) -> Vec<ChainStep> {
        let items = self.list(map, "plugins", place);
        if items.is_empty() {
            return Vec::new();
        }
        let steps = place.field("plugins");
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.step(item, &steps.index(index)))
            .collect()
    }

    /// One step of a chain.
    pub(super) fn step(&mut self, value: &Value, place: &DocPath) -> Option<ChainStep> {
        let map = self.map(value, place)?;
        let plugin = match map.get("use") {
            Some(used) => {
                if !self.check_fields(map, place, &FIELDS.step) {
                    return None;
                }
                Some(self.used(used, &place.field("use"))?)
            }
            None if is_table_step(map) => None,
            None => {
                let instance = self.instance_beside(map, place, &FIELDS.step)?;
                Some(PluginRef::Inline(instance.into()))
            }
        };
        let own = only(map, |key| {
            key != "use" && FIELDS.step.iter().any(|field| field == key)
        });
        let step = self.typed::<ChainStep>(&Value::Object(own), place)?;
        Some(ChainStep { plugin, ..step })
    }

    fn used(&mut self, value: &Value, place: &DocPath) -> Option<PluginRef> {
        match value {
            Value::String(id) => Some(PluginRef::Shared(id.clone())),
            Value::Object(_) => self
                .instance(value, place)
                .map(|instance| PluginRef::Inline(instance.into())),
            other => {
                let message = format!(
                    "expected the id of a shared plugin, or a plugin, found {}",
                    kind(other)
                );
                self.error(place.clone(), message);
                None
            }
        }
    }

    /// A plugin instance that stands alone.
    pub(super) fn instance(&mut self, value: &Value, place: &DocPath) -> Option<PluginInstance> {
        let map = self.map(value, place)?;
        self.instance_beside(map, place, &[])
    }

    /// A plugin instance in a map that may have the fields `beside` too.
    fn instance_beside(
        &mut self,
        map: &Map<String, Value>,
        place: &DocPath,
        beside: &[String],
    ) -> Option<PluginInstance> {
        let (name, config) = self.plugin_of(map, place, beside)?;
        let mut own = only(map, |key| {
            FIELDS.instance.iter().any(|field| field == key) && key != "config"
        });
        own.insert("name".to_owned(), Value::from(name));
        let instance = self.typed::<PluginInstance>(&Value::Object(own), place)?;
        Some(PluginInstance { config, ..instance })
    }

    /// The plugin's name and configuration, in whichever form they are written.
    fn plugin_of(
        &mut self,
        map: &Map<String, Value>,
        place: &DocPath,
        beside: &[String],
    ) -> Option<(String, Value)> {
        let is_field = |key: &&String| FIELDS.instance.contains(key) || beside.contains(key);
        let plugins: Vec<&String> = map.keys().filter(|key| !is_field(key)).collect();
        if map.contains_key("name") {
            let fields: Vec<String> = FIELDS.instance.iter().chain(beside).cloned().collect();
            let is_known = self.check_fields(map, place, &fields);
            let name = self.text(map, "name", place)?;
            let is_plugin = self.check_plugin(name, &place.field("name"), &[]);
            let config = map.get("config").map_or_else(|| json!({}), config_of);
            return (is_known && is_plugin).then(|| (name.to_owned(), config));
        }
        match plugins.as_slice() {
            [name] => {
                let mut fields: Vec<&str> =
                    FIELDS.instance.iter().chain(beside).map(String::as_str).collect();
                fields.retain(|field| !matches!(*field, "name" | "config"));
                let is_plugin = self.check_plugin(name, &place.field(name.as_str()), &fields);
                is_plugin.then(|| ((*name).clone(), config_of(&map[name.as_str()])))
            }
            [] => {
                self.error(
                    place.clone(),
                    "expected a plugin's name and its configuration, such as 'cors: {}'",
                );
                None
            }
            [_, second, ..] => {
                let message = "expected one plugin in an item of the list: begin the next with '- '";
                self.error(place.field(second.as_str()), message);
                None
            }
        }
    }

    fn check_plugin(&mut self, name: &str, place: &DocPath, fields: &[&str]) -> bool {
        let plugins = &PLUGINS.all;
        if plugins.contains(&name) {
            return true;
        }
        let candidates: Vec<&str> = plugins.iter().chain(fields).copied().collect();
        let guess = closest(name, &candidates).map(|meant| format!("did you mean '{meant}'? "));
        let message = format!(
            "no plugin is named '{name}': {}Expected one of {}",
            guess.unwrap_or_default(),
            plugins.join(", ")
        );
        self.error(place.clone(), message);
        false
    }
}

/// A step that runs something for the consumers of a table only.
fn is_table_step(map: &Map<String, Value>) -> bool {
    map.contains_key("overrides") && map.keys().all(|key| FIELDS.step.contains(key))
}

/// A plugin that is written without a configuration has an empty one.
fn config_of(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        config => config.clone(),
    }
}
