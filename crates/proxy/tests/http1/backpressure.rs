//! Slow and absent peers: no side is read faster than the other takes it, and a call ends with its client.

use crate::support::{TestGateway, Upstream, Wire, simple_model, text};
use std::time::Duration;
use weir_proxy::Limits;

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
        match wire.try_send(&block) {
            Ok(()) => taken += block.len(),
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
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {ENDLESS}\r\n\r\n"
    ));
    let mut server = upstream.accept();
    let taken = write_until_stalled(&mut client);
    assert!(taken < IN_BUFFERS, "{taken} bytes are somewhere");
    server.head().unwrap();
    assert_eq!(server.read(taken).unwrap().len(), taken);
}

#[test]
fn a_client_that_does_not_read_is_given_up_in_time() {
    let upstream = Upstream::bind();
    let limits = Limits {
        write_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS}\r\n\r\n"));
    // The upstream notices by the end of its connection.
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
        for begun in [
            "",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        ] {
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
                assert!(
                    request == sent || !text(&rest).contains("0\\r\\n\\r\\n"),
                    "a cut body got an end: {}",
                    text(&rest)
                );
            }
        }
    }
}

#[test]
fn a_stalled_request_body_is_given_up_in_time() {
    let upstream = Upstream::bind();
    let limits = Limits {
        body_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    for framing in [
        "Content-Length: 5\r\n\r\nab",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ] {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}"));
        let answer = client.response().unwrap();
        assert_eq!(
            (answer.status(), answer.head.get("Connection").as_deref()),
            (408, Some("close")),
            "{framing:?}"
        );
        client.expect_end();
        let (seen, _) = upstream.accept().rest();
        assert!(!text(&seen).contains("0\\r\\n\\r\\n"));
    }
}
