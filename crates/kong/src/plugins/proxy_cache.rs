//! `proxy-cache`: keeps responses in memory.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::proxy_cache::{CacheStatusTexts, Config, QueryKey};

/// The definition of `proxy-cache`.
pub const DEFINITION: Definition = Definition {
    name: "proxy-cache",
    priority: 100,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(check_dictionary)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "proxy-cache",
    translate,
};

const TEXTS: Kind = Kind::Array(&Field::element(Kind::String));
const METHOD: Field =
    Field::element(Kind::String).check(&[Check::OneOf(&["HEAD", "GET", "POST", "PATCH", "PUT"])]);
const STATUS: Field = Field::element(Kind::Integer).check(&[Check::Between(100, 900)]);
/// The original's stores that a document can name, without those of its own templates.
const DICTIONARIES: [&str; 9] = [
    "kong_db_cache",
    "kong_db_cache_miss",
    "kong_core_db_cache",
    "kong_core_db_cache_miss",
    "kong_cluster_events",
    "kong_healthchecks",
    "kong_rate_limiting_counters",
    "kong_locks",
    "kong",
];

pub const STATUSES: Field = Field::new("response_code", Kind::Array(&STATUS))
    .required()
    .or(Default::Integers(&[200, 301, 404]))
    .check(&[Check::AtLeast(1)]);
pub const METHODS: Field = Field::new("request_method", Kind::Array(&METHOD))
    .required()
    .or(Default::Texts(&["GET", "HEAD"]));
pub const CONTENT_TYPES: Field = Field::new("content_type", TEXTS)
    .required()
    .or(Default::Texts(&["text/plain", "application/json"]));
pub const TTL: Field = Field::new("cache_ttl", Kind::Integer)
    .or(Default::Integer(300))
    .check(&[Check::Above(0)]);
pub const CACHE_CONTROL: Field = Field::new("cache_control", Kind::Boolean)
    .required()
    .or(Default::Boolean(false));
pub const IGNORE_CASE: Field = Field::new("ignore_uri_case", Kind::Boolean).or(Default::Boolean(false));
pub const STORAGE_TTL: Field = Field::new("storage_ttl", Kind::Integer);
pub const MEMORY: Field = Field::new("memory", Kind::Record(&MEMORY_FIELDS)).required();
pub const VARY_QUERY: Field = Field::new("vary_query_params", TEXTS);
pub const VARY_HEADERS: Field = Field::new("vary_headers", TEXTS);
pub const SHOWN: Field = Field::new("response_headers", Kind::Record(&RESPONSE_HEADERS)).required();

const FIELDS: &[Field] = &[
    STATUSES,
    METHODS,
    CONTENT_TYPES,
    TTL,
    Field::new("strategy", Kind::String)
        .required()
        .check(&[Check::OneOf(&["memory"])]),
    CACHE_CONTROL,
    IGNORE_CASE,
    STORAGE_TTL,
    MEMORY,
    VARY_QUERY,
    VARY_HEADERS,
    SHOWN,
];

static MEMORY_FIELDS: Record = Record::of(&[Field::new("dictionary_name", Kind::String)
    .required()
    .or(Default::Text("kong_db_cache"))]);

static RESPONSE_HEADERS: Record = Record::of(&[
    Field::new("age", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("X-Cache-Status", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("X-Cache-Key", Kind::Boolean).or(Default::Boolean(true)),
]);

/// The store is one of the original's.
pub fn check_dictionary(plugin: &Fields) -> Result<(), String> {
    let config = plugin.get("config");
    let name = config.and_then(|config| config["memory"]["dictionary_name"].as_str());
    match name {
        Some(name) if !DICTIONARIES.contains(&name) => Err(format!("missing shared dict '{name}'")),
        _ => Ok(()),
    }
}

#[derive(Deserialize)]
struct ProxyCache {
    response_code: Vec<u16>,
    request_method: Vec<String>,
    content_type: Vec<String>,
    cache_ttl: Option<u64>,
    cache_control: bool,
    ignore_uri_case: Option<bool>,
    storage_ttl: Option<i64>,
    memory: MemoryOptions,
    vary_query_params: Option<Vec<String>>,
    vary_headers: Option<Vec<String>>,
    response_headers: ResponseHeaders,
}

#[derive(Deserialize)]
struct MemoryOptions {
    dictionary_name: String,
}

#[derive(Deserialize)]
struct ResponseHeaders {
    age: Option<bool>,
    #[serde(rename = "X-Cache-Status")]
    status: Option<bool>,
    #[serde(rename = "X-Cache-Key")]
    key: Option<bool>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(untyped(config_of(config)?))
}

/// The catalogue's configuration.
pub fn config_of(config: &Value) -> Result<Config, UnsupportedOption> {
    let config: ProxyCache = typed(config)?;
    let header = |name: &str, wanted: Option<bool>| wanted.unwrap_or(true).then(|| name.to_owned());
    Ok(Config {
        zone: config.memory.dictionary_name,
        zone_bytes: 128 << 20,
        key: ["$route_id", "$request_method", "$uri"]
            .map(str::to_owned)
            .to_vec(),
        query: config.vary_query_params.map_or(QueryKey::All, QueryKey::Only),
        headers: config.vary_headers.unwrap_or_default(),
        ignore_case: config.ignore_uri_case.unwrap_or(false),
        methods: config.request_method,
        statuses: config.response_code,
        content_types: config.content_type,
        ttl_seconds: config.cache_ttl.unwrap_or(300),
        storage_ttl_seconds: config.storage_ttl.and_then(|seconds| u64::try_from(seconds).ok()),
        cache_control: config.cache_control,
        obey_private: false,
        store_cookies: true,
        status_header: header("X-Cache-Status", config.response_headers.status),
        key_header: header("X-Cache-Key", config.response_headers.key),
        age: config.response_headers.age.unwrap_or(true),
        status_values: CacheStatusTexts {
            hit: "Hit".to_owned(),
            miss: "Miss".to_owned(),
            expired: "Miss".to_owned(),
            refresh: "Refresh".to_owned(),
            bypass: "Bypass".to_owned(),
            other_method: "Bypass".to_owned(),
            only_if_cached: None,
            not_stored: Some("Bypass".to_owned()),
            ..CacheStatusTexts::default()
        },
        // The original never asks the upstream again, and knows neither parts nor what a change makes old.
        revalidate: false,
        per_authorization: false,
        ranges: false,
        invalidate: false,
        ..Config::default()
    })
}
