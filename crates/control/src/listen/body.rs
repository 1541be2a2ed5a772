//! Bodies of requests, of bounded length and duration.

use super::Bounds;
use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

/// A body that does not come to an end in time, or is too long.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection broke.
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    /// It takes too long.
    #[error("the body did not arrive in time")]
    Late,
    /// It is too long.
    #[error("the body is too large")]
    TooLarge,
}

/// A bounded body.
pub struct BoundedBody {
    body: Incoming,
    /// How many bytes there may still be.
    room: u64,
    timeout: Duration,
    /// Begins when the body is first asked for and is not there.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl BoundedBody {
    /// A body within these bounds.
    pub fn new(body: Incoming, bounds: &Bounds) -> Self {
        Self {
            body,
            room: bounds.max_body,
            timeout: bounds.body,
            deadline: None,
        }
    }
}

impl Body for BoundedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            let deadline = this
                .deadline
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(this.timeout)));
            ready!(deadline.as_mut().poll(context));
            return Poll::Ready(Some(Err(BodyError::Late)));
        };
        let Some(frame) = frame else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match this.room.checked_sub(length) {
            Some(room) => {
                this.room = room;
                Poll::Ready(Some(Ok(frame)))
            }
            None => Poll::Ready(Some(Err(BodyError::TooLarge))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
