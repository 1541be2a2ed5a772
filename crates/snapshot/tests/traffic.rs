//! What upstreams, services and routes say of traffic: what is refused, and what outlives a reload.

mod common;

use common::{errors, model};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot, compile};

fn upstream(changes: Value) -> Value {
    let mut upstream = json!({"name": "u", "targets": [
        {"host": "127.0.0.1", "port": 80, "zone": "a"},
        {"host": "127.0.0.1", "port": 81, "zone": "b"},
    ]});
    for (field, value) in changes.as_object().expect("an object") {
        upstream[field] = value.clone();
    }
    json!({"upstreams": [upstream]})
}

/// Refuses these changes of an upstream, each at its place and in these words.
fn refuses(cases: Vec<(Value, &str, &str)>) {
    for (changes, place, words) in cases {
        let found = errors(upstream(changes.clone()));
        assert_eq!(found.len(), 1, "{changes}: {found:?}");
        let wanted = format!("upstreams[0].{place}: ");
        assert!(found[0].starts_with(&wanted), "{changes}: {found:?}");
        assert!(found[0].contains(words), "{changes}: {found:?}");
    }
}

#[test]
fn balancing_that_cannot_be_served_is_refused_with_its_place() {
    let no_zones = json!([{"host": "127.0.0.1", "port": 80}]);
    refuses(vec![
        (
            json!({"slow_start": {"min_percent": 0}}),
            "slow_start.min_percent",
            "1 to 100, found 0",
        ),
        (
            json!({"slow_start": {"aggression": 0.0}}),
            "slow_start.aggression",
            "0.01 to 100, found 0",
        ),
        (
            json!({"slow_start": {}, "algorithm": "consistent-hashing", "hash_on": ["ip"]}),
            "slow_start",
            "remove one of them",
        ),
        (
            json!({"zones": {}, "targets": no_zones}),
            "zones",
            "no target has a 'zone'",
        ),
        (
            json!({"zones": {"shares": {"c": 1}}}),
            "zones.shares.c",
            "no target is in the zone 'c'",
        ),
        (
            json!({"zones": {"shares": {"a": 2_000_000}}}),
            "zones.shares.a",
            "up to 1000000",
        ),
        (
            json!({"sticky": {"cookie": "a b"}}),
            "sticky.cookie",
            "the name of a cookie",
        ),
        (json!({"sticky": {"path": "/;"}}), "sticky.path", "without ';'"),
        (
            json!({"sticky": {"attributes": "a\r\nb"}}),
            "sticky.attributes",
            "attributes of a cookie",
        ),
    ]);
}

#[test]
fn limits_that_cannot_be_served_are_refused_with_their_place() {
    refuses(vec![
        (json!({"hedge": {}, "scheme": "h2c"}), "hedge", "found one of h2c"),
        (
            json!({"hedge": {}, "sticky": {}}),
            "hedge",
            "cannot be combined with 'sticky'",
        ),
        (
            json!({"hedge": {"percentile": 20}}),
            "hedge.percentile",
            "from 50 to 99, found 20",
        ),
        (
            json!({"hedge": {"percent": 0}}),
            "hedge.percent",
            "from 1 to 100, found 0",
        ),
        (
            json!({"adaptive_concurrency": {"min": 0}}),
            "adaptive_concurrency.min",
            "at least 1",
        ),
        (
            json!({"adaptive_concurrency": {"min": 9, "max": 8}}),
            "adaptive_concurrency.max",
            "at least the min of 9, found 8",
        ),
        (
            json!({"adaptive_concurrency": {"tolerance_percent": 100}}),
            "adaptive_concurrency.tolerance_percent",
            "from 101 to 1000",
        ),
        (
            json!({"adaptive_concurrency": {"window_ms": 1}}),
            "adaptive_concurrency.window_ms",
            "10 to 60000",
        ),
        (
            json!({"adaptive_concurrency": {"probe_ms": 1}}),
            "adaptive_concurrency.probe_ms",
            "at least 1000",
        ),
        (
            json!({"adaptive_concurrency": {}, "scheme": "tcp"}),
            "adaptive_concurrency",
            "found one of tcp",
        ),
    ]);
    let statuses =
        json!({"services": [{"name": "s", "url": "http://127.0.0.1", "retry_statuses": [503, 200]}]});
    assert_eq!(
        errors(statuses),
        ["services[0].retry_statuses[1]: expected a status from 400 to 599, found 200"]
    );
}

fn snapshot(changes: Value, persistent: &PersistentState) -> Snapshot {
    match compile(&model(upstream(changes)), &Registry::default(), persistent) {
        Ok((snapshot, _)) => snapshot,
        Err(found) => panic!("{found:?}"),
    }
}

#[test]
fn limits_and_sticky_targets_outlive_a_reload() {
    let persistent = PersistentState::default();
    let of = |snapshot: &Snapshot| Arc::clone(&snapshot.upstreams[0]);
    let hedged = |persistent| of(&snapshot(json!({"hedge": {}}), persistent));
    let (before, after) = (hedged(&persistent), hedged(&persistent));
    let hedges = [&before, &after].map(|it| {
        let traffic = it.traffic.as_ref().expect("traffic");
        Arc::as_ptr(&traffic.hedge.as_ref().expect("hedging").state)
    });
    assert_eq!(hedges[0], hedges[1]);
    let all = json!({"adaptive_concurrency": {}, "sticky": {"max_age_s": 60}});
    let before = snapshot(all.clone(), &persistent);
    let mut changed = all;
    changed["targets"] = json!([
        {"host": "127.0.0.1", "port": 90},
        {"host": "127.0.0.1", "port": 81, "weight": 0},
    ]);
    let after = snapshot(changed, &persistent);
    let (before, after) = (of(&before), of(&after));
    let (before, after) = (
        before.traffic.as_ref().expect("traffic"),
        after.traffic.as_ref().expect("traffic"),
    );
    let limits = [before, after].map(|it| Arc::as_ptr(&it.overload.as_ref().expect("a limit").limit));
    assert_eq!(limits[0], limits[1]);
    let (before, after) = (
        before.sticky.as_ref().expect("sticky"),
        after.sticky.as_ref().expect("sticky"),
    );
    assert_eq!(
        before.values[1], after.values[1],
        "the target has the value that it had"
    );
    assert_eq!(after.target(&before.values[0]), None, "that target is gone");
    assert_eq!(after.target(&before.values[1]), Some(1));
    assert_eq!(before.attributes, b"; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    let plain = snapshot(json!({}), &persistent);
    assert!(
        plain.upstreams[0].traffic.is_none(),
        "without any of it nothing is there"
    );
}
