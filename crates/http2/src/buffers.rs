//! What has come on a stream and waits to be read.

use crate::field_list::FieldList;
use bytes::Bytes;
use std::collections::VecDeque;

/// Bytes up to which pieces of a body are joined.
const SMALL: usize = 1024;
/// Most room in queues that are kept for another stream.
const MAX_SPARE_ROOM: usize = 8;

/// What waits on a stream to be read.
#[derive(Default)]
pub struct StreamBuffers {
    pieces: VecDeque<Bytes>,
    /// Small pieces behind those, as one: each for itself takes more memory than a few bytes, and a whole window may come
    /// one by one.
    small: Vec<u8>,
    pub(crate) heads: VecDeque<Box<FieldList>>,
}

impl StreamBuffers {
    /// Empties them, for another stream; whether keeping them is worth it.
    pub fn empty(&mut self) -> bool {
        self.pieces.clear();
        self.small.clear();
        self.heads.clear();
        self.pieces.capacity().max(self.heads.capacity()) <= MAX_SPARE_ROOM
    }

    /// Whether there is data.
    pub fn has_data(&self) -> bool {
        !self.small.is_empty() || !self.pieces.is_empty()
    }

    pub(crate) fn push(&mut self, data: &[u8]) {
        if self.small.len() + data.len() > SMALL && !self.small.is_empty() {
            self.pieces.push_back(Bytes::copy_from_slice(&self.small));
            self.small.clear();
        }
        match data.len() <= SMALL {
            true => self.small.extend_from_slice(data),
            false => self.pieces.push_back(Bytes::copy_from_slice(data)),
        }
    }

    /// The next data.
    pub fn pop(&mut self) -> Option<Bytes> {
        if let Some(piece) = self.pieces.pop_front() {
            return Some(piece);
        }
        let small = (!self.small.is_empty()).then(|| Bytes::copy_from_slice(&self.small));
        self.small.clear();
        small
    }

    /// Gives `read` all the data there is, if that is small and no more than `room`; the number of bytes.
    #[inline]
    pub fn read_small(&mut self, room: usize, read: impl FnOnce(&[u8])) -> Option<usize> {
        let count = self.small.len();
        if count == 0 || count > room || !self.pieces.is_empty() {
            return None;
        }
        read(&self.small);
        self.small.clear();
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_usual_size_are_worth_keeping() {
        for (count, is_kept) in [(0, true), (4, true), (100, false)] {
            let mut buffers = StreamBuffers::default();
            buffers
                .pieces
                .extend((0..count).map(|_| Bytes::from_static(b"a")));
            buffers.push(b"b");
            assert_eq!(buffers.empty(), is_kept, "{count}");
            assert!(!buffers.has_data());
        }
    }

    #[test]
    fn small_pieces_are_joined() {
        let mut buffers = StreamBuffers::default();
        for _ in 0..3 * SMALL {
            buffers.push(b"a");
        }
        buffers.push(b"bc");
        buffers.push(&[b'd'; SMALL + 1]);
        buffers.push(b"e");
        assert_eq!(buffers.pieces.len(), 5);
        let mut seen = Vec::new();
        let mut read = |buffers: &mut StreamBuffers, room| {
            let read = buffers.read_small(room, |bytes| seen.extend_from_slice(bytes));
            (read, seen.clone())
        };
        assert_eq!(read(&mut buffers, 8).0, None, "it is not the next");
        let pieces: Vec<Bytes> = (0..5).filter_map(|_| buffers.pop()).collect();
        let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [SMALL, SMALL, SMALL, 2, SMALL + 1]);
        assert_eq!(read(&mut buffers, 8), (Some(1), b"e".to_vec()));
        assert!(!buffers.has_data() && buffers.pop().is_none());
        buffers.push(b"123456789");
        assert_eq!(read(&mut buffers, 8).0, None, "there is no room");
        assert_eq!(buffers.pop().as_deref(), Some(&b"123456789"[..]));
        assert!(!buffers.has_data());
    }
}
