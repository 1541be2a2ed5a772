//! `statsd`: Kong's fields and defaults for `statsd` of the catalogue, which sends metrics to a StatsD server.

use super::logging::{Queue, consumer_fact, metric_part};
use super::unserved::shared::{PORT, QUEUE};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Kind, Record, Requirement};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::logger::target::{Target, TcpTarget, UdpTarget};
use weir_plugins::statsd::{Config, Kind as StatKind, Measure, Metric, Range, Style};

/// The definition of `statsd`.
pub const DEFINITION: Definition = Definition {
    name: "statsd",
    priority: 11,
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
        is: FieldTest::OneOf(&["counter", "gauge"]),
        then: "sample_rate",
        must: Requirement::BeGiven,
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

#[derive(Deserialize)]
struct Statsd {
    host: String,
    port: u16,
    prefix: String,
    metrics: Vec<MetricOptions>,
    allow_status_codes: Option<Vec<String>>,
    udp_packet_size: f64,
    use_tcp: bool,
    hostname_in_prefix: bool,
    consumer_identifier_default: String,
    tag_style: Option<Style>,
    queue: Queue,
}

#[derive(Deserialize)]
struct MetricOptions {
    name: String,
    stat_type: StatKind,
    sample_rate: Option<f64>,
    consumer_identifier: Option<String>,
}

/// The longest that a server may take to accept a batch.
const TCP_TIMEOUT_MS: u64 = 1_000;

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Statsd = typed(config)?;
    let mut prefix = metric_part(&options.prefix);
    if options.hostname_in_prefix && options.tag_style.is_none() {
        prefix.push_str(".node.{node_path}");
    }
    let consumer = consumer_fact(&options.consumer_identifier_default);
    let tags = match options.tag_style {
        None => BTreeMap::new(),
        Some(_) => [
            ("service", "{service}"),
            ("route", "{route}"),
            ("workspace", "default"),
            ("consumer", consumer),
            ("node", "{node_path}"),
            ("status", "{status}"),
        ]
        .map(|(name, fact)| (name.to_owned(), fact.to_owned()))
        .into(),
    };
    let is_tagged = options.tag_style.is_some();
    let metrics = options.metrics.iter();
    Ok(untyped(Config {
        target: match options.use_tcp {
            true => Target::Tcp(TcpTarget {
                host: options.host,
                port: options.port,
                timeout_ms: TCP_TIMEOUT_MS,
                ..TcpTarget::default()
            }),
            false => Target::Udp(UdpTarget {
                host: options.host,
                port: options.port,
                line_bytes: Some(options.udp_packet_size as usize),
            }),
        },
        prefix,
        style: options.tag_style.unwrap_or_default(),
        tags,
        metrics: metrics
            .filter_map(|metric| metric.translate(consumer, is_tagged))
            .collect(),
        statuses: options
            .allow_status_codes
            .iter()
            .flatten()
            .filter_map(|text| range(text))
            .collect(),
        batch: options.queue.batch(),
        ..Config::default()
    }))
}

impl MetricOptions {
    /// `None`: Weir does not count it, or it is not sent with tags.
    fn translate(&self, consumer: &'static str, is_tagged: bool) -> Option<Metric> {
        let consumer = self
            .consumer_identifier
            .as_deref()
            .map_or(consumer, consumer_fact);
        let plain = |name: &str, value| {
            let stat = if is_tagged {
                name.to_owned()
            } else {
                format!("{{scope}}.{name}")
            };
            (stat, self.stat_type, value)
        };
        let counted = |stat: String| (stat, StatKind::Counter, Measure::Count);
        let (stat, kind, value) = match self.name.as_str() {
            "request_count" => plain("request.count", Measure::Count),
            "request_size" => plain("request.size", Measure::RequestBytes),
            "response_size" => plain("response.size", Measure::ResponseBytes),
            "latency" => plain("latency", Measure::TotalMs),
            "upstream_latency" => plain("upstream_latency", Measure::UpstreamMs),
            "kong_latency" => plain("kong_latency", Measure::GatewayMs),
            _ if is_tagged => return None,
            "unique_users" => (
                "{scope}.user.uniques".to_owned(),
                StatKind::Set,
                Measure::Text(consumer.to_owned()),
            ),
            "request_per_user" => counted(format!("{{scope}}.user.{consumer}.request.count")),
            "status_count" => counted("{scope}.status.{status}".to_owned()),
            "status_count_per_user" => counted(format!("{{scope}}.user.{consumer}.status.{{status}}")),
            "status_count_per_workspace" => counted("{scope}.workspace.default.status.{status}".to_owned()),
            "status_count_per_user_per_route" => {
                counted(format!("route.{{route}}.user.{consumer}.status.{{status}}"))
            }
            _ => return None,
        };
        let sample_rate = match kind {
            StatKind::Set => 1.0,
            _ => self.sample_rate.unwrap_or(1.0).clamp(0.0, 1.0),
        };
        Some(Metric {
            stat,
            kind,
            value,
            sample_rate,
            tags: BTreeMap::new(),
            plain_tags: Vec::new(),
        })
    }
}

fn range(text: &str) -> Option<Range> {
    let (from, to) = text.split_once('-')?;
    let number = |text: &str| text.parse::<u64>().ok().map(|number| number.min(999) as u16);
    Some(Range {
        from: number(from)?,
        to: number(to)?,
    })
}
