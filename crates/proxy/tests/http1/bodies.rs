//! Bodies in both directions: whole, in order, at the pace of the slower side, and given up with their call.

use crate::support::{Ended, TestGateway, Upstream, answer, patch, simple_model, text};
use serde_json::json;
use std::io::Write;
use weir_proxy::Limits;

const SIZES: [usize; 9] = [
    0,
    1,
    4095,
    16 * 1024 - 1,
    16 * 1024,
    16 * 1024 + 1,
    128 * 1024,
    128 * 1024 + 1,
    1 << 20,
];

/// Bytes in which a lost or doubled part shows.
fn pattern(size: usize) -> Vec<u8> {
    (0..size as u32)
        .flat_map(|word| word.to_le_bytes())
        .take(size)
        .collect()
}

/// A body with its framing field, in chunks of so many bytes where `chunk` is given.
fn framed(body: &[u8], chunk: Option<usize>) -> Vec<u8> {
    let Some(chunk) = chunk else {
        return [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
    };
    let mut bytes = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
    for data in body.chunks(chunk) {
        write!(bytes, "{:x}\r\n", data.len()).unwrap();
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn bodies_of_all_sizes_pass_both_ways() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    // Answers with the body that came, framed as the request asks for.
    let seen = upstream.serve(|request| {
        let chunk = request.head.get("X-Chunk").map(|size| size.parse().unwrap());
        [b"HTTP/1.1 200 OK\r\n", framed(&request.body, chunk).as_slice()].concat()
    });
    let gateway = TestGateway::to(address);
    let mut client = gateway.connect();
    for size in SIZES {
        let body = pattern(size);
        for sent in [None, Some(1000), Some(100_000)] {
            for answered in [None, Some(1000), Some(100_000)] {
                let wish = answered.map_or(String::new(), |size| format!("X-Chunk: {size}\r\n"));
                let request = [
                    format!("POST / HTTP/1.1\r\nHost: h\r\n{wish}").as_bytes(),
                    &framed(&body, sent),
                ]
                .concat();
                // Sent concurrently with reading: a gateway that streams answers before it has all.
                let mut sender = client.sender();
                let sending = std::thread::spawn(move || sender.send(request));
                let answer = client
                    .response()
                    .unwrap_or_else(|ended| panic!("{ended:?}: {size} {sent:?} {answered:?}"));
                sending.join().unwrap();
                assert!(
                    answer.body == body,
                    "{} of {size} bytes came back ({sent:?} {answered:?})",
                    answer.body.len()
                );
                assert_eq!(answer.head.get("Transfer-Encoding").is_some(), answered.is_some());
                let request = seen.lock().unwrap().pop().unwrap();
                assert_eq!(request.head.get("Transfer-Encoding").is_some(), sent.is_some());
            }
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
}

#[test]
fn request_bodies_may_arrive_in_any_pieces() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    let mut client = gateway.connect();
    for body in [
        "Content-Length: 5\r\n\r\nabcde",
        "Transfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n003\r\ncde\r\n0\r\nT: u\r\n\r\n",
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{body}");
        for split in 0..=request.len() {
            client.send(&request[..split]);
            client.send(&request[split..]);
            assert_eq!(client.response().unwrap().status(), 200, "split at {split}");
            assert_eq!(
                text(&seen.lock().unwrap().pop().unwrap().body),
                "abcde",
                "split at {split}"
            );
        }
        client.trickle(&request);
        assert_eq!(client.response().unwrap().status(), 200);
        assert_eq!(text(&seen.lock().unwrap().pop().unwrap().body), "abcde");
    }
}

#[test]
fn both_directions_stream_at_once() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for framing in ["Transfer-Encoding: chunked\r\n", "Content-Length: 400\r\n"] {
        let is_chunked = framing.starts_with('T');
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n"));
        let mut server = upstream.accept();
        server.head().unwrap();
        server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(client.head().unwrap().status(), 200);
        for round in 0..100 {
            let piece = format!("{round:04}");
            let sent = if is_chunked {
                format!("4\r\n{piece}\r\n")
            } else {
                piece.clone()
            };
            client.send(&sent);
            let came = if is_chunked {
                server.chunk()
            } else {
                server.read(4)
            };
            assert_eq!(came, Ok(piece.clone().into_bytes()));
            server.send(format!("4\r\n{piece}\r\n"));
            assert_eq!(client.chunk(), Ok(piece.into_bytes()));
        }
        if is_chunked {
            client.send("0\r\n\r\n");
            assert_eq!(server.chunk(), Ok(Vec::new()));
        }
        server.send("0\r\n\r\n");
        assert_eq!(client.chunk(), Ok(Vec::new()));
        // Both connections have come to a proper end of their messages and go on.
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert_eq!(server.request().unwrap().head.line, "GET / HTTP/1.1");
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(text(&client.response().unwrap().body), "ok");
        server.expect_end();
    }
}

#[test]
fn an_early_answer_reaches_a_client_that_still_sends() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for framing in ["Transfer-Encoding: chunked\r\n", "Content-Length: 100000000\r\n"] {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n"));
        if framing.starts_with('T') {
            client.send("5\r\nabcde\r\n");
        }
        let mut server = upstream.accept();
        server.head().unwrap();
        server.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
        let answer = client.response().unwrap();
        assert_eq!((answer.status(), text(&answer.body).as_str()), (413, "big"));
        // What is sent while the answer travels must not turn it into a reset.
        client.send("0".repeat(100));
        client.expect_end();
        server.rest();
    }
}

#[test]
fn an_unread_body_does_not_cost_the_answer() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::with(simple_model(upstream.address), |options| {
        options.limits = Limits {
            max_body_bytes: 100_000,
            ..Limits::default()
        };
    });
    // Refused before the body: the whole of it is on its way, or waits in the socket.
    let mut client = gateway.connect();
    let request = [
        b"POST / HTTP/1.1\r\nHost: h\r\n",
        framed(&pattern(400_000), None).as_slice(),
    ]
    .concat();
    let mut sender = client.sender();
    let sending = std::thread::spawn(move || sender.try_send(request));
    assert_eq!(client.response().unwrap().status(), 413);
    assert_eq!(client.expect_end(), Ended::Cleanly);
    sending.join().unwrap().expect("the gateway reads on");
}

#[test]
fn a_short_unread_body_keeps_the_connection() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"routes": {"plugins": [
            {"use": {"name": "puppet", "config": {"reply": "own"}}},
        ]}}),
    );
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    for _ in 0..3 {
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
        assert_eq!(text(&client.response().unwrap().body), "own");
        client.send("cde");
    }
    // A chunked one has no known end: the connection does.
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    let answer = client.response().unwrap();
    assert_eq!(
        (
            text(&answer.body).as_str(),
            answer.head.get("Connection").as_deref()
        ),
        ("own", Some("close"))
    );
    client.send("0\r\n\r\n");
    client.expect_end();
    assert!(upstream.is_untouched());
}
