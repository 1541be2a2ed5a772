//! gRPC-Web and transcoding through the gateway, by all spellings, to a gRPC server.

mod gateway;
#[path = "../support/grpc.rs"]
mod grpc;
mod server;
#[path = "../support/weir.rs"]
mod weir;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateway::{Gateway, folder};
use std::net::SocketAddr;
use std::process::Command;

fn native(upstream: SocketAddr, scheme: &str) -> Gateway {
    Gateway::start(
        "weir.yaml",
        &format!(
            "weir: 1
services:
  - name: hello
    url: {scheme}://{upstream}
    routes:
      - name: rest
        paths: [/v1]
        plugins: [{{grpc-transcode: {{proto: {{file: hello.proto}}}}}}]
      - name: web
        paths: [/]
        plugins: [{{grpc-web: {{proto: {{file: hello.proto}}}}}}]
"
        ),
    )
}

#[test]
fn rest_becomes_grpc() {
    let upstream = server::start();
    for scheme in ["grpc", "h2c"] {
        let gateway = native(upstream, scheme);
        let lines = "{\"reply\":\"hello a\",\"times\":\"1\"}\n{\"reply\":\"hello a\",\"times\":\"2\"}\n\
                     {\"error\":{\"code\":8,\"message\":\"enough\",\"details\":[]}}\n";
        for (line, body, status, answer) in [
            (
                "GET /v1/hello/a%20b?times=7",
                "",
                200,
                r#"{"reply":"hello a b","times":"7"}"#,
            ),
            (
                "POST /v1/hello",
                r#"{"greeting": "c"}"#,
                200,
                r#"{"reply":"hello c"}"#,
            ),
            (
                "GET /v1/hello/stranger",
                "",
                404,
                r#"{"code":5,"message":"no such greeting: ä","details":[]}"#,
            ),
            ("GET /v1/lots/a", "", 200, lines),
        ] {
            assert_eq!(
                gateway.text(line, "application/json", body),
                (status, answer.to_owned()),
                "{line}"
            );
        }
        for (line, body, status) in [
            ("GET /v1/nothing", "", 404),
            ("GET /v1/hello/a?times=x", "", 400),
            ("POST /v1/hello", "{", 400),
        ] {
            let (found, answer) = gateway.text(line, "application/json", body);
            assert_eq!(found, status, "{line} {answer}");
        }
    }
}

/// A request of gRPC-Web and its answer, as Kong's own tests have them.
const ASKED: &str = "AAAAAAYKBGhleWE=";
const ANSWERED: &str = "AAAAAAwKCmhlbGxvIGhleWE=";
const ENDED: &str = "gAAAAB5ncnBjLXN0YXR1czowDQpncnBjLW1lc3NhZ2U6DQo=";

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("Base64")
}

/// Checks gRPC-Web, binary and as a text.
fn check_web(gateway: &Gateway, path: &str) {
    let line = format!("POST {path}/hello.HelloService/SayHello");
    for (content_type, asked, is_text) in [
        ("application/grpc-web+proto", bytes(ASKED), false),
        ("application/grpc-web-text", ASKED.as_bytes().to_vec(), true),
    ] {
        let (status, head, body) = gateway.call(&line, content_type, &asked);
        assert_eq!(status, 200, "{head}");
        assert!(
            head.contains(&format!("content-type: {content_type}\r\n")),
            "{head}"
        );
        let body = match is_text {
            true => weir_plugins::grpc_web::decode_text(&body).expect("Base64"),
            false => body,
        };
        let ended = String::from_utf8_lossy(&body[17..]).into_owned();
        assert_eq!(body[..17], bytes(ANSWERED));
        assert!(ended.contains("grpc-status:0\r\n"), "{ended}");
    }
    // An error of the service comes in the head.
    let stranger = STANDARD.encode([&b"\0\0\0\0\x0a\x0a\x08"[..], b"stranger"].concat());
    let (status, head, body) = gateway.call(&line, "application/grpc-web-text", stranger.as_bytes());
    assert_eq!((status, body.len()), (200, 0), "{head}");
    assert!(head.contains("grpc-status: 5\r\n"), "{head}");
}

#[test]
fn browsers_call_grpc() {
    let gateway = native(server::start(), "grpc");
    check_web(&gateway, "");
    let line = "POST /hello.HelloService/SayHello";
    let (status, body) = gateway.text(line, "application/json", r#"{"greeting": "x"}"#);
    assert_eq!((status, body.as_str()), (200, r#"{"reply":"hello x"}"#));
    // Messages of a stream, and how it ends.
    let line = "POST /hello.HelloService/LotsOfReplies";
    let (_, _, body) = gateway.call(line, "application/grpc-web", &bytes(ASKED));
    let text = String::from_utf8_lossy(&body);
    assert_eq!(text.matches("hello heya").count(), 2);
    assert!(
        text.contains("grpc-status:8\r\ngrpc-message:enough\r\n"),
        "{text}"
    );
}

#[test]
fn kong_spells_it_so() {
    let upstream = server::start();
    let gateway = Gateway::start(
        "kong.yml",
        &format!(
            "_format_version: '3.0'
services:
  - name: hello
    url: grpc://{upstream}
    routes:
      - {{name: rest, paths: [/v1], plugins: [{{name: grpc-gateway, config: {{proto: hello.proto}}}}]}}
      - {{name: bare, paths: [/bare], plugins: [{{name: grpc-gateway}}]}}
      - name: stripped
        paths: [/prefix]
        plugins: [{{name: grpc-web, config: {{proto: hello.proto, pass_stripped_path: true}}}}]
      - {{name: web, paths: [/], plugins: [{{name: grpc-web, config: {{proto: hello.proto}}}}]}}
"
        ),
    );
    check_web(&gateway, "");
    check_web(&gateway, "/prefix");
    let (_, head, body) = gateway.call(
        "POST /hello.HelloService/SayHello",
        "application/grpc-web-text",
        ASKED.as_bytes(),
    );
    assert_eq!(String::from_utf8_lossy(&body), format!("{ANSWERED}{ENDED}"));
    assert!(head.contains("access-control-allow-origin: *"), "{head}");
    for (line, body, status, answer) in [
        (
            "GET /v1/hello/a?times=7",
            "",
            200,
            r#"{"reply":"hello a","times":7}"#,
        ),
        (
            "POST /v1/hello",
            r#"{"greeting": "c"}"#,
            200,
            r#"{"reply":"hello c","times":0}"#,
        ),
        ("GET /v1/hello/stranger", "", 404, ""),
        (
            "GET /v1/no",
            "",
            400,
            "failed to transcode .proto file Unknown path \"/v1/no\"",
        ),
        (
            "POST /v1/hello",
            r#"{"greeting": 7}"#,
            400,
            "failed to encode payload",
        ),
        ("OPTIONS /v1/hello", "", 200, "OK"),
        (
            "GET /bare",
            "",
            400,
            "transcoding requests require a .proto file defining the service",
        ),
        ("POST /a/b", "{}", 400, "Unkown path \"/a/b\""),
        ("OPTIONS /a/b", "", 200, "OK"),
    ] {
        assert_eq!(
            gateway.text(line, "application/json", body),
            (status, answer.to_owned()),
            "{line}"
        );
    }
}

#[test]
fn apisix_spells_it_so() {
    let upstream = server::start();
    let proto = server::PROTO.replace("import \"sub/messages.proto\";", "");
    let messages = server::MESSAGES.split_once("hello;").expect("messages").1;
    let content = format!("{proto}{messages}").replace('\n', "\n      ");
    let gateway = Gateway::start(
        "apisix.yaml",
        &format!(
            "routes:
  - uri: /hello
    plugins:
      grpc-transcode: {{proto_id: 1, service: hello.HelloService, method: SayHello, deadline: 5000}}
    upstream_id: 1
  - uri: /told
    plugins:
      grpc-transcode:
        {{proto_id: '1', service: hello.HelloService, method: SayHello, show_status_in_body: true, pb_option: [int64_as_string]}}
    upstream_id: 1
  - uri: /grpc/web/*
    plugins: {{grpc-web: {{}}}}
    upstream_id: 1
upstreams:
  - {{id: 1, scheme: grpc, type: roundrobin, nodes: {{'{upstream}': 1}}}}
protos:
  - id: 1
    content: |
      {content}
#END
"
        ),
    );
    check_web(&gateway, "/grpc/web");
    for (line, content_type, body, status, answer) in [
        (
            "GET /hello?greeting=a&times=7",
            "",
            "",
            200,
            r#"{"reply":"hello a","times":7}"#,
        ),
        (
            "POST /hello",
            "application/json",
            r#"{"greeting": "c"}"#,
            200,
            r#"{"reply":"hello c","times":0}"#,
        ),
        (
            "POST /hello",
            "application/x-www-form-urlencoded",
            "greeting=d",
            200,
            r#"{"reply":"hello d","times":0}"#,
        ),
        (
            "GET /told?greeting=a&times=5000000000",
            "",
            "",
            200,
            r##"{"reply":"hello a","times":"#5000000000"}"##,
        ),
        ("GET /hello?greeting=stranger", "", "", 404, ""),
        ("GET /told?greeting=stranger", "", "", 404, ""),
    ] {
        assert_eq!(
            gateway.text(line, content_type, body),
            (status, answer.to_owned()),
            "{line}"
        );
    }
    for (line, content_type, status) in [
        ("POST /hello", "application/json", 200),
        ("GET /grpc/web/a.B/C", "application/grpc-web", 405),
        ("POST /grpc/web/a.B/C", "text/plain", 400),
        ("OPTIONS /grpc/web/a.B/C", "", 204),
    ] {
        let (found, head, _) = gateway.call(line, content_type, b"");
        assert_eq!(found, status, "{line}");
        assert_eq!(
            head.contains("access-control-expose-headers: grpc-message,grpc-status"),
            !line.contains("/hello")
        );
    }
}

#[test]
fn definitions_are_checked_when_they_are_loaded() {
    let config = |file: &str, scheme: &str| {
        let text = format!(
            "weir: 1\nservices:\n  - {{name: a, url: '{scheme}://127.0.0.1:1', routes: [{{name: r, paths: [/], \
             plugins: [{{grpc-transcode: {{proto: {{file: {file}}}}}}}]}}]}}\n"
        );
        let folder = folder("weir.yaml", &text);
        std::fs::write(
            folder.path().join("broken.proto"),
            "syntax = \"proto3\";\nmessage {",
        )
        .expect("a file");
        std::fs::write(folder.path().join("empty.proto"), "syntax = \"proto3\";").expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["check", "weir.yaml"])
            .current_dir(folder.path())
            .output()
            .expect("the binary runs");
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&printed).into_owned(),
        )
    };
    for (file, is_good, message) in [
        ("hello.proto", true, ""),
        (
            "none.proto",
            false,
            "route 'r': proto.file: none.proto: cannot be read: No such file",
        ),
        ("broken.proto", false, "proto.file: broken.proto:2:9: "),
        (
            "empty.proto",
            false,
            "weir.yaml:3: error: services[0].routes[0].plugins[0].grpc-transcode.proto: expected methods",
        ),
    ] {
        let (good, found) = config(file, "grpc");
        assert_eq!(good, is_good, "{found}");
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn explain_shows_grpc() {
    let text = "weir: 1\nservices:\n  - {name: a, url: 'grpc://127.0.0.1:1', routes: [{name: r, paths: [/], grpc_only_status: 415}]}\n";
    let folder = folder("weir.yaml", text);
    for (content_type, expected) in [
        ("text/plain", true),
        ("application/grpc-web", true),
        ("application/grpc+proto", false),
    ] {
        let header = format!("content-type: {content_type}");
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["explain", "-c", "weir.yaml", "-H", &header, "POST http://h/a.B/C"])
            .current_dir(folder.path())
            .output()
            .expect("the binary runs");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = "The gateway answers 415 in the native dialect: the route accepts only gRPC";
        assert_eq!(
            stdout.contains(line),
            expected,
            "{stdout}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
