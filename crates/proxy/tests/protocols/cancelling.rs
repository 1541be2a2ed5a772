//! Who gives up, and what that means for the other side.

use super::client::{ALL, Protocol};
use super::stand::{Stand, over_all};
use super::support::answer;
use std::time::Duration;

#[test]
fn a_client_that_goes_takes_its_call_with_it() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        call.cancel();
        wire.expect_end();
        // In the middle of the answer.
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello");
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        call.take(5).unwrap();
        call.cancel();
        wire.expect_end();
        // In the middle of its body.
        let mut call = client
            .begin("POST", "/", &[("content-length", "100000")], true)
            .unwrap();
        call.send(b"hello").unwrap();
        let mut wire = stand.upstream.accept();
        wire.head().unwrap();
        wire.read(5).unwrap();
        call.cancel();
        wire.expect_end();
    });
}

#[test]
fn others_on_the_same_connection_go_on() {
    for protocol in [Protocol::Http2, Protocol::Http2Tls, Protocol::Http3] {
        let stand = Stand::new();
        let client = stand.client(protocol);
        let mut kept = client.begin("GET", "/kept", &[], false).unwrap();
        let mut kept_wire = stand.upstream.accept();
        kept_wire.request().unwrap();
        for _ in 0..20 {
            let call = client.begin("GET", "/given-up", &[], false).unwrap();
            let mut wire = stand.upstream.accept();
            wire.request().unwrap();
            call.cancel();
            wire.expect_end();
        }
        kept_wire.send(answer("ok"));
        assert_eq!(kept.head().unwrap().status, 200, "{protocol:?}");
        assert_eq!(kept.rest().unwrap(), b"ok", "{protocol:?}");
    }
}

#[test]
fn draining_lets_calls_finish_and_takes_no_more() {
    for protocol in ALL {
        let stand = Stand::with(&serde_json::Value::Null, |options| {
            options.drain_timeout = Duration::from_secs(10);
        });
        let client = stand.client(protocol);
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        let draining = stand.gateway.drain();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        wire.send(vec![b'x'; 300_000]);
        assert_eq!(call.rest().unwrap().len(), 300_000, "{protocol:?}");
        draining.join().unwrap();
        if protocol.is_http1() {
            continue;
        }
        let late = client.call("GET", "/", &[], b"");
        assert!(late.is_err(), "{protocol:?}");
    }
}
