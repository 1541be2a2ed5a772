//! A handler of a call without a type of its own. axum builds a stack of generic services around each handler; with some
//! three hundred handlers the compiler spent half of its time in this crate on them. Around this one it builds one stack.
//! It is not a router: [`super::operation`] is what knows methods and paths.

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use std::pin::Pin;
use std::sync::Arc;

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Any handler of calls with the state `S`.
pub struct BoxedHandler<S>(Arc<dyn Fn(Request, S) -> Answer + Send + Sync>);

/// What axum distinguishes implementations of [`Handler`] by.
pub struct ViaBoxedHandler;

impl<S: Send + Sync + 'static> BoxedHandler<S> {
    /// The same handler.
    pub fn new<H: Handler<T, S>, T: 'static>(handler: H) -> Self {
        Self(Arc::new(move |request, state| {
            Box::pin(handler.clone().call(request, state))
        }))
    }
}

impl<S> Clone for BoxedHandler<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Send + Sync + 'static> Handler<ViaBoxedHandler, S> for BoxedHandler<S> {
    type Future = Answer;

    fn call(self, request: Request, state: S) -> Answer {
        (self.0)(request, state)
    }
}
