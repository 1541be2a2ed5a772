//! Traces and metrics of the dialects, through the whole binary: a collector of the test gets what is sent, and a scrape
//! finds what was counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod apisix;
mod batches;
mod clouds;
mod gateway_log;
mod idle;
mod ocsp;
mod rocketmq;
mod server;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;

use prost::Message;
use serde_json::json;
use server::{Gateway, ReceivedRequest, server};
use std::time::Duration;

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(20);
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// What of OTLP is looked at.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}
#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}
#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}
#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn spans(taken: &ReceivedRequest) -> Vec<Span> {
    let request = Request::decode(taken.body.as_slice()).unwrap();
    let resources = request.resource_spans.into_iter();
    resources
        .flat_map(|it| it.scope_spans)
        .flat_map(|it| it.spans)
        .collect()
}

/// The lines of an exposition that begin so.
fn lines<'t>(text: &'t str, start: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.starts_with(start)).collect()
}

#[test]
fn kongs_plugins_trace_and_count() {
    let (upstream, calls) = server();
    let (collector, taken) = server();
    let plugins = json!([
        {"name": "opentelemetry", "config": {
            "endpoint": format!("http://{collector}/v1/traces"), "sampling_rate": 1,
            "http_response_header_for_traceid": "X-Trace", "queue": {"max_coalescing_delay": 0.01},
        }},
        {"name": "prometheus", "config": {
            "status_code_metrics": true, "latency_metrics": true, "bandwidth_metrics": true,
        }},
    ]);
    let weir = Gateway::start(
        "kong.yml",
        &json!({
            "_format_version": "3.0",
            "services": [{"name": "s", "url": format!("http://{upstream}"), "routes": [{"name": "r", "paths": ["/x"]}]}],
            "plugins": plugins,
        }),
    );
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let answer = weir.get("/x/y", &[("traceparent", &traceparent)]);
    assert!(
        answer.to_lowercase().contains(&format!("x-trace: {TRACE}")),
        "{answer}"
    );
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    let taken = taken.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(taken.line, "POST /v1/traces HTTP/1.1");
    assert_eq!(taken.header("content-type"), "application/x-protobuf");
    let spans = spans(&taken);
    let [root, tried] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(
        (root.name.as_str(), tried.name.as_str()),
        ("kong", "kong.balancer")
    );
    assert_eq!(
        (hex(&root.trace_id), hex(&root.parent_span_id)),
        (TRACE.into(), PARENT.into())
    );
    assert_eq!(tried.parent_span_id, root.span_id);
    assert!(root.start <= tried.start && tried.start <= tried.end && tried.end <= root.end);
    let expected = format!("00-{TRACE}-{}-01", hex(&tried.span_id));
    assert_eq!(call.header("traceparent"), expected);
    let text = weir.scrape("/metrics");
    let labels = r#"service="s",route="r""#;
    assert_eq!(
        lines(&text, "kong_http_requests_total"),
        [format!(
            r#"kong_http_requests_total{{{labels},code="200",source="service",workspace="default",consumer=""}} 1"#
        )]
    );
    for line in [
        format!(r#"kong_request_latency_ms_count{{{labels},workspace="default"}} 1"#),
        format!(r#"kong_upstream_latency_ms_bucket{{{labels},workspace="default",le="+Inf"}} 1"#),
        format!(r#"kong_kong_latency_ms_bucket{{{labels},workspace="default",le="6000"}} 1"#),
        "kong_datastore_reachable 1".to_owned(),
        "# TYPE kong_bandwidth_bytes counter".to_owned(),
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    assert!(!lines(&text, "weir_requests_total").is_empty() || text.contains("weir_"));
}

#[test]
fn a_collector_that_never_reads_costs_no_call_anything() {
    let (upstream, _calls) = server();
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = deaf.local_addr().unwrap();
    let weir = Gateway::start(
        "weir.yaml",
        &json!({
            "weir": 1,
            "services": [{"name": "s", "url": format!("http://{upstream}"), "routes": [{
                "name": "r", "paths": ["/"],
                "plugins": [{"tracing": {
                    "export": {"otlp_grpc": {"url": format!("http://{address}")}},
                    "batch": {"max_pending": 100, "max_entries": 10, "delay_ms": 0},
                }}],
            }]}],
        }),
    );
    for number in 0..400 {
        assert!(weir.get(&format!("/{number}"), &[]).starts_with("HTTP/1.1 200"));
    }
    let began = std::time::Instant::now();
    loop {
        let text = weir.scrape("/metrics");
        // No more wait than may, and no more.
        if lines(
            &text,
            r#"weir_log_entries_total{target="grpc",result="dropped"} 300"#,
        )
        .len()
            == 1
        {
            break;
        }
        assert!(
            began.elapsed() < TIMEOUT,
            "{:?}",
            lines(&text, "weir_log_entries")
        );
    }
}
