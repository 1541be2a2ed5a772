//! TLS of a QUIC connection: which certificate a client is shown depends on the server name that it asks for, which
//! its first message contains.
//!
//! Quinn wants to know the configuration before that message is there, so the session that it gets waits for the
//! message and only then becomes one.

use super::config::TlsBase;
use crate::shared::Shared;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::crypto::{self, ExportKeyingMaterialError, KeyPair, Keys, PacketKey, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::ServerConfig;
use rustls::server::Acceptor;
use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;
use weir_snapshot::ServerIdentity;

/// Longest first message of a client.
const MAX_HELLO: usize = 16 * 1024;
/// The protocol that is agreed on (RFC 9114, section 3.1).
const PROTOCOL: &[u8] = b"h3";

/// Begins handshakes, each by the rules that are served then.
pub struct TlsAcceptor {
    shared: Arc<Shared>,
    /// For what does not depend on a certificate.
    base: Arc<TlsBase>,
}

impl TlsAcceptor {
    /// The rules of a gateway.
    ///
    /// # Errors
    /// When the cryptography cannot be set up.
    pub fn new(shared: Arc<Shared>, base: Arc<TlsBase>) -> Arc<Self> {
        Arc::new(Self { shared, base })
    }

    /// The identity for clients of a server name (in lower case), and the configuration for that.
    fn find(&self, name: Option<&str>) -> Option<(Option<Arc<ServerIdentity>>, Arc<ServerConfig>)> {
        let published = self.shared.published.load();
        let presented = published.snapshot.tls.find(name);
        let config = presented
            .map(|presented| &presented.config)
            .or(self.shared.fallback_tls.as_ref())?;
        // Handshakes are rare compared with calls, and what is copied is a list of pointers.
        let mut config = ServerConfig::clone(config);
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Who has to show a certificate does so each time.
        let may_be_early = !presented.is_some_and(|presented| presented.requests_client_certificate);
        if let Some(early) = self.base.early.as_ref().filter(|_| may_be_early) {
            config.ticketer = Arc::clone(&early.no_tickets);
            config.session_storage = Arc::clone(&early.sessions);
            // QUIC bounds it by the windows of streams (RFC 9001, section 4.6.1).
            config.max_early_data_size = u32::MAX;
        }
        Some((presented.cloned(), Arc::new(config)))
    }
}

/// The facts about a client from a handshake.
#[derive(Clone, Default)]
pub struct HandshakeFacts {
    /// The server name that it asked for, in lower case.
    pub server_name: Option<Arc<str>>,
    /// The identity that it was shown; `None`: nothing is configured for its name.
    pub presented: Option<Arc<ServerIdentity>>,
}

impl crypto::ServerConfig for TlsAcceptor {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.base.crypto.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.base.crypto.retry_tag(version, id, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(PendingHandshake {
            waiting: Arc::clone(&self.base.crypto).start_session(version, parameters),
            rules: self,
            version,
            parameters: *parameters,
            came: Vec::new(),
            facts: None,
        })
    }
}

/// A handshake, before and after the client's first message.
struct PendingHandshake {
    rules: Arc<TlsAcceptor>,
    version: u32,
    parameters: TransportParameters,
    /// The received part of the first message.
    came: Vec<u8>,
    /// Once that is whole.
    facts: Option<HandshakeFacts>,
    /// The session: at first one that is asked nothing but for keys that all share.
    waiting: Box<dyn Session>,
}

impl PendingHandshake {
    /// Takes a part of the first message in; once it is whole, the session begins.
    fn begin(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if self.came.len() + bytes.len() > MAX_HELLO {
            return Err(alert(
                rustls::AlertDescription::DecodeError,
                "too long a first message",
            ));
        }
        self.came.extend_from_slice(bytes);
        let Some(name) = server_name(&self.came)? else {
            return Ok(false);
        };
        let server_name = name.map(|name| Arc::<str>::from(name.to_ascii_lowercase()));
        let Some((presented, config)) = self.rules.find(server_name.as_deref()) else {
            let what = "no certificate for the server name";
            return Err(alert(rustls::AlertDescription::UnrecognisedName, what));
        };
        let config = QuicServerConfig::try_from(config).map_err(|_| {
            alert(
                rustls::AlertDescription::InternalError,
                "no cipher suite for QUIC",
            )
        })?;
        self.waiting = crypto::ServerConfig::start_session(Arc::new(config), self.version, &self.parameters);
        self.facts = Some(HandshakeFacts {
            server_name,
            presented,
        });
        let came = std::mem::take(&mut self.came);
        self.waiting.read_handshake(&came)
    }
}

/// The server name of a client's first message (the inner value), once the message is whole.
pub fn server_name(message: &[u8]) -> Result<Option<Option<String>>, TransportError> {
    // One byte for its kind and three for its length (RFC 8446, section 4).
    let Some((&[kind, high, middle, low], body)) = message.split_first_chunk() else {
        return Ok(None);
    };
    let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    if kind != 1 || length > MAX_HELLO {
        return Err(alert(
            rustls::AlertDescription::UnexpectedMessage,
            "no first message",
        ));
    }
    if body.len() < length {
        return Ok(None);
    }
    // Over TCP it comes in records, and the parser expects them.
    let mut acceptor = Acceptor::default();
    for part in message.chunks(MAX_HELLO) {
        let mut record = vec![22, 3, 1];
        record.extend_from_slice(&(part.len() as u16).to_be_bytes());
        record.extend_from_slice(part);
        acceptor
            .read_tls(&mut Cursor::new(record))
            .map_err(|_| alert(rustls::AlertDescription::DecodeError, "no first message"))?;
    }
    match acceptor.accept() {
        Ok(Some(accepted)) => Ok(Some(accepted.client_hello().server_name().map(str::to_owned))),
        Ok(None) => Ok(None),
        Err((error, _)) => Err(alert(rustls::AlertDescription::DecodeError, &error.to_string())),
    }
}

fn alert(what: rustls::AlertDescription, reason: &str) -> TransportError {
    TransportError {
        code: TransportErrorCode::crypto(what.into()),
        frame: None,
        reason: reason.to_owned(),
    }
}

impl Session for PendingHandshake {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        self.waiting.initial_keys(id, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.waiting.handshake_data()?;
        self.facts.clone().map(|facts| Box::new(facts) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.waiting.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn PacketKey>)> {
        self.waiting.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.waiting.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.waiting.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        match self.facts.is_some() {
            true => self.waiting.read_handshake(bytes),
            false => self.begin(bytes),
        }
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.waiting.transport_parameters()
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        match self.facts.is_some() {
            true => self.waiting.write_handshake(bytes),
            false => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.waiting.next_1rtt_keys()
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.waiting.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.waiting.export_keying_material(output, label, context)
    }
}
