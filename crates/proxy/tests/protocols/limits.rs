//! What clients send is bounded, and what is beyond is answered the same way.

use super::client::ALL;
use super::stand::Stand;
use super::support::answer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn heads_and_targets_are_bounded() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| options.limits.max_head_bytes = 16 * 1024);
        let client = stand.client(protocol);
        let long = format!("/{}", "a".repeat(9000));
        assert_eq!(client.get(&long).head.status, 414, "{protocol:?}");
        for size in [20_000, 30_000] {
            let large = "v".repeat(size / 2);
            let fields = [("x-a", large.as_str()), ("x-b", large.as_str())];
            let response = client.call("GET", "/", &fields, b"");
            assert_eq!(
                response.map(|response| response.head.status),
                Ok(431),
                "{protocol:?} {size}"
            );
        }
        let names: Vec<String> = (0..200).map(|index| format!("x-{index}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
        let response = client.call("GET", "/", &many, b"").unwrap();
        assert_eq!(response.head.status, 431, "{protocol:?}");
        assert!(stand.upstream.is_untouched(), "{protocol:?}");
    }
}

#[test]
fn bodies_are_bounded() {
    let changes = json!({"routes": {"max_body_bytes": 1000}});
    for protocol in ALL {
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|_| answer("ok"));
        for (size, status) in [(1000, 200), (1001, 413), (100_000, 413)] {
            let (body, length) = (vec![b'x'; size], size.to_string());
            for fields in [&[("content-length", length.as_str())][..], &[]] {
                let response = client.call("POST", "/", fields, &body).unwrap();
                assert_eq!(response.head.status, status, "{protocol:?} {size} {fields:?}");
            }
        }
        assert_eq!(seen.lock().unwrap().len(), 2, "{protocol:?}");
    }
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.limits.body_timeout = Duration::from_millis(100);
        });
        let client = stand.client(protocol);
        let mut call = client
            .begin("POST", "/", &[("content-length", "10")], true)
            .unwrap();
        call.send(b"hello").unwrap();
        assert_eq!(call.head().unwrap().status, 408, "{protocol:?}");
    }
}

/// Each byte comes soon enough, and all of them never would.
#[test]
fn a_body_that_comes_byte_by_byte_is_not_waited_for() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.limits.body_timeout = Duration::from_millis(100);
            options.limits.min_body_rate = 1 << 30;
        });
        let client = stand.client(protocol);
        let length = [("content-length", "1000000")];
        let mut call = client.begin("POST", "/", &length, true).unwrap();
        call.send(b"x").unwrap();
        let mut wire = stand.upstream.accept();
        wire.head().unwrap();
        // The next byte goes when the one before it has come.
        let mut sent = 1;
        while wire.read(1).is_ok() {
            sent += 1;
            assert!(sent < 1_000_000, "{protocol:?}: it goes on");
            if call.send(b"x").is_err() {
                break;
            }
        }
        assert_eq!(call.head().unwrap().status, 408, "{protocol:?} {sent}");
    }
}

/// Both sides talk at once, as with Connect or lines of JSON: once the answer has begun, a body may come slowly.
#[test]
fn a_slow_body_goes_on_once_the_answer_has_begun() {
    let timeout = Duration::from_secs(1);
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.limits.body_timeout = timeout;
            options.limits.min_body_rate = 1 << 30;
        });
        let client = stand.client(protocol);
        let length = [("content-length", "100000000")];
        let mut call = client.begin("POST", "/", &length, true).unwrap();
        call.send(b"x").unwrap();
        let mut wire = stand.upstream.accept();
        wire.head().unwrap();
        wire.read(1).unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        // The next byte goes when the one before it has come: the gateway waits for nearly all of this time.
        let begun = Instant::now();
        while begun.elapsed() < 2 * timeout {
            call.send(b"x").unwrap();
            wire.read(1)
                .unwrap_or_else(|error| panic!("{protocol:?}: {error:?}"));
        }
    }
}

#[test]
fn an_upstream_that_does_not_answer_is_not_waited_for() {
    let changes = json!({"services": {"timeouts": {"read_ms": 100}}});
    for protocol in ALL {
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        let response = client.call("POST", "/", &[], b"x").unwrap();
        assert_eq!(response.head.status, 504, "{protocol:?}");
    }
}
