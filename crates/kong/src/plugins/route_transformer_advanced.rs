//! `route-transformer-advanced` of the paid edition: host, port and path by templates.

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::request_rewrite::expression_fault;
use weir_plugins::upstream_address::Config;

/// The definition of `route-transformer-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "route-transformer-advanced",
    priority: 780,
    config: Record::of(&[
        template("path"),
        template("port"),
        template("host"),
        flag("escape_path", false),
    ]),
    checks: &[EntityCheck::AtLeastOneOf(&[
        "config.path",
        "config.port",
        "config.host",
    ])],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "upstream-address",
    translate,
};

const fn template(name: &'static str) -> Field {
    Field::new(name, Kind::String).check(&[Check::Text(check_template)])
}

fn check_template(text: &str) -> Result<(), String> {
    match expression_fault(text) {
        None => Ok(()),
        Some(fault) => Err(format!(
            "value '{text}' is not in supported format, error:{fault}"
        )),
    }
}

#[derive(Deserialize)]
struct Options {
    path: Option<String>,
    port: Option<String>,
    host: Option<String>,
    escape_path: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    Ok(untyped(Config {
        host: options.host,
        port: options.port,
        path: options.path,
        escape_path: options.escape_path,
    }))
}
