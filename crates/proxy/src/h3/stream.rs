//! One stream of an HTTP/3 connection: heads by the `h3` crate, data by `stream_io`.

use super::frames::FrameRead;
use super::quic::QuicStream;
use super::stream_io::code;
use crate::multiplex::event::BodyFrame;
use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};
use weir_http1::fields::parse_length;

/// Both directions of a stream.
pub struct StreamHalves {
    /// For heads.
    request: RequestStream<QuicStream, Bytes>,
    stream: QuicStream,
    /// The rest of a body of stated length.
    stated: Option<u64>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Why the stream is reset, if the client is to blame.
    fault: Option<Code>,
}

#[derive(PartialEq, Eq)]
enum Incoming {
    Body,
    /// Trailers are there, or have begun to come.
    Trailers,
    Over,
    /// The bytes make no request, or the client has given it up.
    Failed,
}

#[derive(PartialEq, Eq)]
enum Outgoing {
    /// No final head was sent yet.
    Answer,
    Body,
    Over,
}

impl StreamHalves {
    /// Those of a stream whose request has these fields.
    pub fn new(request: RequestStream<QuicStream, Bytes>, stream: QuicStream, fields: &HeaderMap) -> Self {
        // An invalid length is refused with the other fields.
        let stated = fields
            .get(CONTENT_LENGTH)
            .and_then(|it| parse_length(it.as_bytes()));
        Self {
            request,
            stream,
            stated,
            incoming: Incoming::Body,
            outgoing: Outgoing::Answer,
            fault: None,
        }
    }

    /// Sends an interim response's head.
    pub fn send_interim(&mut self, head: Response<()>) -> io::Result<()> {
        match self.outgoing {
            Outgoing::Answer => self.write_head(head),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends the final response's head; `is_whole`: nothing follows it.
    pub fn send_head(&mut self, head: Response<()>, is_whole: bool) -> io::Result<()> {
        if self.outgoing != Outgoing::Answer {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if is_whole {
            self.stream.sending.borrow_mut().end();
        }
        self.outgoing = match is_whole {
            true => Outgoing::Over,
            false => Outgoing::Body,
        };
        self.write_head(head)
    }

    /// Queues a head. What cannot go at once goes with whatever the call waits for next.
    fn write_head(&mut self, head: Response<()>) -> io::Result<()> {
        let mut context = Context::from_waker(Waker::noop());
        at_once(self.request.send_response(head), &mut context)?;
        match self.stream.sending.borrow_mut().poll_flush(&mut context) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// Ends what is sent, with trailers if there are any.
    pub fn end(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        match std::mem::replace(&mut self.outgoing, Outgoing::Over) {
            Outgoing::Over => return Ok(()),
            Outgoing::Answer => return Err(io::ErrorKind::NotConnected.into()),
            Outgoing::Body => {}
        }
        let mut context = Context::from_waker(Waker::noop());
        if let Some(trailers) = trailers {
            at_once(self.request.send_trailers(trailers), &mut context)?;
        }
        let sending = &mut *self.stream.sending.borrow_mut();
        sending.end();
        match sending.poll_flush(&mut context) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// Whether all of the answer has been given to the connection.
    pub fn is_ended(&self) -> bool {
        self.outgoing == Outgoing::Over
    }

    /// Whether no head has been sent yet.
    pub fn is_unanswered(&self) -> bool {
        self.outgoing == Outgoing::Answer
    }

    /// Whether the end has been read.
    pub fn is_read(&self) -> bool {
        self.is_over()
    }

    /// Whether there is no more to be read.
    pub fn is_over(&self) -> bool {
        self.incoming == Incoming::Over
    }

    /// Ends the stream both ways.
    pub fn reset(&mut self) {
        let reason = code(self.fault.unwrap_or(Code::H3_INTERNAL_ERROR));
        self.outgoing = Outgoing::Over;
        self.incoming = Incoming::Over;
        self.stream.sending.borrow_mut().reset(reason);
        self.stream.receiving.borrow_mut().stop(reason);
    }

    /// Ready once the client has given the stream up.
    pub fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let sending = &mut *self.stream.sending.borrow_mut();
        if let Poll::Ready(Err(_)) = sending.poll_flush(context) {
            return Poll::Ready(());
        }
        sending.poll_closed(context)
    }

    /// Ready once the client has all of the answer, or wants no more of it.
    pub fn poll_finished(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Whatever is still sent is not wanted (RFC 9114, section 4.1).
        if self.incoming != Incoming::Over {
            self.incoming = Incoming::Over;
            self.stream.receiving.borrow_mut().stop(code(Code::H3_NO_ERROR));
        }
        self.poll_reset(context)
    }

    /// Waits for the next piece.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<BodyFrame>> {
        if self.incoming == Incoming::Body {
            let found = ready!(self.stream.receiving.borrow_mut().poll_next(context));
            match found {
                Ok(Some(FrameRead::Data(data))) => return Poll::Ready(self.note_data(data)),
                Ok(Some(FrameRead::Headers(head))) => {
                    self.stream.receiving.borrow_mut().close();
                    self.stream.head.set(Some(head));
                    self.incoming = Incoming::Trailers;
                }
                Ok(None) => return Poll::Ready(self.note_end(None)),
                Err(error) => {
                    self.incoming = Incoming::Failed;
                    if error.kind() == io::ErrorKind::InvalidData {
                        self.fault = Some(Code::H3_MESSAGE_ERROR);
                    }
                    return Poll::Ready(Err(error));
                }
            }
        }
        match self.incoming {
            Incoming::Over => return Poll::Ready(Ok(BodyFrame::End(None))),
            Incoming::Failed => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            Incoming::Body | Incoming::Trailers => {}
        }
        let trailers = ready!(self.request.poll_recv_trailers(context));
        Poll::Ready(match trailers {
            Ok(trailers) => self.note_end(trailers),
            Err(error) => {
                self.incoming = Incoming::Failed;
                self.fault = Some(Code::H3_MESSAGE_ERROR);
                Err(error_of(error))
            }
        })
    }

    /// A body is as long as was stated (RFC 9114, section 4.1.2).
    fn note_data(&mut self, data: Bytes) -> io::Result<BodyFrame> {
        if let Some(stated) = &mut self.stated {
            match stated.checked_sub(data.len() as u64) {
                Some(left) => *stated = left,
                None => return Err(self.blame_client()),
            }
        }
        Ok(BodyFrame::Data(data))
    }

    fn note_end(&mut self, trailers: Option<HeaderMap>) -> io::Result<BodyFrame> {
        if self.stated.is_some_and(|left| left > 0) {
            return Err(self.blame_client());
        }
        self.incoming = Incoming::Over;
        Ok(BodyFrame::End(trailers))
    }

    fn blame_client(&mut self) -> io::Error {
        self.incoming = Incoming::Failed;
        self.fault = Some(Code::H3_MESSAGE_ERROR);
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the body does not have the stated length",
        )
    }

    /// Bytes that were read from quinn may come again by themselves.
    pub fn note_read(&mut self, _: usize) {}

    /// Writes as much as the client has room for; `ends`: nothing follows once all of it was taken.
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        ends: bool,
    ) -> Poll<io::Result<usize>> {
        if self.outgoing != Outgoing::Body {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let sending = &mut *self.stream.sending.borrow_mut();
        let count = ready!(sending.poll_data(context, parts))?;
        if ends && count == parts.iter().map(|part| part.len()).sum::<usize>() {
            self.outgoing = Outgoing::Over;
            sending.end();
            if let Poll::Ready(Err(error)) = sending.poll_flush(context) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(count))
    }
}

/// Runs work of the crate that only fills the queue, which is over at once.
fn at_once(work: impl Future<Output = Result<(), StreamError>>, context: &mut Context<'_>) -> io::Result<()> {
    match pin!(work).poll(context) {
        Poll::Ready(done) => done.map_err(error_of),
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn error_of(error: StreamError) -> io::Error {
    let kind = match &error {
        StreamError::RemoteTerminate { .. } => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}
