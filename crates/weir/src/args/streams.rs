//! Flags of `weir run` for streams below HTTP, and for balancers that send their clients' addresses.

use super::listen;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use std::net::IpAddr;
use weir_proxy::{Limits, ProxyProtocolTrust, StreamListen};
use weir_snapshot::StreamTransport;

/// Listeners for streams, and the peers that may send clients' addresses.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Streams")]
pub struct StreamArgs {
    /// Address for streams below HTTP, which stream routes forward: TCP; with `,tls` TLS, with `,udp` datagrams. Repeat
    /// the flag for several; in the variable, separate them with spaces.
    #[arg(
        long,
        value_name = "ADDR[,tls|,udp]",
        env = "WEIR_LISTEN_STREAM",
        value_delimiter = ' ',
        value_parser = listen
    )]
    pub listen_stream: Vec<StreamListen>,
    /// Load balancers that send the PROXY protocol (version 1 or 2). All their connections must begin with it; those of
    /// other peers have none. Repeat the flag for several.
    #[arg(
        long,
        value_name = "CIDR",
        env = "WEIR_PROXY_PROTOCOL",
        value_delimiter = ',',
        value_parser = network
    )]
    pub proxy_protocol: Vec<IpNet>,
    /// The listeners on which they send it [default: all].
    #[arg(
        long,
        value_name = "LISTENERS",
        env = "WEIR_PROXY_PROTOCOL_ON",
        value_delimiter = ',',
        value_enum
    )]
    pub proxy_protocol_on: Vec<ListenerArg>,
    /// Most open UDP sessions of each worker. Datagrams of further clients are dropped.
    #[arg(
        long,
        value_name = "N",
        env = "WEIR_MAX_UDP_SESSIONS",
        default_value_t = Limits::default().max_udp_sessions,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    pub max_udp_sessions: usize,
}

/// A kind of listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListenerArg {
    /// Those of `--listen`.
    Http,
    /// Those of `--listen-tls`.
    Tls,
    /// Those of `--listen-stream`, but for datagrams.
    Stream,
}

impl StreamArgs {
    /// Whether any handshake may have to be answered here.
    pub fn has_tls(&self) -> bool {
        let mut streams = self.listen_stream.iter();
        streams.any(|it| it.transport == StreamTransport::Tls)
    }

    /// The peers that may send clients' addresses, in the data plane's form.
    pub fn trusted(&self) -> Option<ProxyProtocolTrust> {
        let is_on = |kind| self.proxy_protocol_on.is_empty() || self.proxy_protocol_on.contains(&kind);
        (!self.proxy_protocol.is_empty()).then(|| ProxyProtocolTrust {
            networks: self.proxy_protocol.clone(),
            on_plain: is_on(ListenerArg::Http),
            on_tls: is_on(ListenerArg::Tls),
            on_streams: is_on(ListenerArg::Stream),
        })
    }
}

fn listen(text: &str) -> Result<StreamListen, String> {
    let words = [("tls", StreamTransport::Tls), ("udp", StreamTransport::Udp)];
    let (address, transport) = listen::read(text, StreamTransport::Tcp, &words)?;
    Ok(StreamListen { address, transport })
}

fn network(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address
        .or_else(|_| text.parse::<IpNet>())
        .map_err(|_| "expected an address or a network, such as 10.0.0.0/8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read() {
        assert!(network("10.0.0.0/8").is_ok() && network("::1").is_ok() && network("x").is_err());
    }
}
