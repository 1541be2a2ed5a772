//! Requests in the first flight of a resumed session (0-RTT; RFC 8470), if the configuration allows them. What comes so
//! early may be a replay of a recorded flight. Requests with a safe method are served all the same,
//! with a header for upstreams; others wait until the handshake has shown who sends them.

use super::stream_io::code;
use crate::worker::Worker;
use h3::error::Code;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use quinn::{Connecting, Connection, ConnectionError, ZeroRttAccepted};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;
use weir_telemetry::metrics::ProtocolError;

/// Marks a request for upstreams as a possible repetition whose client understands 425 (RFC 8470, section 5.1).
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// Counts a handshake that is under way.
pub struct HandshakeGuard(Rc<Worker>);

impl HandshakeGuard {
    /// One more of this worker's.
    pub fn new(worker: &Rc<Worker>) -> Self {
        worker.handshakes.set(worker.handshakes.get() + 1);
        Self(Rc::clone(worker))
    }
}

impl Drop for HandshakeGuard {
    fn drop(&mut self) {
        self.0.handshakes.set(self.0.handshakes.get() - 1);
    }
}

/// Counts a handshake that came to nothing.
pub fn note_failure(worker: &Worker, peer: SocketAddr, error: &io::Error) {
    worker.metrics.protocol_error(ProtocolError::QuicHandshake);
    tracing::debug!(%error, client = %peer, "a QUIC handshake failed");
}

/// Whether a handshake is over by now.
#[derive(Clone)]
pub struct HandshakeState(watch::Receiver<bool>);

/// Waits for the handshake; if it `may_be_early`, only until the server name is known and the rest is to come.
///
/// # Errors
/// The handshake has failed.
pub async fn shake(
    mut connecting: Connecting,
    may_be_early: bool,
) -> Result<(Connection, Option<ZeroRttAccepted>), ConnectionError> {
    if !may_be_early {
        return Ok((connecting.await?, None));
    }
    connecting.handshake_data().await?;
    match connecting.into_0rtt() {
        Ok((connection, rest)) => Ok((connection, Some(rest))),
        Err(connecting) => Ok((connecting.await?, None)),
    }
}

/// Sees to the rest of a handshake.
pub fn confirm(
    rest: ZeroRttAccepted,
    shaking: HandshakeGuard,
    connection: Connection,
    peer: SocketAddr,
) -> HandshakeState {
    let (sender, confirmed) = watch::channel(false);
    tokio::task::spawn_local(async move {
        let timeout = shaking.0.shared.limits.header_timeout;
        let rested = tokio::time::timeout(timeout, rest).await;
        match (rested, connection.close_reason()) {
            (Ok(_), None) => {
                sender.send_replace(true);
            }
            (Ok(_), Some(error)) => note_failure(&shaking.0, peer, &error.into()),
            (Err(_), _) => {
                note_failure(&shaking.0, peer, &io::ErrorKind::TimedOut.into());
                connection.close(code(Code::H3_NO_ERROR), b"");
            }
        }
    });
    HandshakeState(confirmed)
}

impl HandshakeState {
    /// Lets a request that came early go on, marked or once the handshake is over; whether it may.
    pub async fn admit(&mut self, head: &mut Parts, timeout: Duration) -> bool {
        if *self.0.borrow() {
            return true;
        }
        if head.method.is_safe() {
            head.headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
            return true;
        }
        let waited = tokio::time::timeout(timeout, self.0.wait_for(|is_over| *is_over)).await;
        matches!(waited, Ok(Ok(_)))
    }
}
