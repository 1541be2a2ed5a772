//! How HTTP/3 is served, and what its sockets and handshakes have in common. Nothing is opened here.

use quinn::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use quinn::{EndpointConfig, ServerConfig};
use quinn_proto::HashedConnectionIdGenerator;
use rustls::server::{
    ProducesTickets, ResolvesServerCertUsingSni, ServerSessionMemoryCache, StoresServerSessions,
};
use std::io;
use std::sync::Arc;

/// Sessions that are kept so that their clients may send requests at once. The oldest makes room for the newest.
const MAX_SESSIONS: usize = 8192;

/// How HTTP/3 is served.
#[derive(Debug, Clone, Default)]
pub struct Http3 {
    /// The port in `Alt-Svc`; `None`: that of the listener.
    pub told_port: Option<u16>,
    /// Whether resumed sessions may begin with requests (0-RTT; RFC 8470).
    pub early_data: bool,
}

/// The common part of all workers' sockets.
#[derive(Clone)]
pub struct Common {
    pub(super) endpoint: EndpointConfig,
    pub(super) server: ServerConfig,
    pub(super) base: Arc<TlsBase>,
}

impl Common {
    /// Draws the keys; `seed` makes connections' numbers differ from those of other gateways.
    ///
    /// # Errors
    /// When the cryptography cannot be set up.
    pub fn new(http3: &Http3, seed: u64) -> io::Result<Self> {
        let base = base(http3.early_data).map_err(io::Error::other)?;
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(seed)));
        // The key of tokens is drawn here as well.
        let server =
            ServerConfig::with_crypto(Arc::clone(&base.crypto) as Arc<dyn quinn::crypto::ServerConfig>);
        Ok(Self {
            endpoint,
            server,
            base,
        })
    }
}

/// The settings that no certificate changes.
pub struct TlsBase {
    pub crypto: Arc<QuicServerConfig>,
    /// Set if resumed sessions may begin with requests.
    pub(super) early: Option<Early>,
}

/// Resumption by what is kept here in place of tickets that carry all: whatever a session is resumed by works once,
/// so that its first flight cannot be replayed (RFC 8446, section 8.1).
pub(super) struct Early {
    pub(super) sessions: Arc<dyn StoresServerSessions>,
    pub(super) no_tickets: Arc<dyn ProducesTickets>,
}

/// The settings of a connection before the server name is known; `takes_early`: resumed sessions may
/// begin with requests.
///
/// # Errors
/// When the cryptography cannot be set up.
fn base(takes_early: bool) -> Result<Arc<TlsBase>, Box<dyn std::error::Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    let early = takes_early.then(|| Early {
        sessions: ServerSessionMemoryCache::new(MAX_SESSIONS),
        // None are made unless the configuration says so.
        no_tickets: Arc::clone(&config.ticketer),
    });
    let crypto =
        QuicServerConfig::try_from(config).map_err(|error: NoInitialCipherSuite| error.to_string())?;
    Ok(Arc::new(TlsBase {
        crypto: Arc::new(crypto),
        early,
    }))
}
