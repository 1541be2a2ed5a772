//! Hedged calls.

use super::support::{TestGateway, Upstream, Wire, answer, balanced, dead, eventually};
use super::{GET, status_and_body};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

fn hedged(targets: &[SocketAddr], hedge: Value) -> TestGateway {
    let targets: Vec<_> = targets.iter().map(|address| (*address, 1)).collect();
    let changes = json!({"upstreams": {"hedge": hedge}, "services": {"retries": 0}});
    TestGateway::start(balanced(&targets, &changes))
}

/// A client's call, the server that has it, and the server that has its copy.
fn copied(gateway: &TestGateway, servers: &[Upstream]) -> (Wire, Wire, Wire) {
    let mut client = gateway.connect();
    client.send(GET);
    let (at, mut first) = Upstream::first_of(servers);
    first.request().unwrap();
    let mut second = servers[1 - at].accept();
    second.request().unwrap();
    (client, first, second)
}

#[test]
fn the_first_answer_counts() {
    for copy_wins in [true, false] {
        let servers: Vec<Upstream> = (0..2).map(|_| Upstream::bind()).collect();
        let targets: Vec<SocketAddr> = servers.iter().map(|it| it.address).collect();
        let gateway = hedged(&targets, json!({"after_ms": 20, "percent": 100}));
        let (mut client, mut first, mut second) = copied(&gateway, &servers);
        let (winner, loser) = match copy_wins {
            true => (&mut second, &mut first),
            false => (&mut first, &mut second),
        };
        winner.send(answer("winner"));
        assert_eq!(client.response().unwrap().body, b"winner");
        assert!(loser.request().is_err(), "the other connection is closed");
        // The winner's connection is kept for the next call.
        let totals = gateway.totals();
        assert_eq!(totals.upstream_hedges, 1);
        assert_eq!(totals.upstream_hedges_won, u64::from(copy_wins));
        assert_eq!(totals.upstream_retries, 0);
        eventually("the loser is not counted as open", || {
            gateway.totals().upstream_connections_active == 1
        });
    }
}

#[test]
fn one_failure_of_two_is_none() {
    for copy_fails in [true, false] {
        let servers: Vec<Upstream> = (0..2).map(|_| Upstream::bind()).collect();
        let targets: Vec<SocketAddr> = servers.iter().map(|it| it.address).collect();
        let gateway = hedged(&targets, json!({"after_ms": 20, "percent": 100}));
        let (mut client, first, second) = copied(&gateway, &servers);
        let (failing, mut other) = match copy_fails {
            true => (second, first),
            false => (first, second),
        };
        failing.reset();
        other.send(answer("good"));
        assert_eq!(client.response().unwrap().body, b"good", "{copy_fails}");
    }
    // Nor is a second target that cannot be reached.
    let targets = [(slow(), 1), (dead(), 1)];
    let hedge = json!({"after_ms": 80, "percent": 100});
    let changes = json!({"upstreams": {"hedge": hedge}, "services": {"retries": 1}});
    let gateway = TestGateway::start(balanced(&targets, &changes));
    for _ in 0..4 {
        assert_eq!(status_and_body(&gateway, GET), (200, "slow".to_owned()));
    }
}

/// A server that answers much later than a copy is sent.
fn slow() -> SocketAddr {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| {
        std::thread::sleep(Duration::from_millis(400));
        answer("slow")
    });
    address
}

fn fast() -> SocketAddr {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("fast"));
    address
}

#[test]
fn copies_are_for_safe_calls_and_within_the_budget() {
    let targets = [slow(), fast()];
    let always = json!({"after_ms": 80, "percent": 100});
    // `(request, hedging, whether it is copied)`
    for (request, hedge, is_copied) in [
        (GET, always.clone(), true),
        ("DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", always.clone(), true),
        ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", always.clone(), false),
        (
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
            always.clone(),
            false,
        ),
        (GET, json!({"after_ms": 80, "percent": 1, "burst": 0}), false),
    ] {
        let gateway = hedged(&targets, hedge.clone());
        let answers: Vec<String> = (0..2).map(|_| status_and_body(&gateway, request).1).collect();
        let is_slow = answers.contains(&"slow".to_owned());
        assert_eq!(is_slow, !is_copied, "{request:?} {hedge}: {answers:?}");
        let copies = gateway.totals().upstream_hedges;
        assert_eq!(copies > 0, is_copied, "{request:?} {hedge}: {copies}");
    }
    // A single target has no other to send a copy to.
    assert_eq!(status_and_body(&hedged(&targets[..1], always), GET).1, "slow");
}

#[test]
fn the_delay_is_learned() {
    let hedge = json!({"percentile": 60, "percent": 100});
    let gateway = hedged(&[slow(), fast(), fast(), fast()], hedge);
    // Three quarters of the calls are fast: soon the slow ones take longer than most.
    for _ in 0..40 {
        status_and_body(&gateway, GET);
    }
    let totals = gateway.totals();
    assert!(totals.upstream_hedges_won > 2, "{totals:?}");
}
