//! Adaptive concurrency: calls above the limit are refused, those of low priority first, and the limit follows the
//! upstream.

use super::support::{TestGateway, Upstream, Wire, answer, balanced, eventually};
use super::{GET, status_and_body};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

fn model(upstream: &Upstream, limit: Value) -> Value {
    let mut model = balanced(
        &[(upstream.address, 1)],
        &json!({"upstreams": {"adaptive_concurrency": limit}, "services": {"retries": 0}}),
    );
    let route = |priority: &str| {
        json!({
            "name": priority,
            "match": [{"path": format!("/{priority}")}],
            "to": {"service": "service"},
            "priority": priority,
        })
    };
    let routes = model["routes"].as_array_mut().unwrap();
    routes.extend(["critical", "high", "low"].map(route));
    model
}

fn get(priority: &str) -> String {
    format!("GET /{priority} HTTP/1.1\r\nHost: h\r\n\r\n")
}

#[test]
fn calls_above_the_limit_are_refused_by_priority() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(model(&upstream, json!({"initial": 10, "min": 10, "max": 10})));
    let refused = (503, "overloaded".to_owned());
    let mut open: Vec<(Wire, Wire)> = Vec::new();
    // `(calls in flight, priorities that are refused then)`
    for (in_flight, shed) in [
        (4, &[][..]),
        (5, &["low"][..]),
        (8, &["low", ""][..]),
        (9, &["low", "", "high"][..]),
        (10, &["low", "", "high", "critical"][..]),
    ] {
        while open.len() < in_flight {
            let mut client = gateway.connect();
            client.send(get("critical"));
            let mut server = upstream.accept();
            server.request().unwrap();
            open.push((client, server));
        }
        for priority in shed {
            assert_eq!(
                status_and_body(&gateway, &get(priority)),
                refused,
                "{in_flight}: {priority}"
            );
        }
    }
    assert!(upstream.is_untouched());
    let limit = "weir_upstream_concurrency_limit{upstream=\"upstream\"} 10\n";
    let text = gateway.exposition();
    assert!(text.contains(limit), "{text}");
    assert!(
        text.contains("weir_upstream_concurrency{upstream=\"upstream\"} 10\n"),
        "{text}"
    );
    assert!(
        text.contains("weir_refusals_total{reason=\"unavailable\"} 10\n"),
        "{text}"
    );
    // A client that goes, and an answer, each make room.
    let (client, _server) = open.pop().unwrap();
    drop(client);
    let (mut client, mut server) = open.pop().unwrap();
    server.send(answer("done"));
    client.response().unwrap();
    eventually("there is room for two calls", || {
        gateway
            .exposition()
            .contains("weir_upstream_concurrency{upstream=\"upstream\"} 8\n")
    });
    let mut client = gateway.connect();
    client.send(get("critical"));
    // The connection that has carried the answer takes it.
    server.request().unwrap();
}

fn limit(gateway: &TestGateway) -> u64 {
    let text = gateway.exposition();
    let name = "weir_upstream_concurrency_limit{upstream=\"upstream\"} ";
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.parse().unwrap()
}

#[test]
fn the_limit_follows_a_real_upstream() {
    let upstream = Upstream::bind();
    let rules = json!({"initial": 4, "min": 2, "max": 64, "window_ms": 20, "probe_ms": 600_000});
    let gateway = Arc::new(TestGateway::start(model(&upstream, rules)));
    let delay_ms = Arc::new(AtomicU64::new(2));
    let delay = Arc::clone(&delay_ms);
    upstream.serve(move |_| {
        std::thread::sleep(Duration::from_millis(delay.load(Relaxed)));
        answer("ok")
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let (is_over, mut client) = (Arc::clone(&is_over), gateway.connect());
            std::thread::spawn(move || {
                while !is_over.load(Relaxed) {
                    client.send(GET);
                    client.response().unwrap();
                }
            })
        })
        .collect();
    eventually("the limit grows while the upstream is fast", || {
        limit(&gateway) >= 12
    });
    delay_ms.store(60, Relaxed);
    eventually("the limit shrinks once it is slow", || limit(&gateway) <= 6);
    delay_ms.store(2, Relaxed);
    eventually("the limit recovers", || limit(&gateway) >= 10);
    is_over.store(true, Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
}
