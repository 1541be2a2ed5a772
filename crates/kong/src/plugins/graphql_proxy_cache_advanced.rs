//! `graphql-proxy-cache-advanced` of the paid edition: keeps the answers to GraphQL queries.

use super::enterprise_fields::flag;
use super::proxy_cache::{MEMORY, TTL, VARY_HEADERS, check_dictionary};
use super::proxy_cache_advanced::{STRATEGY, placed};
use super::redis::{ADVANCED_REDIS, SHORTHANDS};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::proxy_cache::{CacheStatusTexts, Config};

/// The definition of `graphql-proxy-cache-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "graphql-proxy-cache-advanced",
    priority: 99,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(check_dictionary)],
    shorthands: SHORTHANDS,
    on_consumers: true,
    catalogue_name: "proxy-cache",
    translate,
};

const FIELDS: &[Field] = &[
    TTL,
    STRATEGY.required().or(Default::Text("memory")),
    MEMORY,
    VARY_HEADERS,
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
    flag("bypass_on_err", false),
];

#[derive(Deserialize)]
struct Options {
    cache_ttl: Option<u64>,
    memory: MemoryOptions,
    vary_headers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct MemoryOptions {
    dictionary_name: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let cache = Config {
        zone: options.memory.dictionary_name,
        zone_bytes: 128 << 20,
        key: ["$route_id", "$uri"].map(str::to_owned).to_vec(),
        headers: options.vary_headers.unwrap_or_default(),
        methods: vec!["GET".to_owned(), "POST".to_owned()],
        statuses: vec![200],
        ttl_seconds: options.cache_ttl.unwrap_or(300),
        graphql: true,
        obey_private: false,
        store_cookies: true,
        status_header: Some("X-Cache-Status".to_owned()),
        key_header: Some("X-Cache-Key".to_owned()),
        status_values: CacheStatusTexts {
            hit: "Hit".to_owned(),
            miss: "Miss".to_owned(),
            expired: "Miss".to_owned(),
            refresh: "Refresh".to_owned(),
            bypass: "Bypass".to_owned(),
            other_method: "Bypass".to_owned(),
            not_stored: Some("Bypass".to_owned()),
            ..CacheStatusTexts::default()
        },
        revalidate: false,
        per_authorization: false,
        ranges: false,
        invalidate: false,
        ..Config::default()
    };
    Ok(untyped(placed(config, cache)?))
}
