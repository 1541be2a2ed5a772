//! Every plugin of the original at the Admin API: it is taken with what it must have, given back with all defaults, and refused
//! in the original's words if a field is of another type. Its fields are those of `original/described.json`, what a
//! Kong
//! 3.9.3 answered.

use crate::conversation::Conversation;
use axum::body::to_bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What plugins must have, and the original does not fill in.
fn example(plugin: &str) -> Value {
    match plugin {
        "acl" => json!({"allow": ["a"]}),
        "acme" => json!({"account_email": "a@b.test"}),
        "azure-functions" => json!({"appname": "a", "functionname": "f"}),
        "file-log" => json!({"path": "/tmp/a.log"}),
        "http-log" => json!({"http_endpoint": "http://127.0.0.1:1/"}),
        "ip-restriction" => json!({"allow": ["127.0.0.1"]}),
        "ldap-auth" => json!({"ldap_host": "h", "base_dn": "dc=a", "attribute": "uid"}),
        "loggly" => json!({"key": "k"}),
        "oauth2" => json!({"enable_password_grant": true}),
        "opentelemetry" => json!({"traces_endpoint": "http://127.0.0.1:1/v1/traces"}),
        "post-function" | "pre-function" => json!({"access": ["return"]}),
        "proxy-cache" => json!({"strategy": "memory"}),
        "rate-limiting" => json!({"minute": 1}),
        "redirect" => json!({"location": "https://a.test/"}),
        "response-ratelimiting" => json!({"limits": {"a": {"minute": 1}}}),
        // The original makes a secret up that each of its gateways has for itself; here it must be given.
        "session" => json!({"secret": "a secret of the tests"}),
        "standard-webhooks" => json!({"secret_v1": "c2VjcmV0"}),
        "tcp-log" | "udp-log" => json!({"host": "h", "port": 1}),
        _ => json!({}),
    }
}

fn described() -> Map<String, Value> {
    let all: Value = serde_json::from_str(include_str!("../original/described.json")).expect("JSON");
    all["plugins"].as_object().expect("plugins").clone()
}

/// The fields of a record, by name.
fn fields(record: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let list = record["fields"].as_array().into_iter().flatten();
    list.filter_map(Value::as_object).flatten()
}

/// The record of a plugin's configuration.
fn configuration(plugin: &Value) -> Value {
    let mut all = fields(plugin).filter(|(name, _)| *name == "config");
    all.next().expect("a configuration").1.clone()
}

/// What the original makes of a value; `None`: it makes it up.
fn completed(given: Option<&Value>, field: &Value) -> Option<Value> {
    let is_record = field["type"] == "record";
    let value = match given.or(field.get("default")) {
        Some(value) => value.clone(),
        None if field["auto"] == true => return None,
        None if is_record && field["required"] == true => json!({}),
        None if field["type"] == "boolean" && field["required"] == true => json!(false),
        None => return Some(Value::Null),
    };
    if !is_record {
        return Some(value);
    }
    let mut record = Map::new();
    for (name, field) in fields(field) {
        if let Some(value) = completed(value.get(name).filter(|value| !value.is_null()), field) {
            record.insert(name.clone(), value);
        }
    }
    Some(Value::Object(record))
}

fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| same(found.get(name).unwrap_or(&Value::Null), expected)),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(one, other)| same(one, other))
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        // The descriptions leave out what is false.
        (Value::Bool(false), Value::Null) => true,
        // An empty table of Lua is an object and a list.
        (Value::Array(list), Value::Object(object)) | (Value::Object(object), Value::Array(list)) => {
            list.is_empty() && object.is_empty()
        }
        (one, other) => one == other,
    }
}

/// Puts a plugin; the answer's status and body.
async fn put(conversation: &Conversation, plugin: &str, config: &Value) -> (u16, Value) {
    let body = json!({"name": plugin, "config": config}).to_string();
    let line = "PUT /plugins/8a0e4b2c-1111-4222-8333-444455556666";
    let answer = conversation.call(line, &body).await;
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    (status, serde_json::from_slice(&body).unwrap_or_default())
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

#[tokio::test]
async fn every_plugin_is_given_back_with_its_defaults() {
    let conversation = Conversation::open().await;
    let mut found = BTreeSet::new();
    for (plugin, description) in described() {
        let config = example(&plugin);
        let (status, answer) = put(&conversation, &plugin, &config).await;
        if status != 200 {
            found.insert(format!("{plugin}: {status} {answer}"));
            continue;
        }
        let expected = completed(Some(&config), &configuration(&description)).expect("a record");
        for (name, expected) in expected.as_object().expect("a record") {
            let given = &answer["config"][name];
            if !same(given, expected) {
                found.insert(format!("{plugin}.{name}: {given}, not {expected}"));
            }
        }
    }
    assert_none(&found);
}

/// A value of another type, and the original's words for that.
fn of_another_type(field: &Value) -> Option<(Value, &'static str)> {
    Some(match field["type"].as_str()? {
        "string" => (json!(true), "expected a string"),
        "integer" => (json!("x"), "expected an integer"),
        "number" => (json!("x"), "expected a number"),
        "boolean" => (json!("x"), "expected a boolean"),
        "array" => (json!("x"), "expected an array"),
        "set" => (json!("x"), "expected a set"),
        "map" => (json!("x"), "expected a map"),
        "record" => (json!("x"), "expected a record"),
        _ => return None,
    })
}

#[tokio::test]
async fn bad_fields_are_refused_in_the_words_of_the_original() {
    let conversation = Conversation::open().await;
    let (mut found, mut count) = (BTreeSet::new(), 0);
    for (plugin, description) in described() {
        for (name, field) in fields(&configuration(&description)) {
            let Some((bad, words)) = of_another_type(field) else {
                continue;
            };
            count += 1;
            let mut config = example(&plugin);
            config[name] = bad;
            let (status, answer) = put(&conversation, &plugin, &config).await;
            let messages = &answer["fields"]["config"][name];
            if status != 400 || messages != words {
                found.insert(format!("{plugin}.{name}: {status} {messages}, not {words:?}"));
            }
        }
    }
    assert!(count > 250, "{count} fields");
    assert_none(&found);
}

/// What the catalogue cannot serve is refused at the write: with it in the store, its calls would be refused.
#[tokio::test]
async fn configurations_that_cannot_be_served_are_not_stored() {
    let conversation = Conversation::open().await;
    for (plugin, config, part) in [
        (
            "openid-connect",
            json!({"issuer": "nonsense", "client_id": ["c"], "session_secret": "s"}),
            "discovery",
        ),
        (
            "openid-connect",
            json!({"issuer": "http://127.0.0.1:1"}),
            "client_id",
        ),
        (
            "oauth2-introspection",
            json!({"introspection_url": "nonsense", "authorization_value": "Basic eDp5"}),
            "introspection_endpoint",
        ),
        (
            "opa",
            json!({"opa_host": "bad host", "opa_path": "/v1/data/d"}),
            "url",
        ),
        (
            "request-callout",
            json!({"callouts": [{"name": "a", "request": {"url": "nonsense"}}]}),
            "url",
        ),
        (
            "datakit",
            json!({"nodes": [{"name": "A", "type": "jq", "jq": ".", "input": "B"}]}),
            "the name of a node",
        ),
        ("mocking", json!({"api_specification": "nonsense"}), "spec"),
        (
            "xml-threat-protection",
            json!({"checked_content_types": ["zz"]}),
            "types",
        ),
    ] {
        let (status, answer) = put(&conversation, plugin, &config).await;
        let message = answer["fields"]["config"].to_string();
        assert!(
            status == 400 && message.contains(part),
            "{plugin} {config}: {status} {answer}"
        );
    }
    // A secret is not known at the write.
    let config = json!({"introspection_url": "{vault://env/url}", "authorization_value": "Basic eDp5"});
    let (status, answer) = put(&conversation, "oauth2-introspection", &config).await;
    assert_eq!(status, 200, "{answer}");
}

/// A field `type` names the form of a node: only the fields of that form have defaults.
#[tokio::test]
async fn nodes_are_given_back_with_the_defaults_of_their_types() {
    let conversation = Conversation::open().await;
    let nodes = json!([
        {"name": "A", "type": "call", "url": "http://a/"},
        {"name": "B", "type": "static", "values": {"a": null}},
        {"name": "C", "type": "exit"},
    ]);
    let (status, answer) = put(&conversation, "datakit", &json!({"nodes": nodes})).await;
    assert_eq!(status, 200, "{answer}");
    let config = &answer["config"];
    let null = Value::Null;
    for (node, field, expected) in [
        (0, "method", Some(&json!("GET"))),
        (0, "ssl_verify", Some(&json!(true))),
        (0, "timeout", Some(&null)),
        (0, "status", None),
        (1, "method", None),
        (1, "values", Some(&json!({"a": null}))),
        (2, "status", Some(&json!(200))),
    ] {
        assert_eq!(
            config["nodes"][node].get(field),
            expected,
            "{node} {field}: {config}"
        );
    }
    assert_eq!((&config["debug"], &config["resources"]), (&json!(false), &null));
    let bad =
        json!({"nodes": [{"name": "A", "type": "call", "url": "http://a/", "status": 1}, {"name": "B"}]});
    let (status, answer) = put(&conversation, "datakit", &bad).await;
    let message = answer["fields"]["config"]["nodes"].to_string();
    assert!(
        status == 400 && message.contains("unknown field") && message.contains("required field missing"),
        "{answer}"
    );
}
