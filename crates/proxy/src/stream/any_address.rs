//! Datagrams that come to a socket on all addresses of the machine: which of them a client has sent to, so that answers
//! leave from there. Else the kernel would choose, and clients take no answers from elsewhere.

use nix::cmsg_space;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Reads and writes datagrams together with the local address that they came to.
pub struct AnyAddress {
    /// The space into which the kernel writes that address.
    space: RefCell<Vec<u8>>,
}

/// A datagram that came.
pub struct ReceivedDatagram {
    pub length: usize,
    pub client: SocketAddr,
    /// Its destination.
    pub local: IpAddr,
}

impl AnyAddress {
    /// For a socket that is bound to this address; `None`: it is one of the machine's, and so is every answer's.
    ///
    /// # Errors
    /// If the kernel does not say the address.
    pub fn of(socket: &UdpSocket, local: SocketAddr) -> io::Result<Option<Self>> {
        if !local.ip().is_unspecified() {
            return Ok(None);
        }
        match local {
            SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?,
            SocketAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?,
        }
        let space = RefCell::new(cmsg_space!(in6_pktinfo));
        Ok(Some(Self { space }))
    }

    /// Reads a datagram that is there.
    ///
    /// # Errors
    /// `WouldBlock`: there is no datagram.
    pub fn try_receive(&self, socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<ReceivedDatagram> {
        let space = &mut *self.space.borrow_mut();
        socket.try_io(Interest::READABLE, || {
            let mut parts = [IoSliceMut::new(buffer)];
            let came = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut parts,
                Some(&mut space[..]),
                MsgFlags::empty(),
            )?;
            let client = came.address.as_ref().and_then(socket_address);
            let local = came.cmsgs()?.find_map(|address| match address {
                // Of a datagram to many, this is the machine's own.
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr))))
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)))
                }
                _ => None,
            });
            let (client, local) = client.zip(local).ok_or(io::ErrorKind::InvalidData)?;
            let length = came.bytes;
            Ok(ReceivedDatagram {
                length,
                client,
                local,
            })
        })
    }

    /// Sends a datagram from one of the machine's addresses, if the socket has room for it.
    ///
    /// # Errors
    /// `WouldBlock`: it has none.
    pub fn try_send(
        &self,
        socket: &UdpSocket,
        datagram: &[u8],
        client: SocketAddr,
        local: IpAddr,
    ) -> io::Result<usize> {
        let parts = [IoSlice::new(datagram)];
        let client = SockaddrStorage::from(client);
        let send = |from: ControlMessage<'_>| -> io::Result<usize> {
            let count = sendmsg(
                socket.as_raw_fd(),
                &parts,
                &[from],
                MsgFlags::empty(),
                Some(&client),
            )?;
            Ok(count)
        };
        socket.try_io(Interest::WRITABLE, || match local {
            IpAddr::V4(local) => send(ControlMessage::Ipv4PacketInfo(&in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: in_addr {
                    s_addr: u32::from(local).to_be(),
                },
                ipi_addr: in_addr { s_addr: 0 },
            })),
            IpAddr::V6(local) => send(ControlMessage::Ipv6PacketInfo(&in6_pktinfo {
                ipi6_addr: in6_addr {
                    s6_addr: local.octets(),
                },
                ipi6_ifindex: 0,
            })),
        })
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let version4 = address.as_sockaddr_in().map(|it| SocketAddr::from(*it));
    version4.or_else(|| address.as_sockaddr_in6().map(|it| SocketAddr::from(*it)))
}
