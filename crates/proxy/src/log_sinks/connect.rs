//! How log targets are reached: names and TLS. Connections are the senders'.

use super::context::SinkContext;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The address of a server.
pub async fn resolve(sink_context: &SinkContext, host: &str, port: u16) -> io::Result<SocketAddr> {
    sink_context.dialer().resolve(host, port).await
}

/// The rules for a server that is met by this name.
pub fn tls(
    sink_context: &SinkContext,
    name: &str,
    verify: bool,
) -> io::Result<(Arc<ClientConfig>, ServerName<'static>)> {
    sink_context.dialer().tls(name, verify)
}
