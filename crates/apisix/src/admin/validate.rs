//! Checks without a write: of a whole configuration, and of one document against its shape.

use super::call::ApiCall;
use super::check::{CheckContext, check};
use super::configuration::{LISTS, body, version_field};
use super::kind::Kind;
use super::response::ApiResponse;
use crate::document::{credential_of, id_text};
use crate::schema::kind_of;
use crate::settings::Settings;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;

/// A fault in a configuration.
#[derive(Debug, PartialEq, Serialize)]
pub struct ValidationError {
    resource_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    pub error: String,
}

/// `POST /configs/validate`.
pub fn configs(call: &ApiCall) -> ApiResponse {
    let body = match body(call) {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let faults = check_configuration(&body, call.settings, false);
    if faults.is_empty() {
        return ApiResponse::json(StatusCode::OK, &json!({}));
    }
    let answer = json!({"error_msg": "Configuration validation failed", "errors": faults});
    ApiResponse::json(StatusCode::BAD_REQUEST, &answer)
}

/// Everything that is wrong in a configuration, or the first thing.
pub fn check_configuration(
    body: &Value,
    settings: &'static Settings,
    first_only: bool,
) -> Vec<ValidationError> {
    let mut faults = Vec::new();
    for list in LISTS {
        let version = body.get(version_field(list)).filter(|it| !it.is_null());
        if let Some(version) = version.filter(|version| !version.is_number()) {
            let field = version_field(list);
            faults.push(ValidationError {
                resource_type: list,
                resource_id: None,
                index: None,
                error: match first_only {
                    true => format!("{field} must be a number"),
                    false => format!("{field} must be a number, got {}", kind_of(version)),
                },
            });
        }
        check_list(list, body.get(list), settings, &mut faults);
        if first_only && !faults.is_empty() {
            break;
        }
    }
    faults
}

fn check_list(
    list: &'static str,
    items: Option<&Value>,
    settings: &'static Settings,
    faults: &mut Vec<ValidationError>,
) {
    let items = match items {
        None | Some(Value::Null) => return,
        Some(Value::Array(items)) => items,
        Some(Value::Object(map)) if map.is_empty() => return,
        Some(_) => {
            faults.push(ValidationError {
                resource_type: list,
                resource_id: None,
                index: None,
                error: format!("{list} must be a list"),
            });
            return;
        }
    };
    let mut ids = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let id = || item.get("id").or_else(|| item.get("username")).cloned();
        let mut add = |error: String| {
            faults.push(ValidationError {
                resource_type: list,
                resource_id: Some(id().unwrap_or_else(|| json!(""))),
                index: Some(index),
                error,
            });
        };
        if let Err(error) = check_item(list, item, settings) {
            add(error);
        }
        let (name, what) = match (list, item.get("id")) {
            ("consumers", None) => (item.get("username"), "username"),
            ("consumers", id) => (id, "credential id"),
            (_, id) => (id, "id"),
        };
        if let Some(name) = name.and_then(id_text)
            && !ids.insert(name.clone())
        {
            add(format!("found duplicate {what} {name} in {list}"));
        }
    }
}

fn check_item(list: &str, item: &Value, settings: &'static Settings) -> Result<(), String> {
    let Some(mut kind) = Kind::of(list) else {
        return Ok(());
    };
    let mut item = item.clone();
    let Value::Object(map) = &mut item else {
        return Err("invalid configuration: wrong type: expected object".to_owned());
    };
    // The time of an item's last change, by its writer's count.
    if let Some(index) = map.shift_remove("modifiedIndex")
        && !(index.is_i64() || index.is_u64())
    {
        let kind = kind_of(&index);
        return Err(format!(
            "invalid configuration: property \"modifiedIndex\" validation failed: wrong type: expected integer, got {kind}"
        ));
    }
    let id = item.get("id").and_then(id_text);
    let mut owner = None;
    match (kind, id.as_deref()) {
        (Kind::Consumer, Some(id)) if credential_of(id).is_some() => kind = Kind::Credential,
        (Kind::Secret, id) => {
            let text = id.unwrap_or("nil");
            let (manager, _) = text
                .split_once('/')
                .ok_or_else(|| format!("invalid secret id: {text}"))?;
            owner = Some(manager.to_owned());
        }
        _ => {}
    }
    let around = CheckContext {
        state: None,
        owner: owner.as_deref(),
        settings,
    };
    check(kind, id.as_deref(), &item, around)
}

/// `POST /schema/validate/{collection}`.
pub fn schema(call: &ApiCall, collection: &str) -> ApiResponse {
    let Some(kind) = Kind::of(collection) else {
        return ApiResponse::error(
            StatusCode::NOT_FOUND,
            format!("Unsupported resource type: {collection}"),
        );
    };
    let value = match call.json() {
        Ok(value) => value,
        Err(refusal) => return refusal,
    };
    let mut value = value.unwrap_or(Value::Null);
    match kind.shape().map_or(Ok(()), |shape| shape.check(&mut value)) {
        Ok(()) => ApiResponse::empty(StatusCode::OK),
        Err(error) => ApiResponse::bad(error),
    }
}
