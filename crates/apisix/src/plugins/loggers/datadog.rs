//! `datadog`: sends numbers about calls to a Datadog agent, whose address is in the metadata. `statsd` of the
//! catalogue.

use super::{BatchOptions, PHASES, with_batches};
use crate::plugins::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::target::{Target, UdpTarget};
use weir_plugins::statsd::{Config, Kind, Measure, Metric, Style};

/// The plugin `datadog`.
pub struct Datadog;

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    constant_tags: Value,
    include_path: bool,
    include_method: bool,
}

#[derive(Deserialize)]
#[serde(default)]
struct Metadata {
    host: String,
    port: u16,
    namespace: String,
    constant_tags: Vec<String>,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8125,
            namespace: "apisix".to_owned(),
            constant_tags: vec!["source:apisix".to_owned()],
        }
    }
}

/// Names and values of tags that are the same for all calls.
fn constant_tags() -> Schema {
    array(
        text()
            .pattern(r"^[\p{L}][\p{L}\p{N}_.:/-]*(?<!:)$")
            .length(1, 200),
    )
}

impl PluginAdapter for Datadog {
    fn name(&self) -> &'static str {
        "datadog"
    }

    fn priority(&self) -> i64 {
        495
    }

    fn phases(&self) -> Phases {
        PHASES
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("prefer_name", boolean().or(true)),
                ("include_path", boolean().or(false)),
                ("include_method", boolean().or(false)),
                ("constant_tags", constant_tags().or(json!([]))),
                ("_meta", meta::shape()),
            ]);
            with_batches(shape, "datadog")
        });
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("host", text().or("127.0.0.1")),
                ("port", integer().at_least(0).or(8125)),
                ("namespace", text().or("apisix")),
                ("constant_tags", constant_tags().or(json!(["source:apisix"]))),
                ("max_pending_entries", integer().at_least(1).or(8192)),
            ])
        });
        Some(&SHAPE)
    }

    fn plugin(&self) -> &'static str {
        "statsd"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let metadata: Metadata = match context.metadata.get(self.name()) {
            Some(metadata) => read(metadata)?,
            None => Metadata::default(),
        };
        let own = options.constant_tags.as_array().into_iter().flatten();
        let own = own.filter_map(Value::as_str).map(str::to_owned);
        let wanted = [
            ("balancer_ip", "{upstream}", true),
            ("consumer", "{username}", true),
            ("method", "{method}", options.include_method),
            ("path", "{path}", options.include_path),
            ("response_status", "{status}", true),
            ("route_name", "{route}", true),
            ("scheme", "{scheme}", true),
            ("service_name", "{service}", true),
        ];
        let tags = wanted.into_iter().filter(|(.., is_wanted)| *is_wanted);
        let metric = |stat: &str, kind, value| Metric {
            stat: stat.to_owned(),
            kind,
            value,
            sample_rate: 1.0,
            tags: BTreeMap::new(),
            plain_tags: Vec::new(),
        };
        serde_json::to_value(Config {
            target: Target::Udp(UdpTarget {
                host: metadata.host,
                port: metadata.port,
                // Each metric is a datagram.
                line_bytes: Some(0),
            }),
            prefix: metadata.namespace,
            style: Style::Dogstatsd,
            tags: tags
                .map(|(name, fact, _)| (name.to_owned(), fact.to_owned()))
                .collect(),
            plain_tags: metadata.constant_tags.into_iter().chain(own).collect(),
            metrics: vec![
                metric("request.counter", Kind::Counter, Measure::Count),
                metric("request.latency", Kind::Histogram, Measure::TotalMs),
                metric("upstream.latency", Kind::Histogram, Measure::UpstreamMs),
                metric("apisix.latency", Kind::Histogram, Measure::GatewayMs),
                metric("ingress.size", Kind::Timer, Measure::RequestBytes),
                metric("egress.size", Kind::Timer, Measure::ResponseBytes),
            ],
            decimals: true,
            batch: read::<BatchOptions>(config)?.batch(),
            ..Config::default()
        })
    }
}
