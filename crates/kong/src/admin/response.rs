//! Answers of the Admin API: status, headers and a JSON body. What they are about is made elsewhere.

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use weir_store::Revision;

/// The header of calls after which nothing is to be stored.
pub const DRY_RUN: HeaderName = HeaderName::from_static("weir-dry-run");

/// An answer: a status and, except for `204`, a JSON body.
#[derive(Clone)]
pub struct ApiResponse {
    /// The status.
    pub status: StatusCode,
    /// The body, JSON in its final form; empty: no body.
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Bodies may hold secrets.
impl std::fmt::Debug for ApiResponse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ApiResponse")
            .field("status", &self.status)
            .field("length", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl ApiResponse {
    /// An answer with a JSON body.
    pub fn json(status: StatusCode, body: &Value) -> Self {
        Self::bytes(status, serde_json::to_vec(body).unwrap_or_default())
    }

    /// An answer whose body is JSON already.
    pub fn bytes(status: StatusCode, body: Vec<u8>) -> Self {
        Self {
            status,
            body,
            headers: Vec::new(),
        }
    }

    /// `200` with this body.
    pub fn ok(body: &Value) -> Self {
        Self::json(StatusCode::OK, body)
    }

    /// An answer that only says something.
    pub fn message(status: StatusCode, message: &str) -> Self {
        Self::json(status, &json!({ "message": message }))
    }

    /// `404` in the original's words.
    pub fn not_found() -> Self {
        Self::message(StatusCode::NOT_FOUND, "Not found")
    }

    /// `405` in the original's words.
    pub fn method_not_allowed() -> Self {
        Self::message(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
    }

    /// `204`.
    pub fn no_content() -> Self {
        Self::bytes(StatusCode::NO_CONTENT, Vec::new())
    }

    /// `500` in the original's words; what happened belongs into the log.
    pub fn unexpected() -> Self {
        Self::message(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred")
    }

    /// The answer to `OPTIONS`: the methods that a path takes.
    pub fn options(methods: &'static str) -> Self {
        Self::no_content()
            .with(ALLOW, HeaderValue::from_static(methods))
            .with(
                HeaderName::from_static("access-control-allow-methods"),
                HeaderValue::from_static(methods),
            )
    }

    /// The same answer with one more header.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same answer to a call that only asked what would come of it: nothing was changed.
    pub fn tried(self) -> Self {
        self.with(DRY_RUN, HeaderValue::from_static("true"))
    }

    /// The same answer with the revision of the document that it holds.
    pub fn with_revision(self, revision: Revision) -> Self {
        match HeaderValue::from_str(&format!("\"{revision}\"")) {
            Ok(value) => self.with(ETAG, value),
            Err(_) => self,
        }
    }

    /// The answer as it is sent.
    pub fn into_response(self) -> Response<Body> {
        let has_body = !self.body.is_empty();
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if has_body {
            headers.insert(
                CONTENT_TYPE,
                HeaderValue::from_static("application/json; charset=utf-8"),
            );
        }
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}
