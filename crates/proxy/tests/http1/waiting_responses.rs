//! Filters that wait before a response goes on.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::{Value, json};

const CALL: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn gateway(upstream: &Upstream, config: &Value) -> TestGateway {
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
    TestGateway::start(patch(simple_model(upstream.address), &changes))
}

#[test]
fn responses_wait_for_filters() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    for (what, response, status, waited, body) in [
        ("time", answer("abc"), 200, "waited", "abc"),
        ("time", chunked.into(), 200, "waited", "abc"),
        ("time", empty.into(), 204, "waited", ""),
        ("delay", answer("abc"), 200, "", "abc"),
        ("body", chunked.into(), 200, "abc", "abc"),
        ("body", empty.into(), 204, "", ""),
        // The response work runs on the answer that takes its place, and may wait once more.
        ("reply", answer("abc"), 299, "waited", "instead"),
        ("refuse", answer("abc"), 502, "waited", "upstream_failed"),
        // There is no server.
        ("ask", answer("abc"), 200, "none", "abc"),
        ("talk", answer("abc"), 200, "none", "abc"),
    ] {
        let upstream = Upstream::bind();
        let gateway = gateway(&upstream, &json!({"response_wait": [what, 1]}));
        let mut client = gateway.connect();
        client.send(CALL);
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send(&response);
        let message = client.response().unwrap();
        let line = &message.head.line;
        assert!(line.contains(&format!(" {status} ")), "{what} {line}");
        let header = message.head.get("x-waited").unwrap_or_default();
        assert_eq!(header, waited, "{what} {response:?}");
        let text = String::from_utf8_lossy(&message.body);
        assert!(
            text == body || status == 502 && text.contains(body),
            "{what} {text}"
        );
    }
}

/// What of a body comes behind a head without one would be the next answer to the client.
#[test]
fn a_status_without_a_body_that_is_set_late_has_none() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (config, response) in [
        (json!({"response_wait": ["empty", 0]}), answer("abc")),
        (json!({"response_wait": ["empty", 0]}), chunked.into()),
        (
            json!({"response_wait": ["empty", 0], "replace": "new"}),
            answer("abc"),
        ),
    ] {
        let upstream = Upstream::bind();
        let gateway = gateway(&upstream, &config);
        let mut client = gateway.connect();
        for _ in 0..2 {
            client.send(CALL);
            let mut server = upstream.accept();
            server.request().unwrap();
            server.send(&response);
            let message = client.response().unwrap();
            assert_eq!(message.head.line, "HTTP/1.1 204 No Content", "{config}");
            assert_eq!(message.head.get("content-length"), None, "{config}");
        }
    }
}

#[test]
fn others_are_asked_before_a_response_goes_on() {
    let (upstream, asked) = (Upstream::bind(), Upstream::bind());
    let gateway = gateway(
        &upstream,
        &json!({"response_wait": ["ask", asked.address.port()]}),
    );
    let mut client = gateway.connect();
    client.send(CALL);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(answer("abc"));
    let mut question = asked.accept();
    assert_eq!(question.request().unwrap().head.line, "GET /question HTTP/1.1");
    question.send(answer("ok"));
    let message = client.response().unwrap();
    assert_eq!(message.head.get("x-waited").as_deref(), Some("ok"));
    assert_eq!(message.body, b"abc");
    // A client that goes meanwhile ends the question.
    client.send(CALL);
    server.request().unwrap();
    server.send(answer("abc"));
    question.request().unwrap();
    client.reset();
    question.expect_end();
}

#[test]
fn answers_of_the_gateway_wait_too() {
    let upstream = Upstream::bind();
    let config = json!({"reply": "own", "response_wait": ["time", 0]});
    let gateway = gateway(&upstream, &config);
    let mut client = gateway.connect();
    client.send(CALL);
    let message = client.response().unwrap();
    assert_eq!(message.head.get("x-waited").as_deref(), Some("waited"));
    assert_eq!(message.body, b"own");
}

/// The client's side of the connection belongs to the body then.
#[test]
fn an_early_answer_waits_while_the_body_is_on_its_way() {
    let (upstream, asked) = (Upstream::bind(), Upstream::bind());
    let gateway = gateway(
        &upstream,
        &json!({"response_wait": ["ask", asked.address.port()]}),
    );
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n");
    client.send("x".repeat(1000));
    let mut server = upstream.accept();
    server.send(answer("early"));
    let mut question = asked.accept();
    question.request().unwrap();
    question.send(answer("ok"));
    let message = client.response().unwrap();
    assert_eq!(message.head.get("x-waited").as_deref(), Some("ok"));
    assert_eq!(message.body, b"early");
}
