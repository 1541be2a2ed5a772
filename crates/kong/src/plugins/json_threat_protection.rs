//! `json-threat-protection`: refuses JSON bodies that are too deep, too wide or too long.

use super::enterprise_fields::{MESSAGE, MODE, STATUS, action};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::json_threat_protection::Config;

/// The definition of `json-threat-protection`.
pub const DEFINITION: Definition = Definition {
    name: "json-threat-protection",
    priority: 1009,
    config: Record::of(&[
        limit("max_body_size", 8192),
        limit("max_container_depth", -1),
        limit("max_object_entry_count", -1),
        limit("max_object_entry_name_length", -1),
        limit("max_array_element_count", -1),
        limit("max_string_value_length", -1),
        MODE,
        STATUS,
        MESSAGE,
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "json-threat-protection",
    translate,
};

const fn limit(name: &'static str, default: i64) -> Field {
    Field::new(name, Kind::Integer)
        .or(Default::Integer(default))
        .check(&[Check::Between(-1, 2_147_483_648)])
}

#[derive(Deserialize)]
struct Options {
    max_body_size: i64,
    max_container_depth: i64,
    max_object_entry_count: i64,
    max_object_entry_name_length: i64,
    max_array_element_count: i64,
    max_string_value_length: i64,
    enforcement_mode: String,
    error_status_code: u16,
    error_message: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    // Below 0, there is no limit.
    let most = |limit: i64| usize::try_from(limit).ok();
    Ok(untyped(Config {
        max_body_bytes: most(options.max_body_size).map(|most| most.min(64 << 20)),
        max_depth: most(options.max_container_depth),
        max_members: most(options.max_object_entry_count),
        max_name_length: most(options.max_object_entry_name_length),
        max_items: most(options.max_array_element_count),
        max_text_length: most(options.max_string_value_length),
        action: action(&options.enforcement_mode),
        status: options.error_status_code,
        message: options.error_message,
    }))
}
