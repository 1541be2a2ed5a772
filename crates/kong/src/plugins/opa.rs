//! `opa`: asks an Open Policy Agent whether a call may go on.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::opa::{BodyForm, Config, InputForm};

/// What it is in the catalogue.
pub const CATALOGUE_NAME: &str = "opa";

/// The definition of `opa`.
pub const DEFINITION: Definition = Definition {
    name: "opa",
    priority: 920,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: CATALOGUE_NAME,
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("opa_protocol", Kind::String)
        .or(Default::Text("http"))
        .check(&[Check::OneOf(&["http", "https"])]),
    Field::new("opa_host", Kind::String)
        .required()
        .or(Default::Text("localhost")),
    Field::new("opa_port", Kind::Integer)
        .required()
        .or(Default::Integer(8181))
        .check(&[Check::Between(0, 65_535)]),
    Field::new("opa_path", Kind::String).required(),
    flag("include_service_in_opa_input", false),
    flag("include_route_in_opa_input", false),
    flag("include_consumer_in_opa_input", false),
    flag("include_body_in_opa_input", false),
    flag("include_parsed_json_body_in_opa_input", false),
    flag("include_uri_captures_in_opa_input", false),
    flag("ssl_verify", true),
];

const fn flag(name: &'static str, default: bool) -> Field {
    Field::new(name, Kind::Boolean)
        .required()
        .or(Default::Boolean(default))
}

#[derive(Deserialize)]
struct Opa {
    opa_protocol: String,
    opa_host: String,
    opa_port: u16,
    opa_path: String,
    include_service_in_opa_input: bool,
    include_route_in_opa_input: bool,
    include_consumer_in_opa_input: bool,
    include_body_in_opa_input: bool,
    include_parsed_json_body_in_opa_input: bool,
    include_uri_captures_in_opa_input: bool,
    ssl_verify: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Opa = typed(config)?;
    let path = config.opa_path.trim_start_matches('/');
    let url = format!(
        "{}://{}:{}/{path}",
        config.opa_protocol, config.opa_host, config.opa_port
    );
    let body = match (
        config.include_parsed_json_body_in_opa_input,
        config.include_body_in_opa_input,
    ) {
        (true, _) => BodyForm::Json,
        (false, true) => BodyForm::Text,
        (false, false) => BodyForm::None,
    };
    Ok(untyped(Config {
        input: InputForm::Nested,
        body,
        route: config.include_route_in_opa_input,
        service: config.include_service_in_opa_input,
        consumer: config.include_consumer_in_opa_input,
        captures: config.include_uri_captures_in_opa_input,
        all_headers: true,
        failure_status: 500,
        invalid_status: 500,
        http: HttpRules {
            timeout_ms: 60_000,
            verify_tls: config.ssl_verify,
            ..HttpRules::default()
        },
        ..Config::new(url)
    }))
}
