//! Connections that do not leave the machine.

use rustix::net::sockopt::set_tcp_congestion;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use tokio::net::{TcpSocket, TcpStream};

/// The congestion control that every Linux has and everybody may choose. It does the least.
const SIMPLEST: &str = "reno";

/// Spares a socket the system's congestion control where the peers that it is for, or bound to, are on this machine:
/// there is no network to be careful with. Some systems have BBR for all connections, which models the path with each
/// acknowledgement and spreads what is sent over time.
pub fn spare_congestion_control(socket: impl AsFd, address: IpAddr) {
    if address.to_canonical().is_loopback() {
        // Where the system has another opinion, all works as well.
        let _refused = set_tcp_congestion(socket, SIMPLEST);
    }
}

/// Prepares a connection that a listener has taken in.
pub fn prepare(stream: &TcpStream, peer: IpAddr, listener: IpAddr) -> io::Result<()> {
    if !listener.to_canonical().is_loopback() {
        spare_congestion_control(stream, peer);
    }
    stream.set_nodelay(true)
}

/// Connects to a target.
pub async fn connect_tcp(address: SocketAddr) -> io::Result<TcpStream> {
    if !address.ip().to_canonical().is_loopback() {
        return TcpStream::connect(address).await;
    }
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Before the connection is made: from then on an algorithm has had its first say.
    spare_congestion_control(&socket, address.ip());
    socket.connect(address).await
}
