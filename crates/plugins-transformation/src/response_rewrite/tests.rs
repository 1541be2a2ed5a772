//! `response-rewrite` as clients see it.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

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
    ] {
        assert_eq!(passed(&config, &headers, body.as_bytes()), expected, "{config}");
    }
}

#[test]
fn compressed_bodies_are_unpacked() {
    let packed = gzip(b"hello world");
    let config = json!({"filters": [{"pattern": "world", "replacement": "you"}]});
    let headers = [("Content-Encoding", "gzip"), ("ETag", "x")];
    let (body, coding) = answered(&config, &headers, &packed);
    assert_eq!((body.as_slice(), coding), (&b"hello you"[..], vec![]));
    let config = json!({"json": [{"add": {"n": 1}}]});
    let headers = [("Content-Encoding", "gzip"), ("Content-Type", "application/json")];
    let (body, coding) = answered(&config, &headers, &gzip(b"{}"));
    assert_eq!(body, b"{\"n\":1}");
    assert_eq!(coding, ["Content-Type: application/json"]);
}

/// What happens to a response whose body cannot be changed: status, body, and its coding.
fn unfit(config: &Value, coding: &str, body: &[u8]) -> (u16, String, String) {
    let filter = build(&ResponseRewrite, config).expect("valid");
    let mut exchange = exchange();
    exchange.response.status = 200;
    let json = ("Content-Type", "application/json");
    exchange.response.headers = match coding {
        "" => header_fields(&[json]),
        coding => header_fields(&[json, ("Content-Encoding", coding)]),
    };
    filter.on_response(&mut exchange);
    let response = &mut exchange.response;
    let body = response.filter_whole(body.to_vec());
    let coding = response.headers.get(b"content-encoding").unwrap_or_default();
    let [body, coding] = [&body[..], coding].map(|text| String::from_utf8_lossy(text).into_owned());
    (response.status, body, coding)
}

/// A body that is not changed may hold what the change was to take out.
#[test]
fn bodies_that_cannot_be_changed_do_not_pass() {
    let filters = json!([{"pattern": "hello", "replacement": "HELLO"}]);
    let packed = gzip(b"hello world");
    let refused = (502, String::new(), String::new());
    for (config, coding, body, cut) in [
        // (as APISIX's own tests have it)
        (
            json!({"filters": filters, "max_body_bytes": 5}),
            "",
            &b"hello world"[..],
            Some("HELLO"),
        ),
        (
            json!({"filters": filters, "max_body_bytes": packed.len() - 1}),
            "gzip",
            &packed,
            None,
        ),
        (
            json!({"filters": filters, "max_body_bytes": 10}),
            "gzip",
            &packed,
            None,
        ),
        (json!({"filters": filters}), "zstd", b"hello", None),
        (
            json!({"json": [{"remove": ["a"]}], "max_body_bytes": 1}),
            "",
            b"{\"a\": 1}",
            Some("{"),
        ),
    ] {
        assert_eq!(unfit(&config, coding, body), refused, "{config}");
        let mut lenient = config.clone();
        lenient["excess"] = json!("cut");
        let passed = match cut {
            Some(cut) => (200, cut.to_owned(), String::new()),
            None => (200, String::from_utf8_lossy(body).into_owned(), coding.to_owned()),
        };
        assert_eq!(unfit(&lenient, coding, body), passed, "{lenient}");
    }
}

/// The defect: each filter multiplied a body, up to the memory of the machine.
#[test]
fn replacements_do_not_make_bodies_without_bound() {
    let filter = |pattern: &str, replacement: &str, all: bool| json!({"pattern": pattern, "replacement": replacement, "all": all});
    let long = "0".repeat(4_096);
    let (every, first) = (filter(".", &long, true), filter(".", &long, false));
    let between = filter("", &"0".repeat(20_000), true);
    let copies = filter(".*", &"$0".repeat(20_000), false);
    let body = [b'a'; 4_096];
    let refused = (502, 0);
    let nine = (200, 4_096 + 9 * 4_095);
    let whole = (200, 4_096 * 4_096);
    for (filters, refuse, cut) in [
        (vec![&first; 9], nine, nine),
        (vec![&every], whole, whole),
        (vec![&every, &every], refused, (200, MAX_BODY)),
        (vec![&every, &every, &first], refused, (200, MAX_BODY)),
        (vec![&between], refused, (200, MAX_BODY)),
        // What a match becomes is made whole or not at all.
        (vec![&copies], refused, (200, 0)),
    ] {
        for (excess, expected) in [("refuse", refuse), ("cut", cut)] {
            let config = json!({"filters": filters, "excess": excess});
            let (status, out, _) = unfit(&config, "", &body);
            assert_eq!((status, out.len()), expected, "{config}");
        }
    }
}

/// A head waits for its body only if replacements can make that too large.
#[test]
fn heads_wait_for_bodies_that_may_grow_too_large() {
    for (replacement, length, waits) in [
        ("X", Some(1_000), false),
        ("X", Some(16 << 20), false),
        ("XX", Some(16 << 20), false),
        ("XXXX", Some(16 << 20), true),
        ("$0$0", Some(16 << 20), true),
        ("XXXX", Some(1_000), false),
        ("X", None, true),
    ] {
        let config = json!({"filters": [{"pattern": "a", "replacement": replacement, "all": true}]});
        let filter = build(&ResponseRewrite, &config).expect("valid");
        let mut exchange = exchange();
        exchange.response.status = 200;
        exchange.response.content_length = length;
        filter.on_response(&mut exchange);
        assert_eq!(
            exchange.response.hold.is_some(),
            waits,
            "{replacement} {length:?}"
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
