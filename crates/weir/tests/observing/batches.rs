//! Entries of loggers that wait to be sent, as APISIX counts them.

use crate::server::{Gateway, server};
use crate::{TIMEOUT, lines};
use serde_json::json;
use std::time::Instant;

/// Waits until an exposition tells exactly these counts.
fn until_counted(weir: &Gateway, expected: &[&str]) {
    let began = Instant::now();
    loop {
        let text = weir.scrape("/apisix/prometheus/metrics");
        let samples = lines(&text, "apisix_batch_process_entries{");
        if samples == expected {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{samples:?}, expected {expected:?}");
    }
}

#[test]
fn entries_that_wait_are_counted_by_logger_and_route() {
    let (upstream, _calls) = server();
    let (collector, taken) = server();
    let uri = format!("http://{collector}/");
    let batching = json!({"uri": uri, "batch_max_size": 3, "inactive_timeout": 600, "buffer_duration": 600});
    let mut named = batching.clone();
    named["name"] = json!("my \"log\"");
    let at_once = json!({"uri": uri, "batch_max_size": 1});
    let route = |id: &str, logger: serde_json::Value| {
        json!({
            "id": id, "name": format!("name of {id}"), "uri": format!("/{id}"), "plugins": {"http-logger": logger},
            "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
        })
    };
    let mut counting = route("6", at_once);
    counting["plugins"]["prometheus"] = json!({});
    let weir = Gateway::start(
        "apisix.yaml",
        &json!({"routes": [route("4", batching), route("5", named), counting]}),
    );
    until_counted(&weir, &[]);
    let call = |path: &str| assert!(weir.get(path, &[]).starts_with("HTTP/1.1 200"), "{path}");
    let count = |name: &str, route: &str, entries: u64| {
        format!(
            r#"apisix_batch_process_entries{{name="{name}",route_id="{route}",server_addr="127.0.0.1"}} {entries}"#
        )
    };
    // Entries that are sent one by one do not wait.
    call("/6");
    taken.recv_timeout(TIMEOUT).unwrap();
    // Both send to one place in the same way, and are counted apart.
    call("/4");
    call("/5");
    until_counted(
        &weir,
        &[&count("http logger", "4", 1), &count(r#"my \"log\""#, "5", 1)],
    );
    call("/4");
    taken.recv_timeout(TIMEOUT).unwrap();
    until_counted(
        &weir,
        &[&count("http logger", "4", 0), &count(r#"my \"log\""#, "5", 0)],
    );
}
