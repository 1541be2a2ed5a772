//! The tests of HTTP/2 once more, with TLS between client and gateway and the version agreed on there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect.
const OVER_TLS: bool = true;

#[path = "../http2/bodies.rs"]
mod bodies;
#[path = "../http2/conformance.rs"]
mod conformance;
#[path = "../http2/connections.rs"]
mod connections;
#[path = "../http2/grpc.rs"]
mod grpc;
#[path = "../http2/heads.rs"]
mod heads;
#[path = "../http2/peer.rs"]
mod peer;
#[path = "../http2/upstreams.rs"]
mod upstreams;
#[path = "../http2/websocket.rs"]
mod websocket;

#[allow(dead_code, unused_imports, reason = "of raw peers, little is asked here")]
#[path = "../support/mod.rs"]
mod support;
