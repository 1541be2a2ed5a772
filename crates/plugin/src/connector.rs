//! How another server is reached, beyond its name and its port: certificates and names for TLS, and a proxy on the way.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weir_model::UpstreamTls;

/// Rules for connections to servers that filters ask. It is made once for an instance; connections made by different
/// connectors are never shared.
pub struct Connector {
    /// The TLS settings for servers, if the request goes over TLS.
    pub tls: UpstreamTls,
    /// The proxy that all connections go through; `None`: they go to the server itself.
    pub proxy: Option<HttpProxy>,
    id: u64,
    prepared: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// An HTTP proxy. Connections under TLS are tunnelled (`CONNECT`), other requests name the server in their target.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpProxy {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of `Proxy-Authorization`; `None` if the proxy needs no authentication.
    pub authorization: Option<String>,
}

impl Connector {
    /// A connector with a number of its own.
    #[must_use]
    pub fn new(tls: UpstreamTls, proxy: Option<HttpProxy>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            tls,
            proxy,
            id: LAST.fetch_add(1, Ordering::Relaxed),
            prepared: OnceLock::new(),
        }
    }

    /// Its number among all of the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What the engine has made of it, which lives as long as it does.
    pub fn prepared(&self) -> &OnceLock<Arc<dyn Any + Send + Sync>> {
        &self.prepared
    }
}

/// Keys and passwords are left out.
impl fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Connector({})", self.id)
    }
}

impl PartialEq for Connector {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Connector {}

/// The password is left out.
impl fmt::Debug for HttpProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HttpProxy({}:{})", self.host, self.port)
    }
}
