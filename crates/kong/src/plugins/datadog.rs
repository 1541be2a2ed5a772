//! `datadog`: Kong's fields and defaults for `statsd` of the catalogue, as Datadog's agent takes metrics.

use super::logging::{Queue, consumer_fact, metric_part};
use super::unserved::shared::{PORT, QUEUE};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Kind, Record, Requirement};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::target::{Target, UdpTarget};
use weir_plugins::statsd::{Config, Kind as StatKind, Measure, Metric, Style};

/// The definition of `datadog`.
pub const DEFINITION: Definition = Definition {
    name: "datadog",
    priority: 10,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "statsd",
    translate,
};

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
        is: FieldTest::OneOf(&["counter", "gauge"]),
        then: "sample_rate",
        must: Requirement::BeGiven,
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

#[derive(Deserialize)]
struct Datadog {
    host: String,
    port: u16,
    prefix: String,
    service_name_tag: String,
    status_tag: String,
    consumer_tag: String,
    metrics: Vec<MetricOptions>,
    queue: Queue,
}

#[derive(Deserialize)]
struct MetricOptions {
    name: String,
    stat_type: StatKind,
    sample_rate: Option<f64>,
    consumer_identifier: Option<String>,
    tags: Option<Vec<String>>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Datadog = typed(config)?;
    let tag = |name: &str, fact: &str| (name.to_owned(), fact.to_owned());
    let metrics = options.metrics.iter().filter_map(|metric| {
        let (stat, value) = match metric.name.as_str() {
            "request_count" => ("request.count", Measure::Count),
            "request_size" => ("request.size", Measure::RequestBytes),
            "response_size" => ("response.size", Measure::ResponseBytes),
            "latency" => ("latency", Measure::TotalMs),
            "upstream_latency" => ("upstream_latency", Measure::UpstreamMs),
            "kong_latency" => ("kong_latency", Measure::GatewayMs),
            _ => return None,
        };
        let consumer = metric.consumer_identifier.as_deref();
        let consumer = consumer.map(|identifier| tag(&options.consumer_tag, consumer_fact(identifier)));
        // What stands in braces would be taken for a fact of the call.
        let is_good = |tag: &&String| !tag.contains([',', '|', '{', '}', '\n', '\r']) && !tag.is_empty();
        Some(Metric {
            stat: stat.to_owned(),
            kind: metric.stat_type,
            value,
            sample_rate: metric.sample_rate.unwrap_or(1.0),
            tags: consumer.into_iter().collect(),
            plain_tags: metric.tags.iter().flatten().filter(is_good).cloned().collect(),
        })
    });
    let metrics = metrics.collect();
    let tags = [
        tag(&options.service_name_tag, "{service_path}"),
        tag(&options.status_tag, "{status}"),
    ];
    Ok(untyped(Config {
        target: Target::Udp(UdpTarget {
            host: options.host,
            port: options.port,
            // Each metric is a datagram.
            line_bytes: Some(0),
        }),
        prefix: metric_part(&options.prefix),
        style: Style::Dogstatsd,
        tags: tags.into(),
        metrics,
        batch: options.queue.batch(),
        ..Config::default()
    }))
}
