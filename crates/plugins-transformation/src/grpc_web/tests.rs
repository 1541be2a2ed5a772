//! Tests of `grpc-web`.

use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Headers, Outcome};
use weir_plugins_testkit::*;

const PROTO: &str =
    "syntax = \"proto3\"; package hello; message Q { string greeting = 1; } message R { string reply = 1; }
service HelloService { rpc SayHello(Q) returns (R); rpc Many(Q) returns (stream R); }";
const PATH: &str = "POST /hello.HelloService/SayHello";

fn with_proto() -> Value {
    json!({"proto": {"text": PROTO}})
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::grpc_frames::write(flag, message, &mut out);
    out
}

fn begin(
    config: &Value,
    line: &str,
    content_type: &str,
    body: &[u8],
) -> (Arc<dyn Filter>, Exchange, Outcome) {
    let filter = build(&GrpcWeb::default(), config).expect("valid");
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        line,
        &[("content-type", content_type), ("te", "chunked")],
    );
    exchange.request.body = Some(body.to_vec());
    exchange.request.has_body = true;
    let outcome = filter.on_request(&mut exchange);
    (filter, exchange, outcome)
}

/// Lets an answer pass: its body, after each piece a pause, and its trailers.
fn answer(
    filter: &dyn Filter,
    exchange: &mut Exchange,
    pieces: &[&[u8]],
    trailers: &[(&str, &str)],
) -> Vec<u8> {
    let response = &mut exchange.response;
    response.status = 200;
    response.headers.set(b"Content-Type", b"application/grpc");
    filter.on_response(exchange);
    let mut out = Vec::new();
    let filters = &mut exchange.response.body_filters;
    for piece in pieces {
        filters.piece(piece, &mut out);
        filters.pause(&mut out);
    }
    let mut fields = Headers::default();
    for (name, value) in trailers {
        fields.append(name.as_bytes(), value.as_bytes());
    }
    filters.trailers(&mut fields);
    assert!(fields.is_empty() || pieces.is_empty());
    filters.end(&mut out);
    out
}

#[test]
fn calls_become_grpc() {
    let binary = framed(0, b"\x0a\x04heya");
    let text = b"AAAAAAYKBGhleWE=";
    let json = framed(0, br#"{"greeting": "heya"}"#);
    let config = with_proto();
    for (content_type, body) in [
        ("application/grpc-web", binary.as_slice()),
        ("application/grpc-web+proto", &binary),
        ("Application/gRPC-Web; charset=x", &binary),
        ("application/grpc-web-text", text),
        ("application/grpc-web-text+proto", text),
        ("application/grpc-web+json", &json),
        ("application/json", br#"{"greeting": "heya"}"#),
    ] {
        let (_, exchange, outcome) = begin(&config, PATH, content_type, body);
        assert_eq!(word(&outcome), "continue", "{content_type}");
        let request = &exchange.request;
        assert_eq!(request.body.as_deref(), Some(binary.as_slice()), "{content_type}");
        assert_eq!(
            lines(&request.headers),
            ["Content-Type: application/grpc", "TE: trailers"]
        );
    }
}

#[test]
fn answers_come_back_as_they_were_asked_for() {
    let message = framed(0, b"\x0a\x0ahello heya");
    let trailers = [("grpc-status", "0"), ("grpc-message", ""), ("x-more", "1")];
    let status = b"grpc-status:0\r\ngrpc-message:\r\n";
    let last = framed(0x80, status);
    let all = framed(0x80, b"grpc-status:0\r\ngrpc-message:\r\nx-more:1\r\n");
    let lua = json!({"proto": {"text": PROTO}, "trailers": "status"});
    let json_body = br#"{"reply":"hello heya"}"#;
    let json_message = framed(0, json_body);
    let joined = |one: &[u8], other: &[u8]| [one, other].concat();
    for (config, content_type, body, expected) in [
        (
            &lua,
            "application/grpc-web+proto",
            &b""[..],
            joined(&message, &last),
        ),
        (&with_proto(), "application/grpc-web", b"", joined(&message, &all)),
        (
            &lua,
            "application/grpc-web-text",
            b"",
            b"AAAAAAwKCmhlbGxvIGhleWE=gAAAAB5ncnBjLXN0YXR1czowDQpncnBjLW1lc3NhZ2U6DQo=".to_vec(),
        ),
        (
            &lua,
            "application/grpc-web+json",
            b"\0\0\0\0\x02{}",
            joined(&json_message, &last),
        ),
        (&lua, "application/json", b"{}", json_body.to_vec()),
    ] {
        let (filter, mut exchange, outcome) = begin(config, PATH, content_type, body);
        assert_eq!(word(&outcome), "continue");
        let out = answer(&*filter, &mut exchange, &[&message], &trailers);
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&expected),
            "{content_type}"
        );
        assert_eq!(
            exchange.response.headers.get(b"content-type"),
            Some(content_type.as_bytes())
        );
    }
}

#[test]
fn the_end_is_sent_in_any_case() {
    let config = json!({"trailers": "status"});
    let ended = |trailers: &[(&str, &str)], has_trailers: bool| {
        let (filter, mut exchange, _) = begin(&config, PATH, "application/grpc-web", b"");
        if has_trailers {
            exchange.response.headers.append(b"grpc-status", b"5");
        }
        let out = answer(&*filter, &mut exchange, &[], trailers);
        String::from_utf8_lossy(out.get(5..).unwrap_or_default()).into_owned()
    };
    assert_eq!(
        ended(&[("grpc-status", "7"), ("grpc-message", "no")], false),
        "grpc-status:7\r\ngrpc-message:no\r\n"
    );
    assert_eq!(
        ended(&[], false),
        "grpc-status:2\r\ngrpc-message:upstream grpc status not received\r\n"
    );
    // Trailers in the head need no message.
    assert_eq!(ended(&[], true), "");
    // An answer that is no message.
    let (filter, mut exchange, _) = begin(
        &with_proto(),
        PATH,
        "application/grpc-web+json",
        b"\0\0\0\0\x02{}",
    );
    let out = answer(
        &*filter,
        &mut exchange,
        &[&framed(0, b"\xff")],
        &[("grpc-status", "0")],
    );
    assert!(String::from_utf8_lossy(&out).contains("grpc-status:13\r\n"));
}

#[test]
fn messages_of_a_stream_go_on_at_once() {
    let (filter, mut exchange, _) = begin(&json!({}), PATH, "application/grpc-web-text", b"");
    exchange.response.status = 200;
    exchange
        .response
        .headers
        .set(b"Content-Type", b"application/grpc+proto");
    filter.on_response(&mut exchange);
    let filters = &mut exchange.response.body_filters;
    for message in [&b"a"[..], b"bb"] {
        let mut out = Vec::new();
        filters.piece(&framed(0, message), &mut out);
        filters.pause(&mut out);
        assert_eq!(decode_text(&out), Some(framed(0, message)));
    }
}

#[test]
fn refusals_are_sent_as_configured() {
    for (config, line, content_type, body, expected) in [
        (json!({}), "GET /", "application/grpc-web", &b""[..], "continue"),
        (json!({}), PATH, "application/json", b"", "continue"),
        (json!({}), PATH, "application/grpc", b"", "continue"),
        (json!({}), PATH, "application/grpc-web-text", b"*", "answered 400"),
        (
            json!({}),
            PATH,
            "application/grpc-web+json",
            b"",
            "unacceptable 400",
        ),
        (
            json!({"others": "refuse"}),
            "GET /",
            "application/grpc-web",
            b"",
            "answered 405",
        ),
        (
            json!({"others": "refuse"}),
            PATH,
            "application/json",
            b"",
            "answered 400",
        ),
        (json!({"others": "explain"}), PATH, "text/plain", b"", "reply 400"),
        (
            json!({"proto": {"text": PROTO}, "others": "explain"}),
            "POST /a/b",
            "application/json",
            b"{}",
            "reply 400",
        ),
        (with_proto(), PATH, "application/json", b"{", "unacceptable 400"),
        (json!({}), "OPTIONS /", "", b"", "continue"),
        (json!({"cross_origin": {}}), "OPTIONS /", "", b"", "reply 204"),
    ] {
        let (_, _, outcome) = begin(&config, line, content_type, body);
        assert_eq!(word(&outcome), expected, "{config} {line} {content_type}");
    }
    let (filter, mut exchange, _) = begin(&json!({}), PATH, "application/grpc-web-text", b"");
    prepare(
        &mut exchange,
        PATH,
        &[("content-type", "application/grpc-web-text")],
    );
    exchange.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    assert_eq!(word(&filter.on_request(&mut exchange)), "body_too_large 413");
}

#[test]
fn the_gateways_refusals_are_sent_as_statuses() {
    for (config, content_type, expected) in [
        (json!({}), "application/grpc-web", (200, Some(&b"14"[..]))),
        (json!({}), "text/plain", (503, None)),
        (
            json!({"refusals_as_status": false}),
            "application/grpc-web",
            (503, None),
        ),
    ] {
        let filter = build(&GrpcWeb::default(), &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, PATH, &[("content-type", content_type)]);
        exchange.response.status = 503;
        exchange.response.is_gateway = true;
        filter.on_response(&mut exchange);
        let response = &exchange.response;
        assert_eq!((response.status, response.headers.get(b"grpc-status")), expected);
    }
}

#[test]
fn paths_and_cors_headers_are_set_as_configured() {
    for (path, expected) in [
        ("route", None),
        ("client", Some("/grpc/web/a.B/C")),
        ("remainder", Some("/a.B/C")),
    ] {
        let filter = build(&GrpcWeb::default(), &json!({"path": path})).expect("valid");
        let mut exchange = exchange();
        prepare(
            &mut exchange,
            "POST /grpc/web/a.B/C",
            &[("content-type", "application/grpc-web")],
        );
        exchange.matched_len = "/grpc/web/".len();
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(
            exchange.upstream_path.as_deref(),
            expected.map(str::as_bytes),
            "{path}"
        );
    }
    let (filter, mut exchange, _) = begin(
        &json!({"cross_origin": {"allow_methods": "POST"}}),
        "OPTIONS /",
        "",
        b"",
    );
    exchange.response.is_gateway = true;
    exchange
        .response
        .headers
        .append(b"Access-Control-Allow-Origin", b"http://a");
    filter.on_response(&mut exchange);
    assert_eq!(
        lines(&exchange.response.headers),
        [
            "Access-Control-Allow-Origin: http://a",
            "Access-Control-Allow-Methods: POST",
            "Access-Control-Allow-Headers: content-type,x-grpc-web,x-user-agent,grpc-timeout",
            "Access-Control-Expose-Headers: grpc-status,grpc-message",
        ]
    );
}

#[test]
fn configurations_are_checked() {
    let plugin = GrpcWeb::default();
    for (config, places) in [
        (json!({"proto": {"text": "x"}}), vec!["proto.text"]),
        (json!({"max_request_bytes": 1 << 30}), vec!["max_request_bytes"]),
        (
            json!({"cross_origin": {"allow_origin": "a\nb"}}),
            vec!["cross_origin"],
        ),
        (
            json!({"cross_origin": {"preflight": {"status": 100}}}),
            vec!["cross_origin"],
        ),
        (json!({"path": "x"}), vec!["path"]),
    ] {
        assert_eq!(refused_at(&plugin, &config), places, "{config}");
    }
}
