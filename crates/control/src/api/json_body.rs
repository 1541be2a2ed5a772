//! Bodies of calls, and refusals of what is no good call: they are problems as all others.

use super::problem::Problem;
use super::unique_fields::UniqueFields;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
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
            let detail = String::from_utf8_lossy(&text).into_owned();
            Problem::new(status, detail).into_response()
        }
        Ok(_) => Response::from_parts(head, Body::empty()),
        Err(_) => Problem::new(status, "the call is not understood").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Json;

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

    #[tokio::test]
    async fn refusals_of_the_framework_become_problems() {
        let text = |status, text: &'static str| (status, text).into_response();
        for (answer, expected) in [
            (
                text(StatusCode::BAD_REQUEST, "no number"),
                "\"detail\":\"no number\"",
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
