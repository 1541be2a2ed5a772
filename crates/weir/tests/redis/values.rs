//! Values of nodes in a Redis: real gateways share them, and go on without it if a node says so.

use crate::support::{Gateway, Redis, Upstream, is_installed, send, until};
use serde_json::json;
use std::sync::atomic::Ordering;

/// `datakit` of Kong's paid edition, which asks `asked` for a value that is not there, and then answers with 201.
fn document(asked: &Upstream, port: u16) -> String {
    let nodes = |bypasses: bool| {
        json!([
            {"name": "KEY", "type": "jq", "jq": ".q", "input": "request.query"},
            {"name": "GET", "type": "cache", "inputs": {"key": "KEY"}, "bypass_on_error": bypasses},
            {"name": "BRANCH", "type": "branch", "then": ["DATA", "SET", "MISS"], "else": ["HIT"], "input": "GET.miss"},
            {"name": "DATA", "type": "call", "url": format!("http://{}/", asked.address)},
            {"name": "SET", "type": "cache", "inputs": {"key": "KEY", "data": "DATA"}, "ttl": 60, "bypass_on_error": bypasses},
            {"name": "MISS", "type": "exit", "status": 201},
            {"name": "HIT", "type": "exit", "status": 200, "inputs": {"body": "GET.data"}},
        ])
    };
    let redis = json!({"host": "127.0.0.1", "port": port, "timeout": 300});
    let route = |path: &str, bypasses: bool| {
        let config =
            json!({"nodes": nodes(bypasses), "resources": {"cache": {"strategy": "redis", "redis": redis}}});
        json!({"name": path, "paths": [format!("/{path}")], "plugins": [
            {"id": format!("7b5f2a4c-0000-4000-8000-00000000000{}", u8::from(bypasses)), "name": "datakit", "config": config},
        ]})
    };
    let routes = [route("strict", false), route("lenient", true)];
    json!({"_format_version": "3.0", "services": [{"name": "s", "url": "http://127.0.0.1:1", "routes": routes}]}).to_string()
}

#[test]
fn gateways_share_values_and_go_on_without_the_redis_if_they_may() {
    if !is_installed() {
        return;
    }
    let mut redis = Redis::start(&[]);
    let asked = Upstream::start("");
    let document = document(&asked, redis.port);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    for (gateway, path, status, calls) in [
        (0, "/strict?q=1", 201, 1),
        (0, "/strict?q=1", 200, 1),
        (1, "/strict?q=1", 200, 1),
        (1, "/strict?q=2", 201, 2),
        // Each instance has its own.
        (1, "/lenient?q=1", 201, 3),
        (0, "/lenient?q=1", 200, 3),
    ] {
        let (found, answer) = send(&gateways[gateway].address, "GET", path, "");
        assert_eq!(found, status, "{path}: {answer}");
        assert_eq!(asked.calls.load(Ordering::SeqCst), calls, "{path}");
    }
    redis.kill();
    let status = |path: &str| send(&gateways[0].address, "GET", path, "").0;
    until("the Redis is away", || status("/strict?q=1") == 500);
    assert_eq!(status("/lenient?q=1"), 201);
}
