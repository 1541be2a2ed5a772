//! Every plugin of the original at its Admin API: its schema, what it takes with all defaults, and what it refuses in which
//! words. `original/plugins.json` is what an APISIX 3.18.0 answered about its plugins, without its words for people;
//! `original/examples.json` has a small configuration of each.

use crate::api::Api;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Words for people, and what schemas of all plugins have alike.
const DROPPED: &[&str] = &["description", "title", "$comment", "examples", "$schema", "$id"];
/// Members of schemas whose members are names of their own.
const NAMED: &[&str] = &["properties", "patternProperties", "definitions", "dependencies"];

/// Schemas that differ, and why.
const OTHER_SCHEMAS: &[(&str, &str)] = &[];
/// Plugins whose defaults differ, and why.
const OTHER_DEFAULTS: &[(&str, &str)] = &[];
/// Fields that are refused in other words, as `plugin.field`, and why.
const OTHER_WORDS: &[(&str, &str)] = &[];

fn originals() -> Map<String, Value> {
    serde_json::from_str(include_str!("../original/plugins.json")).expect("JSON")
}

fn examples() -> Map<String, Value> {
    serde_json::from_str(include_str!("../original/examples.json")).expect("JSON")
}

/// A schema without words for people.
fn stripped(schema: &Value, is_named: bool) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| match is_named {
                true => name.as_str() != "_meta",
                false => !DROPPED.contains(&name.as_str()),
            });
            let stripped = kept.map(|(name, value)| {
                let value = stripped(value, !is_named && NAMED.contains(&name.as_str()));
                (name.clone(), value)
            });
            Value::Object(stripped.collect())
        }
        Value::Array(items) => items.iter().map(|item| stripped(item, false)).collect(),
        other => other.clone(),
    }
}

/// Where two values differ.
fn compare(ours: &Value, theirs: &Value, place: &str, out: &mut BTreeSet<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            let none = Value::Null;
            for name in names {
                let (one, other) = (ours.get(name).unwrap_or(&none), theirs.get(name).unwrap_or(&none));
                compare(one, other, &format!("{place}.{name}"), out);
            }
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        // An empty table of Lua is an object and a list.
        (Value::Object(object), Value::Array(list)) | (Value::Array(list), Value::Object(object))
            if object.is_empty() && list.is_empty() => {}
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (one, other)) in ours.iter().zip(theirs).enumerate() {
                compare(one, other, &format!("{place}[{at}]"), out);
            }
        }
        (one, other) if one == other => {}
        (one, other) => {
            out.insert(format!("{place} is {one}, not {other}"));
        }
    }
}

/// Leaves out what is known, which must differ.
fn unknown(found: BTreeSet<String>, known: &[(&str, &str)]) -> Vec<String> {
    let of = |text: &str, name: &str| {
        text.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['.', ' ', ':', '[']))
    };
    for (name, _) in known {
        assert!(
            found.iter().any(|text| of(text, name)),
            "{name} is as in the original now"
        );
    }
    let is_known = |text: &String| known.iter().any(|(name, _)| of(text, name));
    found.into_iter().filter(|text| !is_known(text)).collect()
}

fn assert_none(found: BTreeSet<String>, known: &[(&str, &str)]) {
    let unknown = unknown(found, known);
    assert!(
        unknown.is_empty(),
        "{} differences:\n{}",
        unknown.len(),
        unknown.join("\n")
    );
}

#[tokio::test]
async fn schemas_of_plugins_are_those_of_the_original() {
    let api = Api::open().await;
    let mut found = BTreeSet::new();
    for (plugin, original) in originals() {
        for (kind, query) in [
            ("schema", ""),
            ("consumer_schema", "?schema_type=consumer"),
            ("metadata_schema", "?schema_type=metadata"),
        ] {
            let Some(theirs) = original.get(kind) else {
                continue;
            };
            let answer = api
                .call(&format!("GET schema/plugins/{plugin}{query}"), "", &[])
                .await;
            let ours = stripped(&answer.json(), false);
            compare(&ours, theirs, &format!("{plugin}.{kind}"), &mut found);
        }
    }
    assert_none(found, OTHER_SCHEMAS);
}

/// A configuration with the defaults of its schema.
fn completed(config: &Value, schema: &Value) -> Value {
    let Value::Object(config) = config else {
        return config.clone();
    };
    let mut completed = config.clone();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        match (config.get(name), schema.get("default")) {
            (Some(value), _) => {
                completed.insert(name.clone(), self::completed(value, schema));
            }
            (None, Some(default)) => {
                completed.insert(name.clone(), default.clone());
            }
            (None, None) => {}
        }
    }
    Value::Object(completed)
}

/// A route with one plugin.
fn route(plugin: &str, config: &Value) -> String {
    json!({"uri": "/", "plugins": {plugin: config}}).to_string()
}

#[tokio::test]
async fn every_plugin_is_given_back_with_its_defaults() {
    let api = Api::open().await;
    let answer = api
        .call(
            "PUT plugin_metadata/authz-casbin",
            r#"{"model": "m", "policy": "p"}"#,
            &[],
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let proto = json!({"content": "syntax = \"proto3\"; package s; service s { rpc m (A) returns (A) {} } message A {}"});
    assert_eq!(
        api.call("PUT protos/1", &proto.to_string(), &[]).await.status,
        201
    );
    let examples = examples();
    let mut found = BTreeSet::new();
    for (plugin, original) in originals() {
        let config = &examples[&plugin];
        let answer = api.call("PUT routes/1", &route(&plugin, config), &[]).await;
        if !matches!(answer.status, 200 | 201) {
            found.insert(format!("{plugin}: {}", answer.text));
            continue;
        }
        let given = api.call("GET routes/1", "", &[]).await.json();
        let given = &given["value"]["plugins"][&plugin];
        compare(
            given,
            &completed(config, &original["schema"]),
            &plugin,
            &mut found,
        );
    }
    assert_none(found, OTHER_DEFAULTS);
}

/// A value that is not of the type of a schema, and the original's word for its type.
fn of_another_type(schema: &Value) -> Option<(Value, &'static str)> {
    Some(match schema["type"].as_str()? {
        "string" => (json!(1), "number"),
        "integer" | "number" | "boolean" | "array" | "object" => (json!("x"), "string"),
        _ => return None,
    })
}

#[tokio::test]
async fn bad_fields_are_refused_in_the_words_of_the_original() {
    let api = Api::open().await;
    let examples = examples();
    let (mut found, mut count) = (BTreeSet::new(), 0);
    for (plugin, original) in originals() {
        let schema = &original["schema"];
        for (field, of_field) in schema["properties"].as_object().into_iter().flatten() {
            let Some((bad, is)) = of_another_type(of_field) else {
                continue;
            };
            count += 1;
            let mut config = examples[&plugin].clone();
            config[field] = bad;
            let answer = api.call("PUT routes/1", &route(&plugin, &config), &[]).await;
            let told = answer.json()["error_msg"].as_str().unwrap_or_default().to_owned();
            let wanted = of_field["type"].as_str().unwrap_or_default();
            let words = format!(
                "failed to check the configuration of plugin {plugin} err: property \"{field}\" validation failed: \
                 wrong type: expected {wanted}, got {is}"
            );
            if (answer.status, &told) != (400, &words) {
                found.insert(format!("{plugin}.{field}: {} {told}", answer.status));
            }
        }
    }
    assert!(count > 500, "{count} fields");
    assert_none(found, OTHER_WORDS);
}
