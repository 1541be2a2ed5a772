//! Responses without an end of their own, such as streams of changes and of events: they end when their listener drains.
//! Otherwise a single client that follows changes would delay every stop of the process by the whole drain time.

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// Marks a response, as an extension, whose body goes on until the client leaves. A listener that drains ends it.
#[derive(Debug, Clone, Copy)]
pub struct StreamingResponse;

/// A body that ends when its listener drains.
pub struct DrainableBody {
    body: Body,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl DrainableBody {
    /// This body, until `draining` says so.
    pub fn new(body: Body, mut draining: watch::Receiver<bool>) -> Self {
        Self {
            body,
            // If the sender is gone, there is no one left who could drain: that is an end too.
            draining: Box::pin(async move { drop(draining.wait_for(|is_draining| *is_draining).await) }),
        }
    }
}

impl HttpBody for DrainableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.draining.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
