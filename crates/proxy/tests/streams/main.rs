//! Streams below HTTP through a whole gateway: TCP, TLS that is ended or passes through, datagrams, and the PROXY
//! protocol on all of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect.
const OVER_TLS: bool = false;

mod datagrams;
mod ends;
mod lifecycle;
mod mqtt;
mod plain;
mod plugins;
mod proxied;
mod secure;

#[allow(dead_code, unused_imports, reason = "of raw peers, little is asked here")]
#[path = "../support/mod.rs"]
mod support;
