//! What calls show: targets are ejected, and come back; and how many further tries there may be.

use crate::server::Server;
use crate::support::{TestGateway, eventually};
use crate::{call, kinds, model, status_of};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_proxy::health::{HealthSelector, SetHealthError, Status};

#[test]
fn a_failing_target_is_ejected_and_comes_back_in_time() {
    let (good, bad) = (Server::start("good"), Server::start("bad"));
    let checks = json!({"passive": {
        "unhealthy": {"statuses": [500], "http_failures": 2},
        "ejection_ms": 300,
    }});
    let gateway = TestGateway::start(model(&[&good, &bad], json!({"checks": checks})));
    assert_eq!(kinds(&gateway, 10).len(), 2, "both are called");
    bad.set_status(500);
    let failures = (0..10).filter(|_| call(&gateway, "GET").0 == 500).count();
    assert_eq!(failures, 2, "two failures are enough");
    assert_eq!(status_of(&gateway), [Status::Healthy, Status::Unhealthy]);
    bad.set_status(200);
    eventually("the target gets calls again", || {
        kinds(&gateway, 10).iter().any(|(_, name)| name == "bad")
    });
    assert_eq!(status_of(&gateway), [Status::Healthy, Status::Healthy]);
}

#[test]
fn states_outlive_reloads_and_end_with_their_checks() {
    let (good, bad) = (Server::start("good"), Server::start("bad"));
    let checked = model(
        &[&good, &bad],
        json!({"checks": {"passive": {"unhealthy": {"http_failures": 1}}}}),
    );
    let gateway = TestGateway::start(checked.clone());
    bad.set_status(503);
    while call(&gateway, "GET").0 != 503 {}
    gateway.publish(checked.clone());
    bad.set_status(200);
    assert_eq!(status_of(&gateway), [Status::Healthy, Status::Unhealthy]);
    assert_eq!(kinds(&gateway, 10), [(200, "good".to_owned())]);
    gateway.publish(model(&[&good, &bad], json!({})));
    assert_eq!(status_of(&gateway), [Status::ChecksOff; 2]);
    assert_eq!(kinds(&gateway, 10).len(), 2, "without checks all are called");
}

#[test]
fn without_a_healthy_target_calls_are_refused_or_shared() {
    for (when_none_healthy, expected) in [("refuse", (503, "no_target")), ("use-all", (500, "only"))] {
        let only = Server::start("only");
        let checks = json!({
            "passive": {"unhealthy": {"http_failures": 1}},
            "when_none_healthy": when_none_healthy,
        });
        let gateway = TestGateway::start(model(&[&only], json!({"checks": checks})));
        only.set_status(500);
        assert_eq!(call(&gateway, "GET"), (500, "only".to_owned()));
        for _ in 0..3 {
            let (status, body) = call(&gateway, "GET");
            assert_eq!((status, body.as_str()), expected, "{when_none_healthy}");
        }
    }
}

#[test]
fn too_little_healthy_weight_is_none() {
    // `(percent of the weight that must be healthy, whether one of three may be out)`
    for (percent, is_served) in [(0, true), (60, true), (67, false), (100, false)] {
        let servers = [Server::start("a"), Server::start("b"), Server::start("c")];
        let checks = json!({
            "passive": {"unhealthy": {"http_failures": 1}},
            "min_healthy_percent": percent,
        });
        let targets = [&servers[0], &servers[1], &servers[2]];
        let gateway = TestGateway::start(model(&targets, json!({"checks": checks})));
        assert!(kinds(&gateway, 6).iter().all(|(status, _)| *status == 200));
        servers[1].set_status(500);
        while call(&gateway, "GET").0 == 200 {}
        let served = kinds(&gateway, 6);
        match is_served {
            true => assert_eq!(
                served,
                [(200, "a".to_owned()), (200, "c".to_owned())],
                "{percent}"
            ),
            false => assert_eq!(served, [(503, "no_target".to_owned())], "{percent}"),
        }
    }
}

#[test]
fn the_death_of_a_target_loses_no_call() {
    let (good, mut mortal) = (Server::start("good"), Server::start("mortal"));
    let checks = json!({"passive": {"unhealthy": {"tcp_failures": 1}, "ejection_ms": 50}});
    let gateway = TestGateway::with(model(&[&good, &mortal], json!({"checks": checks})), |options| {
        options.workers = 2;
    });
    let is_over = AtomicBool::new(false);
    let answers = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = gateway.connect();
                    let mut answers = Vec::new();
                    while !is_over.load(Ordering::SeqCst) {
                        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
                        answers.push(client.response().unwrap().status());
                    }
                    answers
                })
            })
            .collect();
        for _ in 0..5 {
            let before = gateway.totals().upstream_retries;
            mortal.kill();
            // It fails, and again each time that its ejection is over.
            eventually("the target is tried again", || {
                gateway.totals().upstream_retries >= before + 6
            });
            mortal.restart();
            eventually("the target is called again", || {
                !mortal.take_requests().is_empty()
            });
        }
        is_over.store(true, Ordering::SeqCst);
        clients
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert!(answers.len() > 100, "{}", answers.len());
    assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
}

#[test]
fn a_target_is_put_out_and_in_by_hand() {
    let (first, second) = (Server::start("first"), Server::start("second"));
    let third = Server::start("third");
    let checks = json!({"passive": {"unhealthy": {"http_failures": 1}, "ejection_ms": 1}});
    let gateway = TestGateway::start(model(&[&first, &second, &third], json!({"checks": checks})));
    let host = first.address.ip().to_string();
    let which = HealthSelector {
        upstream: "upstream",
        host: &host,
        port: first.address.port(),
        address: None,
    };
    gateway.gateway().set_health(&which, false).unwrap();
    let others = [(200, "second".to_owned()), (200, "third".to_owned())];
    assert_eq!(kinds(&gateway, 10), others);
    // A target that fails after it is back in time, and it is not.
    third.set_status(500);
    eventually("it fails", || call(&gateway, "GET").0 == 500);
    third.set_status(200);
    eventually("the one that failed is back", || kinds(&gateway, 10) == others);
    assert_eq!(
        status_of(&gateway),
        [Status::Unhealthy, Status::Healthy, Status::Healthy]
    );
    gateway.gateway().set_health(&which, true).unwrap();
    assert_eq!(kinds(&gateway, 10).len(), 3);
    for (which, error) in [
        (
            HealthSelector {
                upstream: "other",
                ..which
            },
            SetHealthError::NoUpstream,
        ),
        (HealthSelector { port: 1, ..which }, SetHealthError::NoTarget),
        (
            HealthSelector {
                host: "other",
                ..which
            },
            SetHealthError::NoTarget,
        ),
        (
            HealthSelector {
                address: Some(second.address),
                ..which
            },
            SetHealthError::NoTarget,
        ),
    ] {
        assert_eq!(gateway.gateway().set_health(&which, true), Err(error));
    }
    gateway.publish(model(&[&first, &second], json!({})));
    assert_eq!(
        gateway.gateway().set_health(&which, false),
        Err(SetHealthError::ChecksOff)
    );
}

#[test]
fn further_tries_keep_to_their_budget() {
    let (mut first, mut second) = (Server::start("first"), Server::start("second"));
    let budget = json!({"retry_budget": {"percent": 10, "burst": 2}});
    let gateway = TestGateway::start(model(&[&first, &second], budget));
    assert_eq!(call(&gateway, "GET").0, 200);
    let tries = || gateway.totals().upstream_retries;
    let before = tries();
    first.kill();
    second.kill();
    for _ in 0..50 {
        assert_eq!(call(&gateway, "GET").0, 502);
    }
    let further = tries() - before;
    assert!((5..=7).contains(&further), "{further}: 2 and a tenth of 50");
}
