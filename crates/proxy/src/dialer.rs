//! Connections to servers that are named beside routes: log targets and message brokers.

use crate::dns::Resolver;
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::dial;
use crate::shared::Shared;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// What it takes to connect.
#[derive(Clone, Copy)]
pub struct Dialer<'d> {
    pub shared: &'d Shared,
    pub resolver: &'d Rc<Resolver>,
}

impl Dialer<'_> {
    /// The address of a server.
    pub async fn resolve(self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let ip = match host.parse() {
            Ok(ip) => ip,
            Err(_) => {
                let resolved = self.resolver.resolve(host, Instant::now()).await;
                resolved
                    .map_err(|_| io::Error::new(io::ErrorKind::NotFound, "the name cannot be resolved"))?
            }
        };
        Ok(SocketAddr::new(ip, port))
    }

    /// The rules for a server that is met by this name.
    pub fn tls(self, name: &str, verify: bool) -> io::Result<(Arc<ClientConfig>, ServerName<'static>)> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let published = self.shared.published.load();
        let rules = published.snapshot.ad_hoc_tls.tls(verify)?;
        Ok((rules.config.clone(), name))
    }

    /// Connects; `tls`: whether certificates are verified, if there is TLS.
    pub async fn connect(
        self,
        host: &str,
        port: u16,
        tls: Option<bool>,
    ) -> io::Result<(ReadHalf, WriteHalf)> {
        let address = self.resolve(host, port).await?;
        let rules = tls.map(|verify| self.tls(host, verify));
        dial(address, rules.transpose()?).await
    }
}
