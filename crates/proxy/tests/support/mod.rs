//! A gateway within the test's process, and raw peers on both sides of it.
//!
//! Peers speak bytes over real sockets on free ports of the loopback. A test waits for what it expects to
//! happen, and for time to pass only if it tests a time-out; [`TIMEOUT`] only ends a test that
//! would hang.

mod fields;
mod filter;
mod gateway;
mod kafka;
pub mod kafka_bytes;
mod log;
mod models;
mod tls;
mod upstream;
mod wire;

#[allow(unused_imports, reason = "few tests ask")]
pub use fields::{joined, list};
pub use gateway::{TestGateway, patch, simple_model};
#[allow(unused_imports, reason = "few tests ask")]
pub use kafka::KafkaBroker;
use log::log_target;
#[allow(unused_imports, reason = "few tests ask")]
pub use models::{balanced, dead, json_body};
#[allow(unused_imports, reason = "few tests ask")]
pub use tls::{SignedPair, client_config, server as server_config};
pub use upstream::{Upstream, answer};
#[allow(unused_imports, reason = "few tests ask")]
pub use wire::Ended;
pub use wire::{Message, Wire};

use std::time::{Duration, Instant};

/// What filters panic with if a test asks for it.
pub const ON_PURPOSE: &str = "on purpose";

/// The zone that gateways are in.
pub const ZONE: &str = "here";

/// How long a test waits for anything before it fails.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// How long it is waited before what is expected to come about is looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits until something is so.
#[allow(dead_code, reason = "few tests ask")]
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Bytes as text for messages of failing tests.
pub fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
