//! What clients are shown, and what is asked of them.

use super::{Unusable, authorities, certified_key, provider};
use crate::carry::Carry;
use rustls::server::{ClientHello, ProducesTickets, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::collections::HashMap;
use std::sync::Arc;
use weir_model::{Certificate, Diagnostic, DocPath, TlsVersion};

/// The protocols that clients are offered (RFC 7301), the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What clients are shown, by server name.
#[derive(Debug, Default)]
pub struct ServerTls {
    exact: HashMap<String, Arc<Presented>>,
    /// `*.rest`, by the rest.
    any_first: HashMap<String, Arc<Presented>>,
    /// `start.*`, by the start.
    any_last: HashMap<String, Arc<Presented>>,
    others: Option<Arc<Presented>>,
    /// Whether any client must show a certificate, so that names matter beyond the handshake.
    pub asks_clients: bool,
}

/// What clients of some names are shown.
#[derive(Debug)]
pub struct Presented {
    /// For the handshake.
    pub config: Arc<ServerConfig>,
    /// Whether clients are asked for a certificate.
    pub asks_clients: bool,
}

impl Presented {
    /// What clients of this certificate's names are shown.
    ///
    /// # Errors
    /// What is wrong with it; the path leads into the certificate.
    pub fn of(certificate: &Certificate, carry: &Carry) -> Result<Self, Diagnostic> {
        present(certificate, &DocPath::root(), carry)
    }
}

impl ServerTls {
    pub(crate) fn compile(
        certificates: &[Certificate],
        carry: &Carry,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut compiled = Self::default();
        for (index, certificate) in certificates.iter().enumerate() {
            let place = DocPath::root().field("certificates").index(index);
            let presented = carry.presented(certificate, || present(certificate, &place, carry));
            match presented {
                Ok(presented) => compiled.add(certificate, &presented, &place, diagnostics),
                Err(found) => diagnostics.push(found),
            }
        }
        compiled
    }

    fn add(
        &mut self,
        certificate: &Certificate,
        presented: &Arc<Presented>,
        place: &DocPath,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        self.asks_clients |= presented.asks_clients;
        for (index, name) in certificate.names.iter().enumerate() {
            let name = name.to_ascii_lowercase();
            let presented = Arc::clone(presented);
            match (name.strip_prefix("*."), name.strip_suffix(".*")) {
                _ if name == "*" => self.others = Some(presented),
                (Some(rest), _) if is_name(rest) => {
                    self.any_first.insert(rest.to_owned(), presented);
                }
                (_, Some(start)) if is_name(start) => {
                    self.any_last.insert(start.to_owned(), presented);
                }
                _ if is_name(&name) => {
                    self.exact.insert(name, presented);
                }
                _ => {
                    let message = format!(
                        "expected a server name, '*.' and the rest of one, one that ends in '.*', or '*', found '{}'",
                        name.escape_debug()
                    );
                    let place = place.field("names").index(index);
                    diagnostics.push(Diagnostic::error(place, message));
                }
            }
        }
    }

    /// What a client is shown that asks for this name (in lower case).
    pub fn find(&self, name: Option<&str>) -> Option<&Arc<Presented>> {
        name.and_then(|name| {
            let by_first = || self.any_first.get(name.split_once('.')?.1);
            let by_last = || self.any_last.get(name.rsplit_once('.')?.0);
            self.exact.get(name).or_else(by_first).or_else(by_last)
        })
        .or(self.others.as_ref())
    }

    /// Whether nothing is configured.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.any_first.is_empty()
            && self.any_last.is_empty()
            && self.others.is_none()
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'*')
}

fn present(certificate: &Certificate, place: &DocPath, carry: &Carry) -> Result<Presented, Diagnostic> {
    let mut keys = Vec::with_capacity(certificate.key_pairs.len());
    for (index, pair) in certificate.key_pairs.iter().enumerate() {
        let place = || place.field("key_pairs").index(index);
        keys.push(Arc::new(certified_key(pair).map_err(
            |unusable| match unusable {
                Unusable::Certificate(message) => Diagnostic::error(place().field("certificate"), message),
                Unusable::Key(message) => Diagnostic::error(place().field("key"), message),
            },
        )?));
    }
    if keys.is_empty() {
        return Err(Diagnostic::error(
            place.field("key_pairs"),
            "expected a certificate and its key",
        ));
    }
    let broken =
        |error: rustls::Error| Diagnostic::error(place.clone(), format!("cannot be served: {error}"));
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(certificate.min_version))
        .map_err(broken)?;
    let builder = match &certificate.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let place = place.field("client").field("authorities");
            let refuse = |message: String| Diagnostic::error(place.clone(), message);
            let roots = authorities(&client.authorities).map_err(refuse)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            let verifier = match client.optional {
                true => verifier.allow_unauthenticated(),
                false => verifier,
            };
            let verifier = verifier.build().map_err(|error| refuse(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(Keys(keys)));
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    match certificate.client {
        // What a ticket promises would outlive the authorities that it rests on.
        Some(_) => {
            config.send_tls13_tickets = 0;
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        }
        None => config.ticketer = tickets(carry).map_err(broken)?,
    }
    Ok(Presented {
        config: Arc::new(config),
        asks_clients: certificate.client.is_some(),
    })
}

/// Sessions are resumed by tickets that this process alone can read, over reloads too.
fn tickets(carry: &Carry) -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    carry.tickets(rustls::crypto::aws_lc_rs::Ticketer::new)
}

fn versions(oldest: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match oldest {
        TlsVersion::Tls12 => &ALL,
        TlsVersion::Tls13 => &ALL[..1],
    }
}

/// Several keys for the same names: the first that the client understands.
#[derive(Debug)]
struct Keys(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for Keys {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let understood =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        self.0.iter().find(understood).or(self.0.first()).cloned()
    }
}
