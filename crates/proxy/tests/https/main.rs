//! The tests of HTTP/1.1 once more, with TLS between client and gateway.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect.
const OVER_TLS: bool = true;
const SCHEME: &str = "https";

mod certificates;

#[path = "../http1/backpressure.rs"]
mod backpressure;
#[path = "../http1/bodies.rs"]
mod bodies;
#[path = "../http1/body_variables.rs"]
mod body_variables;
#[path = "../http1/connections.rs"]
mod connections;
#[path = "../http1/expectations.rs"]
mod expectations;
#[path = "../http1/headers.rs"]
mod headers;
#[path = "../http1/lifecycle.rs"]
mod lifecycle;
#[path = "../http1/pools.rs"]
mod pools;
#[path = "../http1/request_chunks.rs"]
mod request_chunks;
#[path = "../http1/request_framing.rs"]
mod request_framing;
#[path = "../http1/request_limits.rs"]
mod request_limits;
#[path = "../http1/response_framing.rs"]
mod response_framing;
#[path = "../http1/upgrade.rs"]
mod upgrade;
#[path = "../http1/upstreams.rs"]
mod upstreams;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
