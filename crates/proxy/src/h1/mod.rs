//! HTTP/1.1 on the wire (RFC 9112): heads, framing, chunked bodies. Sans-IO: bytes in, values out.
//!
//! What is ambiguous is refused and never repaired: bare LF, obsolete folding, space before a colon, both
//! `Content-Length` and `Transfer-Encoding`, several lengths, codings other than `chunked`.

pub mod body;
pub mod chunked;
pub mod request;
pub mod response;
pub mod status;

use memchr::memchr_iter;

/// Entry points for fuzzing: every parser of this crate that reads what a peer sends.
pub mod fuzzing {
    use weir_plugin::{Exchange, system_clock};

    /// Reads `bytes` as a request head.
    pub fn request_head(bytes: &[u8]) {
        let mut exchange = Exchange::new(system_clock, 1);
        let _ = super::request::parse(bytes, &mut exchange);
    }

    /// Reads `bytes` as a response head.
    pub fn response_head(bytes: &[u8]) {
        let mut response = weir_plugin::Response::default();
        let _ = super::response::parse(bytes, false, &mut response);
    }

    /// Reads `bytes` as a chunked body that arrives in two parts; both ways of reading must agree.
    pub fn chunked_body(bytes: &[u8], split: usize) {
        let split = split.min(bytes.len());
        let whole = super::chunked::decode_all(&[bytes]);
        let parts = super::chunked::decode_all(&[&bytes[..split], &bytes[split..]]);
        assert_eq!(whole, parts);
    }
}

/// The most header fields in one head.
pub const MAX_HEADERS: usize = 128;

/// How the end of a message's body is known (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
    /// The body ends with the connection (responses only).
    UntilClose,
}

impl Framing {
    /// Whether nothing follows the head.
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}

/// Whether every LF in a head ends a CRLF.
fn lines_end_in_crlf(head: &[u8]) -> bool {
    memchr_iter(b'\n', head).all(|at| at > 0 && head[at - 1] == b'\r')
}

/// Reads a `Content-Length`: digits only (RFC 9112, 6.2).
fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    value.iter().try_fold(0u64, |length, byte| {
        byte.is_ascii_digit().then(|| length * 10 + u64::from(byte - b'0'))
    })
}

/// The elements of a comma-separated list, without white space.
fn list_items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}
