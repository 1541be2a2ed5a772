//! Writing headers of the PROXY protocol, both versions, for upstreams. Those of clients are read elsewhere.

use super::parse::SIGNATURE;
use std::net::{IpAddr, SocketAddr};
use weir_model::ProxyProtocol;

/// The header with the addresses of a client and of its destination.
pub fn header(version: ProxyProtocol, source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (source, destination) = alike(source, destination);
    match version {
        ProxyProtocol::V1 => line(source, destination),
        ProxyProtocol::V2 => binary(source, destination),
    }
}

/// Both ends in one family; if one is IPv6, the other is mapped into it.
fn alike(source: SocketAddr, destination: SocketAddr) -> (SocketAddr, SocketAddr) {
    let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let (source, destination) = (canonical(source), canonical(destination));
    if source.is_ipv4() == destination.is_ipv4() {
        return (source, destination);
    }
    let mapped = |end: SocketAddr| match end.ip() {
        IpAddr::V4(address) => SocketAddr::new(address.to_ipv6_mapped().into(), end.port()),
        IpAddr::V6(_) => end,
    };
    (mapped(source), mapped(destination))
}

fn line(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (source.port(), destination.port());
    format!(
        "PROXY {family} {} {} {from} {to}\r\n",
        source.ip(),
        destination.ip()
    )
    .into_bytes()
}

fn binary(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    // Version 2 and the command PROXY; then the family, with connections as the transport.
    let (family, length): (u8, u16) = if source.is_ipv4() { (0x11, 12) } else { (0x21, 36) };
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[0x21, family]);
    header.extend_from_slice(&length.to_be_bytes());
    for end in [source, destination] {
        match end.ip() {
            IpAddr::V4(address) => header.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => header.extend_from_slice(&address.octets()),
        }
    }
    header.extend_from_slice(&source.port().to_be_bytes());
    header.extend_from_slice(&destination.port().to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::super::parse::{ProxyHeader, header_length, parse};
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (source, destination, expected) in [
            (
                "192.0.2.1:5",
                "198.51.100.9:443",
                ("192.0.2.1:5", "198.51.100.9:443"),
            ),
            (
                "[2001:db8::1]:5",
                "[2001:db8::2]:443",
                ("[2001:db8::1]:5", "[2001:db8::2]:443"),
            ),
            (
                "[::ffff:192.0.2.1]:5",
                "10.0.0.1:1",
                ("192.0.2.1:5", "10.0.0.1:1"),
            ),
            (
                "192.0.2.1:5",
                "[2001:db8::2]:1",
                ("[::ffff:192.0.2.1]:5", "[2001:db8::2]:1"),
            ),
        ] {
            let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
            for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
                let header = header(version, address(source), address(destination));
                assert_eq!(header_length(&header), Ok(Some(header.len())));
                let wanted = ProxyHeader::Client {
                    source: address(expected.0),
                    destination: address(expected.1),
                };
                assert_eq!(parse(&header), Ok(wanted), "{source} {destination}");
            }
        }
    }

    #[test]
    fn the_line_is_as_the_specification_has_it() {
        let ends = ["192.168.0.1:56324", "192.168.0.11:443"].map(|it| it.parse().expect("an address"));
        let line = header(ProxyProtocol::V1, ends[0], ends[1]);
        assert_eq!(line, b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n");
    }
}
