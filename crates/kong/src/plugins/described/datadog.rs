//! `datadog`: metrics to a Datadog agent.

use super::shared::{PORT, QUEUE};
use super::{Definition, passing};
use crate::schema::{Check, Default, EntityCheck, Field, Is, Kind, Must, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("datadog", 10, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String).or(Default::Text("localhost")),
    Field::new("port", Kind::Integer)
        .or(Default::Integer(8125))
        .check(PORT),
    Field::new("prefix", Kind::String).or(Default::Text("kong")),
    Field::new("service_name_tag", Kind::String).or(Default::Text("name")),
    Field::new("status_tag", Kind::String).or(Default::Text("status")),
    Field::new("consumer_tag", Kind::String).or(Default::Text("consumer")),
    Field::new("retry_count", Kind::Integer),
    Field::new("queue_size", Kind::Integer),
    Field::new("flush_timeout", Kind::Number),
    QUEUE,
    Field::new("metrics", Kind::Array(&METRIC))
        .required()
        .or(Default::Json(STANDARD_METRICS)),
];

const METRIC: Field = Field::element(Kind::Record(&METRICS));

static METRICS: Record = Record {
    fields: &[
        Field::new("name", Kind::String)
            .required()
            .check(&[Check::OneOf(&[
                "kong_latency",
                "latency",
                "request_count",
                "request_size",
                "response_size",
                "upstream_latency",
            ])]),
        Field::new("stat_type", Kind::String)
            .required()
            .check(&[Check::OneOf(&[
                "counter",
                "gauge",
                "histogram",
                "meter",
                "set",
                "timer",
                "distribution",
            ])]),
        Field::new(
            "tags",
            Kind::Array(&Field::element(Kind::String).check(&[Check::Text(check_tag)])),
        ),
        Field::new("sample_rate", Kind::Number).check(&[Check::Between(0, 1)]),
        Field::new("consumer_identifier", Kind::String).check(&[Check::OneOf(&[
            "consumer_id",
            "custom_id",
            "username",
        ])]),
    ],
    checks: &[EntityCheck::When {
        field: "stat_type",
        is: Is::OneOf(&["counter", "gauge"]),
        then: "sample_rate",
        must: Must::BeGiven,
    }],
};

const STANDARD_METRICS: &str = r#"[
    {"name": "request_count", "stat_type": "counter", "sample_rate": 1, "consumer_identifier": "custom_id", "tags": ["app:kong"]},
    {"name": "latency", "stat_type": "timer", "consumer_identifier": "custom_id", "tags": ["app:kong"]},
    {"name": "request_size", "stat_type": "timer", "consumer_identifier": "custom_id", "tags": ["app:kong"]},
    {"name": "response_size", "stat_type": "timer", "consumer_identifier": "custom_id", "tags": ["app:kong"]},
    {"name": "upstream_latency", "stat_type": "timer", "consumer_identifier": "custom_id", "tags": ["app:kong"]},
    {"name": "kong_latency", "stat_type": "timer", "consumer_identifier": "custom_id", "tags": ["app:kong"]}
]"#;

fn check_tag(text: &str) -> Result<(), String> {
    if text.ends_with(':') {
        Err(format!("invalid value: {text}"))
    } else {
        Ok(())
    }
}
