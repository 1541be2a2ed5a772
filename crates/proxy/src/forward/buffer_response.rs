//! Holding the head of a response back until filters have seen its body and its trailers.

use super::attempt::Attempt;
use super::error::RelayError;
use super::pump::Background;
use crate::outcome::ConnectionFate;
use crate::serve::RequestContext;
use std::io;
use weir_http1::Framing;
use weir_http1::body::BodyCursor;
use weir_http1::chunked::ChunkEvent;
use weir_http1::response::ResponseHead;
use weir_plugin::{BufferResponse, RefusalKind};

/// The part of a response that has come while its head was held back.
pub struct BufferedResponse {
    /// The body after the filters' work.
    pub body: Vec<u8>,
    /// The begin of its rest; `None`: it is whole.
    pub rest: Option<BodyCursor>,
}

impl RequestContext<'_> {
    /// The body of a response whose head is held back, after the filters' work, and the head as they leave it.
    ///
    /// # Errors
    /// The answer that the client gets instead.
    pub(super) async fn hold(
        &mut self,
        hold: BufferResponse,
        head: &ResponseHead,
        attempt: &mut Attempt,
        watch: &mut Background<'_>,
    ) -> Result<BufferedResponse, RelayError> {
        let held = self.gather(hold, head, attempt, watch).await;
        held.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionAborted => RelayError::Cut(ConnectionFate::Close),
            io::ErrorKind::TimedOut => RelayError::Refused(RefusalKind::UpstreamTimeout.into()),
            _ => RelayError::Refused(RefusalKind::UpstreamFailed.into()),
        })
    }

    async fn gather(
        &mut self,
        hold: BufferResponse,
        head: &ResponseHead,
        attempt: &mut Attempt,
        watch: &mut Background<'_>,
    ) -> io::Result<BufferedResponse> {
        let (BufferResponse::Whole(most) | BufferResponse::Prefix(most)) = hold;
        let mut cursor = BodyCursor::new(head.framing);
        let (mut body, mut read) = (Vec::new(), 0_usize);
        while !cursor.is_done() {
            let inbox = &mut attempt.connection.inbox;
            let piece = cursor.next(inbox.bytes());
            match piece.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                ChunkEvent::End => break,
                ChunkEvent::Skip(0) => match self.fill_answer(attempt, watch).await? {
                    0 if head.framing == Framing::UntilClose => break,
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => {}
                },
                ChunkEvent::Skip(count) => inbox.consume(count),
                ChunkEvent::Data(count) => {
                    read = read.saturating_add(count);
                    let filters = &mut self.exchange.response.body_filters;
                    filters.piece(&inbox.bytes()[..count], &mut body);
                    inbox.consume(count);
                    if read <= most {
                        continue;
                    }
                    if let BufferResponse::Whole(_) = hold {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    let response = &mut self.exchange.response;
                    let (status, headers) = (&mut response.status, &mut response.headers);
                    response.body_filters.head(status, headers);
                    let rest = Some(cursor);
                    return Ok(BufferedResponse { body, rest });
                }
            }
        }
        let mut trailers = match attempt.connection.read.stream() {
            None => cursor.take_trailers(),
            Some(_) => self.await_trailers(attempt, &mut Vec::new(), watch).await?,
        };
        self.filter_trailers(&mut trailers);
        let response = &mut self.exchange.response;
        let (status, headers) = (&mut response.status, &mut response.headers);
        response.body_filters.end_with_head(status, headers, &mut body);
        Ok(BufferedResponse { body, rest: None })
    }
}
