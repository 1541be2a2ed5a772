//! The PROXY protocol, versions 1 and 2: a balancer begins a connection with its client's address.
//!
//! The rules are those of HAProxy's specification (`doc/proxy-protocol.txt`). Reading is strict: what is not exactly a
//! header ends the connection. **What it is not**: it decides nothing about trust; [`ProxyProtocolTrust`] only holds what was
//! configured.

pub mod fuzzing;
mod parse;
mod read;
mod write;

pub use parse::ProxyHeader;
pub use read::read;
pub use write::header;

use ipnet::IpNet;
use std::net::IpAddr;

/// The peers that send their clients' addresses by the PROXY protocol, and the listeners for that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyProtocolTrust {
    /// Whose headers are believed. Their connections must begin with one; connections of others have none.
    pub networks: Vec<IpNet>,
    /// On listeners of HTTP in the clear.
    pub on_plain: bool,
    /// On listeners of HTTP over TLS; the header stands before the handshake.
    pub on_tls: bool,
    /// On listeners of streams over TCP.
    pub on_streams: bool,
}

impl ProxyProtocolTrust {
    /// Whether connections of this peer begin with a header.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        let canonical = peer.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&canonical) || network.contains(&peer))
    }
}
