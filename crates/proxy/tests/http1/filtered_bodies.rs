//! What filters do other than with heads: bodies as they pass, waiting, other destinations, and background requests.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn model(upstream: &Upstream, config: &Value) -> Value {
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
    patch(simple_model(upstream.address), &changes)
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
const OPEN: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A call, the upstream's answer, the body that the client must get, and its length, if the head states it.
fn check(config: &Value, line: &str, response: &'static str, body: &str, length: Option<&str>) {
    let upstream = Upstream::bind();
    let model = model(&upstream, config);
    let closes = response == OPEN;
    std::thread::spawn(move || {
        let mut wire = upstream.accept_whenever();
        while wire.request().is_ok() {
            wire.send(response);
            if closes {
                return;
            }
        }
    });
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send(format!("{line}\r\nHost: h\r\n\r\n"));
    let message = client.response().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&message.body),
        body,
        "{config} {line} {response:?}"
    );
    assert_eq!(
        message.head.get("content-length").as_deref(),
        length,
        "{config} {line} {response:?}"
    );
}

#[test]
fn bodies_are_filtered_as_they_pass() {
    for (config, line, response, body, length) in [
        (
            json!({"double": true}),
            "GET / HTTP/1.1",
            CHUNKED,
            "aabbcc.",
            None,
        ),
        (json!({"double": true}), "GET / HTTP/1.1", LONG, "aabbcc.", None),
        (json!({"double": true}), "GET / HTTP/1.0", LONG, "aabbcc.", None),
        (json!({"double": true}), "GET / HTTP/1.1", OPEN, "aabbcc.", None),
        (json!({"double": true}), "GET / HTTP/1.1", EMPTY, ".", None),
        (
            json!({"double": true, "replace": "x"}),
            "GET / HTTP/1.1",
            LONG,
            "xx.",
            Some("3"),
        ),
        (
            json!({"double": true, "reply": "r"}),
            "GET / HTTP/1.1",
            LONG,
            "rr.",
            Some("3"),
        ),
        (
            json!({"double": true, "status": 204}),
            "GET / HTTP/1.1",
            LONG,
            "",
            None,
        ),
        (
            json!({"double": true}),
            "GET / HTTP/1.1",
            "HTTP/1.1 304 Not Modified\r\n\r\n",
            "",
            None,
        ),
    ] {
        check(&config, line, response, body, length);
    }
}

#[test]
fn heads_wait_for_bodies() {
    for (config, line, response, body, length) in [
        // A head that waits for the whole body, and for a part of it.
        (
            json!({"settle": 3, "lets_go": true}),
            "GET / HTTP/1.1",
            LONG,
            "abc ",
            Some("4"),
        ),
        (
            json!({"settle": 2, "lets_go": true}),
            "GET / HTTP/1.1",
            LONG,
            "abc ",
            None,
        ),
        (
            json!({"settle": 1, "lets_go": true}),
            "GET / HTTP/1.1",
            CHUNKED,
            "abc ",
            None,
        ),
        (
            json!({"settle": 1, "lets_go": true}),
            "GET / HTTP/1.0",
            OPEN,
            "abc ",
            None,
        ),
        (
            json!({"settle": 1, "lets_go": true, "status": 204}),
            "GET / HTTP/1.1",
            LONG,
            "",
            None,
        ),
    ] {
        check(&config, line, response, body, length);
    }
}

#[test]
fn a_body_that_breaks_off_has_no_end() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(model(&upstream, &json!({"double": true})));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut wire = upstream.accept();
    wire.request().unwrap();
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    wire.finish();
    drop(wire);
    client.head().unwrap();
    let (rest, _) = client.rest();
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert!(
        rest.contains("aabbcc") && !rest.contains('.') && !rest.contains("0\r\n\r\n"),
        "{rest}"
    );
}

#[test]
fn calls_wait_for_filters() {
    let upstream = Upstream::bind();
    let model = model(&upstream, &json!({"wait_ms": 150}));
    let seen = upstream.serve(|_| answer("hello"));
    let gateway = TestGateway::start(model);
    let start = Instant::now();
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(150));
    // Who goes meanwhile is not forwarded.
    let mut gone = gateway.connect();
    gone.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    gone.reset();
    let mut next = gateway.connect();
    next.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    next.response().unwrap();
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn calls_go_where_filters_send_them() {
    let (upstream, other, beside) = (Upstream::bind(), Upstream::bind(), Upstream::bind());
    let config = json!({"to": "other", "copy_to": beside.address.port()});
    let mut model = model(&upstream, &config);
    let services = model["services"].as_array_mut().unwrap();
    services.push(json!({"name": "other", "url": format!("http://{}", other.address)}));
    upstream.serve(|_| answer("own"));
    other.serve(|_| answer("other"));
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.response().unwrap().body, b"other");
    // The copy's server never answers, which no call waits for.
    let mut copy = beside.accept();
    assert_eq!(copy.request().unwrap().head.line, "GET /copy HTTP/1.1");
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.response().unwrap().body, b"other");
}

#[test]
fn a_destination_must_exist() {
    let upstream = Upstream::bind();
    let model = model(&upstream, &json!({"to": "nowhere"}));
    let refused = std::panic::catch_unwind(|| TestGateway::start(model));
    assert!(refused.is_err());
}
