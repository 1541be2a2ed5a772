//! `prometheus`: metrics by service, route and consumer, under the original's names.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::metrics::EXPOSITION;
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::prometheus::{Config, Family, Label, LabelValue, Measure};

/// The definition of `prometheus`.
pub const DEFINITION: Definition = Definition {
    name: "prometheus",
    priority: 13,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "prometheus",
    translate,
};

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("per_consumer", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("status_code_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("ai_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("latency_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("bandwidth_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("upstream_health_metrics", Kind::Boolean).or(Default::Boolean(false)),
];

#[derive(Deserialize)]
struct Options {
    per_consumer: bool,
    status_code_metrics: bool,
    latency_metrics: bool,
    bandwidth_metrics: bool,
    upstream_health_metrics: bool,
}

/// Upper bounds of buckets in milliseconds: of the gateway's own part, and of the other two.
const OWN_BUCKETS: &[u32] = &[
    1, 2, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500, 750, 1000, 3000, 6000,
];
const BUCKETS: &[u32] = &[
    25, 50, 80, 100, 250, 400, 700, 1000, 2000, 5000, 10_000, 30_000, 60_000,
];

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let mut families = Vec::new();
    if options.status_code_metrics {
        families.push(requests(&options));
    }
    if options.latency_metrics {
        families.extend(latencies());
    }
    if options.bandwidth_metrics {
        families.extend(bandwidth(&options));
    }
    Ok(untyped(Config {
        exposition: EXPOSITION.to_owned(),
        families,
        target_health: options.upstream_health_metrics,
    }))
}

fn text(name: &str, value: &str) -> Label {
    Label {
        name: name.to_owned(),
        value: LabelValue::Text(value.to_owned()),
    }
}

/// Labels whose values do not depend on the answer.
fn place() -> [Label; 2] {
    [text("service", "$service_name"), text("route", "$route_name")]
}

/// The label of routes that names their workspace, and that of metrics.
pub const WORKSPACE_LABEL: &str = "workspace";

fn workspace() -> Label {
    text(WORKSPACE_LABEL, "${route_label_workspace ?? default}")
}

fn consumer(options: &Options) -> Label {
    text(
        "consumer",
        if options.per_consumer {
            "$consumer_name"
        } else {
            ""
        },
    )
}

fn requests(options: &Options) -> Family {
    let [service, route] = place();
    let source = Label {
        name: "source".to_owned(),
        value: LabelValue::Source {
            upstream: "service".to_owned(),
            gateway: "kong".to_owned(),
        },
    };
    Family {
        name: "kong_http_requests_total".to_owned(),
        help: "HTTP status codes per consumer/service/route in Kong".to_owned(),
        value: Measure::Calls,
        labels: vec![
            service,
            route,
            text("code", "$status"),
            source,
            workspace(),
            consumer(options),
        ],
        buckets: Vec::new(),
        expire_seconds: None,
    }
}

fn latencies() -> impl Iterator<Item = Family> {
    let all: [(&str, &str, Measure, &[u32]); 3] = [
        (
            "kong_kong_latency_ms",
            "Latency added by Kong and enabled plugins for each service/route in Kong",
            Measure::GatewayMs,
            OWN_BUCKETS,
        ),
        (
            "kong_upstream_latency_ms",
            "Latency added by upstream response for each service/route in Kong",
            Measure::UpstreamMs,
            BUCKETS,
        ),
        (
            "kong_request_latency_ms",
            "Total latency incurred during requests for each service/route in Kong",
            Measure::TotalMs,
            BUCKETS,
        ),
    ];
    all.into_iter().map(|(name, help, value, buckets)| {
        let [service, route] = place();
        Family {
            name: name.to_owned(),
            help: help.to_owned(),
            value,
            labels: vec![service, route, workspace()],
            buckets: buckets.to_vec(),
            expire_seconds: None,
        }
    })
}

fn bandwidth(options: &Options) -> [Family; 2] {
    [("ingress", Measure::BytesIn), ("egress", Measure::BytesOut)].map(|(direction, value)| {
        let [service, route] = place();
        Family {
            name: "kong_bandwidth_bytes".to_owned(),
            help: "Total bandwidth (ingress/egress) throughput in bytes".to_owned(),
            value,
            labels: vec![
                service,
                route,
                text("direction", direction),
                workspace(),
                consumer(options),
            ],
            buckets: Vec::new(),
            expire_seconds: None,
        }
    })
}
