//! Which schemas an operation needs: those that it names, and those that these name, up to a bound. Schemas may refer to
//! themselves. Further ones are asked for one by one.

use serde_json::{Map, Value};
use std::collections::{BTreeSet, VecDeque};

/// The prefix of references to schemas.
const SCHEMAS: &str = "#/components/schemas/";
/// Schemas that come with an operation.
const MAX_SCHEMAS: usize = 60;
/// Values of all of them together.
const MAX_VALUES: usize = 20_000;

/// The names of schemas that stand in a value, in their order.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (field, below) in fields {
                match below {
                    Value::String(target) if field == "$ref" => found.extend(name_of(target)),
                    // A discriminator's mapping leads to schemas, too.
                    Value::Object(mapping) if field == "mapping" => {
                        let targets = mapping.values().filter_map(Value::as_str);
                        found.extend(targets.filter_map(name_of));
                    }
                    below => names(below, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|it| names(it, found)),
        _ => {}
    }
}

fn name_of(target: &str) -> Option<String> {
    let name = target.strip_prefix(SCHEMAS)?;
    Some(name.replace("~1", "/").replace("~0", "~"))
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Schemas from these names on, the nearest first, until there are too many.
fn collect(first: Vec<String>, all: &Map<String, Value>) -> Map<String, Value> {
    let mut waiting: VecDeque<String> = first.into();
    let (mut found, mut values) = (Map::new(), 0);
    while let Some(name) = waiting.pop_front() {
        let Some(schema) = all.get(&name).filter(|_| !found.contains_key(&name)) else {
            continue;
        };
        values += size(schema);
        if !found.is_empty() && (found.len() >= MAX_SCHEMAS || values > MAX_VALUES) {
            break;
        }
        let mut named = Vec::new();
        names(schema, &mut named);
        waiting.extend(named);
        found.insert(name, schema.clone());
    }
    found
}

/// The schemas that a value names, with those that they name.
pub fn named_in(value: &Value, all: &Map<String, Value>) -> Map<String, Value> {
    let mut first = Vec::new();
    names(value, &mut first);
    collect(first, all)
}

/// A schema with those that it names.
pub fn from(name: &str, all: &Map<String, Value>) -> Map<String, Value> {
    collect(vec![name.to_owned()], all)
}

/// Whether a value leads to a schema, over however many others.
pub fn leads_to(value: &Value, all: &Map<String, Value>, wanted: &str) -> bool {
    let mut waiting = Vec::new();
    names(value, &mut waiting);
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if name == wanted {
            return all.contains_key(wanted);
        }
        if let Some(schema) = all.get(&name)
            && seen.insert(name)
        {
            names(schema, &mut waiting);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reference(name: &str) -> Value {
        json!({ "$ref": format!("{SCHEMAS}{name}") })
    }

    fn schemas() -> Map<String, Value> {
        let all = json!({
            "Node": { "properties": { "next": reference("Node"), "leaf": reference("Leaf") } },
            "Leaf": { "type": "string" },
            "Other": { "type": "number" },
        });
        all.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn recursion_ends_and_strangers_stay_out() {
        let all = schemas();
        let operation =
            json!({ "responses": { "200": { "content": { "x": { "schema": reference("Node") } } } } });
        let found = named_in(&operation, &all);
        let names: Vec<&String> = found.keys().collect();
        assert_eq!(names, ["Node", "Leaf"]);
        assert!(leads_to(&operation, &all, "Leaf") && !leads_to(&operation, &all, "Other"));
        assert!(!leads_to(&reference("Gone"), &all, "Gone"));
        assert_eq!(from("Other", &all).len(), 1);
    }

    #[test]
    fn long_chains_are_bounded() {
        let all: Map<String, Value> = (0..1_000)
            .map(|it| (format!("S{it}"), reference(&format!("S{}", it + 1))))
            .collect();
        let found = named_in(&reference("S0"), &all);
        assert_eq!(found.len(), MAX_SCHEMAS);
        assert!(leads_to(&reference("S0"), &all, "S999"));
    }
}
