//! Traffic that no plugin names, against real upstreams: slow start, zones, sticky sessions, hedged calls, adaptive
//! concurrency, retries on a status, the bound of a whole call, bandwidth, records of Kafka.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// How clients connect.
const OVER_TLS: bool = false;

mod balancing;
mod bounds;
mod hedging;
mod kafka;
mod overload;
mod sticky;
mod target_override;
mod tries;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

use support::{Message, TestGateway, text};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Makes a call on a connection of its own.
fn call(gateway: &TestGateway, request: &str) -> Message {
    let mut client = gateway.connect();
    client.send(request);
    client.response().unwrap()
}

/// The status of the answer, and its body.
fn status_and_body(gateway: &TestGateway, request: &str) -> (u16, String) {
    let answer = call(gateway, request);
    (answer.status(), text(&answer.body))
}
