//! Binding a worker's sockets. The kernel spreads connections, and clients of datagrams, over the workers that share
//! an address.

use crate::proxy_protocol::ProxyProtocolTrust;
use crate::stream::StreamListen;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use weir_snapshot::StreamTransport;

/// The size of a datagram socket's buffers, each way, for workers that read late; the system bounds it.
const DATAGRAM_BUFFER: usize = 1024 * 1024;

/// The addresses that a gateway is bound to.
#[derive(Debug, Clone)]
pub struct ListenAddresses {
    /// For cleartext.
    pub plain: Vec<SocketAddr>,
    /// For TLS.
    pub tls: Vec<SocketAddr>,
    /// For HTTP/3: the listeners for TLS whose UDP port was free.
    pub http3: Vec<SocketAddr>,
    /// For streams below HTTP.
    pub streams: Vec<StreamListen>,
}

/// A socket that takes connections.
pub struct Listener {
    pub socket: std::net::TcpListener,
    /// The kind of its connections.
    pub entry: ListenerKind,
}

/// How the connections of a listener are served.
#[derive(Debug, Clone, Copy)]
pub struct ListenerKind {
    /// Clients begin with a TLS handshake.
    pub is_tls: bool,
    /// They are carried as they come, below HTTP.
    pub is_stream: bool,
    /// Trusted peers begin by sending their clients' addresses.
    pub uses_proxy_protocol: bool,
}

/// A worker's sockets.
pub struct Sockets {
    /// For connections.
    pub listeners: Vec<Listener>,
    /// For datagrams of streams.
    pub datagrams: Vec<UdpSocket>,
    /// For HTTP/3.
    pub quic: Vec<UdpSocket>,
}

/// Binds every address, and returns them. `tries_http3`: serve HTTP/3 at each listener for TLS whose UDP port is
/// free; otherwise only at the addresses for HTTP/3.
///
/// # Errors
/// The first that cannot be bound.
pub fn bind(
    addresses: &ListenAddresses,
    trusted: Option<&ProxyProtocolTrust>,
    tries_http3: bool,
) -> io::Result<(Sockets, ListenAddresses)> {
    let mut sockets = Sockets {
        listeners: Vec::with_capacity(addresses.plain.len() + addresses.tls.len()),
        datagrams: Vec::new(),
        quic: Vec::new(),
    };
    let uses_proxy_protocol = |on: fn(&ProxyProtocolTrust) -> bool| trusted.is_some_and(on);
    let plain = ListenerKind {
        is_tls: false,
        is_stream: false,
        uses_proxy_protocol: uses_proxy_protocol(|it| it.on_plain),
    };
    let tls = ListenerKind {
        is_tls: true,
        is_stream: false,
        uses_proxy_protocol: uses_proxy_protocol(|it| it.on_tls),
    };
    let tls = sockets.listen_all(&addresses.tls, tls)?;
    let bound = ListenAddresses {
        plain: sockets.listen_all(&addresses.plain, plain)?,
        http3: match tries_http3 {
            true => sockets.try_quic(&tls),
            false => sockets.take_quic(&addresses.http3)?,
        },
        tls,
        streams: sockets.take_streams(&addresses.streams, uses_proxy_protocol(|it| it.on_streams))?,
    };
    Ok((sockets, bound))
}

impl Sockets {
    fn listen_all(&mut self, addresses: &[SocketAddr], entry: ListenerKind) -> io::Result<Vec<SocketAddr>> {
        addresses.iter().map(|it| self.listen(*it, entry)).collect()
    }

    fn listen(&mut self, address: SocketAddr, entry: ListenerKind) -> io::Result<SocketAddr> {
        let socket = open(address, Type::STREAM, Protocol::TCP)
            .and_then(|socket| socket.listen(4096).map(|()| socket))
            .map_err(|error| listen_error(address, &error))?;
        let socket = std::net::TcpListener::from(socket);
        let bound = socket.local_addr()?;
        self.listeners.push(Listener { socket, entry });
        Ok(bound)
    }

    fn take_streams(
        &mut self,
        streams: &[StreamListen],
        uses_proxy_protocol: bool,
    ) -> io::Result<Vec<StreamListen>> {
        let mut take = |stream: &StreamListen| {
            let entry = ListenerKind {
                is_tls: stream.transport == StreamTransport::Tls,
                is_stream: true,
                uses_proxy_protocol,
            };
            let address = match stream.transport {
                StreamTransport::Tcp | StreamTransport::Tls => self.listen(stream.address, entry)?,
                StreamTransport::Udp => self.take_datagrams(stream.address)?,
            };
            Ok(StreamListen { address, ..*stream })
        };
        streams.iter().map(&mut take).collect()
    }

    fn take_datagrams(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let socket = open_datagrams(address).map_err(|error| listen_error(address, &error))?;
        let bound = socket.local_addr()?;
        self.datagrams.push(socket);
        Ok(bound)
    }

    /// Opens UDP sockets at the ports of these listeners, as far as they are free.
    fn try_quic(&mut self, listeners: &[SocketAddr]) -> Vec<SocketAddr> {
        let open = |address: &SocketAddr| match open_datagrams(*address) {
            Ok(socket) => {
                self.quic.push(socket);
                Some(*address)
            }
            Err(error) => {
                tracing::warn!(%address, %error, "HTTP/3 is not served here: the UDP port is not available");
                None
            }
        };
        listeners.iter().filter_map(open).collect()
    }

    /// Opens the sockets that the first worker has.
    fn take_quic(&mut self, addresses: &[SocketAddr]) -> io::Result<Vec<SocketAddr>> {
        for address in addresses {
            let socket = open_datagrams(*address).map_err(|error| listen_error(*address, &error))?;
            self.quic.push(socket);
        }
        Ok(addresses.to_vec())
    }
}

fn open(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if kind == Type::STREAM {
        // For datagrams, this would let other processes take the workers' port.
        socket.set_reuse_address(true)?;
    }
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn open_datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(address, Type::DGRAM, Protocol::UDP)?;
    // If the system grants less, there is less room for bursts.
    let _smaller = socket.set_recv_buffer_size(DATAGRAM_BUFFER);
    let _smaller = socket.set_send_buffer_size(DATAGRAM_BUFFER);
    Ok(socket.into())
}

fn listen_error(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}
