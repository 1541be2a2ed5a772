//! Time-outs of clients, draining, and places for connections.

use crate::support::{Ended, TestGateway, Upstream, Wire, answer, eventually, simple_model, text};
use std::net::TcpStream;
use std::time::Duration;
use weir_proxy::Limits;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_head_must_arrive_in_time() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let limits = Limits {
        header_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(address), |options| options.limits = limits);
    for (before, part) in [
        ("", "G"),
        ("", "GET / HTTP/1.1\r\nHost: h\r\nA: "),
        (GET, "GET / HT"),
        (GET, "GET / HTTP/1.1\r\n"),
    ] {
        let mut client = gateway.connect();
        client.send(before);
        if !before.is_empty() {
            assert_eq!(client.response().unwrap().status(), 200);
        }
        client.send(part);
        let answer = client.response().unwrap();
        assert_eq!(
            (answer.status(), text(&answer.body).as_str()),
            (408, "request_timeout"),
            "{part:?}"
        );
        assert_eq!(answer.head.get("Connection").as_deref(), Some("close"));
        client.expect_end();
    }
}

#[test]
fn an_idle_connection_ends_without_a_word() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let limits = Limits {
        idle_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(address), |options| options.limits = limits);
    for calls in 0..3 {
        let mut client = gateway.connect();
        for _ in 0..calls {
            client.send(GET);
            assert_eq!(client.response().unwrap().status(), 200);
        }
        assert_eq!(client.expect_end(), Ended::Cleanly);
    }
}

#[test]
fn a_call_may_take_longer_than_an_idle_connection() {
    let upstream = Upstream::bind();
    let tiny = Duration::from_millis(50);
    let limits = Limits {
        idle_timeout: tiny,
        header_timeout: tiny,
        body_timeout: tiny,
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    // Nothing comes for several times as long.
    client.expect_silence(Duration::from_millis(250));
    server.send(answer("ok"));
    assert_eq!(text(&client.response().unwrap().body), "ok");
}

#[test]
fn connections_above_the_bound_are_closed() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let limits = Limits {
        max_connections: 2,
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(address), |options| options.limits = limits);
    let mut clients: Vec<Wire> = (0..2).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.send(GET);
        assert_eq!(client.response().unwrap().status(), 200);
    }
    gateway.connect().expect_end();
    let totals = gateway.totals();
    assert_eq!((totals.connections_accepted, totals.connections_refused), (2, 1));
    // A place that is given up can be taken.
    let mut gone = clients.pop().unwrap();
    gone.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    gone.response().unwrap();
    gone.expect_end();
    eventually("the place is free again", || {
        let mut client = gateway.connect();
        client.try_send(GET).is_ok() && client.response().is_ok_and(|answer| answer.status() == 200)
    });
}

#[test]
fn draining_ends_idle_connections_and_lets_calls_finish() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::with(simple_model(upstream.address), |options| {
        options.drain_timeout = crate::support::TIMEOUT
    });
    let address = gateway.address;
    let mut fresh = gateway.connect();
    let mut idle = gateway.connect();
    idle.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    idle.response().unwrap();
    let mut waiting = gateway.connect();
    waiting.send(GET);
    let mut waited_for = upstream.accept();
    waited_for.request().unwrap();
    let mut streaming = gateway.connect();
    streaming.send(GET);
    let mut streamed = upstream.accept();
    streamed.request().unwrap();
    streamed.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    assert_eq!(streaming.head().unwrap().get("Connection"), None);
    assert_eq!(streaming.chunk(), Ok(b"a".to_vec()));

    let draining = gateway.drain();
    assert_eq!(fresh.expect_end(), Ended::Cleanly);
    assert_eq!(idle.expect_end(), Ended::Cleanly);
    waited_for.send(answer("ok"));
    let answer = waiting.response().unwrap();
    assert_eq!(
        (
            text(&answer.body).as_str(),
            answer.head.get("Connection").as_deref()
        ),
        ("ok", Some("close"))
    );
    waiting.expect_end();
    streamed.send("1\r\nb\r\n0\r\n\r\n");
    assert_eq!(streaming.chunked(), Ok(b"b".to_vec()));
    streaming.expect_end();
    draining.join().unwrap();
    assert!(TcpStream::connect(address).is_err());
}
