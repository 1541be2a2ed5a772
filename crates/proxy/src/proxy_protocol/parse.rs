//! Reading headers of the PROXY protocol from bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first bytes of version 2.
pub(super) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The first bytes of version 1.
pub(super) const WORD: [u8; 6] = *b"PROXY ";
/// The longest line of version 1, its end included.
const MAX_LINE: usize = 107;
/// The bytes before the addresses of version 2.
const FIXED: usize = 16;
/// The longest header: in version 2 addresses may be followed by fields, which are bounded as in NGINX.
pub const MAX_HEADER: usize = 4096;

/// Bytes that are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a header of the PROXY protocol: {0}")]
pub struct Malformed(pub &'static str);

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The connection is for this client, which has come to this address of the balancer.
    Client {
        /// The client.
        source: SocketAddr,
        /// The address that it connected to.
        destination: SocketAddr,
    },
    /// The connection is the balancer's own, or for a client of which nothing is known.
    Nothing,
}

/// How long the header is that begins with these bytes; `None`: more of it has to be seen.
///
/// # Errors
/// They do not begin a header, or one that is too long.
pub fn header_length(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let is_begun = |start: &[u8]| {
        let length = bytes.len().min(start.len());
        bytes[..length] == start[..length]
    };
    if is_begun(&SIGNATURE) {
        let Some(length) = bytes.get(14..FIXED) else {
            return Ok(None);
        };
        let length = FIXED + usize::from(u16::from_be_bytes([length[0], length[1]]));
        return match length <= MAX_HEADER {
            true => Ok(Some(length)),
            false => Err(Malformed("it is too long")),
        };
    }
    if !is_begun(&WORD) {
        return Err(Malformed("it has neither signature"));
    }
    match memchr::memchr(b'\n', &bytes[..bytes.len().min(MAX_LINE)]) {
        Some(end) => Ok(Some(end + 1)),
        None if bytes.len() >= MAX_LINE => Err(Malformed("its line is too long")),
        None => Ok(None),
    }
}

/// Reads a whole header, as long as [`header_length`] says.
///
/// # Errors
/// If the header breaks the protocol.
pub fn parse(header: &[u8]) -> Result<ProxyHeader, Malformed> {
    match header.strip_prefix(&SIGNATURE) {
        Some(rest) => parse_binary(rest),
        None => parse_line(header),
    }
}

fn parse_line(line: &[u8]) -> Result<ProxyHeader, Malformed> {
    let line = line
        .strip_prefix(&WORD)
        .and_then(|line| line.strip_suffix(b"\r\n"))
        .ok_or(Malformed("its line does not end in CR LF"))?;
    // What follows UNKNOWN is not looked at.
    if line == b"UNKNOWN" || line.starts_with(b"UNKNOWN ") {
        return Ok(ProxyHeader::Nothing);
    }
    let line = std::str::from_utf8(line).map_err(|_| Malformed("its line is not a text"))?;
    let mut words = line.split(' ');
    let mut next = || words.next().ok_or(Malformed("a part is missing"));
    let family = next()?;
    let (source, destination) = match family {
        "TCP4" => (v4(next()?)?, v4(next()?)?),
        "TCP6" => (v6(next()?)?, v6(next()?)?),
        _ => return Err(Malformed("the protocol is none of TCP4, TCP6 and UNKNOWN")),
    };
    let (from, to) = (port(next()?)?, port(next()?)?);
    if words.next().is_some() {
        return Err(Malformed("there are too many parts"));
    }
    Ok(ProxyHeader::Client {
        source: SocketAddr::new(source, from),
        destination: SocketAddr::new(destination, to),
    })
}

fn v4(text: &str) -> Result<IpAddr, Malformed> {
    let address = text.parse::<Ipv4Addr>();
    address
        .map(IpAddr::V4)
        .map_err(|_| Malformed("an IPv4 address is invalid"))
}

fn v6(text: &str) -> Result<IpAddr, Malformed> {
    let address = text.parse::<Ipv6Addr>();
    address
        .map(IpAddr::V6)
        .map_err(|_| Malformed("an IPv6 address is invalid"))
}

/// Decimal, without a sign and without leading zeros.
fn port(text: &str) -> Result<u16, Malformed> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let port = text.parse().ok().filter(|_| is_plain);
    port.ok_or(Malformed("a port is invalid"))
}

/// Reads the part after the signature.
fn parse_binary(rest: &[u8]) -> Result<ProxyHeader, Malformed> {
    let [version, family, _, _, block @ ..] = rest else {
        return Err(Malformed("it is too short"));
    };
    let is_local = match version {
        0x20 => true,
        0x21 => false,
        _ => return Err(Malformed("its version or command is unknown")),
    };
    let header = match family {
        0x00 => ProxyHeader::Nothing,
        // Whether the balancer was spoken to in datagrams makes no difference here.
        0x11 | 0x12 => {
            let block: &[u8; 12] = block
                .first_chunk()
                .ok_or(Malformed("its addresses are missing"))?;
            let address = |at: usize| {
                let octets = [block[at], block[at + 1], block[at + 2], block[at + 3]];
                IpAddr::V4(Ipv4Addr::from(octets))
            };
            client(address(0), address(4), &block[8..])
        }
        0x21 | 0x22 => {
            let block: &[u8; 36] = block
                .first_chunk()
                .ok_or(Malformed("its addresses are missing"))?;
            let address = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&block[at..at + 16]);
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            client(address(0), address(16), &block[32..])
        }
        // A UNIX socket has no address that could stand for a client's.
        0x31 | 0x32 if block.len() >= 216 => ProxyHeader::Nothing,
        0x31 | 0x32 => return Err(Malformed("its addresses are missing")),
        _ => return Err(Malformed("its family or protocol is unknown")),
    };
    Ok(if is_local { ProxyHeader::Nothing } else { header })
}

fn client(source: IpAddr, destination: IpAddr, ports: &[u8]) -> ProxyHeader {
    ProxyHeader::Client {
        source: SocketAddr::new(source, u16::from_be_bytes([ports[0], ports[1]])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([ports[2], ports[3]])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(source: &str, destination: &str) -> Result<ProxyHeader, ()> {
        Ok(ProxyHeader::Client {
            source: source.parse().expect("an address"),
            destination: destination.parse().expect("an address"),
        })
    }

    /// Version 2 with these bytes after the signature.
    fn binary(version: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = (block.len() as u16).to_be_bytes();
        [&SIGNATURE[..], &[version, family], &length, block].concat()
    }

    #[test]
    fn lines_are_read_strictly() {
        let v4 = client_of("192.0.2.1:56324", "198.51.100.9:443");
        let v6 = client_of("[2001:db8::1]:1", "[2001:db8::2]:65535");
        for (line, wanted) in [
            ("PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\r\n", v4),
            ("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n", v6),
            ("PROXY UNKNOWN\r\n", Ok(ProxyHeader::Nothing)),
            ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", Ok(ProxyHeader::Nothing)),
            ("PROXY UNKNOWNX\r\n", Err(())),
            ("PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\n", Err(())),
            ("PROXY TCP4 192.0.2.1 198.51.100.9 56324\r\n", Err(())),
            ("PROXY TCP4 192.0.2.1 198.51.100.9 56324 443 1\r\n", Err(())),
            ("PROXY TCP4  192.0.2.1 198.51.100.9 56324 443\r\n", Err(())),
            ("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n", Err(())),
            ("PROXY TCP6 192.0.2.1 198.51.100.9 1 2\r\n", Err(())),
            ("PROXY TCP4 192.0.2.1 198.51.100.9 056 443\r\n", Err(())),
            ("PROXY TCP4 192.0.2.1 198.51.100.9 +5 443\r\n", Err(())),
            ("PROXY TCP4 192.0.2.1 198.51.100.9 65536 443\r\n", Err(())),
            ("PROXY TCP4 192.0.2.01 198.51.100.9 1 443\r\n", Err(())),
            ("PROXY UDP4 192.0.2.1 198.51.100.9 1 443\r\n", Err(())),
            ("PROXY \r\n", Err(())),
        ] {
            assert_eq!(header_length(line.as_bytes()), Ok(Some(line.len())), "{line:?}");
            assert_eq!(parse(line.as_bytes()).map_err(drop), wanted, "{line:?}");
        }
    }

    #[test]
    fn binary_headers_are_read_strictly() {
        let v4 = [192, 0, 2, 1, 198, 51, 100, 9, 0x12, 0x34, 1, 187];
        let mut v6 = [0; 36];
        (v6[15], v6[31], v6[33], v6[35]) = (1, 2, 3, 4);
        let with_fields = [&v4[..], &[4, 0, 1, 0]].concat();
        let from_v4 = client_of("192.0.2.1:4660", "198.51.100.9:443");
        let from_v6 = client_of("[::1]:3", "[::2]:4");
        for (version, family, block, wanted) in [
            (0x21, 0x11, &v4[..], from_v4),
            (0x21, 0x12, &v4[..], from_v4),
            (0x21, 0x11, &with_fields[..], from_v4),
            (0x21, 0x21, &v6[..], from_v6),
            (0x21, 0x22, &v6[..], from_v6),
            (0x20, 0x00, &[], Ok(ProxyHeader::Nothing)),
            (0x20, 0x11, &v4[..], Ok(ProxyHeader::Nothing)),
            (0x21, 0x00, &[1, 2, 3], Ok(ProxyHeader::Nothing)),
            (0x21, 0x31, &[0; 216], Ok(ProxyHeader::Nothing)),
            (0x21, 0x31, &[0; 215], Err(())),
            (0x21, 0x11, &v4[..11], Err(())),
            (0x21, 0x21, &v6[..35], Err(())),
            (0x22, 0x11, &v4[..], Err(())),
            (0x11, 0x11, &v4[..], Err(())),
            (0x21, 0x13, &v4[..], Err(())),
            (0x21, 0x41, &v4[..], Err(())),
        ] {
            let bytes = binary(version, family, block);
            assert_eq!(header_length(&bytes), Ok(Some(bytes.len())));
            assert_eq!(parse(&bytes).map_err(drop), wanted, "{version:x} {family:x}");
        }
    }

    #[test]
    fn the_length_is_known_as_early_as_can_be_and_bounded() {
        let line = b"PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\r\nGET / HTTP/1.1\r\n";
        for seen in 0..line.len() {
            let wanted = (seen >= 45).then_some(45);
            assert_eq!(header_length(&line[..seen]), Ok(wanted), "{seen}");
        }
        let header = binary(0x21, 0x11, &[0; 12]);
        for seen in 0..header.len() {
            let wanted = (seen >= FIXED).then_some(28);
            assert_eq!(header_length(&header[..seen]), Ok(wanted), "{seen}");
        }
        let endless = [&WORD[..], &[b'1'; 200]].concat();
        assert!(header_length(&endless[..MAX_LINE - 1]).is_ok());
        assert!(header_length(&endless[..MAX_LINE]).is_err());
        assert!(header_length(&binary(0x21, 0, &[0; MAX_HEADER - FIXED])).is_ok());
        assert!(header_length(&binary(0x21, 0, &[0; MAX_HEADER - FIXED + 1])).is_err());
        for other in [&b"GET / HTTP/1.1"[..], b"PROXX", b"\r\n\r\nx", b"\x16\x03\x01"] {
            assert!(header_length(other).is_err(), "{}", other.escape_ascii());
        }
    }
}
