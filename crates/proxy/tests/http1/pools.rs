//! Connections to upstreams that are kept for the next call: reused while they are good, replaced where that is
//! safe.

use crate::support::{TestGateway, Upstream, Wire, answer, patch, simple_model, text};
use serde_json::{Value, json};
use std::net::SocketAddr;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";

/// A service whose upstream has these targets.
fn balanced(targets: &[(SocketAddr, u32)], changes: &Value) -> Value {
    let targets: Vec<Value> = targets
        .iter()
        .map(|(address, weight)| json!({"host": address.ip().to_string(), "port": address.port(), "weight": weight}))
        .collect();
    let model = json!({
        "upstreams": [{"name": "upstream", "targets": targets}],
        "services": [{"name": "service", "upstream": "upstream"}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    });
    patch(model, changes)
}

#[test]
fn connections_are_reused_as_long_as_both_sides_keep_them() {
    let kept = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let unkept = [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x, Close\r\n\r\nok",
    ];
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    for unkept in unkept {
        let mut server = None;
        for response in [
            kept,
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
            kept,
            unkept,
        ] {
            client.send(GET);
            let server = server.get_or_insert_with(|| upstream.accept());
            server.request().unwrap();
            server.send(response);
            assert_eq!(text(&client.response().unwrap().body), "ok");
            assert!(upstream.is_untouched());
        }
        server.unwrap().expect_end();
    }
}

#[test]
fn pools_are_bounded() {
    // `(bounds, calls that each connection carries)`.
    for (keepalive, carries) in [
        (json!({"requests": 3}), 3),
        (json!({"size": 0}), 1),
        (json!({"idle_timeout_ms": 0}), 1),
    ] {
        let upstream = Upstream::bind();
        let gateway = TestGateway::start(balanced(
            &[(upstream.address, 1)],
            &json!({"upstreams": {"keepalive": keepalive}}),
        ));
        let mut client = gateway.connect();
        for _ in 0..3 {
            client.send(GET);
            let mut server = upstream.accept();
            for call in 0..carries {
                if call > 0 {
                    client.send(GET);
                }
                server.request().unwrap();
                server.send(answer("ok"));
                assert_eq!(client.response().unwrap().status(), 200);
            }
        }
    }
    // One that has idled long enough is closed, whether or not a call comes by.
    let upstream = Upstream::bind();
    let short = json!({"upstreams": {"keepalive": {"idle_timeout_ms": 1}}});
    let gateway = TestGateway::start(balanced(&[(upstream.address, 1)], &short));
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(answer("ok"));
    client.response().unwrap();
    server.expect_end();
    // At most so many idle ones.
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(balanced(
        &[(upstream.address, 1)],
        &json!({"upstreams": {"keepalive": {"size": 1}}}),
    ));
    let mut calls: Vec<(Wire, Wire)> = (0..2)
        .map(|_| {
            let mut client = gateway.connect();
            client.send(GET);
            let mut server = upstream.accept();
            server.request().unwrap();
            (client, server)
        })
        .collect();
    for (client, server) in &mut calls {
        server.send(answer("ok"));
        client.response().unwrap();
    }
    calls[1].1.expect_end();
    calls[0].0.send(GET);
    calls[0].1.request().unwrap();
}

#[test]
fn a_stale_connection_is_replaced_once_where_that_is_safe() {
    // `(second request, what the upstream does on the old connection, whether a new one is tried)`.
    for (request, dying_words, is_tried_again) in [
        (GET, "", true),
        (
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
            "",
            true,
        ),
        ("DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", "", true),
        (POST, "", false),
        ("PATCH / HTTP/1.1\r\nHost: h\r\n\r\n", "", false),
        // It did answer, a little.
        (GET, "HTTP/1.1 2", false),
        (GET, "HTTP/1.1 103 Early Hints\r\n\r\n", false),
    ] {
        for is_reset in [false, true] {
            let upstream = Upstream::bind();
            let gateway = TestGateway::start(patch(
                simple_model(upstream.address),
                &json!({"services": {"retries": 0}}),
            ));
            let mut client = gateway.connect();
            client.send(GET);
            let mut server = upstream.accept();
            server.request().unwrap();
            server.send(answer("first"));
            client.response().unwrap();
            client.send(request);
            server.request().unwrap();
            server.send(dying_words);
            if is_reset && dying_words.is_empty() {
                server.reset();
            } else {
                drop(server);
            }
            if is_tried_again {
                let mut server = upstream.accept();
                let again = server.request().unwrap();
                assert!(
                    request.starts_with(again.head.line.as_str()) && request.ends_with(&text(&again.body))
                );
                server.send(answer("second"));
                assert_eq!(text(&client.response().unwrap().body), "second", "{request:?}");
            } else {
                let mut answer = client.response().unwrap();
                if answer.status() == 103 {
                    answer = client.response().unwrap();
                }
                assert_eq!(answer.status(), 502, "{request:?}");
                assert!(upstream.is_untouched(), "{request:?} was sent twice");
            }
        }
    }
}

#[test]
fn an_idle_connection_that_its_upstream_closes_is_not_used() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    for _ in 0..20 {
        client.send(GET);
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send(answer("ok"));
        client.response().unwrap();
        // The next GET finds it closed, or finds out.
    }
}
