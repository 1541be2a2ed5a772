//! Whether the key that a call of the Admin API shows lets it in.

use super::call::ApiCall;
use super::key::{Key, Role};
use super::response::{ApiResponse, Outcome};
use axum::http::{Method, StatusCode};
use serde_json::json;

/// Checks the key that a call shows, as argument `api_key`, header `X-API-KEY` or cookie `x_api_key`. What its holder
/// may do is `None` if no key is needed.
///
/// # Errors
/// 401 in APISIX's words.
pub fn check(keys: &[Key], call: &ApiCall) -> Outcome<Option<Role>> {
    // Which version this is, and which calls a page in a browser may make, everybody may know.
    let is_public = match call.method {
        Method::HEAD => call.path == "/apisix/admin",
        Method::OPTIONS => true,
        _ => false,
    };
    if keys.is_empty() {
        // Without keys, all callers may write.
        return Ok(Some(Role::Admin));
    }
    if is_public {
        return Ok(None);
    }
    let presented = call
        .arg("api_key")
        .or_else(|| call.header("x-api-key"))
        .or_else(|| call.header("x_api_key"))
        .or_else(|| cookie(call, "x_api_key"));
    let fault = match presented {
        None => "missing apikey",
        Some(presented) => match keys.iter().find(|known| is_same(&known.key, presented)) {
            None => "wrong apikey",
            Some(Key {
                role: Role::Viewer, ..
            }) if call.method != Method::GET => "invalid method for role viewer",
            Some(key) => return Ok(Some(key.role)),
        },
    };
    Err(ApiResponse::json(
        StatusCode::UNAUTHORIZED,
        &json!({"error_msg": "failed to check token", "description": fault}),
    ))
}

fn cookie<'c>(call: &'c ApiCall, name: &str) -> Option<&'c str> {
    let mut pairs = call.header("cookie")?.split(';');
    pairs.find_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    })
}

/// Compares in a time that does not reveal how much of the text was right.
fn is_same(known: &str, presented: &str) -> bool {
    let differing = known
        .bytes()
        .zip(presented.bytes())
        .fold(0, |differing, (one, other)| differing | (one ^ other));
    known.len() == presented.len() && differing == 0
}
