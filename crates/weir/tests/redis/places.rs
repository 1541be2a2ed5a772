//! Places for calls that are under way, over several gateways.

use crate::support::{Gateway, Redis, Upstream, free_port, is_installed, native, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

fn limit(port: u16, more: &str) -> String {
    format!(
        "concurrency-limit: {{limits: [{{count: 2}}], store: {{redis: {{host: 127.0.0.1, port: {port}}}, when_away: refuse}}{more}}}"
    )
}

fn begin(gateway: &Gateway) -> TcpStream {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .expect("sent");
    stream
}

#[test]
fn places_are_shared_and_given_back() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let document = native(&upstream, &limit(redis.port, ""));
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    upstream.hold(true);
    let first = begin(&gateways[0]);
    let _second = begin(&gateways[1]);
    until("two calls are under way", || {
        upstream.calls.load(Ordering::SeqCst) == 2
    });
    assert_eq!(gateways[0].call("/"), 503);
    assert_eq!(gateways[1].call("/"), 503);
    // A client that goes gives its place back.
    drop(first);
    until("a place is free", || {
        begin(&gateways[1]);
        upstream.calls.load(Ordering::SeqCst) > 2
    });
    upstream.hold(false);
    until("all places are free", || redis.ask("DBSIZE").starts_with(":0"));
    for gateway in &gateways {
        assert_eq!(gateway.call("/"), 200, "{}", gateway.log());
    }
}

#[test]
fn places_of_a_gateway_that_dies_become_free() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let document = native(&upstream, &limit(redis.port, ", forget_after_seconds: 1"));
    let (first, second) = (Gateway::start(&document), Gateway::start(&document));
    upstream.hold(true);
    let _calls = [begin(&first), begin(&first)];
    until("two calls are under way", || {
        upstream.calls.load(Ordering::SeqCst) == 2
    });
    assert_eq!(second.call("/"), 503);
    first.kill();
    upstream.hold(false);
    until("the places are forgotten", || second.call("/") == 200);
}

#[test]
fn sessions_of_streams_share_places_too() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let (target, plugin) = (upstream.address, limit(redis.port, ""));
    let document = format!(
        "weir: 1\nservices:\n- {{name: s, url: 'tcp://{target}'}}\nstream_routes:\n- {{name: r, service: s, plugins: [{{{plugin}}}]}}\n"
    );
    let address = format!("127.0.0.1:{}", free_port());
    let gateway = Gateway::with(&document, &[("WEIR_LISTEN_STREAM", address.clone())]);
    let begin = || {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        let _is_closed = stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        stream
    };
    // Whether the upstream has answered; otherwise the gateway has closed the session.
    let is_answered = |stream: &mut TcpStream| {
        let mut answer = [0; 12];
        stream
            .read_exact(&mut answer)
            .is_ok_and(|()| answer == *b"HTTP/1.1 200")
    };
    let mut open = [begin(), begin()];
    for session in &mut open {
        assert!(is_answered(session), "{}", gateway.log());
    }
    assert!(!is_answered(&mut begin()), "there is no place");
    drop(open);
    until("a place is free", || is_answered(&mut begin()));
}
