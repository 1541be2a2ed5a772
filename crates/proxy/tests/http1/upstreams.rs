//! Tries and targets: calls are tried again only where that is safe, shared as configured, and their
//! failures told apart.

use crate::support::{TestGateway, Upstream, Wire, answer, patch, simple_model, text};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";

/// A service whose upstream has these targets.
fn balanced(targets: &[(SocketAddr, u32)], changes: &Value) -> Value {
    let targets: Vec<Value> = targets
        .iter()
        .map(|(address, weight)| json!({"host": address.ip().to_string(), "port": address.port(), "weight": weight}))
        .collect();
    let model = json!({
        "upstreams": [{"name": "upstream", "targets": targets}],
        "services": [{"name": "service", "upstream": "upstream"}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    });
    patch(model, changes)
}

/// An address on which nobody listens: the kernel gives such a port to no other test.
fn dead() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 1).into()
}

fn status_of(gateway: &TestGateway, request: &str) -> (u16, String) {
    let mut client = gateway.connect();
    client.send(request);
    let answer = client.response().unwrap();
    (answer.status(), text(&answer.body))
}

#[test]
fn tries_are_bounded_and_only_made_where_safe() {
    let large = format!(
        "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    // `(request, retries, also methods that are not idempotent, tries)`; the upstream closes without an answer.
    for (request, retries, any_method, tries) in [
        (GET, 0, false, 1),
        (GET, 2, false, 3),
        ("OPTIONS / HTTP/1.1\r\nHost: h\r\n\r\n", 1, false, 2),
        (
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
            2,
            false,
            3,
        ),
        (POST, 2, false, 1),
        (POST, 2, true, 3),
        ("PATCH / HTTP/1.1\r\nHost: h\r\n\r\n", 2, false, 1),
        // What was passed on as it came cannot be sent again.
        (&large, 2, true, 1),
        (
            "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            2,
            true,
            1,
        ),
    ] {
        let upstream = Upstream::bind();
        let changes = json!({"services": {"retries": retries, "retry_non_idempotent": any_method}});
        let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
        let mut client = gateway.connect();
        client.send(request);
        for _ in 0..tries {
            let mut server = upstream.accept();
            server.request().unwrap();
        }
        let line = &request[..request.find('\r').unwrap()];
        assert_eq!(client.response().unwrap().status(), 502, "{line}");
        assert!(upstream.is_untouched(), "{line}: more than {tries} tries");
    }
}

#[test]
fn an_answer_is_never_tried_again() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy".to_vec());
    let gateway = TestGateway::start(patch(simple_model(address), &json!({"services": {"retries": 5}})));
    assert_eq!(status_of(&gateway, GET), (503, "busy".to_owned()));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn a_target_that_refuses_is_passed_over() {
    let (first, second) = (Upstream::bind(), dead());
    let address = first.address;
    let seen = first.serve(|_| answer("ok"));
    let gateway = TestGateway::start(balanced(
        &[(address, 1), (second, 1)],
        &json!({"services": {"retries": 1}}),
    ));
    for _ in 0..10 {
        // A POST too: it has not been sent anywhere.
        assert_eq!(status_of(&gateway, POST).0, 200);
    }
    assert_eq!(seen.lock().unwrap().len(), 10);
    let gateway = TestGateway::start(balanced(
        &[(address, 1), (second, 1)],
        &json!({"services": {"retries": 0}}),
    ));
    let statuses: Vec<u16> = (0..10).map(|_| status_of(&gateway, GET).0).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 502).count(),
        5,
        "{statuses:?}"
    );
}

#[test]
fn failures_are_told_apart() {
    let silent = Upstream::bind();
    let full = full_listener();
    let short = json!({"connect_ms": 100, "read_ms": 100, "write_ms": 100});
    let service = |changes: Value| patch(json!({"services": {"retries": 0, "timeouts": short}}), &changes);
    for (what, model, status, says) in [
        (
            "nobody listens",
            patch(simple_model(dead()), &service(json!({}))),
            502,
            "connect_failed",
        ),
        (
            "no answer",
            patch(simple_model(silent.address), &service(json!({}))),
            504,
            "upstream_timeout",
        ),
        (
            "no connection",
            patch(simple_model(full.address), &service(json!({}))),
            504,
            "upstream_timeout",
        ),
        (
            "no weight",
            balanced(&[(silent.address, 0)], &service(json!({}))),
            503,
            "no_target",
        ),
        (
            "no such name",
            patch(
                simple_model(dead()),
                &service(json!({"services": {"url": "http://nothing.invalid:80"}})),
            ),
            503,
            "name_resolution",
        ),
    ] {
        let gateway = TestGateway::start(model);
        assert_eq!(status_of(&gateway, GET), (status, says.to_owned()), "{what}");
        // The client's connection is not to blame.
        let mut client = gateway.connect();
        for _ in 0..2 {
            client.send(POST);
            assert_eq!(client.response().unwrap().status(), status, "{what}");
        }
    }
}

/// A listener whose queue is full, so that further connections are not even refused.
struct Full {
    address: SocketAddr,
    _listener: socket2::Socket,
    _queued: Vec<socket2::Socket>,
}

fn full_listener() -> Full {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener
        .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
        .unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    loop {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let connected = socket.connect_timeout(&address.into(), std::time::Duration::from_millis(50));
        queued.push(socket);
        if connected.is_err() {
            return Full {
                address,
                _listener: listener,
                _queued: queued,
            };
        }
    }
}

#[test]
fn a_response_that_stalls_is_cut_off() {
    let upstream = Upstream::bind();
    let changes = json!({"services": {"retries": 0, "timeouts": {"read_ms": 100}}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    for begun in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        "HTTP/1.1 200 OK\r\n\r\nab",
    ] {
        let mut client = gateway.connect();
        client.send(GET);
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send(begun);
        assert!(client.response().is_err(), "{begun:?}");
        server.rest();
    }
    // Half a head is no answer yet.
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send("HTTP/1.1 200 OK\r\nA: b");
    assert_eq!(client.response().unwrap().status(), 504);
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
fn a_slow_upload_is_no_upstream_timeout() {
    let upstream = Upstream::bind();
    let changes = json!({"services": {"retries": 0, "timeouts": {"read_ms": 150}}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na");
    let mut server = upstream.accept();
    server.head().unwrap();
    // Longer than the upstream may take once it has all.
    client.expect_silence(std::time::Duration::from_millis(300));
    client.send("bc");
    assert_eq!(server.read(3), Ok(b"abc".to_vec()));
    server.send(answer("ok"));
    assert_eq!(client.response().unwrap().status(), 200);
}

#[test]
fn calls_are_shared_by_weight() {
    let servers: Vec<Upstream> = (0..3).map(|_| Upstream::bind()).collect();
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    for (name, server) in ["a", "b", "c"].into_iter().zip(servers) {
        server.serve(move |_| answer(name));
    }
    let targets = [(addresses[0], 3), (addresses[1], 1), (addresses[2], 0)];
    let gateway = TestGateway::start(balanced(&targets, &json!({})));
    let mut client = gateway.connect();
    let mut counts: HashMap<String, u32> = HashMap::new();
    for _ in 0..40 {
        client.send(GET);
        *counts.entry(text(&client.response().unwrap().body)).or_default() += 1;
    }
    assert_eq!((counts["a"], counts["b"], counts.get("c")), (30, 10, None));
    // The same value of a hashed header goes to the same target.
    let changes =
        json!({"upstreams": {"algorithm": "consistent-hashing", "hash_on": [{"header": "X-User"}]}});
    let targets = [(addresses[0], 1), (addresses[1], 1), (addresses[2], 1)];
    let gateway = TestGateway::start(balanced(&targets, &changes));
    let mut chosen: HashMap<u32, String> = HashMap::new();
    for call in 0..90 {
        let user = call % 30;
        let mut client = gateway.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: h\r\nX-User: {user}\r\n\r\n"));
        let target = text(&client.response().unwrap().body);
        assert_eq!(chosen.entry(user).or_insert_with(|| target.clone()), &target);
    }
    let used: std::collections::HashSet<&String> = chosen.values().collect();
    assert_eq!(used.len(), 3);
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
