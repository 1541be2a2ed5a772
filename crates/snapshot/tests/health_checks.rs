//! Health checks of upstreams: what is refused, and what outlives a reload.

mod common;

use common::{errors, model};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_flow::health::Signal;
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot, TargetHealth, compile};

fn with_checks(checks: Value) -> Value {
    let target = json!({"host": "127.0.0.1", "port": 80});
    json!({"upstreams": [{"name": "u", "targets": [target], "checks": checks}]})
}

#[test]
fn what_cannot_be_checked_is_refused_with_its_place() {
    for (checks, place) in [
        (json!({"min_healthy_percent": 101}), "min_healthy_percent"),
        (json!({"active": {"path": "alive"}}), "active.path"),
        (json!({"active": {"path": "/a b"}}), "active.path"),
        (json!({"active": {"path": "/a?b c"}}), "active.path"),
        (json!({"active": {"method": "GET /"}}), "active.method"),
        (json!({"active": {"host": "a b"}}), "active.host"),
        (json!({"active": {"port": 0}}), "active.port"),
        (json!({"active": {"headers": [["a b", "c"]]}}), "active.headers"),
        (
            json!({"active": {"headers": [["a", "b\r\nc"]]}}),
            "active.headers",
        ),
        (json!({"active": {"timeout_ms": 0}}), "active.timeout_ms"),
        (json!({"active": {"concurrency": 0}}), "active.concurrency"),
        (json!({"active": {"concurrency": 1001}}), "active.concurrency"),
        (
            json!({"active": {"healthy": {"interval_ms": u64::MAX}}}),
            "active.healthy.interval_ms",
        ),
        (
            json!({"active": {"unhealthy": {"statuses": [500, 42]}}}),
            "active.unhealthy.statuses[1]",
        ),
        (
            json!({"passive": {"healthy": {"statuses": [1000]}}}),
            "passive.healthy.statuses[0]",
        ),
        (
            json!({"active": {"type": "https", "tls": {"server_name": "a b"}}}),
            "active.tls.server_name",
        ),
        (json!({"shared_with": "u"}), "shared_with"),
        (json!({"shared_with": "v"}), "shared_with"),
    ] {
        let found = errors(with_checks(checks.clone()));
        let wanted = format!("upstreams[0].checks.{place}: ");
        assert_eq!(found.len(), 1, "{checks}: {found:?}");
        assert!(found[0].starts_with(&wanted), "{checks}: {found:?}");
    }
    let budget = json!({"upstreams": [{"name": "u", "targets": [], "retry_budget": {"percent": 101}}]});
    assert!(errors(budget)[0].starts_with("upstreams[0].retry_budget.percent: "));
}

fn snapshot(text: Value, persistent: &PersistentState) -> Snapshot {
    match compile(&model(text), &Registry::default(), persistent) {
        Ok((snapshot, _)) => snapshot,
        Err(found) => panic!("{found:?}"),
    }
}

fn health(snapshot: &Snapshot, upstream: usize) -> Option<Arc<TargetHealth>> {
    snapshot.upstreams[upstream].targets[0].health.clone()
}

#[test]
fn health_outlives_reloads_with_its_checks() {
    let persistent = PersistentState::default();
    let checked = with_checks(json!({"passive": {}}));
    let first = snapshot(checked.clone(), &persistent);
    let known = health(&first, 0).expect("checked");
    let rules = first.upstreams[0].checks.as_ref().expect("checked").call_rules;
    let address = known.addresses()[0].address;
    for _ in 0..2 {
        known.observe(address, Signal::TcpFailure, &rules);
    }
    assert!(!known.is_usable());
    let changed = snapshot(with_checks(json!({"active": {}})), &persistent);
    assert!(Arc::ptr_eq(&known, &health(&changed, 0).expect("checked")));
    let unchecked = json!({"upstreams": [{"name": "u", "targets": [{"host": "127.0.0.1", "port": 80}]}]});
    let without = snapshot(unchecked, &persistent);
    assert!(health(&without, 0).is_none());
    drop((first, changed, known));
    let again = snapshot(checked, &persistent);
    assert!(
        health(&again, 0).expect("checked").is_usable(),
        "all is forgotten"
    );
}

#[test]
fn health_may_be_shared_by_upstreams() {
    let target = json!({"host": "127.0.0.1", "port": 80});
    let text = json!({"upstreams": [
        {"name": "u", "targets": [target], "checks": {"passive": {}}},
        {"name": "v", "targets": [target], "checks": {"passive": {}, "shared_with": "u"}},
        {"name": "w", "targets": [target], "checks": {"passive": {}}},
    ]});
    let snapshot = snapshot(text, &PersistentState::default());
    let [u, v, w] = [0, 1, 2].map(|index| health(&snapshot, index).expect("checked"));
    assert!(Arc::ptr_eq(&u, &v) && !Arc::ptr_eq(&u, &w));
}
