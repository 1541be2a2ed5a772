//! HTTP/1.1 through a whole gateway: what goes in on one side, what comes out on the other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect.
const OVER_TLS: bool = false;
const SCHEME: &str = "http";

mod backpressure;
mod bodies;
mod body_variables;
mod connect;
mod connections;
mod expectations;
mod filtered_bodies;
mod forwarded;
mod headers;
mod lifecycle;
mod pools;
mod request_chunks;
mod request_framing;
mod request_limits;
mod response_framing;
mod subrequests;
mod upgrade;
mod upstreams;
mod waiting_responses;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
