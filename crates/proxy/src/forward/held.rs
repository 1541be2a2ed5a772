//! Holding the head of a response back until filters have seen all of its body and its trailers.

use super::attempt::Attempt;
use super::pump::Watch;
use crate::h1::Framing;
use crate::h1::body::BodyCursor;
use crate::h1::chunked::Piece;
use crate::h1::response::ResponseHead;
use crate::serve::{After, Call, Stop};
use std::io;
use weir_plugin::RefusalKind;

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

impl Call<'_> {
    /// The body of a response whose head is held back, after the filters' work, and the head as they leave it.
    ///
    /// # Errors
    /// The answer that the client gets instead.
    pub(super) async fn hold(
        &mut self,
        most: usize,
        head: &ResponseHead,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<u8>, Unrelayed> {
        let held = self.gather(most, head, attempt, watch).await;
        held.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionAborted => Unrelayed::Cut(After::Close),
            io::ErrorKind::TimedOut => Unrelayed::Refused(RefusalKind::UpstreamTimeout.into()),
            _ => Unrelayed::Refused(RefusalKind::UpstreamFailed.into()),
        })
    }

    async fn gather(
        &mut self,
        most: usize,
        head: &ResponseHead,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> io::Result<Vec<u8>> {
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
                    if read > most {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                }
            }
        }
        let mut trailers = match attempt.connection.read.stream() {
            None => cursor.take_trailers(),
            Some(_) => self.await_trailers(attempt, &mut Vec::new(), watch).await?,
        };
        self.filter_trailers(&mut trailers);
        let response = &mut self.exchange.response;
        response
            .body_filters
            .head(&mut response.status, &mut response.headers);
        response.body_filters.end(&mut body);
        Ok(body)
    }
}
