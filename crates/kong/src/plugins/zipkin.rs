//! `zipkin`: spans of calls to a Zipkin server.

use super::tracing::base;
use super::unserved::shared::{PROPAGATION, QUEUE, TIMEOUT, URL};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::logger::target::HttpTarget;
use weir_plugins::tracing::span_config::{
    self, AttemptSpanOptions, DurationAttribute, Event, Moment, PhaseSpanOptions, Root, Spans, texts,
};
use weir_plugins::tracing::{Config, Export, Parent, Sampling, ZipkinTarget};

/// The definition of `zipkin`.
pub const DEFINITION: Definition = Definition {
    name: "zipkin",
    priority: 100_000,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "tracing",
    translate,
};

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("local_service_name", Kind::String)
        .required()
        .or(Default::Text("kong")),
    Field::new("http_endpoint", Kind::String).check(URL),
    Field::new("sample_ratio", Kind::Number)
        .or(Default::Json("0.001"))
        .check(&[Check::Between(0, 1)]),
    Field::new("default_service_name", Kind::String),
    Field::new("include_credential", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("traceid_byte_count", Kind::Integer)
        .required()
        .or(Default::Integer(16))
        .check(&[Check::OneOfNumbers(&[8, 16])]),
    Field::new("header_type", Kind::String)
        .required()
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
            "datadog",
            "gcp",
        ])]),
    Field::new("default_header_type", Kind::String)
        .required()
        .or(Default::Text("b3"))
        .check(&[Check::OneOf(&[
            "b3",
            "b3-single",
            "w3c",
            "jaeger",
            "ot",
            "aws",
            "datadog",
            "gcp",
        ])]),
    Field::new("tags_header", Kind::String)
        .required()
        .or(Default::Text("Zipkin-Tags")),
    Field::new("static_tags", Kind::Array(&STATIC_TAG)),
    Field::new("http_span_name", Kind::String)
        .required()
        .or(Default::Text("method"))
        .check(&[Check::OneOf(&["method", "method_path"])]),
    Field::new("connect_timeout", Kind::Integer)
        .or(Default::Integer(2000))
        .check(TIMEOUT),
    Field::new("send_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("read_timeout", Kind::Integer)
        .or(Default::Integer(5000))
        .check(TIMEOUT),
    Field::new("http_response_header_for_traceid", Kind::String),
    Field::new("phase_duration_flavor", Kind::String)
        .required()
        .or(Default::Text("annotations"))
        .check(&[Check::OneOf(&["annotations", "tags"])]),
    QUEUE,
    PROPAGATION.or(Default::Json(r#"{"default_format": "b3"}"#)),
];

const STATIC_TAG: Field = Field::element(Kind::Record(&STATIC_TAGS));

static STATIC_TAGS: Record = Record::of(&[
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::NotOneOf(&[
            "error",
            "http.method",
            "http.path",
            "http.status_code",
            "kong.balancer.state",
            "kong.balancer.try",
            "kong.consumer",
            "kong.credential",
            "kong.node.id",
            "kong.route",
            "kong.service",
            "lc",
            "peer.hostname",
        ])]),
    Field::new("value", Kind::String).required(),
]);

#[derive(Deserialize)]
struct Options {
    local_service_name: String,
    http_endpoint: Option<String>,
    sample_ratio: f64,
    default_service_name: Option<String>,
    include_credential: bool,
    traceid_byte_count: u8,
    tags_header: String,
    static_tags: Option<Vec<Tag>>,
    http_span_name: String,
    connect_timeout: u64,
    send_timeout: u64,
    read_timeout: u64,
    phase_duration_flavor: String,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    value: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let is_short = options.traceid_byte_count == 8;
    let timeout_ms = options.connect_timeout + options.send_timeout + options.read_timeout;
    let spans = spans(&options);
    Ok(untyped(Config {
        service_name: options.local_service_name,
        sampling: Sampling {
            ratio: options.sample_ratio,
            parent: Parent::Follow,
        },
        short_ids: is_short,
        share_spans: true,
        tags_header: Some(options.tags_header),
        spans,
        export: options.http_endpoint.map(|url| {
            Export::Zipkin(ZipkinTarget {
                http: HttpTarget {
                    url,
                    timeout_ms,
                    verify_tls: false,
                    ..HttpTarget::default()
                },
                default_service: options.default_service_name,
                short_ids: is_short,
                ..ZipkinTarget::default()
            })
        }),
        ..base(config)?
    }))
}

/// The call, its part after the access phase (`(proxy)`), and each attempt.
fn spans(options: &Options) -> Spans {
    let name = match options.http_span_name.as_str() {
        "method_path" => "$request_method $uri",
        _ => "$request_method",
    };
    let behind = texts(&[
        ("kong.service", "$service_name"),
        ("kong.service_name", "$service_name"),
        ("kong.route", "$route_name"),
        ("kong.route_name", "$route_name"),
    ]);
    let is_annotated = options.phase_duration_flavor == "annotations";
    let events = |events: &[(&str, Moment)]| -> Vec<Event> {
        let events = events.iter().filter(|_| is_annotated);
        events
            .map(|(name, at)| Event {
                name: (*name).to_owned(),
                at: *at,
            })
            .collect()
    };
    let durations = |durations: &[(&str, Moment, Moment)]| -> Vec<DurationAttribute> {
        let durations = durations.iter().filter(|_| !is_annotated);
        durations
            .map(|(phase, from, to)| DurationAttribute {
                name: format!("kong.{phase}.duration_ms"),
                from: *from,
                to: *to,
            })
            .collect()
    };
    use Moment::{Answer, End, Forward, Start};
    Spans {
        root: Root {
            name: name.to_owned(),
            attributes: root_attributes(options),
            fixed: (options.static_tags.iter().flatten())
                .map(|tag| (tag.name.clone(), tag.value.clone()))
                .collect(),
            durations: durations(&[("rewrite", Start, Start)]),
            events: events(&[("krs", Start), ("krf", Start)]),
            ..Root::default()
        },
        parts: vec![PhaseSpanOptions {
            name: format!("{name} (proxy)"),
            from: Start,
            to: End,
            kind: span_config::Kind::Client,
            attributes: behind.clone(),
            durations: durations(&[
                ("access", Start, Forward),
                ("header_filter", Answer, Answer),
                ("body_filter", Answer, End),
            ]),
            events: events(&[
                ("kas", Start),
                ("kaf", Forward),
                ("khs", Answer),
                ("khf", Answer),
                ("kbs", Answer),
                ("kbf", End),
            ]),
            leads: true,
        }],
        attempts: Some(AttemptSpanOptions {
            name: format!("{name} (balancer try"),
            number_in_name: true,
            number: "kong.balancer.try".to_owned(),
            address: String::new(),
            port: String::new(),
            status: "http.status_code".to_owned(),
            status_on_failure_only: true,
            failure: Some("error".to_owned()),
            attributes: behind,
            leads: false,
        }),
    }
}

fn root_attributes(options: &Options) -> BTreeMap<String, String> {
    let mut attributes = texts(&[
        ("lc", "kong"),
        ("http.method", "$request_method"),
        ("http.host", "$host"),
        ("http.path", "$uri"),
        ("http.protocol", "$server_protocol"),
        ("http.status_code", "$status"),
        ("kong.consumer", "$consumer_id"),
    ]);
    if options.include_credential {
        attributes.insert("kong.credential".to_owned(), "$credential_id".to_owned());
    }
    attributes
}
