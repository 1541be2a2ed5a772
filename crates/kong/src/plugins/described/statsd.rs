//! `statsd`: metrics to a StatsD server.

use super::shared::{PORT, QUEUE};
use super::{Definition, passing};
use crate::schema::{Check, Default, EntityCheck, Field, Is, Kind, Must, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("statsd", 11, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String).or(Default::Text("localhost")),
    Field::new("port", Kind::Integer)
        .or(Default::Integer(8125))
        .check(PORT),
    Field::new("prefix", Kind::String).or(Default::Text("kong")),
    Field::new("metrics", Kind::Array(&METRIC)).or(Default::Json(STANDARD_METRICS)),
    Field::new(
        "allow_status_codes",
        Kind::Array(&Field::element(Kind::String).check(&[Check::Text(check_range)])),
    ),
    Field::new("udp_packet_size", Kind::Number)
        .or(Default::Integer(0))
        .check(&[Check::Between(0, 65_507)]),
    Field::new("use_tcp", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("hostname_in_prefix", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("consumer_identifier_default", Kind::String)
        .required()
        .or(Default::Text("custom_id"))
        .check(&[Check::OneOf(&["consumer_id", "custom_id", "username"])]),
    Field::new("service_identifier_default", Kind::String)
        .required()
        .or(Default::Text("service_name_or_host"))
        .check(&[Check::OneOf(&[
            "service_id",
            "service_name",
            "service_host",
            "service_name_or_host",
        ])]),
    Field::new("workspace_identifier_default", Kind::String)
        .required()
        .or(Default::Text("workspace_id"))
        .check(&[Check::OneOf(&["workspace_id", "workspace_name"])]),
    Field::new("retry_count", Kind::Integer),
    Field::new("queue_size", Kind::Integer),
    Field::new("flush_timeout", Kind::Number),
    Field::new("tag_style", Kind::String).check(&[Check::OneOf(&[
        "dogstatsd",
        "influxdb",
        "librato",
        "signalfx",
    ])]),
    QUEUE,
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
                "request_per_user",
                "request_size",
                "response_size",
                "status_count",
                "status_count_per_user",
                "unique_users",
                "upstream_latency",
                "status_count_per_workspace",
                "status_count_per_user_per_route",
                "shdict_usage",
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
            ])]),
        Field::new("sample_rate", Kind::Number).check(&[Check::Above(0)]),
        Field::new("consumer_identifier", Kind::String).check(&[Check::OneOf(&[
            "consumer_id",
            "custom_id",
            "username",
        ])]),
        Field::new("service_identifier", Kind::String).check(&[Check::OneOf(&[
            "service_id",
            "service_name",
            "service_host",
            "service_name_or_host",
        ])]),
        Field::new("workspace_identifier", Kind::String)
            .check(&[Check::OneOf(&["workspace_id", "workspace_name"])]),
    ],
    checks: &[EntityCheck::When {
        field: "stat_type",
        is: Is::OneOf(&["counter", "gauge"]),
        then: "sample_rate",
        must: Must::BeGiven,
    }],
};

const STANDARD_METRICS: &str = r#"[
    {"name": "request_count", "stat_type": "counter", "sample_rate": 1},
    {"name": "latency", "stat_type": "timer"},
    {"name": "request_size", "stat_type": "counter", "sample_rate": 1},
    {"name": "status_count", "stat_type": "counter", "sample_rate": 1},
    {"name": "response_size", "stat_type": "counter", "sample_rate": 1},
    {"name": "unique_users", "stat_type": "set"},
    {"name": "request_per_user", "stat_type": "counter", "sample_rate": 1},
    {"name": "upstream_latency", "stat_type": "timer"},
    {"name": "kong_latency", "stat_type": "timer"},
    {"name": "status_count_per_user", "stat_type": "counter", "sample_rate": 1},
    {"name": "status_count_per_workspace", "stat_type": "counter", "sample_rate": 1},
    {"name": "status_count_per_user_per_route", "stat_type": "counter", "sample_rate": 1},
    {"name": "shdict_usage", "stat_type": "gauge", "sample_rate": 1}
]"#;

/// Two numbers with `-` between them.
fn check_range(text: &str) -> Result<(), String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('-') {
        Some((low, high)) if is_number(low) && is_number(high) => Ok(()),
        _ => Err(format!("invalid value: {text}")),
    }
}
