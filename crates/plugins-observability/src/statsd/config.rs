//! Configuration of `statsd`, and its defaults.

use crate::logger::Batch;
use crate::logger::target::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Configuration of `statsd`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The target of metrics: `udp` or `tcp`.
    pub target: Target,
    /// What names of metrics begin with, and a dot; empty: nothing.
    pub prefix: String,
    /// How tags are written.
    pub style: Style,
    /// Tags of all metrics.
    pub tags: BTreeMap<String, String>,
    /// Tags of all metrics that are one text each (`source:weir`), before the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plain_tags: Vec<String>,
    /// The metrics of a call.
    #[schemars(length(min = 1))]
    pub metrics: Vec<Metric>,
    /// Only calls whose status is in one of these ranges are reported; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<Range>,
    /// Times have decimals.
    pub decimals: bool,
    /// How metrics wait to be sent.
    pub batch: Batch,
}

/// How tags are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// No tags are written.
    #[default]
    Plain,
    /// `name:1|c|#tag:value`, as Datadog reads it.
    Dogstatsd,
    /// `name,tag=value:1|c`.
    Influxdb,
    /// `name#tag=value:1|c`.
    Librato,
    /// `name[tag=value]:1|c`.
    Signalfx,
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name.
    #[schemars(length(min = 1))]
    pub stat: String,
    /// Its kind.
    pub kind: Kind,
    /// What it counts or measures.
    #[serde(default)]
    pub value: Measure,
    /// The share of calls that are reported, 0 (none) to 1 (all); the server gets the rate too.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    #[schemars(range(min = 0, max = 1))]
    pub sample_rate: f64,
    /// Tags of this metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Tags of this metric that are one text each, after the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain_tags: Vec<String>,
}

fn all() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) fn is_all(rate: &f64) -> bool {
    *rate >= 1.0
}

/// The kind of a metric, for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `c`.
    Counter,
    /// `g`.
    Gauge,
    /// `ms`.
    Timer,
    /// `h`.
    Histogram,
    /// `m`.
    Meter,
    /// `s`.
    Set,
    /// `d`.
    Distribution,
}

/// The value of a metric.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// 1 for each call.
    #[default]
    Count,
    /// Bytes received from the client.
    RequestBytes,
    /// Bytes sent to the client.
    ResponseBytes,
    /// The call's time, in milliseconds.
    TotalMs,
    /// The upstream's part of that; no value if no upstream was called.
    UpstreamMs,
    /// The gateway's part of it.
    GatewayMs,
    /// This text, for sets.
    Text(String),
}

/// Statuses from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The first.
    pub from: u16,
    /// The last.
    pub to: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Target::default(),
            prefix: "weir".into(),
            style: Style::default(),
            tags: BTreeMap::new(),
            plain_tags: Vec::new(),
            metrics: Vec::new(),
            statuses: Vec::new(),
            decimals: false,
            batch: Batch {
                // Numbers that are late are of no use.
                retries: 2,
                retry_for_ms: 5_000,
                ..Batch::default()
            },
        }
    }
}
