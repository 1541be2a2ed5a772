//! Framing stays the gateway's own, whatever filters make of methods, statuses and headers.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::{Value, json};

fn gateway(config: &Value, response: &'static str) -> TestGateway {
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    upstream.serve(move |request| match request.head.line.contains("/next") {
        true => answer("next"),
        false => response.as_bytes().to_vec(),
    });
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
    TestGateway::start(patch(model, &changes))
}

#[test]
fn a_status_that_a_filter_sets_decides_whether_there_is_a_body() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for (config, response, status, body, length) in [
        (json!({"status": 204}), OK, 204, "", None),
        (json!({"status": 304}), OK, 304, "", None),
        (json!({"status": 204, "replace": "abc"}), OK, 204, "", None),
        (
            json!({"status": 200}),
            "HTTP/1.1 204 No Content\r\n\r\n",
            200,
            "",
            Some("0"),
        ),
        (
            json!({"status": 200, "replace": "abc"}),
            "HTTP/1.1 204 No Content\r\n\r\n",
            200,
            "abc",
            Some("3"),
        ),
        (
            json!({"status": 200}),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
            200,
            "",
            Some("0"),
        ),
    ] {
        let gateway = gateway(&config, response);
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let message = client.response().unwrap();
        assert_eq!(message.status(), status, "{config}");
        assert_eq!(String::from_utf8_lossy(&message.body), body, "{config}");
        assert_eq!(message.head.get("content-length").as_deref(), length, "{config}");
    }
}

#[test]
fn framing_that_a_filter_sets_reaches_neither_side() {
    let set = json!([
        ["Content-Length", "3"],
        ["Transfer-Encoding", "chunked"],
        ["Connection", "X-Own"],
        ["Upgrade", "h2c"]
    ]);
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    let seen = upstream.serve(|_| answer("hello"));
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": {"set": set}}}]}});
    let gateway = TestGateway::start(patch(model, &changes));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n0123456789");
    let message = client.response().unwrap();
    assert_eq!(String::from_utf8_lossy(&message.body), "hello");
    let request = seen.lock().unwrap().remove(0);
    assert_eq!(String::from_utf8_lossy(&request.body), "0123456789");
    for (head, length) in [(&request.head, "10"), (&message.head, "5")] {
        assert_eq!(head.all("content-length"), [length]);
        for name in ["transfer-encoding", "connection", "upgrade"] {
            assert_eq!(head.get(name), None, "{name}");
        }
    }
}

#[test]
fn empty_lines_between_requests_begin_none() {
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    upstream.serve(|_| answer("hello"));
    let gateway = TestGateway::with(model, |options| {
        options.limits.header_timeout = std::time::Duration::from_millis(50);
        options.limits.idle_timeout = std::time::Duration::from_millis(200);
    });
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 200);
    // No answer to a request that nobody made: the connection just ends when it has been idle long enough.
    assert!(client.rest().0.is_empty());
}
