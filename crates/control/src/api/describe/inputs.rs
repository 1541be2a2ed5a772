//! Schemas of bodies and queries beside those of answers. A type of both has fields that calls may leave out and answers
//! always have, so the two schemas differ: the one of calls is named `…Input` then. No I/O.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

const PREFIX: &str = "#/components/schemas/";

/// Joins the schemas of calls with those of answers. Says which of the former have another name now.
pub fn join(answers: &mut Map<String, Value>, inputs: Map<String, Value>) -> BTreeSet<String> {
    let mut renamed: BTreeSet<String> = inputs
        .iter()
        .filter(|(name, schema)| answers.get(*name).is_some_and(|known| known != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    // A schema that is the same, but refers to one that is not, is another one, too.
    loop {
        let more: Vec<String> = inputs
            .iter()
            .filter(|(name, schema)| {
                answers.contains_key(*name) && !renamed.contains(*name) && refers(schema, &renamed)
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            break;
        }
        renamed.extend(more);
    }
    for (name, mut schema) in inputs {
        rename(&mut schema, &renamed);
        let name = match renamed.contains(&name) {
            true => format!("{name}Input"),
            false => name,
        };
        answers.insert(name, schema);
    }
    renamed
}

/// Gives references the names that `join` gave the schemas.
pub fn rename(value: &mut Value, renamed: &BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && reference
                    .strip_prefix(PREFIX)
                    .is_some_and(|it| renamed.contains(it))
            {
                reference.push_str("Input");
            }
            fields.values_mut().for_each(|it| rename(it, renamed));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| rename(it, renamed)),
        _ => {}
    }
}

fn refers(value: &Value, names: &BTreeSet<String>) -> bool {
    match value {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|it| it.strip_prefix(PREFIX));
            name.is_some_and(|it| names.contains(it)) || fields.values().any(|it| refers(it, names))
        }
        Value::Array(items) => items.iter().any(|it| refers(it, names)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schemas(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("a map")
    }

    #[test]
    fn only_schemas_that_differ_have_two_names() {
        let mut answers = schemas(json!({
            "Same": {"type": "string"},
            "Other": {"required": ["a"]},
            "Holder": {"properties": {"it": {"$ref": "#/components/schemas/Other"}}},
            "Only": {"type": "null"},
        }));
        let inputs = schemas(json!({
            "Same": {"type": "string"},
            "Other": {},
            "Holder": {"properties": {"it": {"$ref": "#/components/schemas/Other"}}},
            "New": {"items": [{"$ref": "#/components/schemas/Holder"}, {"$ref": "#/components/schemas/Same"}]},
        }));
        let renamed = join(&mut answers, inputs);
        assert_eq!(renamed, ["Holder", "Other"].map(str::to_owned).into());
        let expected = schemas(json!({
            "Same": {"type": "string"},
            "Other": {"required": ["a"]},
            "OtherInput": {},
            "Holder": {"properties": {"it": {"$ref": "#/components/schemas/Other"}}},
            "HolderInput": {"properties": {"it": {"$ref": "#/components/schemas/OtherInput"}}},
            "Only": {"type": "null"},
            "New": {"items": [{"$ref": "#/components/schemas/HolderInput"}, {"$ref": "#/components/schemas/Same"}]},
        }));
        assert_eq!(answers, expected);
    }
}
