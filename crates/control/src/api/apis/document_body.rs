//! The body of a call that brings a document: text of bounded length. What is no such text is refused with its line and column, as
//! other faults of documents are.

use super::specs;
use crate::api::{MAX_BODY, Problem};
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use weir_apis::openapi::UNREADABLE;
use weir_apis::{Finding, Position};

/// The text of such a body.
pub struct DocumentBody(pub String);

impl<S: Send + Sync> FromRequest<S> for DocumentBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|refusal| match refusal.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    let message = format!("expected at most {} MiB", MAX_BODY >> 20);
                    refused(StatusCode::PAYLOAD_TOO_LARGE, message, Position::START)
                }
                status => Problem::new(status, refusal.body_text()),
            })?;
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Self(text)),
            Err(error) => {
                let end = error.utf8_error().valid_up_to();
                let (read, byte) = (&error.as_bytes()[..end], error.as_bytes()[end]);
                let message = format!("expected UTF-8, found the byte {byte:#04x}");
                Err(refused(StatusCode::BAD_REQUEST, message, end_of(read)))
            }
        }
    }
}

/// The place after a text.
fn end_of(text: &[u8]) -> Position {
    let text = String::from_utf8_lossy(text);
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position {
        line: 1 + text.matches('\n').count(),
        column: 1 + last.chars().count(),
    }
}

fn refused(status: StatusCode, message: String, at: Position) -> Problem {
    let found = Finding::error(UNREADABLE, Default::default(), message).at(at);
    specs::unreadable(&[found]).with_status(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[tokio::test]
    async fn bytes_that_are_no_text_have_a_place() {
        for (body, expected) in [
            (&b"a: 1\n"[..], None),
            (b"", None),
            (b"\xff", Some("1:1: error: expected UTF-8, found the byte 0xff")),
            (
                b"a\r\n\xc3\xa4b\xe4",
                Some("2:3: error: expected UTF-8, found the byte 0xe4"),
            ),
            (b"a\n\n\xc3", Some("3:1: error: expected UTF-8")),
        ] {
            let request = Request::new(Body::from(body));
            let read = DocumentBody::from_request(request, &()).await;
            let message = read.err().map(|it| it.to_string());
            assert_eq!(message.is_some(), expected.is_some(), "{message:?}");
            assert!(message.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
