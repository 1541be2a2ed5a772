//! A filter that panics ends its call, or its connection if that carries one call at a time. All others go on.

use super::client::{ALL, read_response};
use super::stand::Stand;
use super::support::{answer, eventually};
use serde_json::json;

/// The phases in which the filter panics on calls of `/panic`.
const PHASES: [&str; 3] = ["request", "response", "body"];

#[test]
fn panic_in_a_call_ends_no_other() {
    for protocol in ALL {
        for phase in PHASES {
            let config = json!({"panic": "/panic", "panic_in": phase});
            let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
            let stand = Stand::with(&changes, |_| ());
            let client = stand.client(protocol);
            // One call waits for its answer on the same connection, if that carries several, or on another.
            let mut waiting = client.begin("GET", "/waiting", &[], false).unwrap();
            let mut wire = stand.upstream.accept();
            wire.request().unwrap();
            let gateway = stand.gateway;
            stand.upstream.serve(|_| answer("hello"));
            let what = format!("{protocol:?} {phase}");
            for count in 1..=3 {
                let mut call = client.begin("GET", "/panic", &[], false).unwrap();
                assert!(read_response(call.as_mut()).is_err(), "{what}");
                eventually(&what, || gateway.totals().panics == count);
            }
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlate");
            assert_eq!(read_response(waiting.as_mut()).unwrap().text(), "late", "{what}");
            assert_eq!(client.get("/").text(), "hello", "{what}");
            assert!(gateway.exposition().contains("weir_panics_total 3\n"), "{what}");
        }
    }
}

#[test]
fn panic_never_makes_a_body_look_whole() {
    for protocol in ALL {
        let config = json!({"panic": "/panic", "panic_in": "body"});
        let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        // Over HTTP/1.1 the end of the connection would be the body's.
        let fields = [("connection", "close")];
        let fields = if protocol.is_http1() { &fields[..] } else { &[] };
        let mut call = client.begin("GET", "/panic", fields, false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        wire.send("abc");
        assert!(call.rest().is_err(), "{protocol:?}");
    }
}
