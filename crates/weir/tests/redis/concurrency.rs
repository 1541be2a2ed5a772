//! Places for calls that are under way, over several gateways.

use crate::support::{Gateway, Redis, Upstream, is_installed, native, until};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

fn limit(port: u16, more: &str) -> String {
    format!(
        "concurrency-limit: {{limits: [{{count: 2}}], store: {{redis: {{host: 127.0.0.1, port: {port}}}, on_unavailable: refuse}}{more}}}"
    )
}

fn begin(gateway: &Gateway) -> TcpStream {
    let mut stream = TcpStream::connect(&gateway.address).expect("a connection");
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .expect("sent");
    stream
}

/// Whether a call is answered before the upstream has it.
fn is_refused(call: &TcpStream, is_called: impl Fn() -> bool) -> bool {
    call.set_nonblocking(true).expect("set");
    let is_answered = Cell::new(false);
    until("a call is answered or forwarded", || {
        is_answered.set(call.peek(&mut [0]).is_ok());
        is_answered.get() || is_called()
    });
    is_answered.get()
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
    // Each of these clients waits for what becomes of its call: a gateway gives the call of a client that has gone up,
    // on a busy machine before it reaches the upstream.
    let mut third = None;
    until("a place is free", || {
        let call = begin(&gateways[1]);
        let is_refused = is_refused(&call, || upstream.calls.load(Ordering::SeqCst) > 2);
        third = (!is_refused).then_some(call);
        !is_refused
    });
    upstream.hold(false);
    until("all places are free", || redis.ask("DBSIZE").starts_with(":0"));
    drop(third);
    for gateway in &gateways {
        assert_eq!(gateway.call("/"), 200, "{}", gateway.log());
    }
}

/// The defect: what was to be given back when the last call ended was thrown away with the connection.
#[test]
fn places_are_given_back_by_a_gateway_that_ends() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let document = native(&upstream, &limit(redis.port, ""));
    for _ in 0..3 {
        upstream.hold(true);
        let gateway = Gateway::start(&document);
        let before = upstream.calls.load(Ordering::SeqCst);
        let _calls = [begin(&gateway), begin(&gateway)];
        until("two calls are under way", || {
            upstream.calls.load(Ordering::SeqCst) == before + 2
        });
        gateway.ask_to_end();
        until("it ends", || TcpStream::connect(&gateway.address).is_err());
        upstream.hold(false);
        gateway.wait();
        assert!(redis.ask("DBSIZE").starts_with(":0"), "{}", redis.ask("KEYS *"));
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
    let gateway = Gateway::with(&document, &[("WEIR_LISTEN_STREAM", "127.0.0.1:0".to_owned())]);
    let address = gateway.stream_address();
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
