//! Heads between the versions: pseudo-header fields, Host, cookies, and what belongs to a connection.

use super::peer::{Client, fields, run};
use super::support::{TestGateway, Upstream, answer, patch, simple_model};
use http::Request;
use serde_json::json;

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

#[test]
fn two_lengths_are_none() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("GET", "/", &[("content-length", "1, 1")]);
        match client.call(request, b"", &[]).await {
            Ok(came) => assert_eq!(came.status, 400),
            // If the frames already contradict themselves.
            Err(error) => assert_eq!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR)),
        }
    });
    assert!(upstream.is_untouched());
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
