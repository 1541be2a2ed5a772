//! Calls and responses beside a document.

use super::*;
use serde_json::json;
use weir_plugin::{BufferResponse, Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

const SPEC: &str = r##"
openapi: 3.1.0
info: {title: t, version: "1"}
servers: [{url: /api}]
paths:
  /pets/{id}:
    get:
      parameters:
        - {name: id, in: path, required: true, schema: {type: integer}}
        - {name: sort, in: query, schema: {enum: [name, age]}}
        - {name: X-Trace, in: header, schema: {type: string, maxLength: 3}}
      responses:
        "200": {description: ok, content: {application/json: {schema: {type: object, required: [name]}}}}
    post:
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}
      responses: {default: {description: ok}}
components:
  schemas:
    Pet: {type: object, required: [name], properties: {name: {type: string}}}
"##;

fn with(more: Value) -> Value {
    let mut config = json!({"spec": SPEC, "verbose": true});
    if let (Value::Object(config), Value::Object(more)) = (&mut config, more) {
        config.extend(more);
    }
    config
}

fn outcome_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refuse(refusal) => {
            format!("{} {}", refusal.status, refusal.message.as_deref().unwrap_or("-"))
        }
        outcome => word(outcome),
    }
}

fn call(config: &Value, line: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
    let filter = build(&OpenapiValidation::default(), config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    let outcome = with_body(&*filter, &mut exchange, body);
    outcome_of(&outcome)
}

#[test]
fn calls_are_checked_in_all_their_parts() {
    let all = with(json!({}));
    for (config, line, headers, body, expected) in [
        (
            &all,
            "GET /api/pets/1?sort=name&x=1",
            &[("X-Trace", "abc")][..],
            None,
            "continue",
        ),
        (
            &all,
            "GET /pets/1",
            &[],
            None,
            "400 no path of the description matches",
        ),
        (
            &all,
            "PUT /api/pets/1",
            &[],
            None,
            "400 the description has no such method for this path",
        ),
        (
            &all,
            "GET /api/pets/x",
            &[],
            None,
            "400 path parameter 'id' validation failed with error: 'wrong type: expected integer, got string'",
        ),
        (
            &all,
            "GET /api/pets/1?sort=size",
            &[],
            None,
            "400 query parameter 'sort' validation failed with error: 'matches none of the enum values'",
        ),
        (
            &all,
            "GET /api/pets/1",
            &[("x-trace", "abcd")],
            None,
            "400 header parameter 'x-trace' validation failed with error: 'string too long, expected at most 3, got 4'",
        ),
        (
            &with(json!({"check_path": false})),
            "GET /api/pets/x",
            &[],
            None,
            "continue",
        ),
        (
            &with(json!({"check_query": false})),
            "GET /api/pets/1?sort=size",
            &[],
            None,
            "continue",
        ),
        (
            &with(json!({"check_headers": false})),
            "GET /api/pets/1",
            &[("x-trace", "abcd")],
            None,
            "continue",
        ),
    ] {
        assert_eq!(call(config, line, headers, body), expected, "{line} {body:?}");
    }
}

#[test]
fn bodies_are_checked() {
    let all = with(json!({}));
    let json_type = ("Content-Type", "application/json");
    for (config, line, headers, body, expected) in [
        (
            &all,
            "POST /api/pets/1",
            &[json_type][..],
            Some(r#"{"name": "a"}"#),
            "continue",
        ),
        (
            &all,
            "POST /api/pets/1",
            &[json_type],
            Some("{}"),
            "400 request body validation failed with error: 'property \"name\" is required'",
        ),
        (
            &all,
            "POST /api/pets/1",
            &[json_type],
            None,
            "400 request body validation failed with error: 'request body is required'",
        ),
        (
            &all,
            "POST /api/pets/1",
            &[("Content-Type", "text/xml")],
            Some("<a/>"),
            "400 request body validation failed with error: 'content-type 'text/xml' is not supported'",
        ),
        (
            &all,
            "POST /api/pets/1",
            &[json_type, json_type],
            Some("{}"),
            "400 several headers 'Content-Type'",
        ),
        (
            &with(json!({"check_body": false})),
            "POST /api/pets/1",
            &[json_type],
            Some("{}"),
            "continue",
        ),
    ] {
        assert_eq!(call(config, line, headers, body), expected, "{line} {body:?}");
    }
}

#[test]
fn what_becomes_of_calls_is_configured() {
    let strict =
        with(json!({"unknown_query": "refuse", "unknown_headers": "refuse", "allowed_headers": ["Host"]}));
    let json_type = ("Content-Type", "application/json");
    for (config, line, headers, body, expected) in [
        (
            &with(json!({"action": "log"})),
            "POST /api/pets/1",
            &[json_type][..],
            Some("{}"),
            "continue",
        ),
        (
            &with(json!({"verbose": false, "message": "no. ", "status": 422})),
            "GET /api/pets/x",
            &[],
            None,
            "422 no. ",
        ),
        (
            &with(json!({"verbose_replaces": false, "message": "no. "})),
            "GET /pets/1",
            &[],
            None,
            "400 no. no path of the description matches",
        ),
        (
            &strict,
            "GET /api/pets/1?x=1",
            &[],
            None,
            "400 query parameter 'x' is not described",
        ),
        (
            &strict,
            "GET /api/pets/1",
            &[("X-Other", "1")],
            None,
            "400 header 'x-other' is not described",
        ),
        (
            &strict,
            "GET /api/pets/1?sort=age",
            &[("X-Trace", "1"), ("host", "a")],
            None,
            "continue",
        ),
    ] {
        assert_eq!(call(config, line, headers, body), expected, "{line} {body:?}");
    }
}

#[test]
fn bodies_that_are_too_large_do_not_pass() {
    let filter = build(&OpenapiValidation::default(), &with(json!({}))).expect("valid");
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        "POST /api/pets/1",
        &[("Content-Type", "application/json")],
    );
    exchange.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    assert_eq!(
        outcome_of(&filter.on_request(&mut exchange)),
        "400 the body is too large"
    );
}

#[test]
fn responses_are_checked_before_their_heads_go_out() {
    for (action, body, status, expected) in [
        ("refuse", r#"{"name": "a"}"#, 200, r#"{"name": "a"}"#),
        ("refuse", "{}", 406, r#"{"message":"no"}"#),
        ("log", "{}", 200, "{}"),
    ] {
        let config = with(
            json!({"check_response": true, "response_status": 406, "verbose": false,
            "response_message": "no", "response_action": action}),
        );
        let filter = build(&OpenapiValidation::default(), &config).expect("valid");
        let mut exchange = exchange();
        let headers = [("Accept-Encoding", "gzip"), ("X-A", "1")];
        prepare(&mut exchange, "GET /api/pets/1", &headers);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(lines(&exchange.request.headers), ["X-A: 1"]);
        exchange.response.status = 200;
        exchange
            .response
            .headers
            .append(b"Content-Type", b"application/json");
        filter.on_response(&mut exchange);
        assert_eq!(exchange.response.hold, Some(BufferResponse::Whole(1 << 20)));
        let out = exchange.response.filter_whole(body.as_bytes().to_vec());
        assert_eq!(
            (exchange.response.status, String::from_utf8_lossy(&out).as_ref()),
            (status, expected)
        );
    }
}

/// Asks the filter, and answers its question for the document.
fn fetch(
    filter: &Arc<dyn weir_plugin::Filter>,
    exchange: &mut Exchange,
    answer: Option<(u16, &str)>,
) -> String {
    let outcome = filter.on_request(exchange);
    if !matches!(outcome, Outcome::Subrequest(_)) {
        return outcome_of(&outcome);
    }
    exchange.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
        status,
        body: body.as_bytes().to_vec(),
        ..SubrequestResponse::default()
    }));
    format!("ask, {}", outcome_of(&filter.on_request(exchange)))
}

#[test]
fn documents_are_fetched_once_and_failures_are_not_repeated_at_once() {
    let config = json!({"spec_url": {"url": "http://127.0.0.1:1/spec.json"}, "no_document_message": "none"});
    let plugin = OpenapiValidation::default();
    let mut exchange = exchange();
    let mut call = |answer| {
        let filter = build(&plugin, &config).expect("valid");
        prepare(&mut exchange, "GET /api/pets/1", &[]);
        fetch(&filter, &mut exchange, answer)
    };
    assert_eq!(call(Some((404, ""))), "ask, 500 none");
    assert_eq!(call(None), "500 none");
    let plugin = OpenapiValidation::default();
    let call = |answer| {
        let filter = build(&plugin, &config).expect("valid");
        let mut exchange = weir_plugins_testkit::exchange();
        prepare(&mut exchange, "GET /api/pets/1", &[]);
        fetch(&filter, &mut exchange, answer)
    };
    assert_eq!(call(Some((200, SPEC))), "ask, continue");
    assert_eq!(call(None), "continue");
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let plugin = OpenapiValidation::default();
    for (config, places) in [
        (json!({}), vec!["spec"]),
        (json!({"spec": "{}"}), vec!["spec"]),
        (
            json!({"spec_url": {"url": "ftp://a"}, "status": 200}),
            vec!["status", "spec_url.url"],
        ),
        (with(json!({"base_path": {"path": "a"}})), vec!["base_path"]),
    ] {
        assert_eq!(refused_at(&plugin, &config), places, "{config}");
    }
    assert!(build(&plugin, &example(include_str!("mod.rs"))).is_ok());
}
