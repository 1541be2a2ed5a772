//! Tests of `grpc-transcode`: calls, and configurations.

mod answers;

use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome};
use weir_plugins_testkit::*;

const PROTO: &str = r#"syntax = "proto3";
package shop;
import "google/api/annotations.proto";
message Book { string id = 1; string title = 2; int64 pages = 3; Author author = 4; repeated string tags = 5; }
message Author { string name = 1; }
message Get { string shelf = 1; string id = 2; bool full = 3; Author by = 4; }
message Save { string id = 1; Book book = 2; string note = 3; }
message Many { repeated Book books = 1; }
service Books {
  rpc GetBook(Get) returns (Book) {
    option (google.api.http) = {
      get: "/v1/{shelf=shelves/*}/books/{id}"
      additional_bindings { get: "/v1/books/{id}" }
      additional_bindings { post: "/v1/books:find" body: "*" }
    };
  }
  rpc Special(Get) returns (Book) { option (google.api.http) = { get: "/v1/books/special" }; }
  rpc SaveBook(Save) returns (Book) {
    option (google.api.http) = { patch: "/v1/books/{id}" body: "book" };
  }
  rpc List(Get) returns (Many) { option (google.api.http) = { get: "/v1/list" response_body: "books" }; }
  rpc Watch(Get) returns (stream Book) { option (google.api.http) = { get: "/v1/watch" }; }
  rpc Purge(Get) returns (Book) { option (google.api.http) = { custom: { kind: "PURGE" path: "/v1/{by.name}" } }; }
  rpc Plain(Get) returns (Book);
}
"#;

fn config(more: &Value) -> Value {
    let mut config = json!({"proto": {"text": PROTO}});
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    config
}

fn begin(
    config: &Value,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> (Arc<dyn Filter>, Exchange, Outcome) {
    let filter = build(&GrpcTranscode::default(), config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    exchange.request.body = body.map(|body| body.as_bytes().to_vec());
    exchange.request.has_body = body.is_some();
    let outcome = filter.on_request(&mut exchange);
    (filter, exchange, outcome)
}

/// The JSON of the message that a call has become, and its method.
fn sent(exchange: &Exchange) -> (String, Value) {
    let definitions: crate::protobuf::Definitions =
        serde_json::from_value(json!({"text": PROTO})).expect("definitions");
    let compiled = definitions.compile(&DocPath::root()).expect("good");
    let path = String::from_utf8(exchange.upstream_path.clone().expect("a path")).expect("text");
    let method = compiled.method(&path[1..]).expect("a method");
    let body = exchange.request.body.as_deref().expect("a body");
    assert_eq!(
        body[..5],
        [&[0][..], &(body.len() as u32 - 5).to_be_bytes()].concat()
    );
    let message = prost_reflect::DynamicMessage::decode(method.input(), &body[5..]).expect("a message");
    let mut out = Vec::new();
    crate::protobuf::write_message(&message, &JsonForm::default(), &mut out);
    (
        method.name().to_owned(),
        serde_json::from_slice(&out).expect("JSON"),
    )
}

#[test]
fn calls_become_messages_by_rules() {
    for (line, body, method, message) in [
        (
            "GET /v1/shelves/7/books/a%2Fb",
            None,
            "GetBook",
            json!({"shelf": "shelves/7", "id": "a/b"}),
        ),
        (
            "GET /v1/books/7?full=true&by.name=x+y&other=1",
            None,
            "GetBook",
            json!({"id": "7", "full": true, "by": {"name": "x y"}}),
        ),
        ("GET /v1/books/special", None, "Special", json!({})),
        (
            "POST /v1/books:find?id=no",
            Some(r#"{"shelf": "s", "full": true}"#),
            "GetBook",
            json!({"shelf": "s", "full": true}),
        ),
        ("POST /v1/books:find", None, "GetBook", json!({})),
        (
            "PATCH /v1/books/7?note=n&id=8",
            Some(r#"{"title": "t", "pages": "9", "tags": ["a"]}"#),
            "SaveBook",
            json!({"id": "7", "note": "n", "book": {"title": "t", "pages": "9", "tags": ["a"]}}),
        ),
        ("PURGE /v1/x", None, "Purge", json!({"by": {"name": "x"}})),
    ] {
        let (_, exchange, outcome) = begin(&config(&json!({})), line, &[("accept-encoding", "gzip")], body);
        assert_eq!(word(&outcome), "continue", "{line}");
        assert_eq!(sent(&exchange), (method.to_owned(), message), "{line}");
        assert_eq!(exchange.request.method, b"POST");
        assert_eq!(exchange.upstream_query.as_deref(), Some(&b""[..]));
        assert_eq!(
            lines(&exchange.request.headers),
            ["Content-Type: application/grpc", "TE: trailers"]
        );
    }
}

#[test]
fn calls_become_messages_of_one_method() {
    let lua = json!({"mapping": "fields", "names": "proto", "integers": "number", "defaults": true});
    let one = config(
        &json!({"method": "shop.Books/GetBook", "json": lua, "deadline_ms": 250, "refusals": "status"}),
    );
    for (line, content_type, body, expected) in [
        (
            "GET /any?shelf=s&full=1",
            "",
            None,
            Ok(json!({"shelf": "s", "full": true})),
        ),
        (
            "POST /any?shelf=s",
            "application/x-www-form-urlencoded",
            Some("id=7"),
            Ok(json!({"id": "7"})),
        ),
        (
            "POST /any",
            "application/json",
            Some(r#"{"id": "7", "x": 1}"#),
            Ok(json!({"id": "7"})),
        ),
        (
            "PUT /any?id=8",
            "application/json",
            Some("not JSON"),
            Ok(json!({"id": "8"})),
        ),
        (
            "POST /any",
            "application/json",
            Some(r#"{"id": 7}"#),
            Err("answered 400"),
        ),
    ] {
        let (_, exchange, outcome) = begin(&one, line, &[("content-type", content_type)], body);
        match expected {
            Ok(message) => {
                assert_eq!(sent(&exchange), ("GetBook".to_owned(), message), "{line}");
                assert_eq!(exchange.request.headers.get(b"grpc-timeout"), Some(&b"250m"[..]));
            }
            Err(expected) => assert_eq!(word(&outcome), expected),
        }
    }
}

#[test]
fn calls_that_fit_nothing_are_refused() {
    for (more, line, body, expected) in [
        (json!({}), "GET /v1/nothing", None, "unacceptable 404"),
        (json!({}), "LOCK /v1/books/7", None, "unacceptable 404"),
        (
            json!({}),
            "GET /v1/books/7?full=perhaps",
            None,
            "unacceptable 400",
        ),
        (json!({}), "POST /v1/books:find", Some("{"), "unacceptable 400"),
        (json!({}), "POST /v1/books:find", Some("7"), "unacceptable 400"),
        (
            json!({}),
            "POST /v1/books:find",
            Some(r#"{"nope": 1}"#),
            "unacceptable 400",
        ),
        (json!({"refusals": "text"}), "GET /v1/nothing", None, "reply 400"),
        (
            json!({"any_origin": true}),
            "OPTIONS /v1/nothing",
            None,
            "reply 200",
        ),
    ] {
        let (_, _, outcome) = begin(&config(&more), line, &[], body);
        assert_eq!(word(&outcome), expected, "{line}");
    }
    let (_, _, outcome) = begin(&config(&json!({"refusals": "text"})), "LOCK /", &[], None);
    let Outcome::Reply(reply) = outcome else {
        panic!("a reply")
    };
    assert_eq!(
        reply.body,
        b"failed to transcode .proto file Unknown method \"lock\""
    );
    let (filter, mut exchange, _) = begin(&config(&json!({})), "GET /", &[], None);
    prepare(&mut exchange, "POST /v1/books:find", &[]);
    exchange.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    assert_eq!(word(&filter.on_request(&mut exchange)), "body_too_large 413");
}

#[test]
fn configurations_are_checked() {
    let plugin = GrpcTranscode::default();
    let rule = |rule: &str| {
        let text = format!(
            "syntax = \"proto3\"; package p; import \"google/api/annotations.proto\"; message M {{ string a = 1; repeated M b = 2; }}
             service S {{ rpc A(M) returns (M) {{ option (google.api.http) = {{ {rule} }}; }} rpc C(stream M) returns (M); }}"
        );
        json!({"proto": {"text": text}})
    };
    for (config, places) in [
        (config(&json!({"method": "shop.Books/No"})), vec!["method"]),
        (config(&json!({"deadline_ms": 100_000_000})), vec!["deadline_ms"]),
        (
            config(&json!({"max_request_bytes": 1 << 30})),
            vec!["max_request_bytes"],
        ),
        (config(&json!({"errors": {"unknown_status": 99}})), vec!["errors"]),
        (json!({"proto": {"text": "syntax = \"proto3\";"}}), vec!["proto"]),
        (json!({"proto": {"text": "syntax ="}}), vec!["proto.text"]),
        (rule("get: \"/{a}\""), vec![]),
        (rule("get: \"/{nope}\""), vec!["proto"]),
        (rule("get: \"/{b}\""), vec!["proto"]),
        (rule("get: \"x\""), vec!["proto"]),
        (rule("body: \"*\""), vec!["proto"]),
        (rule("post: \"/\" body: \"nope\""), vec!["proto"]),
        (rule("post: \"/\" response_body: \"nope\""), vec!["proto"]),
        (
            {
                let mut streaming = rule("get: \"/\"");
                streaming["method"] = json!("p.S/C");
                streaming
            },
            vec!["method"],
        ),
    ] {
        assert_eq!(refused_at(&plugin, &config), places, "{config}");
    }
}
