//! `/jwt-signer/jwks`: the public halves of the keys that `jwt-signer` signs with, for those who check its tokens; and the keys
//! that the gateway makes for it, which are rotated and removed here.
//!
//! An instance names its keys. If there is no key set of that name, keys are made together with the instance, and kept in the
//! store: all gateways sign with the same ones, and a restart changes nothing. Rotated keys are `previous` until the next rotation.
//!
//! Only public halves of JSON Web Keys are shown, and never a secret. Keys in PEM have their public half in `/keys`;
//! what stands in a vault is not known here.

use super::Admin;
use super::call::ApiCall;
use super::commit::writer_of;
use super::entity_rules::find_key_set;
use super::failure::Failure;
use super::path::uuid;
use super::plan::{ChangePlan, WorkspaceView};
use super::response::ApiResponse;
use super::table::TableRow;
use crate::document::entity_type::{EntityType, SIGNER_KEYS, entity_type};
use crate::plugins::jwt_signer::named_keys;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;
use uuid::Uuid;
use weir_model::unix_time::seconds;
use weir_plugins::jwt_signer::generate_keys;
use weir_store::Change;

/// The members of public keys (RFC 7517, 4; RFC 7518, 6.2.1 and 6.3.1; RFC 8037, 2).
const PUBLIC: [&str; 14] = [
    "kty", "use", "key_ops", "alg", "kid", "x5u", "x5c", "x5t", "x5t#S256", "crv", "x", "y", "n", "e",
];

/// Keys for sets that a write needs. Making them takes long, so that it is done between two attempts of the write.
#[derive(Default)]
pub(super) struct NewKeys {
    sets: Vec<Vec<Value>>,
    wanted: AtomicUsize,
}

impl NewKeys {
    /// Adds the sets of keys that an instance of `jwt-signer` names and that are not there.
    ///
    /// # Errors
    /// They have to be made first.
    pub(super) fn add(
        &self,
        view: &WorkspaceView<'_>,
        plugin: &Map<String, Value>,
        now: SystemTime,
        changes: &mut Vec<Change>,
    ) -> Result<(), Failure> {
        let names = missing_names(view, plugin);
        if names.len() > self.sets.len() {
            self.wanted.store(names.len(), Ordering::Relaxed);
            return Err(Failure(ApiResponse::unexpected()));
        }
        for (name, keys) in names.iter().zip(&self.sets) {
            changes.push(view.put(keys_type()?, &set(name, keys, now))?);
        }
        Ok(())
    }

    /// Makes what the last attempt has lacked. Returns whether there was anything.
    ///
    /// # Errors
    /// The machine gives no random numbers.
    pub(super) async fn make(&mut self) -> Result<bool, Failure> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let lacks = wanted > self.sets.len();
        while wanted > self.sets.len() {
            self.sets.push(spawn_generate_keys().await?);
        }
        Ok(lacks)
    }
}

async fn spawn_generate_keys() -> Result<Vec<Value>, Failure> {
    let keys = tokio::task::spawn_blocking(generate_keys).await.ok().flatten();
    keys.ok_or_else(|| Failure(ApiResponse::unexpected()))
}

fn keys_type() -> Result<&'static EntityType, Failure> {
    entity_type(SIGNER_KEYS).ok_or_else(Failure::not_found)
}

/// The names of sets that an instance names and that are not there.
fn missing_names<'p>(view: &WorkspaceView<'_>, plugin: &'p Map<String, Value>) -> Vec<&'p str> {
    let mut names: Vec<&str> = names_of(plugin)
        .filter(|name| find_key_set(view.workspace, name).is_none() && find_made(*view, name).is_none())
        .collect();
    names.dedup();
    names
}

/// The names of sets that an instance signs with, if it is one of `jwt-signer`.
fn names_of(plugin: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let is_it = plugin.get("name").is_some_and(|name| name == "jwt-signer");
    let config = plugin.get("config").filter(|_| is_it);
    config.into_iter().flat_map(named_keys).map(|named| named.name)
}

/// A set of keys as it is kept.
fn set(name: &str, keys: &[Value], now: SystemTime) -> Map<String, Value> {
    let now_s = seconds(now);
    Map::from_iter([
        ("id".to_owned(), Uuid::new_v4().to_string().into()),
        ("name".to_owned(), name.into()),
        ("keys".to_owned(), keys.into()),
        ("previous".to_owned(), json!([])),
        ("created_at".to_owned(), now_s.into()),
        ("updated_at".to_owned(), now_s.into()),
    ])
}

/// Answers a call that rotates or removes keys; `None`: the path leads elsewhere, or the call does not change anything.
pub(super) async fn change(admin: &Admin, call: &ApiCall) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    Some(match (&call.method, path.as_slice()) {
        (&Method::POST, ["jwt-signer", "jwks", name, "rotate"]) => rotate(admin, call, name).await,
        (&Method::DELETE, ["jwt-signer", "jwks", name]) => remove(admin, call, name).await,
        (&Method::OPTIONS, ["jwt-signer", "jwks", _, "rotate"]) => Ok(ApiResponse::options("OPTIONS, POST")),
        (&Method::OPTIONS, ["jwt-signer", "jwks", _]) => {
            Ok(ApiResponse::options("DELETE, GET, HEAD, OPTIONS"))
        }
        _ => return None,
    })
}

/// The current keys become the previous ones, and the previous ones are forgotten.
async fn rotate(admin: &Admin, call: &ApiCall, name: &str) -> Result<ApiResponse, Failure> {
    check_store(admin, "update")?;
    changeable(WorkspaceView::of(&admin.state(), call, SystemTime::now()), name)?;
    let keys = spawn_generate_keys().await?;
    let writer = writer_of(call);
    let answer = admin.write(&writer, |state| {
        let now = SystemTime::now();
        let view = WorkspaceView::of(state, call, now);
        let row = changeable(view, name)?;
        call.check_match(Some(row.modified))?;
        let mut fields = row.fields();
        let previous = fields.insert("keys".to_owned(), keys.as_slice().into());
        fields.insert("previous".to_owned(), previous.unwrap_or_else(|| json!([])));
        fields.insert("updated_at".to_owned(), seconds(now).into());
        Ok(ChangePlan {
            changes: vec![view.put(keys_type()?, &fields)?],
            answer: keys_response(&halves(&fields)),
            has_document: true,
        })
    });
    answer.await
}

/// Keys that are in use are replaced by others, and nothing is left of them.
async fn remove(admin: &Admin, call: &ApiCall, name: &str) -> Result<ApiResponse, Failure> {
    check_store(admin, "remove")?;
    let is_used = {
        let state = admin.state();
        let view = WorkspaceView::of(&state, call, SystemTime::now());
        let row = changeable(view, name)?;
        is_used(view, &row)
    };
    let keys = if is_used {
        spawn_generate_keys().await?
    } else {
        Vec::new()
    };
    let writer = writer_of(call);
    let answer = admin.write(&writer, |state| {
        let now = SystemTime::now();
        let view = WorkspaceView::of(state, call, now);
        let row = changeable(view, name)?;
        call.check_match(Some(row.modified))?;
        let mut changes = vec![view.delete(keys_type()?, row.id)?];
        if is_used {
            let name = row.fields().remove("name").unwrap_or_default();
            changes.push(view.put(keys_type()?, &set(name.as_str().unwrap_or_default(), &keys, now))?);
        }
        Ok(ChangePlan {
            changes,
            answer: ApiResponse::no_content(),
            has_document: false,
        })
    });
    answer.await
}

/// The keys of a file are the file's.
fn check_store(admin: &Admin, operation: &str) -> Result<(), Failure> {
    match admin.file {
        Some(_) => Err(Failure::unsupported(operation, SIGNER_KEYS, None)),
        None => Ok(()),
    }
}

/// Keys that the gateway has made.
///
/// # Errors
/// There are none of that name, or an administrator has written them.
fn changeable(view: WorkspaceView<'_>, name: &str) -> Result<Arc<TableRow>, Failure> {
    if find(view, name).is_some() {
        let message = "the keys of this key set are written by hand: change them in /keys and /key-sets";
        return Err(Failure::message(StatusCode::BAD_REQUEST, message));
    }
    find_made(view, name).ok_or_else(Failure::not_found)
}

fn find_made(view: WorkspaceView<'_>, name: &str) -> Option<Arc<TableRow>> {
    let made = view.workspace.table(entity_type(SIGNER_KEYS)?);
    let by_id = uuid(name).and_then(|id| made.get(id));
    by_id.or_else(|| made.find("name", name)).cloned()
}

/// Whether an instance signs with these keys.
fn is_used(view: WorkspaceView<'_>, row: &TableRow) -> bool {
    let fields = row.fields();
    let Some(name) = fields.get("name").and_then(Value::as_str) else {
        return false;
    };
    if find_key_set(view.workspace, name).is_some() {
        return false;
    }
    let plugins = entity_type("plugins").map(|plugins| view.workspace.table(plugins));
    let mut instances = plugins.into_iter().flat_map(|plugins| plugins.all(Uuid::nil()));
    instances.any(|kept| names_of(&kept.fields()).any(|named| named == name))
}

/// Answers a call for keys; `None`: the path leads elsewhere.
pub(super) fn answer(call: &ApiCall, view: WorkspaceView<'_>) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let name = match path.as_slice() {
        ["jwt-signer", "jwks"] => None,
        ["jwt-signer", "jwks", name] => Some(*name),
        ["jwt-signer", "jwks", _, "rotate"] => return Some(Err(Failure(ApiResponse::method_not_allowed()))),
        ["jwt-signer", ..] => return Some(Err(Failure::not_found())),
        _ => return None,
    };
    if !call.is_read() {
        return Some(Err(Failure(ApiResponse::method_not_allowed())));
    }
    let Some(name) = name else {
        return Some(Ok(ApiResponse::ok(&json!({ "data": list(view), "next": null }))));
    };
    Some(if let Some(id) = find(view, name) {
        Ok(keys_response(&json!({ "keys": keys(view, id), "previous": [] })))
    } else {
        let made = find_made(view, name).ok_or_else(Failure::not_found);
        made.map(|row| keys_response(&halves(&row.fields())))
    })
}

fn keys_response(body: &Value) -> ApiResponse {
    ApiResponse::ok(body).with(CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json"))
}

/// All key sets, and all keys that the gateway has made.
fn list(view: WorkspaceView<'_>) -> Vec<Value> {
    let rows = |name: &str| {
        let table = entity_type(name).map(|entity_type| view.workspace.table(entity_type));
        table.into_iter().flat_map(|table| table.all(Uuid::nil()))
    };
    let of_set = |set: &Arc<TableRow>| {
        let name = set.fields().get("name").cloned().unwrap_or_default();
        json!({ "id": set.id, "name": name, "keys": keys(view, set.id), "previous": [] })
    };
    let of_made = |row: &Arc<TableRow>| {
        let fields = row.fields();
        let mut halves_of_set = halves(&fields);
        halves_of_set["id"] = row.id.to_string().into();
        for name in ["name", "created_at", "updated_at"] {
            halves_of_set[name] = fields.get(name).cloned().unwrap_or_default();
        }
        halves_of_set
    };
    let sets = rows("key_sets").map(of_set);
    sets.chain(rows(SIGNER_KEYS).map(of_made)).collect()
}

/// The public halves of keys that the gateway has made.
fn halves(fields: &Map<String, Value>) -> Value {
    let halves = |name: &str| -> Vec<Value> {
        let keys = fields.get(name).and_then(Value::as_array);
        keys.into_iter().flatten().filter_map(public).collect()
    };
    json!({ "keys": halves("keys"), "previous": halves("previous") })
}

fn find(view: WorkspaceView<'_>, name: &str) -> Option<Uuid> {
    let sets = view.workspace.table(entity_type("key_sets")?);
    let by_id = uuid(name).and_then(|id| sets.get(id));
    Some(by_id.or_else(|| sets.find("name", name))?.id)
}

fn keys(view: WorkspaceView<'_>, set: Uuid) -> Vec<Value> {
    let Some(keys) = entity_type("keys").map(|keys| view.workspace.table(keys)) else {
        return Vec::new();
    };
    let members = keys.referring("set", set).into_iter().flatten();
    members
        .filter_map(|id| public(&serde_json::from_str(keys.get(*id)?.fields().get("jwk")?.as_str()?).ok()?))
        .collect()
}

/// The public half of a JSON Web Key; `None`: it has none.
fn public(jwk: &Value) -> Option<Value> {
    let mut key = jwk.as_object()?.clone();
    let is_public = matches!(key.get("kty").and_then(Value::as_str), Some("RSA" | "EC" | "OKP"));
    key.retain(|name, _| PUBLIC.contains(&name.as_str()));
    is_public.then_some(Value::Object(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_halves_are_shown() {
        for (jwk, expected) in [
            (
                r#"{"kty":"RSA","kid":"a","n":"N","e":"E","d":"D","p":"P","q":"Q","dp":"1","dq":"2","qi":"3","oth":[]}"#,
                json!({"kty": "RSA", "kid": "a", "n": "N", "e": "E"}),
            ),
            (
                r#"{"kty":"EC","crv":"P-256","x":"X","y":"Y","d":"D","priv":"?"}"#,
                json!({"kty": "EC", "crv": "P-256", "x": "X", "y": "Y"}),
            ),
            (r#"{"kty":"oct","k":"K"}"#, Value::Null),
            (r#"{"k":"K"}"#, Value::Null),
            (r#"{"kty":["RSA"],"d":"D"}"#, Value::Null),
            ("{vault://env/key}", Value::Null),
        ] {
            let key: Value = serde_json::from_str(jwk).unwrap_or_default();
            assert_eq!(public(&key).unwrap_or_default(), expected, "{jwk}");
        }
    }
}
