//! The entry of HTTP/3: UDP sockets on the ports of the listeners for TLS, and the limits for clients.
//!
//! Each worker has a socket of its own on every address (`SO_REUSEPORT`). The kernel gives all packets between two
//! addresses to one of them, so a connection stays with its worker as long as the client keeps its address: clients
//! are asked not to move (RFC 9000, 18.2, `disable_active_migration`). One that does so all the same, as when its
//! network changes, gets a packet from another worker that resets its connection, for which all workers share a key.

use super::config::Common;
use super::handshake::TlsAcceptor;
use super::server;
use super::stream_io::code;
use crate::panics::AbortOnPanic;
use crate::shared::Shared;
use crate::worker::{ConnectionGuard, Worker};
use h3::error::Code;
use quinn::{Endpoint, Incoming, TokioRuntime, TransportConfig};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use weir_telemetry::metrics::ProtocolError;

/// Data that a client may send ahead on a stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Data that waits on a connection to be sent, or to be sent once more.
const SEND_WINDOW: u64 = 1024 * 1024;
/// Streams that a client may have open in addition to requests: control, and two for QPACK, are all that it needs.
const MAX_BESIDE: u32 = 8;
/// Handshakes under way in a worker from which on clients have to prove their address.
const BUSY: usize = 64;
/// Bytes that wait in connections that were not looked at yet: of each, and of all.
const MAX_WAITING: u64 = 16 * 1024;
const MAX_WAITING_TOTAL: u64 = 4 * 1024 * 1024;
/// Connections that were not looked at yet.
const MAX_UNSEEN: usize = 1024;
/// How long clients may take to learn that their connections have ended.
const GOOD_BYE: Duration = Duration::from_millis(50);

fn open_one(common: &Common, shared: &Arc<Shared>, socket: UdpSocket) -> io::Result<Endpoint> {
    let mut server = common.server.clone();
    server.crypto = TlsAcceptor::new(Arc::clone(shared), Arc::clone(&common.base));
    server
        .migration(false)
        .max_incoming(MAX_UNSEEN)
        .incoming_buffer_size(MAX_WAITING)
        .incoming_buffer_size_total(MAX_WAITING_TOTAL)
        .transport_config(Arc::new(transport(shared)));
    Endpoint::new(
        common.endpoint.clone(),
        Some(server),
        socket,
        Arc::new(TokioRuntime),
    )
}

fn transport(shared: &Shared) -> TransportConfig {
    let limits = &shared.limits;
    let mut transport = TransportConfig::default();
    // A connection whose calls take long is kept; one without calls ends by the session's own clock.
    let idle = limits.idle_timeout.max(Duration::from_secs(1));
    transport
        .max_concurrent_bidi_streams(limits.max_streams.into())
        .max_concurrent_uni_streams(MAX_BESIDE.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(SEND_WINDOW)
        .max_idle_timeout(idle.try_into().ok())
        .keep_alive_interval(Some(idle / 3))
        .datagram_receive_buffer_size(None);
    transport
}

/// Opens a worker's endpoints on these sockets.
pub fn open(shared: &Arc<Shared>, sockets: Vec<UdpSocket>) -> Vec<Endpoint> {
    let Some((_, common)) = &shared.http3 else {
        return Vec::new();
    };
    let open = |socket| match open_one(common, shared, socket) {
        Ok(endpoint) => Some(endpoint),
        Err(error) => {
            tracing::error!(%error, "a UDP socket cannot be used");
            None
        }
    };
    sockets.into_iter().filter_map(open).collect()
}

/// Takes connections until draining begins.
pub async fn accept(worker: Rc<Worker>, endpoint: Endpoint, mut drain: watch::Receiver<bool>) {
    let Ok(local) = endpoint.local_addr() else { return };
    let _alive = AbortOnPanic("a listener for QUIC");
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            _ = drain.wait_for(|draining| *draining) => break,
        };
        let Some(incoming) = incoming else { break };
        accept_connection(&worker, incoming, local);
    }
    // From here on new clients are refused.
    endpoint.set_server_config(None);
}

fn accept_connection(worker: &Rc<Worker>, incoming: Incoming, local: SocketAddr) {
    if !worker.has_room() {
        return incoming.refuse();
    }
    if worker.handshakes.get() >= BUSY && !incoming.remote_address_validated() && incoming.may_retry() {
        // It may, or so was just said.
        let _is_asked = incoming.retry();
        return;
    }
    let peer = incoming.remote_address();
    match incoming.accept() {
        Ok(connecting) => {
            let guard = ConnectionGuard::new(worker);
            tokio::task::spawn_local(server::serve(guard, connecting, local));
        }
        Err(error) => {
            worker.metrics.protocol_error(ProtocolError::QuicHandshake);
            tracing::debug!(%error, client = %peer, "a QUIC connection cannot be accepted");
        }
    }
}

/// Ends what connections are left.
pub async fn close(endpoints: &[Endpoint]) {
    for endpoint in endpoints {
        endpoint.close(code(Code::H3_NO_ERROR), b"");
    }
    let all = async {
        for endpoint in endpoints {
            endpoint.wait_idle().await;
        }
    };
    // Who has not heard of it by then will find out.
    let _all_know = tokio::time::timeout(GOOD_BYE, all).await;
}
