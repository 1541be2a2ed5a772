//! Boards in Weir's own API: those that are given with Weir, and those that people save.

use super::Api;
use super::alerts::{check_id, id_of};
use super::analytics::{failed, read, wrong};
use super::is_dry_run;
use super::problem::Problem;
use super::shapes::List;
use super::writing::tried;
use crate::access::Caller;
use crate::analytics::{Analytics, Kept, now};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_analytics::StoreError;
use weir_analytics::boards::{self, Board};

/// The kind of documents that boards are.
const BOARDS: &str = "board";
/// Boards that may be saved.
const MAX_BOARDS: usize = 500;
/// The largest board, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Fields that answers have beside those of a board.
const BESIDE: [&str; 3] = ["given", "updated", "updated_by"];

/// A board, and what is known of it.
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
    /// Who saved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// A board as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    board: Board,
    updated: u64,
    updated_by: String,
}

impl From<Stored> for SavedBoard {
    fn from(stored: Stored) -> Self {
        Self {
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
    }
}

impl Kept {
    /// The boards that were saved, by id. One that cannot be read is left out.
    fn saved_boards(&self) -> Result<Vec<SavedBoard>, StoreError> {
        let mut saved = Vec::new();
        for (id, text) in self.documents.documents(BOARDS)? {
            match serde_json::from_str::<Stored>(&text) {
                Ok(stored) => saved.push(stored.into()),
                Err(error) => tracing::warn!(id, %error, "a board is not understood"),
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

pub async fn list(State(api): State<Arc<Api>>) -> Result<Json<List<SavedBoard>>, Problem> {
    let saved = api.analytics()?.with(Kept::saved_boards).await.map_err(failed)?;
    let items = boards::given().iter().map(given).chain(saved);
    Ok(Json(List {
        items: items.collect(),
    }))
}

pub async fn show(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Json<SavedBoard>, Problem> {
    let saved = api.analytics()?.with(Kept::saved_boards).await.map_err(failed)?;
    let mut all = boards::given().iter().map(given).chain(saved);
    let found = all.find(|it| it.board.id == id);
    found
        .map(Json)
        .ok_or_else(|| Problem::not_found(format_args!("the board '{id}'")))
}

/// The board in a body. What answers have beside it may stand in there and is passed over.
fn board_of(body: &[u8]) -> Result<Board, Problem> {
    if body.len() > MAX_BYTES {
        let detail = format!("a board has at most {MAX_BYTES} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let mut board: Value = read(body)?;
    if let Some(fields) = board.as_object_mut() {
        BESIDE.iter().for_each(|it| drop(fields.remove(*it)));
    }
    serde_json::from_value(board)
        .map_err(|error| Problem::bad(format!("the board is not understood: {error}")))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut board = board_of(&body)?;
    if board.id.is_empty() {
        board.id = id_of(&board.title);
    }
    write(api.analytics()?, (board, true), &caller, is_dry_run(&headers)).await
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
        ..board_of(&body)?
    };
    write(api.analytics()?, (board, false), &caller, is_dry_run(&headers)).await
}

fn is_given(id: &str) -> bool {
    boards::given().iter().any(|it| it.id == id)
}

fn unchangeable(id: &str) -> Problem {
    let detail = format!("the board '{id}' comes with Weir and cannot be changed; save it under another id");
    Problem::new(StatusCode::CONFLICT, detail)
}

async fn write(
    analytics: &Analytics,
    (board, is_new): (Board, bool),
    caller: &Caller,
    is_dry: bool,
) -> Result<Response, Problem> {
    check_id(&board.id)?;
    if is_given(&board.id) {
        return Err(unchangeable(&board.id));
    }
    board.check(now()).map_err(|error| wrong(&error))?;
    let stored = Stored {
        board,
        updated: now(),
        updated_by: caller.name().to_string(),
    };
    let written = analytics.with(move |kept| {
        let saved = kept.saved_boards()?;
        let is_known = saved.iter().any(|it| it.board.id == stored.board.id);
        if is_known && is_new {
            let detail = format!("there is a board '{}' already; use PUT", stored.board.id);
            return Ok(Err(detail));
        }
        if !is_known && saved.len() >= MAX_BOARDS {
            return Ok(Err(format!("there are {MAX_BOARDS} boards already")));
        }
        if !is_dry {
            let text =
                serde_json::to_string(&stored).map_err(|error| StoreError::Engine(error.to_string()))?;
            kept.documents.put_document(BOARDS, &stored.board.id, &text)?;
        }
        let status = if is_known {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        Ok(Ok((status, SavedBoard::from(stored))))
    });
    match written.await.map_err(failed)? {
        Err(conflict) => Err(Problem::new(StatusCode::CONFLICT, conflict)),
        Ok((status, board)) if is_dry => Ok(tried((status, Json(board)))),
        Ok((status, board)) => Ok((status, Json(board)).into_response()),
    }
}

pub async fn remove(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    if is_given(&id) {
        return Err(unchangeable(&id));
    }
    let wanted = id.clone();
    let removed = api
        .analytics()?
        .with(move |kept| kept.documents.remove_document(BOARDS, &wanted));
    match removed.await.map_err(failed)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(format_args!("the board '{id}'"))),
    }
}
