//! What faults of streams, and of whole connections, make of calls to an upstream.

use super::frames::{
    self, BOTH, END_HEADERS, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, RST_STREAM, SETTINGS, accept, frame,
    settings,
};
use super::support::{TestGateway, Upstream, Wire, balanced, patch, simple_model};
use serde_json::{Value, json};

const MAX_CONCURRENT_STREAMS: u16 = 3;
/// A flag of a frame of settings.
const ACK: u8 = 1;

fn start(upstream: &Upstream, service: Value) -> TestGateway {
    let url = format!("h2c://{}", upstream.address);
    let service = patch(service, &json!({"url": url}));
    TestGateway::start(patch(
        simple_model(upstream.address),
        &json!({"services": service}),
    ))
}

/// A response's head.
fn answer(stream: u32, status: &str, flags: u8) -> Vec<u8> {
    frame(HEADERS, flags, stream, &[b"\x08\x03", status.as_bytes()].concat())
}

fn ok(stream: u32) -> Vec<u8> {
    answer(stream, "200", BOTH)
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn ask(client: &mut Wire, method: &str) {
    client.send(format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"));
}

/// The stream of the next request.
fn next_stream(wire: &mut Wire) -> u32 {
    frames::next_of(wire, HEADERS).stream
}

/// The status of the final response.
fn final_status(client: &mut Wire) -> u16 {
    loop {
        match client.response().unwrap().status() {
            100..200 => {}
            status => return status,
        }
    }
}

/// A connection that has carried a call.
fn used(upstream: &Upstream, client: &mut Wire) -> Wire {
    ask(client, "GET");
    let mut wire = accept(upstream, &[settings(&[])]);
    assert_eq!(next_stream(&mut wire), 1);
    wire.send(ok(1));
    assert_eq!(final_status(client), 200);
    wire
}

#[test]
fn the_fault_of_a_stream_concerns_it_alone() {
    let broken = |stream| reset(stream, 2);
    let refused = |stream| reset(stream, 7);
    let no_status = |stream| frame(HEADERS, BOTH, stream, b"\x00\x01a\x01b");
    type FrameWriter<'f> = &'f dyn Fn(u32) -> Vec<u8>;
    // `(what, the fault, retries, tries)`; a further try is answered.
    let cases: [(&str, FrameWriter<'_>, u32, u32); 6] = [
        ("reset", &broken, 0, 1),
        ("reset", &broken, 1, 2),
        ("no status", &no_status, 0, 1),
        ("no status", &no_status, 1, 2),
        // It was not looked at.
        ("refused", &refused, 0, 2),
        ("refused", &refused, 1, 2),
    ];
    for method in ["GET", "DELETE"] {
        for (what, fault, retries, tries) in cases {
            let what = format!("{method} {what} {retries}");
            let upstream = Upstream::bind();
            let gateway = start(&upstream, json!({"retries": retries}));
            let mut client = gateway.connect();
            let mut wire = used(&upstream, &mut client);
            ask(&mut client, method);
            assert_eq!(next_stream(&mut wire), 3, "{what}");
            wire.send(fault(3));
            if tries == 2 {
                assert_eq!(next_stream(&mut wire), 5, "{what}");
                wire.send(ok(5));
            }
            assert_eq!(
                final_status(&mut client),
                if tries == 2 { 200 } else { 502 },
                "{what}"
            );
            // Neither was it repeated, nor is the connection any worse.
            ask(&mut client, "GET");
            let last = 3 + 2 * tries;
            assert_eq!(next_stream(&mut wire), last, "{what}");
            wire.send(ok(last));
            assert_eq!(final_status(&mut client), 200, "{what}");
            assert!(upstream.is_untouched(), "{what}: another connection was made");
        }
    }
}

#[test]
fn a_connection_that_is_lost_is_replaced_once_where_that_is_safe() {
    let interim = |stream| answer(stream, "103", END_HEADERS);
    for (method, begins, is_tried_again) in [
        ("GET", false, true),
        ("DELETE", false, true),
        ("POST", false, false),
        // It did answer, a little.
        ("GET", true, false),
    ] {
        let upstream = Upstream::bind();
        let gateway = start(&upstream, json!({"retries": 0}));
        let mut client = gateway.connect();
        let mut wire = used(&upstream, &mut client);
        ask(&mut client, method);
        let stream = next_stream(&mut wire);
        if begins {
            wire.send(interim(stream));
        }
        drop(wire);
        let mut wanted = 502;
        let mut again = None;
        if is_tried_again {
            let mut wire = accept(&upstream, &[settings(&[])]);
            assert_eq!(next_stream(&mut wire), 1, "{method}");
            wire.send(ok(1));
            again = Some(wire);
            wanted = 200;
        }
        assert_eq!(final_status(&mut client), wanted, "{method} {begins}");
        assert!(upstream.is_untouched(), "{method} {begins}: it was sent twice");
        drop(again);
    }
}

#[test]
fn an_answer_counts_though_the_request_is_not_wanted() {
    let upstream = Upstream::bind();
    let gateway = start(&upstream, json!({"retries": 0}));
    let mut client = gateway.connect();
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    let mut wire = accept(&upstream, &[settings(&[(INITIAL_WINDOW_SIZE, 0)])]);
    let stream = next_stream(&mut wire);
    wire.send([answer(stream, "413", BOTH), reset(stream, 0)].concat());
    assert_eq!(final_status(&mut client), 413);
    assert!(upstream.is_untouched());
}

#[test]
fn an_upstream_that_takes_no_call_is_asked_once() {
    let goes = frame(GOAWAY, 0, 0, &[0; 8]);
    let service = json!({"retries": 0, "timeouts": {"connect_ms": 200}});
    for (what, first, status) in [
        ("no streams", settings(&[(MAX_CONCURRENT_STREAMS, 0)]), 504),
        ("goes at once", [settings(&[]), goes].concat(), 502),
    ] {
        let upstream = Upstream::bind();
        let gateway = start(&upstream, service.clone());
        let mut client = gateway.connect();
        ask(&mut client, "GET");
        let _wire = accept(&upstream, &[first]);
        assert_eq!(final_status(&mut client), status, "{what}");
        assert!(upstream.is_untouched(), "{what}: another connection was made");
    }
}

#[test]
fn an_upstream_may_take_no_calls_for_a_moment() {
    let upstream = Upstream::bind();
    let gateway = start(&upstream, json!({"retries": 0}));
    let mut client = gateway.connect();
    ask(&mut client, "GET");
    let mut wire = accept(&upstream, &[settings(&[(MAX_CONCURRENT_STREAMS, 0)])]);
    // It has understood that there is no stream for it.
    while frames::next_of(&mut wire, SETTINGS).flags != ACK {}
    wire.send(settings(&[(MAX_CONCURRENT_STREAMS, 1)]));
    let stream = next_stream(&mut wire);
    wire.send(ok(stream));
    assert_eq!(final_status(&mut client), 200);
    assert!(upstream.is_untouched());
}

#[test]
fn connections_that_take_no_more_calls_do_not_idle() {
    let goes = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    for (what, requests, says) in [("worn", 1, Vec::new()), ("goes", 0, goes)] {
        let upstream = Upstream::bind();
        let group = json!({"scheme": "h2c", "keepalive": {"requests": requests}});
        let gateway = TestGateway::start(balanced(&[(upstream.address, 1)], &json!({"upstreams": group})));
        let mut client = gateway.connect();
        let mut wire = used(&upstream, &mut client);
        wire.send(says);
        // It is said good-bye to, and closed.
        let mut kinds = Vec::new();
        while let Ok(frame) = frames::next(&mut wire) {
            kinds.push(frame.kind);
        }
        assert_eq!(kinds.last(), Some(&GOAWAY), "{what}");
    }
}
