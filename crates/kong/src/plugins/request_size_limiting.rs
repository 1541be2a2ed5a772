//! `request-size-limiting`: refuses calls whose body is too large.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::request_size_limit::Config;

/// The definition of `request-size-limiting`.
pub const DEFINITION: Definition = Definition {
    name: "request-size-limiting",
    priority: 951,
    config: Record::of(&[
        Field::new("allowed_payload_size", Kind::Integer).or(Default::Integer(128)),
        Field::new("size_unit", Kind::String)
            .required()
            .or(Default::Text("megabytes"))
            .check(&[Check::OneOf(&["megabytes", "kilobytes", "bytes"])]),
        Field::new("require_content_length", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "request-size-limit",
    translate,
};

#[derive(Deserialize)]
struct RequestSizeLimiting {
    allowed_payload_size: Option<i64>,
    size_unit: String,
    require_content_length: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: RequestSizeLimiting = typed(config)?;
    let unit = match config.size_unit.as_str() {
        "bytes" => 1,
        "kilobytes" => 1 << 10,
        _ => 1 << 20,
    };
    let size = config.allowed_payload_size.unwrap_or(128);
    Ok(untyped(Config {
        max_bytes: Some(u64::try_from(size).unwrap_or(0).saturating_mul(unit)),
        require_length: config.require_content_length,
        ..Config::default()
    }))
}
