//! `/proxy-cache`: lists and purges the responses that instances of the plugin `proxy-cache` keep.
//! `/proxy-cache-advanced` and
//! `/graphql-proxy-cache-advanced` are the same for those plugins.
//!
//! **What it is not**: what instances keep in a Redis (`strategy: redis`) is not reached, and calls for it are refused.
//!
//! Responses are kept by gateways, each in its own memory. The one of this process is asked directly; others
//! get orders to forget through the store, from a document that is soon gone ([`PURGES`]). A process that serves no
//! calls keeps no responses: it lists none, and passes on what is to be forgotten.

use super::Admin;
use super::call::ApiCall;
use super::commit::writer_of;
use super::failure::Failure;
use super::path::uuid;
use super::plan::{ChangePlan, WorkspaceView};
use super::response::ApiResponse;
use crate::document::entity_type::entity_type;
use crate::incremental::name_in;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};
use uuid::Uuid;
use weir_dialect::PURGES;
use weir_model::unix_time;
use weir_plugin::Headers;
use weir_plugins::proxy_cache::{CachedResponse, Purge};
use weir_store::{Change, Key};

/// For how long such a document stays. Gateways that are away for longer have lost their memory, or keep what they have
/// until its time is over.
const LIFE: Duration = Duration::from_secs(60);
/// The names of the plugins, and of the first segments.
const NAMES: [&str; 3] = [
    "proxy-cache",
    "proxy-cache-advanced",
    "graphql-proxy-cache-advanced",
];
/// The version that the original writes into each response that it keeps.
const FORM: u8 = 1;

/// Whether a call is for the responses that are kept.
pub fn is_meant(call: &ApiCall) -> bool {
    call.path
        .first()
        .is_some_and(|first| NAMES.contains(&first.as_str()))
}

/// Answers a call for the responses that are kept.
///
/// # Errors
/// If there is none, or the order to forget cannot be passed on.
pub async fn answer(admin: &Admin, call: &ApiCall) -> Result<ApiResponse, Failure> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let (plugin, key) = match path.as_slice() {
        [_] => (None, None),
        [_, key] => (None, Some(*key)),
        [_, plugin, "caches", key] => (Some(*plugin), Some(*key)),
        _ => return Err(Failure::not_found()),
    };
    let methods = match key {
        None => "DELETE, OPTIONS",
        Some(_) => "DELETE, GET, HEAD, OPTIONS",
    };
    let CacheLocations { zones, has_redis } = places(admin, call, path[0], plugin);
    if has_redis && zones.is_empty() && call.method != Method::OPTIONS {
        return Err(Failure::message(StatusCode::BAD_REQUEST, IN_REDIS));
    }
    match call.method {
        Method::OPTIONS => Ok(ApiResponse::options(methods)),
        Method::DELETE => forget(admin, call, &zones, key).await,
        Method::GET | Method::HEAD if key.is_some() => find_entry(admin, &zones, key.unwrap_or_default()),
        _ => Ok(ApiResponse::method_not_allowed()),
    }
}

/// The answer to calls for responses in a Redis.
const IN_REDIS: &str = "the Admin API does not reach responses of the strategy 'redis': delete the keys of the cache in the Redis";

/// The stores in which instances keep responses.
#[derive(Default)]
struct CacheLocations {
    /// The stores of those that keep them in memory.
    zones: BTreeSet<String>,
    /// Whether others keep them in a Redis.
    has_redis: bool,
}

/// The places of the workspace's instances of a plugin, or of one instance.
fn places(admin: &Admin, call: &ApiCall, name: &str, plugin: Option<&str>) -> CacheLocations {
    let state = admin.state();
    let view = WorkspaceView::new(&state, &call.workspace, SystemTime::now());
    let Some(entity_type) = entity_type("plugins") else {
        return CacheLocations::default();
    };
    let wanted = plugin.map(|id| uuid(id).unwrap_or_default());
    let instances = view.workspace.table(entity_type).all(Uuid::nil());
    let mut places = CacheLocations::default();
    for kept in instances.filter(|kept| wanted.is_none_or(|wanted| wanted == kept.id)) {
        let fields = kept.fields();
        let is_it = fields.get("name").is_some_and(|known| known == name);
        let Some(config) = fields.get("config").filter(|_| is_it) else {
            continue;
        };
        if config["strategy"] == "redis" {
            places.has_redis = true;
        } else if let Some(zone) = config["memory"]["dictionary_name"].as_str() {
            places.zones.insert(name_in(view.name, zone));
        }
    }
    places
}

fn find_entry(admin: &Admin, zones: &BTreeSet<String>, key: &str) -> Result<ApiResponse, Failure> {
    let caches = admin.options.node.caches.as_ref();
    let found = zones
        .iter()
        .find_map(|zone| caches?.response(crate::NAME, zone, key, now_ms()));
    let response = found.ok_or_else(Failure::not_found)?;
    Ok(ApiResponse::ok(&entry_json(&response, key)))
}

fn now_ms() -> u64 {
    unix_time::millis(SystemTime::now())
}

/// A response as the original keeps it.
fn entry_json(response: &CachedResponse, key: &str) -> Value {
    let mut headers = headers(&response.headers);
    headers.insert("X-Cache-Key".to_owned(), key.into());
    headers.insert("X-Cache-Status".to_owned(), "Miss".into());
    json!({
        "status": response.status,
        "headers": headers,
        "body": String::from_utf8_lossy(&response.body),
        "body_len": response.body.len(),
        "timestamp": response.stored_ms / 1000,
        "ttl": response.fresh_ms / 1000,
        "version": FORM,
        "req_body": "",
    })
}

/// One value as a text, several as a list.
fn headers(headers: &Headers) -> Map<String, Value> {
    let mut counts = Map::new();
    for header in headers.iter() {
        let name = String::from_utf8_lossy(header.name).into_owned();
        let value = Value::from(String::from_utf8_lossy(header.value));
        match counts.get_mut(&name) {
            None => drop(counts.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    counts
}

async fn forget(
    admin: &Admin,
    call: &ApiCall,
    zones: &BTreeSet<String>,
    key: Option<&str>,
) -> Result<ApiResponse, Failure> {
    let purge = |zone: &String| Purge {
        dialect: crate::NAME,
        zone: zone.clone(),
        key: key.map(str::to_owned),
    };
    let mut purges: Vec<Purge> = zones.iter().map(purge).collect();
    if let (Some(caches), Some(key)) = (&admin.options.node.caches, key) {
        purges.retain(|purge| caches.response(crate::NAME, &purge.zone, key, now_ms()).is_some());
    }
    if key.is_some() && purges.is_empty() {
        return Err(Failure::not_found());
    }
    let writer = writer_of(call);
    let changes: Vec<Change> = purges.iter().filter_map(change).collect();
    let answer = admin
        .write(&writer, |_| {
            Ok(ChangePlan {
                changes: changes.clone(),
                answer: ApiResponse::no_content(),
                has_document: false,
            })
        })
        .await?;
    if let Some(caches) = admin.options.node.caches.as_ref().filter(|_| !call.dry_run) {
        for purge in &purges {
            caches.forget(purge);
        }
    }
    Ok(answer)
}

/// The document that informs other processes.
fn change(purge: &Purge) -> Option<Change> {
    Some(Change::Put {
        key: Key::new(&format!("{PURGES}{}", Uuid::new_v4())).ok()?,
        value: serde_json::to_vec(purge).ok()?.into(),
        time_to_live: Some(LIFE),
    })
}
