//! `proxy-cache-advanced` of the paid edition: `proxy-cache` with a Redis as a further store, which is not available yet.

use super::paid::flag;
use super::proxy_cache::{
    CACHE_CONTROL, CONTENT_TYPES, IGNORE_CASE, MEMORY, METHODS, SHOWN, STATUSES, STORAGE_TTL, TTL,
    VARY_HEADERS, VARY_QUERY, check_dictionary, config_of,
};
use super::redis::{REDIS, SHORTHANDS};
use super::{Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{Check, EntityCheck, Field, Kind, Record};
use serde_json::Value;

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "proxy-cache-advanced",
    priority: 100,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(check_dictionary)],
    shorthands: SHORTHANDS,
    on_consumers: true,
    catalogue_name: "proxy-cache",
    translate,
};

const FIELDS: &[Field] = &[
    STATUSES,
    METHODS,
    CONTENT_TYPES,
    TTL,
    STRATEGY.required(),
    CACHE_CONTROL,
    IGNORE_CASE,
    STORAGE_TTL,
    MEMORY,
    VARY_QUERY,
    VARY_HEADERS,
    SHOWN,
    Field::new("redis", Kind::Record(&REDIS)).required(),
    flag("bypass_on_err", false),
];

/// Where responses are kept.
pub const STRATEGY: Field = Field::new("strategy", Kind::String).check(&[Check::OneOf(&["memory", "redis"])]);

/// Refuses the store that Weir lacks.
pub fn check_strategy(config: &Value) -> Result<(), UnsupportedOption> {
    match config["strategy"].as_str() {
        Some("redis") => Err(UnsupportedOption {
            field: "strategy",
            what: "a cache of responses in a Redis".to_owned(),
        }),
        _ => Ok(()),
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    check_strategy(config)?;
    Ok(untyped(config_of(config)?))
}
