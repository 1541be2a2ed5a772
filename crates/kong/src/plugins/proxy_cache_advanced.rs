//! `proxy-cache-advanced` of the paid edition: `proxy-cache` with a Redis as a further store. While the Redis is away, calls
//! pass the cache by, whatever `bypass_on_err` says.

use super::enterprise_fields::flag;
use super::proxy_cache::{
    CACHE_CONTROL, CONTENT_TYPES, IGNORE_CASE, MEMORY, METHODS, SHOWN, STATUSES, STORAGE_TTL, TTL,
    VARY_HEADERS, VARY_QUERY, check_dictionary, config_of,
};
use super::redis::{ADVANCED_REDIS, SHORTHANDS, Settings};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::proxy_cache::Config;

/// The definition of `proxy-cache-advanced`.
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
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
    flag("bypass_on_err", false),
];

/// The store of responses.
pub const STRATEGY: Field = Field::new("strategy", Kind::String).check(&[Check::OneOf(&["memory", "redis"])]);

#[derive(Deserialize)]
struct StorageOptions {
    strategy: String,
    redis: Settings,
}

/// Keeps responses in the store that the document names.
pub fn placed(config: &Value, mut cache: Config) -> Result<Config, UnsupportedOption> {
    let place: StorageOptions = typed(config)?;
    let is_shared = place.strategy == "redis";
    cache.redis = is_shared.then(|| place.redis.redis()).transpose()?;
    Ok(cache)
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(untyped(placed(config, config_of(config)?)?))
}
