//! Schemas of OpenAPI 2.0 and 3.0 in the form of JSON Schema 2020-12, which 3.1 uses.

use super::Format;
use serde_json::{Map, Value, json};

/// Turns a schema, and all that are in it, into the form of OpenAPI 3.1.
pub fn modernise(schema: &mut Value, format: Format) {
    if format > Format::V3_0 {
        return;
    }
    let Value::Object(map) = schema else { return };
    // Of a reference, nothing else counts before 3.1.
    if let Some(target @ Value::String(_)) = map.get("$ref") {
        *schema = json!({ "$ref": target });
        return;
    }
    nullable(map);
    exclusive(map, "minimum", "exclusiveMinimum");
    exclusive(map, "maximum", "exclusiveMaximum");
    if let Some(example) = map.remove("example") {
        map.entry("examples").or_insert_with(|| json!([example]));
    }
    if map.get("type").and_then(Value::as_str) == Some("file") {
        map.insert("type".to_owned(), "string".into());
        map.insert("format".to_owned(), "binary".into());
    }
    for (name, below) in map.iter_mut() {
        match (name.as_str(), below) {
            ("properties", Value::Object(all)) => all.values_mut().for_each(|it| modernise(it, format)),
            ("allOf" | "oneOf" | "anyOf", Value::Array(all)) => {
                all.iter_mut().for_each(|it| modernise(it, format));
            }
            ("items" | "not" | "additionalProperties", below) => modernise(below, format),
            _ => {}
        }
    }
}

fn nullable(map: &mut Map<String, Value>) {
    let is_nullable = map.remove("nullable").is_some_and(|it| it == true)
        || map.get("x-nullable").is_some_and(|it| *it == true);
    if !is_nullable {
        return;
    }
    if let Some(Value::String(kind)) = map.get("type") {
        let both = json!([kind, "null"]);
        map.insert("type".to_owned(), both);
    }
    if let Some(Value::Array(values)) = map.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// `exclusiveMinimum: true` beside `minimum: 1` is `exclusiveMinimum: 1` today.
fn exclusive(map: &mut Map<String, Value>, bound: &str, word: &str) {
    match map.get(word) {
        Some(Value::Bool(true)) => match map.remove(bound) {
            Some(limit) => map.insert(word.to_owned(), limit),
            None => map.remove(word),
        },
        Some(Value::Bool(false)) => map.remove(word),
        _ => None,
    };
}
