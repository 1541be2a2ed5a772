//! `http-log`: a log record of every call to an HTTP server.

use super::logging::{Queue, base};
use super::unserved::shared::{CUSTOM_FIELDS_BY_LUA, QUEUE, URL};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The definition of `http-log`.
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

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: HttpLog = typed(config)?;
    Ok(untyped(Config {
        target: Target::Http(HttpTarget {
            url: options.http_endpoint,
            method: options.method,
            content_type: options.content_type,
            headers: options.headers.unwrap_or_default(),
            timeout_ms: options.timeout as u64,
            verify_tls: false,
            authorization: None,
        }),
        form: Form::ArrayOrObject,
        batch: options.queue.batch(),
        ..base(config)?
    }))
}
