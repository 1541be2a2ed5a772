//! `opentelemetry`: spans of calls over OTLP.
//!
//! Calls are always traced here: there is no switch for the process. `sampling_rate` that is absent is 0.01, as in the
//! original's configuration file.

use super::tracing::base;
use super::unserved::shared::{PROPAGATION, QUEUE, TIMEOUT, URL};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::logger::target::HttpTarget;
use weir_plugins::tracing::span_config::{AttemptSpanOptions, Root, Spans, texts};
use weir_plugins::tracing::{Config, Export, Parent, Sampling};

/// The definition of `opentelemetry`.
pub const DEFINITION: Definition = Definition {
    name: "opentelemetry",
    priority: 14,
    config: CONFIG,
    checks: &[],
    shorthands: &[("endpoint", "", "traces_endpoint")],
    on_consumers: true,
    catalogue_name: "tracing",
    translate,
};

/// The default share of calls that are traced.
const USUAL_RATE: f64 = 0.01;

const CONFIG: Record = Record {
    fields: FIELDS,
    checks: &[EntityCheck::AtLeastOneOf(&["traces_endpoint", "logs_endpoint"])],
};

const FIELDS: &[Field] = &[
    Field::new("traces_endpoint", Kind::String).check(URL),
    Field::new("logs_endpoint", Kind::String).check(URL),
    Field::new(
        "headers",
        Kind::Map {
            keys: &Field::element(Kind::String),
            values: &Field::element(Kind::String),
        },
    ),
    Field::new(
        "resource_attributes",
        Kind::Map {
            keys: &Field::element(Kind::String).required(),
            values: &Field::element(Kind::String).required(),
        },
    ),
    QUEUE.or(Default::Json(r#"{"max_batch_size": 200}"#)),
    Field::new("batch_span_count", Kind::Integer),
    Field::new("batch_flush_delay", Kind::Integer),
    Field::new("connect_timeout", Kind::Integer)
        .or(Default::Integer(1000))
        .check(TIMEOUT),
    Field::new("send_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("read_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("http_response_header_for_traceid", Kind::String),
    Field::new("header_type", Kind::String)
        .or(Default::Text("preserve"))
        .check(&[Check::OneOf(&[
            "preserve",
            "ignore",
            "b3",
            "b3-single",
            "w3c",
            "jaeger",
            "ot",
            "aws",
            "gcp",
            "datadog",
        ])]),
    Field::new("sampling_rate", Kind::Number).check(&[Check::Between(0, 1)]),
    PROPAGATION.or(Default::Json(r#"{"default_format": "w3c"}"#)),
];

#[derive(Deserialize)]
struct Options {
    traces_endpoint: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    resource_attributes: Option<BTreeMap<String, String>>,
    connect_timeout: u64,
    send_timeout: u64,
    read_timeout: u64,
    sampling_rate: Option<f64>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let timeout_ms = options.connect_timeout + options.send_timeout + options.read_timeout;
    let (headers, resource) = (options.headers, options.resource_attributes);
    Ok(untyped(Config {
        service_name: "kong".to_owned(),
        resource: resource
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect(),
        sampling: Sampling {
            ratio: options.sampling_rate.unwrap_or(USUAL_RATE),
            parent: Parent::Limit,
        },
        spans: spans(),
        export: options.traces_endpoint.map(|url| {
            Export::OtlpHttp(HttpTarget {
                url,
                headers: headers.unwrap_or_default(),
                timeout_ms,
                verify_tls: false,
                ..HttpTarget::default()
            })
        }),
        ..base(config)?
    }))
}

fn spans() -> Spans {
    Spans {
        root: Root {
            name: "kong".to_owned(),
            attributes: texts(&[
                ("http.method", "$request_method"),
                ("http.url", "${scheme}://${host}${request_uri}"),
                ("http.host", "$host"),
                ("http.scheme", "$scheme"),
                ("http.flavor", "$protocol_version"),
                ("http.client_ip", "$remote_addr"),
                ("net.peer.ip", "$realip_remote_addr"),
                ("http.status_code", "$status"),
                ("kong.request.id", "$request_id"),
            ]),
            ..Root::default()
        },
        parts: Vec::new(),
        attempts: Some(AttemptSpanOptions {
            name: "kong.balancer".to_owned(),
            number: "try_count".to_owned(),
            address: "net.peer.ip".to_owned(),
            port: "net.peer.port".to_owned(),
            status: "http.status_code".to_owned(),
            status_on_failure_only: true,
            attributes: BTreeMap::new(),
            ..AttemptSpanOptions::default()
        }),
    }
}
