//! Calls of the Admin API: their paths, and their bodies.

use super::failure::Failure;
use super::form_body;
use super::path::segments;
use super::response::{ApiResponse, DRY_RUN};
use super::scope::recordable;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Map, Value};
use weir_dialect::{DEFAULT_WORKSPACE, Rights, ThroughOwnApi};
use weir_plugin::uri;
use weir_store::{Author, Revision, WorkspaceScoped};

/// The largest body of a call, in bytes.
const MAX_BODY: usize = 16 << 20;
/// The largest body of a whole configuration, in bytes.
const MAX_CONFIG_BODY: usize = 128 << 20;
/// More arguments than these are refused, as the original does.
const MAX_ARGUMENTS: usize = 1000;
/// The path of whole configurations.
const CONFIG_PATH: &str = "config";

/// A call.
pub struct ApiCall {
    /// The method.
    pub method: Method,
    /// The path's segments without those that are empty, decoded; the workspace's is taken off.
    pub path: Vec<String>,
    /// The workspace.
    pub workspace: String,
    /// The arguments in the target, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The body.
    pub body: RequestBody,
    /// The caller.
    pub author: Author,
    /// Whether `/config` answers whatever the store is.
    pub may_use_config: bool,
    /// Whether the caller may write in some workspaces only.
    pub is_confined: bool,
    /// The header `If-Match`.
    pub if_match: Option<String>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The caller's rights.
    pub rights: Rights,
}

/// The content of a body.
pub enum RequestBody {
    /// Nothing.
    Nothing,
    /// JSON.
    Json(Value),
    /// Fields of a form, of which every value is a text or a list of texts.
    Form(Map<String, Value>),
    /// A text that is neither; whole configurations may be.
    Text(Bytes),
}

impl ApiCall {
    /// Reads a call whole.
    ///
    /// # Errors
    /// A body that is too long, cannot be read, or is of a kind that the Admin API does not take.
    pub async fn read(request: Request<Body>) -> Result<Self, Failure> {
        let (head, body) = request.into_parts();
        let path = segments(head.uri.path());
        let query = arguments(head.uri.query().unwrap_or_default())?;
        let is_config = path.last().is_some_and(|last| last == CONFIG_PATH);
        let limit = if is_config { MAX_CONFIG_BODY } else { MAX_BODY };
        let needs_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
        let body = if needs_body {
            let bytes = to_bytes(body, limit)
                .await
                .map_err(|_| Failure::message(StatusCode::PAYLOAD_TOO_LARGE, "request body is too large"))?;
            read_body(&head.headers, bytes, is_config)?
        } else {
            RequestBody::Nothing
        };
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(Self {
            if_match: header(IF_MATCH.as_str()).map(str::to_owned),
            dry_run: header(DRY_RUN.as_str()).is_some_and(|value| value.eq_ignore_ascii_case("true")),
            author: head
                .extensions
                .get::<Author>()
                .cloned()
                .unwrap_or_else(Author::anonymous),
            is_confined: head.extensions.get::<WorkspaceScoped>().is_some(),
            // The console imports so. Clients of the listener find `/config` as the original has it.
            may_use_config: head.extensions.get::<ThroughOwnApi>().is_some(),
            rights: head.extensions.get::<Rights>().cloned().unwrap_or_default(),
            method: head.method,
            path,
            workspace: DEFAULT_WORKSPACE.to_owned(),
            query,
            body,
        })
    }

    /// The first argument of that name in the target.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the call only asks.
    pub fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// The name of the call in the record.
    pub fn note(&self) -> String {
        let path = recordable(&self.path.join("/"));
        match self.workspace.as_str() {
            DEFAULT_WORKSPACE => format!("{} /{path}", self.method),
            workspace => format!("{} /{workspace}/{path}", self.method),
        }
    }

    /// Checks that the call changes what the caller knows; `None`: it is not there.
    ///
    /// # Errors
    /// It has another revision than the call says.
    pub fn check_match(&self, modified: Option<Revision>) -> Result<(), Failure> {
        let Some(wanted) = &self.if_match else {
            return Ok(());
        };
        let is_met = modified.is_some_and(|modified| {
            let revision = format!("\"{modified}\"");
            let mut tags = wanted.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
            tags.any(|tag| tag == "*" || tag == revision)
        });
        if is_met {
            Ok(())
        } else {
            Err(Failure::precondition())
        }
    }
}

fn decode(text: &str) -> String {
    String::from_utf8_lossy(&uri::decode_form(text.as_bytes())).into_owned()
}

/// The pairs of a query or of a form.
fn arguments(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter(|pair| !pair.is_empty())
        .take(MAX_ARGUMENTS + 1)
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect();
    if pairs.len() > MAX_ARGUMENTS {
        return Err(Failure::message(StatusCode::BAD_REQUEST, "Too many arguments"));
    }
    Ok(pairs)
}

fn read_body(headers: &HeaderMap, bytes: Bytes, is_config: bool) -> Result<RequestBody, Failure> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let Some(content_type) = types.next() else {
        let is_empty = bytes.is_empty() || headers.get(CONTENT_LENGTH).is_some_and(|it| it == "0");
        return if is_empty {
            Ok(RequestBody::Nothing)
        } else {
            Err(unsupported())
        };
    };
    if types.next().is_some() {
        let message = "Multiple Content-Type headers not allowed";
        return Err(Failure::message(StatusCode::BAD_REQUEST, message));
    }
    let content_type = content_type.to_str().map_err(|_| unsupported())?;
    let kind = content_type.to_ascii_lowercase();
    if kind.starts_with("application/json") {
        return match serde_json::from_slice(&bytes) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(RequestBody::Json(value)),
            _ => Err(Failure::message(
                StatusCode::BAD_REQUEST,
                "Cannot parse JSON body",
            )),
        };
    }
    if kind.starts_with("application/x-www-form-urlencoded") {
        let text = String::from_utf8_lossy(&bytes);
        return Ok(RequestBody::Form(form_body::nested(arguments(&text)?)));
    }
    if kind.starts_with("multipart/form-data") {
        let parts = form_body::multipart(content_type, &bytes);
        return Ok(RequestBody::Form(form_body::nested(parts)));
    }
    if is_config && (kind.starts_with("application/yaml") || kind.starts_with("text/yaml")) {
        return Ok(RequestBody::Text(bytes));
    }
    Err(unsupported())
}

fn unsupported() -> Failure {
    Failure(ApiResponse::bytes(StatusCode::UNSUPPORTED_MEDIA_TYPE, Vec::new()))
}
