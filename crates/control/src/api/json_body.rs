//! JSON of calls and answers, and refusals of what is no good call: they are problems as all others.
//!
//! The web framework has such types, too, but they turn on a feature of `serde_json` with which one member's name makes
//! any reader parse a text within a text, without a limit of depth: a small body could end the process.

use super::problem::Problem;
use super::unique_fields::UniqueFields;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest refusal of the framework, in bytes.
const MAX_REFUSAL: usize = 64 << 10;

/// A body of JSON, whatever its sender calls it: `curl -d` names the type of a form. That a page of another site sent it is known
/// by its origin, and not by its type.
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let text = String::from_request(request, state)
            .await
            .map_err(IntoResponse::into_response)?;
        parsed(&text).map(Self).map_err(IntoResponse::into_response)
    }
}

/// A body of JSON that says so in its `Content-Type` (415 otherwise), which no form of another site can do; or an answer.
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let given = request.headers().get(CONTENT_TYPE);
        if !given.is_some_and(|given| is_json(given.as_bytes())) {
            let problem = Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "expected `Content-Type: application/json`",
            );
            return Err(problem.into_response());
        }
        let JsonBody(value) = JsonBody::from_request(request, state).await?;
        Ok(Self(value))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
            Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

/// Whether a media type is JSON: `application/json`, or one that ends in `+json`.
fn is_json(given: &[u8]) -> bool {
    let end = given.iter().position(|byte| *byte == b';').unwrap_or(given.len());
    let name = given[..end].trim_ascii().to_ascii_lowercase();
    name == b"application/json" || name.starts_with(b"application/") && name.ends_with(b"+json")
}

/// A body that may be empty, as what it describes. A fault is reported with its place.
pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    read(&object(text)?)
}

/// A value as what it describes. A fault is reported with its place.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Problem> {
    weir_apis::entities::parse(value).map_err(|found| Problem::step("read", vec![found]))
}

/// The object of a body; an empty body is an empty object. Callers that fill in fields may rely on it. A field that is there twice is
/// refused: one of the two would be lost without a trace.
pub fn object(text: &str) -> Result<Value, Problem> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(UniqueFields(Value::Object(fields))) => Ok(Value::Object(fields)),
        Ok(_) => Err(Problem::bad("expected an object, such as {}")),
        Err(error) if error.is_data() => Err(Problem::bad(error.to_string())),
        Err(error) => Err(Problem::bad(format!("not JSON: {error}"))),
    }
}

/// A refusal of the framework (a query that is not understood, a body that is too long) as a problem with the same status.
pub async fn as_problem(answer: Response, longest: usize) -> Response {
    let status = answer.status();
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_text = kind.is_none_or(|it| it.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !is_text {
        return answer;
    }
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = format!("expected a body of at most {} MiB", longest >> 20);
        return Problem::new(status, detail).into_response();
    }
    let (head, body) = answer.into_parts();
    match to_bytes(body, MAX_REFUSAL).await {
        Ok(text) if !text.is_empty() => {
            let detail = without_steps_of_the_framework(&String::from_utf8_lossy(&text));
            Problem::new(status, detail).into_response()
        }
        Ok(_) => Response::from_parts(head, Body::empty()),
        Err(_) => Problem::new(status, "the call is not understood").into_response(),
    }
}

/// A refusal's text about the call: the framework names its own steps, and the number's parser no expectation.
fn without_steps_of_the_framework(text: &str) -> String {
    let text = text.replace("invalid digit found in string", "expected a whole number");
    for (step, part) in [
        ("Failed to deserialize query string: ", "query"),
        ("Invalid URL: ", "path"),
    ] {
        if let Some(reason) = text.strip_prefix(step) {
            return format!("the {part} of the address: {reason}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use serde_json::json;

    #[test]
    fn only_objects_whose_fields_are_there_once_are_read() {
        for (text, expected) in [
            ("", "{}"),
            (" \n", "{}"),
            (
                r#"{"a": [{"b": 1.5, "c": -1}, {"b": null}], "d": "\u00fc"}"#,
                r#"{"a":[{"b":1.5,"c":-1},{"b":null}],"d":"ü"}"#,
            ),
        ] {
            let read = object(text).map(|value| value.to_string());
            assert_eq!(read.ok().as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("[]", "expected an object"),
            ("5", "expected an object"),
            ("null", "expected an object"),
            ("\"x\"", "expected an object"),
            ("[1", "not JSON: EOF"),
            (
                r#"{"a": 1, "a": 2}"#,
                "the field 'a' is here a second time at line 1 column",
            ),
            (
                "{\"a\": [{\"b\": 1,\n\"b\": 2}]}",
                "the field 'b' is here a second time at line 2",
            ),
        ] {
            let refused = object(text).err().map(|problem| problem.to_string());
            assert!(
                refused.as_deref().is_some_and(|it| it.contains(expected)),
                "{text}: {refused:?}"
            );
        }
    }

    /// With `raw_value`, the value below would be `[1]`: a text within a text, which begins to count depth again. With
    /// `arbitrary_precision`, a number.
    #[test]
    fn serde_json_has_no_private_names() {
        for name in ["RawValue", "Number"] {
            let name = format!("$serde_json::private::{name}");
            let text = json!({ &name: "[1]" }).to_string();
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert!(value.get(&name).is_some_and(Value::is_string), "{value}");
        }
    }

    #[tokio::test]
    async fn bodies_say_that_they_are_json() {
        for (given, expected) in [
            (Some("application/json"), Ok(1)),
            (Some("Application/Problem+JSON ; charset=utf-8"), Ok(1)),
            (Some("text/plain"), Err(415)),
            (Some("application/jsonp"), Err(415)),
            (Some("text/x+json"), Err(415)),
            (None, Err(415)),
        ] {
            let mut request = Request::builder();
            if let Some(given) = given {
                request = request.header(CONTENT_TYPE, given);
            }
            let request = request.body(Body::from(r#"{"a": 1}"#)).expect("a request");
            let read = Json::<std::collections::BTreeMap<String, u8>>::from_request(request, &()).await;
            let found = read
                .map(|Json(value)| value["a"])
                .map_err(|answer| answer.status().as_u16());
            assert_eq!(found, expected, "{given:?}");
        }
    }

    #[tokio::test]
    async fn refusals_of_the_framework_become_problems() {
        let text = |status, text: &'static str| (status, text).into_response();
        for (answer, expected) in [
            (
                text(StatusCode::BAD_REQUEST, "no number"),
                "\"detail\":\"no number\"",
            ),
            (
                text(
                    StatusCode::BAD_REQUEST,
                    "Failed to deserialize query string: to: invalid digit found in string",
                ),
                "\"detail\":\"the query of the address: to: expected a whole number\"",
            ),
            (
                text(
                    StatusCode::BAD_REQUEST,
                    "Invalid URL: Cannot parse `version` with value `x` to a `u32`",
                ),
                "\"detail\":\"the path of the address: Cannot parse `version`",
            ),
            (text(StatusCode::PAYLOAD_TOO_LARGE, "limit"), "at most 16 MiB"),
            (text(StatusCode::OK, "a document"), "a document"),
            (StatusCode::NOT_FOUND.into_response(), ""),
            ((StatusCode::CONFLICT, Json(1)).into_response(), "1"),
            (Problem::bad("so").into_response(), "\"detail\":\"so\""),
        ] {
            let status = answer.status();
            let answer = as_problem(answer, 16 << 20).await;
            assert_eq!(answer.status(), status);
            let body = to_bytes(answer.into_body(), MAX_REFUSAL).await.expect("a body");
            let body = String::from_utf8_lossy(&body).into_owned();
            assert!(
                body.contains(expected) && (!expected.is_empty() || body.is_empty()),
                "{body}"
            );
        }
    }
}
