//! Reviews of drafts: the owner asks for one, another person approves what the draft holds or asks for changes. What was
//! said is about one content: a change of the draft ends the review and makes approvals of a publish outdated.

use super::authors::authors_between;
use super::clock::now;
use super::entities::{body_of, parse};
use super::entity_snapshot::{self, EntitySnapshot};
use super::write_effects::WriteEffects;
use crate::access::Caller;
use crate::api::json_body::{Json, JsonBody};
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{
    Approval, ApprovalState, Draft, DraftState, Publication, Review, Revision, Version,
};
use weir_apis::states;

/// A request that another person looks at a draft.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewRequest {
    /// Its reason.
    reason: String,
}

/// A reviewer's verdict on a draft.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// `approved` or `changes-asked`.
    state: String,
    /// The reason; required when changes are requested.
    #[serde(default)]
    reason: String,
    /// The hash of the reviewed draft. If the draft has changed since, the call is refused.
    #[serde(default)]
    hash: Option<String>,
}

/// A draft as reviews show it, with all who cannot approve it because a part is theirs.
fn to_response(draft: &Draft, authors: &BTreeSet<String>) -> Value {
    json!({ "state": draft.state, "hash": draft.hash(), "authors": authors, "review": draft.review })
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let entity = snapshot.version(&name, &version)?;
    Ok(Json(to_response(&entity.draft, &authors(&snapshot, &entity)?)))
}

/// Asks for a review of what the draft holds.
pub async fn ask(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Problem> {
    let wanted: ReviewRequest = parse(&body_of(&body)?)?;
    change(
        &api,
        (&caller, &headers),
        (&name, &version),
        "request a review",
        |_, entity| {
            let draft = &mut entity.draft;
            draft.state = states::draft(draft.state, DraftState::InReview)?;
            draft.review = Some(Review {
                hash: draft.hash(),
                requested_by: caller.name(),
                reason: wanted.reason.clone(),
                requested: now(),
                ..Review::default()
            });
            Ok(())
        },
    )
    .await
}

/// Approves what a draft holds, or asks for changes.
pub async fn decide(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
    JsonBody(decision): JsonBody<ReviewDecision>,
) -> Result<Json<Value>, Problem> {
    let to: DraftState = parse(&Value::from(decision.state.as_str()))?;
    if !matches!(to, DraftState::Approved | DraftState::ChangesAsked) {
        let message = "expected 'approved' or 'changes-asked'".to_owned();
        return Err(Problem::step("read", vec![("state".to_owned(), message)]));
    }
    if to == DraftState::ChangesAsked && decision.reason.trim().is_empty() {
        let message = "expected the changes that you request".to_owned();
        return Err(Problem::step("read", vec![("reason".to_owned(), message)]));
    }
    let what = format!("review: {}", decision.state);
    change(&api, (&caller, &headers), (&name, &version), &what, |snapshot, entity| {
        let authors = authors(snapshot, entity)?;
        let draft = &mut entity.draft;
        let next = states::draft(draft.state, to)?;
        let (hash, by) = (draft.hash(), caller.name());
        if decision.hash.as_ref().is_some_and(|seen| *seen != hash) {
            let detail = format!("the draft has changed to {hash}: review it again");
            return Err(Problem::new(StatusCode::CONFLICT, detail).of_type("approval-outdated"));
        }
        let review = draft.review.get_or_insert_with(Review::default);
        if to == DraftState::Approved && (review.requested_by == by || authors.contains(&by)) {
            return Err(Problem::forbidden(format!(
                "{by} edited a part of the draft or requested its review: another person has to approve it"
            )));
        }
        review.decided_by = by;
        review.decision.clone_from(&decision.reason);
        review.decided = now();
        draft.state = next;
        Ok(())
    })
    .await
}

/// Takes back that one has asked for a review.
pub async fn withdraw(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    api.manage(&caller, &headers, |snapshot| {
        let mut entity = snapshot.version(&name, &version)?;
        let is_asked_by = |it: &Review| it.requested_by == caller.name();
        if entity.draft.state == DraftState::InReview
            && !entity.draft.review.as_ref().is_some_and(is_asked_by)
        {
            return Err(Problem::forbidden(
                "only the person who requested a review can withdraw the request",
            ));
        }
        let to = match last_revision(snapshot, &entity)? {
            Some(_) => DraftState::Clean,
            None => DraftState::Changed,
        };
        if entity.draft.state != DraftState::InReview {
            let detail = format!("there is no request for a review of the draft of {name} {version}");
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        entity.draft.state = states::draft(entity.draft.state, to)?;
        entity.draft.review = None;
        snapshot.put(&entity_snapshot::version_key(&name, &version), &entity)?;
        Ok(WriteEffects::quiet(
            format!("draft of {name} {version}: no review"),
            (),
        ))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The last revision, if it holds what the draft does.
fn last_revision(snapshot: &EntitySnapshot, entity: &Version) -> Result<Option<Revision>, Problem> {
    if entity.last_revision == 0 {
        return Ok(None);
    }
    let last = snapshot.revision(&entity.api, &entity.version, entity.last_revision)?;
    Ok(Some(last).filter(|it| it.hash == entity.draft.hash()))
}

/// Who has made what the draft holds and some environment does not have yet. A draft that a revision was made of knows its
/// authors no longer; the revisions do. The one that is the draft counts, wherever it is published.
fn authors(snapshot: &EntitySnapshot, entity: &Version) -> Result<BTreeSet<String>, Problem> {
    let published: Vec<Publication> = snapshot.list(&entity_snapshot::publication_key(&format!(
        "{}/{}/",
        entity.api, entity.version
    )))?;
    let oldest = published.iter().map(|it| it.revision).min().unwrap_or_default();
    let version = (&*entity.api, &*entity.version);
    let mut authors = authors_between(snapshot, version, (oldest, entity.last_revision))?;
    authors.extend(entity.draft.authors.iter().cloned());
    if let Some(last) = last_revision(snapshot, entity)? {
        authors.extend(last.authors);
        authors.insert(last.author);
    }
    Ok(authors)
}

async fn change(
    api: &Arc<Api>,
    (caller, headers): (&Caller, &HeaderMap),
    (name, version): (&str, &str),
    what: &str,
    work: impl Fn(&EntitySnapshot, &mut Version) -> Result<(), Problem> + Send + Sync,
) -> Result<Json<Value>, Problem> {
    let written = api
        .manage(caller, headers, |snapshot| {
            let mut entity = snapshot.version(name, version)?;
            work(snapshot, &mut entity)?;
            snapshot.put(&entity_snapshot::version_key(name, version), &entity)?;
            let authors = authors(snapshot, &entity)?;
            Ok(WriteEffects::quiet(
                format!("draft of {name} {version}: {what}"),
                (entity.draft, authors),
            ))
        })
        .await?;
    let (draft, authors) = written.answer;
    Ok(Json(to_response(&draft, &authors)))
}

/// Approvals of what a draft held are outdated as soon as it holds something else, unless it was published with them.
pub fn outdate(
    snapshot: &mut EntitySnapshot,
    (name, version): (&str, &str),
    hash: &str,
    by: &str,
) -> Result<(), Problem> {
    let of_version = format!("{name}/{version}/");
    let all: Vec<Approval> = snapshot.list(&entity_snapshot::approval_key(""))?;
    for mut approval in all
        .into_iter()
        .filter(|it| it.publication.starts_with(&of_version) && it.hash == hash)
    {
        if !matches!(approval.state, ApprovalState::Open | ApprovalState::Granted) {
            continue;
        }
        let known: Option<Publication> =
            snapshot.find(&entity_snapshot::publication_key(&approval.publication))?;
        if known.is_some_and(|it| it.hash == approval.hash) {
            continue;
        }
        let (from, to) = (approval.state, ApprovalState::Outdated);
        approval.state = states::approval(from, to, &approval.requested_by, by)?;
        approval.decision = match approval.decision.as_str() {
            "" => format!("{by} has changed the draft since"),
            earlier => format!("{earlier}; {by} has changed the draft since"),
        };
        snapshot.put(&entity_snapshot::approval_key(&approval.id), &approval)?;
    }
    Ok(())
}
