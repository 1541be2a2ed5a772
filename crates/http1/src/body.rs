//! Where a message's body ends: one cursor for all kinds of framing.

use crate::Framing;
use crate::chunked::{ChunkEvent, Decoder, InvalidChunk};

/// Walks through a body as its bytes arrive.
#[derive(Debug, Clone)]
pub enum BodyCursor {
    /// So many bytes to come.
    Length(u64),
    /// Chunks to come.
    Chunked(Decoder),
    /// Everything until the connection ends.
    UntilClose,
}

impl BodyCursor {
    /// A cursor at the start of a body.
    #[inline]
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Decoder::default()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Looks at the next bytes; see [`Decoder::next`].
    #[inline]
    pub fn next(&mut self, bytes: &[u8]) -> Result<ChunkEvent, InvalidChunk> {
        match self {
            Self::Length(0) => Ok(ChunkEvent::End),
            Self::Length(left) => {
                let take = (*left).min(bytes.len() as u64);
                *left -= take;
                Ok(if take == 0 {
                    ChunkEvent::Skip(0)
                } else {
                    ChunkEvent::Data(take as usize)
                })
            }
            Self::Chunked(decoder) => decoder.next(bytes),
            Self::UntilClose if bytes.is_empty() => Ok(ChunkEvent::Skip(0)),
            Self::UntilClose => Ok(ChunkEvent::Data(bytes.len())),
        }
    }

    /// The trailers that came behind the body, as header lines.
    pub fn take_trailers(&mut self) -> Vec<u8> {
        match self {
            Self::Chunked(decoder) => decoder.take_trailers(),
            Self::Length(_) | Self::UntilClose => Vec::new(),
        }
    }

    /// Whether more than `bytes` are known to come.
    #[inline]
    pub fn is_long(&self, bytes: u64) -> bool {
        matches!(self, Self::Length(left) if *left > bytes)
    }

    /// Whether the end was reached. A body that ends with its connection never says so.
    #[inline]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(decoder) => decoder.is_done(),
            Self::UntilClose => false,
        }
    }
}
