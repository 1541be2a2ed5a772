//! HTTP/2 through a whole gateway: from clients, to upstreams, and in every combination with HTTP/1.1.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect.
const OVER_TLS: bool = false;

mod bodies;
mod conformance;
mod connections;
mod credit;
mod endings;
mod faults;
mod floods;
mod frames;
mod grpc;
mod heads;
mod health;
mod negotiation;
mod non_reading_peers;
mod peer;
mod tables;
mod trailer_filters;
mod upstreams;
mod websocket;

#[allow(dead_code, unused_imports, reason = "of raw peers, little is asked here")]
#[path = "../support/mod.rs"]
mod support;
