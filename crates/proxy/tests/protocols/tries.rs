//! Tries and targets, and upstreams that misbehave: what a client gets does not depend on the protocol it speaks.

use super::client::{ALL, read_response};
use super::stand::{Stand, over_all};
use super::support::{Upstream, answer, balanced, dead, patch, simple_model};
use serde_json::json;
use socket2::{Domain, Socket, Type};
use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

#[test]
fn tries_are_bounded_and_only_made_where_safe() {
    for protocol in ALL {
        // `(method, bytes of a body, whether its length is stated, retries, also other methods, tries)`; the upstream
        // closes without an answer.
        for (method, size, is_stated, retries, any_method, tries) in [
            ("GET", 0, false, 0, false, 1),
            ("GET", 0, false, 2, false, 3),
            ("OPTIONS", 0, false, 1, false, 2),
            ("DELETE", 0, false, 2, false, 3),
            ("POST", 3, true, 2, false, 1),
            ("POST", 0, false, 2, true, 3),
            ("PATCH", 0, false, 2, false, 1),
            // What was passed on as it came cannot be sent again.
            ("PUT", 300_000, true, 2, true, 1),
        ] {
            let changes = json!({"services": {"retries": retries, "retry_non_idempotent": any_method}});
            let stand = Stand::with(&changes, |_| ());
            let client = stand.client(protocol);
            let body = vec![b'x'; size];
            let length = size.to_string();
            let fields = [("content-length", length.as_str())];
            let fields = if is_stated { &fields[..] } else { &[] };
            std::thread::scope(|scope| {
                let calling = scope.spawn(|| client.call(method, "/", fields, &body));
                for _ in 0..tries {
                    let mut wire = stand.upstream.accept();
                    wire.request().unwrap();
                }
                let response = calling.join().unwrap().unwrap();
                assert_eq!(
                    response.head.status, 502,
                    "{protocol:?} {method} {size} {retries}"
                );
            });
            assert!(
                stand.upstream.is_untouched(),
                "{protocol:?} {method} {size}: more tries"
            );
        }
    }
}

#[test]
fn an_answer_is_never_tried_again() {
    for protocol in ALL {
        let stand = Stand::with(&json!({"services": {"retries": 5}}), |_| ());
        let client = stand.client(protocol);
        let seen = stand
            .upstream
            .serve(|_| b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy".to_vec());
        let response = client.get("/");
        assert_eq!(
            (response.head.status, response.text().as_str()),
            (503, "busy"),
            "{protocol:?}"
        );
        assert_eq!(seen.lock().unwrap().len(), 1, "{protocol:?}");
    }
}

#[test]
fn a_target_that_refuses_is_passed_over() {
    for protocol in ALL {
        let upstream = Upstream::bind();
        let targets = [(upstream.address, 1), (dead(), 1)];
        let model = balanced(&targets, &json!({"services": {"retries": 1}}));
        let seen = upstream.serve(|_| answer("ok"));
        let stand = Stand::of(model, |_| ());
        let client = stand.client(protocol);
        for _ in 0..10 {
            // A POST too: it has not been sent anywhere.
            assert_eq!(
                client.call("POST", "/", &[], b"abc").unwrap().head.status,
                200,
                "{protocol:?}"
            );
        }
        assert_eq!(seen.lock().unwrap().len(), 10, "{protocol:?}");
        stand
            .gateway
            .publish(balanced(&targets, &json!({"services": {"retries": 0}})));
        let statuses: Vec<u16> = (0..10).map(|_| client.get("/").head.status).collect();
        let refused = statuses.iter().filter(|status| **status == 502).count();
        assert_eq!(refused, 5, "{protocol:?} {statuses:?}");
    }
}

/// How an upstream ends a connection on which a call has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dying {
    Cleanly,
    Reset,
    With(&'static str),
}

#[test]
fn a_stale_connection_is_replaced_once_where_that_is_safe() {
    use Dying::{Cleanly, Reset, With};
    for protocol in ALL {
        for (method, body, dying, is_tried_again) in [
            ("GET", "", Cleanly, true),
            ("GET", "", Reset, true),
            ("DELETE", "", Cleanly, true),
            ("DELETE", "", Reset, true),
            ("POST", "abc", Cleanly, false),
            ("POST", "abc", Reset, false),
            ("PATCH", "", Cleanly, false),
            ("PATCH", "", Reset, false),
            // It did answer, a little.
            ("GET", "", With("HTTP/1.1 2"), false),
            ("GET", "", With("HTTP/1.1 103 Early Hints\r\n\r\n"), false),
        ] {
            let what = format!("{protocol:?} {method} {dying:?}");
            let stand = Stand::with(&json!({"services": {"retries": 0}}), |_| ());
            let client = &stand.client(protocol);
            let length = body.len().to_string();
            let stated = [("content-length", length.as_str())];
            let fields: &[(&str, &str)] = if body.is_empty() { &[] } else { &stated[..] };
            std::thread::scope(|scope| {
                let first = scope.spawn(|| client.get("/"));
                let mut wire = stand.upstream.accept();
                wire.request().unwrap();
                wire.send(answer("first"));
                assert_eq!(first.join().unwrap().text(), "first", "{what}");
                let second = scope.spawn(move || client.call(method, "/", fields, body.as_bytes()));
                wire.request().unwrap();
                match dying {
                    Cleanly => drop(wire),
                    Reset => wire.reset(),
                    With(words) => {
                        wire.send(words);
                        drop(wire);
                    }
                }
                if is_tried_again {
                    let mut wire = stand.upstream.accept();
                    let again = wire.request().unwrap();
                    assert!(again.head.line.starts_with(method), "{what}");
                    assert_eq!(again.body, body.as_bytes(), "{what}");
                    wire.send(answer("second"));
                }
                let response = second.join().unwrap().unwrap();
                let wanted = if is_tried_again { 200 } else { 502 };
                assert_eq!(response.head.status, wanted, "{what}");
            });
            assert!(stand.upstream.is_untouched(), "{what}: it was sent twice");
        }
    }
}

/// A listener whose queue is full, so that further connections are not even refused.
struct Full {
    address: SocketAddr,
    _listener: Socket,
    _queued: Vec<Socket>,
}

impl Full {
    fn new() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener
            .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
            .unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut queued = Vec::new();
        loop {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let connected = socket.connect_timeout(&address.into(), Duration::from_millis(50));
            queued.push(socket);
            if connected.is_err() {
                return Self {
                    address,
                    _listener: listener,
                    _queued: queued,
                };
            }
        }
    }
}

#[test]
fn failures_are_distinguished() {
    for protocol in ALL {
        let (silent, full) = (Upstream::bind(), Full::new());
        let service = json!({"services": {"retries": 0, "timeouts": {"connect_ms": 100, "read_ms": 100, "write_ms": 100}}});
        let elsewhere = patch(
            service.clone(),
            &json!({"services": {"url": "http://nothing.invalid:80"}}),
        );
        let simple = |address, changes| patch(simple_model(address), changes);
        #[rustfmt::skip]
        let failures = [
            ("no listener", simple(dead(), &service), 502, "connect_failed"),
            ("no answer", simple(silent.address, &service), 504, "upstream_timeout"),
            ("no connection", simple(full.address, &service), 504, "upstream_timeout"),
            ("no weight", balanced(&[(silent.address, 0)], &service), 503, "no_target"),
            ("no such name", simple(dead(), &elsewhere), 503, "name_resolution"),
        ];
        for (what, model, status, says) in failures {
            let stand = Stand::of(model, |_| ());
            let client = stand.client(protocol);
            // The client's connection is not to blame.
            for body in [&b""[..], b"abc"] {
                let response = client.call("POST", "/", &[], body).unwrap();
                assert_eq!(
                    (response.head.status, response.text().as_str()),
                    (status, says),
                    "{protocol:?} {what}"
                );
            }
        }
    }
}

#[test]
fn a_response_that_stalls_is_cut_off() {
    for protocol in ALL {
        let changes = json!({"services": {"retries": 0, "timeouts": {"read_ms": 100}}});
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        for (begun, status) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", None),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
                None,
            ),
            ("HTTP/1.1 200 OK\r\n\r\nab", None),
            // Half a head is no answer yet.
            ("HTTP/1.1 200 OK\r\nA: b", Some(504)),
        ] {
            let mut call = client.begin("GET", "/", &[], false).unwrap();
            let mut wire = stand.upstream.accept();
            wire.request().unwrap();
            wire.send(begun);
            let came = read_response(call.as_mut());
            assert_eq!(
                came.ok().map(|read_response| read_response.head.status),
                status,
                "{protocol:?} {begun:?}"
            );
            wire.rest();
        }
    }
}

#[test]
fn a_slow_upload_is_no_upstream_timeout() {
    const READ: Duration = Duration::from_millis(100);
    for protocol in ALL {
        let changes = json!({"services": {"retries": 0, "timeouts": {"read_ms": READ.as_millis() as u64}}});
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        let mut call = client
            .begin("POST", "/", &[("content-length", "3")], true)
            .unwrap();
        call.send(b"a").unwrap();
        let mut wire = stand.upstream.accept();
        wire.head().unwrap();
        assert_eq!(wire.read(1).unwrap(), b"a");
        // Longer than the upstream may take once it has all.
        wire.expect_silence(READ * 2);
        call.send(b"bc").unwrap();
        call.finish(&[]);
        assert_eq!(wire.read(2).unwrap(), b"bc", "{protocol:?}");
        wire.send(answer("ok"));
        assert_eq!(read_response(call.as_mut()).unwrap().text(), "ok", "{protocol:?}");
    }
}

#[test]
fn an_upstream_that_does_not_read_is_given_up_in_time() {
    for protocol in ALL.into_iter().filter(|protocol| !protocol.is_http1()) {
        let changes = json!({"services": {"retries": 0, "timeouts": {"write_ms": 100, "read_ms": 100}}});
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        let response = client.call(
            "POST",
            "/",
            &[("content-length", "50000000")],
            &vec![b'x'; 50_000_000],
        );
        assert_eq!(
            response.map(|response| response.head.status),
            Ok(504),
            "{protocol:?}"
        );
    }
}

#[test]
fn heads_of_upstreams_are_bounded() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        for fields in [
            format!("A: {}\r\n", "a".repeat(128 * 1024)),
            "A: b\r\n".repeat(129),
            "a".repeat(128 * 1024),
        ] {
            let mut call = client.begin("POST", "/", &[], false).unwrap();
            let mut wire = stand.upstream.accept();
            wire.request().unwrap();
            let _sent = wire.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n"));
            assert_eq!(
                read_response(call.as_mut()).unwrap().head.status,
                502,
                "{protocol:?} {}",
                &fields[..20]
            );
        }
    });
}

#[test]
fn endless_interim_responses_are_given_up() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let mut call = client.begin("POST", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        let _sent = wire.try_send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1000));
        let mut interim = 0;
        let last = loop {
            let head = call.next_head().unwrap();
            if head.status != 103 {
                break head;
            }
            interim += 1;
        };
        assert_eq!(last.status, 502, "{protocol:?}");
        assert!((1..100).contains(&interim), "{protocol:?} {interim}");
    });
}

#[test]
fn calls_are_shared_as_configured() {
    for protocol in ALL {
        let servers: Vec<Upstream> = (0..3).map(|_| Upstream::bind()).collect();
        let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
        for (name, server) in ["a", "b", "c"].into_iter().zip(servers) {
            server.serve(move |_| answer(name));
        }
        let targets = [(addresses[0], 3), (addresses[1], 1), (addresses[2], 0)];
        let stand = Stand::of(balanced(&targets, &json!({})), |_| ());
        let client = stand.client(protocol);
        let mut counts: HashMap<String, u32> = HashMap::new();
        for _ in 0..40 {
            *counts.entry(client.get("/").text()).or_default() += 1;
        }
        assert_eq!(
            (counts["a"], counts["b"], counts.get("c")),
            (30, 10, None),
            "{protocol:?}"
        );
        // The same value of a hashed header goes to the same target.
        let hashed =
            json!({"upstreams": {"algorithm": "consistent-hashing", "hash_on": [{"header": "X-User"}]}});
        let targets = addresses.iter().map(|address| (*address, 1)).collect::<Vec<_>>();
        let stand = Stand::of(balanced(&targets, &hashed), |_| ());
        let client = stand.client(protocol);
        let mut chosen: HashMap<u32, String> = HashMap::new();
        for call in 0..90 {
            let user = (call % 30).to_string();
            let response = client
                .call("GET", "/", &[("x-user", user.as_str())], b"")
                .unwrap();
            let target = response.text();
            assert_eq!(
                chosen.entry(call % 30).or_insert_with(|| target.clone()),
                &target,
                "{protocol:?}"
            );
        }
        let used: HashSet<&String> = chosen.values().collect();
        assert_eq!(used.len(), 3, "{protocol:?}");
    }
}
