//! What filters ask other servers before a call goes on.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CALL: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway whose filter asks `asked`; its upstream answers with what the filter was told.
fn gateway(asked: &Upstream) -> (TestGateway, Arc<Mutex<Vec<String>>>) {
    let upstream = Upstream::bind();
    let config = json!({"ask": asked.address.port()});
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
    let model = patch(simple_model(upstream.address), &changes);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&told);
    upstream.serve(move |request| {
        let words = request.head.get("x-answer").unwrap_or_default();
        record.lock().unwrap().push(words.clone());
        answer(words)
    });
    (TestGateway::start(model), told)
}

#[test]
fn answers_reach_the_filter() {
    for (raw, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok"),
        (
            "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nn\r\n1\r\no\r\n0\r\n\r\n",
            "403 no",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "204"),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nopen", "200 open"),
        (
            "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "200 ok",
        ),
        // More than the filter wants.
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789", "none"),
        // Broken off, and no answers at all.
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", "none"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "none",
        ),
        ("nonsense\r\n\r\n", "none"),
        ("", "none"),
    ] {
        let asked = Upstream::bind();
        let (gateway, _) = gateway(&asked);
        let mut client = gateway.connect();
        client.send(CALL);
        let mut server = asked.accept();
        assert_eq!(server.request().unwrap().head.line, "GET /question HTTP/1.1");
        server.send(raw);
        server.finish();
        let response = client.response().unwrap();
        assert_eq!(response.body, expected.as_bytes(), "{raw:?}");
    }
}

#[test]
fn connections_serve_many_questions() {
    let asked = Upstream::bind();
    let (gateway, _) = gateway(&asked);
    let mut client = gateway.connect();
    client.send(CALL);
    let mut server = asked.accept();
    for _ in 0..3 {
        server.request().unwrap();
        server.send(answer("ok"));
        assert_eq!(client.response().unwrap().body, b"200 ok");
        client.send(CALL);
    }
    // One that closes is replaced.
    server.request().unwrap();
    drop(server);
    let mut server = asked.accept();
    server.request().unwrap();
    server.send(answer("ok"));
    assert_eq!(client.response().unwrap().body, b"200 ok");
}

#[test]
fn a_silent_server_holds_nobody_for_long() {
    let asked = Upstream::bind();
    let (gateway, told) = gateway(&asked);
    let start = Instant::now();
    let (mut first, mut second) = (gateway.connect(), gateway.connect());
    first.send(CALL);
    let _silent = asked.accept();
    second.send(CALL);
    let mut server = asked.accept();
    server.request().unwrap();
    server.send(answer("ok"));
    assert_eq!(second.response().unwrap().body, b"200 ok");
    assert_eq!(first.response().unwrap().body, b"none");
    assert!(start.elapsed() >= Duration::from_millis(500));
    assert_eq!(*told.lock().unwrap(), ["200 ok", "none"]);
}

#[test]
fn calls_of_clients_that_go_are_not_forwarded() {
    let asked = Upstream::bind();
    let (gateway, told) = gateway(&asked);
    let mut gone = gateway.connect();
    gone.send(CALL);
    let mut server = asked.accept();
    server.request().unwrap();
    gone.reset();
    // The question ends with its call.
    server.expect_end();
    assert!(told.lock().unwrap().is_empty());
}
