//! `prometheus`: counts calls in families of metrics whose names, labels and buckets are data.
//!
//! ```yaml
//! families:
//! - name: shop_calls_total
//!   help: Calls by team and status.
//!   value: calls
//!   labels: [{name: team, value: "${http_x_team ?? none}"}, {name: code, value: $status}]
//! - name: shop_call_milliseconds
//!   help: Time of calls.
//!   value: total_ms
//!   labels: [{name: route, value: $route_name}]
//!   buckets: [5, 50, 500]
//! ```
//! Each worker counts in memory of its own, without a lock; a scrape adds up the counts. Families with the same name,
//! from any instance, are reported as one. Counts outlive a reload.
//!
//! Security: labels may hold what clients send. Their number is limited: beyond [`set::MAX_SERIES`] of a family,
//! calls are counted under the label value `other`, and values are cut after 255 bytes. Series that were not counted
//! for several scrapes make room.

pub mod definition;
mod endpoint;
pub mod family_set;
mod filter;
pub mod registry;
mod render;
#[cfg(test)]
mod tests;
mod worker_series;

pub use endpoint::{EndpointConfig, EndpointText, MetricsEndpoint};
pub use registry::MetricRegistry;
pub use render::{escaped_label, write_gauges};

use definition::Definition;
use filter::CountFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `prometheus`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The exposition that reports the families.
    pub exposition: String,
    /// The families.
    pub families: Vec<Family>,
    /// Whether the exposition also reports the health of targets.
    pub target_health: bool,
}

impl Default for Config {
    fn default() -> Self {
        let label = |name: &str, text: &str| Label {
            name: name.into(),
            value: LabelValue::Text(text.into()),
        };
        let labels = || {
            vec![
                label("service", "$service_name"),
                label("route", "$route_name"),
                label("consumer", "$consumer_name"),
            ]
        };
        let mut counted = labels();
        counted.push(label("code", "$status"));
        Self {
            exposition: "weir".into(),
            families: vec![
                Family {
                    name: "weir_consumer_requests_total".into(),
                    help: "Calls by service, route, consumer and status.".into(),
                    value: Measure::Calls,
                    labels: counted,
                    buckets: Vec::new(),
                    expire_seconds: None,
                },
                Family {
                    name: "weir_consumer_request_milliseconds".into(),
                    help: "Time of calls by service, route and consumer.".into(),
                    value: Measure::TotalMs,
                    labels: labels(),
                    buckets: vec![1, 5, 10, 50, 100, 500, 1_000, 5_000],
                    expire_seconds: None,
                },
            ],
            target_health: false,
        }
    }
}

/// A family of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub help: String,
    /// The value that is counted.
    pub value: Measure,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// Upper bounds of a histogram's buckets, ascending; for durations in milliseconds. Without them it is a counter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<u32>,
    /// How many seconds after its last call a series is still reported; absent: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expire_seconds: Option<u32>,
}

impl Family {
    /// How many milliseconds after its last call a series is still reported.
    fn expire_ms(&self) -> Option<u64> {
        self.expire_seconds.map(|seconds| u64::from(seconds) * 1000)
    }
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: LabelValue,
}

/// A label's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LabelValue {
    /// A text with variables.
    Text(String),
    /// One of two texts, by who has answered.
    Source {
        /// An upstream has.
        upstream: String,
        /// The gateway has.
        gateway: String,
    },
}

/// The value that is counted for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// One.
    Calls,
    /// Bytes received from the client.
    BytesIn,
    /// Bytes sent to the client.
    BytesOut,
    /// Its time.
    TotalMs,
    /// The time until the upstream's response; no value if no upstream was called.
    UpstreamMs,
    /// The rest of its time.
    GatewayMs,
}

/// The plugin `prometheus`.
pub struct Prometheus(Arc<MetricRegistry>);

impl Prometheus {
    /// Counts on this registry.
    pub fn new(registry: Arc<MetricRegistry>) -> Self {
        Self(registry)
    }
}

impl Plugin for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn works_on_streams(&self) -> bool {
        true
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        check(&config)?;
        let set = self.0.set(&Definition::new(config));
        Ok(Arc::new(CountFilter::new(set)))
    }
}

/// The most labels of all families of an instance together.
const MAX_LABELS: usize = 64;

fn check(config: &Config) -> Result<(), Vec<Diagnostic>> {
    let is_name = |name: &str, colons: bool| {
        let is_good = |it: char| it.is_ascii_alphanumeric() || it == '_' || (colons && it == ':');
        !name.is_empty() && name.chars().all(is_good) && !name.starts_with(|it: char| it.is_ascii_digit())
    };
    let mut found = Vec::new();
    for (index, family) in config.families.iter().enumerate() {
        let place = DocPath::root().field("families").index(index);
        let mut tell = |field: &str, message: &str| {
            found.push(Diagnostic::error(place.field(field), message));
        };
        if !is_name(&family.name, true) {
            tell("name", "expected a metric's name: letters, digits, _ and :");
        }
        if !family.labels.iter().all(|label| is_name(&label.name, false)) {
            tell("labels", "expected names of letters, digits and _");
        }
        if family.expire_seconds == Some(0) {
            tell("expire_seconds", "expected at least 1");
        }
        if !family.buckets.is_sorted_by(|a, b| a < b) || family.buckets.len() > 64 {
            tell(
                "buckets",
                "expected at most 64 bounds, each above the one before it",
            );
        }
    }
    let mut faults = ConfigErrors::default();
    faults.extend(found);
    if config
        .families
        .iter()
        .map(|family| family.labels.len())
        .sum::<usize>()
        > MAX_LABELS
    {
        faults.add(
            "families",
            format!("expected at most {MAX_LABELS} labels together"),
        );
    }
    faults.done()
}
