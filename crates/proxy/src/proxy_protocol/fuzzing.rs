//! An entry point for fuzzing: what must hold of all headers that are accepted.

use super::parse::{MAX_HEADER, ProxyHeader, header_length, parse};
use super::write::header;
use weir_model::ProxyProtocol;

/// Reads `bytes` as the begin of a connection. Its length is found from the same bytes whatever follows, and is
/// bounded; what is read about a client and written again is understood in the same way.
///
/// # Panics
/// If that does not hold.
pub fn read_proxy_header(bytes: &[u8]) {
    let Ok(length) = header_length(bytes) else { return };
    let Some(length) = length else {
        assert!(bytes.len() < MAX_HEADER, "a header without an end");
        return;
    };
    assert!(length <= MAX_HEADER, "a header that is too long");
    let Some(whole) = bytes.get(..length) else { return };
    assert_eq!(
        header_length(whole),
        Ok(Some(length)),
        "what follows makes a difference"
    );
    let Ok(ProxyHeader::Client { source, destination }) = parse(whole) else {
        return;
    };
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        let written = header(version, source, destination);
        assert_eq!(header_length(&written), Ok(Some(written.len())));
        let Ok(ProxyHeader::Client {
            source: client,
            destination: reached,
        }) = parse(&written)
        else {
            panic!("a written header is not understood");
        };
        let is_same = |one: std::net::SocketAddr, other: std::net::SocketAddr| {
            one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
        };
        assert!(
            is_same(client, source) && is_same(reached, destination),
            "it tells something else"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_byte_is_borne() {
        for seed in [
            &b"PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\r\nGET"[..],
            b"PROXY TCP6 2001:db8::1 ::ffff:1.2.3.4 1 2\r\n",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x09\x12\x34\x01\xbb",
        ] {
            for at in 0..seed.len() {
                read_proxy_header(&seed[..at]);
                for byte in 0..=u8::MAX {
                    let mut bytes = seed.to_vec();
                    bytes[at] = byte;
                    read_proxy_header(&bytes);
                }
            }
        }
    }
}
