//! What holds whatever protocol a client speaks: each case runs over HTTP/1.1, HTTP/2 and HTTP/3, in the clear and over
//! TLS.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect where a test does not say.
const OVER_TLS: bool = false;

mod answers;
mod bodies;
mod cancelling;
mod client;
mod heads;
mod http1;
mod http2;
mod http3;
mod limits;
mod quic;
mod stand;
mod streaming;
mod websocket;
mod websocket_cases;

#[allow(dead_code, unused_imports, reason = "of raw peers, little is asked here")]
#[path = "../support/mod.rs"]
mod support;
