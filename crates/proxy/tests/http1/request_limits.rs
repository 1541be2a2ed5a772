//! Bounds on request heads, targets and bodies, and heads that come in pieces.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model, text};
use serde_json::json;
use weir_proxy::Limits;

#[test]
fn heads_targets_and_bodies_are_bounded() {
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    let limits = Limits {
        max_head_bytes: 2048,
        max_target_bytes: 512,
        max_body_bytes: 10,
        ..Limits::default()
    };
    let gateway = TestGateway::with(model, |options| options.limits = limits);
    let get = |target: &str, fields: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let post = |fields: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}");
    for (bytes, status) in [
        (get(&format!("/{}", "a".repeat(512)), ""), 414),
        (get(&format!("/?{}", "a".repeat(511)), ""), 414),
        (get(&format!("/{}", "a".repeat(20_000)), ""), 414),
        (format!("GET /{}", "a".repeat(20_000)), 414),
        (get("/", &format!("A: {}\r\n", "a".repeat(2048))), 431),
        (get("/", &"A: b\r\n".repeat(129)), 431),
        (get("/", &"A: b\r\n".repeat(400)), 431),
        (get("/", &format!("A: {}\r\n", "a".repeat(100_000))), 431),
        (format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(100_000)), 431),
        (post("Content-Length: 11\r\n", ""), 413),
        (post("Content-Length: 11\r\n", "01234567890"), 413),
        (post("Content-Length: 9223372036854775807\r\n", ""), 413),
        (post("Content-Length: 11\r\nExpect: 100-continue\r\n", ""), 413),
    ] {
        let mut client = gateway.connect();
        // The gateway may have answered before all of it is sent.
        let _ = client.try_send(&bytes);
        let answer = client.response().unwrap_or_else(|ended| {
            panic!("{ended:?}, wanted {status} for {}", &bytes[..60.min(bytes.len())])
        });
        assert_eq!(answer.status(), status, "{}", &bytes[..60.min(bytes.len())]);
        assert_eq!(answer.head.get("Connection").as_deref(), Some("close"));
        client.expect_end();
        assert!(upstream.is_untouched());
    }
    // A chunked body shows its size only on the way.
    let mut client = gateway.connect();
    client.send(post(
        "Transfer-Encoding: chunked\r\n",
        "6\r\n012345\r\n5\r\n67890\r\n0\r\n\r\n",
    ));
    assert_eq!(client.response().unwrap().status(), 413);
    client.expect_end();
    let (rest, _) = upstream.accept().rest();
    assert!(!text(&rest).contains("0\\r\\n\\r\\n"), "{}", text(&rest));
}

#[test]
fn a_route_may_bound_its_bodies() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let model = patch(simple_model(address), &json!({"routes": {"max_body_bytes": 4}}));
    let gateway = TestGateway::start(model);
    for (body, status) in [("4\r\nabcd\r\n0\r\n\r\n", 200), ("5\r\nabcde\r\n0\r\n\r\n", 413)] {
        let mut client = gateway.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        ));
        assert_eq!(client.response().unwrap().status(), status);
    }
}

#[test]
fn heads_may_arrive_in_any_pieces() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    let request = "POST /path?query HTTP/1.1\r\nHost: h\r\nA:\r\nContent-Length: 3\r\n\r\nabc";
    let mut client = gateway.connect();
    for split in 0..=request.len() {
        client.send(&request[..split]);
        client.send(&request[split..]);
        assert_eq!(client.response().unwrap().status(), 200, "split at {split}");
        let seen = seen.lock().unwrap().pop().unwrap();
        assert_eq!(
            (seen.head.line.as_str(), text(&seen.body).as_str()),
            ("POST /path?query HTTP/1.1", "abc")
        );
        assert_eq!(seen.head.get("A").as_deref(), Some(""));
    }
    client.trickle(request);
    assert_eq!(client.response().unwrap().status(), 200);
}
