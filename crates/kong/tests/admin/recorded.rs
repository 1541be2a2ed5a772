//! The recorded configurations of the original, sent to `/config`: what is refused is refused with the same body, and
//! what is taken has the same defaults.

use crate::conversation::Conversation;
use crate::shared::cases;
use axum::body::to_bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Cases whose answer is another one, and why.
const OTHERWISE: &[(&str, &str)] = &[
    (
        "invalid/reference-object-by-name",
        "Kong looks for the fields of a route in the reference",
    ),
    ("invalid/tab-indentation", "YAML errors are the parser's"),
];

async fn load(conversation: &Conversation, text: &str, query: &str) -> (u16, Value) {
    let body = json!({ "config": text }).to_string();
    let response = conversation.call(&format!("POST /config{query}"), &body).await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    (status, serde_json::from_slice(&body).expect("JSON"))
}

/// Flattened errors in an order of their own.
fn sorted(flattened: Option<&Value>) -> Value {
    let Some(Value::Array(entities)) = flattened else {
        return flattened.cloned().unwrap_or_default();
    };
    let mut entities = entities.clone();
    for entity in &mut entities {
        if let Some(Value::Array(errors)) = entity.get_mut("errors") {
            errors.sort_by_key(keyed);
        }
    }
    entities.sort_by_key(keyed);
    Value::Array(entities)
}

fn keyed(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

fn is_unavailable(value: &Value) -> bool {
    value.to_string().contains("not available in this version")
}

/// Entities by family, without what differs with every run.
fn listed(reply: &Value) -> BTreeMap<String, Vec<String>> {
    let families = reply.as_object().expect("families");
    families
        .iter()
        .map(|(family, members)| {
            let members: Vec<&Value> = match members {
                Value::Object(members) => members.values().collect(),
                other => other.as_array().expect("a list").iter().collect(),
            };
            let mut members: Vec<String> = members
                .into_iter()
                .map(|member| keyed(&stripped(member)))
                .collect();
            members.sort();
            (family.clone(), members)
        })
        .collect()
}

fn stripped(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "id" | "created_at" | "updated_at"))
            .map(|(name, value)| (name.clone(), stripped(value)))
            .collect(),
        Value::Array(items) => items.iter().map(stripped).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn configurations_are_answered_as_by_the_original() {
    let mut failures = Vec::new();
    let mut count = 0;
    for case in cases() {
        let name = case["name"].as_str().expect("a name").to_owned();
        let text = case["config"].as_str().expect("a text");
        let conversation = Conversation::open().await;
        let (ours, theirs) = if let Some(expected) = case.get("expect_errors") {
            let (status, body) = load(&conversation, text, "").await;
            let (_, flat) = load(&conversation, text, "?flatten_errors=1").await;
            if is_unavailable(&body) {
                continue;
            }
            let flattened = sorted(flat.get("flattened_errors"));
            let theirs = json!([
                expected["status"],
                expected["body"],
                sorted(expected.get("flattened"))
            ]);
            (json!([status, body, flattened]), theirs)
        } else if let Some(expected) = case.get("expect_entities") {
            let (status, body) = load(&conversation, text, "").await;
            if is_unavailable(&body) {
                continue;
            }
            let ours = if status == 201 { json!(listed(&body)) } else { body };
            let theirs = json!(listed(&expected["entities"]));
            (json!([status, ours]), json!([expected["status"], theirs]))
        } else {
            continue;
        };
        count += 1;
        let is_otherwise = OTHERWISE.iter().any(|(other, _)| *other == name);
        if is_otherwise {
            assert_ne!(keyed(&ours), keyed(&theirs), "{name} can leave the list");
        } else if keyed(&ours) != keyed(&theirs) {
            failures.push(format!("{name}:\n  Weir {ours}\n  Kong {theirs}"));
        }
    }
    assert!(count > 100, "{count} cases");
    assert!(
        failures.is_empty(),
        "{} of {count} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
