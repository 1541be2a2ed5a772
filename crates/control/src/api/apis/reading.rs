//! What pages read of versions other than the versions themselves: all of them at once, and documents as they were
//! uploaded.

use super::entity_snapshot::PREFIX;
use super::specs;
use super::visible::VisibilityFilter;
use crate::access::Caller;
use crate::api::json_body::Json;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_apis::entities::Version;

/// All versions of all APIs, without what their drafts hold.
/// Of these, those of the APIs that the caller sees.
pub async fn versions(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let versions: Vec<Version> = snapshot.list(&format!("{PREFIX}versions/"))?;
    let items: Vec<Value> = versions
        .iter()
        .map(|it| {
            json!({
                "api": it.api, "version": it.version, "display_name": it.display_name, "line": it.line,
                "draft": { "state": it.draft.state, "hash": it.draft.hash(), "review": it.draft.review },
                "last_revision": it.last_revision, "created": it.created, "modified": it.modified,
            })
        })
        .collect();
    let items = VisibilityFilter::new(&snapshot, &caller).of_list("versions", items)?;
    Ok(Json(json!({ "items": items })))
}

/// Which document.
#[derive(Deserialize, JsonSchema)]
pub struct SpecQuery {
    /// That of a revision; left out: the draft's.
    revision: Option<u32>,
}

/// A document as it was uploaded. Lines of findings count in it.
pub async fn spec(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
    Query(wanted): Query<SpecQuery>,
) -> Result<Response, Problem> {
    let snapshot = api.snapshot().await?;
    let hash = match wanted.revision {
        None => snapshot.version(&name, &version)?.draft.spec,
        Some(number) => snapshot.revision(&name, &version, number)?.spec,
    };
    let text = specs::text(&snapshot, &hash)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}
