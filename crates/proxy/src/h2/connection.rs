//! An HTTP/2 connection: what `weir_http2` knows of it, and the two halves of its transport.
//!
//! One task drives a connection: it reads frames until there are no more, and writes what has gathered in one go, that of
//! many streams together. The calls on its streams run in tasks of their own and share the state with it; no task holds it
//! over a wait.

use crate::buffer::Inbox;
use crate::runtime::Runtime;
use crate::transport::{SocketRead, SocketWrite};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_http2::connection::FULL;
use weir_http2::frame::{self, Code};
use weir_http2::{ConnectionState, FieldList, Resources, Role, Settings, StreamBuffers};

/// Most bytes that are read before a frame is whole.
const MAX_READ: usize = 2 * frame::MAX_PAYLOAD;

/// The state of a worker's connection.
pub type Http2State = ConnectionState<WorkerResources>;

/// The worker's resources for a connection.
pub struct WorkerResources(Rc<Runtime>);

impl Resources for WorkerResources {
    #[inline]
    fn acquire_output(&self) -> Vec<u8> {
        self.0.buffers.acquire_output()
    }

    #[inline]
    fn release_output(&self, output: Vec<u8>) {
        self.0.buffers.release_output(output);
    }

    #[inline]
    fn take_list(&self) -> Box<FieldList> {
        self.0.lists.take()
    }

    #[inline]
    fn acquire_buffers(&self) -> Box<StreamBuffers> {
        self.0.stream_buffers.take().unwrap_or_default()
    }

    #[inline]
    fn release_buffers(&self, buffers: Box<StreamBuffers>) {
        self.0.stream_buffers.give(buffers);
    }

    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// A connection, which its driver and its streams share.
pub struct Connection(RefCell<Inner>);

struct Inner {
    state: Http2State,
    runtime: Rc<Runtime>,
    read: SocketRead,
    write: SocketWrite,
    inbox: Inbox,
}

/// Ends a connection whose state a panic has left half changed: what is written next may be no frame.
struct EndOnPanic<'s>(&'s mut Http2State);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Ends the streams of a connection whose driver panics: their calls would wait for a task that is gone.
pub struct LoseOnPanic(pub Rc<Connection>);

impl Drop for LoseOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lose();
        }
    }
}

impl Connection {
    /// A connection of these halves; what was read of it already is in `inbox`.
    pub fn new(
        runtime: &Rc<Runtime>,
        (read, write): (SocketRead, SocketWrite),
        inbox: Inbox,
        side: Role,
        settings: Settings,
    ) -> Rc<Self> {
        let resources = WorkerResources(Rc::clone(runtime));
        Rc::new(Self(RefCell::new(Inner {
            state: ConnectionState::new(resources, side, settings),
            runtime: Rc::clone(runtime),
            read,
            write,
            inbox,
        })))
    }

    /// Does something with the state.
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut Http2State) -> T) -> T {
        let mut inner = self.0.borrow_mut();
        let guard = EndOnPanic(&mut inner.state);
        let result = work(guard.0);
        // Costs nothing unless a panic unwinds.
        std::mem::forget(guard);
        result
    }

    /// Sends as much of a body as the peer has room for; see [`ConnectionState::poll_send`]. Also returns whether all
    /// of the stream was sent.
    pub fn poll_send(
        &self,
        key: usize,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        is_last: bool,
    ) -> (Poll<io::Result<usize>>, bool) {
        let inner = &mut *self.0.borrow_mut();
        let (write, guard) = (&mut inner.write, EndOnPanic(&mut inner.state));
        let flush = |state: &mut Http2State| {
            // What is wrong the driver finds out as well.
            let driver = state.driver().clone();
            let _written = poll_write(state, write, &mut Context::from_waker(&driver));
        };
        let sent = guard.0.poll_send(key, context, parts, is_last, flush);
        let is_sent = guard.0.is_sent(key);
        std::mem::forget(guard);
        (sent, is_sent)
    }

    /// Takes in what has come. Ready once the connection is over; it may still have to say why.
    pub fn poll_in(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll_in(context)
    }

    /// Writes what has gathered.
    pub fn poll_out(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_out(context)
    }

    /// Writes what has gathered, and says that there will be no more.
    pub fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        ready!(inner.poll_out(context))?;
        Pin::new(&mut inner.write).poll_shutdown(context)
    }

    /// Reads and forgets; gives the number of bytes, 0 at the end of the stream.
    pub fn poll_discard(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = [0; 4096];
        let mut space = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.0.borrow_mut().read).poll_read(context, &mut space))?;
        Poll::Ready(Ok(space.filled().len()))
    }

    /// The connection is of no further use; the peer gets the reason.
    pub fn fail(&self, code: Code) {
        self.0.borrow_mut().fail(code);
    }

    /// Nothing comes any more: wakes everything that waits.
    pub fn lose(&self) {
        self.0.borrow_mut().lose();
    }
}

impl Inner {
    fn poll_in(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.state.begin_turn(context.waker());
        while !self.state.is_over() {
            match self.state.take_frames(self.inbox.bytes()) {
                Ok(count) => self.inbox.consume(count),
                Err(code) => {
                    self.fail(code);
                    break;
                }
            }
            // Who does not read what it asks for gets nothing more done.
            if self.state.pending_out() > FULL {
                match self.poll_out(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => break,
                    Poll::Pending if self.state.exceeds_control_limit() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            let buffers = &self.runtime.buffers;
            match self.inbox.poll_fill(&mut self.read, context, buffers, MAX_READ) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) if count > 0 => {
                    if count >= crate::buffer::BUFFER_BYTES {
                        self.inbox.enlarge(buffers);
                    }
                }
                Poll::Ready(_) => break,
            }
        }
        self.lose();
        Poll::Ready(())
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = ready!(poll_write(&mut self.state, &mut self.write, context));
        if written.is_err() {
            self.forget_inbox();
        }
        Poll::Ready(written)
    }

    fn fail(&mut self, code: Code) {
        if self.state.fail(code) {
            tracing::debug!(?code, side = ?self.state.side(), "an HTTP/2 connection has failed");
        }
        self.forget_inbox();
    }

    fn lose(&mut self) {
        self.state.lose();
        self.forget_inbox();
    }

    fn forget_inbox(&mut self) {
        self.inbox.consume(self.inbox.bytes().len());
        self.inbox.release(&self.runtime.buffers);
    }
}

/// Writes what has gathered as far as it can be.
fn poll_write(
    state: &mut Http2State,
    write: &mut SocketWrite,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while state.pending_out() > 0 {
        match ready!(Pin::new(&mut *write).poll_write(context, state.unwritten())) {
            Ok(count) if count > 0 => state.note_written(count),
            failed => {
                state.lose();
                let error = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                return Poll::Ready(Err(error));
            }
        }
    }
    state.end_writing();
    Poll::Ready(Ok(()))
}
