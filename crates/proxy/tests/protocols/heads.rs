//! Fields of requests as upstreams get them, and requests that are refused.

use super::client::{ALL, Protocol, read_response};
use super::stand::{Stand, over_all};
use super::support::answer;
use serde_json::json;

/// `(fields of the client, fields that the upstream gets)`.
type Passed = (
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, Option<&'static str>)],
);

#[rustfmt::skip]
const PASSED: &[Passed] = &[
    (&[("x-a", "1"), ("x-a", "2")], &[("x-a", Some("1 | 2"))]),
    (&[("host", "a.test:8080")], &[("host", Some("a.test:8080"))]),
    (&[("host", "UPPER.test")], &[("host", Some("UPPER.test"))]),
    (&[("cookie", "a=1; b=2")], &[("cookie", Some("a=1; b=2"))]),
    (&[("accept", "a/b"), ("user-agent", "u")], &[("accept", Some("a/b")), ("user-agent", Some("u"))]),
    (&[("proxy", "http://evil")], &[("proxy", None)]),
    (&[("te", "trailers")], &[("te", Some("trailers")), ("content-length", None)]),
    (&[("x-empty", "")], &[("x-empty", Some(""))]),
];

#[test]
fn fields_pass_or_stay() {
    for protocol in ALL {
        let stand = Stand::with(&json!({"routes": {"upstream_host": "client"}}), |_| ());
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|_| answer("ok"));
        for (fields, wanted) in PASSED {
            let response = client.call("GET", "/a?b=c", fields, b"").unwrap();
            assert_eq!(response.head.status, 200, "{protocol:?} {fields:?}");
            let request = seen.lock().unwrap().pop().unwrap();
            assert_eq!(request.head.line, "GET /a?b=c HTTP/1.1");
            for (name, value) in *wanted {
                let all = request.head.all(name);
                let joined = (!all.is_empty()).then(|| all.join(" | "));
                assert_eq!(joined.as_deref(), *value, "{protocol:?} {fields:?}: {name}");
            }
        }
    }
}

/// `$http_host` is what the client calls the gateway, as it writes it: the authority where there is no such field.
#[test]
fn the_host_of_variables_is_the_authority() {
    let when = json!(["http_host", "==", "A.test:8080"]);
    for protocol in ALL {
        let stand = Stand::with(&json!({"routes": {"match": [{"when": when}]}}), |_| ());
        let client = stand.client(protocol);
        let _seen = stand.upstream.serve(|_| answer("ok"));
        for (host, status) in [("A.test:8080", 200), ("a.test:8080", 404), ("A.test", 404)] {
            let response = client.call("GET", "/", &[("host", host)], b"").unwrap();
            assert_eq!(response.head.status, status, "{protocol:?} {host}");
        }
    }
}

#[test]
fn several_cookie_fields_become_one() {
    for protocol in [Protocol::Http2, Protocol::Http2Tls, Protocol::Http3] {
        let stand = Stand::new();
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|_| answer("ok"));
        let fields = [("cookie", "a=1"), ("x-b", "2"), ("cookie", "c=3; d=4")];
        assert_eq!(client.call("GET", "/", &fields, b"").unwrap().head.status, 200);
        let request = seen.lock().unwrap().pop().unwrap();
        assert_eq!(request.head.all("cookie"), ["a=1; c=3; d=4"], "{protocol:?}");
    }
}

#[test]
fn headers_about_the_client_are_the_same() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|_| answer("ok"));
        client.get("/");
        let request = seen.lock().unwrap().pop().unwrap();
        let proto = if protocol.is_tls() { "https" } else { "http" };
        assert_eq!(
            request.head.get("X-Forwarded-Proto").as_deref(),
            Some(proto),
            "{protocol:?}"
        );
        assert_eq!(
            request.head.get("X-Forwarded-For").as_deref(),
            Some("127.0.0.1"),
            "{protocol:?}"
        );
    });
}

/// `(method, target, fields, status)`.
type RefusalCase = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    u16,
);

#[rustfmt::skip]
const REFUSED: &[RefusalCase] = &[
    ("TRACE", "/", &[], 405),
    ("get", "/", &[], 400),
    ("GET", "/", &[("expect", "x")], 417),
    ("GET", "/%00", &[], 400),
    ("GET", "/admin%2fx", &[], 400),
    ("GET", "/%2Fadmin", &[], 400),
    ("GET", "/p/..%2f..%2fx", &[], 400),
    ("GET", "/admin%5cx", &[], 400),
    ("GET", "/admin%252fx", &[], 400),
    ("GET", "/p/..;/admin", &[], 400),
    ("GET", "/%c0%afadmin", &[], 400),
    ("GET", "/", &[("host", "a b")], 400),
];

#[test]
fn bad_requests_are_refused() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        for (method, target, fields, status) in REFUSED {
            if !protocol.is_http1() && fields.contains(&("host", "a b")) {
                // No client can write it.
                continue;
            }
            let response = client.call(method, target, fields, b"").unwrap();
            assert_eq!(
                response.head.status, *status,
                "{protocol:?} {method} {target} {fields:?}"
            );
        }
        assert!(stand.upstream.is_untouched());
    });
}

#[test]
fn fields_of_a_connection_have_no_place_on_a_stream() {
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let stand = Stand::new();
        let client = stand.client(protocol);
        for field in [
            ("connection", "close"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-connection", "close"),
            ("te", "gzip"),
        ] {
            match client.call("GET", "/", &[field], b"") {
                Ok(response) => assert_eq!(response.head.status, 400, "{protocol:?} {field:?}"),
                // If the frames are already refused.
                Err(_) => assert_eq!(protocol, Protocol::Http2, "{field:?}"),
            }
        }
        assert!(stand.upstream.is_untouched());
    }
}

#[test]
fn a_client_that_waits_gets_100_continue() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let fields = [("expect", "100-continue"), ("content-length", "5")];
                let mut call = client.begin("POST", "/", &fields, true).unwrap();
                let first = call.next_head().unwrap();
                assert_eq!(first.status, 100, "{protocol:?}");
                call.send(b"hello").unwrap();
                call.finish(&[]);
                read_response(call.as_mut()).unwrap()
            });
            let mut wire = stand.upstream.accept();
            let head = wire.head().unwrap();
            if head.get("Expect").is_some() {
                wire.send("HTTP/1.1 100 Continue\r\n\r\n");
            }
            assert_eq!(wire.read(5).unwrap(), b"hello", "{protocol:?}");
            wire.send(answer("ok"));
            let response = calling.join().unwrap();
            assert_eq!(
                (response.head.status, response.text().as_str()),
                (200, "ok"),
                "{protocol:?}"
            );
        });
    });
}

#[test]
fn routes_see_the_same_request() {
    let changes = json!({"routes": {"match": {"hosts": ["a.test"], "methods": ["GET"], "headers": [{"name": "x-v", "values": ["2"]}]}}});
    for protocol in ALL {
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        stand.upstream.serve(|_| answer("ok"));
        for (method, host, version, status) in [
            ("GET", "a.test", "2", 200),
            ("GET", "b.test", "2", 404),
            ("PUT", "a.test", "2", 404),
            ("GET", "a.test", "1", 404),
        ] {
            let fields = [("host", host), ("x-v", version)];
            let response = client.call(method, "/", &fields, b"").unwrap();
            assert_eq!(
                response.head.status, status,
                "{protocol:?} {method} {host} {version}"
            );
        }
    }
}
