//! Sending a request body on while its response may already be coming.

use crate::body_rate::BodyRate;
use crate::buffer::BUFFER_BYTES;
use crate::client::Client;
use crate::halves::WriteHalf;
use crate::multiplex::stream::Stream;
use crate::outcome::ShortCircuit;
use crate::reader::Reader;
use crate::request_body::{BodyError, RequestBody};
use crate::timer::Timer;
use crate::worker::Worker;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use weir_http1::body::BodyCursor;
use weir_http1::chunked::{self, ChunkEvent};
use weir_plugin::Refusal;

/// The work that goes on, or the event to look out for, while a call waits for something else.
pub enum Background<'w> {
    /// Nothing.
    Nothing,
    /// Whether the client goes.
    Client(&'w mut Client),
    /// The request's body on its way to the upstream.
    Pump(&'w mut Pump),
}

impl Background<'_> {
    /// Ready when no client waits for the answer any more, or the request turns out to be bad.
    pub fn poll_cancelled(&mut self, context: &mut Context<'_>, worker: &Worker) -> Poll<ShortCircuit> {
        match self {
            Self::Nothing => Poll::Pending,
            Self::Client(client) => client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| ShortCircuit::Gone),
            Self::Pump(pump) => {
                pump.poll(context);
                let has_gone = |stream: &Rc<Stream>| stream.poll_closed(context).is_ready();
                if pump.client.as_ref().is_some_and(has_gone) {
                    return Poll::Ready(ShortCircuit::Gone);
                }
                let Some(pumped) = &mut pump.done else {
                    return Poll::Pending;
                };
                match pumped.result {
                    Err(PumpError::Client(BodyError::Gone)) => Poll::Ready(ShortCircuit::Gone),
                    Err(PumpError::Client(error)) => Poll::Ready(Refusal::from(error).into()),
                    Err(PumpError::Upstream | PumpError::Cut) => Poll::Pending,
                    Ok(()) => pumped
                        .reader
                        .poll_closed(context, &worker.runtime)
                        .map(|()| ShortCircuit::Gone),
                }
            }
        }
    }

    /// Whether a request body is still on its way.
    pub fn is_sending(&self) -> bool {
        matches!(self, Self::Pump(pump) if pump.done.is_none())
    }

    /// The answer has begun.
    pub fn note_answer(&self) {
        if let Self::Pump(pump) = self {
            pump.note_answer();
        }
    }

    /// Lets a body move on.
    pub fn poll_progress(&mut self, context: &mut Context<'_>) {
        if let Self::Pump(pump) = self {
            pump.poll(context);
        }
    }
}

/// Why a body was not sent whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PumpError {
    /// The client's fault.
    Client(BodyError),
    /// The upstream takes no more; it may have answered.
    Upstream,
    /// The call was over before the body was.
    Cut,
}

/// Signals of a call to a body on its way.
#[derive(Default)]
struct Signals {
    /// It goes no further.
    is_cut: Cell<bool>,
    /// The answer has begun: from then on both sides may send as slowly as they have something to say.
    is_answered: Cell<bool>,
}

/// A request body on its way.
pub struct Pump {
    sending: Pin<Box<dyn Future<Output = PumpResult>>>,
    signals: Rc<Signals>,
    /// In a place of its own: most calls have no pump, and leave room for one.
    done: Option<Box<PumpResult>>,
    /// The stream that the body comes on, which reports by itself that its client has gone.
    client: Option<Rc<Stream>>,
}

/// A body that was sent, or not, and what had been lent for it.
pub struct PumpResult {
    pub reader: Reader,
    pub body: RequestBody,
    pub write: WriteHalf,
    pub result: Result<(), PumpError>,
}

impl Pump {
    /// Starts sending `body`; `is_chunked` says how it is framed on the way.
    pub fn new(
        worker: &Rc<Worker>,
        reader: Reader,
        body: RequestBody,
        write: WriteHalf,
        is_chunked: bool,
        (write_timeout, rate): (Duration, Option<BodyRate>),
    ) -> Self {
        let client = reader.shared_stream();
        let signals = Rc::new(Signals::default());
        let mut sender = Sender {
            worker: Rc::clone(worker),
            reader,
            body,
            write,
            is_chunked,
            write_timeout,
            rate,
            signals: Rc::clone(&signals),
        };
        let knife = Rc::clone(&signals);
        let sending = Box::pin(async move {
            let result = {
                let mut sending = std::pin::pin!(sender.send());
                std::future::poll_fn(|context| match knife.is_cut.get() {
                    true => Poll::Ready(Err(PumpError::Cut)),
                    false => sending.as_mut().poll(context),
                })
                .await
            };
            PumpResult {
                reader: sender.reader,
                body: sender.body,
                write: sender.write,
                result,
            }
        });
        Self {
            sending,
            signals,
            done: None,
            client,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if self.done.is_none()
            && let Poll::Ready(pumped) = self.sending.as_mut().poll(context)
        {
            self.done = Some(Box::new(pumped));
        }
    }

    /// The answer has begun.
    pub fn note_answer(&self) {
        self.signals.is_answered.set(true);
    }

    /// The result. A body that is still on its way goes no further; what had been lent for it comes back.
    pub fn finish(mut self) -> Box<PumpResult> {
        if self.done.is_none() {
            self.signals.is_cut.set(true);
            self.poll(&mut Context::from_waker(Waker::noop()));
        }
        self.done
            .expect("invariant: a body that is cut is ready at its next poll")
    }
}

struct Sender {
    worker: Rc<Worker>,
    reader: Reader,
    body: RequestBody,
    write: WriteHalf,
    is_chunked: bool,
    write_timeout: Duration,
    /// The minimum rate of the body, if it has one.
    rate: Option<BodyRate>,
    signals: Rc<Signals>,
}

impl Sender {
    async fn send(&mut self) -> Result<(), PumpError> {
        let mut out = self.worker.runtime.buffers.acquire_output();
        let prefix = std::mem::take(&mut self.body.prefix);
        if !prefix.is_empty() {
            frame(self.is_chunked, &prefix, &mut out);
        }
        let result = self.send_rest(&mut out).await;
        self.worker.runtime.buffers.release_output(out);
        result
    }

    async fn send_rest(&mut self, out: &mut Vec<u8>) -> Result<(), PumpError> {
        let invalid = |_| PumpError::Client(BodyError::Invalid);
        let mut timer = Timer::new(Instant::now(), self.write_timeout);
        while !self.body.cursor.is_done() {
            match self
                .body
                .cursor
                .next(self.reader.inbox.bytes())
                .map_err(invalid)?
            {
                ChunkEvent::End => break,
                ChunkEvent::Skip(0) => {
                    self.flush(out, &mut timer).await?;
                    self.fill(&mut timer).await?;
                }
                ChunkEvent::Skip(count) => self.reader.inbox.consume(count),
                ChunkEvent::Data(count) => {
                    self.body.received += count as u64;
                    if self.body.received > self.body.limit {
                        return Err(PumpError::Client(BodyError::TooLarge));
                    }
                    if self.rate.is_some() {
                        self.send_at_rate(count, out, &mut timer).await?;
                        continue;
                    }
                    if self.is_chunked || count < 4096 {
                        let data = &self.reader.inbox.bytes()[..count];
                        frame(self.is_chunked, data, out);
                    } else {
                        self.flush(out, &mut timer).await?;
                        timer.set(Instant::now(), self.write_timeout);
                        let data = &self.reader.inbox.bytes()[..count];
                        write_all(&mut self.write, data, &mut timer, self.write_timeout)
                            .await
                            .map_err(upstream)?;
                    }
                    self.reader.inbox.consume(count);
                }
            }
        }
        let trailers = match self.reader.stream() {
            // They stay, for another try of a request without a body.
            Some(stream) => stream.trailers(),
            // Few servers that are sent chunks look behind them.
            None if self.is_chunked => Vec::new(),
            None => self.body.cursor.take_trailers(),
        };
        if self.is_chunked {
            chunked::write_last(&trailers, out);
        }
        self.flush(out, &mut timer).await?;
        match &self.write {
            WriteHalf::Stream(stream) => stream.end(&trailers).map_err(upstream),
            _ => Ok(()),
        }
    }

    /// Sends so many bytes in pieces, and waits after each.
    async fn send_at_rate(
        &mut self,
        count: usize,
        out: &mut Vec<u8>,
        timer: &mut Timer,
    ) -> Result<(), PumpError> {
        let mut left = count;
        while left > 0 {
            let piece = left.min(self.rate.as_ref().map_or(left, BodyRate::piece));
            frame(self.is_chunked, &self.reader.inbox.bytes()[..piece], out);
            self.reader.inbox.consume(piece);
            left -= piece;
            self.flush(out, timer).await?;
            if let Some(rate) = &mut self.rate {
                tokio::time::sleep(rate.pass(piece)).await;
            }
        }
        Ok(())
    }

    async fn flush(&mut self, out: &mut Vec<u8>, timer: &mut Timer) -> Result<(), PumpError> {
        if out.is_empty() {
            return Ok(());
        }
        timer.set(Instant::now(), self.write_timeout);
        let written = write_all(&mut self.write, out, timer, self.write_timeout).await;
        out.clear();
        written.map_err(upstream)
    }

    async fn fill(&mut self, timer: &mut Timer) -> Result<(), PumpError> {
        let began = Instant::now();
        timer.set(began, self.body.pace.left());
        if self.body.received >= BUFFER_BYTES as u64 && self.rate.is_none() {
            self.reader.inbox.enlarge(&self.worker.runtime.buffers);
        }
        let (reader, worker) = (&mut self.reader, &self.worker);
        let (cursor, pace) = (&mut self.body.cursor, &mut self.body.pace);
        let is_answered = &self.signals.is_answered;
        let mut has_waited = false;
        let read =
            std::future::poll_fn(
                |context| match reader.poll_fill(context, &worker.runtime.buffers, 0) {
                    Poll::Ready(Ok(0)) if reader.stream().is_some() => {
                        *cursor = BodyCursor::Length(0);
                        Poll::Ready(Ok(()))
                    }
                    Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(BodyError::Gone)),
                    Poll::Ready(Ok(count)) => {
                        pace.note(count, has_waited.then_some(began));
                        Poll::Ready(Ok(()))
                    }
                    Poll::Pending => {
                        has_waited = true;
                        if pace.has_rate() && is_answered.get() {
                            *pace = pace.without_rate();
                            timer.set(Instant::now(), pace.left());
                        }
                        timer.poll_expired(context).map(|()| Err(BodyError::TimedOut))
                    }
                },
            )
            .await;
        read.map_err(PumpError::Client)
    }
}

fn upstream(_: io::Error) -> PumpError {
    PumpError::Upstream
}

fn frame(is_chunked: bool, data: &[u8], out: &mut Vec<u8>) {
    if is_chunked {
        chunked::write_size_line(data.len(), out);
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    } else {
        out.extend_from_slice(data);
    }
}

/// Writes all of `bytes`, waiting at most `timeout` between two writes.
pub(super) async fn write_all(
    write: &mut WriteHalf,
    bytes: &[u8],
    timer: &mut Timer,
    timeout: Duration,
) -> io::Result<()> {
    let mut written = 0;
    std::future::poll_fn(|context| {
        while written < bytes.len() {
            match Pin::new(&mut *write).poll_write(context, &bytes[written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    written += count;
                    if written < bytes.len() {
                        timer.set(Instant::now(), timeout);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return timer
                        .poll_expired(context)
                        .map(|()| Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}
