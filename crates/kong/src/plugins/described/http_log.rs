//! `http-log`: an account of every call to an HTTP server.

use super::shared::{CUSTOM_FIELDS_BY_LUA, QUEUE, URL};
use super::{Definition, passing};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("http-log", 12, CONFIG);

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
