//! One stream of an HTTP/2 connection, as the `h2` crate has it.

use super::pool::Lease;
use crate::multiplex::stream::{Came, Piece};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Both directions of a stream.
pub struct Ends {
    incoming: Incoming,
    outgoing: Outgoing,
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

impl Ends {
    /// Those of a stream that a client has opened.
    pub fn from_client(body: RecvStream, answer: SendResponse<Bytes>) -> Self {
        Self {
            incoming: Incoming::Body(body),
            outgoing: Outgoing::Answer(answer),
            lease: None,
        }
    }

    /// Those of a stream to an upstream on which nothing was sent yet.
    pub fn to_upstream(sender: SendRequest<Bytes>, lease: Lease) -> Self {
        Self {
            incoming: Incoming::Nothing,
            outgoing: Outgoing::Request(sender),
            lease: Some(lease),
        }
    }

    /// Sends a request's head; `is_whole`: there is no body.
    pub fn send_request(&mut self, request: http::Request<()>, is_whole: bool) -> io::Result<()> {
        let Outgoing::Request(sender) = &mut self.outgoing else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (head, body) = sender.send_request(request, is_whole).map_err(error_of)?;
        self.incoming = Incoming::Head(head);
        self.outgoing = match is_whole {
            true => Outgoing::Over,
            false => Outgoing::Body(body),
        };
        Ok(())
    }

    /// Waits for the next head from an upstream.
    pub fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Came>> {
        let Incoming::Head(head) = &mut self.incoming else {
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
        self.incoming = Incoming::Body(body);
        Poll::Ready(Ok(Came::Final(parts, is_whole)))
    }

    /// No further call goes on the stream's connection.
    pub fn close_connection(&self) {
        if let Some(lease) = &self.lease {
            lease.close();
        }
    }

    /// Sends an interim response's head to a client.
    pub fn send_interim(&mut self, head: Response<()>) -> io::Result<()> {
        match &mut self.outgoing {
            Outgoing::Answer(answer) => answer.send_informational(head).map_err(error_of),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends the final response's head to a client; `is_whole`: nothing follows it.
    pub fn send_head(&mut self, head: Response<()>, is_whole: bool) -> io::Result<()> {
        let Outgoing::Answer(answer) = &mut self.outgoing else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let body = answer.send_response(head, is_whole).map_err(error_of)?;
        self.outgoing = match is_whole {
            true => Outgoing::Over,
            false => Outgoing::Body(body),
        };
        Ok(())
    }

    /// Ends what is sent, with trailers where there are some.
    pub fn end(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        match (std::mem::replace(&mut self.outgoing, Outgoing::Over), trailers) {
            (Outgoing::Body(mut body), None) => body.send_data(Bytes::new(), true).map_err(error_of),
            (Outgoing::Body(mut body), Some(trailers)) => body.send_trailers(trailers).map_err(error_of),
            (Outgoing::Over, _) => Ok(()),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Whether all of the answer, or of the request, has been given to the connection.
    pub fn is_ended(&self) -> bool {
        matches!(self.outgoing, Outgoing::Over)
    }

    /// Whether no head has been sent yet.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.outgoing, Outgoing::Answer(_))
    }

    /// Whether the end has been read, or is known to come next.
    pub fn is_read(&self) -> bool {
        match &self.incoming {
            Incoming::Body(body) => body.is_end_stream(),
            Incoming::Over => true,
            _ => false,
        }
    }

    /// Whether there is nothing to be read, or no more of it.
    pub fn is_over(&self) -> bool {
        !matches!(self.incoming, Incoming::Body(_))
    }

    /// Ends the stream both ways.
    pub fn reset(&mut self) {
        match std::mem::replace(&mut self.outgoing, Outgoing::Over) {
            Outgoing::Answer(mut answer) => answer.send_reset(Reason::INTERNAL_ERROR),
            Outgoing::Body(mut body) => body.send_reset(Reason::INTERNAL_ERROR),
            Outgoing::Request(_) | Outgoing::Over => {}
        }
    }

    /// Ready once the peer has given the stream up.
    pub fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let reset = match &mut self.outgoing {
            Outgoing::Answer(answer) => answer.poll_reset(context),
            Outgoing::Body(body) => body.poll_reset(context),
            Outgoing::Request(_) | Outgoing::Over => Poll::Pending,
        };
        reset.map(|_| ())
    }

    /// Waits for the next piece.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Piece>> {
        let Incoming::Body(body) = &mut self.incoming else {
            return Poll::Ready(Ok(Piece::End(None)));
        };
        if let Some(data) = ready!(body.poll_data(context)) {
            return Poll::Ready(data.map(Piece::Data).map_err(error_of));
        }
        let trailers = ready!(body.poll_trailers(context)).map_err(error_of)?;
        self.incoming = Incoming::Over;
        Poll::Ready(Ok(Piece::End(trailers)))
    }

    /// Lets the peer send as much more.
    pub fn note_read(&mut self, count: usize) {
        if let Incoming::Body(body) = &mut self.incoming {
            // It fails only for a stream that has ended, of which nobody wants more.
            let _is_released = body.flow_control().release_capacity(count);
        }
    }

    /// Writes as much as the peer has room for; `ends`: nothing follows once all of it was taken.
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        ends: bool,
    ) -> Poll<io::Result<usize>> {
        let Outgoing::Body(body) = &mut self.outgoing else {
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
        let is_last = ends && count == total;
        body.send_data(gather(parts, count), is_last).map_err(error_of)?;
        if is_last {
            self.outgoing = Outgoing::Over;
        }
        Poll::Ready(Ok(count))
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
