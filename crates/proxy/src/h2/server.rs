//! HTTP/2 connections from clients (RFC 9113): how the `h2` crate carries their streams.

use super::stream;
use super::wire::Wire;
use crate::connection::{Client, LINGER, LINGER_BYTES};
use crate::multiplex::fields::Asked;
use crate::multiplex::session::{Carrier, GoAway, Session};
use crate::multiplex::stream::Ends;
use crate::timer::Timer;
use crate::worker::Worker;
use bytes::Bytes;
use h2::server::{self, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;
use weir_telemetry::metrics::ProtocolError;

/// What a client sends first when it knows that HTTP/2 is spoken (RFC 9113, 3.3).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Data that a client may send ahead on a stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Data of one stream that waits to be written.
const SEND_BUFFER: usize = 64 * 1024;

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
    match shake(worker, &wire).await {
        Ok(connection) => {
            let mut carrier = Streams {
                connection,
                wire: wire.clone(),
            };
            Session::new(worker, peer, local, tls).run(&mut carrier).await;
        }
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

/// The streams of a connection.
struct Streams {
    connection: Connection<Wire, Bytes>,
    wire: Wire,
}

impl Carrier for Streams {
    fn poll_streams(&mut self, session: &Rc<Session>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, answer)))) => begin(session, request, answer),
                Poll::Ready(Some(Err(error))) => {
                    if !error.is_io() {
                        session.worker.metrics.protocol_error(ProtocolError::BadRequest);
                    }
                    tracing::debug!(%error, client = %session.peer, "an HTTP/2 connection has failed");
                    return Poll::Ready(());
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_out(context)
    }

    /// The crate takes the second step by itself, once the client has shown that it knows of the first.
    fn go_away(&mut self, which: GoAway) {
        if which == GoAway::Promised {
            self.connection.graceful_shutdown();
        }
    }

    fn cut_off(&mut self) {
        self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
    }
}

fn begin(session: &Rc<Session>, request: Request<RecvStream>, answer: SendResponse<Bytes>) {
    let (parts, body) = request.into_parts();
    let protocol = parts.extensions.get::<h2::ext::Protocol>();
    let asked = Asked {
        protocol: protocol.map(|protocol| protocol.as_str().as_bytes().to_vec()),
        version: (2, 0),
        parts,
    };
    let ends = Ends::Http2(stream::Ends::from_client(body, answer));
    tokio::task::spawn_local(session.begin().call(asked, ends));
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
