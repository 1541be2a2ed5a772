//! HTTP/1.1 on the wire (RFC 9112): heads, framing, chunked bodies. It does no I/O: bytes in, values out. Connections,
//! time-outs and what becomes of a request are the data plane's.
//!
//! What is ambiguous is refused and never repaired: bare LF, obsolete folding, space before a colon, both
//! `Content-Length` and `Transfer-Encoding`, several lengths, codings other than `chunked`.

#[cfg(test)]
mod agreement;
pub mod body;
pub mod chunked;
pub mod fields;
mod head;
mod head_cache;
pub mod request;
pub mod response;
pub mod status;
pub mod target;

pub use head::MAX_FIELDS;
pub use head_cache::{HeadCache, HeadSlot};

/// How the end of a message's body is known (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    #[default]
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
    #[inline]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}

/// Whether an empty line may end in the bytes from `from` on. A head that trickles in is parsed once, not once
/// for each piece.
#[inline]
pub fn ends_a_head(bytes: &[u8], from: usize) -> bool {
    let from = from.saturating_sub(3);
    memchr::memmem::find(&bytes[from..], b"\n\r\n").is_some()
        || memchr::memmem::find(&bytes[from..], b"\n\n").is_some()
}

/// Whether a first line of three words ends in one that could be HTTP's version. A client of another protocol does
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
