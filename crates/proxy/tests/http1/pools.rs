//! Connections to upstreams that are kept for the next call: reused while they are good.

use crate::support::{TestGateway, Upstream, Wire, answer, balanced, text};
use serde_json::json;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

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
