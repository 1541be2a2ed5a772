//! Entities as calls are answered with them: every field there is, those without a value as `null`, and, of a plugin's
//! configuration, former names in addition to those that fields have now.

use crate::document::entity_type::EntityType;
use crate::document::secret::{ENVIRONMENT, HASHICORP, VAULT_CONFIG};
use crate::plugins::{Definition, PluginSupport, known};
use crate::schema::{Field, Kind, Record, record_by_type};
use serde_json::{Map, Value};

/// The fields that calls are answered with; `None`: the entity as it is stored.
pub fn answer(entity_type: &EntityType, fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let definition = definition(entity_type, fields);
    let has_former_names = definition.is_some_and(|definition| !definition.shorthands.is_empty());
    if !has_former_names && is_complete(entity_type.record, fields) {
        return None;
    }
    let mut fields = fields.clone();
    complete(entity_type.record, &mut fields);
    if let Some(definition) = definition
        && let Some(Value::Object(config)) = fields.get_mut("config")
    {
        complete(&definition.config, config);
        definition.add_former_names(config);
    }
    Some(fields)
}

/// The plugin that an instance is of, if it is one that can be used.
pub fn definition(entity_type: &EntityType, fields: &Map<String, Value>) -> Option<&'static Definition> {
    if !entity_type.is("plugins") {
        return None;
    }
    match known(fields.get("name")?.as_str()?) {
        PluginSupport::Yes(definition) => Some(definition),
        PluginSupport::Unavailable(_) | PluginSupport::No => None,
    }
}

fn is_complete(record: &Record, fields: &Map<String, Value>) -> bool {
    record.fields.iter().all(|field| fields.contains_key(field.name))
}

/// Gives every field of a record a value.
pub fn complete(record: &Record, fields: &mut Map<String, Value>) {
    for field in record.fields {
        complete_value(field, fields.entry(field.name).or_insert(Value::Null));
    }
}

fn complete_value(field: &Field, value: &mut Value) {
    match (field.kind, value) {
        (Kind::Record(record), Value::Object(inner)) if std::ptr::eq(record, &VAULT_CONFIG) => {
            // Only one kind of vaults has a token or a place.
            let is_there = HASHICORP
                .fields
                .iter()
                .any(|field| inner.contains_key(field.name));
            let record = if is_there { &HASHICORP } else { &ENVIRONMENT };
            complete(record, inner);
        }
        (Kind::Record(record), Value::Object(inner)) => complete(record, inner),
        (Kind::ByType(records), value) => {
            if let Some(record) = record_by_type(records, value)
                && let Value::Object(inner) = value
            {
                complete(record, inner);
            }
        }
        (Kind::Array(element) | Kind::Set(element), Value::Array(items)) => {
            items.iter_mut().for_each(|item| complete_value(element, item));
        }
        (Kind::Map { values, .. }, Value::Object(inner)) => {
            inner.values_mut().for_each(|value| complete_value(values, value));
        }
        _ => {}
    }
}

/// Makes `null` of the fields that are given as `null` and need no value, which reading has given their defaults.
pub fn keep_nulls(record: &Record, given: &Map<String, Value>, fields: &mut Map<String, Value>) {
    for field in record.fields {
        match (given.get(field.name), field.kind) {
            (Some(Value::Null), _) if !field.required => {
                fields.insert(field.name.to_owned(), Value::Null);
            }
            (Some(Value::Object(given)), Kind::Record(record)) => {
                if let Some(Value::Object(fields)) = fields.get_mut(field.name) {
                    keep_nulls(record, given, fields);
                }
            }
            _ => {}
        }
    }
}

/// Lays fields over others: records are laid over each other field by field, of anything else the upper value counts.
pub fn merge(record: &Record, upper: Map<String, Value>, lower: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = lower.clone();
    for (name, value) in upper {
        let inner = record.field(&name).map(|field| field.kind);
        let value = match (inner, value, lower.get(&name)) {
            (Some(Kind::Record(record)), Value::Object(upper), Some(Value::Object(lower))) => {
                Value::Object(merge(record, upper, lower))
            }
            (_, value, _) => value,
        };
        merged.insert(name, value);
    }
    merged
}
