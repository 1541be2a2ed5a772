//! HTTP/1.1 on the wire (RFC 9112): heads, framing, chunked bodies. Sans-IO: bytes in, values out.
//!
//! What is ambiguous is refused and never repaired: bare LF, obsolete folding, space before a colon, both
//! `Content-Length` and `Transfer-Encoding`, several lengths, codings other than `chunked`.

pub mod body;
pub mod chunked;
#[cfg(test)]
mod fuzz_agreement;
pub mod fuzzing;
mod head;
pub mod request;
pub mod response;
pub mod status;

pub use head::MAX_FIELDS;

use weir_plugin::Headers;

/// How the end of a message's body is known (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
    /// The body ends with the connection, which no request's does, or with its stream.
    UntilClose,
}

impl Framing {
    /// Whether nothing follows the head.
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}

/// Whether an empty line may end in the bytes from `from` on. A head that trickles in is parsed once, not once
/// for each piece.
pub fn ends_a_head(bytes: &[u8], from: usize) -> bool {
    let from = from.saturating_sub(3);
    memchr::memmem::find(&bytes[from..], b"\n\r\n").is_some()
        || memchr::memmem::find(&bytes[from..], b"\n\n").is_some()
}

/// Whether a first line of three words ends in one that could be HTTP's version. Whoever sends another protocol does
/// not understand an answer in this one.
pub fn names_http(bytes: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b'\r', bytes) else {
        return true;
    };
    let mut words = bytes[..end].splitn(3, |byte| *byte == b' ').skip(2);
    let is_word = |byte: &u8| byte.is_ascii_alphabetic();
    words
        .next()
        .is_none_or(|word| word.is_empty() || !word.iter().all(is_word))
}

/// Reads a `Content-Length`: digits only (RFC 9112, 6.2).
pub fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    value.iter().try_fold(0u64, |length, byte| {
        byte.is_ascii_digit()
            .then(|| length * 10 + u64::from(byte - b'0'))
    })
}

/// The elements of a comma-separated list, without white space.
fn list_items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|item| !item.is_empty())
}

/// Whether a field may stand behind a body: not one by which the message is framed, routed or authenticated.
pub fn may_trail(name: &[u8]) -> bool {
    let forbidden: [&[u8]; 13] = [
        b"host",
        b"te",
        b"trailer",
        b"upgrade",
        b"connection",
        b"keep-alive",
        b"content-length",
        b"content-encoding",
        b"content-type",
        b"transfer-encoding",
        b"authorization",
        b"proxy-connection",
        b"cookie",
    ];
    !forbidden.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Takes out what filters may have set of the headers by which a message is framed and its connection kept: those
/// are the gateway's own, made anew for each hop.
pub fn forget_framing(headers: &mut Headers) {
    headers.remove_any([
        b"expect",
        b"upgrade",
        b"connection",
        b"keep-alive",
        b"content-length",
        b"http2-settings",
        b"proxy-connection",
        b"transfer-encoding",
    ]);
}
