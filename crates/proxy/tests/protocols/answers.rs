//! Answers of upstreams, and of the gateway itself.

use super::client::{ALL, Protocol};
use super::stand::{Stand, over_all};
use super::support::{Upstream, answer, joined, text};
use serde_json::json;

/// `(method, what the upstream answers, status, body, fields that the client gets)`.
type Case = (
    &'static str,
    &'static str,
    u16,
    &'static str,
    &'static [(&'static str, Option<&'static str>)],
);

#[rustfmt::skip]
const ANSWERS: &[Case] = &[
    ("GET", "200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", &[("content-length", Some("5"))]),
    ("GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 200, "hello", &[]),
    ("GET", "200 OK\r\nConnection: close\r\n\r\nhello", 200, "hello", &[]),
    ("GET", "200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", &[]),
    ("GET", "204 No Content\r\n\r\n", 204, "", &[("content-length", None)]),
    ("GET", "304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n", 304, "", &[("etag", Some("\"a\""))]),
    ("HEAD", "200 OK\r\nContent-Length: 1234\r\n\r\n", 200, "", &[("content-length", Some("1234"))]),
    ("HEAD", "404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n", 404, "", &[]),
    ("OPTIONS", "200 OK\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n", 200, "", &[("allow", Some("GET"))]),
    ("GET", "200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nContent-Length: 0\r\n\r\n", 200, "",
        &[("content-type", Some("c/d"))]),
    ("DELETE", "202 Accepted\r\nContent-Length: 1\r\n\r\nx", 202, "x", &[]),
    ("GET", "301 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", 301, "", &[("location", Some("/b"))]),
    ("GET", "418 Teapot\r\nContent-Length: 3\r\n\r\npot", 418, "pot", &[]),
    ("GET", "503 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno", 503, "no", &[("retry-after", Some("7"))]),
    ("GET", "200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n", 200, "",
        &[("set-cookie", Some("a=1 | b=2"))]),
    ("GET", "200 OK\r\nConnection: x-gone, keep-alive\r\nX-Gone: 1\r\nKeep-Alive: timeout=1\r\nProxy-Connection: x\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n",
        200, "", &[("x-gone", None), ("keep-alive", None), ("proxy-connection", None), ("x-kept", Some("1"))]),
];

#[test]
fn answers_pass() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        for (method, given, status, body, fields) in ANSWERS {
            let response = std::thread::scope(|scope| {
                let calling = scope.spawn(|| client.call(method, "/", &[], b""));
                let mut wire = stand.upstream.accept();
                assert_eq!(wire.request().unwrap().head.line, format!("{method} / HTTP/1.1"));
                // So that each call gets a connection of its own.
                let given = given.replacen("\r\n", "\r\nConnection: close\r\n", 1);
                let given = given.replacen("Connection: close\r\nConnection: x", "Connection: close, x", 1);
                wire.send(format!("HTTP/1.1 {given}"));
                drop(wire);
                calling.join().unwrap().unwrap()
            });
            assert_eq!(
                (response.head.status, response.text().as_str()),
                (*status, *body),
                "{protocol:?} {method} {given}"
            );
            for (name, value) in *fields {
                assert_eq!(
                    response.get(name).as_deref(),
                    *value,
                    "{protocol:?} {method} {given}: {name}"
                );
            }
        }
    });
}

#[test]
fn what_breaks_off_never_looks_whole() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        for given in [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx",
        ] {
            let response = std::thread::scope(|scope| {
                let calling = scope.spawn(|| client.call("GET", "/", &[], b""));
                let mut wire = stand.upstream.accept();
                wire.request().unwrap();
                wire.send(given);
                drop(wire);
                calling.join().unwrap()
            });
            assert!(response.is_err(), "{protocol:?} {given}: {response:?}");
        }
    });
}

#[test]
fn an_upstream_that_says_nothing_good_is_answered_for() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        for given in [
            "",
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ] {
            let response = std::thread::scope(|scope| {
                // Not one of those that are tried again.
                let calling = scope.spawn(|| client.call("POST", "/", &[], b"x"));
                let mut wire = stand.upstream.accept();
                wire.request().unwrap();
                wire.send(given);
                drop(wire);
                calling.join().unwrap().unwrap()
            });
            assert_eq!(response.head.status, 502, "{protocol:?} {given}");
        }
    });
}

#[test]
fn the_gateways_own_answers_are_whole() {
    let changes = json!({"routes": {"match": {"path": "/here"}}});
    for protocol in ALL {
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        for (method, body) in [("GET", "no_route"), ("POST", "no_route"), ("HEAD", "")] {
            let response = client.call(method, "/else", &[], b"").unwrap();
            assert_eq!(
                (response.head.status, response.text().as_str()),
                (404, body),
                "{protocol:?} {method}"
            );
            assert_eq!(
                response.get("content-length").as_deref(),
                Some("8"),
                "{protocol:?} {method}"
            );
            assert!(response.get("date").is_some());
        }
        assert!(stand.upstream.is_untouched());
    }
}

#[test]
fn interim_answers_come_first() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        stand.upstream.serve(|_| {
            let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec();
            bytes.extend_from_slice(&answer("ok"));
            bytes
        });
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        let hints = call.next_head().unwrap();
        assert_eq!(
            (hints.status, hints.get("link").as_deref()),
            (103, Some("</a>")),
            "{protocol:?}"
        );
        assert_eq!(call.next_head().unwrap().status, 200, "{protocol:?}");
        assert_eq!(call.rest().unwrap(), b"ok", "{protocol:?}");
    });
}

#[test]
fn trailers_pass_both_ways() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let fields = [("te", "trailers"), ("trailer", "x-sum")];
                let mut call = client.begin("POST", "/", &fields, true).unwrap();
                call.send(b"hello").unwrap();
                call.finish(&[("x-sum", "5")]);
                super::client::read_response(call.as_mut()).unwrap()
            });
            let mut wire = stand.upstream.accept();
            wire.head().unwrap();
            let body = wire.read_through(b"\r\n\r\n").unwrap();
            // From HTTP/1.1 to HTTP/1.1 they stay behind.
            let wanted: &[u8] = match protocol.is_http1() {
                true => b"0\r\n\r\n",
                false => b"0\r\nx-sum: 5\r\n\r\n",
            };
            assert!(body.ends_with(wanted), "{protocol:?} {}", text(&body));
            wire.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n\
                 2\r\nok\r\n0\r\nX-End: yes\r\nContent-Length: 7\r\n\r\n",
            );
            let response = calling.join().unwrap();
            assert_eq!(response.body, b"ok", "{protocol:?}");
            assert_eq!(
                joined(&response.trailers, "x-end").as_deref(),
                Some("yes"),
                "{protocol:?}"
            );
            assert_eq!(joined(&response.trailers, "content-length"), None, "{protocol:?}");
        });
    });
}

#[test]
fn http3_is_announced_to_clients_over_tls() {
    for protocol in ALL {
        let stand = Stand::new();
        let port = super::stand::address(&stand.gateway, Protocol::Http3).port();
        let client = stand.client(protocol);
        stand
            .upstream
            .serve(|request| match request.head.line.contains("/own") {
                true => b"HTTP/1.1 200 OK\r\nAlt-Svc: clear\r\nContent-Length: 0\r\n\r\n".to_vec(),
                false => answer("ok"),
            });
        let wanted = matches!(protocol, Protocol::Http1Tls | Protocol::Http2Tls)
            .then(|| format!("h3=\":{port}\"; ma=86400"));
        assert_eq!(client.get("/").get("alt-svc"), wanted, "{protocol:?}");
        let refused = client
            .call("GET", &format!("/{}", "a".repeat(9000)), &[], b"")
            .unwrap();
        assert_eq!(
            (refused.head.status, refused.get("alt-svc")),
            (414, wanted),
            "{protocol:?}"
        );
        assert_eq!(
            client.get("/own").get("alt-svc").as_deref(),
            Some("clear"),
            "{protocol:?}"
        );
    }
}

#[test]
fn answers_do_not_announce_http3_if_it_is_off() {
    let upstream = Upstream::bind();
    let model = super::support::simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    let gateway = super::support::TestGateway::with(model, |options| {
        super::stand::listen_for_all(options);
        options.http3 = None;
    });
    assert!(gateway.gateway().bound().http3.is_empty());
    let client = super::client::Client::new(Protocol::Http1Tls, gateway.gateway().bound().tls[0]);
    assert_eq!(client.get("/").get("alt-svc"), None);
}
