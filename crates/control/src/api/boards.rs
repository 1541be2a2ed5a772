//! Boards in Weir's own API: those that are given with Weir, and those that people save.

use super::Api;
use super::analytics::{failed, wrong};
use super::analytics_documents::{DocumentWrite, Kind, id_of};
use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::shapes::List;
use super::{is_dry_run, statistics};
use crate::access::{Action, Caller};
use crate::analytics::{Analytics, AnalyticsStorage, now};
use crate::api::json_body::Json;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_analytics::StoreError;
use weir_analytics::boards::{self, Board};

const KIND: Kind = Kind {
    name: "board",
    stored: "board",
    most: 500,
    beside: &["given", "updated", "updated_by", "etag"],
};

/// A board with its metadata.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SavedBoard {
    /// The board.
    #[serde(flatten)]
    pub board: Board,
    /// Whether Weir comes with it. Then it cannot be changed; save it under another id.
    pub given: bool,
    /// When it was last saved, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u64>,
    /// The user who saved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    /// Its version, as `If-Match` names it; Weir's own boards have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A board as it is stored.
#[derive(Serialize, Deserialize)]
struct BoardRecord {
    board: Board,
    updated: u64,
    updated_by: String,
}

impl From<BoardRecord> for SavedBoard {
    fn from(stored: BoardRecord) -> Self {
        Self {
            etag: Some(tag_of_content(&stored)),
            board: stored.board,
            given: false,
            updated: Some(stored.updated),
            updated_by: Some(stored.updated_by),
        }
    }
}

fn given(board: &Board) -> SavedBoard {
    SavedBoard {
        board: board.clone(),
        given: true,
        updated: None,
        updated_by: None,
        etag: None,
    }
}

impl AnalyticsStorage {
    /// The boards that were saved, by id. One that cannot be read is left out.
    fn saved_boards(&self) -> Result<Vec<SavedBoard>, StoreError> {
        let mut saved = Vec::new();
        for (id, text) in self.documents.documents(KIND.stored)? {
            match serde_json::from_str::<BoardRecord>(&text) {
                Ok(stored) => saved.push(stored.into()),
                Err(error) => tracing::warn!(id, %error, "a stored board cannot be parsed and is ignored"),
            }
        }
        Ok(saved)
    }

    /// A board, given or saved.
    pub fn board(&self, id: &str) -> Result<Option<Board>, StoreError> {
        if let Some(board) = boards::given().iter().find(|it| it.id == id) {
            return Ok(Some(board.clone()));
        }
        let saved = self.saved_boards()?.into_iter().map(|it| it.board);
        Ok(saved.into_iter().find(|it| it.id == id))
    }
}

/// The boards that a caller may see: those that Weir comes with, and of the others those about what it may see.
async fn visible_boards(api: &Api, caller: &Caller) -> Result<Vec<SavedBoard>, Problem> {
    let saved = api
        .analytics()?
        .with(AnalyticsStorage::saved_boards)
        .await
        .map_err(failed)?;
    let saved = saved.into_iter().filter(|it| is_seen(&it.board, caller));
    Ok(boards::given().iter().map(given).chain(saved).collect())
}

/// Whether the caller may ask all that a board asks.
pub fn is_seen(board: &Board, caller: &Caller) -> bool {
    board.panels.iter().all(|panel| {
        let mut filter = panel.query.filter.clone();
        filter.extend(board.filter.clone());
        statistics::permit(caller, Action::AnalyticsRead, &filter).is_ok()
    })
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<List<SavedBoard>>, Problem> {
    let items = visible_boards(&api, &caller).await?;
    Ok(Json(List { items }))
}

pub async fn show(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let mut boards = visible_boards(&api, &caller).await?.into_iter();
    let found = boards.find(|it| it.board.id == id);
    let found = found.ok_or_else(|| KIND.missing(&id))?;
    let tag = found.etag.clone();
    Ok(with_tag(Json(found).into_response(), tag.as_deref()))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut board: Board = KIND.read(&body)?;
    if board.id.is_empty() {
        board.id = id_of(&board.title);
    }
    write(api.analytics()?, (board, true), &caller, &headers).await
}

pub async fn replace(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let board = Board {
        id,
        ..KIND.read(&body)?
    };
    write(api.analytics()?, (board, false), &caller, &headers).await
}

fn is_given(id: &str) -> bool {
    boards::given().iter().any(|it| it.id == id)
}

fn unchangeable(id: &str) -> Problem {
    let detail = format!("the board '{id}' is built in and cannot be changed; save it under another id");
    Problem::new(StatusCode::CONFLICT, detail)
}

async fn write(
    analytics: &Analytics,
    (board, is_new): (Board, bool),
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if is_given(&board.id) {
        return Err(unchangeable(&board.id));
    }
    board.check(now()).map_err(|error| wrong(&error))?;
    let written = DocumentWrite {
        id: board.id.clone(),
        document: BoardRecord {
            board,
            updated: now(),
            updated_by: caller.name().to_string(),
        },
        is_new,
        is_dry: is_dry_run(headers),
        precondition: Precondition::of(headers),
    };
    KIND.write(
        analytics,
        written,
        |_, _| Ok(()),
        |_, stored| SavedBoard::from(stored),
    )
    .await
}

pub async fn remove(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if is_given(&id) {
        return Err(unchangeable(&id));
    }
    // The report would not be sent any more, without a word.
    let wanted = id.clone();
    let found_report = api.analytics()?.with(move |kept| {
        let mut reports = kept.reports()?.into_iter();
        Ok(reports.find(|it| it.board.as_ref() == Some(&wanted)))
    });
    if let Some(report) = found_report.await.map_err(failed)? {
        let detail = format!(
            "the report '{}' shows this board: remove the report first",
            report.id
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    KIND.remove::<BoardRecord>(api.analytics()?, &id, &headers).await
}
