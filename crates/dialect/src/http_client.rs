//! Asking other servers, for Admin APIs whose calls lead to one. **What it is not**: the client; who opens an Admin API brings
//! one.

use axum::body::Bytes;
use axum::http::{Method, StatusCode};
use std::future::Future;
use std::pin::Pin;

/// A call to another server. Not `Debug`: it may hold secrets.
pub struct HttpCall {
    /// The method.
    pub method: Method,
    /// `http://HOST[:PORT]/PATH`, or with `https`.
    pub url: String,
    /// Headers beside `Host` and those of the body.
    pub headers: Vec<(&'static str, String)>,
    /// The body, as JSON.
    pub json: Option<Vec<u8>>,
}

/// The status and the body of a response, or the reason why there is none.
pub type HttpAnswer = Pin<Box<dyn Future<Output = Result<(StatusCode, Bytes), String>> + Send>>;

/// Makes calls to other servers.
pub trait HttpClient: Send + Sync {
    /// Makes a call, and waits for the whole answer, no longer than some seconds.
    fn make(&self, call: HttpCall) -> HttpAnswer;
}
