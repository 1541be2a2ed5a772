//! `CONNECT`: tunnels to targets of the route's upstream, and to nothing else.

use crate::support::{TestGateway, Upstream, balanced, patch, simple_model};
use serde_json::{Value, json};
use std::net::SocketAddr;

fn gateway(target: SocketAddr, route: &Value) -> TestGateway {
    TestGateway::start(patch(simple_model(target), &json!({ "routes": route })))
}

fn open(target: SocketAddr) -> TestGateway {
    gateway(target, &json!({"connect": true}))
}

fn head(authority: &str) -> String {
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
}

#[test]
fn a_tunnel_carries_both_ways() {
    let upstream = Upstream::bind();
    let gateway = open(upstream.address);
    let mut client = gateway.connect();
    // What comes with the head is the tunnel's.
    client.send(format!("{}hello", head(&upstream.address.to_string())));
    let mut server = upstream.accept();
    assert_eq!(server.read(5).unwrap(), b"hello");
    let response_head = client.head().unwrap();
    assert_eq!(response_head.status(), 200);
    for name in ["content-length", "transfer-encoding", "connection"] {
        assert_eq!(response_head.get(name), None);
    }
    let (down, up) = ("\x00 HTTP/1.1 500 X\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    server.send(down);
    assert_eq!(client.read(down.len()).unwrap(), down.as_bytes());
    client.send(up);
    assert_eq!(server.read(up.len()).unwrap(), up.as_bytes());
    server.finish();
    client.finish();
    server.expect_end();
}

#[test]
fn other_places_are_refused() {
    let (upstream, other) = (Upstream::bind(), Upstream::bind());
    let (port, other_port) = (upstream.address.port(), other.address.port());
    let gateway = open(upstream.address);
    for (authority, status) in [
        (format!("127.0.0.1:{other_port}"), 403),
        (format!("localhost:{port}"), 403),
        (format!("127.0.0.2:{port}"), 403),
        (format!("[::1]:{port}"), 403),
        (format!("[::ffff:127.0.0.1]:{port}"), 403),
        (format!("127.1:{port}"), 403),
        (format!("2130706433:{port}"), 403),
        (format!("0x7f.0.0.1:{port}"), 403),
        ("169.254.169.254:80".to_owned(), 403),
        // No authority with a port.
        ("127.0.0.1".to_owned(), 400),
        ("127.0.0.1:".to_owned(), 400),
        ("127.0.0.1:0".to_owned(), 400),
        (format!("127.0.0.1:{}", 65_536 + u32::from(port)), 400),
        (format!("127.0.0.1:+{port}"), 400),
        (format!("user@127.0.0.1:{port}"), 400),
        (format!("http://127.0.0.1:{port}"), 400),
        (format!("127.0.0.1:{port}/"), 400),
        (format!("127.0.0.1:{port}?x"), 400),
        (format!(":{port}"), 400),
    ] {
        let mut client = gateway.connect();
        client.send(head(&authority));
        let message = client.response().unwrap();
        let line = &message.head.line;
        assert!(line.contains(&format!(" {status} ")), "{authority} {line}");
        client.expect_end();
    }
    assert!(upstream.is_untouched());
    assert!(other.is_untouched());
}

#[test]
fn targets_without_weight_take_no_tunnels() {
    let (taken, out) = (Upstream::bind(), Upstream::bind());
    let changes = json!({"routes": {"connect": true}});
    let gateway = TestGateway::start(balanced(&[(taken.address, 1), (out.address, 0)], &changes));
    for (target, status) in [(taken.address, 200), (out.address, 403)] {
        let mut client = gateway.connect();
        client.send(head(&target.to_string()));
        assert_eq!(client.head().unwrap().status(), status, "{target}");
    }
    assert!(out.is_untouched());
}

#[test]
fn open_tunnels_are_no_load_of_an_upstream() {
    let upstream = Upstream::bind();
    let limit = json!({"initial": 2, "min": 2, "max": 2});
    let changes = json!({"routes": {"connect": true}, "upstreams": {"adaptive_concurrency": limit}});
    let gateway = TestGateway::start(balanced(&[(upstream.address, 1)], &changes));
    let open = |_| {
        let mut client = gateway.connect();
        client.send(head(&upstream.address.to_string()));
        assert_eq!(client.head().unwrap().status(), 200);
        (client, upstream.accept())
    };
    let tunnels: Vec<_> = (0..4).map(open).collect();
    assert_eq!(tunnels.len(), 4);
}

#[test]
fn heads_that_are_no_connect_are_refused() {
    let upstream = Upstream::bind();
    let place = upstream.address;
    let gateway = open(place);
    for (head, status) in [
        (
            format!("CONNECT {place} HTTP/1.1\r\nHost: other:{}\r\n\r\n", place.port()),
            400,
        ),
        (format!("CONNECT {place} HTTP/1.1\r\n\r\n"), 400),
        (format!("CONNECT {place} HTTP/1.0\r\n\r\n"), 405),
        (
            format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nContent-Length: 3\r\n\r\nabc"),
            400,
        ),
        (
            format!(
                "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            400,
        ),
        (format!("CONNECT / HTTP/1.1\r\nHost: {place}\r\n\r\n"), 405),
        (format!("connect {place} HTTP/1.1\r\nHost: {place}\r\n\r\n"), 400),
    ] {
        let mut client = gateway.connect();
        client.send(&head);
        let message = client.response().unwrap();
        let line = &message.head.line;
        assert!(line.contains(&format!(" {status} ")), "{head:?} {line}");
        client.expect_end();
    }
    assert!(upstream.is_untouched());
}

#[test]
fn routes_take_it_only_where_they_say_so() {
    let upstream = Upstream::bind();
    let place = upstream.address.to_string();
    for route in [
        json!({}),
        json!({"match": [{"methods": ["CONNECT"]}]}),
        json!({"connect": true, "match": [{"methods": ["GET"]}]}),
        json!({"connect": true, "match": [{"hosts": ["elsewhere"]}]}),
    ] {
        let gateway = gateway(upstream.address, &route);
        let mut client = gateway.connect();
        // What is sent for the tunnel is no request.
        client.send(format!("{}GET / HTTP/1.1\r\nHost: h\r\n\r\n", head(&place)));
        let message = client.response().unwrap();
        assert!(message.head.line.contains(" 405 "), "{route} {:?}", message.head);
        client.expect_end();
    }
    assert!(upstream.is_untouched());
}

#[test]
fn plugins_decide_before_there_is_a_tunnel() {
    let upstream = Upstream::bind();
    let puppet = |config: Value| json!([{"use": {"name": "puppet", "config": config}}]);
    let refuses = json!({"connect": true, "plugins": puppet(json!({"reply": "no"}))});
    let gateway_of = |route: &Value| gateway(upstream.address, route);
    let gateway = gateway_of(&refuses);
    let mut client = gateway.connect();
    client.send(head(&upstream.address.to_string()));
    assert_eq!(client.response().unwrap().body, b"no");
    client.expect_end();
    assert!(upstream.is_untouched());
    let sets =
        json!({"connect": true, "plugins": puppet(json!({"set": [["X-A", "b"], ["Content-Length", "5"]]}))});
    let gateway = gateway_of(&sets);
    let mut client = gateway.connect();
    client.send(head(&upstream.address.to_string()));
    let _server = upstream.accept();
    let response_head = client.head().unwrap();
    assert_eq!(response_head.get("x-a").as_deref(), Some("b"));
    assert_eq!(response_head.get("content-length"), None);
}

#[test]
fn a_target_that_cannot_be_reached_is_reported() {
    let upstream = Upstream::bind();
    let place = upstream.address;
    drop(upstream);
    let gateway = open(place);
    let mut client = gateway.connect();
    client.send(head(&place.to_string()));
    let message = client.response().unwrap();
    assert!(message.head.line.contains(" 502 "), "{:?}", message.head);
}
