//! What plugins accept, and in which words they refuse: the two transformers look at names and values each in its own way.

use serde_json::{Value, json};
use weir_kong::{Options, translate};
use weir_model::{Model, Severity};
use weir_plugins::request_rewrite::expression_fault;

fn read(plugin: &str, config: &Value) -> Result<Model, Vec<String>> {
    let document = json!({
        "_format_version": "3.0",
        "routes": [{
            "name": "r",
            "paths": ["/x"],
            "plugins": [{ "name": plugin, "config": config }],
        }],
    });
    let words = |found: Vec<weir_model::Diagnostic>| found.into_iter().map(|it| it.message).collect();
    match translate(&document, &Options::default()) {
        Ok((model, found)) if found.iter().all(|it| it.severity != Severity::Error) => Ok(model),
        Ok((_, found)) | Err(found) => Err(words(found)),
    }
}

#[test]
fn names_and_values_are_checked_as_by_the_original() {
    let request = "request-transformer";
    let response = "response-transformer";
    let no_header = |name: &str| Some(format!("'{name}' is not a valid header"));
    let no_value = |name: &str| Some(format!("key '{name}' has no value"));
    let no_pair = |text: &str| Some(format!("invalid value: {text}"));
    for (plugin, operation, part, text, refused) in [
        (request, "add", "headers", "X-A:1", None),
        (request, "add", "headers", "X.A:1", no_header("X.A")),
        (request, "remove", "headers", "X.A", no_header("X.A")),
        (request, "rename", "headers", "X-A:X.B", no_header("X.B")),
        (request, "rename", "headers", "X-A:", no_header("")),
        (request, "add", "headers", "X-A", no_pair("X-A")),
        (request, "add", "querystring", "a", no_value("a")),
        (request, "rename", "body", "a", no_value("a")),
        (request, "remove", "querystring", "a", None),
        (response, "add", "headers", "X.A:1", None),
        (response, "replace", "headers", "X A:1", None),
        (response, "append", "headers", "X-A", no_pair("X-A")),
        (response, "remove", "headers", "X.A", None),
        (response, "rename", "headers", "X-A:X.B", no_header("X.B")),
        (response, "add", "json", "a", no_pair("a")),
    ] {
        let config = json!({ operation: { part: [text] } });
        match (read(plugin, &config), refused) {
            (Ok(_), None) => {}
            (Err(found), Some(words)) => assert!(found.contains(&words), "{plugin} {config}: {found:?}"),
            (found, refused) => panic!("{plugin} {config}: {found:?}, not {refused:?}"),
        }
    }
}

#[test]
fn templates_that_cannot_be_read_are_for_calls_to_find_but_in_bodies_and_queries() {
    let broken = "$(headers.x +)";
    for part in ["body", "querystring"] {
        let config = json!({ "add": { part: [format!("a:{broken}")] } });
        let found = read("request-transformer", &config).expect_err("a fault");
        let begin = format!("value '{broken}' is not in supported format, error:");
        assert!(found.iter().any(|it| it.starts_with(&begin)), "{found:?}");
    }
    let config = json!({
        "add": { "headers": [format!("X-A:{broken}"), "X-B:$(headers.b"] },
        "replace": { "uri": broken },
    });
    let model = read("request-transformer", &config).expect("accepted");
    let text = serde_json::to_string(&model.routes[0].plugins).expect("JSON");
    assert!(!text.contains("headers.x +"), "{text}");
    assert!(
        text.contains("$(headers.b"),
        "what nothing closes is a text: {text}"
    );
    assert_eq!(expression_fault("$(headers.b"), None);
}

#[test]
fn a_token_must_have_the_claim_that_its_life_is_measured_by() {
    let read = |claims: Value| {
        let config = json!({ "maximum_expiration": 300, "claims_to_verify": claims });
        read("jwt", &config).map(|_| ()).map_err(|mut found| {
            found.sort();
            found
        })
    };
    assert_eq!(read(json!(["nbf", "exp"])), Ok(()));
    assert_eq!(read(Value::Null), Ok(()));
    let words = [
        "expected to contain: exp",
        "failed conditional validation given value of field 'config.maximum_expiration'",
    ];
    assert_eq!(read(json!(["nbf"])), Err(words.map(str::to_owned).to_vec()));
}

#[test]
fn ids_may_have_any_header() {
    let config = json!({ "header_name": "X.Call.Id" });
    read("correlation-id", &config).expect("accepted");
}
