//! The faults of a configuration, entity by entity, in the form that the original has for those who ask for it.

use crate::document::entity_type::{ENTITY_TYPES, EntityType, entity_type};
use crate::schema::Kind;
use serde_json::{Map, Value, json};

/// The field under which complaints about an entity as a whole stand.
const WHOLE: &str = "@entity";

/// Moves the complaints about entities out of `fields` into a list. `document` is what they are about.
pub fn flatten(document: &Value, fields: &mut Value) -> Vec<Value> {
    let mut flattened = Vec::new();
    let Value::Object(fields) = fields else {
        return flattened;
    };
    let mut names: Vec<String> = fields.keys().cloned().collect();
    names.sort();
    for name in names {
        let (Some(entity_type), Some(entities)) = (entity_type(&name), document[&name].as_array()) else {
            continue;
        };
        let Some(Value::Array(complaints)) = fields.get(&name) else {
            continue;
        };
        for (index, message) in complaints.iter().enumerate() {
            if let Some(entity @ Value::Object(_)) = entities.get(index) {
                add(entity_type, entity.clone(), message.clone(), &mut flattened);
            }
        }
        fields.remove(&name);
    }
    flattened
}

/// Adds what is wrong with an entity, and with those that stand inside of it.
fn add(entity_type: &'static EntityType, mut entity: Value, message: Value, flattened: &mut Vec<Value>) {
    let mut complaints = match message {
        Value::String(text) => Map::from_iter([(WHOLE.to_owned(), json!([text]))]),
        Value::Object(complaints) => complaints,
        _ => return,
    };
    let key = key_of(&entity);
    for field in entity_type.record.fields {
        let Kind::Foreign(target) = field.kind else {
            continue;
        };
        let Some(value @ Value::Object(_)) = entity.get(field.name) else {
            continue;
        };
        let inner = value.clone();
        match key_of(&inner) {
            Some(key) => entity[field.name] = key,
            None => {
                remove(&mut entity, field.name);
            }
        }
        let message = complaints.remove(field.name);
        if let (Some(target), Some(message)) = (crate::document::entity_type::entity_type(target), message) {
            add(target, inner, message, flattened);
        }
    }
    for child in ENTITY_TYPES {
        let Some((child, foreign)) = entity_type.child(child.name) else {
            continue;
        };
        let Some(Value::Array(members)) = entity.get(child.name) else {
            continue;
        };
        let members = members.clone();
        remove(&mut entity, child.name);
        let Some(Value::Array(inner)) = complaints.remove(child.name) else {
            continue;
        };
        for (mut member, message) in members.into_iter().zip(inner) {
            if let (Value::Object(fields), Some(key)) = (&mut member, &key) {
                fields.entry(foreign).or_insert_with(|| key.clone());
            }
            if member.is_object() {
                add(child, member, message, flattened);
            }
        }
    }
    let errors = categorize(&complaints, "");
    if errors.is_empty() {
        return;
    }
    flattened.push(described(entity_type, entity, errors));
}

fn remove(entity: &mut Value, field: &str) {
    if let Value::Object(fields) = entity {
        fields.remove(field);
    }
}

fn key_of(entity: &Value) -> Option<Value> {
    let id = entity.get("id")?.as_str()?;
    super::super::path::uuid(id).map(|_| json!({ "id": id }))
}

fn described(entity_type: &EntityType, entity: Value, errors: Vec<Value>) -> Value {
    let mut described = Map::new();
    if let Some(name) = entity
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
    {
        described.insert("entity_name".to_owned(), name.into());
    }
    if let Some(Value::Object(key)) = key_of(&entity) {
        described.insert("entity_id".to_owned(), key["id"].clone());
    }
    if let Some(Value::Array(tags)) = entity.get("tags")
        && tags.iter().all(Value::is_string)
    {
        described.insert("entity_tags".to_owned(), tags.clone().into());
    }
    let kind = entity_type.name.strip_suffix('s').unwrap_or(entity_type.name);
    described.insert("entity_type".to_owned(), kind.into());
    described.insert("entity".to_owned(), without_empty_lists(entity));
    described.insert("errors".to_owned(), errors.into());
    Value::Object(described)
}

/// For the original an empty list is an empty record too.
fn without_empty_lists(value: Value) -> Value {
    match value {
        Value::Array(items) if items.is_empty() => json!({}),
        Value::Array(items) => items.into_iter().map(without_empty_lists).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_empty_lists(value)))
            .collect(),
        other => other,
    }
}

fn categorize(complaints: &Map<String, Value>, place: &str) -> Vec<Value> {
    let mut errors = Vec::new();
    let mut names: Vec<&String> = complaints.keys().collect();
    names.sort();
    for name in names {
        let at = if place.is_empty() {
            name.clone()
        } else {
            format!("{place}.{name}")
        };
        if name == WHOLE {
            let messages = complaints[name].as_array().map_or(&[][..], Vec::as_slice);
            errors.extend(
                messages
                    .iter()
                    .map(|message| json!({ "type": "entity", "message": message })),
            );
        } else {
            categorize_value(&complaints[name], &at, &mut errors);
        }
    }
    errors
}

fn categorize_value(problem: &Value, at: &str, errors: &mut Vec<Value>) {
    match problem {
        Value::Object(inner) => errors.extend(categorize(inner, at)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_null()) {
                categorize_value(item, &format!("{at}.{}", index + 1), errors);
            }
        }
        Value::Null => {}
        message => errors.push(json!({ "type": "field", "field": at, "message": message })),
    }
}
