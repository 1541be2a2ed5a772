//! The rules for the decorations of services, which are checked before their documents.

use super::call::Target;
use super::kind::Kind;
use super::response::{ApiResponse, Outcome};
use super::state::AdminState;
use crate::document::id_text;
use axum::http::StatusCode;
use serde_json::Value;

/// Checks that the service is there, and that no other decoration is of the same field. Other kinds pass.
///
/// # Errors
/// The answer in APISIX's words.
pub fn check(state: &AdminState, target: &Target, body: Option<&Value>) -> Outcome<()> {
    if target.kind != Kind::CostDecoration {
        return Ok(());
    }
    let service = target.owner.as_deref().unwrap_or_default();
    let Some(value @ Value::Object(_)) = body else {
        return Err(ApiResponse::bad("invalid configuration"));
    };
    let own = value.get("service_id").and_then(id_text);
    if own.is_some_and(|own| own != service) {
        return Err(ApiResponse::bad("wrong service_id, it is taken from the path"));
    }
    if state.get(&format!("services/{service}")).is_none() {
        return Err(ApiResponse::error(StatusCode::NOT_FOUND, "service not found"));
    }
    check_field_path(state, target, value)
}

/// Checks that no other decoration of the service is of the same field.
///
/// # Errors
/// The answer in APISIX's words, which names the other one.
pub fn check_field_path(state: &AdminState, target: &Target, value: &Value) -> Outcome<()> {
    let field_path = |value: &Value| value.get("field_path").and_then(Value::as_str).map(str::to_owned);
    let Some(path) = field_path(value) else {
        return Ok(());
    };
    let collection = target.collection();
    let mut others = state
        .collection(&collection)
        .filter(|other| Some(other.id()) != target.id.as_deref());
    match others.find(|other| field_path(&other.value).as_ref() == Some(&path)) {
        Some(other) => Err(ApiResponse::bad(format!(
            "field_path {path} is already decorated on this service by [{}]",
            other.id()
        ))),
        None => Ok(()),
    }
}
