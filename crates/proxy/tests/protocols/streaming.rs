//! What comes is passed on as it comes, and no faster than it is taken.

use super::client::ALL;
use super::stand::{Stand, over_all};
use super::support::answer;
use serde_json::Value;
use std::io::Write;
use std::time::Duration;

#[test]
fn both_directions_stream_at_once() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let mut call = client.begin("POST", "/", &[], true).unwrap();
        call.send(b"0").unwrap();
        let mut wire = stand.upstream.accept();
        wire.head().unwrap();
        assert_eq!(wire.chunk().unwrap(), b"0");
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n");
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        assert_eq!(call.take(1).unwrap(), b"0", "{protocol:?}");
        for round in 1..10 {
            let piece = round.to_string();
            call.send(piece.as_bytes()).unwrap();
            assert_eq!(wire.chunk().unwrap(), piece.as_bytes(), "{protocol:?}");
            wire.send(format!("1\r\n{piece}\r\n"));
            assert_eq!(call.take(1).unwrap(), piece.as_bytes(), "{protocol:?}");
        }
        call.finish(&[]);
        assert!(wire.chunk().unwrap().is_empty());
        wire.send("0\r\n\r\n");
        assert_eq!(call.rest().unwrap(), b"", "{protocol:?}");
    });
}

#[test]
fn events_come_as_they_are_sent() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let mut call = client
            .begin("GET", "/events", &[("accept", "text/event-stream")], false)
            .unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        // The head comes before there is any event.
        let head = call.head().unwrap();
        assert_eq!(
            head.get("content-type").as_deref(),
            Some("text/event-stream"),
            "{protocol:?}"
        );
        for number in 0..5 {
            let event = format!("data: {number}\n\n");
            wire.send(format!("{:x}\r\n{event}\r\n", event.len()));
            assert_eq!(call.take(event.len()).unwrap(), event.as_bytes(), "{protocol:?}");
        }
        wire.send("0\r\n\r\n");
        assert_eq!(call.rest().unwrap(), b"", "{protocol:?}");
    });
}

#[test]
fn an_early_answer_passes_a_body_that_is_still_sent() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let mut call = client
            .begin("POST", "/", &[("content-length", "1000000")], true)
            .unwrap();
        call.send(b"hello").unwrap();
        let mut wire = stand.upstream.accept();
        wire.head().unwrap();
        wire.send("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
        assert_eq!(call.head().unwrap().status, 403, "{protocol:?}");
        assert_eq!(call.take(2).unwrap(), b"no", "{protocol:?}");
    });
}

/// Writes until nothing more is taken for a while; gives the number of bytes.
fn fill(stream: &std::net::TcpStream, most: usize) -> usize {
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let piece = vec![b'x'; 64 * 1024];
    let mut written = 0;
    while written < most {
        match (&*stream).write(&piece) {
            Ok(count) => written += count,
            Err(_) => break,
        }
    }
    written
}

#[test]
fn a_client_that_does_not_read_stops_the_upstream() {
    const MOST: usize = 256 << 20;
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        let written = fill(&wire.stream, MOST);
        assert!(written < MOST, "{protocol:?} {written}");
        drop(wire);
        if !protocol.is_http1() {
            assert_eq!(call.rest().unwrap().len(), written, "{protocol:?}");
        }
    });
}

#[test]
fn an_upstream_that_does_not_read_stops_the_client() {
    const MOST: usize = 64 << 20;
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            // What is not taken in time ends the call; that it is not taken is what is looked for.
            options.limits.body_timeout = Duration::from_secs(60);
        });
        let client = stand.client(protocol);
        let mut call = client
            .begin("POST", "/", &[("content-length", "67108864")], true)
            .unwrap();
        let (give, take) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let piece = vec![b'x'; 64 * 1024];
                let mut sent = 0;
                while sent < MOST && call.send(&piece).is_ok() {
                    sent += piece.len();
                    if give.send(sent).is_err() {
                        break;
                    }
                }
            });
            let mut wire = stand.upstream.accept();
            wire.head().unwrap();
            let mut sent = 0;
            while let Ok(count) = take.recv_timeout(Duration::from_millis(500)) {
                sent = count;
            }
            assert!(sent < MOST, "{protocol:?} {sent}");
            wire.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            drop(take);
            drop(wire);
        });
    }
}

#[test]
fn many_calls_share_a_connection() {
    for protocol in ALL {
        let stand = Stand::new();
        let client = stand.client(protocol);
        stand.upstream.serve(|request| answer(&request.head.line));
        // Until then it is unknown how many streams there may be.
        client.get("/");
        let mut calls: Vec<_> = (0..100)
            .map(|index| client.begin("GET", &format!("/{index}"), &[], false).unwrap())
            .collect();
        for (index, call) in calls.iter_mut().enumerate() {
            assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
            assert_eq!(
                call.rest().unwrap(),
                format!("GET /{index} HTTP/1.1").as_bytes(),
                "{protocol:?}"
            );
        }
    }
}
