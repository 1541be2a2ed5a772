//! Refusals of Weir's own API, as RFC 9457 has them. The dialects' APIs refuse in their originals' words.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_dialect::WriteFailure;
use weir_model::Diagnostic;
use weir_store::{CommitError, StoreError};

/// The prefix of the types of problems (RFC 9457, section 3.1.1). They are stable.
pub const TYPES: &str = "urn:weir:problem:";

/// The types that a status alone decides.
const OF_STATUS: [(StatusCode, &str); 13] = [
    (StatusCode::BAD_REQUEST, "bad-request"),
    (StatusCode::UNAUTHORIZED, "login-required"),
    (StatusCode::FORBIDDEN, "forbidden"),
    (StatusCode::NOT_FOUND, "not-found"),
    (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed"),
    (StatusCode::CONFLICT, "conflict"),
    (StatusCode::GONE, "gone"),
    (StatusCode::PRECONDITION_FAILED, "changed-meanwhile"),
    (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type"),
    (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
    (StatusCode::TOO_MANY_REQUESTS, "too-many-attempts"),
    (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
];

/// The type of a problem with this status.
fn type_of(status: StatusCode) -> String {
    let known = OF_STATUS.iter().find(|(it, _)| *it == status);
    format!("{TYPES}{}", known.map_or("internal", |(_, name)| *name))
}

/// The last change of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastChange {
    /// The commit.
    pub revision: u64,
    /// The user who created it.
    pub author: String,
    /// When, in seconds since 1970.
    pub time: u64,
}

/// A refusal.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    /// A type of its own, if the status does not say enough.
    kind: Option<&'static str>,
    detail: String,
    /// The faults with their places; empty if no document is refused.
    errors: Vec<Value>,
    /// The change that another user has made to the document, if that is the reason.
    changed: Option<LastChange>,
    /// Further members (RFC 9457, section 3.2).
    more: Option<Box<Map<String, Value>>>,
}

impl Problem {
    /// A refusal with a reason.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            kind: None,
            detail: detail.into(),
            errors: Vec::new(),
            changed: None,
            more: None,
        }
    }

    /// With further members; none takes the place of the problem's own.
    #[must_use]
    pub fn with_members(self, more: Map<String, Value>) -> Self {
        Self {
            more: Some(Box::new(more)),
            ..self
        }
    }

    /// Whether what was asked for is refused for what it is, and not for who asks, or because something else fails.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self.status,
            StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY
        )
    }

    /// Whether another version is there than the one that the call names.
    pub fn is_overtaken(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED
    }

    /// Its members, without the further ones.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "type": self.kind.map_or_else(|| type_of(self.status), |kind| format!("{TYPES}{kind}")),
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if !self.errors.is_empty() {
            body["errors"] = json!(self.errors);
        }
        if let Some(changed) = &self.changed {
            body["changed"] = json!(changed);
        }
        body
    }

    /// With another status.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// With a type of its own.
    #[must_use]
    pub fn of_type(self, kind: &'static str) -> Self {
        Self {
            kind: Some(kind),
            ..self
        }
    }

    /// With what it is about before the detail.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.detail = format!("{what}: {}", self.detail);
        self
    }

    /// The same of a field whose text is refused: the places in it are told in the words, with their lines.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        for error in &mut self.errors {
            error["path"] = field.into();
        }
        self.about(field)
    }

    /// With another name for a field of what is refused: it was checked within something else.
    #[must_use]
    pub fn renamed(mut self, field: &str, name: &str) -> Self {
        let renamed = |path: &str| {
            let rest = path.strip_prefix(field)?;
            let is_field = rest.is_empty() || rest.starts_with(['.', '[', ':']);
            is_field.then(|| format!("{name}{rest}"))
        };
        for error in &mut self.errors {
            if let Some(path) = error["path"].as_str().and_then(renamed) {
                error["path"] = path.into();
            }
        }
        self.detail = renamed(&self.detail).unwrap_or(self.detail);
        self
    }

    /// The caller may not do this.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// There is no such thing.
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} does not exist"))
    }

    /// The body cannot be read.
    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A document is refused.
    pub fn invalid(found: &[Diagnostic]) -> Self {
        let to_error =
            |found: &Diagnostic| json!({ "path": found.path.to_string(), "message": found.message });
        let detail = match found {
            [only] if only.path.0.is_empty() => only.message.clone(),
            [only] => format!("{}: {}", only.path, only.message),
            _ => format!("{} things are wrong with it", found.len()),
        };
        Self {
            errors: found.iter().map(to_error).collect(),
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
    }

    /// A step of a publish refuses: what is wrong, each with its place.
    pub fn step(step: &'static str, errors: Vec<(String, String)>) -> Self {
        let first = match errors.as_slice() {
            [] => String::new(),
            [(place, message), ..] if place.is_empty() => message.clone(),
            [(place, message), ..] => format!("{place}: {message}"),
        };
        let more = match errors.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        Self::listing(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("{step}: {first}{more}"),
            errors,
        )
    }

    /// A refusal with a list of what is wrong, each with its place.
    pub fn listing(status: StatusCode, detail: String, errors: Vec<(String, String)>) -> Self {
        let to_error = |(path, message): (String, String)| json!({ "path": path, "message": message });
        Self {
            errors: errors.into_iter().map(to_error).collect(),
            ..Self::new(status, detail)
        }
    }

    /// The store holds what is not understood.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// Another version is there than the one that the call names, and who has stored it, if that is known.
    pub fn precondition(detail: impl Into<String>, changed: Option<LastChange>) -> Self {
        Self {
            changed,
            ..Self::new(StatusCode::PRECONDITION_FAILED, detail)
        }
    }

    /// This process serves files and has no store.
    pub fn read_only() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "this Weir serves files and has no store, so changes would be lost when it stops: change the files, or \
             start it with --data DIR or --store URL",
        )
        .of_type("read-only")
    }
}

/// The detail.
impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::TooLarge { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        let status = match error {
            CommitError::Store(error) => return error.into(),
            CommitError::Conflict { .. } => StatusCode::CONFLICT,
            CommitError::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<WriteFailure> for Problem {
    fn from(failure: WriteFailure) -> Self {
        match failure {
            WriteFailure::Busy => Self::new(StatusCode::CONFLICT, failure.to_string()),
            WriteFailure::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = self.body();
        if let Some(members) = body.as_object_mut() {
            for (name, value) in self.more.map(|it| *it).into_iter().flatten() {
                members.entry(name).or_insert(value);
            }
        }
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (self.status, kind, format!("{body}\n")).into_response()
    }
}
