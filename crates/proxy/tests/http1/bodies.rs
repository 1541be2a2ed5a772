//! Bodies in both directions: whole, in order, at the pace of the slower side, and given up with their call.

use crate::support::{Ended, TestGateway, Upstream, Wire, answer, patch, simple_model, text};
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use weir_proxy::Limits;

const SIZES: [usize; 9] = [0, 1, 4095, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 128 * 1024, 128 * 1024 + 1, 1 << 20];

/// Bytes in which a lost or doubled part shows.
fn pattern(size: usize) -> Vec<u8> {
    (0..size as u32).flat_map(|word| word.to_le_bytes()).take(size).collect()
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
                let request = [format!("POST / HTTP/1.1\r\nHost: h\r\n{wish}").as_bytes(), &framed(&body, sent)].concat();
                // Sent beside reading: a gateway that streams answers before it has all.
                let mut sender = Wire::new(client.stream.try_clone().unwrap());
                let sending = std::thread::spawn(move || sender.send(request));
                let answer = client.response().unwrap_or_else(|ended| panic!("{ended:?}: {size} {sent:?} {answered:?}"));
                sending.join().unwrap();
                assert!(answer.body == body, "{} of {size} bytes came back ({sent:?} {answered:?})", answer.body.len());
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
    for body in ["Content-Length: 5\r\n\r\nabcde", "Transfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n003\r\ncde\r\n0\r\nT: u\r\n\r\n"] {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{body}");
        for split in 0..=request.len() {
            client.send(&request[..split]);
            client.send(&request[split..]);
            assert_eq!(client.response().unwrap().status(), 200, "split at {split}");
            assert_eq!(text(&seen.lock().unwrap().pop().unwrap().body), "abcde", "split at {split}");
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
            let sent = if is_chunked { format!("4\r\n{piece}\r\n") } else { piece.clone() };
            client.send(&sent);
            let came = if is_chunked { server.chunk() } else { server.read(4) };
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
        options.limits = Limits { max_body_bytes: 100_000, ..Limits::default() };
    });
    // Refused before the body: the whole of it is on its way, or waits in the socket.
    let mut client = gateway.connect();
    let request = [b"POST / HTTP/1.1\r\nHost: h\r\n", framed(&pattern(400_000), None).as_slice()].concat();
    let mut sender = Wire::new(client.stream.try_clone().unwrap());
    let sending = std::thread::spawn(move || sender.try_send(request));
    assert_eq!(client.response().unwrap().status(), 413);
    assert_eq!(client.expect_end(), Ended::Cleanly);
    sending.join().unwrap().expect("the gateway reads on");
}

#[test]
fn a_short_unread_body_keeps_the_connection() {
    let upstream = Upstream::bind();
    let model = patch(simple_model(upstream.address), &json!({"routes": {"plugins": [
        {"use": {"name": "puppet", "config": {"reply": "own"}}},
    ]}}));
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
    assert_eq!((text(&answer.body).as_str(), answer.head.get("Connection").as_deref()), ("own", Some("close")));
    client.send("0\r\n\r\n");
    client.expect_end();
    assert!(upstream.is_untouched());
}

#[test]
fn expect_is_answered_by_the_upstream() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let expecting = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
    // With an invitation.
    let mut client = gateway.connect();
    client.send(expecting);
    let mut server = upstream.accept();
    assert_eq!(server.head().unwrap().get("Expect").as_deref(), Some("100-continue"));
    server.send("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.response().unwrap().head.line, "HTTP/1.1 100 Continue");
    client.send("abc");
    assert_eq!(server.read(3), Ok(b"abc".to_vec()));
    server.send(answer("one"));
    assert_eq!(text(&client.response().unwrap().body), "one");
    // The client does not wait, and both connections go on.
    client.send(format!("{expecting}abc"));
    assert_eq!(text(&server.request().unwrap().body), "abc");
    server.send("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 100);
    server.send(answer("two"));
    assert_eq!(text(&client.response().unwrap().body), "two");
    // Refused before the body: whether it follows is unknown, so both connections end.
    client.send(expecting);
    server.head().unwrap();
    server.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let refusal = client.response().unwrap();
    assert_eq!((refusal.status(), text(&refusal.body).as_str()), (403, "no"));
    assert_eq!(refusal.head.get("Connection").as_deref(), Some("close"));
    assert_eq!(client.expect_end(), Ended::Cleanly);
    server.expect_end();
}

#[test]
fn expect_is_left_out_where_there_is_nothing_to_wait_for() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    for request in [
        "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let mut client = gateway.connect();
        client.send(request);
        assert_eq!(client.response().unwrap().status(), 200, "{request:?}");
        assert_eq!(seen.lock().unwrap().pop().unwrap().head.get("Expect"), None, "{request:?}");
    }
}

#[test]
fn a_filter_that_wants_the_body_invites_it() {
    let upstream = Upstream::bind();
    let model = patch(simple_model(upstream.address), &json!({"routes": {"plugins": [
        {"use": {"name": "puppet", "config": {"need_body": 100}}},
    ]}}));
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 100);
    assert!(upstream.is_untouched());
    client.send("abc");
    let mut server = upstream.accept();
    let request = server.request().unwrap();
    assert_eq!((text(&request.body).as_str(), request.head.get("Expect")), ("abc", None));
    server.send(answer("ok"));
    assert_eq!(text(&client.response().unwrap().body), "ok");
}

#[test]
fn interim_responses_reach_those_who_know_them() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";
    for (version, wanted) in [("1.1", &[103, 102, 200][..]), ("1.0", &[200])] {
        let mut client = gateway.connect();
        client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
        let mut server = upstream.accept();
        server.request().unwrap();
        // Nobody asked for an invitation to send a body.
        server.send(format!("HTTP/1.1 100 Continue\r\n\r\n{hints}"));
        if version == "1.1" {
            // They do not wait for the final one.
            let early = client.response().unwrap();
            assert_eq!((early.status(), early.head.get("Link").as_deref()), (103, Some("</a>")));
            assert_eq!(early.head.names(), ["Link"]);
            assert_eq!(client.response().unwrap().status(), 102);
        }
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        let last = client.response().unwrap();
        assert_eq!((last.status(), text(&last.body).as_str()), (*wanted.last().unwrap(), "ok"));
    }
}

/// More than all buffers on the way can hold: the gateway's own, and the sockets' of both connections.
const ENDLESS: usize = 256 << 20;
/// What the sockets' buffers and the gateway's may have taken at most.
const IN_BUFFERS: usize = 48 << 20;
/// A peer that takes nothing for so long has stopped.
const STALL: Duration = Duration::from_millis(700);

/// Writes until the peer takes no more; gives how much it took.
fn write_until_stalled(wire: &mut Wire) -> usize {
    wire.stream.set_write_timeout(Some(STALL)).unwrap();
    let block = vec![b'x'; 64 * 1024];
    let mut taken = 0;
    while taken < ENDLESS {
        match wire.stream.write(&block) {
            Ok(count) => taken += count,
            Err(_) => break,
        }
    }
    taken
}

#[test]
fn a_client_that_does_not_read_stops_the_upstream() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS}\r\n\r\n"));
    let taken = write_until_stalled(&mut server);
    assert!(taken < IN_BUFFERS, "{taken} bytes are somewhere");
    // Once it reads, all of that arrives.
    client.head().unwrap();
    assert_eq!(client.read(taken).unwrap().len(), taken);
}

#[test]
fn an_upstream_that_does_not_read_stops_the_client() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {ENDLESS}\r\n\r\n"));
    let mut server = upstream.accept();
    let taken = write_until_stalled(&mut client);
    assert!(taken < IN_BUFFERS, "{taken} bytes are somewhere");
    server.head().unwrap();
    assert_eq!(server.read(taken).unwrap().len(), taken);
}

#[test]
fn a_client_that_does_not_read_is_given_up_in_time() {
    let upstream = Upstream::bind();
    let limits = Limits { write_timeout: Duration::from_millis(100), ..Limits::default() };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS}\r\n\r\n"));
    // The upstream is told by the end of its connection.
    let block = vec![b'x'; 64 * 1024];
    while server.try_send(&block).is_ok() {}
    let (rest, _) = client.rest();
    assert!(rest.len() < IN_BUFFERS);
}

#[test]
fn a_client_that_goes_takes_its_call_with_it() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
    let sent = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let fixed = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\na";
    for request in ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", chunked, sent, fixed] {
        for begun in ["", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"] {
            for is_reset in [true, false] {
                let mut client = gateway.connect();
                client.send(request);
                let mut server = upstream.accept();
                server.head().unwrap();
                server.send(begun);
                if !begun.is_empty() {
                    assert_eq!(client.head().unwrap().status(), 200);
                    assert_eq!(client.chunk(), Ok(b"a".to_vec()));
                }
                if is_reset {
                    client.reset();
                } else {
                    drop(client);
                }
                let (rest, _) = server.rest();
                assert!(request == sent || !text(&rest).contains("0\\r\\n\\r\\n"), "a cut body got an end: {}", text(&rest));
            }
        }
    }
}

#[test]
fn a_stalled_request_body_is_given_up_in_time() {
    let upstream = Upstream::bind();
    let limits = Limits { body_timeout: Duration::from_millis(100), ..Limits::default() };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    for framing in ["Content-Length: 5\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"] {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}"));
        let answer = client.response().unwrap();
        assert_eq!((answer.status(), answer.head.get("Connection").as_deref()), (408, Some("close")), "{framing:?}");
        client.expect_end();
        let (seen, _) = upstream.accept().rest();
        assert!(!text(&seen).contains("0\\r\\n\\r\\n"));
    }
}
