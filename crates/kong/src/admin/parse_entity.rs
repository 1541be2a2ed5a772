//! From what a call brings to the entity that is to be stored: former spellings, values that are made up, defaults, and
//! all checks that need nothing but the entity and what it refers to.

use super::entity_rules;
use super::failure::Failure;
use super::password_hash;
use super::render_entity::{self, definition};
use super::scope::is_reserved;
use super::state::Workspace;
use super::table::foreign_id;
use crate::document::entity_type::{EntityType, entity_type};
use crate::document::workspace::RESERVED;
use crate::document::{adapt, read_plugin_config};
use crate::plugins::Definition;
use crate::schema::{Kind, Location, Problems, RawFields};
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use uuid::Uuid;
use weir_model::unix_time;

/// The purpose of reading a call's entity.
#[derive(Debug, Clone, Copy)]
pub enum Context<'a> {
    /// A new entity, or one that is replaced whole.
    Whole,
    /// A change of the fields that are given.
    Change(&'a Map<String, Value>),
}

/// Reads an entity. `id` is that of the entity, if the call names one.
///
/// # Errors
/// All that is wrong with the entity.
pub fn read(
    entity_type: &'static EntityType,
    mut given: Map<String, Value>,
    id: Option<Uuid>,
    context: Context<'_>,
    workspace: &Workspace,
    now: SystemTime,
) -> Result<Map<String, Value>, Failure> {
    expand(entity_type, &mut given);
    make_up(entity_type, &mut given, id, context, now);
    let mut problems = Problems::default();
    resolve(entity_type, &mut given, workspace, &mut problems)?;
    let old = match context {
        Context::Whole => None,
        Context::Change(old) => Some(old),
    };
    entity_rules::check_given(entity_type, &mut given, old, &mut problems);
    let given = match context {
        Context::Whole => given,
        Context::Change(old) => merge(entity_type, given, old),
    };
    if let Context::Change(old) = context
        && entity_type.is("workspaces")
        && given.get("name") != old.get("name")
    {
        // Its entities are stored below its name.
        problems.error(&Location::ROOT.field("name"), "immutable field cannot be updated");
    }
    if entity_type.is("workspaces")
        && let Some(name) = given.get("name").and_then(Value::as_str)
        && is_reserved(name)
        // Of these the original's own words are said.
        && !RESERVED.contains(&name)
    {
        problems.error(
            &Location::ROOT.field("name"),
            "must not be what a path of the Admin API begins with",
        );
    }
    let mut fields = read_fields(entity_type, &given, &mut problems);
    entity_rules::check(entity_type, &fields, workspace, now, &mut problems);
    if let Some(failure) = Failure::of_problems(&problems) {
        return Err(failure);
    }
    render_entity::keep_nulls(entity_type.record, &given, &mut fields);
    if let Some(definition) = definition(entity_type, &fields)
        && let Some(Value::Object(config)) = fields.get_mut("config")
    {
        if let Some(Value::Object(given)) = given.get("config") {
            render_entity::keep_nulls(&definition.config, given, config);
        }
        render_entity::complete(&definition.config, config);
    }
    render_entity::complete(entity_type.record, &mut fields);
    for field in entity_type.record.fields {
        if let Kind::Foreign(_) = field.kind
            && let Some(value) = fields.get_mut(field.name)
            && let Some(id) = foreign_id(value)
        {
            *value = json!({ "id": id.to_string() });
        }
    }
    Ok(fields)
}

/// Replaces what stands for something else.
fn expand(entity_type: &'static EntityType, given: &mut Map<String, Value>) {
    let mut expanded = RawFields::of(given);
    adapt(entity_type, &mut expanded);
    if let Some(definition) = definition(entity_type, given)
        && let Some(Value::Object(config)) = expanded.get("config")
    {
        let mut config = RawFields::of(config);
        definition.expand(&mut config);
        let config = owned(&config);
        expanded.insert("config", Value::Object(config));
    }
    *given = owned(&expanded);
}

fn owned(given: &RawFields<'_>) -> Map<String, Value> {
    given
        .iter()
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// Generates what the client leaves out: the id, times, and keys of credentials.
fn make_up(
    entity_type: &'static EntityType,
    given: &mut Map<String, Value>,
    id: Option<Uuid>,
    context: Context<'_>,
    now: SystemTime,
) {
    let now = timestamp(entity_type, now);
    let is_whole = matches!(context, Context::Whole);
    let is_absent = |given: &Map<String, Value>, name: &str| given.get(name).is_none_or(Value::is_null);
    for field in entity_type.record.fields {
        let value: Value = match field.name {
            "id" => match id {
                Some(id) => id.to_string().into(),
                None if is_whole && is_absent(given, "id") => Uuid::new_v4().to_string().into(),
                None => continue,
            },
            "updated_at" => now.clone(),
            "created_at" if is_whole && is_absent(given, "created_at") => now.clone(),
            name if is_whole && entity_rules::is_made_up(entity_type, name) && !given.contains_key(name) => {
                password_hash::random_text().into()
            }
            _ => continue,
        };
        given.insert(field.name.to_owned(), value);
    }
    if is_whole && let Some(definition) = definition(entity_type, given) {
        make_up_config(definition, given);
    }
}

/// Generates what the client leaves out in a plugin's configuration.
fn make_up_config(plugin: &Definition, given: &mut Map<String, Value>) {
    for field in plugin.config.fields.iter().filter(|field| field.auto) {
        let config = given.entry("config").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(config) = config
            && config.get(field.name).is_none_or(Value::is_null)
        {
            config.insert(field.name.to_owned(), password_hash::random_text().into());
        }
    }
}

/// Seconds since the Unix epoch; of targets with milliseconds.
fn timestamp(entity_type: &EntityType, now: SystemTime) -> Value {
    if entity_type.is("targets") {
        json!(unix_time::millis(now) as f64 / 1000.0)
    } else {
        unix_time::seconds(now).into()
    }
}

/// Replaces references by names (`{"name": …}`) by ids.
fn resolve(
    entity_type: &'static EntityType,
    given: &mut Map<String, Value>,
    workspace: &Workspace,
    problems: &mut Problems,
) -> Result<(), Failure> {
    for field in entity_type.record.fields {
        let Kind::Foreign(target) = field.kind else {
            continue;
        };
        let Some(value) = given.get_mut(field.name) else {
            continue;
        };
        let resolved = match value {
            Value::Null => continue,
            Value::Object(key) if key.get("id").is_some_and(|id| !id.is_null()) => continue,
            Value::Object(key) => match find_by_name(field.name, target, key, workspace)? {
                None if is_odd(key, target, &Location::ROOT.field(field.name), problems) => Some(Uuid::nil()),
                found => found,
            },
            // What is no record has no id, and will be complained about so.
            _ => None,
        };
        *value = match resolved {
            Some(id) => json!({ "id": id.to_string() }),
            None => Value::Object(Map::new()),
        };
    }
    Ok(())
}

/// Whether there is something to complain of in a reference that names nothing: fields that what it refers to does not
/// have, or not with such values.
fn is_odd(key: &Map<String, Value>, target: &str, place: &Location<'_>, problems: &mut Problems) -> bool {
    let before = problems.0.len();
    let record = entity_type(target).map(|entity_type| entity_type.record);
    for (name, value) in key {
        let place = place.field(name);
        match record.and_then(|record| record.field(name)) {
            None => problems.error(&place, "unknown field"),
            Some(_) if value.is_null() => {}
            Some(field) => {
                field.read(Some(value), &place, problems);
            }
        }
    }
    problems.0.len() > before
}

fn find_by_name(
    field: &str,
    target: &str,
    key: &Map<String, Value>,
    workspace: &Workspace,
) -> Result<Option<Uuid>, Failure> {
    let Some(target) = entity_type(target) else {
        return Ok(None);
    };
    for unique in target.record.fields.iter().filter(|field| field.unique) {
        let Some(Value::String(name)) = key.get(unique.name) else {
            continue;
        };
        return match workspace.table(target).find(unique.name, name) {
            Some(kept) => Ok(Some(kept.id)),
            None => Err(Failure::unresolved(field, unique.name, name, target.name)),
        };
    }
    Ok(None)
}

fn merge(
    entity_type: &'static EntityType,
    given: Map<String, Value>,
    old: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = render_entity::merge(entity_type.record, given.clone(), old);
    // Another plugin has another configuration.
    let is_same = given.get("name").is_none_or(|name| Some(name) == old.get("name"));
    if is_same
        && let Some(definition) = definition(entity_type, &merged)
        && let (Some(Value::Object(upper)), Some(Value::Object(lower))) =
            (given.get("config"), old.get("config"))
    {
        let config = render_entity::merge(&definition.config, upper.clone(), lower);
        merged.insert("config".to_owned(), Value::Object(config));
    }
    merged
}

/// Reads fields by their description, and a plugin's configuration by the plugin's.
fn read_fields(
    entity_type: &'static EntityType,
    given: &Map<String, Value>,
    problems: &mut Problems,
) -> Map<String, Value> {
    let place = Location::ROOT;
    let entries = given.iter().map(|(name, value)| (name.as_str(), value));
    let mut fields = entity_type.record.read(entries, &place, problems);
    if entity_type.is("plugins") {
        read_plugin_config(&mut fields, given.get("config"), false, &place, problems);
    }
    match Value::from(fields) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
