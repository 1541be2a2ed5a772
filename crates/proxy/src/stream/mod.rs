//! Streams below HTTP: connections over TCP and TLS, and datagrams, that are carried to a target as they come.
//!
//! A session begins when a client connects, or sends its first datagram. A route takes it by what is known then: the
//! server name of a TLS handshake, the addresses of the client and of the listener. Its plugins are asked once. Then a
//! target is chosen as for calls (balancers, health and further tries are the same), and bytes go both ways until
//! both sides have ended or nothing moves any more. Then its plugins log it. A session holds its own route's values and
//! no snapshot, so a reload neither ends it nor is kept in memory by it.
//!
//! **What it is not**: it reads nothing of what is carried but the first message of a TLS handshake, and the first packet of
//! MQTT on routes that ask for it.

mod admission;
mod any_address;
mod connect;
mod datagram;
mod mqtt;
mod relay;
mod report;
mod session;
mod splice;

pub use datagram::listen as listen_datagrams;
pub use mqtt::fuzzing as mqtt_fuzzing;
pub use session::serve;

use std::net::SocketAddr;
use weir_model::StreamProtocol;
use weir_snapshot::StreamTransport;
use weir_telemetry::metrics::StreamKind;

/// An address at which streams are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamListen {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The transport of clients.
    pub transport: StreamTransport,
}

/// The metrics' name for this protocol.
fn kind(protocol: StreamProtocol) -> StreamKind {
    match protocol {
        StreamProtocol::Tcp => StreamKind::Tcp,
        StreamProtocol::Tls => StreamKind::Tls,
        StreamProtocol::TlsPassthrough => StreamKind::TlsPassthrough,
        StreamProtocol::Udp => StreamKind::Udp,
    }
}
