//! Health checks of upstreams, with the defaults that APISIX fills in.

mod shared;

use serde_json::{Value, json};
use shared::model;

/// The checks of an upstream with these.
fn checks(text: &str) -> Value {
    let text = format!(
        "routes:\n- id: r\n  uri: /\n  upstream:\n    nodes: {{'127.0.0.1:1980': 1}}\n    checks: {text}\n"
    );
    let model = serde_json::to_value(model(&text)).expect("the text form");
    model["upstreams"][0]["checks"].clone()
}

#[test]
fn fields_have_their_places() {
    let full = checks(
        "{active: {type: https, timeout: 0.5, concurrency: 3, host: h.test, port: 8080, http_method: POST,
         http_path: /alive, http_req_body: ping, https_verify_certificate: false, req_headers: ['X-A: 1', 'X-B:b'],
         healthy: {interval: 4, http_statuses: [200], successes: 5},
         unhealthy: {interval: 6, http_statuses: [500], http_failures: 7, tcp_failures: 8, timeouts: 9}},
         passive: {healthy: {http_statuses: [201], successes: 1},
         unhealthy: {http_statuses: [501], http_failures: 2, tcp_failures: 3, timeouts: 0}}}",
    );
    assert_eq!(
        full,
        json!({
            "active": {
                "type": "https",
                "method": "POST",
                "path": "/alive",
                "host": "h.test",
                "port": 8080,
                "headers": [["X-A", "1"], ["X-B", "b"]],
                "body": "ping",
                "tls": {"verify": false},
                "timeout_ms": 500,
                "concurrency": 3,
                "healthy": {"interval_ms": 4000, "statuses": [200], "successes": 5},
                "unhealthy": {
                    "interval_ms": 6000, "statuses": [500], "http_failures": 7, "tcp_failures": 8, "timeouts": 9,
                },
            },
            "passive": {
                "healthy": {"statuses": [201], "successes": 1},
                "unhealthy": {"statuses": [501], "http_failures": 2, "tcp_failures": 3, "timeouts": 0},
            },
        })
    );
}

#[test]
fn what_is_not_written_is_as_in_the_original() {
    for (text, path, expected) in [
        ("{active: {}}", "/active/path", json!("/")),
        ("{active: {}}", "/active/timeout_ms", json!(1000)),
        ("{active: {}}", "/active/concurrency", json!(10)),
        ("{active: {}}", "/active/healthy/interval_ms", json!(0)),
        ("{active: {}}", "/active/unhealthy/interval_ms", json!(0)),
        ("{active: {}}", "/active/unhealthy/http_failures", json!(5)),
        (
            "{active: {healthy: {}}}",
            "/active/healthy/interval_ms",
            json!(1000),
        ),
        (
            "{active: {healthy: {}}}",
            "/active/healthy/statuses",
            json!([200, 302]),
        ),
        ("{active: {healthy: {}}}", "/active/healthy/successes", json!(2)),
        (
            "{active: {unhealthy: {}}}",
            "/active/unhealthy/timeouts",
            json!(3),
        ),
        (
            "{active: {}, passive: {}}",
            "/passive/unhealthy/timeouts",
            json!(7),
        ),
        (
            "{active: {}, passive: {}}",
            "/passive/healthy/successes",
            json!(5),
        ),
        (
            "{active: {}, passive: {unhealthy: {}}}",
            "/passive/unhealthy/statuses",
            json!([429, 500, 503]),
        ),
    ] {
        assert_eq!(checks(text).pointer(path), Some(&expected), "{text} {path}");
    }
}
