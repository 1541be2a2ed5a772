//! A client's connection: reads request heads, serves them in order, keeps the connection alive or ends it.

pub mod fuzzing;

use crate::buffer::Inbox;
use crate::client::{Addresses, Client, TlsSession, presented_certificates};
use crate::forwarded;
use crate::h2::server as h2_server;
use crate::halves::{ReadHalf, WriteHalf};
use crate::limits::{LINGER, LINGER_BYTES};
use crate::multiplex::task_pool::TaskPool;
use crate::outcome::ConnectionFate;
use crate::reader::Reader;
use crate::serve;
use crate::timer::Timer;
use crate::transport;
use crate::worker::{ConnectionGuard, Worker};
use rustls::server::ClientHello;
use std::io::{self};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use weir_http1::HeadSlot;
use weir_http1::request::{self, Parsed, RequestHead};
use weir_plugin::{Exchange, Refusal, RefusalKind};
use weir_snapshot::CHALLENGE_PROTOCOL;
use weir_telemetry::metrics::ProtocolError;

/// The result of waiting for a request.
enum HeadEvent {
    Request(RequestHead, Instant),
    Refused(Refusal),
    /// The client speaks HTTP/2.
    Http2,
    Closed,
}

/// How the serving of a connection by HTTP/1.1 has ended.
enum Http1Exit {
    /// It is to end.
    Until(ConnectionFate),
    /// The client speaks HTTP/2; what it has sent of that waits.
    Http2,
}

enum ReadEvent {
    Bytes,
    End,
    TimedOut,
    Full,
}

/// Resets a connection whose call panics: its client must not take what it got for the whole.
struct ResetOnPanic<'c>(&'c mut Client);

impl Drop for ResetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let gone = WriteHalf::Stream(Rc::default());
            std::mem::replace(&mut self.0.write, gone).reset();
        }
    }
}

/// Serves a connection until it ends.
pub async fn serve(
    guard: ConnectionGuard,
    tasks: Rc<TaskPool>,
    stream: TcpStream,
    addresses: Addresses,
    is_tls: bool,
) {
    let worker = guard.attach().await;
    let secured = match is_tls {
        false => Ok(Some((crate::halves::plain(stream), None))),
        true => secure(&worker, stream, addresses.local)
            .await
            .map(|secured| secured.map(|(halves, tls)| (halves, Some(Rc::new(tls))))),
    };
    let ((read, write), tls) = match secured {
        Ok(Some(secured)) => secured,
        Ok(None) => return,
        Err(error) => {
            worker.metrics.protocol_error(ProtocolError::TlsHandshake);
            tracing::debug!(%error, client = %addresses.peer, "a TLS handshake failed");
            return;
        }
    };
    let Addresses { peer, local } = addresses;
    let timer = Timer::new(Instant::now(), worker.shared.limits.idle_timeout);
    let reader = Reader::new(read, Inbox::default());
    let mut client = Client {
        reader,
        write,
        timer,
        forwarded_lines: forwarded::Lines::default(),
        last_head: HeadSlot::default(),
        peer,
        local,
        tls,
    };
    let after = match client.tls.as_ref().is_some_and(|tls| tls.is_http2) {
        true => Http1Exit::Http2,
        false => ResetOnPanic(&mut client).0.serve_requests(&worker).await,
    };
    let after = match after {
        // In a place of its own: HTTP/1.1 connections need no room for it.
        Http1Exit::Http2 => return Box::pin(h2_server::serve(&worker, tasks, client)).await,
        Http1Exit::Until(after) => after,
    };
    match after {
        ConnectionFate::Reset => return client.reset(),
        ConnectionFate::Close if !client.is_sending().await => {}
        _ => client.linger(&worker).await,
    }
    client.reader.inbox.consume(client.reader.inbox.bytes().len());
    client.reader.inbox.release(&worker.runtime.buffers);
}

/// Performs the TLS handshake, bounded by the header timeout. `None`: this was a challenge of ACME (TLS-ALPN), and the connection
/// is over.
async fn secure(
    worker: &Worker,
    stream: TcpStream,
    local: SocketAddr,
) -> io::Result<Option<((ReadHalf, WriteHalf), TlsSession)>> {
    let shared = &worker.shared;
    let serving = worker.serving();
    let mut presented = None;
    let choose = |hello: &ClientHello<'_>, name: Option<&str>| {
        let tls = &serving.published.snapshot.tls;
        if let Some(challenge) = tls.challenge(name, hello.alpn()) {
            return Some(Arc::clone(challenge));
        }
        presented = tls.find(name).cloned();
        let found = presented.as_ref().map(|found| Arc::clone(&found.config));
        found.or_else(|| shared.fallback_tls.clone())
    };
    let handshake = transport::accept(stream, choose);
    let shaken = tokio::time::timeout(shared.limits.header_timeout, handshake).await??;
    if shaken.protocol.as_deref() == Some(CHALLENGE_PROTOCOL) {
        // All that such a connection is for (RFC 8737, section 3). No call may come over it: no rule was looked at.
        return Ok(None);
    }
    let agreed = TlsSession {
        server_name: shaken.server_name,
        agreement: shaken.agreement,
        is_http2: shaken.protocol.as_deref() == Some(b"h2"),
        certificates: presented_certificates(&shaken.client_certificates, presented.as_deref()),
        alternative: worker.alternatives.line(local),
        presented,
    };
    Ok(Some((crate::halves::secure(shaken.stream), agreed)))
}

impl Client {
    async fn serve_requests(&mut self, worker: &Rc<Worker>) -> Http1Exit {
        let mut is_first = true;
        loop {
            let Some(mut exchange) = self.wait_for_bytes(worker).await else {
                return Http1Exit::Until(ConnectionFate::Close);
            };
            let next = self.read_head(worker, &mut exchange, is_first).await;
            is_first = false;
            self.fill_client_info(&mut exchange);
            let after = match next {
                HeadEvent::Request(head, started) => {
                    serve::request(worker, self, &mut exchange, head, started).await
                }
                HeadEvent::Refused(refusal) => {
                    serve::reject_malformed(worker, self, &mut exchange, refusal).await
                }
                HeadEvent::Closed => ConnectionFate::Close,
                HeadEvent::Http2 => {
                    worker.release_exchange(exchange);
                    return Http1Exit::Http2;
                }
            };
            worker.release_exchange(exchange);
            if after != ConnectionFate::KeepAlive {
                return Http1Exit::Until(after);
            }
        }
    }

    /// Waits, without holding a buffer or an exchange, until the next request begins to arrive; `None` when
    /// the connection is to end.
    async fn wait_for_bytes(&mut self, worker: &Rc<Worker>) -> Option<Box<Exchange>> {
        if self.reader.inbox.is_empty() {
            self.reader.inbox.release(&worker.runtime.buffers);
            let (reader, timer) = (&mut self.reader, &mut self.timer);
            let limit = worker.shared.limits.max_head_bytes;
            let has_bytes = std::future::poll_fn(|context| {
                match reader.poll_fill(context, &worker.runtime.buffers, limit) {
                    // What was sent before the client could know of the draining is still answered.
                    Poll::Ready(read) => Poll::Ready(read.is_ok_and(|count| count > 0)),
                    Poll::Pending if worker.is_draining() => Poll::Ready(false),
                    Poll::Pending => timer.poll_expired(context).map(|()| false),
                }
            })
            .await;
            if !has_bytes {
                return None;
            }
        }
        Some(worker.acquire_exchange())
    }

    async fn read_head(&mut self, worker: &Rc<Worker>, exchange: &mut Exchange, is_first: bool) -> HeadEvent {
        let limits = &worker.shared.limits;
        let mut looked_at = 0;
        let mut first_byte_at: Option<Instant> = None;
        loop {
            // Empty lines before a request are passed over (RFC 9112, 2.2), and begin none.
            while self.reader.inbox.bytes().starts_with(b"\r\n") {
                self.reader.inbox.consume(2);
            }
            let bytes = self.reader.inbox.bytes();
            if !bytes.is_empty() && (looked_at == 0 || weir_http1::ends_a_head(bytes, looked_at)) {
                let heads = &mut worker.request_heads.borrow_mut();
                match request::parse_known(bytes, exchange, heads, &mut self.last_head) {
                    Ok(Parsed::Head(head)) => {
                        let refusal = check_size(&head, exchange, limits);
                        self.reader.inbox.consume(head.length);
                        return refusal.map_or(HeadEvent::Request(head, Instant::now()), HeadEvent::Refused);
                    }
                    Ok(Parsed::Partial) => {}
                    Err(_) if is_first && bytes.starts_with(h2_server::PREFACE) => return HeadEvent::Http2,
                    Err(_) if is_first && !weir_http1::names_http(bytes) => {
                        worker.metrics.protocol_error(ProtocolError::BadRequest);
                        return HeadEvent::Closed;
                    }
                    Err(kind) => return HeadEvent::Refused(Refusal::new(kind)),
                }
            }
            looked_at = bytes.len();
            if looked_at > limits.max_target_bytes.saturating_add(64)
                && memchr::memchr(b'\n', bytes).is_none()
            {
                return HeadEvent::Refused(Refusal::new(RefusalKind::UriTooLong));
            }
            if looked_at > 0 && first_byte_at.is_none() {
                let now = Instant::now();
                first_byte_at = Some(now);
                self.timer.set(now, limits.header_timeout);
            }
            match self.fill(worker, limits.max_head_bytes, looked_at == 0).await {
                Ok(ReadEvent::Bytes) => {}
                Ok(ReadEvent::Full) => return HeadEvent::Refused(Refusal::new(RefusalKind::HeadTooLarge)),
                Ok(ReadEvent::TimedOut) if looked_at > 0 => {
                    return HeadEvent::Refused(Refusal::new(RefusalKind::RequestTimeout));
                }
                Ok(ReadEvent::End | ReadEvent::TimedOut) | Err(_) => return HeadEvent::Closed,
            }
        }
    }

    /// Reads once. `is_idle`: nothing has been promised to the client, so that draining ends the wait.
    async fn fill(&mut self, worker: &Rc<Worker>, limit: usize, is_idle: bool) -> io::Result<ReadEvent> {
        if !self.reader.inbox.has_room(limit) {
            return Ok(ReadEvent::Full);
        }
        std::future::poll_fn(
            |context| match self.reader.poll_fill(context, &worker.runtime.buffers, limit) {
                Poll::Ready(Ok(0)) => Poll::Ready(Ok(ReadEvent::End)),
                Poll::Ready(result) => Poll::Ready(result.map(|_| ReadEvent::Bytes)),
                Poll::Pending if is_idle && worker.is_draining() => Poll::Ready(Ok(ReadEvent::End)),
                Poll::Pending => self.timer.poll_expired(context).map(|()| Ok(ReadEvent::TimedOut)),
            },
        )
        .await
    }

    /// Whether the client has sent more than was read: closing with bytes unread resets the connection, and a
    /// reset can cost the client the answer.
    async fn is_sending(&self) -> bool {
        let readable = std::future::poll_fn(|context| Poll::Ready(self.reader.poll_readable(context))).await;
        !self.reader.inbox.is_empty() || readable == Poll::Ready(true)
    }

    /// Closes its direction and reads on for a while, so that the answer reaches a client that is still sending.
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
            match self.fill(worker, 0, false).await {
                Ok(ReadEvent::Bytes) => {}
                _ => return,
            }
        }
    }
}

fn check_size(head: &RequestHead, exchange: &Exchange, limits: &crate::Limits) -> Option<Refusal> {
    let query = exchange.request.query.as_ref().map_or(0, |query| query.len() + 1);
    if exchange.request.raw_path.len() + query > limits.max_target_bytes {
        return Some(Refusal::new(RefusalKind::UriTooLong));
    }
    (head.length > limits.max_head_bytes).then(|| Refusal::new(RefusalKind::HeadTooLarge))
}
