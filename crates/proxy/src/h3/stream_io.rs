//! The bytes of a stream: what quinn reads and writes, with what waits to be written.

use super::field_section::{self, Kind};
use super::frames::{FrameRead, Frames, data_prefix, payload};
use bytes::{Buf, Bytes};
use h3::error::Code;
use quinn::{ConnectionError, ReadError, VarInt, WriteError};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

/// Most bytes that are read at once.
const MAX_READ: usize = 64 * 1024;
/// Most bytes that go into one frame.
const MAX_FRAME: usize = 256 * 1024;

/// An error code as QUIC carries it.
pub fn code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or_default()
}

/// Whether the peer wants no more of a stream, or has all of it.
enum StreamClosed {
    Unasked,
    Awaited(Pin<Box<dyn Future<Output = ()>>>),
    Seen,
}

/// The sending side of a stream.
pub struct Sending {
    stream: quinn::SendStream,
    /// Heads, and what else waits to be written.
    queue: VecDeque<Bytes>,
    /// Bytes of the frame that is being written, and how many of them are.
    frame: Option<(usize, usize)>,
    /// The stream ends once all is written.
    ends: bool,
    is_over: bool,
    gone: StreamClosed,
}

impl Sending {
    /// Of this stream, on which nothing was sent.
    pub fn new(stream: quinn::SendStream) -> Self {
        Self {
            stream,
            queue: VecDeque::new(),
            frame: None,
            ends: false,
            is_over: false,
            gone: StreamClosed::Unasked,
        }
    }

    /// The stream's number.
    pub fn id(&self) -> u64 {
        self.stream.id().into()
    }

    /// Has these bytes written before anything else that comes.
    pub fn push(&mut self, bytes: Bytes) {
        self.queue.push_back(bytes);
    }

    /// Nothing else will come.
    pub fn end(&mut self) {
        self.ends = true;
    }

    /// Nothing else comes, and the peer must not take what it got for the whole.
    pub fn reset(&mut self, reason: VarInt) {
        self.queue.clear();
        self.is_over = true;
        // Else it has ended already.
        let _is_reset = self.stream.reset(reason);
    }

    /// Writes what waits, as far as the peer has room for it.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(bytes) = self.queue.front_mut() {
            while bytes.has_remaining() {
                let written =
                    ready!(Pin::new(&mut self.stream).poll_write(context, bytes)).map_err(write_error)?;
                bytes.advance(written);
            }
            self.queue.pop_front();
        }
        if self.ends && self.frame.is_none() && !self.is_over {
            self.is_over = true;
            // Else the peer has stopped it, which is found out elsewhere.
            let _is_ended = self.stream.finish();
        }
        Poll::Ready(Ok(()))
    }

    /// Writes these bytes as a frame of data. What was not written is tried again with the same bytes.
    pub fn poll_data(&mut self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let total = parts.iter().map(|part| part.len()).sum::<usize>().min(MAX_FRAME);
        if total == 0 {
            return Poll::Ready(Ok(0));
        }
        let (length, mut written) = *self.frame.get_or_insert_with(|| {
            self.queue.push_back(data_prefix(total).into());
            (total, 0)
        });
        ready!(self.poll_flush(context))?;
        let mut before = 0;
        for part in parts {
            while written < length && written < before + part.len() {
                let end = part.len().min(length - before);
                let bytes = &part[written - before..end];
                let count = match Pin::new(&mut self.stream).poll_write(context, bytes) {
                    Poll::Ready(count) => count.map_err(write_error)?,
                    Poll::Pending => {
                        self.frame = Some((length, written));
                        return Poll::Pending;
                    }
                };
                written += count;
            }
            before += part.len();
        }
        self.frame = None;
        Poll::Ready(Ok(length))
    }

    /// Ready once the peer wants no more of it, or has all of it.
    pub fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let StreamClosed::Unasked = self.gone {
            self.gone = StreamClosed::Awaited(until_gone(&self.stream));
        }
        if let StreamClosed::Awaited(event) = &mut self.gone {
            ready!(event.as_mut().poll(context));
            self.gone = StreamClosed::Seen;
        }
        Poll::Ready(())
    }
}

impl Drop for Sending {
    /// Quinn would end the stream as if all had been said.
    fn drop(&mut self) {
        if !self.is_over {
            self.reset(code(Code::H3_INTERNAL_ERROR));
        }
    }
}

fn until_gone(stream: &quinn::SendStream) -> Pin<Box<dyn Future<Output = ()>>> {
    let stopped = stream.stopped();
    Box::pin(async move {
        // Both ways of ending are an end.
        let _how = stopped.await;
    })
}

/// The receiving side of a request's stream.
pub struct Receiving {
    stream: quinn::RecvStream,
    connection: quinn::Connection,
    frames: Frames,
    /// The bytes that were read and not taken apart yet.
    unread: Bytes,
    /// The end has come.
    is_over: bool,
    /// Which head comes next.
    head: Kind,
    /// Trailers have come; nothing may follow.
    is_closing: bool,
}

impl Receiving {
    /// Of this stream; a head may have `max_headers` bytes as it is sent.
    pub fn new(stream: quinn::RecvStream, connection: quinn::Connection, max_headers: usize) -> Self {
        Self {
            stream,
            connection,
            frames: Frames::new(max_headers),
            unread: Bytes::new(),
            is_over: false,
            head: Kind::Request,
            is_closing: false,
        }
    }

    /// The stream's number.
    pub fn id(&self) -> u64 {
        self.stream.id().into()
    }

    /// Whether it came before the handshake was over.
    pub fn is_early(&self) -> bool {
        self.stream.is_0rtt()
    }

    /// Nothing else that comes is wanted.
    pub fn stop(&mut self, reason: VarInt) {
        // Else it has ended already.
        let _is_stopped = self.stream.stop(reason);
    }

    /// Notes that the last of the heads has come.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// Waits for data or a head; `None` at the end.
    ///
    /// # Errors
    /// `ConnectionReset` when the client has given the stream up, `InvalidData` when what it sends makes no request.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<FrameRead>>> {
        loop {
            match self.frames.next(&mut self.unread) {
                Ok(Some(_)) if self.is_closing => {
                    return Poll::Ready(Err(self.fail(Code::H3_FRAME_UNEXPECTED)));
                }
                Ok(Some(FrameRead::Headers(head))) => {
                    let kind = std::mem::replace(&mut self.head, Kind::Trailers);
                    let checked = field_section::check(payload(&head).unwrap_or_default(), kind);
                    return Poll::Ready(match checked {
                        Ok(()) => Ok(Some(FrameRead::Headers(head))),
                        Err(reason) => Err(self.fail(reason)),
                    });
                }
                Ok(Some(found)) => return Poll::Ready(Ok(Some(found))),
                Ok(None) if self.is_over => return Poll::Ready(Ok(None)),
                Ok(None) => {}
                Err(reason) => return Poll::Ready(Err(self.fail(reason))),
            }
            let read = ready!(pin!(self.stream.read_chunk(MAX_READ, true)).poll(context));
            match read {
                Ok(Some(chunk)) => self.unread = chunk.bytes,
                Ok(None) if self.frames.is_between() => self.is_over = true,
                Ok(None) => return Poll::Ready(Err(self.fail(Code::H3_FRAME_ERROR))),
                Err(error) => return Poll::Ready(Err(read_error(error))),
            }
        }
    }

    /// A peer that breaks the framing loses the connection (RFC 9114, sections 4.1 and 7.1); one that sends too much or what
    /// is no request (section 4.1.2) the stream.
    fn fail(&mut self, reason: Code) -> io::Error {
        match reason {
            Code::H3_EXCESSIVE_LOAD | Code::H3_MESSAGE_ERROR => self.stop(code(reason)),
            _ => self.connection.close(code(reason), b""),
        }
        io::Error::new(io::ErrorKind::InvalidData, format!("a stream ends with {reason}"))
    }
}

fn read_error(error: ReadError) -> io::Error {
    let kind = match &error {
        ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
        ReadError::ConnectionLost(lost) => kind_of(lost),
        _ => io::ErrorKind::NotConnected,
    };
    io::Error::new(kind, error)
}

fn write_error(error: WriteError) -> io::Error {
    let kind = match &error {
        WriteError::Stopped(_) => io::ErrorKind::ConnectionReset,
        WriteError::ConnectionLost(lost) => kind_of(lost),
        _ => io::ErrorKind::NotConnected,
    };
    io::Error::new(kind, error)
}

fn kind_of(error: &ConnectionError) -> io::ErrorKind {
    match error {
        ConnectionError::TimedOut => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::BrokenPipe,
    }
}
