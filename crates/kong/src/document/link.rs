//! The second step of reading: what refers to what, and what is there twice.

use super::entity_type::entity_type;
use super::read::RawEntity;
use crate::schema::{Kind, Problems};
use serde_json::Value;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;
use weir_model::Diagnostic;

/// Reports entities that others of their entity type exclude: the same unique field, or the same id.
pub fn find_doubles(entities: &[RawEntity], problems: &mut Problems) {
    let mut ids: HashSet<(&str, Uuid)> = HashSet::with_capacity(entities.len());
    let mut values: HashSet<(&str, &str, &str)> = HashSet::new();
    for entity in entities {
        let entity_type = entity.entity_type.name;
        let mut double = None;
        for field in entity
            .entity_type
            .record
            .fields
            .iter()
            .filter(|field| field.unique)
        {
            if let Some(Value::String(value)) = entity.fields.get(field.name)
                && !values.insert((entity_type, field.name, value))
            {
                let value = if ["keyauth_credentials", "keyauth_enc_credentials"].contains(&entity_type) {
                    "(hidden)"
                } else {
                    value
                };
                double.get_or_insert_with(|| format!("{} set to '{value}'", field.name));
            }
        }
        if !ids.insert((entity_type, entity.id)) {
            double.get_or_insert_with(|| format!("primary key set to '{}'", entity.id));
        }
        if let Some(double) = double {
            let message =
                format!("uniqueness violation: '{entity_type}' entity with {double} already declared");
            entity.complain(message, problems);
        }
    }
}

/// Replaces every reference by the id of the entity that it leads to, and reports those that lead nowhere.
pub fn resolve(entities: &mut [RawEntity], problems: &mut Problems) {
    // Entities that stand inside of those that they refer to need no names.
    let names = LazyCell::new(|| Names::of(entities));
    let mut found: Vec<(usize, &'static str, Option<Uuid>)> = Vec::new();
    for (index, entity) in entities.iter().enumerate() {
        for field in entity.entity_type.record.fields {
            let Kind::Foreign(target) = field.kind else {
                continue;
            };
            if entity.parent_field == Some(field.name) {
                continue;
            }
            match entity.fields.get(field.name) {
                None | Some(Value::Null) => {}
                Some(value) => found.push((index, field.name, names.find(target, value))),
            }
        }
    }
    for (index, field, id) in found {
        let entity = &mut entities[index];
        match id {
            Some(id) => {
                entity.fields.insert(field, id.to_string().into());
            }
            None if entity.is_broken => {}
            None => {
                let message = dangling(entity, field);
                entity.is_broken = true;
                problems
                    .0
                    .push(Diagnostic::error(entity.place.to_path().field(field), message));
            }
        }
    }
}

fn dangling(entity: &RawEntity, field: &str) -> String {
    let value = entity.fields.get(field).unwrap_or(&Value::Null);
    let is_given_by_name = value.is_string();
    if entity.parent_field.is_some() && is_given_by_name {
        return "value must be null".to_owned();
    }
    let entity_type = match entity.entity_type.record.field(field).map(|field| field.kind) {
        Some(Kind::Foreign(entity_type)) => entity_type,
        _ => "",
    };
    let value = match value {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    };
    format!("invalid reference '{field}: {value}' (no such entry in '{entity_type}')")
}

/// Ids by entity type and by the name that references use.
struct Names<'e> {
    by_key: HashMap<(&'static str, &'e str), Uuid>,
    ids: HashSet<(&'static str, Uuid)>,
}

impl<'e> Names<'e> {
    fn of(entities: &'e [RawEntity]) -> Self {
        let mut names = Self {
            by_key: HashMap::new(),
            ids: HashSet::new(),
        };
        for entity in entities {
            let entity_type = entity.entity_type.name;
            names.ids.insert((entity_type, entity.id));
            let key = entity.entity_type.key.and_then(|key| entity.fields.get(key));
            if let Some(Value::String(key)) = key {
                names.by_key.insert((entity_type, key), entity.id);
            }
        }
        names
    }

    fn find(&self, target: &'static str, value: &Value) -> Option<Uuid> {
        let target = entity_type(target)?.name;
        let text = match value {
            Value::String(text) => {
                if let Some(id) = self.by_key.get(&(target, text.as_str())) {
                    return Some(*id);
                }
                text
            }
            other => other.get("id")?.as_str()?,
        };
        let id = Uuid::try_parse(text).ok()?;
        self.ids.contains(&(target, id)).then_some(id)
    }
}
