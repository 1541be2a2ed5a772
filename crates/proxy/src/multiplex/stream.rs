//! One stream of a connection of HTTP/2 or HTTP/3, with a client or with an upstream. Its bodies are read and written
//! like a connection's bytes; heads and trailers are its own.
//!
//! One task uses a stream at a time, so both directions wake the same one.

use super::event::{BodyFrame, StreamEvent};
use super::fields;
use crate::h2::stream as http2;
use crate::h3::stream as http3;
use crate::timer::Timer;
use bytes::{Buf, Bytes};
use http::{Response, StatusCode};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use weir_http2::RequestHead;
use weir_http2::fields::trailer_lines;

/// A stream.
pub struct Stream(RefCell<State>);

struct State {
    ends: StreamHalves,
    /// The unread rest of the last piece of data.
    unread: Bytes,
    /// The trailers that came, as header lines.
    trailers: Vec<u8>,
    /// The next write that takes all of its bytes is the last.
    ends_with_write: bool,
    /// When no call waits for the answer any more.
    deadline: Option<Timer>,
    is_late: bool,
}

/// Both directions of a stream, by the protocol that carries it.
pub enum StreamHalves {
    /// HTTP/2.
    Http2(http2::StreamHalves),
    /// HTTP/3.
    Http3(Box<http3::StreamHalves>),
    /// Those of no stream any more.
    None,
}

/// Does the same with either kind of stream.
macro_rules! each {
    ($ends:expr, $it:ident => $work:expr, $none:expr) => {
        match $ends {
            StreamHalves::Http2($it) => $work,
            StreamHalves::Http3($it) => $work,
            StreamHalves::None => $none,
        }
    };
}

impl Default for Stream {
    /// No stream yet.
    fn default() -> Self {
        Self(RefCell::new(State::new(StreamHalves::None, None)))
    }
}

impl Stream {
    /// Begins another stream, in the place of one that is over, if nothing else holds that.
    pub fn begin(place: &mut Rc<Self>, ends: StreamHalves, deadline: Option<Timer>) {
        let state = State::new(ends, deadline);
        match Rc::get_mut(place) {
            Some(stream) => *stream.0.get_mut() = state,
            None => *place = Rc::new(Self(RefCell::new(state))),
        }
    }

    /// Lets go of a stream; its place is kept for another, if nothing else holds it.
    pub fn end_use(place: &mut Rc<Self>) -> bool {
        let Some(stream) = Rc::get_mut(place) else {
            return false;
        };
        *stream.0.get_mut() = State::new(StreamHalves::None, None);
        true
    }

    /// Sends a request's head; `is_whole`: there is no body.
    pub fn send_request(&self, request: RequestHead<'_>, is_whole: bool) -> io::Result<()> {
        match &mut self.0.borrow_mut().ends {
            StreamHalves::Http2(ends) => ends.send_request(request, is_whole),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Waits for the next head from an upstream.
    pub fn poll_head(&self, context: &mut Context<'_>) -> Poll<io::Result<StreamEvent>> {
        match &mut self.0.borrow_mut().ends {
            StreamHalves::Http2(ends) => ends.poll_head(context),
            _ => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// No further call goes on the connection of a stream to an upstream.
    pub fn close_connection(&self) {
        if let StreamHalves::Http2(ends) = &self.0.borrow().ends {
            ends.close_connection();
        }
    }

    /// Sends an interim response's head to a client.
    pub fn send_interim(&self, status: u16, lines: &[u8]) -> io::Result<()> {
        match &mut self.0.borrow_mut().ends {
            StreamHalves::Http2(ends) => ends.send_interim(status, lines),
            StreamHalves::Http3(ends) => ends.send_interim(head(status, lines)?),
            StreamHalves::None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends the final response's head to a client; `is_whole`: nothing follows it.
    pub fn send_head(&self, status: u16, lines: &[u8], is_whole: bool) -> io::Result<()> {
        match &mut self.0.borrow_mut().ends {
            StreamHalves::Http2(ends) => ends.send_head(status, lines, is_whole),
            StreamHalves::Http3(ends) => ends.send_head(head(status, lines)?, is_whole),
            StreamHalves::None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Makes the next write the last: once it is taken whole, the direction has ended.
    pub fn end_with_next_write(&self) {
        self.0.borrow_mut().ends_with_write = true;
    }

    /// Ends what is sent, with trailers if there are any.
    pub fn end(&self, trailers: &[u8]) -> io::Result<()> {
        match &mut self.0.borrow_mut().ends {
            StreamHalves::Http2(ends) => ends.end(trailers),
            StreamHalves::Http3(ends) => ends.end((!trailers.is_empty()).then(|| fields::to_map(trailers).0)),
            StreamHalves::None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Whether all of the answer, or of the request, has been given to the connection.
    pub fn is_ended(&self) -> bool {
        each!(&self.0.borrow().ends, ends => ends.is_ended(), true)
    }

    /// Whether no head has been sent yet.
    pub fn is_unanswered(&self) -> bool {
        each!(&self.0.borrow().ends, ends => ends.is_unanswered(), false)
    }

    /// Whether all that comes has been read, trailers and all, or is known to be nothing.
    pub fn is_read(&self) -> bool {
        let state = self.0.borrow();
        state.unread.is_empty()
            && state.trailers.is_empty()
            && each!(&state.ends, ends => ends.is_read(), true)
    }

    /// A copy of the trailers that came, as header lines. They are there once the end of the body was read.
    pub fn trailers(&self) -> Vec<u8> {
        self.0.borrow().trailers.clone()
    }

    /// The trailers that came, as header lines, which then are there no more.
    pub fn take_trailers(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().trailers)
    }

    /// Ends the stream both ways: the peer must not take what it got for the whole.
    pub fn reset(&self) {
        each!(&mut self.0.borrow_mut().ends, ends => ends.reset(), ());
    }

    /// Ready once the peer has given the stream up, or the time for it is over.
    pub fn poll_closed(&self, context: &mut Context<'_>) -> Poll<()> {
        let state = &mut *self.0.borrow_mut();
        if each!(&mut state.ends, ends => ends.poll_reset(context), Poll::Ready(())).is_ready() {
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

    /// Ready once nothing is left to be done for what was sent: the connection sees to the rest, or the peer has it.
    pub fn poll_finished(&self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.0.borrow_mut().ends {
            // The connection does not end before its streams have.
            StreamHalves::Http2(_) | StreamHalves::None => Poll::Ready(()),
            StreamHalves::Http3(ends) => ends.poll_finished(context),
        }
    }

    /// Ready when there is data to read, or its end.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_more(context).map_ok(|_| ())
    }

    /// Reads data; nothing at its end. The peer may send more as far as it has been read.
    pub fn poll_read(&self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.0.borrow_mut();
        if state.unread.is_empty()
            && let StreamHalves::Http2(ends) = &mut state.ends
            && ends.read_small(space).is_some()
        {
            return Poll::Ready(Ok(()));
        }
        if !ready!(state.poll_more(context))? {
            return Poll::Ready(Ok(()));
        }
        let count = state.unread.len().min(space.remaining());
        space.put_slice(&state.unread[..count]);
        state.unread.advance(count);
        each!(&mut state.ends, ends => ends.note_read(count), ());
        Poll::Ready(Ok(()))
    }

    /// Writes as much as the peer has room for. What was not written is tried again with the same bytes.
    pub fn poll_write(&self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let state = &mut *self.0.borrow_mut();
        each!(
            &mut state.ends,
            ends => ends.poll_write(context, parts, state.ends_with_write),
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        )
    }
}

impl State {
    fn new(ends: StreamHalves, deadline: Option<Timer>) -> Self {
        Self {
            ends,
            unread: Bytes::new(),
            trailers: Vec::new(),
            ends_with_write: false,
            deadline,
            is_late: false,
        }
    }

    /// Waits for data; whether there is some, and not its end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.unread.is_empty() {
            if each!(&self.ends, ends => ends.is_over(), true) {
                return Poll::Ready(Ok(false));
            }
            let piece = each!(
                &mut self.ends,
                ends => ends.poll_piece(context),
                Poll::Ready(Ok(BodyFrame::End(None)))
            );
            match ready!(piece)? {
                BodyFrame::Data(data) => self.unread = data,
                BodyFrame::End(None) => {}
                BodyFrame::End(Some(trailers)) => self.trailers = trailer_lines(fields::of_map(&trailers)),
                BodyFrame::Trailers(lines) => self.trailers = lines,
            }
        }
        Poll::Ready(Ok(true))
    }
}

fn head(status: u16, lines: &[u8]) -> io::Result<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).map_err(|_| io::ErrorKind::InvalidData)?;
    *response.headers_mut() = fields::to_map(lines).0;
    Ok(response)
}
