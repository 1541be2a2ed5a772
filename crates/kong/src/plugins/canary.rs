//! `canary` of the paid edition: a share of the calls goes elsewhere.

use super::acl::GROUPS;
use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Fields, Kind, Record, Requirement, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::canary::{CallerKey, Config, Groups, Ramp};

/// The definition of `canary`.
pub const DEFINITION: Definition = Definition {
    name: "canary",
    priority: 13,
    config: Record::of(&[
        Field::new("start", Kind::Number),
        Field::new("hash", Kind::String)
            .or(Default::Text("consumer"))
            .check(&[Check::OneOf(&[
                "consumer", "ip", "none", "allow", "deny", "header",
            ])]),
        Field::new("hash_header", Kind::String).check(&[Check::Text(text::header_name)]),
        Field::new("duration", Kind::Number)
            .or(Default::Integer(3600))
            .check(&[Check::Above(0)]),
        Field::new("steps", Kind::Number)
            .or(Default::Integer(1000))
            .check(&[Check::Above(1)]),
        Field::new("percentage", Kind::Number).check(&[Check::Between(0, 100)]),
        Field::new("upstream_host", Kind::String).check(&[Check::Text(text::host)]),
        Field::new("upstream_port", Kind::Integer).check(&[Check::Between(0, 65_535)]),
        Field::new("upstream_uri", Kind::String),
        flag("upstream_fallback", false).required(),
        Field::new("groups", Kind::Array(&GROUP)),
        Field::new("canary_by_header_name", Kind::String).check(&[Check::Text(text::header_name)]),
    ]),
    checks: &[
        EntityCheck::AtLeastOneOf(&[
            "config.upstream_uri",
            "config.upstream_host",
            "config.upstream_port",
        ]),
        EntityCheck::When {
            field: "config.hash",
            is: FieldTest::Equal("header"),
            then: "config.hash_header",
            must: Requirement::BeGiven,
        },
        EntityCheck::Test(check_share),
    ],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "canary",
    translate,
};

const GROUP: Field = Field::element(Kind::String);

/// Without a share, nothing would ever go elsewhere.
fn check_share(plugin: &Fields) -> Result<(), String> {
    let config = plugin.get("config").unwrap_or(&Value::Null);
    let is_given = |field: &str| config.get(field).is_some_and(|value| !value.is_null());
    let by_group = matches!(config.get("hash").and_then(Value::as_str), Some("allow" | "deny"));
    match by_group || is_given("percentage") || is_given("start") {
        true => Ok(()),
        false => {
            Err("at least one of these fields must be non-empty: 'config.percentage', 'config.start'".into())
        }
    }
}

#[derive(Deserialize)]
struct Options {
    start: Option<f64>,
    hash: String,
    hash_header: Option<String>,
    duration: f64,
    steps: f64,
    percentage: Option<f64>,
    upstream_host: Option<String>,
    upstream_port: Option<u16>,
    upstream_uri: Option<String>,
    upstream_fallback: bool,
    groups: Option<Vec<String>>,
    canary_by_header_name: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let by_group = matches!(options.hash.as_str(), "allow" | "deny");
    Ok(untyped(Config {
        percent: options.percentage,
        ramp: options.start.map(|start_s| Ramp {
            start_s,
            duration_s: options.duration,
        }),
        groups: by_group.then(|| Groups {
            label: GROUPS.to_owned(),
            values: options.groups.unwrap_or_default(),
            others: options.hash == "deny",
        }),
        by: match options.hash.as_str() {
            "ip" => CallerKey::Ip,
            "none" => CallerKey::Random,
            "header" => CallerKey::Header(options.hash_header.unwrap_or_default()),
            _ => CallerKey::Consumer,
        },
        steps: options.steps.clamp(1.0, 1_000_000.0) as u32,
        decided_by_header: options.canary_by_header_name,
        upstream: options.upstream_host.clone(),
        host: options.upstream_host,
        port: options.upstream_port.filter(|port| *port != 0),
        path: options.upstream_uri.map(|path| match path.starts_with('/') {
            true => path,
            false => format!("/{path}"),
        }),
        only_if_healthy: options.upstream_fallback,
    }))
}
