//! `proxy-cache` and `graphql-proxy-cache`: `proxy-cache` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, integer, object, text};
use crate::settings::{CacheZone, Settings};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use weir_plugins::proxy_cache::{CacheStatusTexts, Config, Disk, PurgeName};

/// The plugin `proxy-cache`.
pub struct ProxyCache;

/// The plugin `graphql-proxy-cache`.
pub struct GraphqlProxyCache;

#[derive(Deserialize)]
struct Common {
    cache_zone: String,
    cache_strategy: String,
    cache_ttl: u64,
    consumer_isolation: bool,
    cache_set_cookie: bool,
}

#[derive(Deserialize)]
struct Options {
    cache_key: Vec<String>,
    cache_http_status: Vec<u16>,
    cache_method: Vec<String>,
    hide_cache_headers: bool,
    cache_control: bool,
    #[serde(default)]
    cache_bypass: Vec<String>,
    #[serde(default)]
    no_cache: Vec<String>,
}

/// The shape of what both have in common.
fn shape() -> Schema {
    object([
        ("cache_zone", text().length(1, 100).or("disk_cache_one")),
        ("cache_strategy", text().options(["disk", "memory"]).or("disk")),
        ("cache_ttl", integer().at_least(1).or(300)),
        ("consumer_isolation", boolean().or(true)),
        ("cache_set_cookie", boolean().or(false)),
        ("_meta", meta::shape()),
    ])
}

fn check_zone(config: &Map<String, Value>, settings: &Settings) -> Result<(), String> {
    let zone = config
        .get("cache_zone")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match settings.zone(zone) {
        Some(_) => Ok(()),
        None => Err(format!("cache_zone {zone} not found")),
    }
}

/// The place on a disk of a zone.
fn disk(zone: Option<&CacheZone>, notes: &mut Warnings) -> Option<Disk> {
    let disk = zone.and_then(|zone| zone.disk.as_ref());
    let disk = disk.and_then(|disk| {
        Some(Disk {
            path: disk.path.clone()?,
            size: disk.bytes,
        })
    });
    if disk.is_none() {
        notes.warn(
            "cache_strategy",
            "responses are kept in memory: the zone has no disk_path, which --apisix-config can tell \
             (apisix.proxy_cache.zones)",
        );
    }
    disk
}

fn common(config: &Value, settings: &Settings, notes: &mut Warnings) -> Result<Config, serde_json::Error> {
    let common: Common = read(config)?;
    let is_disk = common.cache_strategy == "disk";
    let zone = settings.zone(&common.cache_zone);
    Ok(Config {
        zone_bytes: zone.map_or(Config::default().zone_bytes, |zone| zone.memory_bytes),
        disk: if is_disk { disk(zone, notes) } else { None },
        zone: common.cache_zone,
        per_consumer: common.consumer_isolation,
        // On a disk NGINX keeps responses, for as long as they say or its own configuration does.
        ttl_seconds: match is_disk {
            true => settings.cache.ttl_seconds,
            false => common.cache_ttl,
        },
        obey_lifetime: is_disk,
        store_cookies: common.cache_set_cookie,
        status_header: Some("Apisix-Cache-Status".to_owned()),
        status_values: CacheStatusTexts {
            hit: "HIT".to_owned(),
            miss: "MISS".to_owned(),
            expired: "EXPIRED".to_owned(),
            refresh: "STALE".to_owned(),
            bypass: "BYPASS".to_owned(),
            other_method: if is_disk { "BYPASS" } else { "MISS" }.to_owned(),
            only_if_cached: Some("MISS".to_owned()),
            not_stored: None,
            ..CacheStatusTexts::default()
        },
        // The original never asks the upstream again, and knows nothing of what a change makes old.
        revalidate: false,
        invalidate: false,
        ranges: is_disk,
        ..Config::default()
    })
}

impl PluginAdapter for ProxyCache {
    fn name(&self) -> &'static str {
        "proxy-cache"
    }

    fn priority(&self) -> i64 {
        1085
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let texts = || array(text().pattern(r"(^[^\$].+$|^\$[0-9a-zA-Z_]+$)")).min_items(1);
            let statuses = array(integer().at_least(200).at_most(599)).min_items(1).unique();
            let methods = array(text().options(["GET", "POST", "HEAD"]))
                .min_items(1)
                .unique();
            shape()
                .field("cache_key", texts().or(json!(["$host", "$request_uri"])))
                .field("cache_http_status", statuses.or(json!([200, 301, 404])))
                .field("cache_method", methods.or(json!(["GET", "HEAD"])))
                .field("hide_cache_headers", boolean().or(false))
                .field("cache_control", boolean().or(false))
                .field("cache_bypass", texts())
                .field("no_cache", texts())
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let keys = config.get("cache_key").and_then(Value::as_array);
        if keys.into_iter().flatten().any(|key| key == "$request_method") {
            return Err("cache_key variable $request_method unsupported".to_owned());
        }
        let is = |field: &str, value: &str| config.get(field).and_then(Value::as_str) == Some(value);
        match is("cache_strategy", "memory") && is("cache_zone", "disk_cache_one") {
            true => Err("invalid or empty cache_zone for cache_strategy: memory".to_owned()),
            false => Ok(()),
        }
    }

    fn check_by(&self, config: &Map<String, Value>, settings: &Settings) -> Result<(), String> {
        check_zone(config, settings)
    }

    fn plugin(&self) -> &'static str {
        "proxy-cache"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let common = common(config, context.settings, notes)?;
        serde_json::to_value(Config {
            key: options.cache_key,
            statuses: options.cache_http_status,
            methods: options.cache_method,
            hide_cache_headers: options.hide_cache_headers,
            cache_control: options.cache_control && !common.obey_lifetime,
            bypass: options.cache_bypass,
            no_store: options.no_cache,
            purge: true,
            ..common
        })
    }
}

impl PluginAdapter for GraphqlProxyCache {
    fn name(&self) -> &'static str {
        "graphql-proxy-cache"
    }

    fn priority(&self) -> i64 {
        1009
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(shape);
        &SHAPE
    }

    fn check_by(&self, config: &Map<String, Value>, settings: &Settings) -> Result<(), String> {
        check_zone(config, settings)
    }

    fn plugin(&self) -> &'static str {
        "proxy-cache"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let name = context.instance.strip_suffix("/graphql-proxy-cache");
        let store = config.get("cache_strategy").and_then(Value::as_str);
        serde_json::to_value(Config {
            purged_as: name.zip(store).map(|(name, store)| PurgeName {
                name: name.to_owned(),
                store: store.to_owned(),
            }),
            key: ["$host", "$route_id", "$service_id", "$args"]
                .map(str::to_owned)
                .to_vec(),
            statuses: vec![200],
            methods: ["GET", "POST"].map(str::to_owned).to_vec(),
            graphql: true,
            graphql_max_body_bytes: context.settings.graphql_max_bytes,
            key_header: Some("APISIX-Cache-Key".to_owned()),
            ..common(config, context.settings, notes)?
        })
    }
}
