//! Reading a request's body for those who want it here. A body that is only passed on goes through `forward::pump`.

use crate::forward::Background;
use crate::outcome::ShortCircuit;
use crate::request_body::BodyError;
use crate::serve::RequestContext;
use std::io;
use std::task::Poll;
use std::time::Instant;
use weir_http1::Framing;
use weir_http1::body::BodyCursor;
use weir_http1::chunked::ChunkEvent;
use weir_plugin::{MAX_VARIABLE_BODY, Refusal};

/// The answer to `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl RequestContext<'_> {
    /// Whether `Expect: 100-continue` is answered here and not by the upstream.
    pub fn answers_expect(&self) -> bool {
        self.settings().answer_expect
    }

    /// Asks a client that waits for it to send its body (`100 Continue`).
    pub async fn invite_body(&mut self) -> io::Result<()> {
        match self.client.stream() {
            Some(stream) => stream.send_interim(100, &[]),
            None => {
                self.write_to_client(CONTINUE, &[], &mut Background::Nothing)
                    .await
            }
        }
    }

    /// Reads the body for variables, if it is not too large for that.
    pub async fn read_body_for_variables(&mut self) -> Result<(), ShortCircuit> {
        let most = self.exchange.request.max_graphql_bytes.max(MAX_VARIABLE_BODY);
        match self.head.framing {
            Framing::Length(length) if length > most as u64 => Ok(()),
            _ => self.read_whole_body(most).await,
        }
    }

    /// Reads the body into the exchange, if it has at most `max_bytes`; otherwise what was read is sent on later.
    pub async fn read_whole_body(&mut self, max_bytes: usize) -> Result<(), ShortCircuit> {
        if self.exchange.request.body.is_some() || (self.body.cursor.is_done() && self.body.prefix.is_empty())
        {
            return Ok(());
        }
        if self.head.expects_continue {
            self.head.expects_continue = false;
            self.invite_body().await.map_err(|_| ShortCircuit::Gone)?;
        }
        // What another reader found too much may be little enough for this one.
        let mut whole = std::mem::take(&mut self.body.prefix);
        while !self.body.cursor.is_done() && whole.len() <= max_bytes {
            match self.read_body_piece(|data| whole.extend_from_slice(data)).await {
                Ok(()) => {}
                Err(BodyError::Gone) => return Err(ShortCircuit::Gone),
                Err(error) => {
                    // What is left of the body is not worth waiting for.
                    self.head.keep_alive = false;
                    return Err(Refusal::from(error).into());
                }
            }
        }
        if self.body.cursor.is_done() && whole.len() <= max_bytes {
            self.exchange.request.body = Some(whole);
        } else {
            self.body.prefix = whole;
        }
        Ok(())
    }

    /// Reads the body, or so many bytes of it, which a filter wants to see. All of it is still forwarded.
    pub async fn read_body_start(&mut self, max_bytes: usize) -> Result<(), ShortCircuit> {
        self.read_whole_body(max_bytes).await?;
        let start = &self.body.prefix;
        if self.exchange.request.body.is_none() && !start.is_empty() {
            self.exchange.request.body_start = Some(start[..start.len().min(max_bytes)].to_vec());
        }
        Ok(())
    }

    /// Hands the next piece of the body's data to `take`.
    pub async fn read_body_piece(&mut self, take: impl FnOnce(&[u8])) -> Result<(), BodyError> {
        loop {
            let piece = self
                .body
                .cursor
                .next(self.client.reader.inbox.bytes())
                .map_err(|_| BodyError::Invalid)?;
            match piece {
                ChunkEvent::End => return Ok(()),
                ChunkEvent::Skip(0) => {
                    self.fill_from_client().await?;
                    if self.body.cursor.is_done() {
                        return Ok(());
                    }
                }
                ChunkEvent::Skip(count) => {
                    self.client.reader.inbox.consume(count);
                    if self.body.cursor.is_done() {
                        return Ok(());
                    }
                }
                ChunkEvent::Data(count) => {
                    self.body.received += count as u64;
                    self.report.bytes_in += count as u64;
                    if self.body.received > self.body.limit {
                        return Err(BodyError::TooLarge);
                    }
                    take(&self.client.reader.inbox.bytes()[..count]);
                    self.client.reader.inbox.consume(count);
                    return Ok(());
                }
            }
        }
    }

    async fn fill_from_client(&mut self) -> Result<(), BodyError> {
        let (client, worker, body) = (&mut *self.client, self.worker, &mut self.body);
        let began = Instant::now();
        client.timer.set(began, body.pace.left());
        let mut has_waited = false;
        std::future::poll_fn(
            |context| match client.reader.poll_fill(context, &worker.runtime.buffers, 0) {
                Poll::Ready(Ok(0)) if client.reader.stream().is_some() => {
                    body.cursor = BodyCursor::Length(0);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(BodyError::Gone)),
                Poll::Ready(Ok(count)) => {
                    body.pace.note(count, has_waited.then_some(began));
                    Poll::Ready(Ok(()))
                }
                Poll::Pending => {
                    has_waited = true;
                    // A connection shows this when it is read; a stream's time may be over as well.
                    if let Some(stream) = client.reader.stream()
                        && stream.poll_closed(context).is_ready()
                    {
                        return Poll::Ready(Err(BodyError::Gone));
                    }
                    let expired = client.timer.poll_expired(context);
                    expired.map(|()| Err(BodyError::TimedOut))
                }
            },
        )
        .await
    }
}
