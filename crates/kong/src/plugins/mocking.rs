//! `mocking`: answers calls with the examples of an OpenAPI document.

use super::enterprise_fields::{base_path, flag};
use super::oas_validation::spec;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::openapi_mock::Config;

/// The definition of `mocking`.
pub const DEFINITION: Definition = Definition {
    name: "mocking",
    priority: -1,
    config: Record::of(&[
        Field::new("api_specification_filename", Kind::String),
        Field::new("api_specification", Kind::String),
        flag("random_delay", false),
        Field::new("max_delay_time", Kind::Number).or(Default::Integer(1)),
        Field::new("min_delay_time", Kind::Number).or(Default::Json("0.001")),
        flag("random_examples", false),
        Field::new(
            "included_status_codes",
            Kind::Array(&Field::element(Kind::Integer).check(&[Check::Between(100, 599)])),
        ),
        flag("random_status_code", false),
        flag("include_base_path", false),
        Field::new("custom_base_path", Kind::String),
    ]),
    checks: &[
        EntityCheck::AtLeastOneOf(&["config.api_specification_filename", "config.api_specification"]),
        EntityCheck::Test(check_delay),
    ],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "openapi-mock",
    translate,
};

fn check_delay(instance: &Fields) -> Result<(), String> {
    let Some(config) = instance.get("config") else {
        return Ok(());
    };
    let number = |field: &str| config[field].as_f64().unwrap_or_default();
    match config["random_delay"] == Value::Bool(true) && number("min_delay_time") >= number("max_delay_time")
    {
        true => Err("Min value cannot be greater than or equal to max value".to_owned()),
        false => Ok(()),
    }
}

#[derive(Deserialize)]
struct Options {
    api_specification: Option<String>,
    random_delay: bool,
    max_delay_time: f64,
    min_delay_time: f64,
    random_examples: bool,
    included_status_codes: Option<Vec<u16>>,
    random_status_code: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let Some(text) = options.api_specification else {
        return Err(UnsupportedOption {
            field: "api_specification_filename",
            what: "a document in a file".to_owned(),
        });
    };
    let millis = |seconds: f64| (seconds * 1000.0).clamp(0.0, 3_600_000.0) as u64;
    Ok(untyped(Config {
        spec: spec(&text, true),
        base_path: base_path(config),
        statuses: options.included_status_codes.unwrap_or_default(),
        random_status: options.random_status_code,
        random_example: options.random_examples,
        delay_ms: options.random_delay.then(|| {
            let least = millis(options.min_delay_time);
            (least, millis(options.max_delay_time).max(least))
        }),
        choice_headers: Some("X-Kong-Mocking-".to_owned()),
        mark: Some("X-Kong-Mocking-Plugin".to_owned()),
    }))
}
