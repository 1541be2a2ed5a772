//! Requests that try to mean two things at once, or break the format: each is refused, its connection ends,
//! and no upstream sees any of it (RFC 9112, 11.2).

use crate::support::{Ended, TestGateway, Upstream, Wire, answer, text};

/// Bytes after which anybody who overlooks the fault would see a second request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

/// `(bytes, status, what the answer says)`; all are followed by [`SMUGGLED`].
#[rustfmt::skip]
const REFUSED: &[(&str, u16, &str)] = &[
    // Two framings.
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "Transfer-Encoding with"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, "Transfer-Encoding with"),
    ("POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: Chunked\r\ncontent-length: 0\r\n\r\n0\r\n\r\n", 400, "Transfer-Encoding with"),
    // Content-Length.
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3,\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -3\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x3\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3 3\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3a\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3.0\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \"3\"\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551619\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \u{663}\r\n\r\nabc", 400, "Content-Length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent_Length: 0\r\n\r\nabc", 400, "with an underscore"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\ntransfer_encoding: chunked\r\n\r\nabc", 400, "with an underscore"),
    // Transfer-Encoding.
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "Transfer-Encoding"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400, "Transfer-Encoding"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400, "a header value"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\x00\r\n\r\n0\r\n\r\n", 400, "a header value"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, "a header name"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400, "a header name"),
    ("POST / HTTP/1.1\r\nHost: h\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "a header"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400, "a header"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer\u{2010}Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "a header name"),
    ("POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "HTTP/1.0"),
    // Line ends.
    ("GET / HTTP/1.1\nHost: h\r\n\r\n", 400, "CRLF"),
    ("GET / HTTP/1.1\r\nHost: h\n\r\n", 400, "CRLF"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\nC: d\r\n\r\n", 400, "CRLF"),
    ("GET / HTTP/1.1\r\nHost: h\r\n\n", 400, "CRLF"),
    ("GET / HTTP/1.1\nHost: h\n\n", 400, "CRLF"),
    ("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "CRLF"),
    ("GET / HTTP/1.1\rHost: h\r\n\r\n", 400, ""),
    ("GET / HTTP/1.1\r\nHost: h\rA: b\r\n\r\n", 400, "a header value"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\r\n\r\n", 400, "a header value"),
    ("GET / HTTP/1.1\r\r\nHost: h\r\n\r\n", 400, ""),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\n \r\n\r\n", 400, "a header name"),
    // Field lines.
    ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA B: c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA(B): c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA\"B: c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA\x00B: c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA\x01: c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\n\u{e4}: c\r\n\r\n", 400, "a header name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\x00c\r\n\r\n", 400, "a header value"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\x01\r\n\r\n", 400, "a header value"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\x0b\r\n\r\n", 400, "a header value"),
    ("GET / HTTP/1.1\r\nHost: h\r\nA: b\x7f\r\n\r\n", 400, "a header value"),
    // Host.
    ("GET / HTTP/1.1\r\n\r\n", 400, "no Host"),
    ("GET http://h/ HTTP/1.1\r\n\r\n", 400, "no Host"),
    ("GET http://other/a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "differ"),
    ("GET http://h:81/a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "differ"),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "more than one Host"),
    ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400, "more than one Host"),
    ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "more than one Host"),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nauthorization: b\r\n\r\n",
        400,
        "more than one Authorization",
    ),
    ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost:   \r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: .\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a?b\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a#b\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", 400, "the"),
    ("GET / HTTP/1.1\r\nHost: a:b:80\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a:80x\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a:-1\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: []\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: [a.b]\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", 400, "the Host"),
    ("GET / HTTP/1.1\r\nHost: a[b]\r\n\r\n", 400, "the Host"),
    // The request line.
    ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET /  HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    (" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400, ""),
    ("GET / x HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("G\x00T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET ?a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET http:/// HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET http://user@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("GET http://h:x/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target"),
    ("get /a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the method"),
    ("GET /a\x00b HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET /a\x01b HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET /a\x7fb HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", 405, "method_not_allowed"),
    ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405, "method_not_allowed"),
    // Versions.
    ("GET /\r\n", 400, ""),
    ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", 400, "the HTTP version"),
    ("GET / http/1.1\r\nHost: h\r\n\r\n", 400, "the HTTP version"),
    ("GET / HTTP/1.2\r\nHost: h\r\n\r\n", 400, "the HTTP version"),
    ("GET / HTTP/1.10\r\nHost: h\r\n\r\n", 400, ""),
    ("GET / HTTP/01.1\r\nHost: h\r\n\r\n", 400, "the HTTP version"),
    ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "version_not_supported"),
    ("GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505, "version_not_supported"),
    ("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03", 400, ""),
    // Expectations.
    ("POST / HTTP/1.1\r\nHost: h\r\nExpect: 200-ok\r\nContent-Length: 3\r\n\r\nabc", 417, "expectation_failed"),
    ("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue, x\r\nContent-Length: 3\r\n\r\nabc", 417, "expectation_failed"),
    // Connection.
    ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close, \x01\r\n\r\n", 400, "a header value"),
];

#[test]
fn broken_requests_are_refused_and_reach_no_upstream() {
    expect_refusals(|client, request| client.send(request));
}

#[test]
fn broken_requests_are_refused_however_they_arrive() {
    expect_refusals(|client, request| {
        // The gateway may have said good-bye before the last byte.
        let _ = request.bytes().try_for_each(|byte| client.try_send([byte]));
    });
}

fn expect_refusals(send: impl Fn(&mut Wire, &str)) {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut failures = Vec::new();
    for (bytes, status, says) in REFUSED {
        let mut client = gateway.connect();
        send(&mut client, &format!("{bytes}{SMUGGLED}"));
        let outcome = refusal(&mut client, *status, says).and_then(|()| match upstream.is_untouched() {
            true => Ok(()),
            false => Err("reached the upstream".to_owned()),
        });
        if let Err(what) = outcome {
            failures.push(format!(
                "{}\n  {what}, wanted {status} {says}",
                text(bytes.as_bytes())
            ));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} of {}:\n{}",
        REFUSED.len(),
        failures.join("\n")
    );
}

/// Reads an answer with this status and text, behind which the connection ends.
fn refusal(client: &mut Wire, status: u16, says: &str) -> Result<(), String> {
    let answer = client
        .response()
        .map_err(|ended| format!("{ended:?} without an answer"))?;
    if answer.status() != status || !text(&answer.body).contains(says) {
        return Err(format!("{} {}", answer.head.line, text(&answer.body)));
    }
    if answer.head.get("Connection").as_deref() != Some("close") {
        return Err("no Connection: close".to_owned());
    }
    match client.rest() {
        (rest, Ended::Cleanly) if rest.is_empty() => Ok(()),
        (rest, ended) => Err(format!("{ended:?} after {}", text(&rest))),
    }
}

/// What is unusual but clear is served: `(bytes, request line that the upstream sees, body that it sees)`.
#[rustfmt::skip]
const SERVED: &[(&str, &str, &str)] = &[
    ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1", ""),
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1", ""),
    ("GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1", ""),
    ("GET http://h/a?b HTTP/1.0\r\n\r\n", "GET /a?b HTTP/1.1", ""),
    ("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1", ""),
    ("GET http://h?a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /?a HTTP/1.1", ""),
    ("GET HTTP://H:80/a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a HTTP/1.1", ""),
    ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * HTTP/1.1", ""),
    ("OPTIONS /a HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS /a HTTP/1.1", ""),
    ("M-SEARCH /a HTTP/1.1\r\nHost: h\r\n\r\n", "M-SEARCH /a HTTP/1.1", ""),
    ("GET /a#b?c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a HTTP/1.1", ""),
    ("GET /a? HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a? HTTP/1.1", ""),
    ("GET /a?b=%00&c=%zz&d=/../?e HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a?b=%00&c=%zz&d=/../?e HTTP/1.1", ""),
    ("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET / HTTP/1.1", ""),
    ("GET / HTTP/1.1\r\nHost: H.:80\r\n\r\n", "GET / HTTP/1.1", ""),
    ("GET / HTTP/1.1\r\nHost: a_b.c\r\n\r\n", "GET / HTTP/1.1", ""),
    ("GET / HTTP/1.1\r\nHost:\t h \t\r\n\r\n", "GET / HTTP/1.1", ""),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1", ""),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0003\r\n\r\nabc", "POST / HTTP/1.1", "abc"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1", "abc"),
    ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "GET / HTTP/1.1", "abc"),
    ("DELETE / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "DELETE / HTTP/1.1", "abc"),
    ("POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "POST / HTTP/1.1", "abc"),
];

#[test]
fn unusual_but_clear_requests_are_served() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    for (bytes, line, body) in SERVED {
        let mut client = gateway.connect();
        client.send(bytes);
        let answer = client
            .response()
            .unwrap_or_else(|ended| panic!("{ended:?}: {}", text(bytes.as_bytes())));
        assert_eq!(
            answer.status(),
            200,
            "{}: {}",
            text(bytes.as_bytes()),
            text(&answer.body)
        );
        let request = seen.lock().unwrap().pop().unwrap();
        assert_eq!(
            (request.head.line.as_str(), text(&request.body).as_str()),
            (*line, *body)
        );
        assert_eq!(request.head.get("Host"), Some(address.to_string()));
    }
}

#[test]
fn bad_paths_are_refused_in_good_requests() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    for path in ["/a%00b", "/../a", "/a/../../b", "/%2e%2E/a", "/a/%2E./.%2e/b"] {
        // The end of such a request is clear, so the connection goes on.
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let answer = client.response().unwrap();
        assert_eq!(
            (answer.status(), text(&answer.body).as_str()),
            (400, "bad_request: the path"),
            "{path}"
        );
        assert_eq!(answer.head.get("Connection"), None, "{path}");
    }
    assert!(upstream.is_untouched());
}
