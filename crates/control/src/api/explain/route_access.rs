//! `GET /api/v1/consumers/{consumer}/routes`: which routes a consumer may call, and why not the others. Nothing is sent and
//! no counter is looked at.

use super::super::compiled_config::CompiledConfig;
use super::super::{Api, Problem};
use crate::api::json_body::Json;
use crate::explain::{AccessKind, ConsumerRouteAccess};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_store::Document;

/// Routes on a page, if the call asks for no other number; and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

/// Which part of the list.
#[derive(Deserialize, JsonSchema)]
pub struct RouteAccessQuery {
    /// Only routes whose name, service or call contains this.
    q: Option<String>,
    /// Only `may`, `may-not` or `depends`.
    verdict: Option<String>,
    /// At most so many: 1 to 1000; 100 if left out.
    limit: Option<usize>,
    /// How many to skip: `next` of the previous page.
    offset: Option<usize>,
    /// The environment whose publications count; left out: those that this process serves.
    environment: Option<String>,
}

/// Access of a consumer to routes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReachResponse")]
pub struct RouteAccessResponse {
    /// The revision of the store that was used.
    revision: u64,
    /// The consumer's id.
    consumer: String,
    /// Its group.
    group: Option<String>,
    /// How many routes it may call, of all that match `q`.
    may: usize,
    /// How many it may not call.
    may_not: usize,
    /// How many with an unknown result.
    depends: usize,
    /// The routes of this page.
    items: Vec<ConsumerRouteAccess>,
    /// The `offset` of the next page; `null`: this is the last one.
    next: Option<usize>,
}

/// Answers `GET /api/v1/consumers/{consumer}/routes`.
pub async fn list(
    State(api): State<Arc<Api>>,
    Path(consumer): Path<String>,
    Query(query): Query<RouteAccessQuery>,
) -> Result<Json<RouteAccessResponse>, Problem> {
    let (documents, head) = api.store.read("").await?;
    let working = Arc::clone(&api);
    let found = tokio::task::spawn_blocking(move || reach(&working, &consumer, &query, &documents));
    let found = found
        .await
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))??;
    Ok(Json(RouteAccessResponse {
        revision: head.0,
        ..found
    }))
}

fn reach(
    api: &Api,
    name: &str,
    query: &RouteAccessQuery,
    documents: &[Document],
) -> Result<RouteAccessResponse, Problem> {
    let dialects = super::dialects_in(
        api,
        query.environment.as_deref(),
        documents.iter().map(|it| it.key.as_str()),
    )?;
    let stored = documents
        .iter()
        .map(|it| (it.key.as_str(), Some(it.value.as_ref())));
    let compiled = CompiledConfig::new(api, &dialects, stored)?;
    let explainer = compiled.explainer();
    let (consumer, identity) = explainer
        .consumer(name)
        .ok_or_else(|| Problem::not_found(format_args!("the consumer '{name}'")))?;
    let words = query.q.as_deref().unwrap_or_default().to_lowercase();
    let is_asked_for = |it: &ConsumerRouteAccess| {
        let texts = [Some(&it.route), it.service.as_ref(), Some(&it.call)];
        texts
            .into_iter()
            .flatten()
            .any(|text| text.to_lowercase().contains(&words))
    };
    let all = (0..explainer.model.routes.len()).map(|index| explainer.reach(index, consumer, &identity));
    let mut all: Vec<ConsumerRouteAccess> = all.filter(is_asked_for).collect();
    let count = |kind: AccessKind| all.iter().filter(|it| it.verdict == kind).count();
    let (may, may_not, depends) = (
        count(AccessKind::May),
        count(AccessKind::MayNot),
        count(AccessKind::Depends),
    );
    if let Some(wanted) = query.verdict.as_deref() {
        let kind = kind_of(wanted)?;
        all.retain(|it| it.verdict == kind);
    }
    all.sort_by(|one, other| (one.verdict, &one.route).cmp(&(other.verdict, &other.route)));
    let offset = query.offset.unwrap_or_default();
    let limit = query.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let next = offset.saturating_add(limit);
    Ok(RouteAccessResponse {
        revision: 0,
        consumer: consumer.id.clone(),
        group: consumer.group.clone(),
        may,
        may_not,
        depends,
        next: (next < all.len()).then_some(next),
        items: all.into_iter().skip(offset).take(limit).collect(),
    })
}

fn kind_of(word: &str) -> Result<AccessKind, Problem> {
    match word {
        "may" => Ok(AccessKind::May),
        "may-not" => Ok(AccessKind::MayNot),
        "depends" => Ok(AccessKind::Depends),
        other => Err(Problem::bad(format!(
            "expected may, may-not or depends in 'verdict', found '{other}'"
        ))),
    }
}
