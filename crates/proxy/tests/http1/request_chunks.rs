//! Chunked request bodies: framed again for the upstream, and cut off if they break the format.

use crate::support::{TestGateway, Upstream, answer, text};

/// Bytes after which anybody who overlooks the fault would see a second request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

/// Chunked bodies that break the format behind a good first chunk, so that the upstream sees the request begin
/// but never end: `(from the second chunk on)`.
const BROKEN_CHUNKS: &[&str] = &[
    "-1\r\na\r\n0\r\n\r\n",
    "+1\r\na\r\n0\r\n\r\n",
    "0x1\r\na\r\n0\r\n\r\n",
    " 1\r\na\r\n0\r\n\r\n",
    "1 \r\na\r\n0\r\n\r\n",
    "1\t\r\na\r\n0\r\n\r\n",
    "\r\na\r\n0\r\n\r\n",
    ";x\r\n\r\n",
    "g\r\na\r\n0\r\n\r\n",
    "00000000000000001\r\na\r\n0\r\n\r\n",
    "8000000000000000\r\na\r\n0\r\n\r\n",
    "ffffffffffffffff\r\na\r\n0\r\n\r\n",
    "10000000000000001\r\na\r\n0\r\n\r\n",
    "1\na\r\n0\r\n\r\n",
    "1\ra\r\n0\r\n\r\n",
    "1\r\na\n0\r\n\r\n",
    "1\r\na\r0\r\n\r\n",
    "1\r\nab\r\n0\r\n\r\n",
    "1\r\na0\r\n\r\n",
    "1;\x00\r\na\r\n0\r\n\r\n",
    "1;a\nb\r\na\r\n0\r\n\r\n",
    "1;a\rb\r\na\r\n0\r\n\r\n",
    "1;a=\x7f\r\na\r\n0\r\n\r\n",
    "0\n\r\n",
    "0\r\n\n",
    "0\r\nA: b\n\r\n",
    "0\r\nA: b\rC: d\r\n\r\n",
    "0\r\n\rX",
    // Extensions that are none, and trailers that are none.
    "1;\r\na\r\n0\r\n\r\n",
    "1; \r\na\r\n0\r\n\r\n",
    "1;;x\r\na\r\n0\r\n\r\n",
    "1;a=\r\na\r\n0\r\n\r\n",
    "1;a=\"b\r\na\r\n0\r\n\r\n",
    "1;(\r\na\r\n0\r\n\r\n",
    "0;\r\n\r\n",
    "0\r\nno colon\r\n\r\n",
    "0\r\n: b\r\n\r\n",
    "0\r\nA : b\r\n\r\n",
    "0\r\nA: b\r\n c\r\n\r\n",
    "0\r\nA: \x01\r\n\r\n",
    "0\r\nGET / HTTP/1.1\r\n\r\n",
];

#[test]
fn broken_chunks_end_both_connections() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for chunks in BROKEN_CHUNKS {
        let mut client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        let mut server = upstream.accept();
        server.head().unwrap();
        assert_eq!(server.chunk(), Ok(b"a".to_vec()));
        client.send(format!("{chunks}{SMUGGLED}"));
        let answer = client
            .response()
            .unwrap_or_else(|ended| panic!("{ended:?}: {chunks:?}"));
        assert_eq!(answer.status(), 400, "{chunks:?}");
        assert_eq!(
            answer.head.get("Connection").as_deref(),
            Some("close"),
            "{chunks:?}"
        );
        client.expect_end();
        let (rest, _) = server.rest();
        let rest = text(&rest);
        assert!(
            !rest.contains("0\\r\\n\\r\\n") && !rest.contains("smuggled"),
            "{chunks:?} became {rest}"
        );
        assert!(upstream.is_untouched());
    }
}

#[test]
fn chunk_framing_is_made_again() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    let long_extension = format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(4000));
    let long_trailer = format!("3\r\nabc\r\n0\r\nA: {}\r\n\r\n", "x".repeat(8000));
    for chunks in [
        "3\r\nabc\r\n0\r\n\r\n",
        "0003\r\nabc\r\n0000\r\n\r\n",
        "3;name=value;other=\"quoted\"\r\nabc\r\n0;last\r\n\r\n",
        "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nContent-Length: 7\r\nHost: evil\r\nAuthorization: x\r\n\r\n",
        &long_extension,
        &long_trailer,
    ] {
        let mut client = gateway.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n{chunks}"
        ));
        assert_eq!(client.response().unwrap().status(), 200, "{chunks:?}");
        let request = seen.lock().unwrap().pop().unwrap();
        assert_eq!(text(&request.body), "abc", "{chunks:?}");
        // The connection has stayed in step.
        client.send("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(client.response().unwrap().status(), 200, "{chunks:?}");
        let request = seen.lock().unwrap().pop().unwrap();
        assert_eq!(request.head.line, "GET /next HTTP/1.1");
        assert_eq!(request.head.all("Authorization"), [""; 0]);
    }
}

#[test]
fn chunk_overhead_is_bounded() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for chunks in [
        format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(5000)),
        format!("0;{}\r\n\r\n", "x".repeat(5000)),
        format!("0\r\n{}\r\n", "A: b\r\n".repeat(4000)),
        format!("0\r\nA: {}\r\n\r\n", "x".repeat(20_000)),
        // Byte by byte, each with a long extension.
        format!("1;{}\r\na\r\n", "x".repeat(4000)).repeat(6),
    ] {
        let mut client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut server = upstream.accept();
        server.head().unwrap();
        // The gateway may have closed before all of it is sent.
        let _ = client.try_send(&chunks);
        assert_eq!(client.response().unwrap().status(), 400, "{}", &chunks[..20]);
        let (rest, _) = server.rest();
        assert!(!text(&rest).contains("0\\r\\n\\r\\n"));
    }
}
