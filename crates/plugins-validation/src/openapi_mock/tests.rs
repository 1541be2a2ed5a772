//! Answers made of documents.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

fn spec() -> String {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/pets": {"get": {"responses": {
                "404": {"description": "none", "content": {"application/json": {"example": {"e": 1}}}},
                "200": {"description": "ok", "content": {
                    "application/json": {"examples": {"one": {"value": {"n": 1}}, "two": {"value": {"n": 2}}}},
                    "text/plain": {"example": "pets"},
                }},
            }}},
            "/made": {"get": {"responses": {"201": {"description": "ok", "content": {"application/json": {"schema": {
                "type": "object", "properties": {
                    "s": {"type": "string", "example": "abc"}, "n": {"type": "integer"},
                    "l": {"type": "array", "items": {"$ref": "#/components/schemas/Self"}},
                },
            }}}}}}},
            "/empty": {"get": {"responses": {"204": {"description": "gone"}}}},
        },
        "components": {"schemas": {"Self": {"type": "object", "properties": {
            "b": {"type": "boolean"}, "next": {"$ref": "#/components/schemas/Self"},
        }}}},
    })
    .to_string()
}

fn reply(config: &Value, call: &str, accept: Option<&str>) -> (u16, String, String) {
    let filter = build(&OpenapiMock, config).expect("valid");
    let mut exchange = exchange();
    let headers: Vec<(&str, &str)> = accept.map(|accept| ("Accept", accept)).into_iter().collect();
    prepare(&mut exchange, call, &headers);
    match filter.on_request(&mut exchange) {
        Outcome::Reply(reply) => {
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            (reply.status, reply.content_type.into_owned(), body)
        }
        Outcome::Refuse(refusal) => (refusal.status, String::new(), refusal.message.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn examples_are_answered() {
    let config = json!({"spec": spec()});
    let (json, text) = ("application/json", "text/plain");
    for (call, accept, status, media, body) in [
        ("GET /pets", None, 200, json, r#"{"n":1}"#),
        ("GET /pets", Some("text/*;q=0.5"), 200, text, "pets"),
        ("GET /pets", Some("*/*"), 200, json, r#"{"n":1}"#),
        ("GET /pets", Some("image/png"), 404, "", NO_EXAMPLE),
        ("GET /empty", None, 204, "", ""),
        ("GET /none", None, 404, "", NO_PATH),
        ("POST /pets", None, 404, "", NO_PATH),
    ] {
        let found = reply(&config, call, accept);
        assert_eq!(
            found,
            (status, media.to_owned(), body.to_owned()),
            "{call} {accept:?}"
        );
    }
    let of_status = json!({"spec": spec(), "statuses": [404]});
    assert_eq!(reply(&of_status, "GET /pets", None).0, 404);
}

#[test]
fn values_are_made_of_schemas() {
    let (status, _, body) = reply(&json!({"spec": spec()}), "GET /made", None);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (status, &body["s"], &body["n"], &body["l"][0]["b"]),
        (201, &json!("abc"), &json!(0), &json!(true))
    );
}

#[test]
fn answers_wait_and_are_marked() {
    let config = json!({"spec": spec(), "delay_ms": [5, 9], "mark": "X-Mock", "random_example": true});
    let filter = build(&OpenapiMock, &config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /pets", &[]);
    match filter.on_request(&mut exchange) {
        Outcome::Suspend(suspend) => assert!((5..=9).contains(&suspend.at_most.as_millis())),
        other => panic!("{other:?}"),
    }
    match filter.on_request(&mut exchange) {
        Outcome::Reply(reply) => assert_eq!(reply.headers, [("X-Mock".to_owned(), b"true".to_vec())]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({}), vec!["spec"]),
        (
            json!({"spec": spec(), "delay_ms": [2, 1], "mark": "a b"}),
            vec!["delay_ms", "mark"],
        ),
    ] {
        assert_eq!(refused_at(&OpenapiMock, &config), places, "{config}");
    }
    assert!(build(&OpenapiMock, &example(include_str!("mod.rs"))).is_ok());
}

#[test]
fn callers_choose_by_headers_if_they_may() {
    let (may, may_not) = (
        json!({"spec": spec(), "choice_headers": "X-Mock-"}),
        json!({"spec": spec()}),
    );
    let missing = format!("refuse {NO_EXAMPLE}");
    let bad = format!("refuse {BAD_DELAY}");
    for (config, headers, expected) in [
        (&may, &[][..], r#"200 {"n":1}"#),
        (&may, &[("X-Mock-Status-Code", "404")], r#"404 {"e":1}"#),
        (&may, &[("X-Mock-Example-Id", "two")], r#"200 {"n":2}"#),
        (&may, &[("X-Mock-Status-Code", "500")], &missing),
        (&may, &[("X-Mock-Example-Id", "three")], &missing),
        (&may, &[("X-Mock-Delay", "20")], r#"wait 200 {"n":1}"#),
        (&may, &[("X-Mock-Delay", "10001")], &bad),
        (&may, &[("X-Mock-Delay", "soon")], &bad),
        (
            &may_not,
            &[("X-Mock-Status-Code", "404"), ("X-Mock-Delay", "soon")],
            r#"200 {"n":1}"#,
        ),
    ] {
        let filter = build(&OpenapiMock, config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /pets", headers);
        let mut found = String::new();
        loop {
            match filter.on_request(&mut exchange) {
                Outcome::Suspend(_) => found.push_str("wait "),
                Outcome::Reply(reply) => {
                    found += &format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body));
                    break;
                }
                Outcome::Refuse(refusal) => {
                    found += &format!("refuse {}", refusal.message.unwrap_or_default());
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found, expected, "{headers:?}");
    }
}
