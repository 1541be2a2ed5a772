//! `zipkin`: `tracing` of the catalogue, to a Zipkin server.

use super::opentelemetry::answerer;
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, any, number, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::LazyLock;
use weir_plugins::logger::Batch;
use weir_plugins::logger::target::HttpTarget;
use weir_plugins::tracing::propagation::{Format, Inject};
use weir_plugins::tracing::span_config::{Kind, Moment, PhaseSpanOptions, Root, Spans, texts};
use weir_plugins::tracing::{Config, Export, Parent, Sampling, ZipkinTarget};

/// The plugin `zipkin`.
pub struct Zipkin;

#[derive(Deserialize)]
struct Options {
    endpoint: String,
    sample_ratio: f64,
    service_name: String,
    server_addr: Option<String>,
    span_version: u8,
}

impl PluginAdapter for Zipkin {
    fn name(&self) -> &'static str {
        "zipkin"
    }

    fn priority(&self) -> i64 {
        12_011
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("endpoint", text()),
                ("sample_ratio", number().at_least_fraction(0.00001).at_most(1)),
                ("service_name", text().or("APISIX")),
                (
                    "server_addr",
                    text().pattern("^[0-9]{1,3}.[0-9]{1,3}.[0-9]{1,3}.[0-9]{1,3}$"),
                ),
                ("span_version", any().numbers([1, 2]).or(2)),
                ("_meta", meta::shape()),
            ])
            .required(["endpoint", "sample_ratio"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "tracing"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let address: Option<IpAddr> = options.server_addr.and_then(|text| text.parse().ok());
        serde_json::to_value(Config {
            service_name: options.service_name,
            sampling: Sampling {
                ratio: options.sample_ratio,
                parent: Parent::Follow,
            },
            extract: vec![Format::B3],
            inject: vec![Inject::Form(Format::B3)],
            default_format: Format::B3,
            clear: vec!["b3".to_owned()],
            spans: spans(options.span_version),
            export: Some(Export::Zipkin(ZipkinTarget {
                http: HttpTarget {
                    url: options.endpoint,
                    verify_tls: false,
                    ..HttpTarget::default()
                },
                local_endpoint: true,
                local_address: address,
                ..ZipkinTarget::default()
            })),
            batch: Batch {
                max_entries: 1_000,
                delay_ms: 5_000,
                retries: 0,
                metric_name: Some("zipkin_report".to_owned()),
                ..Batch::default()
            },
            ..Config::default()
        })
    }
}

/// The second version has spans of the upstream and of the response, the first of the phases.
fn spans(version: u8) -> Spans {
    use Moment::{Answer, End, Forward, Start};
    let part = |name: &str, from, to| PhaseSpanOptions {
        name: format!("apisix.{name}"),
        from,
        to,
        kind: Kind::Internal,
        attributes: texts(&[]),
        durations: Vec::new(),
        events: Vec::new(),
        leads: name == "proxy",
    };
    Spans {
        root: Root {
            name: "apisix.request".into(),
            attributes: texts(&[
                ("component", "apisix"),
                ("http.method", "$request_method"),
                ("http.url", "$request_uri"),
                ("http.status_code", "$status"),
            ]),
            source: Some(answerer()),
            ..Root::default()
        },
        parts: match version {
            1 => vec![
                part("rewrite", Start, Start),
                part("access", Start, Forward),
                part("proxy", Forward, End),
                part("body_filter", Answer, End),
            ],
            _ => vec![part("proxy", Start, Answer), part("response_span", Answer, End)],
        },
        attempts: None,
    }
}
