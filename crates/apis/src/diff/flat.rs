//! Schemas made ready to be compared: one level deep, with what stands elsewhere merged into it.

use super::keywords::{BOUNDS, CONDITIONS, covers, kinds_in};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// How deep references and `allOf` are followed.
pub(super) const MAX_DEPTH: usize = 32;
/// Parts that one schema is merged of, by `$ref` and `allOf`.
const MAX_PARTS: usize = 1_000;

/// Words for people.
const TEXTS: [&str; 7] = [
    "title",
    "description",
    "examples",
    "example",
    "default",
    "deprecated",
    "$comment",
];

pub(super) fn name_of(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

/// The schema in `components` that this one refers to, by its name.
pub(super) fn target_of(schema: &Value) -> Option<&str> {
    name_of(schema)?.strip_prefix("#/components/schemas/")
}

pub(super) fn has_reference(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

/// A schema with its references and `allOf` resolved, one level deep. `None`: it has too many parts, as one that is
/// a part of itself twice. The order of the parts does not matter.
pub(super) fn flat(schemas: &Map<String, Value>, schema: &Value) -> Option<Map<String, Value>> {
    let (mut made, mut left) = (Map::new(), MAX_PARTS);
    merge(schemas, schema, &mut made, (0, &mut left));
    if let Some(Value::Array(parts)) = made.get_mut("allOf") {
        parts.sort_by_cached_key(Value::to_string);
        parts.dedup();
    }
    (left > 0).then_some(made)
}

fn merge(
    schemas: &Map<String, Value>,
    schema: &Value,
    made: &mut Map<String, Value>,
    (depth, left): (usize, &mut usize),
) {
    if *schema == Value::Bool(false) {
        made.insert("not".to_owned(), json!({}));
    }
    let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH && *left > 0) else {
        return;
    };
    *left -= 1;
    if let Some(found) = target_of(schema).and_then(|name| schemas.get(name)) {
        merge(schemas, found, made, (depth + 1, left));
    }
    for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        merge(schemas, part, made, (depth + 1, left));
    }
    for (word, value) in map {
        match (word.as_str(), value) {
            ("$ref" | "allOf", _) => {}
            (text, _) if TEXTS.contains(&text) => {}
            ("properties", Value::Object(fields)) => {
                let all = made
                    .entry("properties")
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(all) = all {
                    for (name, value) in fields {
                        let value = all.get(name).map_or_else(|| value.clone(), |it| both(it, value));
                        all.insert(name.clone(), value);
                    }
                }
            }
            ("required", Value::Array(names)) => {
                let all = made.entry("required").or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(all) = all {
                    all.extend(names.iter().filter(|name| name.is_string()).cloned());
                }
            }
            ("const", value) => add(made, "enum", &json!([value])),
            (word, value) => add(made, word, value),
        }
    }
}

/// A schema that allows what both allow.
fn both(one: &Value, other: &Value) -> Value {
    match (one, other) {
        _ if one == other => one.clone(),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (Value::Bool(true), it) | (it, Value::Bool(true)) => it.clone(),
        _ => json!({ "allOf": [one, other] }),
    }
}

/// Adds a word of one part to what others have. Words that cannot be merged stay apart, in `allOf`.
fn add(made: &mut Map<String, Value>, word: &str, value: &Value) {
    let Some(was) = made.get(word).filter(|was| *was != value) else {
        made.insert(word.to_owned(), value.clone());
        return;
    };
    let bound = BOUNDS.iter().find(|(bound, _)| *bound == word);
    let merged = match (word, was, value) {
        ("type", _, _) => narrower_type(was, value),
        ("enum", Value::Array(some), Value::Array(others)) => {
            Some(some.iter().filter(|it| others.contains(it)).cloned().collect())
        }
        ("items" | "additionalProperties" | "propertyNames", _, _) => Some(both(was, value)),
        _ => bound.and_then(|(_, greater_is_narrower)| {
            let is_greater = value.as_f64()? > was.as_f64()?;
            Some(
                if is_greater == *greater_is_narrower {
                    value
                } else {
                    was
                }
                .clone(),
            )
        }),
    };
    let is_condition = CONDITIONS.iter().any(|it| it.words.contains(&word));
    match merged {
        Some(merged) => {
            made.insert(word.to_owned(), merged);
        }
        None if is_condition || ["oneOf", "anyOf", "type", "pattern", "multipleOf"].contains(&word) => {
            // Which of both comes first does not depend on the order of the parts.
            let texts = (value.to_string(), was.to_string());
            let (first, second) = if texts.0 < texts.1 {
                (value, was)
            } else {
                (was, value)
            };
            let (first, second) = (first.clone(), json!({ word: second }));
            made.insert(word.to_owned(), first);
            if let Value::Array(apart) = made.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
                apart.push(second);
            }
        }
        None => {
            made.insert(word.to_owned(), value.clone());
        }
    }
}

fn narrower_type(one: &Value, other: &Value) -> Option<Value> {
    let (some, others) = (kinds_in(one)?, kinds_in(other)?);
    if covers(Some(&some), Some(&others)) {
        return Some(other.clone());
    }
    covers(Some(&others), Some(&some)).then(|| one.clone())
}

/// A schema without words for people at any depth, its words in the order of the alphabet: two that are
/// written alike mean the same.
pub(super) fn strip_annotations(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(strip_annotations).collect(),
        Value::Object(map) => {
            let words = map.iter().filter(|(word, _)| !TEXTS.contains(&word.as_str()));
            let below = |(word, value): (&String, &Value)| (word.clone(), strip_keyword(word, value));
            sorted(words.map(below))
        }
        other => other.clone(),
    }
}

fn strip_keyword(word: &str, value: &Value) -> Value {
    match (word, value) {
        // Names of fields, which are no words of a schema.
        ("properties" | "patternProperties" | "dependentSchemas" | "$defs", Value::Object(map)) => sorted(
            map.iter()
                .map(|(name, schema)| (name.clone(), strip_annotations(schema))),
        ),
        ("enum" | "const" | "dependentRequired", value) => value.clone(),
        (_, value) => strip_annotations(value),
    }
}

fn sorted(entries: impl Iterator<Item = (String, Value)>) -> Value {
    let sorted: std::collections::BTreeMap<String, Value> = entries.collect();
    sorted.into_iter().collect::<Map<String, Value>>().into()
}

/// The names of the schemas that a value refers to.
pub(super) fn targets<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(map) => {
            found.extend(target_of(value));
            map.values().for_each(|it| targets(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| targets(it, found)),
        _ => {}
    }
}

pub(super) fn required(schema: &Map<String, Value>) -> HashSet<String> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
