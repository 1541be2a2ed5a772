//! Configuration of `proxy-cache`, and its defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugins_shared::graphql;
use weir_plugins_shared::redis::Redis;

/// Configuration of `proxy-cache`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The store. Instances that name the same one share it, and its memory.
    pub zone: String,
    /// The most memory that the zone takes, in bytes, 65536 to 17179869184; of several instances' wishes, the first counts.
    #[schemars(range(min = 65_536, max = 17_179_869_184_u64))]
    pub zone_bytes: u64,
    /// The key that distinguishes responses: texts with variables.
    pub key: Vec<String>,
    /// Which query arguments are also part of the key.
    #[serde(skip_serializing_if = "QueryKey::is_none")]
    pub query: QueryKey,
    /// Request headers that are also part of the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Upper and lower case are one in `key`.
    pub ignore_case: bool,
    /// Whether each consumer has a cache of its own.
    pub per_consumer: bool,
    /// Whether callers without a known consumer have a cache of their own by their `Authorization`. With
    /// `cache_control` it has no effect: their responses are kept only if they are for everyone.
    pub per_authorization: bool,
    /// Methods of calls that may be answered from the cache.
    pub methods: Vec<String>,
    /// Statuses of responses that are kept.
    pub statuses: Vec<u16>,
    /// Media types of responses that are kept, with their parameters; `*` is for all of a kind. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_types: Vec<String>,
    /// For how many seconds a response is fresh if it does not say so itself, or if its own lifetime is not used.
    pub ttl_seconds: u64,
    /// For how many seconds a response is kept, if that is longer than it is fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_ttl_seconds: Option<u64>,
    /// Whether `Cache-Control` of requests and responses counts (RFC 9111); a response is then kept only if it says for
    /// how long.
    pub cache_control: bool,
    /// Without `cache_control`: what responses say about how long they are fresh (`s-maxage`, `max-age`, `Expires`) counts
    /// before `ttl_seconds`.
    pub obey_lifetime: bool,
    /// Responses that say `private`, `no-store` or `no-cache` are not kept, whatever `cache_control` is.
    pub obey_private: bool,
    /// Responses that set cookies are kept too.
    pub store_cookies: bool,
    /// Texts with variables: if one is neither empty nor `0`, the call is not answered from the cache.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bypass: Vec<String>,
    /// Texts with variables: if one is neither empty nor `0`, the response is not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_store: Vec<String>,
    /// `Expires` and `Cache-Control` are not passed on to clients.
    pub hide_cache_headers: bool,
    /// Calls are GraphQL queries: their body is in the key, and calls with mutations are passed on.
    pub graphql: bool,
    /// With `graphql`: the longest body in bytes in which a query is looked for, 1,048,576 if absent; a longer one
    /// is refused with status 400, or 413 if the call does not tell its length.
    #[serde(skip_serializing_if = "graphql::is_default_max_body")]
    pub graphql_max_body_bytes: usize,
    /// The method `PURGE` makes the cache forget the response.
    pub purge: bool,
    /// The name in calls to a purge endpoint that purge the response under a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged_as: Option<PurgeName>,
    /// The response header with the cache status; `null`: none.
    pub status_header: Option<String>,
    /// The response header with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
    /// Whether responses from the cache contain their age.
    pub age: bool,
    /// The values of the status header.
    pub status_values: CacheStatusTexts,
    /// Milliseconds that a call waits at most for another one that fetches the same.
    pub wait_ms: u64,
    /// Whether stale responses with a validator are revalidated with the service (`If-None-Match`,
    /// `If-Modified-Since`). With `cache_control`, responses that must always be revalidated are kept too, a caller's
    /// `no-cache` causes a revalidation, and `stale-while-revalidate` and `stale-if-error` of responses count.
    pub revalidate: bool,
    /// For how many seconds beyond its lifetime a response is still used while one call fetches a new one, if the
    /// response does not say so itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale_while_revalidate_seconds: u64,
    /// For how many seconds beyond its lifetime a response is used for calls for which the service fails, if the
    /// response does not say so itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale_if_error_seconds: u64,
    /// Calls for a part of a response (`Range`) get that part of what is kept.
    pub ranges: bool,
    /// A call that changes something (`POST`, `PUT`, `DELETE`, …) and succeeds makes the cache forget what the same URI
    /// was answered with.
    pub invalidate: bool,
    /// The disk that keeps responses in addition to memory, so that they outlive the process; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// A Redis that keeps responses instead of memory, so that several gateways share them. Responses of more than half
    /// a mebibyte are not kept. While it is unavailable, calls go to the service (`bypass`), and nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<Redis>,
}

/// A folder for responses. It is the gateway's alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Its path. It is created if need be.
    #[schemars(length(min = 1))]
    pub path: String,
    /// The most that it holds, in bytes, 1048576 to 17592186044416.
    #[schemars(range(min = 1_048_576, max = 17_592_186_044_416_u64))]
    pub size: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
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

/// The values of the status header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheStatusTexts {
    /// From the cache.
    pub hit: String,
    /// Nothing was there.
    pub miss: String,
    /// What was there is too old.
    pub expired: String,
    /// What was there is not fresh enough for the caller.
    pub refresh: String,
    /// The call or its response must not be cached.
    pub bypass: String,
    /// The call's method is not one of `methods`.
    pub other_method: String,
    /// Nothing was there, and the caller accepts only cached responses; absent: no status is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_if_cached: Option<String>,
    /// The service has said that what was there still holds.
    pub revalidated: String,
    /// What was there is too old, and had to do.
    pub stale: String,
    /// The response must not be kept; absent: the word for the earlier state stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_stored: Option<String>,
}

impl Default for CacheStatusTexts {
    fn default() -> Self {
        Self {
            hit: "hit".into(),
            miss: "miss".into(),
            expired: "expired".into(),
            refresh: "refresh".into(),
            bypass: "bypass".into(),
            other_method: "bypass".into(),
            only_if_cached: None,
            revalidated: "revalidated".into(),
            stale: "stale".into(),
            not_stored: None,
        }
    }
}

/// By what an instance is known to endpoints for purges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeName {
    /// The instance's name.
    pub name: String,
    /// The kind of store that has to be named with it.
    pub store: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            zone: "default".into(),
            zone_bytes: 64 << 20,
            key: vec![
                "$route_id".into(),
                "$scheme".into(),
                "$http_host".into(),
                "$request_uri".into(),
            ],
            query: QueryKey::None,
            headers: Vec::new(),
            ignore_case: false,
            per_consumer: true,
            per_authorization: true,
            methods: vec!["GET".into(), "HEAD".into()],
            statuses: vec![200, 301, 404],
            content_types: Vec::new(),
            ttl_seconds: 300,
            storage_ttl_seconds: None,
            cache_control: false,
            obey_lifetime: false,
            obey_private: true,
            store_cookies: false,
            bypass: Vec::new(),
            no_store: Vec::new(),
            hide_cache_headers: false,
            graphql: false,
            graphql_max_body_bytes: graphql::DEFAULT_MAX_BODY_BYTES,
            purged_as: None,
            purge: false,
            status_header: Some("X-Cache-Status".into()),
            key_header: None,
            age: true,
            status_values: CacheStatusTexts::default(),
            wait_ms: 10_000,
            revalidate: true,
            stale_while_revalidate_seconds: 0,
            stale_if_error_seconds: 0,
            ranges: true,
            invalidate: true,
            disk: None,
            redis: None,
        }
    }
}
