//! Holding the head of a response back until filters have seen its body and its trailers.

use super::attempt::Attempt;
use super::pump::Watch;
use crate::h1::Framing;
use crate::h1::body::BodyCursor;
use crate::h1::chunked::Piece;
use crate::h1::response::ResponseHead;
use crate::serve::{After, Call, Stop};
use std::io;
use weir_plugin::{Hold, RefusalKind};

/// Why a response was not passed on whole.
pub enum Unrelayed {
    /// The client has a part of it, or is gone: its connection ends so.
    Cut(After),
    /// The client has nothing of it and can be told.
    Refused(Stop),
}

impl From<After> for Unrelayed {
    fn from(after: After) -> Self {
        Self::Cut(after)
    }
}

/// What has come of a response while its head was held back.
pub struct Held {
    /// The body after the filters' work.
    pub body: Vec<u8>,
    /// Where its rest begins; `None`: it is whole.
    pub rest: Option<BodyCursor>,
}

impl Call<'_> {
    /// The body of a response whose head is held back, after the filters' work, and the head as they leave it.
    ///
    /// # Errors
    /// The answer that the client gets instead.
    pub(super) async fn hold(
        &mut self,
        hold: Hold,
        head: &ResponseHead,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<Held, Unrelayed> {
        let held = self.gather(hold, head, attempt, watch).await;
        held.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionAborted => Unrelayed::Cut(After::Close),
            io::ErrorKind::TimedOut => Unrelayed::Refused(RefusalKind::UpstreamTimeout.into()),
            _ => Unrelayed::Refused(RefusalKind::UpstreamFailed.into()),
        })
    }

    async fn gather(
        &mut self,
        hold: Hold,
        head: &ResponseHead,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> io::Result<Held> {
        let (Hold::Whole(most) | Hold::Begin(most)) = hold;
        let mut cursor = BodyCursor::new(head.framing);
        let (mut body, mut read) = (Vec::new(), 0_usize);
        while !cursor.is_done() {
            let inbox = &mut attempt.connection.inbox;
            let piece = cursor.next(inbox.bytes());
            match piece.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                Piece::End => break,
                Piece::Skip(0) => match self.fill_answer(attempt, watch).await? {
                    0 if head.framing == Framing::UntilClose => break,
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => {}
                },
                Piece::Skip(count) => inbox.consume(count),
                Piece::Data(count) => {
                    read = read.saturating_add(count);
                    let filters = &mut self.exchange.response.body_filters;
                    filters.piece(&inbox.bytes()[..count], &mut body);
                    inbox.consume(count);
                    if read <= most {
                        continue;
                    }
                    if let Hold::Whole(_) = hold {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    self.filter_head();
                    let rest = Some(cursor);
                    return Ok(Held { body, rest });
                }
            }
        }
        let mut trailers = match attempt.connection.read.stream() {
            None => cursor.take_trailers(),
            Some(_) => self.await_trailers(attempt, &mut Vec::new(), watch).await?,
        };
        self.filter_trailers(&mut trailers);
        self.filter_head();
        self.exchange.response.body_filters.end(&mut body);
        Ok(Held { body, rest: None })
    }

    fn filter_head(&mut self) {
        let response = &mut self.exchange.response;
        response
            .body_filters
            .head(&mut response.status, &mut response.headers);
    }
}
