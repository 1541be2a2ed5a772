//! `/proxy-cache`: lists and purges the responses that instances of the plugin `proxy-cache` keep.
//! `/proxy-cache-advanced` and
//! `/graphql-proxy-cache-advanced` are the same for those plugins.
//!
//! Responses are kept by gateways, each in its own memory. The one of this process is asked directly; others
//! get orders to forget through the store, from a document that is soon gone ([`PURGES`]). A process that serves no
//! calls keeps no responses: it lists none, and passes on what is to be forgotten. What instances keep in a Redis
//! (`strategy: redis`) is asked for there, by a process that serves calls.

use super::Admin;
use super::call::ApiCall;
use super::commit::writer_of;
use super::failure::Failure;
use super::path::uuid;
use super::plan::{ChangePlan, WorkspaceView};
use super::response::ApiResponse;
use crate::document::entity_type::entity_type;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;
use weir_dialect::PURGES;
use weir_plugin::Headers;
use weir_plugins::proxy_cache::{CachedResponse, Caches, Purge, RedisUnavailable};
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
    let places = places(admin, call, path[0], plugin);
    match call.method {
        Method::OPTIONS => Ok(ApiResponse::options(methods)),
        Method::DELETE => forget(admin, call, places, key).await,
        Method::GET | Method::HEAD if key.is_some() => {
            find_entry(admin, places, key.unwrap_or_default()).await
        }
        _ => Ok(ApiResponse::method_not_allowed()),
    }
}

/// The names of the stores in which instances keep responses.
#[derive(Default)]
struct CacheLocations {
    /// The stores of those that keep them in memory.
    in_memory: BTreeSet<String>,
    /// The stores of those that keep them in a Redis.
    in_redis: BTreeSet<String>,
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
        let Some(zone) = config["memory"]["dictionary_name"].as_str() else {
            continue;
        };
        let zones = match config["strategy"] == "redis" {
            true => &mut places.in_redis,
            false => &mut places.in_memory,
        };
        zones.insert(zone.to_owned());
    }
    places
}

async fn find_entry(admin: &Admin, places: CacheLocations, key: &str) -> Result<ApiResponse, Failure> {
    let caches = admin.options.node.caches.as_ref();
    let in_memory = places
        .in_memory
        .iter()
        .find_map(|zone| caches?.response(crate::NAME, zone, key, now_ms()));
    let found = match (in_memory, caches.cloned()) {
        (None, Some(caches)) => {
            let key = key.to_owned();
            with_redis(move || find_in_redis(&caches, &places.in_redis, &key)).await?
        }
        (in_memory, _) => in_memory,
    };
    let response = found.ok_or_else(Failure::not_found)?;
    Ok(ApiResponse::ok(&entry_json(&response, key)))
}

fn find_in_redis(
    caches: &Caches,
    zones: &BTreeSet<String>,
    key: &str,
) -> Result<Option<CachedResponse>, RedisUnavailable> {
    for zone in zones {
        let found = caches.response_in_redis(crate::NAME, zone, key, now_ms())?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Does what waits for a Redis, while other calls are answered.
async fn with_redis<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RedisUnavailable> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(RedisUnavailable)) => {
            let words = "the Redis of the cache does not answer";
            Err(Failure::message(StatusCode::INTERNAL_SERVER_ERROR, words))
        }
        Err(_) => Err(Failure(ApiResponse::unexpected())),
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
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
    let mut told = Map::new();
    for header in headers.iter() {
        let name = String::from_utf8_lossy(header.name).into_owned();
        let value = Value::from(String::from_utf8_lossy(header.value));
        match told.get_mut(&name) {
            None => drop(told.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    told
}

async fn forget(
    admin: &Admin,
    call: &ApiCall,
    places: CacheLocations,
    key: Option<&str>,
) -> Result<ApiResponse, Failure> {
    let purge = |zone: &String, in_redis: bool| Purge {
        dialect: crate::NAME,
        zone: zone.clone(),
        key: key.map(str::to_owned),
        in_redis,
    };
    let mut purges: Vec<Purge> = places.in_memory.iter().map(|zone| purge(zone, false)).collect();
    let in_redis: Vec<Purge> = places.in_redis.iter().map(|zone| purge(zone, true)).collect();
    let mut is_forgotten = false;
    match &admin.options.node.caches {
        // Gateways do it.
        None => purges.extend(in_redis),
        Some(caches) => {
            if let Some(key) = key {
                purges.retain(|purge| caches.response(crate::NAME, &purge.zone, key, now_ms()).is_some());
            }
            let (caches, dry_run) = (caches.clone(), call.dry_run);
            is_forgotten = with_redis(move || forget_in_redis(&caches, &in_redis, dry_run)).await?;
        }
    }
    if key.is_some() && purges.is_empty() && !is_forgotten {
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

/// Forgets what is in a Redis, and says whether there was something; `dry_run`: it only says so.
fn forget_in_redis(caches: &Caches, purges: &[Purge], dry_run: bool) -> Result<bool, RedisUnavailable> {
    let mut was_there = false;
    for purge in purges {
        was_there |= match (&purge.key, dry_run) {
            (_, false) => caches.forget_in_redis(purge)?,
            (Some(key), true) => caches
                .response_in_redis(purge.dialect, &purge.zone, key, now_ms())?
                .is_some(),
            (None, true) => true,
        };
    }
    Ok(was_there)
}

/// The document that informs other processes.
fn change(purge: &Purge) -> Option<Change> {
    Some(Change::Put {
        key: Key::new(&format!("{PURGES}{}", Uuid::new_v4())).ok()?,
        value: serde_json::to_vec(purge).ok()?.into(),
        time_to_live: Some(LIFE),
    })
}
