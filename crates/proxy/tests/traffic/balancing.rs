//! Slow start and zones.

use super::support::{TIMEOUT, TestGateway, Upstream, ZONE, answer, dead};
use super::{GET, status_and_body};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A model whose upstream has these targets, each in a zone.
fn model(targets: &[(SocketAddr, &str)], upstream: Value) -> Value {
    let targets: Vec<Value> = targets
        .iter()
        .map(
            |(address, zone)| json!({"host": address.ip().to_string(), "port": address.port(), "zone": zone}),
        )
        .collect();
    let mut model = json!({
        "upstreams": [{"name": "upstream", "targets": targets}],
        "services": [{"name": "service", "upstream": "upstream", "retries": 2}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    });
    for (field, value) in upstream.as_object().unwrap() {
        model["upstreams"][0][field] = value.clone();
    }
    model
}

fn server(name: &'static str) -> SocketAddr {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(move |_| answer(name));
    address
}

#[test]
fn a_target_that_joins_gets_few_calls_at_first() {
    const WINDOW: Duration = Duration::from_secs(3);
    let slow_start = json!({"slow_start": {"window_ms": WINDOW.as_millis() as u64, "min_percent": 5}});
    let (old, new) = (server("old"), server("new"));
    let gateway = TestGateway::start(model(&[(old, ZONE)], slow_start.clone()));
    let began = Instant::now();
    while began.elapsed() < WINDOW {
        assert_eq!(status_and_body(&gateway, GET), (200, "old".to_owned()));
    }
    gateway.publish(model(&[(old, ZONE), (new, ZONE)], slow_start));
    let joined = Instant::now();
    let (mut all, mut to_new) = (0, 0);
    while all < 40 && joined.elapsed() < WINDOW / 4 {
        all += 1;
        to_new += usize::from(status_and_body(&gateway, GET).1 == "new");
    }
    assert!(to_new * 3 < all, "{to_new} of the first {all} calls");
    // In the end both get the same.
    loop {
        let share = (0..20)
            .filter(|_| status_and_body(&gateway, GET).1 == "new")
            .count();
        if share == 10 && joined.elapsed() >= WINDOW {
            break;
        }
        assert!(joined.elapsed() < TIMEOUT, "{share} of 20 calls");
    }
}

#[test]
fn calls_stay_in_the_zone_of_the_gateway() {
    let (near, far) = (server("near"), server("far"));
    let zones = json!({"zones": {}});
    let gateway = TestGateway::start(model(&[(far, "there"), (near, ZONE)], zones.clone()));
    for _ in 0..20 {
        assert_eq!(status_and_body(&gateway, GET), (200, "near".to_owned()));
    }
    // A third of the targets for half of the calls: two thirds stay.
    gateway.publish(model(
        &[(far, "there"), (near, ZONE), (server("far"), "there")],
        zones.clone(),
    ));
    let stay = (0..300)
        .filter(|_| status_and_body(&gateway, GET).1 == "near")
        .count();
    assert!((150..250).contains(&stay), "{stay} of 300");
    // What cannot be reached here is reached there.
    gateway.publish(model(&[(far, "there"), (dead(), ZONE)], zones));
    for _ in 0..20 {
        assert_eq!(status_and_body(&gateway, GET), (200, "far".to_owned()));
    }
    // A gateway that is in none of the zones does not look at them.
    gateway.publish(model(&[(far, "x"), (near, "y")], json!({"zones": {}})));
    let near = (0..20)
        .filter(|_| status_and_body(&gateway, GET).1 == "near")
        .count();
    assert_eq!(near, 10);
}
