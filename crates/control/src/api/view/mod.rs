//! Lists of all dialects' resources for people: paged, sorted and searched here, over a store and over files.

mod index;
mod query;
pub mod references;
pub mod workspaces;

pub use index::{FileText, FileTexts, Index, IndexedRow};

use super::Api;
use super::problem::Problem;
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use axum::Extension;
use axum::extract::{Path, Query as UrlQuery, State};
use axum::http::StatusCode;
use query::{Order, Search};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_model::overview::{List, Row};

/// Rows on a page, if the call asks for no other number; and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

/// Which part of a list.
#[derive(Deserialize, JsonSchema)]
pub struct ViewQuery {
    /// The conditions on all rows: words, and `FIELD:VALUE` for one field, such as `plugin:key-auth host:example.com`.
    /// Fields are name, dialect, workspace, host, path, method, service, upstream, url, target, plugin, applies-to,
    /// group, credential, server-name, label and status (enabled, disabled).
    q: Option<String>,
    /// The field that rows are sorted by, with `-` before it for the reverse: name (if left out), id, dialect, workspace,
    /// host, path, service, upstream, url, not-after.
    sort: Option<String>,
    /// At most so many rows: 1 to 1000; 100 if left out.
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// A page of a list.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ViewPage {
    /// The rows.
    pub items: Vec<ViewRow>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next: Option<String>,
    /// How many rows there are on all pages.
    pub total: usize,
}

/// A row with its current data.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ViewRow {
    /// The resource.
    #[serde(flatten)]
    pub row: Row,
    /// How this process's own gateway sees the targets of an upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<super::health::HealthSummary>,
}

/// Answers `GET /api/v1/view/{list}`.
pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(list): Path<String>,
    UrlQuery(wanted): UrlQuery<ViewQuery>,
) -> Result<Json<ViewPage>, Problem> {
    let list = List::ALL.into_iter().find(|it| it.as_str() == list);
    let list = list.ok_or_else(|| Problem::not_found("this list"))?;
    let searching = Arc::clone(&api);
    let page = tokio::task::spawn_blocking(move || {
        let rows = searching.index.rows(list);
        page(&rows, &wanted, &caller)
    });
    let page = page
        .await
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let (rows, next, total) = page?;
    let health = api.options.health.as_deref();
    let items = rows.into_iter().map(|indexed| ViewRow {
        health: health
            .filter(|_| list == List::Upstreams)
            .and_then(|source| super::health::summary_of(source, &api.options.dialects, &indexed)),
        row: indexed.row.clone(),
    });
    Ok(Json(ViewPage {
        items: items.collect(),
        next,
        total,
    }))
}

/// The rows of a page, the cursor of the next one, and how many there are on all.
type Page = (Vec<Arc<IndexedRow>>, Option<String>, usize);

fn page(rows: &[Arc<IndexedRow>], wanted: &ViewQuery, caller: &Caller) -> Result<Page, Problem> {
    let search = Search::parse(wanted.q.as_deref().unwrap_or_default());
    let order = Order::parse(wanted.sort.as_deref().unwrap_or("name"))?;
    let behind = wanted.cursor.as_deref().map(query::read_cursor).transpose()?;
    let limit = wanted.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let scopes = caller.scopes(Action::ConfigurationRead);
    let found = rows
        .iter()
        .filter(|it| is_visible(it, &scopes) && search.takes(it));
    let mut found: Vec<(String, &Arc<IndexedRow>)> = found.map(|it| (order.key(&it.row), it)).collect();
    let total = found.len();
    found.sort_unstable_by(|(one, this), (other, that)| {
        order.compare((one, &this.row.id), (other, &that.row.id))
    });
    if let Some((key, id)) = &behind {
        let start = found.partition_point(|(known, it)| {
            order.compare((known, &it.row.id), (key, id)) != std::cmp::Ordering::Greater
        });
        found.drain(..start);
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| has_more);
    let next = last.map(|(key, it)| query::cursor(key, &it.row.id));
    Ok((
        found.into_iter().map(|(_, it)| Arc::clone(it)).collect(),
        next,
        total,
    ))
}

fn is_visible(row: &IndexedRow, scopes: &[Scope]) -> bool {
    scopes.iter().any(|it| it.contains(&row.scope))
}
