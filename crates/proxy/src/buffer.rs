//! Read buffers, shared by all connections of a worker.
//!
//! A connection holds a buffer only while bytes are in it, so an idle connection costs no buffer, and the
//! buffers in use stay warm in the cache.

use crate::object_pool::ObjectPool;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of a usual buffer.
pub const BUFFER_BYTES: usize = 16 * 1024;
/// Bytes of a buffer for the bodies of large messages.
pub const LARGE_BUFFER_BYTES: usize = 128 * 1024;
/// Spare buffers that a worker keeps of each size.
const SPARE_BUFFERS: usize = 256;
const SPARE_LARGE_BUFFERS: usize = 16;

/// A worker's spare buffers. All are fully initialised, so that reading needs no zeroing and no `unsafe`.
pub struct Buffers {
    usual: ObjectPool<Vec<u8>>,
    large: ObjectPool<Vec<u8>>,
    output: ObjectPool<Vec<u8>>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            usual: ObjectPool::new(SPARE_BUFFERS),
            large: ObjectPool::new(SPARE_LARGE_BUFFERS),
            output: ObjectPool::new(SPARE_BUFFERS),
        }
    }
}

impl Buffers {
    fn take(&self) -> Vec<u8> {
        self.usual.take().unwrap_or_else(|| vec![0; BUFFER_BYTES])
    }

    fn take_large(&self) -> Vec<u8> {
        self.large.take().unwrap_or_else(|| vec![0; LARGE_BUFFER_BYTES])
    }

    fn give(&self, buffer: Vec<u8>) {
        match buffer.len() {
            BUFFER_BYTES => self.usual.give(buffer),
            LARGE_BUFFER_BYTES => self.large.give(buffer),
            _ => {}
        }
    }

    /// An empty buffer to write a head into.
    pub fn acquire_output(&self) -> Vec<u8> {
        self.output.take().unwrap_or_else(|| Vec::with_capacity(4096))
    }

    /// Takes back what [`Buffers::acquire_output`] gave.
    pub fn release_output(&self, mut output: Vec<u8>) {
        if output.capacity() <= 4 * BUFFER_BYTES {
            output.clear();
            self.output.give(output);
        }
    }

    /// Frees some that were not needed for a while.
    pub fn trim(&self) {
        drop((self.usual.trim(), self.large.trim(), self.output.trim()));
    }
}

/// Bytes that were read from a peer and not used yet.
#[derive(Default)]
pub struct Inbox {
    /// Empty while the inbox holds no buffer.
    data: Vec<u8>,
    start: usize,
    end: usize,
    /// A long body is being read: the next buffer is a large one.
    is_large: bool,
}

impl Inbox {
    /// The unused bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    /// Whether no byte is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Marks `count` bytes as used.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns the buffer if it is empty; the next one is of the usual size.
    #[inline]
    pub fn release(&mut self, buffers: &Buffers) {
        if self.is_empty() {
            self.is_large = false;
            self.give_back(buffers);
        }
    }

    /// Reads into a large buffer from the next empty one on, as a long body is coming.
    pub fn enlarge(&mut self, buffers: &Buffers) {
        if !self.is_large && self.is_empty() {
            self.is_large = true;
            self.give_back(buffers);
        }
    }

    fn give_back(&mut self, buffers: &Buffers) {
        if !self.data.is_empty() {
            buffers.give(std::mem::take(&mut self.data));
            (self.start, self.end) = (0, 0);
        }
    }

    /// Whether there is a buffer to read into.
    #[inline]
    pub fn holds_buffer(&self) -> bool {
        !self.data.is_empty()
    }

    /// Whether [`Inbox::poll_fill`] could hold more, given that it may grow to `limit` bytes.
    pub fn has_room(&self, limit: usize) -> bool {
        self.end - self.start < limit.max(self.data.len()).max(BUFFER_BYTES)
    }

    /// Reads once; the number of bytes, 0 at the end of the stream. Grows up to `limit` bytes when full.
    /// While there is nothing to read, an empty inbox holds no buffer: peers that are slow cost no memory.
    pub fn poll_fill(
        &mut self,
        mut stream: impl AsyncRead + Unpin,
        context: &mut Context<'_>,
        buffers: &Buffers,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        if self.data.is_empty() {
            self.data = if self.is_large {
                buffers.take_large()
            } else {
                buffers.take()
            };
        }
        if self.end == self.data.len() {
            self.make_room(limit)?;
        }
        let mut space = ReadBuf::new(&mut self.data[self.end..]);
        let Poll::Ready(read) = Pin::new(&mut stream).poll_read(context, &mut space) else {
            if self.is_empty() {
                self.give_back(buffers);
            }
            return Poll::Pending;
        };
        read?;
        let count = space.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    fn make_room(&mut self, limit: usize) -> io::Result<()> {
        if self.start > 0 {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else if self.data.len() < limit {
            let larger = (self.data.len() * 2).min(limit.max(BUFFER_BYTES));
            self.data.resize(larger, 0);
        } else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "more than the limit allows",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn an_inbox_grows_to_its_limit_and_no_further() {
        let (buffers, mut inbox) = (Buffers::default(), Inbox::default());
        let mut context = Context::from_waker(Waker::noop());
        let endless = vec![7u8; 1 << 20];
        let source = endless.as_slice();
        let mut fill = |inbox: &mut Inbox| inbox.poll_fill(source, &mut context, &buffers, 4 * BUFFER_BYTES);
        let mut total = 0;
        while let Poll::Ready(Ok(count)) = fill(&mut inbox) {
            total += count;
        }
        assert_eq!(total, 4 * BUFFER_BYTES);
        inbox.consume(10);
        assert!(matches!(fill(&mut inbox), Poll::Ready(Ok(10))));
        inbox.consume(4 * BUFFER_BYTES);
        inbox.release(&buffers);
        assert!(inbox.data.is_empty());
    }

    /// A peer that says nothing yet.
    struct SilentPeer;

    impl AsyncRead for SilentPeer {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[test]
    fn an_inbox_holds_no_buffer_while_it_waits_empty() {
        let (buffers, mut inbox) = (Buffers::default(), Inbox::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut expect = |inbox: &mut Inbox, held: usize| {
            assert!(
                inbox
                    .poll_fill(SilentPeer, &mut context, &buffers, 0)
                    .is_pending()
            );
            assert_eq!(inbox.data.len(), held);
        };
        expect(&mut inbox, 0);
        inbox.enlarge(&buffers);
        expect(&mut inbox, 0);
        assert!(buffers.large.take().is_some() && buffers.large.take().is_none());
        let mut context = Context::from_waker(Waker::noop());
        assert!(inbox.poll_fill(&b"ab"[..], &mut context, &buffers, 0).is_ready());
        expect(&mut inbox, LARGE_BUFFER_BYTES);
        assert_eq!(inbox.bytes(), b"ab");
        inbox.consume(2);
        inbox.release(&buffers);
        assert!(inbox.poll_fill(&b"c"[..], &mut context, &buffers, 0).is_ready());
        assert_eq!(inbox.data.len(), BUFFER_BYTES);
    }
}
