//! How log targets are reached: names and TLS. Connections are the senders'.

use super::context::SinkContext;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// The address of a server.
pub async fn resolve(sink_context: &SinkContext, host: &str, port: u16) -> io::Result<SocketAddr> {
    let ip = match host.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let resolved = sink_context.resolver.resolve(host, Instant::now()).await;
            resolved.map_err(|_| io::Error::new(io::ErrorKind::NotFound, "the name cannot be resolved"))?
        }
    };
    Ok(SocketAddr::new(ip, port))
}

/// The rules for a server that is met by this name.
pub fn tls(
    sink_context: &SinkContext,
    name: &str,
    verify: bool,
) -> io::Result<(Arc<ClientConfig>, ServerName<'static>)> {
    let name = ServerName::try_from(name.to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let published = sink_context.shared.published.load();
    let rules = published.snapshot.ad_hoc_tls.tls(verify)?;
    Ok((rules.config.clone(), name))
}
