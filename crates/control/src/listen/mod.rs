//! Listeners of management: Admin APIs, console, status. Every one of their clients is bounded: how long it may take,
//! how much it may send, and how many there may be.
//!
//! **What it is not**: it is no part of the path of proxied calls, and it does not say who may do what
//! ([`crate::access`]).

mod body;
mod header_names;
mod streaming_response;
mod timeouts;
mod tls;

pub use streaming_response::StreamingResponse;
pub use tls::{Tls, TlsError, TlsFiles};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use body::BoundedBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use streaming_response::DrainableBody;
use timeouts::{CallTracker, TimeoutStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

/// How long to wait after a connection could not be accepted, as when there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The bounds for clients of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From the first byte of a request until its head is whole; and for a TLS handshake.
    pub head: Duration,
    /// From the end of the head until the body is whole.
    pub body: Duration,
    /// From the end of an answer, or the connection's begin, to the first byte of a request.
    pub idle: Duration,
    /// For how long a client may take nothing of an answer.
    pub stall: Duration,
    /// The largest body of a request, in bytes. What reads it may say less.
    pub max_body: u64,
    /// Connections at a time. More wait in the kernel's queue.
    pub max_connections: usize,
    /// How long calls in progress may take once the listener is drained.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            idle: Duration::from_secs(75),
            stall: Duration::from_secs(30),
            max_body: 256 << 20,
            max_connections: 1024,
            drain: Duration::from_secs(2),
        }
    }
}

/// In the extensions of a call: whether its client speaks TLS with this listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverTls(pub bool);

/// A listener, and its settings.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl Listener {
    /// One that speaks TLS where `tls` says how.
    pub fn new(tcp: TcpListener, tls: Option<Arc<Tls>>) -> Self {
        Self { tcp, tls }
    }
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self::new(tcp, None)
    }
}

/// Serves until `draining` becomes true or its sender is gone; then until the calls in progress have ended, or have taken
/// too long.
pub async fn serve(
    listener: impl Into<Listener>,
    router: Router,
    bounds: Bounds,
    mut draining: watch::Receiver<bool>,
) {
    let Listener { tcp: listener, tls } = listener.into();
    let places = Arc::new(Semaphore::new(bounds.max_connections));
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = draining.wait_for(|is_draining| *is_draining) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (tls, router, draining) = (tls.clone(), router.clone(), draining.clone());
                tokio::spawn(async move {
                    let _place = place;
                    // Answers are small and waited for. If it cannot be set, they only take longer.
                    let _slower = stream.set_nodelay(true);
                    match tls {
                        None => serve_one(stream, (peer, OverTls(false)), router, bounds, draining).await,
                        Some(tls) => {
                            let Some(stream) = shake_hands(stream, peer, &tls, bounds.head).await else {
                                return;
                            };
                            let certificates = stream.get_ref().1.peer_certificates();
                            let router = match tls.requires_client_certificate() && certificates.is_none() {
                                true => Router::new().fallback(refuse_unknown),
                                false => router,
                            };
                            serve_one(stream, (peer, OverTls(true)), router, bounds, draining).await;
                        }
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to a management listener cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    let all = u32::try_from(bounds.max_connections).unwrap_or(u32::MAX);
    // Those that take longer are cut off.
    let _in_time = tokio::time::timeout(bounds.drain, places.acquire_many(all)).await;
}

/// The answer to clients without a certificate at a listener that asks for one.
async fn refuse_unknown() -> (StatusCode, &'static str) {
    // In NGINX's words, and as a text: it is no answer of any dialect.
    (StatusCode::BAD_REQUEST, "No required SSL certificate was sent\n")
}

/// `None`: the client does not speak TLS, shows a certificate that is not trusted, or takes too long.
async fn shake_hands(
    stream: TcpStream,
    peer: SocketAddr,
    tls: &Tls,
    timeout: Duration,
) -> Option<TlsStream<TcpStream>> {
    match tokio::time::timeout(timeout, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, %peer, "a TLS handshake at a management listener has failed");
            None
        }
        Err(_) => {
            tracing::debug!(%peer, "a TLS handshake at a management listener has timed out");
            None
        }
    }
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (peer, over_tls): (SocketAddr, OverTls),
    router: Router,
    bounds: Bounds,
    mut draining: watch::Receiver<bool>,
) {
    let tracker = Arc::new(CallTracker::default());
    let stream = TimeoutStream::new(stream, Arc::clone(&tracker), &bounds);
    let drained = draining.clone();
    let spelled = header_names::spelled().await;
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, in_call) = (router.clone(), tracker.begin_call());
        let drained = drained.clone();
        async move {
            let mut request = request.map(|body| Body::new(BoundedBody::new(body, &bounds)));
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(over_tls);
            let mut answer: Response<Body> = match router.oneshot(request).await {
                Ok(answer) => answer,
                Err(never) => match never {},
            };
            if answer.extensions_mut().remove::<StreamingResponse>().is_some() {
                answer = answer.map(|body| Body::new(DrainableBody::new(body, drained)));
            }
            answer.extensions_mut().extend(spelled.clone());
            Ok::<_, Infallible>(answer.map(|body| in_call.until_end_of(body)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // As the originals write the names of their headers.
        .title_case_headers(true)
        // The stream itself does better: it distinguishes a slow client from an idle one.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // What it waits for is borrowed, and let go at once.
    let is_draining = async { drop(draining.wait_for(|is_draining| *is_draining).await) };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = is_draining => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection to a management listener has failed");
    }
}
