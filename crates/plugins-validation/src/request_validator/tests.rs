//! Bodies, parameters and media types.

use super::*;
use weir_plugins_testkit::*;

fn call(config: &Value, line: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
    let filter = build(&RequestValidator, config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    exchange.captures.push(("id".into(), b"7".to_vec()));
    exchange.request.has_body = body.is_some();
    let mut outcome = filter.on_request(&mut exchange);
    if matches!(outcome, Outcome::NeedBody { .. }) {
        exchange.request.body = body.map(|body| body.as_bytes().to_vec());
        outcome = filter.on_request(&mut exchange);
    }
    match outcome {
        Outcome::Refuse(refusal) => refusal.message.unwrap_or_default(),
        outcome => word(&outcome),
    }
}

#[test]
fn calls_are_checked() {
    let body = json!({"body": {"type": "object", "required": ["name"]}, "verbose": true});
    let quiet = json!({"body": {"type": "object", "required": ["name"]}});
    let parameters = json!({"verbose": true, "parameters": [
        {"name": "page", "in": "query", "schema": {"type": "integer"}},
        {"name": "X-Id", "in": "header", "required": true, "schema": {"type": "string"}},
        {"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "maximum": 9}},
    ]});
    let loose = json!({"body": {"type": "object"}, "content_types": ["application/*"], "check_content_type_parameters": false});
    let json = ("Content-Type", "application/json");
    for (config, line, headers, text, expected) in [
        (&body, "POST /", &[json][..], Some(r#"{"name": 1}"#), "continue"),
        (&body, "POST /", &[], Some(r#"{"name": 1}"#), "continue"),
        (
            &body,
            "POST /",
            &[json],
            Some("{}"),
            "property \"name\" is required",
        ),
        (&quiet, "POST /", &[json], Some("{}"), BODY),
        (&quiet, "POST /", &[json], None, BODY),
        (&quiet, "POST /", &[json], Some(r#"{"name": 1, "name": 2}"#), BODY),
        (
            &quiet,
            "POST /",
            &[("Content-Type", "text/plain")],
            Some("{}"),
            TYPE,
        ),
        (
            &quiet,
            "POST /",
            &[("Content-Type", "application/json; charset=utf-8")],
            Some("{}"),
            TYPE,
        ),
        (
            &quiet,
            "POST /",
            &[json, ("Content-Type", "text/plain")],
            Some("{}"),
            TYPE,
        ),
        (
            &loose,
            "POST /",
            &[("Content-Type", "application/json; charset=utf-8")],
            Some("{}"),
            "continue",
        ),
        (
            &loose,
            "POST /",
            &[("Content-Type", "application/xml")],
            Some("<a/>"),
            "continue",
        ),
        (&parameters, "GET /?page=1", &[("X-Id", "a")], None, "continue"),
        (
            &parameters,
            "GET /?page=x",
            &[("X-Id", "a")],
            None,
            "query 'page' validation failed, wrong type: expected integer, got string",
        ),
        (
            &parameters,
            "GET /",
            &[],
            None,
            "header 'x-id' validation failed, required parameter value not found in request",
        ),
    ] {
        assert_eq!(
            call(config, line, headers, text),
            expected,
            "{line} {headers:?} {text:?}"
        );
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({}), vec![""]),
        (
            json!({"body": {"type": "x"}, "content_types": ["json"], "parameters": [{"name": "a", "in": "x"}]}),
            vec!["body", "parameters", "content_types"],
        ),
    ] {
        assert_eq!(refused_at(&RequestValidator, &config), places, "{config}");
    }
    assert!(build(&RequestValidator, &example(include_str!("mod.rs"))).is_ok());
}
