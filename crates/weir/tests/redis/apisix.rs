//! APISIX's policies `redis-cluster` and `redis-sentinel`: gateways that share them let as many calls pass as one
//! would.

use crate::dialects::apisix;
use crate::support::{CLOSED_PORT, Gateway, Redis, Upstream, is_installed, passed, until};
use crate::topologies::{cluster, sentinel};

/// Whether as many calls pass through two gateways as there may.
fn shares(upstream: &Upstream, plugin: &str, expected: usize) {
    let document = apisix(upstream, plugin);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    let gateways: Vec<&Gateway> = gateways.iter().collect();
    let got = passed(&gateways, 48, "/");
    assert_eq!(got, expected, "{plugin}: {}", gateways[0].log());
}

/// Whether calls that are being answered count in both gateways, and no more when they have been answered.
fn shares_places(upstream: &Upstream, plugin: &str) {
    let document = apisix(upstream, plugin);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    let before = upstream.calls.load(std::sync::atomic::Ordering::SeqCst);
    upstream.hold(true);
    std::thread::scope(|scope| {
        let held: Vec<_> = (gateways.iter())
            .map(|gateway| scope.spawn(|| gateway.call("/")))
            .collect();
        until("both calls are in", || {
            upstream.calls.load(std::sync::atomic::Ordering::SeqCst) == before + 2
        });
        for gateway in &gateways {
            assert_eq!(gateway.call("/"), 503, "{plugin}: {}", gateway.log());
        }
        upstream.hold(false);
        for held in held {
            assert_eq!(held.join().expect("a call"), 200, "{plugin}");
        }
    });
    until("the places are free again", || gateways[0].call("/") == 200);
}

#[test]
fn limits_are_shared_in_a_cluster() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let nodes = cluster();
    let at = format!(
        "policy: redis-cluster, redis_cluster_name: c, redis_cluster_nodes: ['127.0.0.1:{}', '127.0.0.1:{}']",
        CLOSED_PORT, nodes[1].port
    );
    for (plugin, expected) in [
        (format!("limit-count: {{count: 11, time_window: 600, {at}}}"), 11),
        (
            format!("limit-count: {{count: 14, time_window: 86400, window_type: sliding, {at}}}"),
            14,
        ),
        (
            format!("limit-count: {{rules: [{{count: 13, time_window: 600, key: $remote_addr}}], {at}}}"),
            13,
        ),
        (
            format!("limit-req: {{rate: 0.001, burst: 8, nodelay: true, key: remote_addr, {at}}}"),
            9,
        ),
    ] {
        shares(&upstream, &plugin, expected);
    }
    let held = format!("limit-conn: {{conn: 2, burst: 0, default_conn_delay: 1, key: remote_addr, {at}}}");
    shares_places(&upstream, &held);
    let used = nodes.iter().any(|node| !node.ask("DBSIZE").starts_with(":0"));
    assert!(used, "they counted in the cluster");
}

#[test]
fn limits_are_shared_behind_a_sentinel() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let master = Redis::start(&[]);
    let replica = Redis::start(&["--replicaof", &format!("127.0.0.1 {}", master.port)]);
    until("the replica follows", || {
        replica.ask("ROLE").contains("connected")
    });
    let sentinel = sentinel(master.port, &replica);
    let at = format!(
        "policy: redis-sentinel, redis_master_name: weir, redis_database: 1, redis_sentinels: [{{host: 127.0.0.1, port: {}}}]",
        sentinel.port
    );
    for (plugin, expected) in [
        (format!("limit-count: {{count: 11, time_window: 600, {at}}}"), 11),
        (
            format!("limit-count: {{count: 14, time_window: 86400, window_type: sliding, {at}}}"),
            14,
        ),
    ] {
        shares(&upstream, &plugin, expected);
    }
    assert!(
        master.ask("INFO keyspace").contains("db1:keys="),
        "they counted in the master"
    );
    // A master of another name does not exist.
    let other = format!(
        "limit-count: {{count: 11, time_window: 600, {}}}",
        at.replace("weir", "other")
    );
    let gateway = Gateway::start(&apisix(&upstream, &other));
    assert_eq!(gateway.call("/"), 500, "{}", gateway.log());
}
