//! Stand-ins for plugins of a store that cannot be read, and for groups of consumers that cannot: they refuse the calls for
//! which the plugin would have worked.
//!
//! Such a plugin may decide who gets in, so calls must not pass as if it was not there. One whose place cannot be read
//! counts as global. **What it is not**: files are refused as a whole; nothing here is for them.

use super::{Consumers, Definition, PluginSupport, UnsupportedOption, known};
use crate::document::Plugin;
use crate::schema::Record;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Those of which not even the name can be read, or is not known.
pub static PLACEHOLDERS: &[Definition] = &[
    // Before all others.
    placeholder("(unreadable)", i32::MAX),
    // Those of consumers know them only after the last plugin that authenticates.
    placeholder("(unreadable, of a consumer)", 999),
];

const fn placeholder(name: &'static str, priority: i32) -> Definition {
    Definition {
        name,
        priority,
        config: Record::of(&[]),
        checks: &[],
        shorthands: &[],
        on_consumers: true,
        catalogue_name: "",
        translate: nothing,
    }
}

fn nothing(_: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(Value::Null)
}

/// Whether a definition is one of these.
pub fn is_placeholder(definition: &Definition) -> bool {
    PLACEHOLDERS.iter().any(|it| std::ptr::eq(it, definition))
}

/// The stand-in for a plugin's document that cannot be read; `None`: calls may pass without it.
pub fn plugin(id: Uuid, value: &[u8]) -> Option<Plugin> {
    let fields = serde_json::from_slice(value).unwrap_or_default();
    let name = text(&fields, "name").map(known);
    let definition = match name {
        Some(PluginSupport::Yes(definition)) => Some(definition),
        _ => None,
    };
    let is_missed = definition.is_none_or(|it| !weir_plugins::is_skippable(it.catalogue_name));
    let is_enabled = fields.get("enabled") != Some(&Value::Bool(false));
    let mut plugin = of_consumer(id, &fields);
    (plugin.route, plugin.service) = (reference(&fields, "route"), reference(&fields, "service"));
    if let Some(definition) = definition {
        definition.name.clone_into(&mut plugin.name);
    }
    (is_missed && is_enabled).then_some(plugin)
}

/// The stand-in for the document of a consumer's group that cannot be read: it may be one that is kept out.
pub fn group(id: Uuid, value: &[u8]) -> Plugin {
    of_consumer(id, &serde_json::from_slice(value).unwrap_or_default())
}

fn of_consumer(id: Uuid, fields: &Map<String, Value>) -> Plugin {
    let consumer = reference(fields, "consumer");
    Plugin {
        id,
        name: PLACEHOLDERS[usize::from(consumer.is_some())].name.to_owned(),
        route: None,
        service: None,
        consumer,
        config: Value::Null,
        enabled: true,
    }
}

fn text<'f>(fields: &'f Map<String, Value>, name: &str) -> Option<&'f str> {
    fields.get(name)?.as_str()
}

fn reference(fields: &Map<String, Value>, name: &str) -> Option<Uuid> {
    let reference = fields.get(name)?;
    let id = reference.as_str().or_else(|| reference.get("id")?.as_str())?;
    Uuid::try_parse(id).ok()
}
