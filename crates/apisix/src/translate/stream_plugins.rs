//! Plugins of which stream routes need another translation than routes of calls. Those that work alike on both have
//! none here.

use crate::metrics::EXPOSITION;
use crate::plugins::{
    Phases, PluginAdapter, PluginContext, PluginUpstreamRef, Prometheus, TrafficSplit, Warnings, mapping,
    text_label,
};
use crate::schema::Schema;
use serde_json::{Map, Value};
use weir_plugins::prometheus::{Config, Family, Measure};
use weir_plugins::traffic_split;

/// The plugins that work on stream routes as on routes of calls.
const ALIKE: [&str; 3] = ["ip-restriction", "limit-conn", "syslog"];

/// The translation of a plugin on stream routes; `None`: it does not work there.
pub fn stream_mapping(name: &str) -> Option<&'static dyn PluginAdapter> {
    match name {
        "prometheus" => Some(&SessionMetrics),
        "traffic-split" => Some(&SessionSplit),
        name => mapping(name).filter(|_| ALIKE.contains(&name)),
    }
}

/// The name of an upstream's service for sessions. That for calls has another scheme.
pub fn stream_service(name: &str) -> String {
    format!("{name} for streams")
}

/// `prometheus`: counts sessions.
struct SessionMetrics;

impl PluginAdapter for SessionMetrics {
    fn name(&self) -> &'static str {
        Prometheus.name()
    }

    fn priority(&self) -> i64 {
        Prometheus.priority()
    }

    fn phases(&self) -> Phases {
        Phases::default()
    }

    fn shape(&self) -> &'static Schema {
        Prometheus.shape()
    }

    fn plugin(&self) -> &'static str {
        Prometheus.plugin()
    }

    fn translate(
        &self,
        _: &Value,
        context: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let prefix = &context.settings.prometheus.metric_prefix;
        let family = |name: &str, help: &str, labels: &[(&str, &str)]| Family {
            name: format!("{prefix}{name}"),
            help: help.to_owned(),
            value: Measure::Calls,
            labels: labels
                .iter()
                .map(|(name, value)| text_label(name, value))
                .collect(),
            buckets: Vec::new(),
            expire_seconds: None,
        };
        serde_json::to_value(Config {
            exposition: EXPOSITION.to_owned(),
            families: vec![
                family(
                    "stream_connection_total",
                    "Total number of connections handled per stream route in APISIX",
                    &[("route", "$route_id")],
                ),
                family(
                    "stream_status",
                    "Stream sessions per termination status in APISIX",
                    &[
                        ("code", "$status"),
                        ("listen_addr", "$server_addr:$server_port"),
                        ("node", "$upstream_addr"),
                    ],
                ),
            ],
            target_health: true,
        })
    }
}

/// `traffic-split`: sends sessions to upstreams that take sessions.
struct SessionSplit;

impl PluginAdapter for SessionSplit {
    fn name(&self) -> &'static str {
        TrafficSplit.name()
    }

    fn priority(&self) -> i64 {
        TrafficSplit.priority()
    }

    fn phases(&self) -> Phases {
        TrafficSplit.phases()
    }

    fn shape(&self) -> &'static Schema {
        TrafficSplit.shape()
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        TrafficSplit.check(config)
    }

    fn plugin(&self) -> &'static str {
        TrafficSplit.plugin()
    }

    fn upstreams(&self, config: &Value) -> Vec<(String, PluginUpstreamRef)> {
        let upstreams = TrafficSplit.upstreams(config).into_iter();
        upstreams
            .map(|(name, upstream)| (stream_service(&name), upstream))
            .collect()
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let mut config: traffic_split::Config =
            serde_json::from_value(TrafficSplit.translate(config, context, notes)?)?;
        for choice in config.rules.iter_mut().flat_map(|rule| &mut rule.choices) {
            choice.service = choice.service.as_deref().map(stream_service);
        }
        serde_json::to_value(config)
    }
}
