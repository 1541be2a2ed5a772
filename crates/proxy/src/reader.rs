//! Reading from a peer: a read half, and what was read from it ahead.

use crate::buffer::{Buffers, Inbox};
use crate::halves::ReadHalf;
use crate::multiplex::stream::Stream;
use crate::runtime::Runtime;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Reads from the client: the connection's read half, and bytes that were read and not used yet. While a
/// request body is sent on concurrently with the response, the reader is away with it; what is left then reads as
/// ended.
#[derive(Default)]
pub struct Reader {
    half: Option<ReadHalf>,
    pub inbox: Inbox,
}

impl Reader {
    /// A reader of this half, with bytes that were read before.
    pub fn new(half: ReadHalf, inbox: Inbox) -> Self {
        Self {
            half: Some(half),
            inbox,
        }
    }

    /// The half itself; `None` while it is away.
    pub fn into_half(self) -> Option<ReadHalf> {
        self.half
    }

    /// The stream of HTTP/2 or HTTP/3 that is read.
    #[inline]
    pub fn stream(&self) -> Option<&Stream> {
        self.half.as_ref().and_then(ReadHalf::stream)
    }

    /// The same, while the reader is lent.
    pub fn shared_stream(&self) -> Option<Rc<Stream>> {
        match &self.half {
            Some(ReadHalf::Stream(stream)) => Some(Rc::clone(stream)),
            _ => None,
        }
    }

    /// Reads once; 0 bytes at the end of the stream.
    pub fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        buffers: &Buffers,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        match &mut self.half {
            Some(half) => half.poll_fill(&mut self.inbox, context, buffers, limit),
            None => Poll::Ready(Ok(0)),
        }
    }

    /// Ready once the client has gone; reads ahead what a pipelining client sends meanwhile.
    pub fn poll_closed(&mut self, context: &mut Context<'_>, runtime: &Runtime) -> Poll<()> {
        if let Some(stream) = self.stream() {
            return stream.poll_closed(context);
        }
        if self.half.is_none() {
            // A request body that is still on its way reads from it.
            return Poll::Pending;
        }
        let limit = runtime.shared.limits.max_head_bytes;
        loop {
            if self.inbox.is_empty() {
                if !ready!(self.poll_readable(context)) {
                    return Poll::Ready(());
                }
            } else if !self.inbox.has_room(limit) {
                return Poll::Pending;
            }
            match ready!(self.poll_fill(context, &runtime.buffers, limit)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
    }

    /// Ready when there may be something to read; says whether the connection is still good.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<bool> {
        match &self.half {
            Some(half) => half.poll_readable(context).map(|ready| ready.is_ok()),
            None => Poll::Ready(false),
        }
    }
}
