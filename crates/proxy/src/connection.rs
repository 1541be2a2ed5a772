//! A client's connection: reads request heads, serves them in order, keeps the connection alive or ends it.

use crate::buffer::{Buffers, Inbox};
use crate::h1::request::{self, Parsed, RequestHead};
use crate::serve::{self, After};
use crate::timer::Timer;
use crate::worker::{Registration, Worker};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use weir_plugin::{Exchange, Refusal, RefusalKind};

/// How long, and for how many bytes, a connection that is being closed still reads, so that its peer gets the
/// answer before the reset that unread bytes would cause.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;

/// The two directions of a client's connection.
pub struct Client {
    pub reader: Reader,
    pub write: OwnedWriteHalf,
    pub timer: Timer,
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// What comes from the client: the connection's read half, and bytes that were read and not used yet. While a
/// request body is sent on beside the response, the reader is away with it; what is left then reads as ended.
#[derive(Default)]
pub struct Reader {
    half: Option<OwnedReadHalf>,
    pub inbox: Inbox,
}

impl Reader {
    /// A reader of this half, with bytes that were read before.
    pub fn new(half: OwnedReadHalf, inbox: Inbox) -> Self {
        Self { half: Some(half), inbox }
    }

    /// Reads once; 0 bytes at the end of the stream.
    pub fn poll_fill(&mut self, context: &mut Context<'_>, buffers: &Buffers, limit: usize) -> Poll<io::Result<usize>> {
        match &mut self.half {
            Some(half) => self.inbox.poll_fill(half, context, buffers, limit),
            None => Poll::Ready(Ok(0)),
        }
    }

    /// Ready when there may be something to read; says whether the connection is still good.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<bool> {
        match &self.half {
            Some(half) => {
                let stream: &TcpStream = half.as_ref();
                stream.poll_read_ready(context).map(|ready| ready.is_ok())
            }
            None => Poll::Ready(false),
        }
    }
}

/// What came of waiting for a request.
enum Next {
    Request(RequestHead, Instant),
    Refused(Refusal),
    Closed,
}

enum Filled {
    Bytes,
    End,
    TimedOut,
    Full,
}

/// Serves a connection until it ends.
pub async fn serve(worker: Rc<Worker>, stream: TcpStream, peer: SocketAddr, local: SocketAddr) {
    let _registration = Registration::new(&worker).await;
    let (read, write) = stream.into_split();
    let timer = Timer::new(Instant::now(), worker.shared.limits.idle_timeout);
    let reader = Reader::new(read, Inbox::default());
    let mut client = Client { reader, write, timer, peer, local };
    let after = client.serve_requests(&worker).await;
    if after == After::Linger {
        client.linger(&worker).await;
    }
    client.reader.inbox.consume(client.reader.inbox.bytes().len());
    client.reader.inbox.release(&worker.buffers);
}

impl Client {
    async fn serve_requests(&mut self, worker: &Rc<Worker>) -> After {
        loop {
            let Some(mut exchange) = self.wait_for_bytes(worker).await else { return After::Close };
            let next = self.read_head(worker, &mut exchange).await;
            exchange.request.peer = self.peer;
            exchange.request.client = self.peer.ip();
            exchange.request.local = self.local;
            let after = match next {
                Next::Request(head, started) => serve::request(worker, self, &mut exchange, head, started).await,
                Next::Refused(refusal) => serve::unreadable(worker, self, &mut exchange, refusal).await,
                Next::Closed => After::Close,
            };
            worker.give_exchange(exchange);
            if after != After::KeepAlive {
                return after;
            }
        }
    }

    /// Waits, without holding a buffer or an exchange, until the next request begins to arrive; `None` when
    /// the connection is to end.
    async fn wait_for_bytes(&mut self, worker: &Rc<Worker>) -> Option<Box<Exchange>> {
        if self.reader.inbox.is_empty() {
            self.reader.inbox.release(&worker.buffers);
            let (reader, timer) = (&self.reader, &mut self.timer);
            let is_readable = std::future::poll_fn(|context| {
                if worker.is_draining() {
                    return Poll::Ready(false);
                }
                match reader.poll_readable(context) {
                    Poll::Ready(is_good) => Poll::Ready(is_good),
                    Poll::Pending => timer.poll_expired(context).map(|()| false),
                }
            })
            .await;
            if !is_readable {
                return None;
            }
        } else if worker.is_draining() {
            return None;
        }
        Some(worker.take_exchange())
    }

    async fn read_head(&mut self, worker: &Rc<Worker>, exchange: &mut Exchange) -> Next {
        let limits = &worker.shared.limits;
        let mut looked_at = 0;
        let mut first_byte_at: Option<Instant> = None;
        loop {
            let bytes = self.reader.inbox.bytes();
            if !bytes.is_empty() && (looked_at == 0 || ends_a_head(bytes, looked_at)) {
                match request::parse(bytes, exchange) {
                    Ok(Parsed::Head(head)) => {
                        let refusal = check_size(&head, exchange, limits);
                        self.reader.inbox.consume(head.length);
                        return refusal.map_or(Next::Request(head, Instant::now()), Next::Refused);
                    }
                    Ok(Parsed::Partial) => {}
                    Err(refusal) => return Next::Refused(refusal),
                }
            }
            looked_at = bytes.len();
            if looked_at > limits.max_target_bytes + 64 && memchr::memchr(b'\n', bytes).is_none() {
                return Next::Refused(Refusal::new(RefusalKind::UriTooLong));
            }
            if looked_at > 0 && first_byte_at.is_none() {
                let now = Instant::now();
                first_byte_at = Some(now);
                self.timer.set(now, limits.header_timeout);
            }
            match self.fill(worker, limits.max_head_bytes).await {
                Ok(Filled::Bytes) => {}
                Ok(Filled::Full) => return Next::Refused(Refusal::new(RefusalKind::HeadTooLarge)),
                Ok(Filled::TimedOut) if looked_at > 0 => {
                    return Next::Refused(Refusal::new(RefusalKind::RequestTimeout));
                }
                Ok(Filled::End | Filled::TimedOut) | Err(_) => return Next::Closed,
            }
        }
    }

    async fn fill(&mut self, worker: &Rc<Worker>, limit: usize) -> io::Result<Filled> {
        if !self.reader.inbox.has_room(limit) {
            return Ok(Filled::Full);
        }
        std::future::poll_fn(|context| {
            match self.reader.poll_fill(context, &worker.buffers, limit) {
                Poll::Ready(Ok(0)) => Poll::Ready(Ok(Filled::End)),
                Poll::Ready(result) => Poll::Ready(result.map(|_| Filled::Bytes)),
                Poll::Pending => self.timer.poll_expired(context).map(|()| Ok(Filled::TimedOut)),
            }
        })
        .await
    }

    /// Ready once the client has gone; reads ahead what a pipelining client sends meanwhile.
    pub fn poll_gone(&mut self, context: &mut Context<'_>, worker: &Worker) -> Poll<()> {
        let limit = worker.shared.limits.max_head_bytes;
        loop {
            if self.reader.inbox.is_empty() {
                if !ready!(self.reader.poll_readable(context)) {
                    return Poll::Ready(());
                }
            } else if !self.reader.inbox.has_room(limit) {
                return Poll::Pending;
            }
            match ready!(self.reader.poll_fill(context, &worker.buffers, limit)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
    }

    /// Says good-bye and reads on for a while, so that the answer reaches a client that is still sending.
    async fn linger(&mut self, worker: &Rc<Worker>) {
        let closed = std::future::poll_fn(|context| Pin::new(&mut self.write).poll_shutdown(context)).await;
        if closed.is_err() {
            return;
        }
        self.timer.set(Instant::now(), LINGER);
        let mut read = 0;
        while read < LINGER_BYTES {
            let unused = self.reader.inbox.bytes().len();
            read += unused;
            self.reader.inbox.consume(unused);
            match self.fill(worker, 0).await {
                Ok(Filled::Bytes) => {}
                _ => return,
            }
        }
    }
}

/// Whether an empty line may end in the bytes from `from` on. A head that trickles in is parsed once, not once
/// for each piece.
fn ends_a_head(bytes: &[u8], from: usize) -> bool {
    let from = from.saturating_sub(3);
    memchr::memmem::find(&bytes[from..], b"\n\r\n").is_some() || memchr::memmem::find(&bytes[from..], b"\n\n").is_some()
}

fn check_size(head: &RequestHead, exchange: &Exchange, limits: &crate::Limits) -> Option<Refusal> {
    let query = exchange.request.query.as_ref().map_or(0, |query| query.len() + 1);
    if exchange.request.raw_path.len() + query > limits.max_target_bytes {
        return Some(Refusal::new(RefusalKind::UriTooLong));
    }
    (head.length > limits.max_head_bytes).then(|| Refusal::new(RefusalKind::HeadTooLarge))
}
