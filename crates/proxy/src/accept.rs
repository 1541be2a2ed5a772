//! Taking connections in: from a listener's queue to a task of their own, if there is room.

use crate::bind::ListenerKind;
use crate::client::Addresses;
use crate::connection;
use crate::multiplex::task_pool::TaskPool;
use crate::panics::AbortOnPanic;
use crate::proxy_protocol::{self, ProxyHeader};
use crate::stream;
use crate::worker::{ConnectionGuard, HOUSEKEEPING, Worker};
use socket2::SockRef;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;
use weir_telemetry::metrics::ProtocolError;

/// How long a worker waits after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Takes connections in until the worker drains.
pub async fn listen(
    worker: Rc<Worker>,
    tasks: Rc<TaskPool>,
    listener: TcpListener,
    kind: ListenerKind,
    mut drain: watch::Receiver<bool>,
) {
    let Ok(local) = listener.local_addr() else { return };
    let _alive = AbortOnPanic("a listener");
    let is_prompt = is_prompt(&listener);
    let mut warned_at: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = drain.wait_for(|draining| *draining) => break,
        };
        match accepted {
            Ok((stream, _)) if !is_prompt && stream.set_nodelay(true).is_err() => {}
            Ok((stream, peer)) => accept_connection(&worker, &tasks, stream, Addresses { peer, local }, kind),
            Err(error) => {
                // Usually out of descriptors; connections that end free some.
                if warned_at.is_none_or(|at| at.elapsed() > HOUSEKEEPING) {
                    tracing::warn!(%error, "connections cannot be accepted");
                    warned_at = Some(Instant::now());
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // What waits in the accept queue was promised an answer; it is taken before the listener goes.
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((stream, peer)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && (is_prompt || stream.set_nodelay(true).is_ok())
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            accept_connection(&worker, &tasks, stream, Addresses { peer, local }, kind);
        }
    }
}

/// Makes the connections of a listener send small segments at once; returns whether they inherit that from it, as on
/// Linux. Otherwise the option is set on each connection, which costs a system call.
fn is_prompt(listener: &TcpListener) -> bool {
    cfg!(target_os = "linux") && SockRef::from(listener).set_tcp_nodelay(true).is_ok()
}

fn accept_connection(
    worker: &Rc<Worker>,
    tasks: &Rc<TaskPool>,
    stream: TcpStream,
    addresses: Addresses,
    kind: ListenerKind,
) {
    if !worker.has_room() {
        return;
    }
    let guard = ConnectionGuard::new(worker);
    let tasks = Rc::clone(tasks);
    let uses_proxy_protocol = kind.uses_proxy_protocol
        && (worker.shared.proxy_protocol.as_ref()).is_some_and(|it| it.trusts(addresses.peer.ip()));
    match (uses_proxy_protocol, kind.is_stream) {
        (true, _) => spawn_local(serve_proxy_protocol(guard, tasks, stream, addresses, kind)),
        (false, false) => spawn_local(connection::serve(guard, tasks, stream, addresses, kind.is_tls)),
        (false, true) => spawn_local(stream::serve(guard, stream, addresses, kind.is_tls)),
    };
}

/// Serves a connection whose peer first sends its client's address.
async fn serve_proxy_protocol(
    guard: ConnectionGuard,
    tasks: Rc<TaskPool>,
    tcp: TcpStream,
    mut addresses: Addresses,
    kind: ListenerKind,
) {
    let worker = &guard.worker;
    let timeout = worker.shared.limits.header_timeout;
    let header = tokio::time::timeout(timeout, proxy_protocol::read(&tcp)).await;
    match header.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
        // A tool that looks whether the gateway is there may say nothing at all.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return,
        Err(error) => {
            worker.metrics.protocol_error(ProtocolError::ProxyProtocol);
            tracing::debug!(%error, peer = %addresses.peer, "a new connection cannot be used and is closed");
            return;
        }
        Ok(ProxyHeader::Nothing) => {}
        Ok(ProxyHeader::Client { source, .. }) => addresses.peer = source,
    }
    match kind.is_stream {
        false => Box::pin(connection::serve(guard, tasks, tcp, addresses, kind.is_tls)).await,
        true => Box::pin(stream::serve(guard, tcp, addresses, kind.is_tls)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_send_small_segments_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(is_prompt(&listener), cfg!(target_os = "linux"));
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        assert_eq!(stream.nodelay().unwrap(), cfg!(target_os = "linux"));
    }
}
