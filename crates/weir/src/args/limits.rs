//! Flags of `weir run` that bound what clients send.

use crate::seconds::Seconds;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use weir_proxy::Limits;

/// Bounds on what clients send and on how long they take.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Largest head of a request, in bytes (at most 65535).
    #[arg(
        long,
        value_name = "BYTES",
        env = "WEIR_MAX_HEAD_BYTES",
        default_value_t = Limits::default().max_head_bytes as u16,
        value_parser = clap::value_parser!(u16).range(512..)
    )]
    pub max_head_bytes: u16,
    /// Longest request target, in bytes.
    #[arg(
        long,
        value_name = "BYTES",
        env = "WEIR_MAX_TARGET_BYTES",
        default_value_t = Limits::default().max_target_bytes
    )]
    pub max_target_bytes: usize,
    /// Largest request body, in bytes; 0 is no limit. A route's `max_body_bytes` takes precedence.
    #[arg(
        long,
        value_name = "BYTES",
        env = "WEIR_MAX_BODY_BYTES",
        default_value_t = Limits::default().max_body_bytes
    )]
    pub max_body_bytes: u64,
    /// Most open client connections of each worker. Further ones are closed at once.
    #[arg(
        long,
        value_name = "N",
        env = "WEIR_MAX_CONNECTIONS",
        default_value_t = Limits::default().max_connections,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    pub max_connections: usize,
    /// Most seconds from the first byte of a request's head to its last.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_HEADER_TIMEOUT",
        default_value_t = Seconds(Limits::default().header_timeout)
    )]
    pub header_timeout: Seconds,
    /// Most seconds between two requests on a connection.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_IDLE_TIMEOUT",
        default_value_t = Seconds(Limits::default().idle_timeout)
    )]
    pub idle_timeout: Seconds,
    /// Most seconds between two parts of a request's body.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_BODY_TIMEOUT",
        default_value_t = Seconds(Limits::default().body_timeout)
    )]
    pub body_timeout: Seconds,
    /// Fewest bytes of a request's body for each second, over any period of --body-timeout; 0 is no limit.
    #[arg(
        long,
        value_name = "BYTES",
        env = "WEIR_MIN_BODY_RATE",
        default_value_t = Limits::default().min_body_rate
    )]
    pub min_body_rate: u32,
    /// Seconds in which a client must take 1 KiB of a response, or the rest of it.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_WRITE_TIMEOUT",
        default_value_t = Seconds(Limits::default().write_timeout)
    )]
    pub write_timeout: Seconds,
    /// Most seconds without a byte in either direction of an upgraded connection (WebSocket).
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_TUNNEL_TIMEOUT",
        default_value_t = Seconds(Limits::default().tunnel_timeout)
    )]
    pub tunnel_timeout: Seconds,
    /// Most calls in progress on one connection of HTTP/2 or HTTP/3.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "WEIR_MAX_STREAMS",
        default_value_t = Limits::default().max_streams,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_streams: u32,
}

impl LimitArgs {
    /// The limits as the data plane takes them.
    pub fn limits(&self) -> Limits {
        Limits {
            max_head_bytes: usize::from(self.max_head_bytes),
            max_target_bytes: self.max_target_bytes,
            max_body_bytes: self.max_body_bytes,
            max_connections: self.max_connections,
            header_timeout: self.header_timeout.0,
            idle_timeout: self.idle_timeout.0,
            body_timeout: self.body_timeout.0,
            min_body_rate: self.min_body_rate,
            write_timeout: self.write_timeout.0,
            tunnel_timeout: self.tunnel_timeout.0,
            max_streams: self.max_streams,
            max_udp_sessions: Limits::default().max_udp_sessions,
        }
    }
}
