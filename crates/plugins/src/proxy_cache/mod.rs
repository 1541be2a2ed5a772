//! `proxy-cache`: keeps responses and answers later calls with them.
//!
//! ```yaml
//! key: [$route_id, $host, $request_uri]
//! ttl_seconds: 60
//! cache_control: true
//! ```
//!
//! Of calls that want the same response at once, one fetches it and the others wait for it. Responses that `Vary` are
//! kept for each variant; clients that have the response already are answered 304. Memory is bounded for each zone; what
//! has not been asked for is forgotten first.
//!
//! Security: whatever tells answers apart must be in the key. Consumers have caches of their own, unless `per_consumer`
//! is off; callers that only the service recognises share one, unless a header is in `headers` or the service says
//! `Vary` or `Cache-Control: private`.

mod control;
mod filter;
mod flight;
mod key;
mod record;
mod zone;

use filter::CacheFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use zone::Zone;

/// Configuration of `proxy-cache`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The store. Instances that name the same one share it, and its memory.
    pub zone: String,
    /// The most memory that the zone takes, in bytes, 65536 to 17179869184; of several instances' wishes, the first counts.
    #[schemars(range(min = 65_536, max = 17_179_869_184_u64))]
    pub zone_bytes: u64,
    /// What tells responses apart: texts with variables.
    pub key: Vec<String>,
    /// Which arguments of the query tell responses apart besides.
    #[serde(skip_serializing_if = "QueryKey::is_none")]
    pub query: QueryKey,
    /// Request headers that tell responses apart besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Upper and lower case are one in `key`.
    pub ignore_case: bool,
    /// Each consumer has a cache of its own.
    pub per_consumer: bool,
    /// Methods of calls that may be answered from the cache.
    pub methods: Vec<String>,
    /// Statuses of responses that are kept.
    pub statuses: Vec<u16>,
    /// Media types of responses that are kept, with their parameters; `*` is for all of a kind. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_types: Vec<String>,
    /// Seconds for which a response is fresh where it does not say so itself, or is not asked.
    pub ttl_seconds: u64,
    /// Seconds for which a response is kept, where that is longer than it is fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_seconds: Option<u64>,
    /// `Cache-Control` of requests and responses counts (RFC 9111); a response is kept only where it says for how long.
    pub cache_control: bool,
    /// Responses that say `private`, `no-store` or `no-cache` are not kept, whatever `cache_control` is.
    pub obey_private: bool,
    /// Responses that set cookies are kept too.
    pub store_cookies: bool,
    /// Texts with variables: where one is neither empty nor `0`, the call is not answered from the cache.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bypass: Vec<String>,
    /// Texts with variables: where one is neither empty nor `0`, the response is not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_store: Vec<String>,
    /// `Expires` and `Cache-Control` are not passed on to clients.
    pub hide_cache_headers: bool,
    /// Calls are GraphQL queries: their body is in the key, and calls with mutations are passed on.
    pub graphql: bool,
    /// The method `PURGE` makes the cache forget the response.
    pub purge: bool,
    /// The header that tells how the call was answered; `null`: none does.
    pub status_header: Option<String>,
    /// The header that tells the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
    /// Answers from the cache tell their age.
    pub age: bool,
    /// The words in the status header.
    pub words: Words,
    /// Milliseconds that a call waits at most for another one that fetches the same.
    pub wait_ms: u64,
}

/// Arguments of the query in a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueryKey {
    /// None.
    #[default]
    None,
    /// All, in any order.
    All,
    /// Those of these names.
    Only(Vec<String>),
}

impl QueryKey {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The words in the status header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Words {
    /// From the cache.
    pub hit: String,
    /// Nothing was there.
    pub miss: String,
    /// What was there is too old.
    pub expired: String,
    /// What was there is not fresh enough for the caller.
    pub refresh: String,
    /// The call or its response is none to be kept.
    pub bypass: String,
    /// The call's method is none of `methods`.
    pub other_method: String,
    /// Nothing was there, and the caller wants only what is; absent: nothing is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_if_cached: Option<String>,
    /// The response is none to be kept; absent: the word for what was there stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            hit: "hit".into(),
            miss: "miss".into(),
            expired: "expired".into(),
            refresh: "refresh".into(),
            bypass: "bypass".into(),
            other_method: "bypass".into(),
            only_if_cached: None,
            not_kept: None,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            zone: "default".into(),
            zone_bytes: 64 << 20,
            key: vec![
                "$route_id".into(),
                "$scheme".into(),
                "$host".into(),
                "$request_uri".into(),
            ],
            query: QueryKey::None,
            headers: Vec::new(),
            ignore_case: false,
            per_consumer: true,
            methods: vec!["GET".into(), "HEAD".into()],
            statuses: vec![200, 301, 404],
            content_types: Vec::new(),
            ttl_seconds: 300,
            keep_seconds: None,
            cache_control: false,
            obey_private: true,
            store_cookies: false,
            bypass: Vec::new(),
            no_store: Vec::new(),
            hide_cache_headers: false,
            graphql: false,
            purge: false,
            status_header: Some("X-Cache-Status".into()),
            key_header: None,
            age: true,
            words: Words::default(),
            wait_ms: 10_000,
        }
    }
}

/// Zones at most that are held without an instance that uses them.
const MAX_SPARE_ZONES: usize = 64;
const ZONE_BYTES: std::ops::RangeInclusive<u64> = 65_536..=17_179_869_184;

/// The plugin; it owns the zones.
#[derive(Default)]
pub struct ProxyCache(Mutex<HashMap<String, Arc<Zone>>>);

impl ProxyCache {
    fn zone(&self, name: &str, bytes: u64) -> Arc<Zone> {
        let mut zones = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() > MAX_SPARE_ZONES {
            zones.retain(|_, zone| Arc::strong_count(zone) > 1);
        }
        let new = || Arc::new(Zone::new(usize::try_from(bytes).unwrap_or(usize::MAX)));
        Arc::clone(zones.entry(name.to_owned()).or_insert_with(new))
    }
}

impl Plugin for ProxyCache {
    fn name(&self) -> &'static str {
        "proxy-cache"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(DocPath::root().field(field), message));
        };
        let names = [
            ("status_header", &config.status_header),
            ("key_header", &config.key_header),
        ];
        for (field, name) in names {
            if name.as_ref().is_some_and(|name| !is_name(name.as_bytes())) {
                fault(field, "expected a header name");
            }
        }
        if config.headers.iter().any(|name| !is_name(name.as_bytes())) {
            fault("headers", "expected header names");
        }
        if !ZONE_BYTES.contains(&config.zone_bytes) {
            fault("zone_bytes", "expected from 65536 to 17179869184 bytes");
        }
        if config.key.is_empty() {
            fault("key", "expected at least one text");
        }
        if config.ttl_seconds == 0 {
            fault("ttl_seconds", "expected at least a second");
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let name = format!("{}/{}", context.voice.as_str(), config.zone);
        let zone = self.zone(&name, config.zone_bytes);
        Ok(Arc::new(CacheFilter::new(config, zone)))
    }
}

#[cfg(test)]
mod tests;
