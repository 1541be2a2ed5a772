//! Flags of `weir run` that are about HTTP/3.

use clap::{Args, ValueEnum};
use weir_proxy::Http3;

/// Whether and how HTTP/3 is served.
#[derive(Debug, Clone, Args)]
pub struct Http3Args {
    /// Serve HTTP/3 on the UDP port of each --listen-tls. If the port is not available, Weir logs a warning and goes on
    /// without.
    #[arg(long, value_name = "WHETHER", env = "WEIR_HTTP3", value_enum, default_value_t = OnOff::On)]
    pub http3: OnOff,
    /// The port for HTTP/3 that `Alt-Svc` announces, if clients reach Weir by another port than that of the listener
    /// [default: the listener's].
    #[arg(long, value_name = "PORT", env = "WEIR_HTTP3_PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub http3_port: Option<u16>,
    /// Accept requests in the first flight of resumed HTTP/3 sessions (0-RTT). Requests with a safe method are served
    /// at once and carry `Early-Data: 1` to upstreams; others wait for the handshake.
    #[arg(long, value_name = "WHETHER", env = "WEIR_HTTP3_EARLY_DATA", value_enum, default_value_t = OnOff::Off)]
    pub http3_early_data: OnOff,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// Yes.
    On,
    /// No.
    Off,
}

impl Http3Args {
    /// As the data plane takes it.
    pub fn options(&self) -> Option<Http3> {
        let http3 = Http3 {
            told_port: self.http3_port,
            early_data: self.http3_early_data == OnOff::On,
        };
        (self.http3 == OnOff::On).then_some(http3)
    }
}
