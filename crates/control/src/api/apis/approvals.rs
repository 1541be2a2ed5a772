//! Approvals: the agreement of a second person to one exact revision.

use super::commit::{Done, now};
use super::entities::{body_of, parse};
use super::{library, publish, versions};
use crate::access::{Action, Caller, Scope};
use crate::api::operation::refusal;
use crate::api::{Api, Problem};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_apis::entities::{Approval, ApprovalState, Publication, Runtime, Version};
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
    /// The runtime that is to be approved with it; left out: the one that the publication has.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    runtime: Option<Runtime>,
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
    let library = api.library().await?;
    let mut items = Vec::new();
    for approval in library.list::<Approval>(&library::approval_key(""))? {
        let mut item = json!(approval);
        let mut parts = approval.publication.split('/');
        if let (Some(name), Some(version)) = (parts.next(), parts.next()) {
            let known: Option<Version> = library.find(&library::version_key(name, version))?;
            // It still is for the revision that it names, which the next publish would not be.
            item["differs_from_draft"] = known.is_none_or(|it| it.draft.hash() != approval.hash).into();
        }
        items.push(item);
    }
    Ok(Json(json!({ "items": items })))
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
            let scope = Scope::Api((*name).to_owned());
            if !caller.can(Action::ApisWrite, &scope) {
                return Err(Problem::forbidden(refusal(&caller, Action::ApisWrite, &[scope])));
            }
            library.environment(environment)?;
            let revision = match wanted.revision {
                Some(number) => library.revision(name, version, number)?,
                None => versions::freeze(library, (name, version), &caller.name(), &wanted.reason, now())?,
            };
            let known: Option<Publication> = library.find(&library::publication_key(&wanted.publication))?;
            let diff = publish::difference(library, known.as_ref(), &revision)?;
            let approval = Approval {
                runtime: wanted.runtime.clone(),
                diff: Some(json!({ "operations": diff.operations, "breaking": diff.is_breaking() })),
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
