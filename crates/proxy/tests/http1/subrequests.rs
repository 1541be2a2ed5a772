//! What filters ask other servers before a call goes on.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CALL: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway whose filter asks `asked`; its upstream answers with what the filter has got.
fn gateway(asked: &Upstream) -> (TestGateway, Arc<Mutex<Vec<String>>>) {
    gateway_with(json!({"ask": asked.address.port()}))
}

fn gateway_with(config: Value) -> (TestGateway, Arc<Mutex<Vec<String>>>) {
    let upstream = Upstream::bind();
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": config}}]}});
    let model = patch(simple_model(upstream.address), &changes);
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&lines);
    upstream.serve(move |request| {
        let words = request.head.get("x-answer").unwrap_or_default();
        record.lock().unwrap().push(words.clone());
        answer(words)
    });
    (TestGateway::start(model), lines)
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
fn subrequests_to_a_silent_server_end_soon() {
    let asked = Upstream::bind();
    let (gateway, lines) = gateway(&asked);
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
    assert_eq!(*lines.lock().unwrap(), ["200 ok", "none"]);
}

#[test]
fn calls_of_clients_that_go_are_not_forwarded() {
    let asked = Upstream::bind();
    let (gateway, lines) = gateway(&asked);
    let mut gone = gateway.connect();
    gone.send(CALL);
    let mut server = asked.accept();
    server.request().unwrap();
    gone.reset();
    // The question ends with its call.
    server.expect_end();
    assert!(lines.lock().unwrap().is_empty());
}

#[test]
fn questions_go_through_a_proxy() {
    let proxy = Upstream::bind();
    let (gateway, _) = gateway_with(json!({"ask": 81, "ask_proxy": proxy.address.port()}));
    let mut client = gateway.connect();
    client.send(CALL);
    let mut server = proxy.accept();
    for _ in 0..2 {
        let request = server.request().unwrap();
        assert_eq!(request.head.line, "GET http://127.0.0.1:81/question HTTP/1.1");
        assert_eq!(
            request.head.get("proxy-authorization").as_deref(),
            Some("Basic eA==")
        );
        server.send(answer("ok"));
        assert_eq!(client.response().unwrap().body, b"200 ok");
        client.send(CALL);
    }
}

/// The server of conversations: the line that it reads next.
fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

#[test]
fn conversations_share_connections_that_are_clean() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (gateway, _) = gateway_with(json!({"talk": server.local_addr().unwrap().port()}));
    let mut client = gateway.connect();
    let accept = || BufReader::new(server.accept().unwrap().0);
    let say = |stream: &mut BufReader<TcpStream>, bytes: &[u8]| stream.get_mut().write_all(bytes).unwrap();

    client.send(CALL);
    let mut stream = accept();
    assert_eq!(line(&mut stream), "new\n");
    say(&mut stream, b"o");
    say(&mut stream, b"ne\n");
    assert_eq!(client.response().unwrap().body, b"one");
    client.send(CALL);
    assert_eq!(line(&mut stream), "again\n");
    say(&mut stream, b"bye\n");
    assert_eq!(client.response().unwrap().body, b"bye");
    // The last words, and the end.
    assert_eq!(
        (line(&mut stream), line(&mut stream)),
        ("bye\n".to_owned(), String::new())
    );

    // More than was asked for makes a connection useless.
    client.send(CALL);
    let mut stream = accept();
    assert_eq!(line(&mut stream), "new\n");
    say(&mut stream, b"two\nthree\n");
    assert_eq!(client.response().unwrap().body, b"two");
    // A connection that the server has closed is replaced.
    client.send(CALL);
    let mut stream = accept();
    assert_eq!(line(&mut stream), "new\n");
    say(&mut stream, b"four\n");
    assert_eq!(client.response().unwrap().body, b"four");
    client.send(CALL);
    assert_eq!(line(&mut stream), "again\n");
    drop(stream);
    let mut stream = accept();
    assert_eq!(line(&mut stream), "new\n");
    say(&mut stream, b"fail\n");
    assert_eq!(client.response().unwrap().body, b"none");
    // A silent server holds the call for half a second.
    client.send(CALL);
    let _silent = accept();
    assert_eq!(client.response().unwrap().body, b"none");
}
