//! `opentelemetry`: traces and logs over OTLP.

use super::shared::{PROPAGATION, QUEUE, TIMEOUT, URL};
use super::{Definition, passing};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition =
    passing("opentelemetry", 14, CONFIG).with_shorthands(&[("endpoint", "", "traces_endpoint")]);

const CONFIG: Record = Record {
    fields: FIELDS,
    checks: &[EntityCheck::AtLeastOneOf(&["traces_endpoint", "logs_endpoint"])],
};

const FIELDS: &[Field] = &[
    Field::new("traces_endpoint", Kind::String).check(URL),
    Field::new("logs_endpoint", Kind::String).check(URL),
    Field::new(
        "headers",
        Kind::Map {
            keys: &Field::element(Kind::String),
            values: &Field::element(Kind::String),
        },
    ),
    Field::new(
        "resource_attributes",
        Kind::Map {
            keys: &Field::element(Kind::String).required(),
            values: &Field::element(Kind::String).required(),
        },
    ),
    QUEUE.or(Default::Json(r#"{"max_batch_size": 200}"#)),
    Field::new("batch_span_count", Kind::Integer),
    Field::new("batch_flush_delay", Kind::Integer),
    Field::new("connect_timeout", Kind::Integer)
        .or(Default::Integer(1000))
        .check(TIMEOUT),
    Field::new("send_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("read_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("http_response_header_for_traceid", Kind::String),
    Field::new("header_type", Kind::String)
        .or(Default::Text("preserve"))
        .check(&[Check::OneOf(&[
            "preserve",
            "ignore",
            "b3",
            "b3-single",
            "w3c",
            "jaeger",
            "ot",
            "aws",
            "gcp",
            "datadog",
        ])]),
    Field::new("sampling_rate", Kind::Number).check(&[Check::Between(0, 1)]),
    PROPAGATION.or(Default::Json(r#"{"default_format": "w3c"}"#)),
];
