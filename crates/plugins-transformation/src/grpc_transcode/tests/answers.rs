//! What becomes of answers.

use super::{begin, config};
use serde_json::{Value, json};
use weir_plugin::Headers;
use weir_plugins_testkit::*;

/// The status, the type and the body of an answer.
fn answer(
    more: &Value,
    line: &str,
    head: &[(&str, &str)],
    messages: &[&[u8]],
    trailers: &[(&str, &str)],
) -> (u16, String, String) {
    let (filter, mut exchange, outcome) = begin(&config(more), line, &[], None);
    assert_eq!(word(&outcome), "continue");
    let response = &mut exchange.response;
    response.status = 200;
    response.headers.append(b"Content-Type", b"application/grpc");
    for (name, value) in head {
        response.headers.append(name.as_bytes(), value.as_bytes());
    }
    filter.on_response(&mut exchange);
    let response = &mut exchange.response;
    let mut out = Vec::new();
    for message in messages {
        let mut framed = Vec::new();
        crate::grpc_frames::write(0, message, &mut framed);
        response.body_filters.piece(&framed, &mut out);
    }
    let mut fields = Headers::default();
    for (name, value) in trailers {
        fields.append(name.as_bytes(), value.as_bytes());
    }
    response.body_filters.trailers(&mut fields);
    if response.hold.is_some() {
        response
            .body_filters
            .head(&mut response.status, &mut response.headers);
    }
    response.body_filters.end(&mut out);
    let content_type = response.headers.get(b"content-type").unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (response.status, text(content_type), text(&out))
}

#[test]
fn answers_become_json() {
    let ok = [("grpc-status", "0")];
    let book = b"\x0a\x017\x18\x09";
    let many = b"\x0a\x03\x0a\x017\x0a\x03\x0a\x018";
    let joined = json!({"joined": true, "json": {"names": "proto", "integers": "number"}});
    for (more, line, messages, expected) in [
        (
            json!({}),
            "GET /v1/books/7",
            vec![&book[..]],
            (200, "application/json", r#"{"id":"7","pages":"9"}"#),
        ),
        (
            json!({}),
            "GET /v1/list",
            vec![&many[..]],
            (200, "application/json", r#"[{"id":"7"},{"id":"8"}]"#),
        ),
        (
            json!({}),
            "GET /v1/watch",
            vec![&book[..], b""],
            (
                200,
                "application/x-ndjson",
                "{\"id\":\"7\",\"pages\":\"9\"}\n{}\n",
            ),
        ),
        (
            joined,
            "GET /v1/watch",
            vec![&book[..], b""],
            (200, "application/json", r#"{"id":"7","pages":9}{}"#),
        ),
        // What is no message, and no message at all.
        (
            json!({}),
            "GET /v1/books/7",
            vec![&b"\xff"[..]],
            (
                500,
                "application/json",
                r#"{"code":13,"message":"the answer cannot be read","details":[]}"#,
            ),
        ),
        (
            json!({"errors": {"body": "none"}}),
            "GET /v1/books/7",
            vec![],
            (500, "application/json", ""),
        ),
    ] {
        let (status, content_type, body) = answer(&more, line, &[], &messages, &ok);
        assert_eq!((status, content_type.as_str(), body.as_str()), expected, "{line}");
    }
}

/// `grpc-status-details-bin`, without its padding.
fn details() -> String {
    // google.rpc.Status: 5, "gone", and one detail of type shop.Author.
    let mut detail = vec![0x0a, 23];
    detail.extend_from_slice(b"example.com/shop.Author");
    detail.extend_from_slice(b"\x12\x03\x0a\x01a");
    let mut status = b"\x08\x05\x12\x04gone\x1a".to_vec();
    status.push(detail.len() as u8);
    status.extend_from_slice(&detail);
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD_NO_PAD, &status)
}

#[test]
fn errors_become_statuses() {
    let encoded = details();
    let headers = [
        ("grpc-status", "5"),
        ("grpc-message", "gone%21"),
        ("grpc-status-details-bin", encoded.as_str()),
    ];
    let details_only = |kind: Option<&str>| json!({"errors": {"body": "details", "detail_type": kind, "unknown_status": 599}});
    for (more, line, head, trailers, status, body) in [
        (
            json!({}),
            "GET /v1/books/7",
            &headers[..],
            &[][..],
            404,
            r#"{"code":5,"message":"gone!","details":[{"@type":"example.com/shop.Author","name":"a"}]}"#,
        ),
        (
            json!({}),
            "GET /v1/books/7",
            &[],
            &headers[..2],
            404,
            r#"{"code":5,"message":"gone!","details":[]}"#,
        ),
        (
            json!({"errors": {"body": "none"}}),
            "GET /v1/books/7",
            &headers,
            &[],
            404,
            "",
        ),
        (
            json!({}),
            "GET /v1/watch",
            &headers[..2],
            &[],
            404,
            r#"{"code":5,"message":"gone!","details":[]}"#,
        ),
        (
            json!({}),
            "GET /v1/watch",
            &[],
            &headers[..1],
            200,
            r#"{"code":5,"message":"","details":[]}"#,
        ),
        (
            details_only(None),
            "GET /v1/books/7",
            &headers,
            &[],
            404,
            "{\"error\":{\"code\":5,\"message\":\"gone\",\"details\":[{\"type_url\":\"example.com/shop.Author\",\"value\":\"\\n\\u0001a\"}]}}",
        ),
        (
            details_only(Some("shop.Author")),
            "GET /v1/books/7",
            &headers,
            &[],
            404,
            r#"{"error":{"code":5,"message":"gone","details":[{"name":"a"}]}}"#,
        ),
        (
            details_only(None),
            "GET /v1/books/7",
            &[("grpc-status", "77")],
            &[],
            599,
            "",
        ),
        (
            details_only(None),
            "GET /v1/books/7",
            &[("grpc-status", "3"), ("grpc-status-details-bin", "*")],
            &[],
            400,
            "grpc-status-details-bin is not base64 format",
        ),
        (
            json!({"errors": {"unimplemented_status": 500}}),
            "GET /v1/books/7",
            &[("grpc-status", "12")],
            &[],
            500,
            r#"{"code":12,"message":"","details":[]}"#,
        ),
    ] {
        let (found, _, text) = answer(&more, line, head, &[], trailers);
        assert_eq!((found, text.as_str()), (status, body), "{more} {line}");
    }
}

#[test]
fn an_error_behind_messages_is_a_line() {
    let trailers = [("grpc-status", "13"), ("grpc-message", "boom")];
    let (status, _, body) = answer(&json!({}), "GET /v1/watch", &[], &[b"\x0a\x017"], &trailers);
    assert_eq!(
        (status, body.as_str()),
        (
            200,
            "{\"id\":\"7\"}\n{\"error\":{\"code\":13,\"message\":\"boom\",\"details\":[]}}\n"
        )
    );
}

#[test]
fn what_is_no_grpc_passes() {
    for (status, content_type, is_gateway) in [
        (200, "text/html", false),
        (502, "application/grpc", false),
        (503, "application/grpc", true),
    ] {
        let (filter, mut exchange, _) = begin(&config(&json!({})), "GET /v1/books/7", &[], None);
        let response = &mut exchange.response;
        response.status = status;
        response.is_gateway = is_gateway;
        response.headers.append(b"Content-Type", content_type.as_bytes());
        filter.on_response(&mut exchange);
        assert!(exchange.response.body_filters.is_empty() && exchange.response.hold.is_none());
        assert_eq!(
            lines(&exchange.response.headers),
            [format!("Content-Type: {content_type}")]
        );
    }
}
