//! One stream of an HTTP/2 connection, as a call has it.

use super::connection::Connection;
use super::lease::Lease;
use crate::multiplex::event::{BodyFrame, StreamEvent};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use weir_http2::RequestHead;
use weir_http2::call::{BodyEvent, IncomingHead};
use weir_http2::frame::Code;

/// Both directions of a stream.
pub struct StreamHalves {
    connection: Rc<Connection>,
    /// Its place there; `None`: nothing was asked yet.
    key: Option<usize>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Counts among those of an upstream's connection.
    lease: Option<Lease>,
}

#[derive(PartialEq, Eq)]
enum Incoming {
    /// Nothing was asked yet.
    Nothing,
    /// An upstream's head is to come.
    Head,
    Body,
    Over,
}

#[derive(PartialEq, Eq)]
enum Outgoing {
    /// The request to an upstream is to be made.
    Request,
    /// The answer to a client is to be made.
    Answer,
    Body,
    Over,
}

impl StreamHalves {
    /// Those of a stream that a client has opened.
    pub fn from_client(connection: &Rc<Connection>, key: usize) -> Self {
        Self {
            connection: Rc::clone(connection),
            key: Some(key),
            incoming: Incoming::Body,
            outgoing: Outgoing::Answer,
            lease: None,
        }
    }

    /// Those of a stream to an upstream on which nothing was sent yet.
    pub fn to_upstream(connection: &Rc<Connection>, lease: Lease) -> Self {
        Self {
            connection: Rc::clone(connection),
            key: None,
            incoming: Incoming::Nothing,
            outgoing: Outgoing::Request,
            lease: Some(lease),
        }
    }

    /// Sends a request's head; `is_whole`: there is no body.
    pub fn send_request(&mut self, request: RequestHead<'_>, is_whole: bool) -> io::Result<()> {
        if self.outgoing != Outgoing::Request {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let key = self
            .connection
            .with(|state| state.send_request(request, is_whole))?;
        self.key = Some(key);
        self.incoming = Incoming::Head;
        self.outgoing = after(is_whole);
        Ok(())
    }

    /// Waits for the next head from an upstream.
    pub fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<StreamEvent>> {
        let (Some(key), Incoming::Head) = (self.key, &self.incoming) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let came = self.connection.with(|state| state.poll_head(key, context));
        Poll::Ready(match ready!(came) {
            Ok(IncomingHead::Interim(list)) => Ok(StreamEvent::Interim(list)),
            Ok(IncomingHead::Final(list, is_whole)) => {
                self.incoming = Incoming::Body;
                Ok(StreamEvent::Final(list, is_whole))
            }
            Err(fault) => Err(fault.error()),
        })
    }

    /// No further call goes on the stream's connection.
    pub fn close_connection(&self) {
        if let Some(lease) = &self.lease {
            lease.close();
        }
    }

    /// Sends an interim response's head to a client.
    pub fn send_interim(&mut self, status: u16, lines: &[u8]) -> io::Result<()> {
        match (&self.outgoing, self.key) {
            (Outgoing::Answer, Some(key)) => {
                (self.connection).with(|state| state.send_head(key, status, lines, false))
            }
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends the final response's head to a client; `is_whole`: nothing follows it.
    pub fn send_head(&mut self, status: u16, lines: &[u8], is_whole: bool) -> io::Result<()> {
        let (Outgoing::Answer, Some(key)) = (&self.outgoing, self.key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        self.connection
            .with(|state| state.send_head(key, status, lines, is_whole))?;
        self.outgoing = after(is_whole);
        Ok(())
    }

    /// Ends what is sent, with trailers if there are any.
    pub fn end(&mut self, trailers: &[u8]) -> io::Result<()> {
        match std::mem::replace(&mut self.outgoing, Outgoing::Over) {
            Outgoing::Over => return Ok(()),
            Outgoing::Body => {}
            Outgoing::Request | Outgoing::Answer => return Err(io::ErrorKind::NotConnected.into()),
        }
        let key = self.key.ok_or(io::ErrorKind::NotConnected)?;
        self.connection.with(|state| match trailers.is_empty() {
            true => state.send_end(key),
            false => state.send_trailers(key, trailers),
        })
    }

    /// Whether all of the answer, or of the request, has been given to the connection.
    pub fn is_ended(&self) -> bool {
        self.outgoing == Outgoing::Over
    }

    /// Whether no head has been sent yet.
    pub fn is_unanswered(&self) -> bool {
        self.outgoing == Outgoing::Answer
    }

    /// Whether the end has been read, or is known to come next.
    pub fn is_read(&self) -> bool {
        match (&self.incoming, self.key) {
            (Incoming::Over, _) => true,
            (Incoming::Body, Some(key)) => self.connection.with(|state| state.is_read(key)),
            _ => false,
        }
    }

    /// Whether there is nothing to be read, or no more of it.
    pub fn is_over(&self) -> bool {
        self.incoming != Incoming::Body
    }

    /// Ends the stream both ways.
    pub fn reset(&mut self) {
        let was = std::mem::replace(&mut self.outgoing, Outgoing::Over);
        if let (Outgoing::Answer | Outgoing::Body, Some(key)) = (was, self.key) {
            self.connection
                .with(|state| state.reset(key, Code::INTERNAL_ERROR));
        }
    }

    /// Whether the stream has ended before its time.
    pub fn is_faulty(&self) -> bool {
        let is_faulty = |key| self.connection.with(|state| state.is_faulty(key));
        self.key.is_some_and(is_faulty)
    }

    /// Ready once the peer has given the stream up.
    pub fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (Outgoing::Answer | Outgoing::Body, Some(key)) = (&self.outgoing, self.key) else {
            return Poll::Pending;
        };
        self.connection.with(|state| state.poll_fault(key, context))
    }

    /// Waits for the next piece.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<BodyFrame>> {
        let (Incoming::Body, Some(key)) = (&self.incoming, self.key) else {
            return Poll::Ready(Ok(BodyFrame::End(None)));
        };
        let piece = self.connection.with(|state| state.poll_piece(key, context));
        Poll::Ready(match ready!(piece) {
            Ok(BodyEvent::Data(data)) => Ok(BodyFrame::Data(data)),
            Ok(BodyEvent::End(trailers)) => {
                self.incoming = Incoming::Over;
                Ok(trailers.map_or(BodyFrame::End(None), BodyFrame::Trailers))
            }
            Err(fault) => Err(fault.error()),
        })
    }

    /// Reads all there is of the body, if that is little; returns the number of bytes.
    pub fn read_small(&mut self, space: &mut ReadBuf<'_>) -> Option<usize> {
        let key = self.key.filter(|_| self.incoming == Incoming::Body)?;
        self.connection
            .with(|state| state.read_small(key, space.remaining(), |bytes| space.put_slice(bytes)))
    }

    /// Lets the peer send as much more.
    pub fn note_read(&mut self, count: usize) {
        if let Some(key) = self.key {
            self.connection.with(|state| state.note_read(key, count));
        }
    }

    /// Writes as much as the peer has room for; `is_last`: nothing follows once all of it was taken.
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        is_last: bool,
    ) -> Poll<io::Result<usize>> {
        let (Outgoing::Body, Some(key)) = (&self.outgoing, self.key) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let (sent, is_sent) = self.connection.poll_send(key, context, parts, is_last);
        if is_sent {
            self.outgoing = Outgoing::Over;
        }
        sent
    }
}

impl Drop for StreamHalves {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.connection.with(|state| state.forget(key));
        }
    }
}

fn after(is_whole: bool) -> Outgoing {
    match is_whole {
        true => Outgoing::Over,
        false => Outgoing::Body,
    }
}
