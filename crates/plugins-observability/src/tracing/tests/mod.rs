//! Tables: headers in and out, sampling, spans in both formats, and which configurations are good.

mod configuration;
mod headers;
mod ids;
mod sampling;
mod spans;

use super::*;
use serde_json::json;
use weir_plugin::{CallRecord, Exchange, LogEntry, Outcome};
use weir_plugins_testkit::{NOW_MS, build, exchange, prepare};

/// A filter of this configuration.
fn filter(config: &Value) -> Arc<dyn Filter> {
    build(&Tracing::default(), config).expect("a good configuration")
}

/// A call's record: forwarded after 1 ms, answered after 11 ms, over after 12 ms.
fn record() -> CallRecord<'static> {
    CallRecord {
        status: 200,
        total_us: 12_000,
        forwarded_us: Some(1_000),
        upstream_us: Some(10_000),
        upstream_status: Some(200),
        ..weir_plugins_testkit::record()
    }
}

/// Runs a call through a filter; gives the entries of its log record.
fn run(filter: &dyn Filter, exchange: &mut Exchange, record: &CallRecord<'_>) -> Vec<LogEntry> {
    assert!(matches!(filter.on_request(exchange), Outcome::Continue));
    exchange.response.status = record.status;
    if filter.phases().response {
        filter.on_response(exchange);
    }
    account(filter, exchange, record)
}

fn account(filter: &dyn Filter, exchange: &mut Exchange, record: &CallRecord<'_>) -> Vec<LogEntry> {
    let mut out = Vec::new();
    if filter.phases().log && filter.wants_log(exchange) {
        filter.on_log(exchange, record, &mut out);
    }
    out
}

/// The value of a request header; empty: it is not there.
fn header(exchange: &Exchange, name: &str) -> String {
    let value = exchange.request.headers.get(name.as_bytes());
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}
