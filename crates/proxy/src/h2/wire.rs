//! What an HTTP/2 connection reads from and writes to. Frames gather here until the connection has nothing more to
//! say for now, and go out in one write: those of many streams together.

use crate::transport::{ReadHalf, WriteHalf};
use crate::worker::Worker;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that gather before they are written although more may come.
const FULL: usize = 64 * 1024;

/// The connection under HTTP/2; its copies are the same connection.
#[derive(Clone)]
pub struct Wire(Rc<RefCell<State>>);

struct State {
    worker: Rc<Worker>,
    read: ReadHalf,
    write: WriteHalf,
    /// Bytes that were read before it was known that this is HTTP/2.
    before: Vec<u8>,
    out: Vec<u8>,
    written: usize,
}

impl Wire {
    /// A connection of these halves, from which `before` was read already.
    pub fn new(worker: &Rc<Worker>, (read, write): (ReadHalf, WriteHalf), before: Vec<u8>) -> Self {
        Self(Rc::new(RefCell::new(State {
            worker: Rc::clone(worker),
            read,
            write,
            before,
            out: Vec::new(),
            written: 0,
        })))
    }

    /// Writes what has gathered.
    pub fn poll_out(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_out(context)
    }

    /// Writes what has gathered, and says that there will be no more.
    pub fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_end(context)
    }

    /// Reads and forgets; gives the number of bytes, 0 at the end of the stream.
    pub fn poll_discard(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = [0; 4096];
        let mut space = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.0.borrow_mut().read).poll_read(context, &mut space))?;
        Poll::Ready(Ok(space.filled().len()))
    }
}

impl State {
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let bytes = &self.out[self.written..];
            match ready!(Pin::new(&mut self.write).poll_write(context, bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.written = 0;
        if self.out.capacity() > 0 {
            self.worker.buffers.give_output(std::mem::take(&mut self.out));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(context))?;
        Pin::new(&mut self.write).poll_shutdown(context)
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.len() - self.written >= FULL {
            ready!(self.poll_out(context))?;
        }
        if self.out.capacity() == 0 {
            self.out = self.worker.buffers.take_output();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &mut *self.0.borrow_mut();
        if state.before.is_empty() {
            return Pin::new(&mut state.read).poll_read(context, space);
        }
        let count = state.before.len().min(space.remaining());
        space.put_slice(&state.before[..count]);
        state.before.drain(..count);
        if state.before.is_empty() {
            state.before = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let state = &mut *self.0.borrow_mut();
        ready!(state.poll_room(context))?;
        state.out.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.0.borrow_mut();
        ready!(state.poll_room(context))?;
        let before = state.out.len();
        for part in parts {
            state.out.extend_from_slice(part);
        }
        Poll::Ready(Ok(state.out.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Leaves what has gathered: [`Wire::poll_out`] writes it once all streams have had their say.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_end(context)
    }
}
