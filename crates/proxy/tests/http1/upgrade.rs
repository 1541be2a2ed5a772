//! Upgraded connections: bytes both ways from the first one, and nothing for those who may not.

use crate::support::{Ended, TestGateway, Upstream, Wire, answer, patch, simple_model, text};
use serde_json::json;
use std::time::Duration;
use weir_proxy::Limits;

const REQUEST: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n";

/// Both ends of a new tunnel.
fn opened(gateway: &TestGateway, upstream: &Upstream) -> (Wire, Wire) {
    let mut client = gateway.connect();
    client.send(REQUEST);
    let mut server = upstream.accept();
    server.head().unwrap();
    server.send(SWITCH);
    client.head().unwrap();
    (client, server)
}

#[test]
fn a_tunnel_carries_bytes_both_ways() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    // Both sides speak before they know that they may.
    client.send(format!("{REQUEST}early"));
    let mut server = upstream.accept();
    let head = server.head().unwrap();
    assert_eq!(
        (head.get("Connection").as_deref(), head.get("Upgrade").as_deref()),
        (Some("Upgrade"), Some("websocket"))
    );
    assert_eq!(head.get("Sec-WebSocket-Key").as_deref(), Some("k"));
    server.send(format!("{SWITCH}hello"));
    let head = client.head().unwrap();
    assert_eq!(
        (head.status(), head.get("Sec-WebSocket-Accept").as_deref()),
        (101, Some("a"))
    );
    assert_eq!(
        (head.get("Connection").as_deref(), head.get("Upgrade").as_deref()),
        (Some("upgrade"), Some("websocket"))
    );
    assert_eq!(head.get("Transfer-Encoding").or(head.get("Content-Length")), None);
    assert_eq!(client.read(5), Ok(b"hello".to_vec()));
    assert_eq!(server.read(5), Ok(b"early".to_vec()));
    for round in 0..100 {
        // What looks like HTTP is not.
        let message = format!("GET /{round} HTTP/1.1\r\n\r\n\0\u{ff}");
        client.send(&message);
        assert_eq!(server.read(message.len()), Ok(message.clone().into_bytes()));
        server.send(&message);
        assert_eq!(client.read(message.len()), Ok(message.into_bytes()));
    }
    // Each direction ends by itself.
    client.finish();
    assert_eq!(server.expect_end(), Ended::Cleanly);
    server.send("last words");
    assert_eq!(client.read(10), Ok(b"last words".to_vec()));
    drop(server);
    client.expect_end();
}

#[test]
fn a_tunnel_carries_much() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let (mut client, mut server) = opened(&gateway, &upstream);
    let data: Vec<u8> = (0..4u32 << 20).map(|at| (at % 251) as u8).collect();
    let carry = |from: &Wire, to: &mut Wire| {
        let (mut from, sent) = (from.sender(), data.clone());
        let sending = std::thread::spawn(move || from.send(sent));
        assert!(to.read(data.len()).unwrap() == data);
        sending.join().unwrap();
    };
    carry(&client, &mut server);
    carry(&server, &mut client);
}

#[test]
fn either_side_ends_the_tunnel() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for is_client in [true, false] {
        let (client, server) = opened(&gateway, &upstream);
        let (gone, mut left) = match is_client {
            true => (client, server),
            false => (server, client),
        };
        gone.reset();
        left.rest();
    }
}

#[test]
fn a_silent_tunnel_ends_in_time() {
    let upstream = Upstream::bind();
    let limits = Limits {
        tunnel_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    let (mut client, mut server) = opened(&gateway, &upstream);
    client.expect_end();
    server.expect_end();
}

#[test]
fn an_answer_other_than_101_passes() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    client.send(REQUEST);
    let mut server = upstream.accept();
    server.head().unwrap();
    server.send("HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nno");
    let refusal = client.response().unwrap();
    assert_eq!((refusal.status(), text(&refusal.body).as_str()), (426, "no"));
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(server.head().unwrap().get("Upgrade"), None);
    server.send(answer("ok"));
    assert_eq!(text(&client.response().unwrap().body), "ok");
}

#[test]
fn a_route_may_refuse_to_upgrade() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"routes": {"upgrade": false}, "services": {"retries": 0}}),
    );
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send(REQUEST);
    let mut server = upstream.accept();
    let head = server.head().unwrap();
    assert_eq!((head.get("Connection"), head.get("Upgrade")), (None, None));
    server.send(answer("plain"));
    assert_eq!(text(&client.response().unwrap().body), "plain");
    // An upstream that switches all the same is not believed.
    client.send(REQUEST);
    server.head().unwrap();
    server.send(SWITCH);
    assert_eq!(client.response().unwrap().status(), 502);
    server.rest();
}

fn without_retries(upstream: &Upstream) -> TestGateway {
    TestGateway::start(patch(
        simple_model(upstream.address),
        &json!({"services": {"retries": 0}}),
    ))
}

/// A request without all parts of an upgrade gets none, whatever the upstream says.
#[test]
fn half_an_upgrade_is_none() {
    let upstream = Upstream::bind();
    let gateway = without_retries(&upstream);
    for request in [
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ] {
        let mut client = gateway.connect();
        client.send(request);
        let mut server = upstream.accept();
        assert_eq!(server.head().unwrap().get("Upgrade"), None, "{request:?}");
        server.send(SWITCH);
        assert_eq!(client.response().unwrap().status(), 502, "{request:?}");
        server.rest();
    }
    // And one that is answered by a switch to nothing.
    let mut client = gateway.connect();
    client.send(REQUEST);
    let mut server = upstream.accept();
    server.head().unwrap();
    server.send("HTTP/1.1 101 Switching Protocols\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 502);
}

#[test]
fn an_upgrade_with_a_body_waits_for_its_end() {
    let upstream = Upstream::bind();
    let gateway = without_retries(&upstream);
    let request = "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = gateway.connect();
    client.send(format!("{request}3\r\nabc\r\n0\r\n\r\nearly"));
    let mut server = upstream.accept();
    assert_eq!(text(&server.request().unwrap().body), "abc");
    server.send(format!("{SWITCH}hello"));
    assert_eq!(client.head().unwrap().status(), 101);
    assert_eq!(client.read(5), Ok(b"hello".to_vec()));
    assert_eq!(server.read(5), Ok(b"early".to_vec()));
    // After a switch in the middle of the body neither side knows which byte belongs to what.
    let mut client = gateway.connect();
    client.send(format!("{request}3\r\nabc\r\n"));
    let mut server = upstream.accept();
    server.head().unwrap();
    server.send(SWITCH);
    assert_eq!(client.response().unwrap().status(), 502);
    server.rest();
}
