//! Bounds on what peers may send and on how long they may take.

use std::time::Duration;

/// How long, and for how many bytes, a connection that is being closed still reads, so that its peer gets the
/// answer before the reset that unread bytes would cause.
pub const LINGER: Duration = Duration::from_secs(2);
pub const LINGER_BYTES: usize = 1 << 20;

/// Bounds of a gateway's listeners.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest request or response head, in bytes (at most 65,535).
    pub max_head_bytes: usize,
    /// Longest request target, in bytes.
    pub max_target_bytes: usize,
    /// Largest request body, in bytes; 0: no bound.
    pub max_body_bytes: u64,
    /// From the first byte of a head to its end.
    pub header_timeout: Duration,
    /// Between two calls on a connection.
    pub idle_timeout: Duration,
    /// Between two reads of a request body.
    pub body_timeout: Duration,
    /// Bytes of a request body for each second, over any stretch of `body_timeout`; 0: no bound. gRPC calls that go to
    /// upstreams over HTTP/2 may be slower.
    pub min_body_rate: u32,
    /// For a client to take 1 KiB, or what is left of a piece that is written.
    pub write_timeout: Duration,
    /// Without a byte in either direction of an upgraded connection.
    pub tunnel_timeout: Duration,
    /// Open client connections of each worker; further ones are closed at once.
    pub max_connections: usize,
    /// Open sessions of datagrams of each worker; datagrams of further clients are dropped.
    pub max_udp_sessions: usize,
    /// Calls that one HTTP/2 connection may have under way.
    pub max_streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_head_bytes: 32 * 1024,
            max_target_bytes: 8 * 1024,
            max_body_bytes: 0,
            header_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(60),
            min_body_rate: 240,
            write_timeout: Duration::from_secs(60),
            tunnel_timeout: Duration::from_secs(3600),
            max_connections: 100_000,
            max_udp_sessions: 10_000,
            max_streams: 256,
        }
    }
}
