//! Bounds of HTTP/3 that are numbers of QUIC or of the `h3` crate: heads, and the numbers of streams.

use quinn::VarInt;

/// The widest head that is read, as it is sent: the coding makes most shorter, and a few longer.
pub fn max_headers(max_head_bytes: usize) -> usize {
    max_head_bytes.saturating_mul(4)
}

/// A number of streams that no connection reaches: the most that QUIC can count, for what is promised first.
pub const BEYOND: usize = VarInt::MAX.into_inner() as usize >> 2;
