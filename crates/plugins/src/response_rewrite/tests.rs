//! `response-rewrite` as clients see it.

use super::*;
use crate::testkit::*;
use serde_json::json;

fn rewrite(config: &Value, status: u16) -> Exchange {
    let filter = build(&ResponseRewrite, config).expect("valid");
    let mut exchange = exchange();
    exchange.response.status = status;
    exchange.response.reason = b"Upstream's words".to_vec();
    exchange.response.headers = header_fields(&[
        ("X-A", "up"),
        ("ETag", "\"e\""),
        ("Content-Encoding", "gzip"),
        ("Last-Modified", "then"),
    ]);
    filter.on_response(&mut exchange);
    exchange
}

#[test]
fn responses_are_rewritten() {
    let kept = [
        "X-A: up",
        "ETag: \"e\"",
        "Content-Encoding: gzip",
        "Last-Modified: then",
    ];
    for (config, status, body, headers) in [
        (json!({}), 200, None, &kept[..]),
        (json!({"status": 201}), 201, None, &kept),
        (
            json!({"body": "ip=$remote_addr"}),
            200,
            Some("ip=$remote_addr"),
            &kept[..1],
        ),
        (
            json!({"body": "aGk=", "body_is_base64": true}),
            200,
            Some("hi"),
            &kept[..1],
        ),
        (json!({"body": ""}), 200, Some(""), &kept[..1]),
        (
            json!({"when": ["status", "==", 200], "body": "x"}),
            200,
            Some("x"),
            &kept[..1],
        ),
        (
            json!({"when": ["status", "==", 404], "body": "x", "status": 500}),
            200,
            None,
            &kept,
        ),
        (
            json!({"body": "x", "headers": [{"append": {"X-A": "1"}}, {"append": {"X-A": "2"}}]}),
            200,
            Some("x"),
            &["X-A: up", "X-A: 1", "X-A: 2"],
        ),
        (
            json!({"body": "x", "headers": [{"append": {"X-A": "a"}}, {"set": {"X-A": "$status"}}]}),
            200,
            Some("x"),
            &["X-A: 200"],
        ),
        (
            json!({"body": "x", "variables": false, "headers": [{"set": {"X-A": "$status"}}]}),
            200,
            Some("x"),
            &["X-A: $status"],
        ),
    ] {
        let response = rewrite(&config, 200).response;
        assert_eq!(response.status, status, "{config}");
        assert_eq!(response.reason.is_empty(), status != 200, "{config}");
        assert_eq!(
            response.replaced_body.as_deref(),
            body.map(str::as_bytes),
            "{config}"
        );
        assert_eq!(lines(&response.headers), headers, "{config}");
    }
}

/// The body that comes out of one that goes in, in two pieces.
fn passed(config: &Value, headers: &[(&str, &str)], body: &[u8]) -> String {
    String::from_utf8(answered(config, headers, body).0).expect("text")
}

/// Likewise, and the headers before it.
fn answered(config: &Value, headers: &[(&str, &str)], body: &[u8]) -> (Vec<u8>, Vec<String>) {
    let filter = build(&ResponseRewrite, config).expect("valid");
    let mut exchange = exchange();
    exchange.response.status = 200;
    exchange.response.headers = header_fields(headers);
    filter.on_response(&mut exchange);
    let response = &mut exchange.response;
    let (first, second) = body.split_at(body.len() / 2);
    let mut out = Vec::new();
    response.body_filters.piece(first, &mut out);
    response.body_filters.piece(second, &mut out);
    response
        .body_filters
        .head(&mut response.status, &mut response.headers);
    response.body_filters.end(&mut out);
    (out, lines(&response.headers))
}

#[test]
fn bodies_are_changed() {
    let filter = |pattern: &str, replacement: &str, all: bool| json!({"filters": [{"pattern": pattern, "replacement": replacement, "all": all}]});
    let json = ("Content-Type", "application/problem+json; charset=utf-8");
    for (config, headers, body, expected) in [
        (json!({"before": "[", "after": "]"}), vec![], "hi", "[hi]"),
        (json!({"after": "]"}), vec![], "", "]"),
        (
            filter("world", "X", true),
            vec![],
            "hello world world",
            "hello X X",
        ),
        (
            filter("world", "X", false),
            vec![],
            "hello world world",
            "hello X world",
        ),
        (filter("(?i)(H)(E)", "$2$1", false), vec![], "hello", "ehllo"),
        (
            filter("l", "L", true),
            vec![("Content-Encoding", "zstd")],
            "ll",
            "ll",
        ),
        (
            json!({"json": [{"add": {"n": 1}}]}),
            vec![json],
            r#"{"a":2}"#,
            r#"{"a":2,"n":1}"#,
        ),
        (json!({"json": [{"add": {"n": 1}}]}), vec![json], "[1]", "[1]"),
        (json!({"json": [{"add": {"n": 1}}]}), vec![json], "no", "no"),
        (
            json!({"json": [{"add": {"n": 1}}]}),
            vec![("Content-Type", "text/plain")],
            "{}",
            "{}",
        ),
        (
            json!({"json": [{"add": {"n": 1}}], "max_body_bytes": 1}),
            vec![json],
            "{ }",
            "{ }",
        ),
    ] {
        assert_eq!(passed(&config, &headers, body.as_bytes()), expected, "{config}");
    }
}

#[test]
fn compressed_bodies_are_unpacked() {
    let packed = gzip(b"hello world");
    let config = json!({"filters": [{"pattern": "world", "replacement": "you"}]});
    let headers = [("Content-Encoding", "gzip"), ("ETag", "x")];
    let (body, told) = answered(&config, &headers, &packed);
    assert_eq!((body.as_slice(), told), (&b"hello you"[..], vec![]));
    // One that is too large passes as it came, with the name of its coding: packed, or unpacked.
    for most in [packed.len() - 1, 10] {
        let config = json!({"filters": config["filters"], "max_body_bytes": most});
        let (body, told) = answered(&config, &headers, &packed);
        assert_eq!(
            (body, told),
            (packed.clone(), vec!["Content-Encoding: gzip".to_owned()])
        );
    }
}

#[test]
fn configurations_are_checked() {
    assert!(build(&ResponseRewrite, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({"status": 199}), vec!["status"]),
        (json!({"body": "!", "body_is_base64": true}), vec!["body"]),
        (json!({"when": ["status", "~~", "("]}), vec!["when"]),
        (
            json!({"headers": [{"remove": ["a:"]}]}),
            vec!["headers[0].remove[0]"],
        ),
        (
            json!({"body": "", "filters": [{"pattern": "a", "replacement": "b"}]}),
            vec!["filters"],
        ),
        (
            json!({"filters": [{"pattern": "(", "replacement": ""}]}),
            vec!["filters[0].pattern"],
        ),
    ] {
        assert_eq!(refused_at(&ResponseRewrite, &config), places, "{config}");
    }
}
