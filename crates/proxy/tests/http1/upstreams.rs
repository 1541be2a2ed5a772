//! Tries, targets and time-outs, as far as it matters how requests are written, or that clients have several connections.

use crate::support::{TestGateway, Upstream, Wire, answer, balanced, dead, patch, simple_model, text};
use serde_json::json;
use std::net::SocketAddr;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";

fn status_of(gateway: &TestGateway, request: &str) -> (u16, String) {
    let mut client = gateway.connect();
    client.send(request);
    let answer = client.response().unwrap();
    (answer.status(), text(&answer.body))
}

#[test]
fn a_body_that_came_with_its_head_can_be_sent_again() {
    const PUT: &str = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    const CHUNKED: &str =
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (request, tries) in [(PUT, 3), (CHUNKED, 1)] {
        let upstream = Upstream::bind();
        let changes = json!({"services": {"retries": 2, "retry_non_idempotent": true}});
        let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
        let mut client = gateway.connect();
        client.send(request);
        for _ in 0..tries {
            assert_eq!(
                text(&upstream.accept().request().unwrap().body),
                "abc",
                "{request}"
            );
        }
        assert_eq!(client.response().unwrap().status(), 502, "{request}");
        assert!(upstream.is_untouched(), "{request}: more than {tries} tries");
    }
    // On a new connection in place of one that was not as good as it seemed, too.
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(patch(
        simple_model(upstream.address),
        &json!({"services": {"retries": 0}}),
    ));
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(answer("first"));
    client.response().unwrap();
    client.send(PUT);
    server.request().unwrap();
    drop(server);
    let mut server = upstream.accept();
    assert_eq!(text(&server.request().unwrap().body), "abc");
    server.send(answer("second"));
    assert_eq!(text(&client.response().unwrap().body), "second");
}

#[test]
fn an_upstream_that_does_not_read_is_given_up_in_time() {
    let upstream = Upstream::bind();
    let changes = json!({"services": {"retries": 0, "timeouts": {"write_ms": 100, "read_ms": 100}}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
    let mut sender = client.sender();
    let sending = std::thread::spawn(move || while sender.try_send(vec![b'x'; 64 * 1024]).is_ok() {});
    let _server = upstream.accept();
    assert_eq!(client.response().unwrap().status(), 504);
    drop(client.rest());
    client.reset();
    sending.join().unwrap();
}

#[test]
fn no_timeout_is_too_long() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let forever = json!({"connect_ms": u64::MAX, "read_ms": u64::MAX, "write_ms": u64::MAX});
    let keepalive = json!({"idle_timeout_ms": u64::MAX});
    let changes = json!({"services": {"timeouts": forever}, "upstreams": {"keepalive": keepalive}});
    let gateway = TestGateway::with(balanced(&[(address, 1)], &changes), |options| {
        let limits = &mut options.limits;
        let bounds = [
            &mut limits.header_timeout,
            &mut limits.idle_timeout,
            &mut limits.body_timeout,
            &mut limits.write_timeout,
        ];
        bounds
            .into_iter()
            .for_each(|bound| *bound = std::time::Duration::MAX);
    });
    for request in [GET, POST, GET] {
        assert_eq!(status_of(&gateway, request), (200, "ok".to_owned()));
    }
}

#[test]
fn the_least_busy_target_is_chosen() {
    let servers: Vec<Upstream> = (0..2).map(|_| Upstream::bind()).collect();
    let targets: Vec<(SocketAddr, u32)> = servers.iter().map(|server| (server.address, 1)).collect();
    let gateway = TestGateway::start(balanced(
        &targets,
        &json!({"upstreams": {"algorithm": "least-connections"}}),
    ));
    // Two calls wait, one at each; when one is answered, the next goes there.
    let mut calls: Vec<(Wire, Wire)> = Vec::new();
    let start = || {
        let mut client = gateway.connect();
        client.send(GET);
        client
    };
    let first = start();
    let (mut at, mut server) = Upstream::first_of(&servers);
    server.request().unwrap();
    calls.push((first, server));
    for _ in 0..5 {
        let client = start();
        let other = 1 - at;
        let mut server = servers[other].accept();
        server.request().unwrap();
        calls.push((client, server));
        let (mut client, mut server) = calls.remove(0);
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        client.response().unwrap();
        at = other;
    }
}

#[test]
fn names_are_resolved() {
    let upstream = Upstream::bind();
    let port = upstream.address.port();
    let seen = upstream.serve(|_| answer("ok"));
    let model = patch(
        simple_model(dead()),
        &json!({"services": {"url": format!("http://localhost:{port}")}}),
    );
    let gateway = TestGateway::start(model);
    for _ in 0..3 {
        assert_eq!(status_of(&gateway, GET), (200, "ok".to_owned()));
    }
    assert_eq!(
        seen.lock().unwrap()[0].head.get("Host"),
        Some(format!("localhost:{port}"))
    );
}

/// A gateway that hashes a cookie, which it gives to clients without one.
fn sticky(upstream: SocketAddr) -> TestGateway {
    let cookie = json!({"name": "sticky", "set_for_path": "/", "attributes": "Same-Site=Lax; HttpOnly"});
    let changes = json!({"upstreams": {"algorithm": "consistent-hashing", "hash_on": [{"cookie": cookie}]}, "services": {"retries": 0}});
    TestGateway::start(balanced(&[(upstream, 1)], &changes))
}

#[test]
fn sticky_cookie_takes_the_place_of_one_of_its_name() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| {
        "HTTP/1.1 200 OK\r\nSet-Cookie: sticky=theirs\r\nSet-Cookie: sticky2=b\r\nContent-Length: 0\r\n\r\n".into()
    });
    let gateway = sticky(address);
    let mut client = gateway.connect();
    client.send(GET);
    let answer = client.response().unwrap();
    let cookies = answer.head.all("Set-Cookie");
    let given: Vec<&String> = cookies.iter().filter(|it| it.starts_with("sticky=")).collect();
    let [given] = given[..] else {
        panic!("{cookies:?}");
    };
    let (value, attributes) = given["sticky=".len()..].split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Same-Site=Lax; HttpOnly");
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{value}");
    assert!(cookies.iter().any(|it| it == "sticky2=b"), "{cookies:?}");
    // A client that has it gets none, and the upstream's stays.
    client.send(format!(
        "GET / HTTP/1.1\r\nHost: h\r\nCookie: sticky={value}\r\n\r\n"
    ));
    let answer = client.response().unwrap();
    assert_eq!(answer.head.all("Set-Cookie"), ["sticky=theirs", "sticky2=b"]);
}

#[test]
fn sticky_cookie_is_given_only_if_there_was_a_target() {
    let gateway = sticky(dead());
    let mut client = gateway.connect();
    client.send(GET);
    let answer = client.response().unwrap();
    assert_eq!((answer.status(), answer.head.all("Set-Cookie").len()), (502, 1));
    let cookie = json!({"name": "sticky", "set_for_path": "/"});
    let changes = json!({"upstreams": {"algorithm": "consistent-hashing", "hash_on": [{"cookie": cookie}]}});
    let gateway = TestGateway::start(balanced(&[], &changes));
    let mut client = gateway.connect();
    client.send(GET);
    let answer = client.response().unwrap();
    assert_eq!((answer.status(), answer.head.all("Set-Cookie").len()), (503, 0));
}
