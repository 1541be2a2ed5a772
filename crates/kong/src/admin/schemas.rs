//! `/schemas/…`: what entities and plugins are made of, and whether an entity would be accepted.

use super::call::ApiCall;
use super::failure::Failure;
use super::parse_entity::{self, Context};
use super::response::ApiResponse;
use super::state::Workspace;
use super::write;
use crate::describe;
use crate::document::entity_type::entity_type;
use axum::http::{Method, StatusCode};
use std::time::SystemTime;

/// Answers a call for a schema; `None`: the path is not that of a schema.
pub(super) fn answer(call: &ApiCall, now: SystemTime) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let found = match path.as_slice() {
        ["schemas", name, "validate"] if call.method == Method::POST => validate(call, name, now),
        ["schemas", _, "validate"] if !call.is_read() => Err(Failure(ApiResponse::method_not_allowed())),
        ["schemas", ..] | ["plugins", "schema", _] if !call.is_read() => {
            Err(Failure(ApiResponse::method_not_allowed()))
        }
        ["schemas", "plugins", name] => describe::plugin(name)
            .map(|schema| ApiResponse::ok(&schema))
            .ok_or_else(|| unknown(&format!("No plugin named '{name}'"))),
        ["schemas", "vaults", name] => describe::vault(name)
            .map(|schema| ApiResponse::ok(&schema))
            .ok_or_else(|| unknown(&format!("No vault named '{name}'"))),
        ["schemas", "filters", name] => Err(unknown(&format!("Filter '{name}' not found"))),
        ["schemas", name] => describe::entity(name)
            .map(|schema| ApiResponse::ok(&schema))
            .ok_or_else(|| unknown(&format!("No entity named '{name}'"))),
        ["plugins", "schema", name] => describe::plugin_config(name)
            .map(|schema| ApiResponse::ok(&schema))
            .ok_or_else(|| unknown(&format!("No plugin named '{name}'"))),
        ["schemas", ..] => Err(Failure::not_found()),
        _ => return None,
    };
    Some(found)
}

fn unknown(message: &str) -> Failure {
    Failure::message(StatusCode::NOT_FOUND, message)
}

/// Whether an entity is as it must be by itself. What it refers to, and whether another is like it, is not asked.
fn validate(call: &ApiCall, name: &str, now: SystemTime) -> Result<ApiResponse, Failure> {
    let entity_type = entity_type(name).ok_or_else(|| unknown(&format!("No entity named '{name}'")))?;
    let given = write::given(call, entity_type, None);
    parse_entity::read(
        entity_type,
        given,
        None,
        Context::Whole,
        &Workspace::default(),
        now,
    )?;
    Ok(ApiResponse::message(
        StatusCode::OK,
        "schema validation successful",
    ))
}
