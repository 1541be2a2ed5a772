//! `POST /api/v1/import/openapi`: the document in the body becomes a service with its routes; a second import changes
//! what has changed.

use super::document_cache::PREFIX;
use super::openapi;
use super::precondition::tag_of;
use super::problem::Problem;
use super::resources::ResourceWrite;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::Caller;
use crate::api::json_body::Json;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::document;
use weir_store::Key;

/// Values that the document does not have, or has otherwise.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct ImportOptions {
    /// The service's name.
    name: Option<String>,
    /// The URL that calls are sent to.
    url: Option<String>,
}

pub async fn import(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(wanted): Query<ImportOptions>,
    mut headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let document = document::parse(&body).map_err(|found| Problem::bad(found.message))?;
    let skipped = openapi::skipped(&document);
    let fresh =
        openapi::service(&document, wanted.name.as_deref(), wanted.url.as_deref()).map_err(Problem::bad)?;
    let name = fresh["name"].as_str().unwrap_or_default().to_owned();
    let key =
        Key::new(&format!("{PREFIX}services/{name}")).map_err(|error| Problem::bad(error.to_string()))?;
    let document = api.resources.get(&key);
    // What is merged is what is replaced: a change that comes in between is not lost.
    let tag = document.as_ref().map(|it| tag_of(it.modified));
    if let Some(Ok(tag)) = tag.as_deref().map(HeaderValue::from_str) {
        headers.entry(IF_MATCH).or_insert(tag);
    }
    let (is_new, is_dry) = (document.is_none(), is_dry_run(&headers));
    let known: Option<Value> = document.and_then(|it| serde_json::from_slice(&it.value).ok());
    let merged = openapi::merged(fresh, known.as_ref());
    let answer = json!({
        "service": name,
        "is_new": known.is_none(),
        "routes": openapi::difference(known.as_ref(), &merged),
        "skipped": skipped,
        "dry_run": is_dry,
    });
    if known.as_ref() != Some(&merged) {
        let write = ResourceWrite {
            caller: &caller,
            headers: &headers,
            note: "POST /api/v1/import/openapi".to_owned(),
            key,
            value: Some(merged),
            is_new,
        };
        api.write(write).await?;
    }
    Ok(match is_dry {
        true => tried(Json(answer)),
        false => Json(answer).into_response(),
    })
}
