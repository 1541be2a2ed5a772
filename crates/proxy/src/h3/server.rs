//! HTTP/3 connections from clients (RFC 9114): the handshake, and how the `h3` crate carries their streams.

use super::early::{HandshakeGuard, HandshakeState, confirm, note_failure, shake};
use super::handshake::HandshakeFacts;
use super::limits::{BEYOND, max_headers};
use super::quic::{self, QuicStream};
use super::stream;
use super::stream_io::code;
use crate::client::{TlsSession, presented_certificates};
use crate::limits::LINGER;
use crate::multiplex::connection::{ActiveStream, GoAway, MuxConnection, MuxProtocol};
use crate::multiplex::fields::StreamRequest;
use crate::multiplex::stream::StreamHalves;
use crate::multiplex::task_pool::TaskState;
use crate::timer::Timer;
use crate::worker::ConnectionGuard;
use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::server::{self, Connection, RequestResolver};
use quinn::Connecting;
use rustls::pki_types::CertificateDer;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weir_http1::MAX_FIELDS;
use weir_telemetry::metrics::ProtocolError;

/// The size of a field in a list beyond its name and value (RFC 9114, 4.2.2).
const FIELD_OVERHEAD: usize = 32;

type Http3 = Connection<quic::QuicConnection, Bytes>;

/// Serves a connection until it ends.
pub async fn serve(guard: ConnectionGuard, connecting: Connecting, local: SocketAddr) {
    let worker = guard.attach().await;
    let peer = connecting.remote_address();
    let limits = &worker.shared.limits;
    let shaking = HandshakeGuard::new(&worker);
    let may_be_early = (worker.shared.http3.as_ref()).is_some_and(|(http3, _)| http3.early_data);
    let shaken = tokio::time::timeout(limits.header_timeout, shake(connecting, may_be_early)).await;
    let (connection, rest) = match shaken.map_err(|_| io::ErrorKind::TimedOut.into()) {
        Ok(Ok(shaken)) => shaken,
        Ok(Err(error)) => return note_failure(&worker, peer, &error.into()),
        Err(error) => return note_failure(&worker, peer, &error),
    };
    let confirmed = match rest {
        Some(rest) => Some(confirm(rest, shaking, connection.clone(), peer)),
        None => {
            drop(shaking);
            None
        }
    };
    worker.metrics.http3_connections.increment();
    let local = SocketAddr::new(connection.local_ip().unwrap_or(local.ip()), local.port());
    let agreed = Rc::new(agreed(&connection));
    let shared = quic::Shared::new(max_headers(limits.max_head_bytes));
    let mut builder = server::builder();
    // What is more than a head may have, but not by much, is answered as other requests are.
    let most = limits.max_head_bytes * 2 + MAX_FIELDS * FIELD_OVERHEAD;
    builder.max_field_section_size(most as u64).send_grease(false);
    let view = quic::QuicConnection::new(connection.clone(), Rc::clone(&shared));
    let begun = tokio::time::timeout(limits.header_timeout, begin(&builder, view, &shared)).await;
    let Ok(Ok(http3)) = begun else {
        worker.metrics.protocol_error(ProtocolError::BadRequest);
        return connection.close(code(Code::H3_CLOSED_CRITICAL_STREAM), b"");
    };
    let mut protocol = Streams {
        http3,
        connection,
        shared,
        confirmed,
        going: None,
    };
    MuxConnection::new(&worker, peer, local, Some(agreed))
        .run(&mut protocol)
        .await;
}

/// Opens the connection's own streams and sends its settings.
async fn begin(
    builder: &server::Builder,
    view: quic::QuicConnection,
    shared: &quic::Shared,
) -> Result<Http3, h3::error::ConnectionError> {
    let http3 = builder.build(view).await?;
    // What cannot go now goes with what comes next.
    std::future::poll_fn(|context| {
        let _flushed = shared.poll_flush(context);
        Poll::Ready(())
    })
    .await;
    Ok(http3)
}

/// The results of the handshake.
fn agreed(connection: &quinn::Connection) -> TlsSession {
    let facts = connection
        .handshake_data()
        .and_then(|it| it.downcast::<HandshakeFacts>().ok());
    let facts = facts.map(|facts| *facts).unwrap_or_default();
    let chain = connection.peer_identity();
    let chain = chain.and_then(|it| it.downcast::<Vec<CertificateDer<'static>>>().ok());
    TlsSession {
        server_name: facts.server_name,
        // QUIC tells no suite.
        agreement: None,
        certificates: chain.and_then(|chain| presented_certificates(&chain, facts.presented.as_deref())),
        presented: facts.presented,
        is_http2: false,
        alternative: None,
    }
}

/// The streams of a connection.
struct Streams {
    http3: Http3,
    connection: quinn::Connection,
    shared: Rc<quic::Shared>,
    /// Set if streams may come before the handshake is over.
    confirmed: Option<HandshakeState>,
    /// The number to announce as the last stream that is answered.
    going: Option<usize>,
}

impl MuxProtocol for Streams {
    fn poll_streams(&mut self, connection: &Rc<MuxConnection>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(count) = self.going.take() {
            // The queue takes it; if the connection is lost, this is found out below.
            let _is_said = pin!(self.http3.shutdown(count)).poll(context);
        }
        loop {
            // Nothing is lost when it is asked again: it waits for nothing but the next stream.
            match pin!(self.http3.accept()).poll(context) {
                Poll::Ready(Ok(Some(resolver))) => {
                    if let Some(stream) = self.shared.take_latest() {
                        let is_early = stream.receiving.borrow().is_early();
                        let unconfirmed = self.confirmed.as_ref().filter(|_| is_early).cloned();
                        tokio::task::spawn_local(call(connection.begin(), resolver, stream, unconfirmed));
                    }
                }
                Poll::Ready(Ok(None)) => return Poll::Ready(()),
                Poll::Ready(Err(error)) => {
                    if matches!(error, h3::error::ConnectionError::Local { .. }) && !error.is_h3_no_error() {
                        connection
                            .worker
                            .metrics
                            .protocol_error(ProtocolError::BadRequest);
                    }
                    tracing::debug!(%error, client = %connection.peer, "an HTTP/3 connection has ended");
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.poll_flush(context)
    }

    fn go_away(&mut self, which: GoAway) {
        self.going = Some(match which {
            GoAway::Promised => BEYOND,
            GoAway::Final => 1,
        });
    }

    fn cut_off(&mut self) {
        self.connection.close(code(Code::H3_EXCESSIVE_LOAD), b"");
    }

    /// As long as it takes to hear of it, and for what was sent before that to come.
    fn grace_period(&self) -> Duration {
        (self.connection.rtt() * 3).clamp(Duration::from_millis(5), LINGER)
    }
}

/// Serves one stream; `unconfirmed`: it came early.
async fn call(
    live: ActiveStream,
    resolver: RequestResolver<quic::QuicConnection, Bytes>,
    stream: QuicStream,
    unconfirmed: Option<HandshakeState>,
) {
    let connection = Rc::clone(live.connection());
    let limits = &connection.worker.shared.limits;
    let resolved = tokio::time::timeout(limits.header_timeout, resolver.resolve_request()).await;
    match resolved {
        Ok(Ok((request, heads))) => {
            let (mut parts, ()) = request.into_parts();
            if let Some(mut unconfirmed) = unconfirmed
                && !unconfirmed.admit(&mut parts, limits.header_timeout).await
            {
                return give_up(&stream, Code::H3_REQUEST_REJECTED);
            }
            let protocol = parts.extensions.get::<h3::ext::Protocol>();
            let protocol = protocol.map(|protocol| protocol.as_str().as_bytes().to_vec());
            let halves = stream::StreamHalves::new(heads, stream, &parts.headers);
            let request = StreamRequest::of(&parts, (3, 0), protocol);
            live.call(
                request,
                StreamHalves::Http3(Box::new(halves)),
                TaskState::default(),
            )
            .await;
        }
        Ok(Err(error)) => refuse(&connection, &stream, &error).await,
        Err(_) => {
            connection
                .worker
                .metrics
                .protocol_error(ProtocolError::HeadTimeout);
            give_up(&stream, Code::H3_REQUEST_INCOMPLETE);
        }
    }
}

/// Ends a stream whose request could not be read.
async fn refuse(connection: &MuxConnection, stream: &QuicStream, error: &StreamError) {
    tracing::debug!(%error, client = %connection.peer, "a request over HTTP/3 cannot be read");
    let (kind, reason) = match error {
        StreamError::HeaderTooBig { .. } => {
            connection
                .worker
                .metrics
                .protocol_error(ProtocolError::HeadTooLarge);
            // The crate has answered that itself.
            stream.sending.borrow_mut().end();
            stream.receiving.borrow_mut().stop(code(Code::H3_NO_ERROR));
            let mut timer = Timer::new(Instant::now(), connection.worker.shared.limits.write_timeout);
            return std::future::poll_fn(|context| {
                let sending = &mut *stream.sending.borrow_mut();
                if sending.poll_flush(context).is_ready() && sending.poll_closed(context).is_ready() {
                    return Poll::Ready(());
                }
                timer.poll_expired(context)
            })
            .await;
        }
        StreamError::RemoteTerminate { .. } => (ProtocolError::ClientAborted, Code::H3_REQUEST_CANCELLED),
        _ => (ProtocolError::BadRequest, Code::H3_MESSAGE_ERROR),
    };
    connection.worker.metrics.protocol_error(kind);
    connection.note_given_up();
    give_up(stream, reason);
}

fn give_up(stream: &QuicStream, reason: Code) {
    stream.sending.borrow_mut().reset(code(reason));
    stream.receiving.borrow_mut().stop(code(reason));
}
