//! What holds whatever protocol a client speaks: each case runs over HTTP/1.1, HTTP/2 and HTTP/3, in the clear and over
//! TLS.
//!
//! The tests below `http1/` are about what HTTP/1.1 alone has: how heads and chunks are written, pipelining, HTTP/1.0,
//! order and spelling of names, reason phrases, keeping connections, upgrades to anything but WebSockets, and all that an
//! upstream can break in its framing. Whatever else they say of calls stands here too, shorter.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect if a test does not say.
const OVER_TLS: bool = false;

mod answers;
mod bodies;
mod cancelling;
mod client;
mod early;
mod filters;
mod heads;
mod http1;
mod http2;
mod http3;
mod lifecycle;
mod limits;
mod malformed;
mod many;
mod marks;
mod panics;
mod quic;
mod relay;
mod stand;
mod streaming;
mod tries;
mod websocket;
mod websocket_cases;

#[allow(dead_code, unused_imports, reason = "of raw peers, little is asked here")]
#[path = "../support/mod.rs"]
mod support;
