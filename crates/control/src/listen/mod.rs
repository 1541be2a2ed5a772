//! Listeners of management: Admin APIs, console, status. Every one of their clients is bounded: how long it may take,
//! how much it may send, and how many there may be.
//!
//! **What it is not**: it is no part of the path of proxied calls, and it does not say who may do what
//! ([`crate::access`]).

mod body;
mod patience;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use body::BoundedBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use patience::{Patient, Phase};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

/// How long to wait after a connection could not be accepted, as when there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// What clients of a listener may do.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From the first byte of a request until its head is whole.
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

/// Serves until `draining` says so, or whoever could say so is gone; then until the calls in progress have ended, or
/// have taken too long.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    mut draining: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(bounds.max_connections));
    loop {
        let accepted = async {
            // Nobody closes it.
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = draining.wait_for(|is_draining| *is_draining) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (router, draining) = (router.clone(), draining.clone());
                tokio::spawn(async move {
                    let _place = place;
                    serve_one(stream, peer, router, bounds, draining).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to a listener of management cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    let all = u32::try_from(bounds.max_connections).unwrap_or(u32::MAX);
    // Those that take longer are cut off.
    let _in_time = tokio::time::timeout(bounds.drain, places.acquire_many(all)).await;
}

async fn serve_one(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    bounds: Bounds,
    mut draining: watch::Receiver<bool>,
) {
    // Answers are small and waited for. Where it cannot be set, they only take longer.
    let _slower = stream.set_nodelay(true);
    let phase = Phase::default();
    let stream = Patient::new(stream, phase.clone(), &bounds);
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, in_call) = (router.clone(), phase.begin_call());
        async move {
            let mut request = request.map(|body| Body::new(BoundedBody::new(body, &bounds)));
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer: Response<Body> = match router.oneshot(request).await {
                Ok(answer) => answer,
                Err(never) => match never {},
            };
            Ok::<_, Infallible>(answer.map(|body| in_call.until_end_of(body)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The stream itself does better: it tells a slow client from one that has nothing to ask.
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
        tracing::debug!(%error, %peer, "a connection to a listener of management has ended");
    }
}
