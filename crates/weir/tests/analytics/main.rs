//! Analytics of a started Weir: exact counts, what a kill leaves behind, delivery to a control plane, alerts, CSV, the
//! request log, retention, counts in ClickHouse.

mod alerts;
mod boards;
mod calls;
mod clickhouse;
mod counts;
mod delivery;
mod retention;
mod showing;
#[allow(dead_code, reason = "these tests do not ask for all of it")]
#[path = "../managed/support.rs"]
mod support;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use support::{Call, Weir};

/// Flags of a Weir that keeps analytics, over the file `weir.yaml`.
const FLAGS: [&str; 8] = [
    "-c",
    "weir.yaml",
    "--console",
    "127.0.0.1:0",
    "--analytics",
    "analytics",
    "--analytics-interval",
    "1",
];

/// A configuration: routes that answer by themselves, one with a key, one to an upstream, one to nowhere.
fn configure(folder: &Path, upstream: std::net::SocketAddr) {
    let text = format!(
        "weir: 1
services:
  - name: own
    url: http://127.0.0.1:1
    routes:
      - {{name: ok, paths: [/ok], plugins: [request-termination: {{status: 200, body: fine}}]}}
      - {{name: teapot, paths: [/teapot], plugins: [request-termination: {{status: 418, body: tea}}]}}
      - name: keyed
        paths: [/keyed]
        plugins:
          - key-auth: {{look_in: [{{header: X-Api-Key}}]}}
          - request-termination: {{status: 200, body: fine}}
      - {{name: broken, paths: [/broken]}}
  - name: shop
    url: http://{upstream}
    routes:
      - {{name: list, paths: [/list]}}
consumers:
  - name: alice
    credentials: [{{key-auth: {{key: alice-key}}}}]
  - name: bob
    credentials: [{{key-auth: {{key: bob-key}}}}]
"
    );
    std::fs::write(folder.join("weir.yaml"), text).expect("written");
}

/// Makes so many equal calls over one connection. They must have these statuses.
#[track_caller]
fn repeat(proxy: &str, path: &str, header: &str, count: usize, status: u16) {
    const AT_ONCE: usize = 200;
    let mut stream = TcpStream::connect(proxy).expect("connected");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: curl/8.5\r\n{header}\r\n");
    let start = format!("HTTP/1.1 {status} ");
    let (mut left, mut answer) = (count, Vec::new());
    while left > 0 {
        let now = left.min(AT_ONCE);
        stream.write_all(request.repeat(now).as_bytes()).expect("written");
        let mut seen = 0;
        answer.clear();
        let mut buffer = [0; 64 << 10];
        while seen < now {
            let length = stream.read(&mut buffer).expect("answered");
            assert!(
                length > 0,
                "{path}: the connection ended after {} of {count}",
                count - left + seen
            );
            answer.extend_from_slice(&buffer[..length]);
            let text = String::from_utf8_lossy(&answer);
            // The head of the last answer is whole once its body's length is known; bodies are short.
            seen = text.matches("\r\n\r\n").count();
        }
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(text.matches(&start).count(), now, "{path}: {text}");
        left -= now;
    }
}

/// Asks a query.
#[track_caller]
fn query(weir: &Weir, query: &Value) -> Value {
    let call = Call::new("POST", &weir.console(), "/api/v1/analytics/query");
    call.body(&query.to_string()).make().expect(200).json()
}

/// By group: the total of a metric.
#[track_caller]
fn totals(weir: &Weir, metric: &str, group_by: &str, filter: &Value) -> BTreeMap<String, f64> {
    let asked = json!({
        "metrics": [metric], "from": "-1h", "group_by": [group_by], "filter": filter, "limit": 100,
    });
    let answer = query(weir, &asked);
    let frames = answer["frames"].as_array().expect("frames").iter();
    let one = |frame: &Value| {
        let group = frame["group"][group_by].as_str().expect("a value").to_owned();
        (group, frame["total"][metric].as_f64().unwrap_or(f64::NAN))
    };
    frames.map(one).collect()
}

/// All calls.
#[track_caller]
fn all_calls(weir: &Weir) -> f64 {
    totals(weir, "calls", "environment", &json!({})).values().sum()
}
