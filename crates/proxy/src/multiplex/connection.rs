//! A client's connection that carries many calls: takes streams in, lets each be a call, and ends in order.

use super::fields::{self, StreamRequest};
use super::stream::{Stream, StreamHalves};
use super::task_pool::TaskState;
use crate::buffer::Inbox;
use crate::client::{Client, TlsSession};
use crate::forwarded::Lines;
use crate::grpc;
use crate::halves::{ReadHalf, WriteHalf};
use crate::limits::LINGER;
use crate::reader::Reader;
use crate::serve;
use crate::timer::Timer;
use crate::worker::Worker;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use weir_http1::HeadSlot;
use weir_plugin::{Exchange, Refusal};
use weir_telemetry::metrics::ProtocolError;

/// Streams that a client may give up within a second, beyond as many as were answered.
const MAX_GIVEN_UP: u32 = 200;
/// Small bodies are taken in at once, so that they can go out with their head.
const SMALL_BODY: usize = 16 * 1024;

/// How a protocol carries the streams of a connection.
pub trait MuxProtocol {
    /// Begins a call for each stream that is there. Ready once the connection is over.
    fn poll_streams(&mut self, connection: &Rc<MuxConnection>, context: &mut Context<'_>) -> Poll<()>;

    /// Writes what all streams have to say, unless the connection does so by itself.
    ///
    /// # Errors
    /// When it is lost.
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Announces to the client that there will be no more streams.
    fn go_away(&mut self, which: GoAway);

    /// Ends the connection of a client that misbehaves.
    fn cut_off(&mut self);

    /// How long the client may take to know of a [`GoAway`], and to have what was sent last.
    fn grace_period(&self) -> Duration {
        LINGER
    }
}

/// The two steps of taking no more streams (RFC 9113, 6.8; RFC 9114, 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoAway {
    /// The client should open no more.
    Promised,
    /// The client knows; what it opens from now on is refused.
    Final,
}

/// The state that the streams of a connection share.
pub struct MuxConnection {
    pub worker: Rc<Worker>,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    pub tls: Option<Rc<TlsSession>>,
    /// Calls under way.
    live: Cell<usize>,
    /// Wakes the connection when the last of them ends.
    waker: RefCell<Waker>,
    given_up: Cell<u32>,
    given_up_since: Cell<Instant>,
    /// See [`Client::forwarded_lines`].
    forwarded_lines: Lines,
}

impl MuxConnection {
    /// A connection of this client.
    pub fn new(
        worker: &Rc<Worker>,
        peer: SocketAddr,
        local: SocketAddr,
        tls: Option<Rc<TlsSession>>,
    ) -> Rc<Self> {
        Rc::new(Self {
            worker: Rc::clone(worker),
            peer,
            local,
            tls,
            live: Cell::new(0),
            waker: RefCell::new(Waker::noop().clone()),
            given_up: Cell::new(0),
            given_up_since: Cell::new(Instant::now()),
            forwarded_lines: Lines::default(),
        })
    }

    /// Takes streams in until the connection ends.
    pub async fn run(self: &Rc<Self>, protocol: &mut impl MuxProtocol) {
        let idle_timeout = self.worker.shared.limits.idle_timeout;
        let mut timer = Timer::new(Instant::now(), idle_timeout);
        let mut reported = None;
        let mut was_busy = false;
        std::future::poll_fn(|context| {
            self.waker.borrow_mut().clone_from(context.waker());
            loop {
                if self.given_up.get() > MAX_GIVEN_UP {
                    self.given_up.set(0);
                    self.worker.metrics.protocol_error(ProtocolError::ClientAborted);
                    protocol.cut_off();
                }
                let is_over = protocol.poll_streams(self, context).is_ready();
                // What all streams that were ready had to say goes out together.
                if let Poll::Ready(Err(_)) = protocol.poll_out(context) {
                    return Poll::Ready(());
                }
                if is_over {
                    return Poll::Ready(());
                }
                if self.live.get() > 0 {
                    was_busy = true;
                } else if std::mem::take(&mut was_busy) {
                    let time = if reported.is_some() {
                        protocol.grace_period()
                    } else {
                        idle_timeout
                    };
                    timer.set(Instant::now(), time);
                }
                let is_idle = self.live.get() == 0;
                match reported {
                    None if self.worker.is_draining()
                        || (is_idle && timer.poll_expired(context).is_ready()) =>
                    {
                        reported = Some(GoAway::Promised);
                        protocol.go_away(GoAway::Promised);
                        timer.set(Instant::now(), protocol.grace_period());
                    }
                    Some(GoAway::Promised) if timer.poll_expired(context).is_ready() => {
                        reported = Some(GoAway::Final);
                        protocol.go_away(GoAway::Final);
                    }
                    Some(GoAway::Final) if is_idle && timer.poll_expired(context).is_ready() => {
                        return Poll::Ready(());
                    }
                    _ => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Counts a stream as a call under way.
    pub fn begin(self: &Rc<Self>) -> ActiveStream {
        self.live.set(self.live.get() + 1);
        ActiveStream(Rc::clone(self))
    }

    /// A client that opens streams only to give them up costs the gateway work for nothing.
    pub fn note_given_up(&self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.given_up_since.get()) > Duration::from_secs(1) {
            self.given_up_since.set(now);
            self.given_up.set(0);
        }
        self.given_up.set(self.given_up.get() + 1);
        if self.given_up.get() > MAX_GIVEN_UP {
            self.waker.borrow().wake_by_ref();
        }
    }
}

/// Counts a call of a connection.
pub struct ActiveStream(Rc<MuxConnection>);

impl ActiveStream {
    /// Whose call it is.
    pub fn connection(&self) -> &Rc<MuxConnection> {
        &self.0
    }

    /// Serves the stream; gives back what the task keeps.
    pub async fn call(self, asked: StreamRequest, ends: StreamHalves, kept: TaskState) -> TaskState {
        let TaskState {
            mut timer,
            mut stream,
        } = kept;
        let connection = &*self.0;
        let worker = &connection.worker;
        let started = Instant::now();
        let deadline = grpc::deadline(&asked).map(|time| Timer::new(started, time));
        Stream::begin(&mut stream, ends, deadline);
        let mut reader = Reader::new(ReadHalf::Stream(Rc::clone(&stream)), Inbox::default());
        if asked.protocol.is_none() {
            take_small_body(&mut reader, &stream, worker).await;
        }
        let at_hand = stream.is_read().then(|| reader.inbox.bytes().len());
        timer.set(started, worker.shared.limits.idle_timeout);
        let mut client = Client {
            reader,
            write: WriteHalf::Stream(Rc::clone(&stream)),
            timer,
            forwarded_lines: connection.forwarded_lines.clone(),
            last_head: HeadSlot::default(),
            peer: connection.peer,
            local: connection.local,
            tls: connection.tls.clone(),
        };
        let mut exchange = worker.acquire_exchange();
        client.fill_client_info(&mut exchange);
        let read = fields::read_request(&asked, at_hand, &worker.shared.limits, &mut exchange);
        worker.runtime.lists.give(asked.list);
        match read {
            Ok(head) => serve::request(worker, &mut client, &mut exchange, head, started).await,
            Err(kind) => {
                serve::reject_malformed(worker, &mut client, &mut exchange, Refusal::new(kind)).await
            }
        };
        end_unfinished(connection, &stream, &exchange);
        worker.release_exchange(exchange);
        client.reader.inbox.consume(client.reader.inbox.bytes().len());
        client.reader.inbox.release(&worker.runtime.buffers);
        let timer = &mut client.timer;
        timer.set(Instant::now(), worker.shared.limits.write_timeout);
        std::future::poll_fn(|context| match stream.poll_finished(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => timer.poll_expired(context),
        })
        .await;
        let timer = client.timer;
        drop((client.reader, client.write));
        if !Stream::end_use(&mut stream) {
            // It is over for everything that still holds it, too.
            stream = Rc::default();
        }
        TaskState { timer, stream }
    }
}

impl Drop for ActiveStream {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.worker.metrics.panics.increment();
        }
        let live = self.0.live.get() - 1;
        self.0.live.set(live);
        if live == 0 {
            self.0.waker.borrow().wake_by_ref();
        }
    }
}

/// Takes in what has come of the body.
async fn take_small_body(reader: &mut Reader, stream: &Stream, worker: &Worker) {
    std::future::poll_fn(|context| {
        while !stream.is_read() && reader.inbox.has_room(SMALL_BODY) {
            match reader.poll_fill(context, &worker.runtime.buffers, SMALL_BODY) {
                Poll::Ready(Ok(count)) if count > 0 => {}
                _ => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}

/// Ends a stream whose answer did not come to its end.
fn end_unfinished(connection: &MuxConnection, stream: &Stream, exchange: &Exchange) {
    if stream.is_ended() {
        return;
    }
    if stream.is_late() && grpc::is_call(exchange) {
        let outcome = grpc::send_late(stream);
        if outcome.is_ok() {
            return;
        }
    }
    if stream.is_unanswered() {
        connection.note_given_up();
    }
    stream.reset();
}
