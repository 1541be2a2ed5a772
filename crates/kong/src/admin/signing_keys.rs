//! `/jwt-signer/jwks`: the public halves of the keys in key sets, for those who check tokens that `jwt-signer` has signed.
//!
//! Only JSON Web Keys are told, and never a secret. Keys in PEM have their public half in `/keys`; what stands in a vault is
//! not known here.

use super::call::ApiCall;
use super::failure::Failure;
use super::path::uuid;
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use crate::document::entity_type::entity_type;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The members of public keys (RFC 7517, 4; RFC 7518, 6.2.1 and 6.3.1; RFC 8037, 2).
const PUBLIC: [&str; 14] = [
    "kty", "use", "key_ops", "alg", "kid", "x5u", "x5c", "x5t", "x5t#S256", "crv", "x", "y", "n", "e",
];

/// Answers a call for keys; `None`: the path leads elsewhere.
pub(super) fn answer(call: &ApiCall, view: WorkspaceView<'_>) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let name = match path.as_slice() {
        ["jwt-signer", "jwks"] => None,
        ["jwt-signer", "jwks", name] => Some(*name),
        _ => return None,
    };
    if !call.is_read() {
        return Some(Err(Failure(ApiResponse::method_not_allowed())));
    }
    let Some(name) = name else {
        let sets = entity_type("key_sets").map(|sets| view.workspace.table(sets));
        let all = sets.into_iter().flat_map(|sets| sets.all(Uuid::nil()));
        let told = |set: &std::sync::Arc<super::table::TableRow>| {
            let name = set.fields().get("name").cloned().unwrap_or_default();
            json!({ "id": set.id, "name": name, "keys": keys(view, set.id) })
        };
        let data: Vec<Value> = all.map(told).collect();
        return Some(Ok(ApiResponse::ok(&json!({ "data": data, "next": null }))));
    };
    Some(match find(view, name) {
        Some(id) => {
            let body = json!({ "keys": keys(view, id) });
            let kind = HeaderValue::from_static("application/jwk-set+json");
            Ok(ApiResponse::ok(&body).with(CONTENT_TYPE, kind))
        }
        None => Err(Failure::not_found()),
    })
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
        .filter_map(|id| public(keys.get(*id)?.fields().get("jwk")?.as_str()?))
        .collect()
}

/// The public half of a JSON Web Key; `None`: it has none.
fn public(jwk: &str) -> Option<Value> {
    let mut key: Map<String, Value> = serde_json::from_str(jwk).ok()?;
    let is_public = matches!(key.get("kty").and_then(Value::as_str), Some("RSA" | "EC" | "OKP"));
    key.retain(|name, _| PUBLIC.contains(&name.as_str()));
    is_public.then_some(Value::Object(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_halves_are_told() {
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
            assert_eq!(public(jwk).unwrap_or_default(), expected, "{jwk}");
        }
    }
}
