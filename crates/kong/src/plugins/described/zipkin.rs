//! `zipkin`: traces to a Zipkin server.

use super::shared::{PROPAGATION, QUEUE, TIMEOUT, URL};
use super::{Definition, passing};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("zipkin", 100_000, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("local_service_name", Kind::String)
        .required()
        .or(Default::Text("kong")),
    Field::new("http_endpoint", Kind::String).check(URL),
    Field::new("sample_ratio", Kind::Number)
        .or(Default::Json("0.001"))
        .check(&[Check::Between(0, 1)]),
    Field::new("default_service_name", Kind::String),
    Field::new("include_credential", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("traceid_byte_count", Kind::Integer)
        .required()
        .or(Default::Integer(16))
        .check(&[Check::OneOfNumbers(&[8, 16])]),
    Field::new("header_type", Kind::String)
        .required()
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
            "datadog",
            "gcp",
        ])]),
    Field::new("default_header_type", Kind::String)
        .required()
        .or(Default::Text("b3"))
        .check(&[Check::OneOf(&[
            "b3",
            "b3-single",
            "w3c",
            "jaeger",
            "ot",
            "aws",
            "datadog",
            "gcp",
        ])]),
    Field::new("tags_header", Kind::String)
        .required()
        .or(Default::Text("Zipkin-Tags")),
    Field::new("static_tags", Kind::Array(&STATIC_TAG)),
    Field::new("http_span_name", Kind::String)
        .required()
        .or(Default::Text("method"))
        .check(&[Check::OneOf(&["method", "method_path"])]),
    Field::new("connect_timeout", Kind::Integer)
        .or(Default::Integer(2000))
        .check(TIMEOUT),
    Field::new("send_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("read_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("http_response_header_for_traceid", Kind::String),
    Field::new("phase_duration_flavor", Kind::String)
        .required()
        .or(Default::Text("annotations"))
        .check(&[Check::OneOf(&["annotations", "tags"])]),
    QUEUE,
    PROPAGATION.or(Default::Json(r#"{"default_format": "b3"}"#)),
];

const STATIC_TAG: Field = Field::element(Kind::Record(&STATIC_TAGS));

static STATIC_TAGS: Record = Record::of(&[
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::NotOneOf(&[
            "error",
            "http.method",
            "http.path",
            "http.status_code",
            "kong.balancer.state",
            "kong.balancer.try",
            "kong.consumer",
            "kong.credential",
            "kong.node.id",
            "kong.route",
            "kong.service",
            "lc",
            "peer.hostname",
        ])]),
    Field::new("value", Kind::String).required(),
]);
