//! Heads between the versions: pseudo-header fields, Host, cookies, and what belongs to a connection.

use super::peer::{Client, fields, run};
use super::support::{TestGateway, Upstream, answer, patch, simple_model};
use http::Request;
use serde_json::json;

/// What the upstream sees of a request's fields: `(fields, name, value)`.
type Passed = (
    &'static [(&'static str, &'static str)],
    &'static str,
    Option<&'static str>,
);

#[rustfmt::skip]
const PASSED: &[Passed] = &[
    (&[("x-a", "1"), ("x-a", "2")], "x-a", Some("1 2")),
    (&[("x-empty", "")], "x-empty", Some("")),
    (&[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")], "cookie", Some("a=1; b=2; c=3")),
    (&[("cookie", "a=1; b=2")], "cookie", Some("a=1; b=2")),
    (&[("te", "trailers")], "te", Some("trailers")),
    (&[("proxy", "x")], "proxy", None),
    (&[("x-forwarded-for", "1.2.3.4")], "x-forwarded-for", Some("1.2.3.4, 127.0.0.1")),
];

#[test]
fn request_fields_pass_or_stay() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let seen = upstream.serve(|_| answer("ok"));
    run(async {
        let client = Client::connect(gateway.address).await;
        for (list, name, wanted) in PASSED {
            let came = client.get("/a/b?c=d", list).await;
            assert_eq!((came.status, came.text().as_str()), (200, "ok"), "{list:?}");
            let request = seen.lock().unwrap().pop().unwrap();
            assert_eq!(request.head.line, "GET /a/b?c=d HTTP/1.1");
            let values = request.head.all(name);
            let found = (!values.is_empty()).then(|| values.join(" "));
            assert_eq!(found.as_deref(), *wanted, "{list:?}");
            assert_eq!(request.head.get("content-length"), None);
        }
    });
}

#[test]
fn the_authority_is_the_host() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"routes": {"upstream_host": "client"}}),
    );
    let gateway = TestGateway::start(model);
    let seen = upstream.serve(|_| answer("ok"));
    run(async {
        let client = Client::connect(gateway.address).await;
        for (uri, host, wanted) in [
            ("http://Example.com:81/x", None, Some("Example.com:81")),
            ("http://example.com/x", Some("example.com"), Some("example.com")),
            (
                "http://example.com/x",
                Some("EXAMPLE.com:80"),
                Some("example.com"),
            ),
            ("http://example.com/x", Some("other.com"), None),
            ("http://exa_mple.com/x", None, Some("exa_mple.com")),
        ] {
            let mut request = Request::builder().uri(uri).body(()).unwrap();
            let list: Vec<_> = host.iter().map(|host| ("host", *host)).collect();
            *request.headers_mut() = fields(&list);
            *request.version_mut() = http::Version::HTTP_2;
            let came = client.call(request, b"", &[]).await.unwrap();
            match wanted {
                Some(wanted) => {
                    assert_eq!(came.status, 200, "{uri} {host:?}");
                    let request = seen.lock().unwrap().pop().unwrap();
                    assert_eq!(
                        request.head.get("Host").as_deref(),
                        Some(wanted),
                        "{uri} {host:?}"
                    );
                }
                None => assert_eq!(came.status, 400, "{uri} {host:?}"),
            }
        }
    });
}

/// `(method, target, fields, status)`.
type Refused = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    u16,
);

#[rustfmt::skip]
const REFUSED: &[Refused] = &[
    ("TRACE", "/", &[], 405),
    ("get", "/", &[], 400),
    ("GET", "/", &[("expect", "x")], 417),
    ("GET", "/", &[("content-length", "1, 1")], 400),
    ("GET", "/%00", &[], 400),
];

#[test]
fn bad_requests_are_refused_and_the_connection_goes_on() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        for (method, target, list, status) in REFUSED {
            let request = client.request(method, target, list);
            match client.call(request, b"", &[]).await {
                Ok(came) => assert_eq!(came.status, *status, "{method} {target} {list:?}"),
                // Where the frames already contradict themselves.
                Err(error) => assert_eq!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR), "{list:?}"),
            }
        }
        let long = format!("/{}", "a".repeat(9000));
        assert_eq!(client.get(&long, &[]).await.status, 414);
        let large = "v".repeat(30_000);
        let came = client.get("/", &[("x-a", &large), ("x-b", &large)]).await;
        assert_eq!(came.status, 431);
        assert!(upstream.is_untouched());
    });
}

#[test]
fn response_fields_pass_or_stay() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| {
        b"HTTP/1.1 203 Odd\r\nConnection: keep-alive, x-gone\r\nKeep-Alive: timeout=5\r\nX-Gone: 1\r\n\
          Set-Cookie: a=1\r\nX-Mixed: Case\r\nset-cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n\
          3\r\nabc\r\n0\r\n\r\n"
            .to_vec()
    });
    run(async {
        let came = Client::connect(gateway.address).await.get("/", &[]).await;
        assert_eq!((came.status, came.text().as_str()), (203, "abc"));
        assert_eq!(came.get("set-cookie").as_deref(), Some("a=1 | b=2"));
        assert_eq!(came.get("x-mixed").as_deref(), Some("Case"));
        for gone in ["connection", "keep-alive", "x-gone", "transfer-encoding"] {
            assert_eq!(came.get(gone), None, "{gone}");
        }
    });
}

#[test]
fn interim_responses_come_first() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec();
        bytes.extend_from_slice(&answer("ok"));
        bytes
    });
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("GET", "/", &[]);
        let (mut response, _) = client.begin(request, true).await.unwrap();
        let hints = std::future::poll_fn(|context| response.poll_informational(context)).await;
        let hints = hints.unwrap().unwrap();
        assert_eq!(hints.status(), 103);
        assert_eq!(hints.headers()["link"], "</a>");
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|request| answer(&request.body));
    run(async {
        let client = Client::connect(gateway.address).await;
        let list = [("expect", "100-continue"), ("content-length", "5")];
        let request = client.request("POST", "/", &list);
        let (mut response, mut stream) = client.begin(request, false).await.unwrap();
        let _interim = std::future::poll_fn(|context| response.poll_informational(context));
        stream.send_data("hello".into(), true).unwrap();
        let (parts, body) = response.await.unwrap().into_parts();
        let came = super::peer::receive(parts, body).await.unwrap();
        assert_eq!((came.status, came.text().as_str()), (200, "hello"));
    });
}

#[test]
fn what_is_no_http_gets_no_answer_in_it() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for (bytes, is_answered) in [
        ("INVALID CONNECTION PREFACE\r\n\r\n", false),
        ("GET / HTTP/3.0\r\n\r\n", true),
        ("GET / HTTP/x\r\n\r\n", true),
        ("GET /\r\n\r\n", true),
    ] {
        let mut wire = gateway.connect();
        wire.send(bytes);
        wire.finish();
        let (answer, _) = wire.rest();
        assert_eq!(!answer.is_empty(), is_answered, "{bytes}");
    }
    assert!(upstream.is_untouched());
}
