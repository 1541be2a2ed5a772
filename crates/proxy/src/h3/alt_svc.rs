//! Announces HTTP/3 to clients of HTTP/1.1 and HTTP/2 (`Alt-Svc`; RFC 7838).

use crate::shared::Shared;
use quinn::Endpoint;
use std::net::SocketAddr;
use std::rc::Rc;

/// The field's line, by the port of the listener that a client has come to.
#[derive(Default)]
pub struct Alternatives(Vec<(u16, Rc<[u8]>)>);

impl Alternatives {
    /// The announcements of these endpoints.
    pub fn of(endpoints: &[Endpoint], shared: &Shared) -> Self {
        let advertised = shared.http3.as_ref().and_then(|(http3, _)| http3.told_port);
        let ports = endpoints
            .iter()
            .filter_map(|endpoint| endpoint.local_addr().ok())
            .map(|address| address.port());
        let line = |port: u16| {
            let line = format!("Alt-Svc: h3=\":{}\"; ma=86400\r\n", advertised.unwrap_or(port));
            (port, Rc::from(line.into_bytes()))
        };
        Self(ports.map(line).collect())
    }

    /// The announcement for clients of a listener; `None`: it has no counterpart.
    pub fn line(&self, local: SocketAddr) -> Option<Rc<[u8]>> {
        let found = self.0.iter().find(|(port, _)| *port == local.port());
        found.map(|(_, line)| Rc::clone(line))
    }
}
