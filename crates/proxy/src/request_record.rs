//! `RequestRecord`: the facts of a call, recorded while it runs. [`crate::emit_records`] emits them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_telemetry::metrics::Refusal;

/// The facts about a call for metrics and the access log.
#[derive(Default)]
pub struct RequestRecord {
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// From the first try to the response's head; `None` while no upstream was asked.
    pub upstream_time: Option<Duration>,
    /// When the first attempt began; only if the call is traced.
    pub forwarded_at: Option<Instant>,
    /// The outcome of each failed attempt, as a status.
    pub tries: Vec<u16>,
    /// Whom the last try was for: the upstream, and its target, by their places in the snapshot.
    pub target: Option<(u32, usize)>,
    /// The failed tries: who was asked, and when it was given up.
    pub failures: Vec<(Option<SocketAddr>, Instant)>,
    /// The status of the upstream's answer, and when its head had come.
    pub answered: Option<u16>,
    pub answered_at: Option<Instant>,
    pub retries: u32,
    pub error: Option<&'static str>,
    /// Why the gateway has answered by itself, and the plugin that wanted so.
    pub refusal: Option<Refusal>,
    pub refused_by: Option<&'static str>,
    /// Whether the client went before it had the whole answer.
    pub aborted: bool,
}
