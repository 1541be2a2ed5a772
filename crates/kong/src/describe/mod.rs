//! Descriptions of entities and plugins for clients: their schemas, in Kong's form.

mod rows;
mod schema_only;

use crate::document::common::PROTOCOLS;
use crate::document::entity_type::entity_type;
use crate::document::secret::{ENVIRONMENT, HASHICORP};
use crate::plugins::{Definition, all};
use crate::schema::{Field, Kind, Record, print};
use serde_json::{Map, Value, json};

/// The schema of an entity by the name of its entity type; `None`: there is no such entity type.
pub fn entity(name: &str) -> Option<Value> {
    let record = entity_type(name)
        .map(|entity_type| entity_type.record)
        .or_else(|| schema_only::record(name))?;
    let mut schema = print::record(record);
    if let Some(Value::Array(fields)) = schema.get_mut("fields") {
        // The life of a key is no field of it for the original, though it is written like one.
        fields.retain(|field| field.get("ttl").is_none());
        for field in fields.iter_mut() {
            refine(name, field);
        }
        if name == "certificates" {
            fields.push(json!({ "snis": {
                "type": "array",
                "elements": { "type": "string" },
                "transient": true,
            } }));
        }
    }
    Some(schema.into())
}

/// Adds the original's facts about fields that have nothing to do with their values.
fn refine(entity_type: &str, field: &mut Value) {
    let Some((name, held)) = field.as_object_mut().and_then(|it| it.iter_mut().next()) else {
        return;
    };
    match (entity_type, name.as_str()) {
        ("plugins", "route" | "service" | "consumer") => held["default"] = Value::Null,
        ("plugins" | "routes", "protocols") => {
            held["elements"]["one_of"] = json!(PROTOCOLS);
            if entity_type == "routes" {
                held["len_min"] = json!(1);
            }
        }
        // It depends on the vault.
        ("vaults", "config") => *held = json!({ "type": "record", "abstract": true }),
        ("upstreams", "healthchecks") => fill_defaults(held),
        _ => {}
    }
}

/// Adds the default of a record, and of those inside of it, as a whole.
fn fill_defaults(record: &mut Value) {
    let mut defaults = Map::new();
    for field in record["fields"].as_array_mut().into_iter().flatten() {
        let Some((name, held)) = field.as_object_mut().and_then(|it| it.iter_mut().next()) else {
            continue;
        };
        if held["type"] == "record" {
            fill_defaults(held);
        }
        if let Some(default) = held.get("default") {
            defaults.insert(name.clone(), default.clone());
        }
    }
    record["default"] = defaults.into();
}

/// The schema of a plugin by its name; `None`: there is no such plugin.
pub fn plugin(name: &str) -> Option<Value> {
    let definition = all().find(|definition| definition.name == name)?;
    let mut fields: Vec<Value> = Vec::new();
    for scope in definition.closed_scopes() {
        fields.push(json!({ *scope: {
            "type": "foreign",
            "reference": format!("{scope}s"),
            "eq": null,
        } }));
    }
    fields.push(json!({ "protocols": {
        "type": "set",
        "required": true,
        "default": definition.standard_protocols(),
        "elements": { "type": "string", "one_of": definition.protocols() },
    } }));
    fields.push(json!({ "config": config(definition) }));
    Some(json!({ "entity_checks": print::checks(definition.checks), "fields": fields }))
}

/// The schema of a plugin's configuration alone.
pub fn plugin_config(name: &str) -> Option<Value> {
    all().find(|definition| definition.name == name).map(config)
}

/// The fields of a plugin's configuration, as rows of a table.
pub fn plugin_fields(name: &str) -> Vec<weir_dialect::plugin_fields::Field> {
    rows::of_record(&plugin_config(name).unwrap_or_default())
}

/// The schema of a vault by its name; `None`: there is no such vault.
pub fn vault(name: &str) -> Option<Value> {
    let record = match name {
        "env" => &ENVIRONMENT,
        "hcv" => &HASHICORP,
        _ => return None,
    };
    let printed = print::field(&Field::new("config", Kind::Record(record)).required());
    Some(json!({ "entity_checks": [], "fields": [{ "config": printed }] }))
}

fn config(definition: &Definition) -> Value {
    let mut config = json!({
        "type": "record",
        "required": true,
        "fields": print::fields(&definition.config),
    });
    if !definition.config.checks.is_empty() {
        config["entity_checks"] = print::checks(definition.config.checks);
    }
    for (former, record, field) in definition.shorthands {
        let (parent, former_name) = former.rsplit_once('.').unwrap_or(("", former));
        let path: Vec<&str> = record
            .split('.')
            .filter(|it| !it.is_empty())
            .chain([*field])
            .collect();
        let mut printed = described_at(&definition.config, &path);
        if field.is_empty() {
            printed.insert("type".to_owned(), "number".into());
        }
        if !record.is_empty() {
            let inside: Vec<&str> = path[parent.split('.').filter(|it| !it.is_empty()).count()..].to_vec();
            printed.insert(
                "deprecation".to_owned(),
                json!({
                    "removal_in_version": "4.0",
                    "replaced_with": [{ "path": inside }],
                    "message": format!(
                        "{}: config.{former} is deprecated, please use config.{} instead",
                        definition.name,
                        path.join(".")
                    ),
                }),
            );
        }
        add_shorthand(&mut config, parent, json!({ former_name: printed }));
    }
    config
}

/// The description of the field at a path: its type, and whether it may be empty.
fn described_at(record: &Record, path: &[&str]) -> Map<String, Value> {
    let Some((first, rest)) = path.split_first() else {
        return Map::new();
    };
    match record.field(first) {
        Some(field) if rest.is_empty() => {
            let mut printed = print::field(field);
            printed.retain(|name, _| matches!(name.as_str(), "type" | "len_min" | "elements"));
            printed
        }
        Some(field) => match field.kind {
            Kind::Record(inner) => described_at(inner, rest),
            _ => Map::new(),
        },
        None => Map::new(),
    }
}

/// Adds a former name to the record at a path with dots.
fn add_shorthand(config: &mut Value, path: &str, shorthand: Value) {
    let mut record = config;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let fields = record["fields"].as_array_mut();
        let found = fields.and_then(|fields| fields.iter_mut().find_map(|field| field.get_mut(step)));
        match found {
            Some(found) => record = found,
            None => return,
        }
    }
    match record.get_mut("shorthand_fields").and_then(Value::as_array_mut) {
        Some(list) => list.push(shorthand),
        None => record["shorthand_fields"] = json!([shorthand]),
    }
}
