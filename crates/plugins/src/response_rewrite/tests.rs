//! `response-rewrite` as clients see it.

use super::*;
use crate::testkit::*;
use serde_json::json;

fn rewrite(config: &Value, status: u16) -> Exchange {
    let filter = build(&ResponseRewrite, config).expect("valid");
    let mut exchange = exchange();
    exchange.response.status = status;
    exchange.response.reason = b"Upstream's words".to_vec();
    for (name, value) in [
        ("X-A", "up"),
        ("ETag", "\"e\""),
        ("Content-Encoding", "gzip"),
        ("Last-Modified", "then"),
    ] {
        exchange
            .response
            .headers
            .append(name.as_bytes(), value.as_bytes());
    }
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
        (json!({"filters": []}), vec!["filters"]),
    ] {
        assert_eq!(refused_at(&ResponseRewrite, &config), places, "{config}");
    }
}
