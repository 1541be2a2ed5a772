//! Answers of the Admin API: status, body and headers. Calls and their targets are in files of their own.

use crate::errors::server;
use crate::settings::Settings;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, SERVER, WARNING};
use axum::http::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;

/// The answer to a write that is only tried has it, as its request had.
pub const DRY_RUN: HeaderName = HeaderName::from_static("weir-dry-run");

/// An answer, with the headers of its own.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    pub status: StatusCode,
    pub body: Vec<u8>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// The outcome of a call: an answer, or another one that ends it early.
pub type Outcome<T = ApiResponse> = Result<T, ApiResponse>;

impl ApiResponse {
    /// No body.
    pub fn empty(status: StatusCode) -> Self {
        Self {
            status,
            body: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// A value as JSON.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).map(|mut body| {
            body.push(b'\n');
            body
        });
        Self {
            // Values that come from JSON can be written as JSON.
            body: body.unwrap_or_default(),
            ..Self::empty(status)
        }
    }

    /// A text as it is.
    pub fn text(status: StatusCode, text: &str) -> Self {
        Self {
            body: text.as_bytes().to_vec(),
            ..Self::empty(status)
        }
    }

    /// `{"error_msg": …}`.
    pub fn error(status: StatusCode, message: impl Into<String>) -> Self {
        Self::json(status, &json!({"error_msg": message.into()}))
    }

    /// The caller's mistake.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::error(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such document.
    pub fn no_key() -> Self {
        Self::json(StatusCode::NOT_FOUND, &json!({"message": "Key not found"}))
    }

    /// With a header. A value that cannot stand in a header is left out.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// An answer about resources, which names the version of their form.
    #[must_use]
    pub fn versioned(self) -> Self {
        self.with(HeaderName::from_static("x-api-version"), "v3")
    }

    /// With what is to be said of documents that are stored and not served as they are written.
    #[must_use]
    pub fn with_warnings(mut self, texts: Vec<String>) -> Self {
        if let Some(value) = weir_dialect::warning(texts) {
            self.headers.push((WARNING, value));
        }
        self
    }

    /// The whole response, as `config.yaml` has it.
    pub fn into_response(self, settings: &Settings) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(SERVER, HeaderValue::from_static(server(settings)));
        let for_pages = [
            (
                HeaderName::from_static("access-control-allow-origin"),
                HeaderValue::from_static("*"),
            ),
            (
                HeaderName::from_static("access-control-allow-credentials"),
                HeaderValue::from_static("true"),
            ),
            (
                HeaderName::from_static("access-control-expose-headers"),
                HeaderValue::from_static("*"),
            ),
            (
                HeaderName::from_static("access-control-max-age"),
                HeaderValue::from_static("3600"),
            ),
        ];
        if settings.admin.allows_other_origins {
            headers.extend(for_pages);
        }
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}
