//! `/tags`: which entities have which tags.

use super::call::ApiCall;
use super::failure::Failure;
use super::page::{escape, read_size};
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use crate::document::entity_type::ENTITY_TYPES;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use uuid::Uuid;

/// The members of a page if a call does not say.
const DEFAULT_SIZE: usize = 100;

/// Answers a call for tags; `None`: the path leads elsewhere.
pub(super) fn answer(call: &ApiCall, view: WorkspaceView<'_>) -> Option<Result<ApiResponse, Failure>> {
    let (tag, base) = match call.path.as_slice() {
        [tags] if tags == "tags" => (None, "/tags".to_owned()),
        [tags, tag] if tags == "tags" => (Some(tag.as_str()), format!("/tags/{}", escape(tag))),
        _ => return None,
    };
    if !call.is_read() {
        return Some(Err(Failure(ApiResponse::method_not_allowed())));
    }
    Some(list(call, view, tag, &base))
}

fn list(
    call: &ApiCall,
    view: WorkspaceView<'_>,
    tag: Option<&str>,
    base: &str,
) -> Result<ApiResponse, Failure> {
    let size = call.argument("size").map_or(Ok(DEFAULT_SIZE), read_size)?;
    let from = call.argument("offset").map_or(Ok(0), read_offset)?;
    let mut found = tagged(view, tag);
    found.sort();
    let page: Vec<Value> = found
        .iter()
        .skip(from)
        .take(size)
        .map(|(tag, entity_type, id)| json!({ "tag": tag, "entity_name": entity_type, "entity_id": id }))
        .collect();
    let mut body = json!({ "data": page, "next": null });
    if found.len() > from.saturating_add(size) {
        let offset = URL_SAFE_NO_PAD.encode((from + size).to_string());
        body["next"] = format!("{base}?offset={}", escape(&offset)).into();
        body["offset"] = offset.into();
    }
    Ok(ApiResponse::json(StatusCode::OK, &body))
}

fn tagged<'s>(view: WorkspaceView<'s>, wanted: Option<&str>) -> Vec<(&'s str, &'static str, Uuid)> {
    let mut found = Vec::new();
    for entity_type in ENTITY_TYPES {
        for (tag, ids) in view.workspace.table(entity_type).tags() {
            if wanted.is_none_or(|wanted| wanted == tag) {
                found.extend(ids.iter().map(|id| (tag, entity_type.name, *id)));
            }
        }
    }
    found
}

fn read_offset(offset: &str) -> Result<usize, Failure> {
    let bytes = URL_SAFE_NO_PAD
        .decode(offset.trim_end_matches('='))
        .map_err(|_| Failure::invalid_offset(offset, "bad base64 encoding"))?;
    std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::invalid_offset(offset, "invalid offset"))
}
