//! Approvals: the agreement of a second person to one exact revision.

use super::commit::{Done, now};
use super::entities::{body_of, parse};
use super::{library, versions};
use crate::access::Caller;
use crate::api::{Api, Problem};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_apis::entities::{Approval, ApprovalState};
use weir_apis::states;

/// What somebody is to agree to.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApproval {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    publication: String,
    /// The revision; left out: one of the draft.
    #[serde(default)]
    revision: Option<u32>,
    /// Why.
    #[serde(default)]
    reason: String,
}

/// What was decided.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// `granted`, `refused` or `withdrawn`.
    state: String,
    /// Why.
    #[serde(default)]
    reason: String,
}

pub async fn list(State(api): State<Arc<Api>>) -> Result<Json<Value>, Problem> {
    super::entities::listed(&api, "approvals").await
}

pub async fn ask(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let wanted: NewApproval = parse(&body_of(&body)?)?;
    let written = api
        .manage(&caller, &headers, |library| {
            let parts: Vec<&str> = wanted.publication.split('/').collect();
            let [name, version, environment] = parts.as_slice() else {
                return Err(Problem::bad("expected API/VERSION/ENVIRONMENT in 'publication'"));
            };
            library.environment(environment)?;
            let revision = match wanted.revision {
                Some(number) => library.revision(name, version, number)?,
                None => versions::freeze(library, (name, version), &caller.name(), &wanted.reason, now())?,
            };
            let approval = Approval {
                id: format!("{}-{:x}", &revision.hash[..12.min(revision.hash.len())], now()),
                publication: wanted.publication.clone(),
                hash: revision.hash,
                requested_by: caller.name(),
                reason: wanted.reason.clone(),
                created: now(),
                ..Approval::default()
            };
            library.put(&library::approval_key(&approval.id), &approval)?;
            Ok(Done::quiet(
                format!("ask for approval of {}", wanted.publication),
                approval,
            ))
        })
        .await?;
    Ok((StatusCode::CREATED, Json(json!(written.answer))).into_response())
}

pub async fn decide(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(decision): Json<Decision>,
) -> Result<Json<Value>, Problem> {
    let to: ApprovalState = parse(&Value::from(decision.state.as_str()))?;
    let written = api
        .manage(&caller, &headers, |library| {
            let mut approval: Approval = library.get(&library::approval_key(&id))?;
            approval.state = states::approval(approval.state, to, &approval.requested_by, &caller.name())?;
            approval.decided_by = caller.name();
            approval.decision.clone_from(&decision.reason);
            library.put(&library::approval_key(&id), &approval)?;
            Ok(Done::quiet(
                format!("approval {id}: {}", decision.state),
                approval,
            ))
        })
        .await?;
    Ok(Json(json!(written.answer)))
}
