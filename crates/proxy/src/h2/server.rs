//! HTTP/2 connections from clients (RFC 9113): takes streams in, lets each be a call, and ends in order.

use super::fields;
use super::stream::Stream;
use super::wire::Wire;
use crate::buffer::Inbox;
use crate::connection::{Agreed, Client, LINGER, LINGER_BYTES};
use crate::grpc;
use crate::reader::Reader;
use crate::serve;
use crate::timer::Timer;
use crate::transport::{ReadHalf, WriteHalf};
use crate::worker::Worker;
use bytes::Bytes;
use h2::server::{self, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, Request};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use weir_plugin::{Exchange, Refusal};
use weir_telemetry::metrics::ProtocolError;

/// What a client sends first when it knows that HTTP/2 is spoken (RFC 9113, 3.3).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Data that a client may send ahead on a stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Data of one stream that waits to be written.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that a client may give up within a second, beyond as many as were answered.
const MAX_GIVEN_UP: u32 = 200;
/// Small bodies are taken in at once, so that they can go out with their head.
const SMALL_BODY: usize = 16 * 1024;

/// What the streams of a connection share.
struct Session {
    worker: Rc<Worker>,
    peer: SocketAddr,
    local: SocketAddr,
    tls: Option<Rc<Agreed>>,
    /// Calls under way.
    live: Cell<usize>,
    /// Wakes the connection when the last of them ends.
    waker: RefCell<Waker>,
    given_up: Cell<u32>,
    given_up_since: Cell<Instant>,
    /// See [`Client::forwarded_lines`].
    spare_lines: RefCell<Vec<Vec<u8>>>,
}

/// Serves a client that speaks HTTP/2 until the connection ends.
pub async fn serve(worker: &Rc<Worker>, client: Client) {
    let Client {
        mut reader,
        write,
        peer,
        local,
        tls,
        ..
    } = client;
    let before = reader.inbox.bytes().to_vec();
    reader.inbox.consume(before.len());
    reader.inbox.release(&worker.buffers);
    let Some(read) = reader.into_half() else { return };
    let wire = Wire::new(worker, (read, write), before);
    let session = Rc::new(Session {
        worker: Rc::clone(worker),
        peer,
        local,
        tls,
        live: Cell::new(0),
        waker: RefCell::new(Waker::noop().clone()),
        given_up: Cell::new(0),
        given_up_since: Cell::new(Instant::now()),
        spare_lines: RefCell::default(),
    });
    match shake(worker, &wire).await {
        Ok(connection) => session.run(connection, &wire).await,
        Err(error) => {
            worker.metrics.protocol_error(ProtocolError::BadRequest);
            tracing::debug!(%error, client = %peer, "a client does not speak HTTP/2");
        }
    }
    linger(&wire).await;
}

async fn shake(worker: &Worker, wire: &Wire) -> io::Result<Connection<Wire, Bytes>> {
    let limits = &worker.shared.limits;
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.max_streams)
        .max_send_buffer_size(SEND_BUFFER)
        .enable_connect_protocol();
    let mut shaking = builder.handshake(wire.clone());
    let mut timer = Timer::new(Instant::now(), limits.header_timeout);
    std::future::poll_fn(|context| {
        let shaken = std::pin::Pin::new(&mut shaking).poll(context);
        if let Poll::Ready(Err(error)) = wire.poll_out(context) {
            return Poll::Ready(Err(error));
        }
        match shaken {
            Poll::Ready(shaken) => Poll::Ready(shaken.map_err(io::Error::other)),
            Poll::Pending => timer
                .poll_expired(context)
                .map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    })
    .await
}

impl Session {
    /// Takes streams in until the connection ends.
    async fn run(self: &Rc<Self>, mut connection: Connection<Wire, Bytes>, wire: &Wire) {
        let idle_timeout = self.worker.shared.limits.idle_timeout;
        let mut timer = Timer::new(Instant::now(), idle_timeout);
        let mut is_ending = false;
        let mut was_busy = false;
        std::future::poll_fn(|context| {
            self.waker.borrow_mut().clone_from(context.waker());
            loop {
                let is_over = self.take_in(&mut connection, context);
                // What all streams that were ready had to say goes out together.
                if let Poll::Ready(Err(_)) = wire.poll_out(context) {
                    return Poll::Ready(());
                }
                if is_over {
                    return Poll::Ready(());
                }
                if self.live.get() > 0 {
                    was_busy = true;
                    if is_ending || !self.worker.is_draining() {
                        return Poll::Pending;
                    }
                } else if std::mem::take(&mut was_busy) {
                    timer.set(Instant::now(), if is_ending { LINGER } else { idle_timeout });
                }
                let is_draining = self.worker.is_draining();
                let is_idle = self.live.get() == 0 && timer.poll_expired(context).is_ready();
                match (is_ending, is_idle) {
                    (true, true) => return Poll::Ready(()),
                    (false, _) if is_idle || is_draining => {
                        // First a promise that there will be no more, then, once the client must know, the last
                        // stream that is answered (RFC 9113, 6.8).
                        is_ending = true;
                        connection.graceful_shutdown();
                        timer.set(Instant::now(), LINGER);
                    }
                    _ => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Begins a call for each stream that is there. Says whether the connection is over.
    fn take_in(self: &Rc<Self>, connection: &mut Connection<Wire, Bytes>, context: &mut Context<'_>) -> bool {
        if self.given_up.get() > MAX_GIVEN_UP {
            self.given_up.set(0);
            self.worker.metrics.protocol_error(ProtocolError::ClientAborted);
            connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
        loop {
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, answer)))) => self.begin(request, answer),
                Poll::Ready(Some(Err(error))) => {
                    if !error.is_io() {
                        self.worker.metrics.protocol_error(ProtocolError::BadRequest);
                    }
                    tracing::debug!(%error, client = %self.peer, "an HTTP/2 connection has failed");
                    return true;
                }
                Poll::Ready(None) => return true,
                Poll::Pending => return false,
            }
        }
    }

    fn begin(self: &Rc<Self>, request: Request<RecvStream>, answer: SendResponse<Bytes>) {
        self.live.set(self.live.get() + 1);
        let live = Live(Rc::clone(self));
        tokio::task::spawn_local(call(live, request, answer));
    }

    /// A client that opens streams only to give them up costs the gateway work for nothing.
    fn note_given_up(&self) {
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
struct Live(Rc<Session>);

impl Drop for Live {
    fn drop(&mut self) {
        let live = self.0.live.get() - 1;
        self.0.live.set(live);
        if live == 0 {
            self.0.waker.borrow().wake_by_ref();
        }
    }
}

/// Serves one stream.
async fn call(live: Live, request: Request<RecvStream>, answer: SendResponse<Bytes>) {
    let session = &*live.0;
    let worker = &session.worker;
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let deadline = grpc::deadline(&head.headers).map(|time| Timer::new(started, time));
    let stream = Rc::new(Stream::from_client(body, answer, deadline));
    let mut reader = Reader::new(ReadHalf::Stream(Rc::clone(&stream)), Inbox::default());
    if head.method != Method::CONNECT {
        take_small_body(&mut reader, &stream, worker).await;
    }
    let at_hand = stream.is_read().then(|| reader.inbox.bytes().len());
    let mut client = Client {
        reader,
        write: WriteHalf::Stream(Rc::clone(&stream)),
        timer: Timer::new(started, worker.shared.limits.idle_timeout),
        forwarded_lines: session.spare_lines.borrow_mut().pop().unwrap_or_default(),
        peer: session.peer,
        local: session.local,
        tls: session.tls.clone(),
    };
    let mut exchange = worker.take_exchange();
    client.introduce(&mut exchange);
    let read = fields::read_request(&head, at_hand, &worker.shared.limits, &mut exchange);
    drop(head);
    match read {
        Ok(head) => serve::request(worker, &mut client, &mut exchange, head, started).await,
        Err(kind) => serve::unreadable(worker, &mut client, &mut exchange, Refusal::new(kind)).await,
    };
    settle(session, &stream, &exchange);
    worker.give_exchange(exchange);
    client.reader.inbox.consume(client.reader.inbox.bytes().len());
    client.reader.inbox.release(&worker.buffers);
    session.spare_lines.borrow_mut().push(client.forwarded_lines);
}

/// Takes in what has come of the body.
async fn take_small_body(reader: &mut Reader, stream: &Stream, worker: &Worker) {
    std::future::poll_fn(|context| {
        while !stream.is_read() && reader.inbox.has_room(SMALL_BODY) {
            match reader.poll_fill(context, &worker.buffers, SMALL_BODY) {
                Poll::Ready(Ok(count)) if count > 0 => {}
                _ => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}

/// Ends a stream whose answer did not come to its end.
fn settle(session: &Session, stream: &Stream, exchange: &Exchange) {
    if stream.is_ended() {
        return;
    }
    if stream.is_late() && grpc::is_call(exchange) {
        let told = grpc::send_late(stream);
        if told.is_ok() {
            return;
        }
    }
    if stream.is_unanswered() {
        session.note_given_up();
    }
    stream.reset(Reason::INTERNAL_ERROR);
}

/// Reads on for a while, so that what was said last reaches a client that is still sending.
async fn linger(wire: &Wire) {
    let mut timer = Timer::new(Instant::now(), LINGER);
    let mut read = 0;
    std::future::poll_fn(|context| {
        if let Poll::Ready(Err(_)) = wire.poll_end(context) {
            return Poll::Ready(());
        }
        loop {
            match wire.poll_discard(context) {
                Poll::Ready(Ok(count)) if count > 0 && read < LINGER_BYTES => read += count,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return timer.poll_expired(context),
            }
        }
    })
    .await;
}
