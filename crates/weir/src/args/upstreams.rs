//! Flags of `weir run` about the servers that calls go to.

use clap::Args;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_proxy::NameServers;

/// How the servers that calls go to are found, and left out.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Upstreams")]
pub struct UpstreamArgs {
    /// Name server for the names of upstreams. Repeat the flag for several [default: those of /etc/resolv.conf].
    #[arg(
        long,
        value_name = "ADDR[:PORT]",
        env = "WEIR_NAME_SERVER",
        value_delimiter = ',',
        value_parser = name_server
    )]
    pub name_server: Vec<SocketAddr>,
    /// Seconds without calls for a target that passive health checks found unhealthy, if no active check can find it
    /// healthy again; 0: until it is marked healthy through an Admin API.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_PASSIVE_EJECTION",
        default_value_t = 60
    )]
    pub passive_ejection: u32,
    /// The zone of this gateway. Calls to upstreams with `zones` stay in it as far as its targets can take them.
    #[arg(long, value_name = "NAME", env = "WEIR_ZONE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub zone: Option<String>,
}

impl UpstreamArgs {
    /// The servers as the data plane takes them.
    pub fn name_servers(&self) -> NameServers {
        match self.name_server.as_slice() {
            [] => NameServers::System,
            servers => NameServers::Fixed(servers.to_vec()),
        }
    }

    /// For how long a target gets no calls.
    pub fn passive_ejection(&self) -> Duration {
        Duration::from_secs(u64::from(self.passive_ejection))
    }
}

/// The port of name servers, unless the address names one.
const DNS_PORT: u16 = 53;

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let plain = text.trim_matches(['[', ']']).parse::<IpAddr>();
    match plain {
        Ok(ip) => Ok((ip, DNS_PORT).into()),
        Err(_) => text
            .parse()
            .map_err(|_| "expected an address, with a port or without".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_read() {
        for (text, expected) in [
            ("127.0.0.1", Some("127.0.0.1:53")),
            ("127.0.0.1:5353", Some("127.0.0.1:5353")),
            ("::1", Some("[::1]:53")),
            ("[::1]", Some("[::1]:53")),
            ("[::1]:5353", Some("[::1]:5353")),
            ("dns.test", None),
            ("", None),
        ] {
            let read = name_server(text).ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
