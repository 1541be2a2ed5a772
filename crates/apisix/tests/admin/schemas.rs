//! Every plugin of the original at the Admin API: it is taken and given back as it was written (the original fills defaults in
//! only when it serves), and refused in the original's words if a field is of another type. `original/plugins.json` is
//! what an APISIX 3.18.0 answered about its plugins, without its words for people; `original/examples.json` has a small
//! configuration of each.

use crate::api::Api;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

fn originals() -> Map<String, Value> {
    serde_json::from_str(include_str!("../original/plugins.json")).expect("JSON")
}

fn examples() -> Map<String, Value> {
    serde_json::from_str(include_str!("../original/examples.json")).expect("JSON")
}

fn assert_none(found: &BTreeSet<String>) {
    let list: Vec<&str> = found.iter().map(String::as_str).collect();
    assert!(
        list.is_empty(),
        "{} differences:\n{}",
        list.len(),
        list.join("\n")
    );
}

/// A route with one plugin.
fn route(plugin: &str, config: &Value) -> String {
    json!({"uri": "/", "plugins": {plugin: config}}).to_string()
}

#[tokio::test]
async fn every_plugin_is_taken_and_given_back_as_it_was_written() {
    let api = Api::open().await;
    let metadata = r#"{"model": "m", "policy": "p"}"#;
    let answer = api.call("PUT plugin_metadata/authz-casbin", metadata, &[]).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let proto = "syntax = \"proto3\"; package s; service s { rpc m (A) returns (A) {} } message A {}";
    let proto = json!({ "content": proto }).to_string();
    assert_eq!(api.call("PUT protos/1", &proto, &[]).await.status, 201);
    let (examples, mut found) = (examples(), BTreeSet::new());
    for (plugin, _) in originals() {
        let config = &examples[&plugin];
        let answer = api.call("PUT routes/1", &route(&plugin, config), &[]).await;
        let given = api.call("GET routes/1", "", &[]).await.json();
        let given = &given["value"]["plugins"][&plugin];
        if !matches!(answer.status, 200 | 201) || given != config {
            found.insert(format!("{plugin}: {} {given}, not {config}", answer.text));
        }
    }
    assert_none(&found);
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
            let message = answer.json()["error_msg"].as_str().unwrap_or_default().to_owned();
            let wanted = of_field["type"].as_str().unwrap_or_default();
            let words = format!(
                "failed to check the configuration of plugin {plugin} err: property \"{field}\" validation failed: \
                 wrong type: expected {wanted}, got {is}"
            );
            if (answer.status, &message) != (400, &words) {
                found.insert(format!("{plugin}.{field}: {} {message}", answer.status));
            }
        }
    }
    assert!(count > 500, "{count} fields");
    assert_none(&found);
}
