//! Approvals: the agreement of a second person to one exact revision.

use super::authors::authors_between;
use super::clock::now;
use super::entities::{body_of, parse};
use super::entity_snapshot::{self, EntitySnapshot};
use super::visible::EntityScopes;
use super::write_effects::WriteEffects;
use super::{publish, secrecy, versions};
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::{Json, JsonBody};
use crate::api::operation::refusal;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{Approval, ApprovalState, Publication, Revision, Runtime, Version};
use weir_apis::{hash, states};

/// A request for an approval.
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

/// A decision about an approval.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// `granted`, `refused` or `withdrawn`.
    state: String,
    /// Why.
    #[serde(default)]
    reason: String,
}

/// Refuses what a caller may not do with an approval, which lies in its API and in the environment of its publication.
fn permit(caller: &Caller, action: Action, approval: &Approval) -> Result<(), Problem> {
    EntityScopes::of_publication(&approval.publication).permit(caller, action)
}

/// The approvals of those APIs and environments that the caller may see.
pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let mut items = Vec::new();
    let all = snapshot.list::<Approval>(&entity_snapshot::approval_key(""))?;
    let is_visible = |it: &Approval| permit(&caller, Action::ApprovalsRead, it).is_ok();
    for approval in all.into_iter().filter(is_visible) {
        let mut item = json!(approval);
        secrecy::hide(&caller, "approvals", &mut item);
        let mut parts = approval.publication.split('/');
        if let (Some(name), Some(version)) = (parts.next(), parts.next()) {
            let known: Option<Version> = snapshot.find(&entity_snapshot::version_key(name, version))?;
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
        .manage(&caller, &headers, |snapshot| {
            let parts: Vec<&str> = wanted.publication.split('/').collect();
            let [name, version, environment] = parts.as_slice() else {
                return Err(Problem::bad("expected API/VERSION/ENVIRONMENT in 'publication'"));
            };
            let scope = Scope::Api((*name).to_owned());
            if !caller.can(Action::ApisWrite, &scope) {
                return Err(Problem::forbidden(refusal(&caller, Action::ApisWrite, &[scope])));
            }
            snapshot.environment(environment)?;
            let revision = match wanted.revision {
                Some(number) => snapshot.revision(name, version, number)?,
                None => versions::freeze(snapshot, (name, version), &caller.name(), &wanted.reason, now())?,
            };
            let known: Option<Publication> =
                snapshot.find(&entity_snapshot::publication_key(&wanted.publication))?;
            let diff = publish::difference(snapshot, known.as_ref(), &revision)?;
            let published = known.as_ref().map_or(0, |it| it.revision);
            let authors = authors(snapshot, (name, version), published, &revision)?;
            let approval = Approval {
                runtime: wanted.runtime.clone(),
                diff: Some(json!({ "operations": diff.operations, "breaking": diff.is_breaking() })),
                id: free_id(snapshot, &wanted.publication, &revision.hash, now()),
                publication: wanted.publication.clone(),
                hash: revision.hash,
                requested_by: caller.name(),
                authors,
                reason: wanted.reason.clone(),
                created: now(),
                ..Approval::default()
            };
            snapshot.put(&entity_snapshot::approval_key(&approval.id), &approval)?;
            Ok(WriteEffects::quiet(
                format!("ask for approval of {}", wanted.publication),
                approval,
            ))
        })
        .await?;
    Ok((StatusCode::CREATED, Json(json!(written.answer))).into_response())
}

/// An id that no approval has: the same content may be asked for in two places within a second.
fn free_id(snapshot: &EntitySnapshot, publication: &str, hash: &str, now: u64) -> String {
    let mark = hash::of_bytes(format!("{publication} {hash}").as_bytes());
    let mark = &mark[..12];
    let ids = (now..).map(|at| format!("{mark}-{at:x}"));
    let mut free = ids.filter(|id| snapshot.bytes(&entity_snapshot::approval_key(id)).is_none());
    free.next().unwrap_or_else(|| mark.to_owned())
}

pub async fn decide(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(decision): JsonBody<Decision>,
) -> Result<Json<Value>, Problem> {
    let to = match decision.state.as_str() {
        "granted" => ApprovalState::Granted,
        "refused" => ApprovalState::Refused,
        "withdrawn" => ApprovalState::Withdrawn,
        other => {
            let message = format!("expected granted, refused or withdrawn, found '{other}'");
            return Err(Problem::step("read", vec![("state".to_owned(), message)]));
        }
    };
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let mut approval: Approval = snapshot.get(&entity_snapshot::approval_key(&id))?;
            permit(&caller, Action::ApprovalsDecide, &approval)?;
            if to == ApprovalState::Granted {
                not_by_its_author(snapshot, &approval, &caller.name())?;
            }
            approval.state = states::approval(approval.state, to, &approval.requested_by, &caller.name())?;
            approval.decided_by = caller.name();
            approval.decision.clone_from(&decision.reason);
            snapshot.put(&entity_snapshot::approval_key(&id), &approval)?;
            Ok(WriteEffects::quiet(
                format!("approval {id}: {}", decision.state),
                approval,
            ))
        })
        .await?;
    let mut answer = json!(written.answer);
    secrecy::hide(&caller, "approvals", &mut answer);
    Ok(Json(answer))
}

/// The authors of what a revision has more than the one that is published: all changes of all revisions since.
fn authors(
    snapshot: &EntitySnapshot,
    (name, version): (&str, &str),
    published: u32,
    revision: &Revision,
) -> Result<BTreeSet<String>, Problem> {
    let mut authors = authors_between(snapshot, (name, version), (published, revision.number))?;
    // The last one may be made in this very step.
    authors.extend(revision.authors.iter().cloned());
    authors.insert(revision.author.clone());
    authors.remove("");
    Ok(authors)
}

/// Refuses the approval of a person who has made a part of the content, even if another person has asked for it.
fn not_by_its_author(snapshot: &EntitySnapshot, approval: &Approval, by: &str) -> Result<(), Problem> {
    let mut parts = approval.publication.split('/');
    let (Some(name), Some(version)) = (parts.next(), parts.next()) else {
        return Ok(());
    };
    let revisions: Vec<Revision> = snapshot.list(&entity_snapshot::revisions_key(name, version))?;
    let is_own = |it: &Revision| it.hash == approval.hash && (it.author == by || it.authors.contains(by));
    match approval.authors.contains(by) || revisions.iter().any(is_own) {
        true => Err(Problem::forbidden(format!(
            "{by} has edited a part of this content: another person has to approve it"
        ))),
        false => Ok(()),
    }
}

/// Takes back what one has asked for oneself. It needs no right to decide.
pub async fn withdraw(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    api.manage(&caller, &headers, |snapshot| {
        let mut approval: Approval = snapshot.get(&entity_snapshot::approval_key(&id))?;
        permit(&caller, Action::ApisWrite, &approval)?;
        let (from, to) = (approval.state, ApprovalState::Withdrawn);
        approval.state = states::approval(from, to, &approval.requested_by, &caller.name())?;
        approval.decided_by = caller.name();
        snapshot.put(&entity_snapshot::approval_key(&id), &approval)?;
        Ok(WriteEffects::quiet(format!("approval {id}: withdrawn"), ()))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
