//! `POST /api/v1/documents/fetch`: the document at an address, for an API that begins with it. A flag of
//! its own says which addresses are asked: without it, public ones only. Those of webhooks do not count: a webhook shows no
//! answer, this call does.

use crate::access::Caller;
use crate::api::json_body::{Json, JsonBody};
use crate::api::{Api, Problem};
use crate::http::ClientRequest;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time;

/// The largest document, in bytes.
const MAX_DOCUMENT: usize = 8 << 20;
/// Until the head of the answer is there, and then until its end.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Documents of one person in a minute.
const MOST: u32 = 20;

/// The address of the document.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchDocumentRequest {
    /// `https://HOST/PATH`, or with `http`.
    url: String,
}

/// A document.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FetchDocumentResponse {
    /// Its text.
    text: String,
}

/// Answers `POST /api/v1/documents/fetch`.
pub async fn fetch(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    JsonBody(wanted): JsonBody<FetchDocumentRequest>,
) -> Result<Json<FetchDocumentResponse>, Problem> {
    let now = unix_time::seconds(SystemTime::now());
    let who = format!("documents {}", caller.name());
    if let Err(wait) = api.tries.take(&who, MOST, now) {
        let detail = format!("{MOST} documents a minute are fetched; try again in {wait} seconds");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let call = ClientRequest {
        timeout: TIMEOUT,
        max_body: MAX_DOCUMENT,
        reach: Some(Arc::clone(&api.options.reach)),
        ..ClientRequest::get(wanted.url)
    };
    let call = call
        .header(
            "Accept",
            "application/yaml, application/json, text/plain, */*;q=0.5",
        )
        .header("User-Agent", "weir");
    let away = |error: &dyn std::fmt::Display| Problem::bad(format!("url: {error}"));
    let (status, body) = call.make().await.map_err(|error| away(&error))?;
    if status.is_redirection() {
        return Err(away(&format!(
            "the server answers {status}: give the address that it leads to"
        )));
    }
    if !status.is_success() {
        return Err(away(&format!("the server answers {status}")));
    }
    let text = String::from_utf8(body.to_vec());
    let text = text.map_err(|_| away(&"the response is not text"))?;
    Ok(Json(FetchDocumentResponse { text }))
}
