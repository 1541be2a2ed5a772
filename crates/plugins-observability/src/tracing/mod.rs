//! `tracing`: gives every call a context in a distributed trace, forwards it to upstreams, and sends spans of sampled
//! calls to a collector.
//!
//! ```yaml
//! service_name: edge
//! sampling: {ratio: 0.01, parent: follow}
//! extract: [w3c, b3]
//! inject: [preserve]
//! export: {otlp_http: {url: "http://127.0.0.1:4318/v1/traces"}}
//! ```
//!
//! A call that is not sampled costs the reading and writing of a header. Spans wait in the queue of log entries, which
//! is bounded in number and bytes; `weir_log_entries_total` counts the calls that were exported, and those that were not.
//!
//! Security: ids of callers are trusted, because that is how tracing works. If callers are not trusted, read nothing
//! (`extract: []`) and let the ratio decide (`parent: ignore`): otherwise callers decide how much is exported.
//! Attributes contain what they name; queries and headers are exported only if the configuration asks for them.

mod attributes;
mod export;
mod filter;
mod otlp;
pub mod propagation;
mod sampling;
mod span;
pub mod span_config;
#[cfg(test)]
mod tests;
mod zipkin;

use crate::logger::{Batch, MAX_PENDING_BYTES};
pub use export::{Export, GrpcTarget, ZipkinTarget};
use filter::TraceFilter;
use propagation::{Format, Inject};
pub use sampling::{Parent, Sampling};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use span::Builder;
use span_config::Spans;
use std::sync::{Arc, OnceLock};
use uuid::Uuid;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `tracing`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The gateway's name in traces.
    pub service_name: String,
    /// Further attributes of the gateway: texts, numbers, `true` and `false`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub resource: Map<String, Value>,
    /// The resource attribute with the gateway's host name; `null`: none.
    pub host_attribute: Option<String>,
    /// Which calls are exported.
    pub sampling: Sampling,
    /// The formats in which a caller's trace context is looked for, in order; the first one found counts.
    pub extract: Vec<Format>,
    /// The formats in which the trace context is sent to upstreams.
    pub inject: Vec<Inject>,
    /// The format for `preserve` if the caller sent none.
    pub default_format: Format,
    /// Headers of the request that upstreams do not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<String>,
    /// A request header with 32 hexadecimal digits that a new trace takes its id from. A call without it gives the
    /// trace its own id, one with anything else gets a random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_header: Option<String>,
    /// Ids of new traces have 64 bits.
    pub short_ids: bool,
    /// Whether the gateway's span takes over the caller's, if the caller sends both its span and that span's parent
    /// (B3, Jaeger).
    pub share_spans: bool,
    /// A response header for the trace's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_header: Option<String>,
    /// The spans of a call.
    pub spans: Spans,
    /// Request headers that become attributes of the call's span; a `*` at the end stands for anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header_attributes: Vec<String>,
    /// A request header with further attributes: `name=value; name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags_header: Option<String>,
    /// Where spans go; `null`: the trace context is forwarded, and nothing is exported.
    pub export: Option<Export>,
    /// How calls wait to be exported.
    pub batch: Batch,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            service_name: "weir".into(),
            resource: Map::new(),
            host_attribute: Some("host.name".into()),
            sampling: Sampling::default(),
            extract: vec![Format::W3c, Format::B3],
            inject: vec![Inject::Preserve],
            default_format: Format::W3c,
            clear: Vec::new(),
            id_header: None,
            short_ids: false,
            share_spans: false,
            echo_header: None,
            spans: Spans::default(),
            header_attributes: Vec::new(),
            tags_header: None,
            export: None,
            batch: Batch::default(),
        }
    }
}

/// The plugin `tracing`.
pub struct Tracing {
    /// Tells this process from others of its name.
    instance: String,
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            instance: Uuid::new_v4().to_string(),
        }
    }
}

impl Tracing {
    /// The attributes of the gateway; what the configuration says comes last.
    fn resource(&self, config: &Config) -> Vec<(String, attributes::Value)> {
        let text = |name: &str, value: &str| (name.to_owned(), attributes::Value::Text(value.to_owned()));
        let mut resource = vec![
            text("service.name", &config.service_name),
            text("service.instance.id", &self.instance),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ];
        for (name, value) in &config.resource {
            resource.retain(|(known, _)| known != name);
            let value = match value {
                Value::Bool(flag) => attributes::Value::Flag(*flag),
                Value::Number(number) => match number.as_i64() {
                    Some(whole) => attributes::Value::Whole(whole),
                    None => attributes::Value::Fraction(number.as_f64().unwrap_or_default()),
                },
                Value::String(text) => attributes::Value::Text(text.clone()),
                Value::Null | Value::Array(_) | Value::Object(_) => continue,
            };
            resource.push((name.clone(), value));
        }
        resource
    }
}

impl Plugin for Tracing {
    fn name(&self) -> &'static str {
        "tracing"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        check(&config)?;
        let destination = config
            .export
            .as_ref()
            .map(|export| export.destination(&config.batch));
        let destination = destination.transpose().map_err(|(kind, field, message)| {
            let path = DocPath::root().field("export").field(kind).field(field);
            vec![Diagnostic::error(path, message)]
        })?;
        let bytes = |name: &Option<String>| name.clone().map(String::into_bytes);
        Ok(Arc::new(TraceFilter {
            waiting_name: config.batch.waiting_name(),
            sampler: config.sampling.sampler(),
            resource: self.resource(&config),
            has_leader: config.spans.has_leader(),
            builder: Builder::new(
                config.spans,
                &config.header_attributes,
                config.tags_header.as_ref(),
            ),
            extract: config.extract,
            inject: config.inject,
            default_format: config.default_format,
            clear: config.clear.into_iter().map(String::into_bytes).collect(),
            id_header: bytes(&config.id_header),
            short_ids: config.short_ids,
            shares_spans: config.share_spans,
            echo: bytes(&config.echo_header),
            service: config.service_name,
            host_attribute: config.host_attribute,
            destination,
            target: OnceLock::new(),
        }))
    }
}

fn check(config: &Config) -> Result<(), Vec<Diagnostic>> {
    let mut faults = ConfigErrors::default();
    if !config.sampling.is_good() {
        let path = DocPath::root().field("sampling").field("ratio");
        faults.extend(vec![Diagnostic::error(path, "expected a share from 0 to 1")]);
    }
    faults.check_names("clear", &config.clear);
    for (field, name) in [
        ("id_header", &config.id_header),
        ("echo_header", &config.echo_header),
        ("tags_header", &config.tags_header),
    ] {
        if let Some(name) = name {
            faults.check_name(field, name);
        }
    }
    let is_plain = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    if !config.resource.values().all(is_plain) {
        faults.add("resource", "expected texts, numbers, true or false");
    }
    if config.batch.max_pending_bytes > MAX_PENDING_BYTES {
        faults.add(
            "batch",
            format!("expected at most {MAX_PENDING_BYTES} bytes that wait"),
        );
    }
    faults.done()
}
