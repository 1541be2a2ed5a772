//! Health checks of upstreams: what is switched on, and what becomes of it.

use serde_json::{Value, json};
use weir_kong::{Options, RouterFlavor, translate};
use weir_model::document::parse;

fn model(text: &str) -> Value {
    let document = parse(&format!("_format_version: \"3.0\"\n{text}")).expect("YAML");
    let options = Options {
        router: RouterFlavor::default(),
    };
    let (model, _) = translate(&document, &options).unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(model.validate(), Vec::new());
    serde_json::to_value(model).expect("the text form")
}

/// The checks of an upstream with these fields.
fn checks(fields: &str) -> Value {
    let text = format!("upstreams:\n- name: u.test\n{fields}");
    model(&text)["upstreams"][0]["checks"].clone()
}

#[test]
fn checks_are_on_when_something_is_probed_or_counted() {
    for (fields, is_on) in [
        ("", false),
        ("  healthchecks: {threshold: 50}", false),
        ("  healthchecks: {active: {unhealthy: {http_failures: 5}}}", false),
        ("  healthchecks: {passive: {healthy: {successes: 5}}}", false),
        ("  healthchecks: {active: {healthy: {interval: 1}}}", true),
        ("  healthchecks: {active: {unhealthy: {interval: 0.5}}}", true),
        ("  healthchecks: {passive: {unhealthy: {http_failures: 1}}}", true),
        ("  healthchecks: {passive: {unhealthy: {tcp_failures: 1}}}", true),
        ("  healthchecks: {passive: {unhealthy: {timeouts: 1}}}", true),
    ] {
        assert_eq!(!checks(fields).is_null(), is_on, "{fields}");
    }
}

#[test]
fn fields_have_their_places() {
    let full = checks(
        "  host_header: h.test
  healthchecks:
    threshold: 12.5
    active:
      type: https
      timeout: 0.25
      concurrency: 2147483648
      http_path: /alive
      https_sni: s.test
      https_verify_certificate: false
      headers: {X-A: ['1', '2'], X-B: [b]}
      healthy: {interval: 1.5, successes: 3, http_statuses: [200]}
      unhealthy: {interval: 2, http_statuses: [500], http_failures: 4, tcp_failures: 5, timeouts: 6}
    passive:
      healthy: {successes: 7, http_statuses: [201]}
      unhealthy: {http_statuses: [501], http_failures: 8, tcp_failures: 9, timeouts: 10}",
    );
    assert_eq!(
        full,
        json!({
            "active": {
                "type": "https",
                "method": "GET",
                "path": "/alive",
                "host": "h.test",
                "headers": [["X-A", "1"], ["X-A", "2"], ["X-B", "b"]],
                "tls": {"verify": false, "server_name": "s.test"},
                "timeout_ms": 250,
                "concurrency": 1000,
                "healthy": {"interval_ms": 1500, "statuses": [200], "successes": 3},
                "unhealthy": {
                    "interval_ms": 2000, "statuses": [500], "http_failures": 4, "tcp_failures": 5, "timeouts": 6,
                },
            },
            "passive": {
                "healthy": {"statuses": [201], "successes": 7},
                "unhealthy": {"statuses": [501], "http_failures": 8, "tcp_failures": 9, "timeouts": 10},
            },
            "min_healthy_percent": 13,
            "when_none_healthy": "refuse",
        })
    );
}

#[test]
fn kinds_and_times() {
    for (active, path, expected) in [
        ("type: tcp", "/active/type", json!("tcp")),
        ("type: grpc", "/active/type", json!("grpc")),
        ("type: grpcs", "/active/type", json!("grpcs")),
        ("type: http", "/active/type", json!("http")),
        ("timeout: 0", "/active/timeout_ms", json!(60_000)),
        ("timeout: 65535", "/active/timeout_ms", json!(65_535_000)),
    ] {
        let checks = checks(&format!(
            "  healthchecks: {{active: {{{active}, healthy: {{interval: 1}}}}}}"
        ));
        assert_eq!(checks.pointer(path), Some(&expected), "{active}");
        assert_eq!(checks.get("passive"), None);
    }
}

#[test]
fn an_upstream_over_tls_shares_its_health() {
    let model = model(
        "services:
- {name: a, host: u.test, protocol: http}
- {name: b, host: u.test, protocol: https, port: 443}
upstreams:
- name: u.test
  healthchecks: {passive: {unhealthy: {http_failures: 1}}}",
    );
    let upstreams = model["upstreams"].as_array().expect("a list");
    let shared = |index: usize| upstreams[index]["checks"].get("shared_with").cloned();
    assert_eq!((upstreams.len(), shared(0)), (2, None));
    assert_eq!(shared(1), Some(json!("u.test")));
}

#[test]
fn names_are_looked_up_as_services_first() {
    for (host, is_name) in [("x.test", true), ("192.0.2.1", false), ("2001:db8::1", false)] {
        let model = model(&format!("services: [{{name: a, host: '{host}'}}]"));
        assert_eq!(model["services"][0].get("srv").is_some(), is_name, "{host}");
    }
    let model = model("upstreams: [{name: u.test, targets: [{target: 'x.test:80'}]}]");
    assert_eq!(model["upstreams"][0]["srv"], json!(true));
}
