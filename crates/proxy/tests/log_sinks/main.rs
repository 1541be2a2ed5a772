//! Log entries through a whole gateway, to real sinks: those that take them, those that fail, and those that never read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod grpc;
mod kafka;
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

/// How clients connect.
const OVER_TLS: bool = false;

use serde_json::{Value, json};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{TIMEOUT, TestGateway, Upstream, Wire, answer, eventually, simple_model};

/// A gateway whose calls are answered by the plugin itself and logged to these targets.
fn gateway(logs: &[Value]) -> TestGateway {
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    let mut plugins: Vec<Value> = logs
        .iter()
        .map(|log| json!({"use": {"name": "puppet", "config": {"log": log}}}))
        .collect();
    plugins.push(json!({"use": {"name": "puppet", "config": {"reply": "ok"}}}));
    model["routes"][0]["plugins"] = Value::Array(plugins);
    TestGateway::start(model)
}

fn call(client: &mut Wire, path: &str) {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(client.response().unwrap().status(), 200);
}

/// A file of this test.
fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weir-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// The value of a series.
fn count(gateway: &TestGateway, series: &str) -> u64 {
    let text = gateway.exposition();
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

fn entries(gateway: &TestGateway, target: &str, result: &str) -> u64 {
    let series = format!("weir_log_entries_total{{target=\"{target}\",result=\"{result}\"}}");
    count(gateway, &series)
}

#[test]
fn files_get_every_entry_even_at_the_end() {
    let path = file("log");
    let gateway = gateway(&[json!({"file": path, "max_entries": 100, "delay_ms": 60_000})]);
    let mut client = gateway.connect();
    for number in 0..50 {
        call(&mut client, &format!("/{number}"));
    }
    drop(client);
    drop(gateway);
    let text = std::fs::read_to_string(&path).unwrap();
    let expected: Vec<String> = (0..50).map(|number| format!("/{number} 200 true;")).collect();
    assert_eq!(text, format!("[{}]", expected.join(",")));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn http_servers_get_batches_and_are_tried_again() {
    let sink = Upstream::bind();
    let gateway = gateway(&[json!({"http": sink.address.port(), "max_entries": 3, "delay_ms": 60_000})]);
    let mut client = gateway.connect();
    for path in ["/1", "/2", "/3"] {
        call(&mut client, path);
    }
    let expected = "[/1 200 true;,/2 200 true;,/3 200 true;]";
    let mut server = sink.accept();
    for refusal in [true, false] {
        let request = server.request().unwrap();
        assert_eq!(String::from_utf8(request.body).unwrap(), expected);
        server.send(match refusal {
            true => b"HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n".to_vec(),
            false => answer("taken"),
        });
    }
    eventually("taken entries", || entries(&gateway, "http", "sent") == 3);
    assert_eq!(count(&gateway, "weir_log_retries_total{target=\"http\"}"), 1);
    // The connection is kept.
    for path in ["/4", "/5", "/6"] {
        call(&mut client, path);
    }
    assert!(server.request().unwrap().body.starts_with(b"[/4"));
    server.send(answer("taken"));
    eventually("taken entries", || entries(&gateway, "http", "sent") == 6);
    assert_eq!(entries(&gateway, "http", "dropped"), 0);
}

#[test]
fn tokens_are_fetched_before_entries_are_sent() {
    let (tokens, sink) = (Upstream::bind(), Upstream::bind());
    let log = json!({"http": sink.address.port(), "token": tokens.address.port(), "retries": 5});
    let gateway = gateway(&[log]);
    call(&mut gateway.connect(), "/1");
    // Twice no token, and then one when the entry is sent again.
    for token in ["no", "no", "t1"] {
        let mut server = tokens.accept();
        let request = server.request().unwrap();
        assert_eq!(
            (request.head.line.as_str(), request.body),
            ("POST /token HTTP/1.1", b"please".to_vec())
        );
        server.send(answer(token));
    }
    let mut server = sink.accept();
    let request = server.request().unwrap();
    assert_eq!(request.head.get("Authorization").as_deref(), Some("Bearer t1"));
    server.send(answer("taken"));
    eventually("a taken entry", || entries(&gateway, "http", "sent") == 1);
    assert_eq!(entries(&gateway, "http", "dropped"), 0);
}

#[test]
fn what_is_refused_for_good_is_dropped() {
    let sink = Upstream::bind();
    let gateway = gateway(&[json!({"http": sink.address.port(), "retries": 1})]);
    call(&mut gateway.connect(), "/1");
    let mut server = sink.accept();
    for _ in 0..2 {
        server.request().unwrap();
        server.send(b"HTTP/1.1 400 no\r\nContent-Length: 0\r\n\r\n");
    }
    eventually("a dropped entry", || entries(&gateway, "http", "dropped") == 1);
    assert_eq!(entries(&gateway, "http", "sent"), 0);
}

#[test]
fn streams_and_datagrams() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = file("socket");
    let local = UnixDatagram::bind(&path).unwrap();
    let gateway = gateway(&[
        json!({"tcp": tcp.local_addr().unwrap().port()}),
        json!({"udp": udp.local_addr().unwrap().port()}),
        json!({"local": path, "max_entries": 10}),
    ]);
    udp.set_read_timeout(Some(TIMEOUT)).unwrap();
    local.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut client = gateway.connect();
    call(&mut client, "/1");
    call(&mut client, "/2");
    let expected = ["/1 200 true;", "/2 200 true;"];
    let (mut stream, _) = tcp.accept().unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut bytes = vec![0; expected.concat().len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, expected.concat().as_bytes());
    for entry in expected {
        let mut spaces = [[0; 100]; 2];
        let lengths = [
            udp.recv(&mut spaces[0]).unwrap(),
            local.recv(&mut spaces[1]).unwrap(),
        ];
        for (space, length) in spaces.iter().zip(lengths) {
            assert_eq!(&space[..length], entry.as_bytes());
        }
    }
    // A server that has gone and come back gets what comes then.
    drop(stream);
    eventually("another connection", || {
        call(&mut gateway.connect(), "/3");
        tcp.set_nonblocking(true).unwrap();
        tcp.accept().is_ok()
    });
    std::fs::remove_file(path).unwrap();
}

#[test]
fn sinks_that_never_read_cost_no_call_anything() {
    let (deaf_tcp, deaf_http, deaf_grpc) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let path = file("beside");
    let big = 256 * 1024;
    let gateway = gateway(&[
        json!({"tcp": port(&deaf_tcp), "size": big, "timeout_ms": 60_000}),
        json!({"http": port(&deaf_http), "size": big, "timeout_ms": 60_000}),
        json!({"grpc": port(&deaf_grpc), "size": big, "timeout_ms": 60_000}),
        json!({"file": path}),
    ]);
    let mut client = gateway.connect();
    let calls = 400;
    let mut slowest = Duration::ZERO;
    for number in 0..calls {
        let began = Instant::now();
        call(&mut client, &format!("/{number}"));
        slowest = slowest.max(began.elapsed());
    }
    // 100 MB for each of them, of which 1 MB may wait, and some is in the kernel's buffers.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    for target in ["tcp", "http", "grpc"] {
        eventually("dropped entries", || entries(&gateway, target, "dropped") > 300);
    }
    eventually("the file's entries", || {
        entries(&gateway, "file", "sent") == calls && entries(&gateway, "file", "dropped") == 0
    });
    // It ends although no one reads.
    drop(client);
    let began = Instant::now();
    drop(gateway);
    assert!(began.elapsed() < TIMEOUT);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(';').count() as u64, calls);
    std::fs::remove_file(path).unwrap();
}
