//! Health through a whole gateway: targets go bad and come back, names change, and no call is lost on the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod active;
mod names;
mod passive;
mod server;

#[path = "../support/name_server.rs"]
mod name_server;
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

/// How clients connect.
const OVER_TLS: bool = false;

use serde_json::{Value, json};
use server::Server;
use support::TestGateway;
use weir_proxy::health::Status;

/// A service whose upstream has these targets and fields.
fn model(targets: &[&Server], fields: Value) -> Value {
    let targets: Vec<Value> = targets
        .iter()
        .map(|it| json!({"host": it.address.ip().to_string(), "port": it.address.port()}))
        .collect();
    model_of(json!(targets), fields)
}

/// The same with targets as a model has them.
fn model_of(targets: Value, fields: Value) -> Value {
    let mut upstream = json!({"name": "upstream", "targets": targets});
    if let (Value::Object(upstream), Value::Object(fields)) = (&mut upstream, fields) {
        upstream.extend(fields);
    }
    json!({
        "upstreams": [upstream],
        "services": [{"name": "service", "upstream": "upstream", "retries": 1}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    })
}

/// What a call through the gateway comes to: its status and its body.
fn call(gateway: &TestGateway, method: &str) -> (u16, String) {
    let mut client = gateway.connect();
    client.send(format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"));
    let answer = client.response().unwrap();
    (answer.status(), String::from_utf8(answer.body).unwrap())
}

/// What several calls come to, each once.
fn kinds(gateway: &TestGateway, calls: usize) -> Vec<(u16, String)> {
    let mut kinds: Vec<_> = (0..calls).map(|_| call(gateway, "GET")).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// How the targets of the upstream stand.
fn status_of(gateway: &TestGateway) -> Vec<Status> {
    let report = gateway.gateway().upstream_health("upstream").unwrap();
    report.targets.iter().map(|it| it.status).collect()
}
