//! `injection-protection`: refuses calls that look like an injection.

use super::enterprise_fields::{MESSAGE, MODE, STATUS, action};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::injection_protection::{Config, Custom, Location, Rule};

/// The definition of `injection-protection`.
pub const DEFINITION: Definition = Definition {
    name: "injection-protection",
    priority: 1007,
    config: Record::of(&[
        Field::new("injection_types", Kind::Set(&TYPE))
            .required()
            .or(Default::Texts(&["sql"])),
        Field::new("locations", Kind::Set(&LOCATION))
            .required()
            .or(Default::Texts(&["path_and_query"])),
        Field::new("custom_injections", Kind::Array(&CUSTOM)),
        MODE,
        STATUS,
        MESSAGE,
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "injection-protection",
    translate,
};

const TYPE: Field = Field::element(Kind::String).check(&[Check::OneOf(&[
    "js",
    "sql",
    "xpath_abbreviated",
    "xpath_extended",
    "ssi",
    "java_exception",
])]);
const LOCATION: Field =
    Field::element(Kind::String).check(&[Check::OneOf(&["headers", "path_and_query", "body"])]);
const CUSTOM: Field = Field::element(Kind::Record(&CUSTOM_FIELDS));
static CUSTOM_FIELDS: Record = Record::of(&[
    Field::new("name", Kind::String).required(),
    Field::new("regex", Kind::String)
        .required()
        .check(&[Check::Text(check_regex)]),
]);

fn check_regex(pattern: &str) -> Result<(), String> {
    match regex::bytes::Regex::new(pattern) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("not a valid regex: {pattern}")),
    }
}

#[derive(Deserialize)]
struct Options {
    injection_types: Vec<Rule>,
    locations: Vec<Location>,
    custom_injections: Option<Vec<Custom>>,
    enforcement_mode: String,
    error_status_code: u16,
    error_message: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    Ok(untyped(Config {
        rules: options.injection_types,
        locations: options.locations,
        custom: options.custom_injections.unwrap_or_default(),
        action: action(&options.enforcement_mode),
        status: options.error_status_code,
        message: options.error_message,
        ..Config::default()
    }))
}
