//! A session over TCP, from the client's connection to its end.

use super::admission::{ask, forward_of};
use super::connect::TargetRequest;
use super::relay::{self, RelaySide};
use super::report::SessionRecord;
use super::{kind, mqtt};
use crate::client::Addresses;
use crate::proxy_protocol;
use crate::transport::{self, ClientHello};
use crate::worker::{ConnectionGuard, Worker, WorkerSnapshot};
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use weir_model::StreamProtocol;
use weir_snapshot::{SessionInfo, StreamRoute, StreamTransport};
use weir_telemetry::metrics::{ProtocolError, StreamKind, StreamResult};

/// Carries a connection until it is over.
pub async fn serve(guard: ConnectionGuard, tcp: TcpStream, addresses: Addresses, is_tls: bool) {
    let worker = guard.attach().await;
    let first_kind = if is_tls { StreamKind::Tls } else { StreamKind::Tcp };
    let mut report = SessionRecord::new(&worker, first_kind, addresses);
    let session = Session {
        worker: &worker,
        addresses,
    };
    let ended = session.relay(tcp, is_tls, &mut report).await;
    report.end(ended.unwrap_or_else(|early| early));
}

struct Session<'s> {
    worker: &'s Rc<Worker>,
    addresses: Addresses,
}

/// A client's connection once a route has taken it.
enum ClientStream {
    Plain(TcpStream),
    Tls(TcpStream, Box<ClientHello>),
}

impl Session<'_> {
    /// Both say how the session has ended; an error, before anything was carried.
    async fn relay(
        &self,
        mut tcp: TcpStream,
        is_tls: bool,
        report: &mut SessionRecord,
    ) -> Result<StreamResult, StreamResult> {
        let arrived = match is_tls {
            false => ClientStream::Plain(tcp),
            true => {
                let timeout = self.worker.shared.limits.header_timeout;
                let hello = tokio::time::timeout(timeout, transport::read_hello(&mut tcp)).await;
                let hello = self.shaken(hello.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))?;
                report.server_name = hello.server_name();
                ClientStream::Tls(tcp, Box::new(hello))
            }
        };
        // Held until the target is reached, and no longer.
        let serving = self.worker.serving();
        let (route, protocol) = self.find(&serving, report, is_tls)?;
        let name = report.server_name.clone();
        let asked = ask(self.worker, route, self.addresses, is_tls, report).await;
        asked.map_err(|_| StreamResult::Refused)?;
        let forward = forward_of(&serving.published.snapshot, route, report).ok_or(StreamResult::NoRoute)?;
        let (mut client, mut first) = self.client_side(arrived, protocol, &serving).await?;
        let mut mqtt_client_id = None;
        if let Some(expected) = &route.mqtt {
            let timeout = self.worker.shared.limits.header_timeout;
            let read = tokio::time::timeout(timeout, mqtt::read(&mut client.read, expected)).await;
            let read = read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let read = read.map_err(|error| {
                tracing::debug!(%error, client = %self.addresses.peer, "a session does not speak MQTT");
                StreamResult::Refused
            })?;
            (first, mqtt_client_id) = (read.received, read.id);
        }
        let request = TargetRequest {
            worker: self.worker,
            serving: &serving,
            forward,
            client: self.addresses.peer.ip(),
            server_name: name.as_deref(),
            mqtt_client_id: mqtt_client_id.as_deref(),
        };
        let greeting = self.greeting(route);
        let target = request.connect(&greeting, report).await?;
        let idle = Duration::from_millis(route.idle_timeout_ms);
        drop(serving);
        let side = RelaySide {
            read: target.read,
            write: target.write,
        };
        let (_busy, _open) = (target.busy, target.open);
        Ok(relay::run(self.worker, client, side, first, idle, report).await)
    }

    fn find<'r>(
        &self,
        serving: &'r WorkerSnapshot,
        report: &mut SessionRecord,
        is_tls: bool,
    ) -> Result<(&'r StreamRoute, StreamProtocol), StreamResult> {
        let streams = &serving.published.snapshot.streams;
        let found = streams.find(&SessionInfo {
            transport: match is_tls {
                true => StreamTransport::Tls,
                false => StreamTransport::Tcp,
            },
            server_name: report.server_name.as_deref(),
            source: self.addresses.peer,
            destination: self.addresses.local,
        });
        let (position, protocol) = found.ok_or(StreamResult::NoRoute)?;
        let route = &streams.routes[position];
        report.facts = Some(Arc::clone(&route.facts));
        report.is_of(kind(protocol));
        Ok((route, protocol))
    }

    /// The client's side, and what it has said that is for the target.
    async fn client_side(
        &self,
        arrived: ClientStream,
        protocol: StreamProtocol,
        serving: &WorkerSnapshot,
    ) -> Result<(RelaySide, Vec<u8>), StreamResult> {
        let (tcp, hello) = match arrived {
            ClientStream::Plain(tcp) => return Ok((plain(tcp), Vec::new())),
            ClientStream::Tls(tcp, hello) => (tcp, hello),
        };
        if protocol == StreamProtocol::TlsPassthrough {
            return Ok((plain(tcp), hello.bytes));
        }
        let config = self.config(serving, hello.server_name().as_deref());
        let config = config.ok_or(StreamResult::Handshake)?;
        let timeout = self.worker.shared.limits.header_timeout;
        let shaken = tokio::time::timeout(timeout, hello.answer(tcp, config)).await;
        let shaken = self.shaken(shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))?;
        let (read, write) = crate::halves::secure(shaken.stream);
        Ok((RelaySide { read, write }, Vec::new()))
    }

    fn config(&self, serving: &WorkerSnapshot, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        let presented = serving.published.snapshot.tls.find(name);
        presented
            .map(|presented| Arc::clone(&presented.stream_config))
            .or_else(|| self.worker.shared.fallback_stream_tls.clone())
    }

    fn shaken<T>(&self, shaken: io::Result<T>) -> Result<T, StreamResult> {
        shaken.map_err(|error| {
            self.worker.metrics.protocol_error(ProtocolError::TlsHandshake);
            tracing::debug!(%error, client = %self.addresses.peer, "a TLS handshake failed");
            StreamResult::Handshake
        })
    }

    /// The header about the client for the target.
    fn greeting(&self, route: &StreamRoute) -> Vec<u8> {
        let Addresses { peer, local } = self.addresses;
        let header = |version| proxy_protocol::header(version, peer, canonical(local));
        route.proxy_protocol.map(header).unwrap_or_default()
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn plain(tcp: TcpStream) -> RelaySide {
    let (read, write) = crate::halves::plain(tcp);
    RelaySide { read, write }
}
