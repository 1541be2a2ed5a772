//! `prometheus`: metrics of calls under the original's names. `public-api` and the status listener decide at which
//! address they are served.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::metrics::EXPOSITION;
use crate::schema::{Schema, array, boolean, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::prometheus::{Config, Family, Label, LabelValue, Measure};

/// The plugin `prometheus`.
pub struct Prometheus;

#[derive(Deserialize)]
struct Options {
    prefer_name: bool,
}

/// The labels that the metadata may have left empty, by metric.
const OF_STATUS: [&str; 10] = [
    "route",
    "matched_uri",
    "matched_host",
    "service",
    "consumer",
    "node",
    "request_type",
    "request_llm_model",
    "llm_model",
    "response_source",
];
const OF_OTHERS: [&str; 7] = [
    "route",
    "service",
    "consumer",
    "node",
    "request_type",
    "request_llm_model",
    "llm_model",
];

/// Metrics of language models, which the metadata may mention; none of them is served.
const OF_MODELS: [&str; 5] = [
    "llm_latency",
    "llm_prompt_tokens",
    "llm_completion_tokens",
    "llm_prompt_tokens_dist",
    "llm_completion_tokens_dist",
];
const OF_MODEL_CACHES: [&str; 4] = [
    "ai_cache_hits_total",
    "ai_cache_misses_total",
    "ai_cache_bypasses_total",
    "ai_cache_embedding_latency",
];
const MODEL_LABELS: [&str; 11] = [
    "route_id",
    "service_id",
    "consumer",
    "node",
    "request_type",
    "request_llm_model",
    "llm_model",
    "route",
    "service",
    "matched_uri",
    "matched_host",
];

/// The metadata's lists of labels, by metric.
fn disabled_labels() -> Schema {
    let of = |labels: &[&'static str]| array(text().options(labels.iter().copied()));
    let mut shape = object([
        ("http_status", of(&OF_STATUS)),
        ("http_latency", of(&OF_OTHERS)),
        ("bandwidth", of(&OF_OTHERS)),
        ("llm_active_connections", of(&MODEL_LABELS)),
    ]);
    for metric in OF_MODELS {
        shape = shape.field(metric, of(&MODEL_LABELS[..7]));
    }
    for metric in OF_MODEL_CACHES {
        shape = shape.field(metric, of(&MODEL_LABELS[..9]));
    }
    shape.closed()
}

impl PluginAdapter for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn priority(&self) -> i64 {
        500
    }

    fn phases(&self) -> Phases {
        Phases {
            response: true,
            ..Phases::default()
        }
    }

    fn yields_to_route(&self) -> bool {
        true
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> =
            LazyLock::new(|| object([("prefer_name", boolean().or(false)), ("_meta", meta::shape())]));
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| object([("disabled_labels", disabled_labels())]));
        Some(&SHAPE)
    }

    fn plugin(&self) -> &'static str {
        "prometheus"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let metadata = context.metadata.get(self.name());
        let disabled = |metric: &str, label: &str| {
            let list = metadata.and_then(|it| it["disabled_labels"][metric].as_array());
            list.is_some_and(|list| list.iter().any(|it| it == label))
        };
        let settings = &context.settings.prometheus;
        let prefix = &settings.metric_prefix;
        let further = |metric: &'static str| {
            let labels = settings.extra_labels(metric);
            labels.map(|(name, value)| text_label(name, value))
        };
        let labels = |metric: &'static str, names: &[&'static str]| -> Vec<Label> {
            let names = names.iter();
            names
                .map(|name| label(name, options.prefer_name, disabled(metric, name)))
                .collect()
        };
        let mut status = vec![text_label("code", "$status")];
        status.extend(labels("http_status", &OF_STATUS));
        status.extend(further("http_status"));
        let mut families = vec![Family {
            name: format!("{prefix}http_status"),
            help: "HTTP status codes per service in APISIX".to_owned(),
            value: Measure::Calls,
            labels: status,
            buckets: Vec::new(),
            expire_seconds: settings.expire_seconds("http_status"),
        }];
        let mut add = |metric: &'static str, help: &str, kinds: &[(&str, Measure)], buckets: &[u32]| {
            for (kind, value) in kinds {
                let mut all = vec![text_label("type", kind)];
                all.extend(labels(metric, &OF_OTHERS));
                all.extend(further(metric));
                families.push(Family {
                    name: format!("{prefix}{metric}"),
                    help: help.to_owned(),
                    value: *value,
                    labels: all,
                    buckets: buckets.to_vec(),
                    expire_seconds: settings.expire_seconds(metric),
                });
            }
        };
        add(
            "http_latency",
            "HTTP request latency in milliseconds per service in APISIX",
            &[
                ("request", Measure::TotalMs),
                ("upstream", Measure::UpstreamMs),
                ("apisix", Measure::GatewayMs),
            ],
            &settings.buckets,
        );
        add(
            "bandwidth",
            "Total bandwidth in bytes consumed per service in APISIX",
            &[("ingress", Measure::BytesIn), ("egress", Measure::BytesOut)],
            &[],
        );
        serde_json::to_value(Config {
            exposition: EXPOSITION.to_owned(),
            families,
            target_health: true,
        })
    }
}

/// A label with a text.
pub fn text_label(name: &str, value: &str) -> Label {
    Label {
        name: name.to_owned(),
        value: LabelValue::Text(value.to_owned()),
    }
}

/// A label that is not disabled. Calls that are not for a language model are of the type `traditional_http`.
fn label(name: &str, prefers_names: bool, is_disabled: bool) -> Label {
    let value = match name {
        _ if is_disabled => "",
        "route" if prefers_names => "$route_name",
        "route" => "$route_id",
        "service" if prefers_names => "$service_name",
        "service" => "$service_id",
        "matched_uri" => "$matched_uri",
        "matched_host" => "$matched_host",
        "consumer" => "$consumer_name",
        "node" => "$balancer_ip",
        "request_type" => "traditional_http",
        "response_source" => {
            return Label {
                name: name.to_owned(),
                value: LabelValue::Source {
                    upstream: "upstream".to_owned(),
                    gateway: "apisix".to_owned(),
                },
            };
        }
        _ => "",
    };
    text_label(name, value)
}
