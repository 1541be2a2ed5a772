//! A gateway within the test's process, and raw peers on both sides of it.
//!
//! Peers speak bytes over real sockets on free ports of the loopback. A test waits for what it expects to
//! happen, and for time to pass only where a time-out is what it is about; [`PATIENCE`] only ends a test that
//! would hang.

mod filter;
mod gateway;
mod log;
mod tls;
mod upstream;
mod wire;

pub use gateway::{TestGateway, patch, simple_model};
use log::log_target;
#[allow(unused_imports, reason = "few tests ask")]
pub use tls::{client_config, server as server_config};
pub use upstream::{Upstream, answer};
pub use wire::{Ended, Message, Wire};

use std::time::Duration;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes as text for messages of failing tests.
pub fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
