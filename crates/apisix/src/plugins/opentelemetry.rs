//! `opentelemetry`: `tracing` of the catalogue, to a collector that the plugin's metadata names.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, integer, number, object, one_of, text};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Batch;
use weir_plugins::logger::target::HttpTarget;
use weir_plugins::tracing::propagation::{Format, Inject};
use weir_plugins::tracing::span_config::{Root, Source, Spans, texts};
use weir_plugins::tracing::{Config, Export, Parent, Sampling};

/// The plugin `opentelemetry`.
pub struct Opentelemetry;

#[derive(Deserialize)]
struct Options {
    sampler: Sampler,
    #[serde(default)]
    additional_attributes: Vec<String>,
    #[serde(default)]
    additional_header_prefix_attributes: Vec<String>,
}

#[derive(Deserialize)]
struct Sampler {
    name: String,
    #[serde(default)]
    options: SamplerOptions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SamplerOptions {
    fraction: f64,
    root: Option<RootSampler>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RootSampler {
    name: String,
    options: Fraction,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Fraction {
    fraction: f64,
}

impl Sampler {
    fn sampling(&self) -> Sampling {
        let ratio = |name: &str, fraction: f64| match name {
            "always_on" => 1.0,
            "trace_id_ratio" => fraction.clamp(0.0, 1.0),
            _ => 0.0,
        };
        match self.name.as_str() {
            "parent_base" => {
                let root = self.options.root.as_ref();
                Sampling {
                    ratio: root.map_or(0.0, |root| ratio(&root.name, root.options.fraction)),
                    parent: Parent::Follow,
                }
            }
            name => Sampling {
                ratio: ratio(name, self.options.fraction),
                parent: Parent::Ignore,
            },
        }
    }
}

/// The plugin's metadata, for all of its instances.
#[derive(Deserialize)]
#[serde(default)]
struct Metadata {
    trace_id_source: String,
    resource: Map<String, Value>,
    collector: Collector,
    batch_span_processor: Processor,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            trace_id_source: "random".into(),
            resource: Map::new(),
            collector: Collector::default(),
            batch_span_processor: Processor::default(),
        }
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Collector {
    address: String,
    request_timeout: u64,
    request_headers: Map<String, Value>,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:4318".into(),
            request_timeout: 3,
            request_headers: Map::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Processor {
    max_queue_size: usize,
    batch_timeout: f64,
    inactive_timeout: f64,
    max_export_batch_size: usize,
}

impl Default for Processor {
    fn default() -> Self {
        Self {
            max_queue_size: 2048,
            batch_timeout: 5.0,
            inactive_timeout: 2.0,
            max_export_batch_size: 256,
        }
    }
}

impl Metadata {
    fn export(&self) -> Export {
        let address = &self.collector.address;
        let scheme = if address.contains("://") { "" } else { "http://" };
        let headers = self.collector.request_headers.iter();
        Export::OtlpHttp(HttpTarget {
            url: format!("{scheme}{address}/v1/traces"),
            timeout_ms: self.collector.request_timeout.saturating_mul(1000),
            headers: headers
                .map(|(name, value)| {
                    (
                        name.clone(),
                        value.as_str().map_or(value.to_string(), str::to_owned),
                    )
                })
                .collect::<BTreeMap<_, _>>(),
            verify_tls: false,
            ..HttpTarget::default()
        })
    }

    fn batch(&self) -> Batch {
        let processor = &self.batch_span_processor;
        let delay = processor.batch_timeout.min(processor.inactive_timeout);
        Batch {
            max_entries: processor.max_export_batch_size.max(1),
            delay_ms: (delay.max(0.0) * 1000.0) as u64,
            max_pending: processor.max_queue_size.max(1),
            ..Batch::default()
        }
    }

    /// Numbers are written as fractions.
    fn resource(&self) -> Map<String, Value> {
        let fraction = |value: &Value| value.as_f64().map(Value::from).unwrap_or_else(|| value.clone());
        let resource = self.resource.iter();
        resource
            .map(|(name, value)| (name.clone(), fraction(value)))
            .collect()
    }
}

impl PluginAdapter for Opentelemetry {
    fn name(&self) -> &'static str {
        "opentelemetry"
    }

    fn priority(&self) -> i64 {
        12_009
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let names = || array(text().longer(1));
            object([
                ("sampler", sampler()),
                ("additional_attributes", names()),
                ("additional_header_prefix_attributes", names()),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(metadata);
        Some(&SHAPE)
    }

    fn plugin(&self) -> &'static str {
        "tracing"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let metadata = context.metadata.get(self.name());
        let Some(metadata) = metadata.or(context.settings.opentelemetry.as_ref()) else {
            notes.warn(
                "sampler",
                "plugin_metadata is required for opentelemetry plugin to working properly: no call is traced",
            );
            return serde_json::to_value(Config {
                extract: Vec::new(),
                inject: Vec::new(),
                ..Config::default()
            });
        };
        let metadata: Metadata = read(metadata)?;
        let has_ids = metadata.trace_id_source == "x-request-id";
        serde_json::to_value(Config {
            service_name: "APISIX".into(),
            resource: metadata.resource(),
            host_attribute: Some("hostname".into()),
            sampling: options.sampler.sampling(),
            extract: vec![Format::W3c],
            inject: vec![Inject::Form(Format::W3c)],
            id_header: has_ids.then(|| "X-Request-Id".to_owned()),
            spans: spans(&options.additional_attributes),
            header_attributes: options.additional_header_prefix_attributes,
            export: Some(metadata.export()),
            batch: metadata.batch(),
            ..Config::default()
        })
    }
}

/// The attribute that says who has answered.
pub(super) fn answerer() -> Source {
    Source {
        name: "apisix.response_source".into(),
        gateway: "apisix".into(),
        upstream: "upstream".into(),
    }
}

/// One span a call.
fn spans(additional: &[String]) -> Spans {
    let mut attributes = texts(&[
        ("net.host.name", "$host"),
        ("http.method", "$request_method"),
        ("http.scheme", "$scheme"),
        ("http.target", "$request_uri"),
        ("http.user_agent", "$http_user_agent"),
        ("http.request.method", "$request_method"),
        ("url.scheme", "$scheme"),
        ("url.path", "$uri"),
        ("user_agent.original", "$http_user_agent"),
        ("apisix.route_id", "$route_id"),
        ("apisix.route_name", "$route_name"),
        ("http.route", "$matched_uri"),
        ("apisix.service_id", "$service_id"),
        ("apisix.service_name", "$service_name"),
        ("http.status_code", "$status"),
        ("http.response.status_code", "$status"),
    ]);
    let additional = additional.iter();
    attributes.extend(additional.map(|name| (name.clone(), format!("${{{name}}}"))));
    Spans {
        root: Root {
            name: "$request_method $matched_uri".into(),
            attributes,
            source: Some(answerer()),
            ..Root::default()
        },
        parts: Vec::new(),
        attempts: None,
    }
}

fn sampler() -> Schema {
    const NAMES: [&str; 4] = ["always_on", "always_off", "trace_id_ratio", "parent_base"];
    let [on, off, ratio, _] = NAMES;
    let fraction = || ("fraction", number().or(0));
    let root = object([
        ("name", text().options([on, off, ratio]).or(off)),
        ("options", object([fraction()]).or(json!({"fraction": 0}))),
    ]);
    let root = root.or(json!({"name": off, "options": {"fraction": 0}}));
    let options = object([fraction(), ("root", root)]).or(json!({"fraction": 0, "root": {"name": off}}));
    let usual = json!({"name": off, "options": {"fraction": 0, "root": {"name": off}}});
    object([("name", text().options(NAMES).or(off)), ("options", options)]).or(usual)
}

fn metadata() -> Schema {
    let plain = || object([]).each_field(".*", one_of([boolean(), number(), text()]));
    let collector = object([
        ("address", text().or("127.0.0.1:4318")),
        ("request_timeout", integer().or(3)),
        ("request_headers", plain()),
    ]);
    let processor = object([
        ("drop_on_queue_full", boolean()),
        ("max_queue_size", integer()),
        ("batch_timeout", number()),
        ("inactive_timeout", number()),
        ("max_export_batch_size", integer()),
    ]);
    object([
        (
            "trace_id_source",
            text().options(["x-request-id", "random"]).or("random"),
        ),
        ("resource", plain()),
        (
            "collector",
            collector.or(json!({"address": "127.0.0.1:4318", "request_timeout": 3})),
        ),
        ("batch_span_processor", processor.or(json!({}))),
        ("set_ngx_var", boolean().or(false)),
    ])
}
