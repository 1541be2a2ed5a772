//! `http-log`: an account of every call to an HTTP server.

use super::described::shared::{CUSTOM_FIELDS_BY_LUA, QUEUE, URL};
use super::logging::base;
use super::{Consumers, Definition, Unfit, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};
use weir_plugins::logger::{Batch, Config};

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "http-log",
    priority: 12,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("http_endpoint", Kind::String).check(URL).required(),
    Field::new("method", Kind::String)
        .or(Default::Text("POST"))
        .check(&[Check::OneOf(&["POST", "PUT", "PATCH"])]),
    Field::new("content_type", Kind::String)
        .or(Default::Text("application/json"))
        .check(&[Check::OneOf(&[
            "application/json",
            "application/json; charset=utf-8",
        ])]),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("retry_count", Kind::Integer),
    Field::new("queue_size", Kind::Integer),
    Field::new("flush_timeout", Kind::Number),
    Field::new(
        "headers",
        Kind::Map {
            keys: &Field::element(Kind::String).check(&[Check::Text(check_header)]),
            values: &Field::element(Kind::String),
        },
    ),
    QUEUE,
    CUSTOM_FIELDS_BY_LUA,
];

/// These are the plugin's own.
fn check_header(text: &str) -> Result<(), String> {
    let own = ["Host", "Content-Length", "Content-Type"];
    match own.iter().find(|name| name.eq_ignore_ascii_case(text)) {
        Some(name) => Err(format!("cannot contain '{name}' header")),
        None => Ok(()),
    }
}

#[derive(Deserialize)]
struct HttpLog {
    http_endpoint: String,
    method: String,
    content_type: String,
    timeout: f64,
    headers: Option<BTreeMap<String, String>>,
    queue: Queue,
}

#[derive(Deserialize)]
struct Queue {
    max_batch_size: usize,
    max_coalescing_delay: f64,
    max_entries: usize,
    max_bytes: Option<usize>,
    max_retry_time: f64,
    initial_retry_delay: f64,
    max_retry_delay: f64,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, Unfit> {
    let options: HttpLog = typed(config)?;
    let queue = options.queue;
    let millis = |seconds: f64| (seconds * 1000.0) as u64;
    let standard = Batch::default();
    Ok(untyped(Config {
        target: Target::Http(HttpTarget {
            url: options.http_endpoint,
            method: options.method,
            content_type: options.content_type,
            headers: options.headers.unwrap_or_default(),
            timeout_ms: options.timeout as u64,
            verify_tls: false,
        }),
        form: Form::ArrayOrObject,
        batch: Batch {
            max_entries: queue.max_batch_size,
            delay_ms: match queue.max_batch_size {
                1 => 0,
                _ => millis(queue.max_coalescing_delay),
            },
            max_pending: queue.max_entries,
            max_pending_bytes: queue.max_bytes.unwrap_or(standard.max_pending_bytes),
            retries: u32::MAX,
            retry_for_ms: millis(queue.max_retry_time),
            retry_delay_ms: millis(queue.initial_retry_delay),
            max_retry_delay_ms: millis(queue.max_retry_delay),
        },
        ..base(config)?
    }))
}
