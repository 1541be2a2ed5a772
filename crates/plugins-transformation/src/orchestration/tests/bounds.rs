//! What a call may take: memory while it waits, and work.

use super::*;
use crate::orchestration::progress::{Output, Pending, Progress};
use std::time::Instant;
use weir_plugin::RefusalKind;

/// A list whose value takes 36 times the memory of its text.
fn zeros(count: usize) -> String {
    serde_json::to_string(&vec![0; count]).expect("a list")
}

#[test]
fn waiting_calls_hold_texts_and_only_what_is_still_read() {
    let config = json!({"nodes": [
        {"name": "first", "call": {"url": "http://a/"}, "inputs": {"body": "request.body"}},
        {"name": "second", "call": {"url": "http://b/"}, "inputs": {"headers": "request.headers", "query": "first.headers"}},
        {"name": "last", "jq": "length", "input": "first.body", "output": "service_request.query"},
    ]});
    let config = parse_config::<Config>(&config).expect("valid");
    let graph = Graph::new(&config, &[false; 3]).expect("valid");
    assert_eq!(graph.before, [0, 1, 2]);
    let data = |text: &str| data::Datum::json(serde_json::from_str::<Value>(text).expect("JSON"));
    let mut progress = Progress::new(3, 1);
    for name in ["body", "headers"] {
        progress.request.insert(name, data(&zeros(10_000)));
    }
    // The first server has the body already.
    progress.pending = Some(Pending::Call);
    let held = progress.shrink(&graph);
    assert_eq!(progress.request.keys().collect::<Vec<_>>(), [&"headers"]);
    assert!(held < 30_000, "{held}");
    // Of its answer, the status and the headers are of no more use when the second one is asked.
    progress.next = 1;
    let answer = ["body", "headers", "status", "raw_body"];
    progress.outputs[0] = Output::Named(answer.map(|name| (name, data(&zeros(10_000)))).to_vec());
    let held = progress.shrink(&graph);
    assert!(held < 30_000, "{held}");
    assert!(progress.request.is_empty());
    let Output::Named(values) = &progress.outputs[0] else {
        panic!("it has answered");
    };
    assert_eq!(values.iter().map(|it| it.0).collect::<Vec<_>>(), ["body"]);
    assert!(matches!(values[0].1, data::Datum::Packed(_)));
}

#[test]
fn fixed_values_are_held_by_the_configuration() {
    let config = json!({"nodes": [
        {"name": "fixed", "static": {"body": vec![0; 10_000]}},
        {"name": "ask", "call": {"url": "http://a/"}},
        {"name": "last", "jq": "length", "inputs": {"a": "fixed.body", "b": "ask.body"}},
    ]});
    let config = parse_config::<Config>(&config).expect("valid");
    let graph = Graph::new(&config, &[false; 3]).expect("valid");
    let mut progress = Progress::new(3, 1);
    let values = config.nodes[0].values.clone().expect("fixed values");
    let fixed = data::Datum::json(Value::Object(values.into_iter().collect()));
    progress.outputs[0] = Output::One(fixed);
    progress.next = 1;
    assert_eq!(progress.shrink(&graph), 0);
    assert!(matches!(&progress.outputs[0], Output::One(data::Datum::Json(_))));
}

#[test]
fn calls_that_would_hold_too_much_are_refused() {
    let plugin = Orchestration::default();
    let config = json!({"max_body_bytes": 8 << 20, "nodes": [
        {"name": "ask", "call": {"url": "http://a/"}},
        {"name": "put", "jq": "length", "input": "request.body", "output": "service_request.body"},
    ]});
    let filter = build(&plugin, &config).expect("valid");
    let body = "a".repeat(8 << 20);
    let mut waiting = Vec::new();
    let refused = loop {
        let mut exchange = call("POST /", "text/plain", Some(&body));
        match filter.on_request(&mut exchange) {
            Outcome::Subrequest(_) => waiting.push(exchange),
            other => break other,
        }
        assert!(waiting.len() < 20, "a call holds more than 7 MB");
    };
    assert_eq!(word(&refused), "overloaded 503");
    assert!(matches!(refused, Outcome::Refuse(it) if it.kind == RefusalKind::Overloaded));
    assert!(waiting.len() > 10, "{}", waiting.len());
    // Those that go on make room.
    drop(waiting);
    let answer = Some((200, "", ""));
    let mut exchange = call("POST /", "application/json", Some("[1,2]"));
    let (_, outcome) = requested(&*filter, &mut exchange, &[answer]);
    assert_eq!(word(&outcome), "continue");
    assert_eq!(exchange.request.body.as_deref(), Some(&b"2"[..]));
}

#[test]
fn nodes_that_go_through_a_large_value_again_and_again_are_stopped() {
    for (count, expected) in [(3, "continue"), (60, "plugin_failed 500")] {
        let nodes: Vec<Value> = (0..count)
            .map(|number| json!({"name": format!("n{number}"), "jq": "1", "input": "request.body"}))
            .collect();
        let filter = filter(json!(nodes));
        let mut exchange = call("POST /", "application/json", Some(&zeros(400_000)));
        let (_, outcome) = requested(&*filter, &mut exchange, &[]);
        assert_eq!(word(&outcome), expected, "{count}");
    }
}

#[test]
fn the_time_of_servers_begins_with_the_first_call() {
    let config = json!({"timeout_ms": 1, "nodes": [
        {"name": "ask", "call": {"url": "http://a/"}, "inputs": {"query": "v"}},
        {"name": "v", "jq": "{a: length}", "input": "service_response.body"},
    ]});
    let filter = build(&Orchestration::default(), &config).expect("valid");
    let mut exchange = call("GET /", "", None);
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    exchange.response.status = 200;
    filter.on_response(&mut exchange);
    // The body takes its time.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2) {
        std::hint::spin_loop();
    }
    let outcome = filter.on_waiting_response(&mut exchange);
    assert!(matches!(outcome, Outcome::Subrequest(_)), "{}", word(&outcome));
}

#[test]
fn values_expire_within_bounds() {
    for ttl in [0_u64, 1_000_000_001] {
        let config = json!({"nodes": [{"name": "a", "cache": {"ttl_seconds": ttl}, "inputs": {"key": "request.path"}}]});
        let faults = refused_at(&Orchestration::default(), &config);
        assert_eq!(faults, ["nodes[0].cache.ttl_seconds"], "{ttl}");
    }
    // An input that is larger than all is the most.
    let filter = filter(json!([
        {"name": "v", "jq": "{key: \"k\", data: 1, ttl: 8e15}", "output": "keep"},
        {"name": "keep", "cache": {}},
        {"name": "end", "exit": {}, "inputs": {"body": "keep.stored"}},
    ]));
    let (_, outcome) = requested(&*filter, &mut call("GET /", "", None), &[]);
    assert_eq!(reply(&outcome), "200 [application/json] [] true");
}

#[test]
fn nodes_that_get_secrets_are_known() {
    let config = json!({"secrets": {"k": "s"}, "nodes": [
        {"name": "a", "jq": ".", "input": "secrets.k"},
        {"name": "b", "jq": ".", "input": "a"},
        {"name": "c", "jq": ".", "input": "request.path"},
    ]});
    let config = parse_config::<Config>(&config).expect("valid");
    let graph = Graph::new(&config, &[false; 3]).expect("valid");
    assert_eq!(graph.of_secrets, [true, true, false]);
}
