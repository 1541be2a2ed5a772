//! The answers of Weir's own API to a write, made or only tried. The commit itself is made elsewhere.

use super::precondition::tagged;
use crate::api::json_body::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use weir_model::Diagnostic;
use weir_store::Revision;

/// A write that was made, or would have been.
#[derive(Debug)]
pub struct WriteResult {
    status: StatusCode,
    value: Option<Value>,
    /// `None`: it was only asked what would come of it.
    revision: Option<Revision>,
    /// The warning about it, in the form of a header.
    warning: Option<HeaderValue>,
}

impl WriteResult {
    /// With what is to be said of the document although it was stored.
    pub fn with_warnings(mut self, found: &[Diagnostic]) -> Self {
        let text_of = |found: &Diagnostic| match found.path.0.is_empty() {
            true => found.message.clone(),
            false => format!("{}: {}", found.path, found.message),
        };
        self.warning = weir_dialect::warning(found.iter().map(text_of));
        self
    }

    /// The answer to a dry run.
    pub fn dry(was_there: bool, value: Option<Value>) -> Self {
        Self {
            status: status(was_there, value.is_some()),
            value,
            revision: None,
            warning: None,
        }
    }

    /// The answer to a write.
    pub fn done(was_there: bool, value: Option<Value>, revision: Revision) -> Self {
        Self {
            revision: Some(revision),
            ..Self::dry(was_there, value)
        }
    }
}

/// The answer to a call that only asked what would come of it: nothing was changed.
pub fn tried(answer: impl IntoResponse) -> Response {
    let mut answer = answer.into_response();
    let headers = answer.headers_mut();
    headers.insert("weir-dry-run", HeaderValue::from_static("true"));
    answer
}

fn status(was_there: bool, is_there: bool) -> StatusCode {
    match (was_there, is_there) {
        (false, true) => StatusCode::CREATED,
        (true, true) => StatusCode::OK,
        (_, false) => StatusCode::NO_CONTENT,
    }
}

impl IntoResponse for WriteResult {
    fn into_response(self) -> Response {
        let mut answer = match self.value {
            Some(value) => (self.status, Json(value)).into_response(),
            None => self.status.into_response(),
        };
        if let Some(warning) = self.warning {
            answer.headers_mut().insert(header::WARNING, warning);
        }
        match self.revision {
            Some(revision) => tagged(answer, Some(revision)),
            None => tried(answer),
        }
    }
}
