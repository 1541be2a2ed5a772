//! What clients are answered: errors as JSON, tokens, and the challenges that go with refusals.

use serde_json::{Map, Value, json};
use weir_plugin::Reply;

/// What `Content-Type` says of all answers.
const JSON: &str = "application/json; charset=utf-8";

/// Why a client gets nothing (RFC 6749, 5.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OauthError {
    /// The kind of error.
    pub(super) error: &'static str,
    /// What it means for people.
    pub(super) description: String,
    /// With which status it is answered.
    pub(super) status: ErrorStatus,
}

/// The status of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorStatus {
    BadRequest,
    /// The client has proved itself badly in a header.
    Unauthorized,
    /// Too many secrets were checked in this second.
    TooMany,
}

impl OauthError {
    pub(super) fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self {
            error,
            description: description.into(),
            status: ErrorStatus::BadRequest,
        }
    }

    pub(super) fn invalid_client() -> Self {
        Self::new("invalid_client", "Invalid client authentication")
    }

    pub(super) fn too_many_secrets() -> Self {
        Self {
            status: ErrorStatus::TooMany,
            ..Self::new(
                "temporarily_unavailable",
                "Too many client secrets to check, try again in a second",
            )
        }
    }

    pub(super) fn invalid_request(description: &str) -> Self {
        Self::new("invalid_request", description)
    }

    pub(super) fn no_https() -> Self {
        Self::new("access_denied", "You must use HTTPS")
    }

    pub(super) fn provision_key() -> Self {
        Self::new("invalid_provision_key", "Invalid provision_key")
    }

    pub(super) fn no_user() -> Self {
        Self::new(
            "invalid_authenticated_userid",
            "Missing authenticated_userid parameter",
        )
    }

    /// The members of an error, in the order in which they are written.
    pub(super) fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("error_description".to_owned(), self.description.as_str().into());
        members.insert("error".to_owned(), self.error.into());
        members
    }

    /// The answer of an endpoint.
    pub(super) fn reply(&self, state: Option<&str>) -> Reply {
        let mut members = self.members();
        if let Some(state) = state {
            members.insert("state".to_owned(), state.into());
        }
        let members = Value::Object(members);
        match self.status {
            ErrorStatus::BadRequest => endpoint(400, &members),
            ErrorStatus::Unauthorized => {
                endpoint(401, &members).with_header("WWW-Authenticate", "Basic realm=\"OAuth2.0\"")
            }
            ErrorStatus::TooMany => endpoint(429, &members).with_header("Retry-After", "1"),
        }
    }
}

/// The answer of an endpoint: no cache keeps it.
pub(super) fn endpoint(status: u16, body: &Value) -> Reply {
    Reply::new(status, JSON, body.to_string())
        .with_header("Cache-Control", "no-store")
        .with_header("Pragma", "no-cache")
}

/// A call for an endpoint with another method than `POST`.
pub(super) fn wrong_method(method: &[u8], endpoint: &str, realm: Option<&str>) -> Reply {
    let method = String::from_utf8_lossy(method);
    let description = format!("The HTTP method {method} is invalid for the {endpoint} endpoint");
    challenged(405, realm, "invalid_method", &description, Some(&description))
}

/// A call without a token (RFC 6750, 3).
pub(super) fn missing(realm: Option<&str>) -> Reply {
    let body = json!({"error_description": "The access token is missing", "error": "invalid_request"});
    Reply::new(401, JSON, body.to_string()).with_header("WWW-Authenticate", challenge(realm, None))
}

/// The response to a call with a token that is invalid or no longer valid.
pub(super) fn invalid(realm: Option<&str>) -> Reply {
    let description = "The access token is invalid or has expired";
    challenged(401, realm, "invalid_token", description, Some(description))
}

/// A call with a token for services that share their clients, to one that does not.
pub(super) fn global(realm: Option<&str>) -> Reply {
    let description =
        "The access token is global, but the current plugin is configured without 'global_credentials'";
    let message = "The access token is invalid or has expired";
    challenged(401, realm, "invalid_token", description, Some(message))
}

fn challenged(
    status: u16,
    realm: Option<&str>,
    error: &str,
    description: &str,
    in_header: Option<&str>,
) -> Reply {
    let body = json!({"error_description": description, "error": error});
    let challenge = challenge(realm, in_header.map(|text| (error, text)));
    Reply::new(status, JSON, body.to_string()).with_header("WWW-Authenticate", challenge)
}

/// `WWW-Authenticate` with what is known.
fn challenge(realm: Option<&str>, error: Option<(&str, &str)>) -> String {
    let mut parts = Vec::with_capacity(3);
    if let Some(realm) = realm.filter(|realm| !realm.is_empty()) {
        parts.push(format!("realm=\"{realm}\""));
    }
    if let Some((error, description)) = error {
        parts.push(format!("error=\"{error}\""));
        // What a client has sent must not end the text.
        let description: String = description
            .chars()
            .filter(|character| (' '..='~').contains(character) && !matches!(character, '"' | '\\'))
            .collect();
        parts.push(format!("error_description=\"{description}\""));
    }
    match parts.is_empty() {
        true => "Bearer".to_owned(),
        false => format!("Bearer {}", parts.join(", ")),
    }
}
