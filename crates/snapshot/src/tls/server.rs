//! What clients are shown, and what is asked of them.

use super::any_authority::AnyAuthority;
use super::certificate_request_names::CertificateRequestNames;
use super::client_verifier::client_verifier;
use super::staple::{Keys, PresentedKey, Staple, StapleError};
use super::validity::{Validity, validity};
use super::{UnusableKeyPair, authorities, certified_key, provider, read_pair};
use crate::weak_map::WeakMap;
use regex::bytes::RegexSet;
use rustls::server::{ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use weir_model::{Certificate, ClientCertificate, Diagnostic, DocPath, KeyPair, OcspStapling, TlsVersion};

/// The protocols that clients are offered (RFC 7301), the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The protocol of ACME TLS-ALPN challenges (RFC 8737, section 6.2).
pub const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

/// State that outlives snapshots: prepared identities, and session tickets.
#[derive(Default)]
pub struct ServerTlsState {
    presented: WeakMap<Certificate, ServerIdentity>,
    /// The same for names whose clients are asked for a certificate by a plugin.
    asking: WeakMap<Certificate, ServerIdentity>,
    /// What responders say, by the key pair and how it is judged.
    staples: WeakMap<(KeyPair, OcspStapling), Staple>,
    tickets: OnceLock<Arc<dyn ProducesTickets>>,
}

impl ServerTlsState {
    /// Sessions are resumed by tickets that this process alone can read, over reloads too.
    fn tickets(&self) -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
        if let Some(known) = self.tickets.get() {
            return Ok(Arc::clone(known));
        }
        let made = rustls::crypto::aws_lc_rs::Ticketer::new()?;
        Ok(Arc::clone(self.tickets.get_or_init(|| made)))
    }

    /// What the responder of a key pair says: it is known over reloads.
    fn staple(
        &self,
        pair: &KeyPair,
        key: &Arc<CertifiedKey>,
        rules: &OcspStapling,
    ) -> Result<Arc<Staple>, StapleError> {
        let build = || Staple::new(Arc::clone(key), rules);
        self.staples.find_or_build(&(pair.clone(), rules.clone()), build)
    }

    /// Forgets what no snapshot uses any more.
    pub(crate) fn prune(&self) {
        self.presented.prune();
        self.asking.prune();
        self.staples.prune();
    }
}

/// What clients are shown, by server name.
#[derive(Debug, Default)]
pub struct ServerTls {
    exact: HashMap<String, Arc<ServerIdentity>>,
    /// `*.rest`, by the rest.
    any_first: HashMap<String, Arc<ServerIdentity>>,
    /// `start.*`, by the start.
    any_last: HashMap<String, Arc<ServerIdentity>>,
    others: Option<Arc<ServerIdentity>>,
    /// What those are shown who check whose a name is. Empty but while a certificate is being signed.
    challenges: HashMap<String, Arc<ServerConfig>>,
    /// Every certificate, in the model's order.
    ends: Vec<Expiry>,
    /// Key pairs that come with what their responders say.
    staples: Vec<Arc<Staple>>,
    /// Whether any client must show a certificate, so that names matter beyond the handshake.
    pub requests_client_certificate: bool,
    /// The identities for clients that a plugin asks for a certificate.
    asking: CertificateRequests,
}

/// How long a certificate is good.
#[derive(Debug, Clone)]
pub struct Expiry {
    /// The position in the model's certificates.
    pub certificate: usize,
    /// The position in that one's key pairs.
    pub pair: usize,
    /// The names for which it is shown.
    pub names: Vec<String>,
    /// From when to when.
    pub validity: Validity,
}

/// What clients of some names are shown.
#[derive(Debug)]
pub struct ServerIdentity {
    /// For the handshake.
    pub config: Arc<ServerConfig>,
    /// For the handshake of stream routes, whose protocols the gateway does not know.
    pub stream_config: Arc<ServerConfig>,
    /// Whether clients are asked for a certificate.
    pub requests_client_certificate: bool,
    /// What is asked of the certificates of clients by the handshake itself.
    pub client: Option<ClientCertificate>,
    /// Paths for which clients need no certificate; `None`: the handshake's requirement applies to all.
    pub exempt_paths: Option<RegexSet>,
    /// How long each certificate is good, in the order of the key pairs.
    validities: Vec<Option<Validity>>,
    /// The key pairs that come with what their responders say.
    staples: Vec<Arc<Staple>>,
    /// The positions of key pairs that should, and why they do not.
    unstapled: Vec<(usize, StapleError)>,
}

impl ServerIdentity {
    /// What clients of this certificate's names are shown.
    ///
    /// # Errors
    /// What is wrong with it; the path leads into the certificate.
    pub fn of(certificate: &Certificate, state: &ServerTlsState) -> Result<Self, Diagnostic> {
        present(certificate, false, &DocPath::root(), state)
    }

    /// The same for clients that a plugin asks for a certificate.
    fn asking(certificate: &Certificate, state: &ServerTlsState) -> Result<Self, Diagnostic> {
        present(certificate, true, &DocPath::root(), state)
    }

    /// Whether a certificate that clients show is one of an authority of the configuration.
    pub fn verifies_clients(&self) -> bool {
        self.client.is_some()
    }

    /// Whether a client whose connection was made under these rules has met the requirements of `wanted`.
    pub fn satisfies(&self, wanted: &Self) -> bool {
        (!wanted.requests_client_certificate || self.requests_client_certificate)
            && (wanted.client.is_none() || self.client == wanted.client)
    }
}

/// The identities for clients of the asked names, instead of their usual ones.
#[derive(Debug, Default)]
struct CertificateRequests {
    names: CertificateRequestNames,
    /// By the address of the usual identity, which the same configuration keeps alive.
    variants: HashMap<usize, Arc<ServerIdentity>>,
}

fn address(shown: &Arc<ServerIdentity>) -> usize {
    Arc::as_ptr(shown).addr()
}

impl CertificateRequests {
    /// What a client of this name is shown if it is asked. What demands certificates by itself has no such variant.
    fn variant(&self, shown: &Arc<ServerIdentity>, name: Option<&str>) -> Option<&Arc<ServerIdentity>> {
        let variant = self.variants.get(&address(shown))?;
        let is_asked = name.map_or(self.names.all, |name| self.names.has(name));
        is_asked.then_some(variant)
    }
}

impl ServerTls {
    pub(crate) fn compile(
        certificates: &[Certificate],
        state: &ServerTlsState,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut compiled = Self::default();
        for (index, certificate) in certificates.iter().enumerate() {
            let place = DocPath::root().field("certificates").index(index);
            let build = || present(certificate, false, &place, state);
            let presented = state.presented.find_or_build(certificate, build);
            match presented {
                Ok(presented) => {
                    compiled.note_ends(index, certificate, &presented);
                    compiled.record_staples(&presented, &place, diagnostics);
                    compiled.add(certificate, &presented, &place, diagnostics);
                }
                Err(found) => diagnostics.push(found),
            }
        }
        compiled
    }

    /// Takes in what those are shown who check whose a name is (RFC 8737). One that cannot be shown is left out: its
    /// check fails, and is made again.
    pub(crate) fn add_challenges(&mut self, certificates: &[Certificate]) {
        for certificate in certificates {
            let Some(config) = challenge_config(certificate).map(Arc::new) else {
                continue;
            };
            let names = certificate.names.iter().map(|name| name.to_ascii_lowercase());
            self.challenges
                .extend(names.map(|name| (name, Arc::clone(&config))));
        }
    }

    fn note_ends(&mut self, index: usize, certificate: &Certificate, presented: &ServerIdentity) {
        let known = presented.validities.iter().enumerate();
        self.ends.extend(known.filter_map(|(pair, validity)| {
            Some(Expiry {
                certificate: index,
                pair,
                names: certificate.names.clone(),
                validity: (*validity)?,
            })
        }));
    }

    fn record_staples(
        &mut self,
        presented: &ServerIdentity,
        place: &DocPath,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        self.staples.extend(presented.staples.iter().cloned());
        for (pair, reason) in &presented.unstapled {
            let place = place.field("key_pairs").index(*pair).field("certificate");
            diagnostics.push(Diagnostic::warning(place, reason.to_string()));
        }
    }

    fn add(
        &mut self,
        certificate: &Certificate,
        presented: &Arc<ServerIdentity>,
        place: &DocPath,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        self.requests_client_certificate |= presented.requests_client_certificate;
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

    /// Asks clients of these names for a certificate.
    pub(crate) fn ask(
        &mut self,
        names: CertificateRequestNames,
        certificates: &[Certificate],
        state: &ServerTlsState,
    ) {
        if names.is_empty() {
            return;
        }
        let mut variants = HashMap::new();
        for certificate in certificates.iter().filter(|it| it.client.is_none()) {
            if !certificate.names.iter().any(|name| names.may_meet(name)) {
                continue;
            }
            let build = || ServerIdentity::asking(certificate, state);
            let made = state.asking.find_or_build(certificate, build);
            if let (Some(shown), Ok(made)) = (state.presented.find(certificate), made) {
                variants.insert(address(&shown), made);
            }
        }
        self.asking = CertificateRequests { names, variants };
        self.requests_client_certificate = true;
    }

    /// The identity for a client that requests this name (in lower case).
    pub fn find(&self, name: Option<&str>) -> Option<&Arc<ServerIdentity>> {
        let shown = self.configured(name)?;
        // Names that are asked come second: they never change which certificate a name has.
        Some(self.asking.variant(shown, name).unwrap_or(shown))
    }

    /// The same before plugins ask for certificates.
    fn configured(&self, name: Option<&str>) -> Option<&Arc<ServerIdentity>> {
        name.and_then(|name| {
            let by_first = || self.any_first.get(name.split_once('.')?.1);
            let by_last = || self.any_last.get(name.rsplit_once('.')?.0);
            self.exact.get(name).or_else(by_first).or_else(by_last)
        })
        .or(self.others.as_ref())
    }

    /// What a client is shown that checks whose this name (in lower case) is, and offers these protocols.
    pub fn challenge<'p>(
        &self,
        name: Option<&str>,
        protocols: Option<impl Iterator<Item = &'p [u8]>>,
    ) -> Option<&Arc<ServerConfig>> {
        if self.challenges.is_empty() {
            return None;
        }
        let is_check = protocols?.eq([CHALLENGE_PROTOCOL]);
        self.challenges.get(name?).filter(|_| is_check)
    }

    /// How long certificates are good, in the model's order. One that does not say so is not among them.
    pub fn ends(&self) -> &[Expiry] {
        &self.ends
    }

    /// Key pairs that come with what their responders say. To ask them is left to the caller.
    pub fn staples(&self) -> &[Arc<Staple>] {
        &self.staples
    }

    /// Whether nothing is configured.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.any_first.is_empty()
            && self.any_last.is_empty()
            && self.others.is_none()
            && self.challenges.is_empty()
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'*')
}

fn present(
    certificate: &Certificate,
    asks: bool,
    place: &DocPath,
    state: &ServerTlsState,
) -> Result<ServerIdentity, Diagnostic> {
    let mut keys: Vec<PresentedKey> = Vec::with_capacity(certificate.key_pairs.len());
    let mut unstapled = Vec::new();
    for (index, pair) in certificate.key_pairs.iter().enumerate() {
        let place = || place.field("key_pairs").index(index);
        let key = certified_key(pair).map_err(|unusable| match unusable {
            UnusableKeyPair::Certificate(message) => Diagnostic::error(place().field("certificate"), message),
            UnusableKeyPair::Key(message) => Diagnostic::error(place().field("key"), message),
        })?;
        let key = Arc::new(key);
        keys.push(match &certificate.ocsp_stapling {
            None => PresentedKey::Plain(key),
            Some(rules) => match state.staple(pair, &key, rules) {
                Ok(staple) => PresentedKey::Stapled(staple),
                Err(reason) => {
                    unstapled.push((index, reason));
                    PresentedKey::Plain(key)
                }
            },
        });
    }
    if keys.is_empty() && !certificate.refuses_handshakes() {
        return Err(Diagnostic::error(
            place.field("key_pairs"),
            "expected a certificate and its key",
        ));
    }
    let validities = keys.iter().map(|key| validity(key.key().cert.first()?)).collect();
    let staples = keys.iter().filter_map(PresentedKey::staple).collect();
    let keys: Arc<dyn ResolvesServerCert> = Arc::new(Keys(keys));
    let exempt_paths = exempt_paths(certificate.client.as_ref(), place)?;
    let config_for =
        |lets_in_all: bool| server_config(certificate, asks, lets_in_all, Arc::clone(&keys), place, state);
    let mut config = config_for(exempt_paths.is_some())?;
    // Stream routes have no paths that could be exempt.
    let stream_config = match exempt_paths {
        Some(_) => config_for(false)?,
        None => config.clone(),
    };
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(ServerIdentity {
        config: Arc::new(config),
        stream_config: Arc::new(stream_config),
        requests_client_certificate: asks || certificate.client.is_some(),
        client: certificate.client.clone(),
        exempt_paths,
        validities,
        staples,
        unstapled,
    })
}

/// For the handshake with clients of a certificate. With `lets_in_all`, also with those that show none.
fn server_config(
    certificate: &Certificate,
    asks: bool,
    lets_in_all: bool,
    keys: Arc<dyn ResolvesServerCert>,
    place: &DocPath,
    state: &ServerTlsState,
) -> Result<ServerConfig, Diagnostic> {
    let broken =
        |error: rustls::Error| Diagnostic::error(place.clone(), format!("cannot be served: {error}"));
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(certificate.min_version))
        .map_err(broken)?;
    let builder = match &certificate.client {
        None if asks => builder.with_client_cert_verifier(Arc::new(AnyAuthority)),
        None => builder.with_no_client_auth(),
        // Without a key no handshake gets as far as the client's certificate.
        Some(_) if certificate.refuses_handshakes() => builder.with_no_client_auth(),
        Some(client) => {
            let place = place.field("client").field("authorities");
            let refuse = |message: String| Diagnostic::error(place.clone(), message);
            let roots = authorities(&client.authorities).map_err(refuse)?;
            let verifier = client_verifier(roots, client.optional || lets_in_all).map_err(refuse)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(keys);
    match asks || certificate.client.is_some() {
        // What a ticket promises would outlive the authorities that it rests on.
        true => {
            config.send_tls13_tickets = 0;
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        }
        false => config.ticketer = state.tickets().map_err(broken)?,
    }
    Ok(config)
}

/// The paths for which clients need no certificate, if there are some.
fn exempt_paths(client: Option<&ClientCertificate>, place: &DocPath) -> Result<Option<RegexSet>, Diagnostic> {
    let Some(client) = client.filter(|client| !client.exempt_paths.is_empty()) else {
        return Ok(None);
    };
    let place = place.field("client").field("exempt_paths");
    let refuse = |error: regex::Error| Diagnostic::error(place, error.to_string());
    RegexSet::new(&client.exempt_paths).map(Some).map_err(refuse)
}

/// For the handshake with those who check whose a name is. Their certificate has a critical extension (RFC 8737,
/// section 3) that no other verifier knows, so the certificate is not checked; nothing of it is resumed.
fn challenge_config(certificate: &Certificate) -> Option<ServerConfig> {
    let key = read_pair(certificate.key_pairs.first()?).ok()?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(TlsVersion::Tls12))
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Keys(vec![PresentedKey::Plain(Arc::new(key))])));
    config.alpn_protocols = vec![CHALLENGE_PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Some(config)
}

fn versions(oldest: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match oldest {
        TlsVersion::Tls12 => &ALL,
        TlsVersion::Tls13 => &ALL[..1],
    }
}
