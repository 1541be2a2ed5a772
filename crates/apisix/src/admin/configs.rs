//! The whole configuration at once, as APISIX's standalone mode takes it over its API.
//!
//! Its items are stored as the documents that they are; one more document is about the last time that
//! the whole was put: its digest, its time, and a version for each list.

use super::call::ApiCall;
use super::configuration::{LISTS, body, version_field};
use super::key::Role;
use super::response::{ApiResponse, Outcome};
use super::state::AdminState;
use super::validate::check_configuration;
use super::write::ChangePlan;
use crate::document::id_text;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use weir_model::secrets;

/// The document about the whole.
const ABOUT: &str = "standalone/configs";
const DIGEST: HeaderName = HeaderName::from_static("x-digest");
const LAST_MODIFIED: HeaderName = HeaderName::from_static("x-last-modified");

/// Answers a read of the whole.
pub fn read(state: &AdminState, call: &ApiCall) -> ApiResponse {
    let about = state.get(ABOUT).map(|entry| &entry.value);
    let field = |name: &str| about.and_then(|about| about.get(name)).filter(|it| !it.is_null());
    let mut answer = match call.method {
        Method::HEAD => ApiResponse::empty(StatusCode::OK),
        _ => ApiResponse::json(StatusCode::OK, &whole(state, about, call.role)),
    };
    // JSON is YAML.
    if call
        .header("accept")
        .is_some_and(|kind| kind.starts_with("application/yaml"))
    {
        answer = answer.with(CONTENT_TYPE, "application/yaml");
    }
    for (name, header) in [("digest", DIGEST), ("last_modified", LAST_MODIFIED)] {
        match field(name) {
            Some(Value::String(text)) => answer = answer.with(header, text),
            Some(other) => answer = answer.with(header, &other.to_string()),
            None => {}
        }
    }
    answer
}

/// A client that may put the whole sees the private keys in it: clients compare them with what they are about to put.
fn whole(state: &AdminState, about: Option<&Value>, role: Role) -> Value {
    let mut whole = Map::new();
    for list in LISTS {
        let prefix = format!("{list}/");
        let mut items: Vec<Value> = state.below(&prefix).map(|entry| entry.value.clone()).collect();
        if role == Role::Viewer {
            items.iter_mut().for_each(secrets::hide);
        }
        if !items.is_empty() {
            whole.insert(list.to_owned(), Value::Array(items));
        }
        whole.insert(version_field(list), version_of(about, list));
    }
    let fields = [("digest", "X-Digest"), ("last_modified", "X-Last-Modified")];
    for (field, name) in fields {
        if let Some(value) = about
            .and_then(|about| about.get(field))
            .filter(|it| !it.is_null())
        {
            whole.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(whole)
}

fn version_of(about: Option<&Value>, list: &str) -> Value {
    let version = about.and_then(|about| about.get("versions")?.get(list));
    version.cloned().unwrap_or_else(|| json!(0))
}

/// Plans to put the whole.
///
/// # Errors
/// The answer that refuses it, or says that there is nothing to do.
pub fn plan(state: &AdminState, call: &ApiCall) -> Outcome<ChangePlan> {
    let Some(digest) = call.header(DIGEST.as_str()) else {
        return Err(ApiResponse::bad("missing digest header"));
    };
    let body = body(call)?;
    let about = state.get(ABOUT).map(|entry| &entry.value);
    if about.and_then(|about| about.get("digest")?.as_str()) == Some(digest) {
        return Err(ApiResponse::empty(StatusCode::NO_CONTENT));
    }
    if let Some(fault) = check_configuration(&body, call.settings, true).into_iter().next() {
        return Err(ApiResponse::bad(fault.error));
    }
    let mut changes = BTreeMap::new();
    let mut versions = Map::new();
    for list in LISTS {
        let field = version_field(list);
        let old = version_of(about, list);
        let old_number = old.as_f64().unwrap_or_default();
        let version = match body.get(&field).filter(|version| !version.is_null()) {
            None => json!(old.as_i64().unwrap_or_default() + 1),
            Some(version) if version.as_f64().unwrap_or_default() < old_number => {
                return Err(ApiResponse::bad(format!(
                    "{field} must be greater than or equal to ({old})"
                )));
            }
            Some(version) => version.clone(),
        };
        if version.as_f64() != old.as_f64() {
            replace(state, list, body.get(list), &mut changes);
        }
        versions.insert(list.to_owned(), version);
    }
    let seconds = call.seconds();
    let about = json!({"digest": digest, "last_modified": seconds, "versions": versions});
    let mut changes: Vec<_> = changes.into_iter().collect();
    changes.push((ABOUT.to_owned(), Some(about)));
    Ok(ChangePlan {
        changes,
        time_to_live: None,
        answer: ApiResponse::empty(StatusCode::ACCEPTED)
            .with(LAST_MODIFIED, &seconds.to_string())
            .with(DIGEST, digest),
    })
}

/// The content of a file, as changes. A client that has put the whole configuration before sees that it is another one
/// now.
pub fn changes_of_file(state: &AdminState, document: &Value) -> Vec<(String, Option<Value>)> {
    let mut changes = BTreeMap::new();
    for list in LISTS {
        replace(state, list, document.get(list), &mut changes);
    }
    let mut changes: Vec<_> = changes.into_iter().collect();
    changes.extend(touched(state, &changes));
    changes
}

/// The whole as a document, once these changes are made.
pub fn after(state: &AdminState, changes: &[(String, Option<Value>)]) -> Value {
    let mut whole = Map::new();
    for list in LISTS {
        let prefix = format!("{list}/");
        let mut items: BTreeMap<&str, &Value> = state
            .below(&prefix)
            .map(|entry| (&*entry.key, &entry.value))
            .collect();
        for (key, value) in changes.iter().filter(|(key, _)| key.starts_with(&prefix)) {
            match value {
                Some(value) => items.insert(key, value),
                None => items.remove(key.as_str()),
            };
        }
        if !items.is_empty() {
            whole.insert(list.to_owned(), items.into_values().cloned().collect());
        }
    }
    Value::Object(whole)
}

/// Puts the items of a list in the place of those that are stored. What stays the same is not written.
fn replace(
    state: &AdminState,
    list: &str,
    items: Option<&Value>,
    changes: &mut BTreeMap<String, Option<Value>>,
) {
    let prefix = format!("{list}/");
    let items = items.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut wanted: BTreeMap<String, &Value> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let named = ["id", "username", "name"]
            .iter()
            .filter(|field| **field != "name" || list == "plugins")
            .find_map(|field| id_text(item.get(*field)?));
        let id = named.unwrap_or_else(|| format!("arr_{}", index + 1));
        wanted.insert(format!("{prefix}{id}"), item);
    }
    for entry in state.below(&prefix) {
        if !wanted.contains_key(&*entry.key) {
            changes.insert(entry.key.to_string(), None);
        }
    }
    for (key, item) in wanted {
        if state.get(&key).is_none_or(|entry| entry.value != *item) {
            changes.insert(key, Some(item.clone()));
        }
    }
}

/// The change of the whole by single writes: the last whole that was put is no longer what is there.
pub fn touched(state: &AdminState, changes: &[(String, Option<Value>)]) -> Option<(String, Option<Value>)> {
    let mut about = state.get(ABOUT)?.value.clone();
    about["digest"] = Value::Null;
    for (key, _) in changes {
        let list = key.split('/').next().unwrap_or_default();
        let version = version_of(Some(&about), list).as_i64().unwrap_or_default();
        about["versions"][list] = json!(version + 1);
    }
    Some((ABOUT.to_owned(), Some(about)))
}
