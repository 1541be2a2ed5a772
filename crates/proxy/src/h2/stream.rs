//! One stream of an HTTP/2 connection, with a client or with an upstream. Its bodies are read and written like a
//! connection's bytes; heads and trailers are its own.
//!
//! One task uses a stream at a time, so both directions wake the same one.

use super::fields;
use super::pool::Lease;
use crate::timer::Timer;
use bytes::{Buf, Bytes};
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Response, StatusCode, response};
use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// A stream.
pub struct Stream(RefCell<State>);

struct State {
    incoming: Incoming,
    outgoing: Outgoing,
    /// What was not read yet of the last piece of data.
    unread: Bytes,
    /// The trailers that came, as header lines.
    trailers: Vec<u8>,
    /// The next write that takes all of its bytes is the last.
    ends: bool,
    /// When nobody waits for the answer any more.
    deadline: Option<Timer>,
    is_late: bool,
    /// Counts among those of an upstream's connection.
    lease: Option<Lease>,
}

enum Incoming {
    /// Nothing was asked yet.
    Nothing,
    /// An upstream's head is to come.
    Head(ResponseFuture),
    Body(RecvStream),
    Over,
}

enum Outgoing {
    /// The request to an upstream is to be made.
    Request(SendRequest<Bytes>),
    /// The answer to a client is to be made.
    Answer(SendResponse<Bytes>),
    Body(SendStream<Bytes>),
    Over,
}

/// A head from an upstream.
pub enum Came {
    Interim(response::Parts),
    /// The final one, and whether nothing follows it.
    Final(response::Parts, bool),
}

impl Stream {
    fn new(incoming: Incoming, outgoing: Outgoing, lease: Option<Lease>) -> Self {
        Self(RefCell::new(State {
            incoming,
            outgoing,
            unread: Bytes::new(),
            trailers: Vec::new(),
            ends: false,
            deadline: None,
            is_late: false,
            lease,
        }))
    }

    /// A stream that a client has opened.
    pub fn from_client(body: RecvStream, answer: SendResponse<Bytes>, deadline: Option<Timer>) -> Self {
        let stream = Self::new(Incoming::Body(body), Outgoing::Answer(answer), None);
        stream.0.borrow_mut().deadline = deadline;
        stream
    }

    /// A stream to an upstream on which nothing was sent yet.
    pub fn to_upstream(sender: SendRequest<Bytes>, lease: Lease) -> Self {
        Self::new(Incoming::Nothing, Outgoing::Request(sender), Some(lease))
    }

    /// Sends a request's head; `is_whole`: there is no body.
    pub fn send_request(&self, request: http::Request<()>, is_whole: bool) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        let Outgoing::Request(sender) = &mut state.outgoing else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (head, body) = sender.send_request(request, is_whole).map_err(error_of)?;
        state.incoming = Incoming::Head(head);
        state.outgoing = match is_whole {
            true => Outgoing::Over,
            false => Outgoing::Body(body),
        };
        Ok(())
    }

    /// Waits for the next head from an upstream.
    pub fn poll_head(&self, context: &mut Context<'_>) -> Poll<io::Result<Came>> {
        let state = &mut *self.0.borrow_mut();
        let Incoming::Head(head) = &mut state.incoming else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Poll::Ready(Some(interim)) = head.poll_informational(context) {
            let (parts, ()) = interim.map_err(error_of)?.into_parts();
            return Poll::Ready(Ok(Came::Interim(parts)));
        }
        let (parts, body) = ready!(Pin::new(head).poll(context))
            .map_err(error_of)?
            .into_parts();
        let is_whole = body.is_end_stream();
        state.incoming = Incoming::Body(body);
        Poll::Ready(Ok(Came::Final(parts, is_whole)))
    }

    /// Sends an interim response's head to a client.
    pub fn send_interim(&self, status: u16, lines: &[u8]) -> io::Result<()> {
        match &mut self.0.borrow_mut().outgoing {
            Outgoing::Answer(answer) => answer.send_informational(head(status, lines)?).map_err(error_of),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends the final response's head to a client; `is_whole`: nothing follows it.
    pub fn send_head(&self, status: u16, lines: &[u8], is_whole: bool) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        let Outgoing::Answer(answer) = &mut state.outgoing else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let body = answer
            .send_response(head(status, lines)?, is_whole)
            .map_err(error_of)?;
        state.outgoing = match is_whole {
            true => Outgoing::Over,
            false => Outgoing::Body(body),
        };
        Ok(())
    }

    /// What is written next is the last: once it is taken whole, the direction has ended.
    pub fn end_with_next_write(&self) {
        self.0.borrow_mut().ends = true;
    }

    /// Ends what is sent, with trailers where there are some.
    pub fn end(&self, trailers: &[u8]) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        match std::mem::replace(&mut state.outgoing, Outgoing::Over) {
            Outgoing::Body(mut body) if trailers.is_empty() => {
                body.send_data(Bytes::new(), true).map_err(error_of)
            }
            Outgoing::Body(mut body) => body.send_trailers(fields::to_map(trailers).0).map_err(error_of),
            Outgoing::Over => Ok(()),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Whether all of the answer, or of the request, has been given to the connection.
    pub fn is_ended(&self) -> bool {
        matches!(self.0.borrow().outgoing, Outgoing::Over)
    }

    /// Whether no head has been sent yet.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.0.borrow().outgoing, Outgoing::Answer(_))
    }

    /// Whether all that comes has been read, trailers and all, or is known to be nothing.
    pub fn is_read(&self) -> bool {
        let state = self.0.borrow();
        state.unread.is_empty()
            && state.trailers.is_empty()
            && match &state.incoming {
                Incoming::Body(body) => body.is_end_stream(),
                Incoming::Over => true,
                _ => false,
            }
    }

    /// The trailers that came, as header lines. They are there once the end of the body was read.
    pub fn take_trailers(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().trailers)
    }

    /// No further call goes on the stream's connection.
    pub fn close_connection(&self) {
        if let Some(lease) = &self.0.borrow().lease {
            lease.close();
        }
    }

    /// Ends the stream both ways.
    pub fn reset(&self, reason: Reason) {
        let state = &mut *self.0.borrow_mut();
        match std::mem::replace(&mut state.outgoing, Outgoing::Over) {
            Outgoing::Answer(mut answer) => answer.send_reset(reason),
            Outgoing::Body(mut body) => body.send_reset(reason),
            Outgoing::Request(_) | Outgoing::Over => {}
        }
    }

    /// Ready once the peer has given the stream up, or the time for it is over.
    pub fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        let state = &mut *self.0.borrow_mut();
        let reset = match &mut state.outgoing {
            Outgoing::Answer(answer) => answer.poll_reset(context),
            Outgoing::Body(body) => body.poll_reset(context),
            Outgoing::Request(_) | Outgoing::Over => Poll::Pending,
        };
        if reset.is_ready() {
            return Poll::Ready(());
        }
        if let Some(deadline) = &mut state.deadline {
            ready!(deadline.poll_expired(context));
            state.is_late = true;
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Whether it was given up because its time was over.
    pub fn is_late(&self) -> bool {
        self.0.borrow().is_late
    }

    /// Ready when there is data to read, or its end.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_more(context).map_ok(|_| ())
    }

    /// Reads data; nothing at its end. The peer may send more as far as it has been read.
    pub fn poll_read(&self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.0.borrow_mut();
        if !ready!(state.poll_more(context))? {
            return Poll::Ready(Ok(()));
        }
        let count = state.unread.len().min(space.remaining());
        space.put_slice(&state.unread[..count]);
        state.unread.advance(count);
        if let Incoming::Body(body) = &mut state.incoming {
            // It fails only for a stream that has ended, of which nobody wants more.
            let _is_released = body.flow_control().release_capacity(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Writes as much as the peer has room for.
    pub fn poll_write(&self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let state = &mut *self.0.borrow_mut();
        let Outgoing::Body(body) = &mut state.outgoing else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let total = parts.iter().map(|part| part.len()).sum();
        if body.capacity() < total {
            body.reserve_capacity(total);
        }
        let mut room = body.capacity();
        if room == 0 {
            room = match ready!(body.poll_capacity(context)) {
                Some(room) => room.map_err(error_of)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
        }
        let count = total.min(room);
        let is_last = state.ends && count == total;
        body.send_data(gather(parts, count), is_last).map_err(error_of)?;
        if is_last {
            state.outgoing = Outgoing::Over;
        }
        Poll::Ready(Ok(count))
    }
}

impl State {
    /// Waits for data; whether there is some, and not its end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.unread.is_empty() {
            let Incoming::Body(body) = &mut self.incoming else {
                return Poll::Ready(Ok(false));
            };
            match ready!(body.poll_data(context)) {
                Some(data) => self.unread = data.map_err(error_of)?,
                None => {
                    if let Some(trailers) = ready!(body.poll_trailers(context)).map_err(error_of)? {
                        self.trailers = fields::trailer_lines(&trailers);
                    }
                    self.incoming = Incoming::Over;
                }
            }
        }
        Poll::Ready(Ok(true))
    }
}

/// The first bytes of several parts.
fn gather(parts: &[IoSlice<'_>], count: usize) -> Bytes {
    if let [part] = parts {
        return Bytes::copy_from_slice(&part[..count]);
    }
    let mut bytes = Vec::with_capacity(count);
    for part in parts {
        let left = count - bytes.len();
        bytes.extend_from_slice(&part[..left.min(part.len())]);
    }
    bytes.into()
}

fn head(status: u16, lines: &[u8]) -> io::Result<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).map_err(|_| io::ErrorKind::InvalidData)?;
    *response.version_mut() = http::Version::HTTP_2;
    *response.headers_mut() = fields::to_map(lines).0;
    Ok(response)
}

/// What an error means for a call. `ConnectionRefused`: the peer has not looked at the request.
pub fn error_of(error: h2::Error) -> io::Error {
    let is_unseen =
        error.reason() == Some(Reason::REFUSED_STREAM) || (error.is_go_away() && error.is_remote());
    let kind = match &error {
        _ if is_unseen => io::ErrorKind::ConnectionRefused,
        _ if error.is_io() => io::ErrorKind::BrokenPipe,
        _ if error.is_reset() => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}
