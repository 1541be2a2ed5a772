//! Time-outs of clients, draining, bounds of connections, and configurations that change under load.

use super::client::{ALL, Client, Protocol};
use super::stand::{Stand, address};
use super::support::{TIMEOUT, Upstream, answer, eventually, simple_model};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Those whose connections carry many calls.
const MANY: [Protocol; 3] = [Protocol::Http2, Protocol::Http2Tls, Protocol::Http3];

#[test]
fn an_idle_connection_ends_and_a_call_may_take_longer() {
    let tiny = Duration::from_millis(100);
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.limits.idle_timeout = tiny;
            options.limits.body_timeout = tiny;
        });
        let client = stand.client(protocol);
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        // Nothing comes for several times as long.
        wire.expect_silence(tiny * 3);
        wire.send(answer("ok"));
        assert_eq!(call.head().unwrap().status, 200, "{protocol:?}");
        assert_eq!(call.rest().unwrap(), b"ok", "{protocol:?}");
        // Then no call keeps it.
        if MANY.contains(&protocol) {
            wait_for_no_connection(&stand, protocol);
            assert!(client.call("GET", "/", &[], b"").is_err(), "{protocol:?}");
        }
    }
}

fn wait_for_no_connection(stand: &Stand, protocol: Protocol) {
    let has_ended = || stand.gateway.totals().connections_active == 0;
    eventually(&format!("the connection ends: {protocol:?}"), has_ended);
}

#[test]
fn a_client_that_does_not_read_is_given_up_in_time() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.limits.write_timeout = Duration::from_millis(100);
        });
        let client = stand.client(protocol);
        let _call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
        // The upstream notices by the end of its connection.
        let start = Instant::now();
        let block = vec![b'x'; 64 * 1024];
        while wire.try_send(&block).is_ok() {}
        assert!(start.elapsed() < TIMEOUT, "{protocol:?}: it is not told");
    }
}

#[test]
fn connections_above_the_bound_are_not_served() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| options.limits.max_connections = 1);
        let first = stand.client(protocol);
        let call = first.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        let gateway = address(&stand.gateway, protocol);
        let second = std::thread::spawn(move || Client::new(protocol, gateway).call("GET", "/", &[], b""));
        // Either its handshake or its call fails.
        assert!(!matches!(second.join(), Ok(Ok(_))), "{protocol:?}");
        drop(call);
    }
}

#[test]
fn draining_has_an_end() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.drain_timeout = Duration::from_millis(100);
        });
        let client = stand.client(protocol);
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        stand.gateway.drain().join().unwrap();
        assert!(call.head().is_err(), "{protocol:?}");
        wire.rest();
    }
}

#[test]
fn what_was_sent_before_the_drain_is_answered() {
    for protocol in ALL {
        for _ in 0..3 {
            let Stand { gateway, upstream } =
                Stand::with(&Value::Null, |options| options.drain_timeout = TIMEOUT);
            let seen = upstream.serve(|_| answer("ok"));
            let client = Client::new(protocol, address(&gateway, protocol));
            let mut calls: Vec<_> = (0..20)
                .map(|_| client.begin("GET", "/", &[], false).unwrap())
                .collect();
            // On streams, what has not come by then is refused as not begun, and may be sent again.
            if MANY.contains(&protocol) {
                eventually("all have come", || seen.lock().unwrap().len() == 20);
            }
            let draining = gateway.drain();
            for call in &mut calls {
                assert_eq!(call.head().expect("an answer").status, 200, "{protocol:?}");
                assert_eq!(call.rest().unwrap(), b"ok", "{protocol:?}");
            }
            drop(calls);
            draining.join().unwrap();
        }
    }
}

#[test]
fn no_call_is_lost_while_configurations_change() {
    for protocol in ALL {
        let servers: Vec<Upstream> = (0..2).map(|_| Upstream::bind()).collect();
        let models: Vec<_> = servers
            .iter()
            .map(|server| simple_model(server.address))
            .collect();
        for (name, server) in ["a", "b"].into_iter().zip(servers) {
            server.serve(move |request| answer(format!("{name} {}", request.head.line)));
        }
        let stand = Stand::of(models[0].clone(), |options| options.workers = 2);
        let before = address(&stand.gateway, protocol);
        let (is_over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
        let seen = [AtomicBool::new(false), AtomicBool::new(false)];
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..2)
                .map(|caller| {
                    let (client, is_over, calls, seen) = (stand.client(protocol), &is_over, &calls, &seen);
                    scope.spawn(move || {
                        let mut call = 0;
                        while !is_over.load(Ordering::Relaxed) {
                            let response = client.get(&format!("/{caller}/{call}"));
                            let wanted = format!("GET /{caller}/{call} HTTP/1.1");
                            assert_eq!(
                                (response.head.status, &response.text()[2..]),
                                (200, wanted.as_str()),
                                "{protocol:?}"
                            );
                            seen[usize::from(response.text().starts_with('b'))]
                                .store(true, Ordering::Relaxed);
                            call += 1;
                            calls.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            for change in 1..=60 {
                stand.gateway.publish(models[change % 2].clone());
                // Each configuration serves some calls.
                let until = calls.load(Ordering::Relaxed) + 4;
                eventually("calls go on", || {
                    calls.load(Ordering::Relaxed) >= until
                        || callers.iter().any(|caller| caller.is_finished())
                });
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(seen.into_iter().all(AtomicBool::into_inner), "{protocol:?}");
        // The sockets and the connections were kept all along.
        assert_eq!(address(&stand.gateway, protocol), before);
        assert_eq!(stand.gateway.totals().connections_accepted, 2, "{protocol:?}");
    }
}
