//! A connection that is given up when its client takes too long, whatever it is doing.

use super::Bounds;
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Whether a call is being answered, shared by the connection and its calls.
#[derive(Debug, Default)]
pub struct CallTracker {
    count: AtomicU32,
    /// The task to wake when the last of them ends: from then on the connection waits for its client.
    waiting: Mutex<Option<Waker>>,
}

impl CallTracker {
    /// A call begins.
    pub fn begin_call(self: &Arc<Self>) -> CallGuard {
        self.count.fetch_add(1, Ordering::AcqRel);
        CallGuard(Arc::clone(self))
    }

    fn is_in_call(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Has `waker` woken when no call is being answered any more.
    fn wake_when_idle(&self, waker: &Waker) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }
}

/// A call that is being answered, until this is dropped.
#[derive(Debug)]
pub struct CallGuard(Arc<CallTracker>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        let calls = &*self.0;
        if calls.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiting = calls
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(waker) = waiting {
                waker.wake();
            }
        }
    }
}

impl CallGuard {
    /// The call goes on until the answer's body ends.
    pub fn until_end_of(self, body: Body) -> Body {
        match body.is_end_stream() {
            true => body,
            false => Body::new(TrackedBody { body, _in_call: self }),
        }
    }
}

/// The body of an answer, which is a part of the call.
struct TrackedBody {
    body: Body,
    _in_call: CallGuard,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What the connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Its next request.
    Request,
    /// The rest of a head.
    Head,
    /// Nothing: it waits for us.
    Nothing,
}

/// A stream whose reads fail when a client is idle or slow, and whose writes fail when it takes nothing.
pub struct TimeoutStream<S> {
    stream: S,
    tracker: Arc<CallTracker>,
    idle: Duration,
    head: Duration,
    stall: Duration,
    wait: Wait,
    /// When what is waited for is late.
    reading: Pin<Box<Sleep>>,
    /// When a write that cannot go on is late.
    writing: Pin<Box<Sleep>>,
    is_stalled: bool,
}

impl<S> TimeoutStream<S> {
    /// A stream within these bounds.
    pub fn new(stream: S, tracker: Arc<CallTracker>, bounds: &Bounds) -> Self {
        Self {
            stream,
            tracker,
            idle: bounds.idle,
            head: bounds.head,
            stall: bounds.stall,
            wait: Wait::Request,
            reading: Box::pin(tokio::time::sleep(bounds.idle)),
            writing: Box::pin(tokio::time::sleep(bounds.stall)),
            is_stalled: false,
        }
    }

    fn wait_for(&mut self, wait: Wait, timeout: Duration) {
        self.wait = wait;
        self.reading.as_mut().reset(Instant::now() + timeout);
    }

    /// Lets what could not be written in time fail.
    fn bounded<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_stalled = false;
            return written;
        }
        if !self.is_stalled {
            self.is_stalled = true;
            self.writing.as_mut().reset(Instant::now() + self.stall);
        }
        ready!(self.writing.as_mut().poll(context));
        Poll::Ready(Err(late()))
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client is too slow")
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let filled = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if this.tracker.is_in_call() {
            this.wait = Wait::Nothing;
            this.tracker.wake_when_idle(context.waker());
            // The last may have ended just now.
            if this.tracker.is_in_call() {
                return read;
            }
        }
        if this.wait == Wait::Nothing {
            this.wait_for(Wait::Request, this.idle);
        }
        if read.is_ready() {
            if this.wait == Wait::Request && buffer.filled().len() > filled {
                this.wait_for(Wait::Head, this.head);
            }
            // Of a head that comes byte by byte, each read is ready.
            if this.wait == Wait::Head && this.reading.is_elapsed() {
                return Poll::Ready(Err(late()));
            }
            return read;
        }
        ready!(this.reading.as_mut().poll(context));
        Poll::Ready(Err(late()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bounded(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
