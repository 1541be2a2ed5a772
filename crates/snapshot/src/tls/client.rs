//! How upstreams are met over TLS: trust, names and own certificates, ready for handshakes. No socket is touched.

use super::{UnusableKeyPair, authorities, certificates, certified_key, provider};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::{Arc, OnceLock};
use weir_model::{Diagnostic, DocPath, UpstreamTls};

/// How the targets of a service are met.
#[derive(Debug)]
pub struct ClientTls {
    /// For the handshake.
    pub config: Arc<ClientConfig>,
    /// For the handshake with targets that speak HTTP/2.
    pub http2_config: Arc<ClientConfig>,
    /// For the handshake with targets that choose between HTTP/2 and HTTP/1.1.
    pub either_config: Arc<ClientConfig>,
    /// The server name for every target; `None`: the name in `Host`.
    pub name: Option<ServerName<'static>>,
    /// Tells connections apart that were made by different rules.
    pub id: u64,
    trust: Trust,
    /// The same rules with the other answer to whether certificates must be good; made when they are first needed.
    otherwise: OnceLock<Box<ClientTls>>,
}

/// Whose certificates are good, and whether that matters.
#[derive(Debug, Clone)]
struct Trust {
    verify: bool,
    /// In PEM.
    authorities: Option<String>,
    /// Trusted if no authorities are named.
    roots: Arc<RootCertStore>,
}

impl Trust {
    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, String> {
        Ok(match (&self.authorities, self.verify) {
            (_, false) => Arc::new(Unverified(provider())),
            (Some(pem), true) => Arc::new(PinnedVerifier::new(pem)?),
            (None, true) => WebPkiServerVerifier::builder_with_provider(Arc::clone(&self.roots), provider())
                .build()
                .map_err(|error| error.to_string())?,
        })
    }
}

/// Marks the ids of rules that were made of others by [`ClientTls::verifying`].
const OTHERWISE: u64 = 1 << 62;

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for ClientTls {}

impl ClientTls {
    /// The rules of a configuration; `roots` are trusted if it names no authorities.
    pub(crate) fn compile(
        tls: &UpstreamTls,
        place: &DocPath,
        roots: Arc<RootCertStore>,
        id: u64,
    ) -> Result<Self, Diagnostic> {
        let refuse = |field: &str, message: String| Diagnostic::error(place.field(field), message);
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| Diagnostic::error(place.clone(), error.to_string()))?;
        let builder = match (&tls.authorities, tls.verify) {
            (_, false) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider()))),
            (Some(pem), true) => {
                let pinned = PinnedVerifier::new(pem).map_err(|it| refuse("authorities", it))?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(pinned))
            }
            (None, true) => builder.with_root_certificates(Arc::clone(&roots)),
        };
        let mut config = match &tls.certificate {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = certified_key(pair).map_err(|unusable| match unusable {
                    UnusableKeyPair::Certificate(message) | UnusableKeyPair::Key(message) => {
                        refuse("certificate", message)
                    }
                })?;
                builder.with_client_cert_resolver(Arc::new(PresentedCertificate(Arc::new(key))))
            }
        };
        config.resumption = Resumption::in_memory_sessions(256);
        let name = tls.server_name.as_deref().map(|name| {
            let parsed = ServerName::try_from(name.to_owned());
            parsed.map_err(|_| refuse("server_name", format!("expected a server name, found '{name}'")))
        });
        let trust = Trust {
            verify: tls.verify,
            authorities: tls.authorities.clone(),
            roots,
        };
        Ok(Self::of(config, name.transpose()?, id, trust))
    }

    /// These rules, but with certificates that must be good, or need not be.
    ///
    /// # Errors
    /// When there are no authorities to trust, or they cannot be used.
    pub fn verifying(&self, verify: bool) -> std::io::Result<&Self> {
        if verify == self.trust.verify {
            return Ok(self);
        }
        if let Some(made) = self.otherwise.get() {
            return Ok(made);
        }
        let trust = Trust {
            verify,
            ..self.trust.clone()
        };
        let mut config = ClientConfig::clone(&self.config);
        let verifier = trust.verifier().map_err(std::io::Error::other)?;
        config.dangerous().set_certificate_verifier(verifier);
        // A session of the others was made by their check.
        config.resumption = Resumption::in_memory_sessions(256);
        let made = Self::of(config, self.name.clone(), self.id | OTHERWISE, trust);
        Ok(self.otherwise.get_or_init(|| Box::new(made)))
    }

    fn of(config: ClientConfig, name: Option<ServerName<'static>>, id: u64, trust: Trust) -> Self {
        let mut http2_config = config.clone();
        http2_config.alpn_protocols = vec![b"h2".to_vec()];
        let mut either_config = config.clone();
        either_config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self {
            config: Arc::new(config),
            http2_config: Arc::new(http2_config),
            either_config: Arc::new(either_config),
            name,
            id,
            trust,
            otherwise: OnceLock::new(),
        }
    }
}

/// How servers are met over TLS that belong to no service.
#[derive(Debug)]
pub struct AdHocClientTls {
    roots: Arc<RootCertStore>,
    /// By whether certificates must be good; made when they are first needed.
    made: [OnceLock<ClientTls>; 2],
}

impl AdHocClientTls {
    /// Trusts these authorities.
    pub(crate) fn new(roots: Arc<RootCertStore>) -> Self {
        Self {
            roots,
            made: Default::default(),
        }
    }

    /// The rules for servers whose certificates must be good, or need not be.
    ///
    /// # Errors
    /// When the cryptography cannot be set up.
    pub fn tls(&self, verify: bool) -> std::io::Result<&ClientTls> {
        let place = &self.made[usize::from(verify)];
        if let Some(made) = place.get() {
            return Ok(made);
        }
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?;
        let builder = match verify {
            true => builder.with_root_certificates(Arc::clone(&self.roots)),
            false => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider()))),
        };
        let config = builder.with_no_client_auth();
        // Services count theirs from the other end.
        let id = u64::MAX - u64::from(verify);
        let trust = Trust {
            verify,
            authorities: None,
            roots: Arc::clone(&self.roots),
        };
        Ok(place.get_or_init(|| ClientTls::of(config, None, id, trust)))
    }
}

impl AdHocClientTls {
    /// Rules of a filter's own, with a number from 2⁶³ on.
    ///
    /// # Errors
    /// What cannot be used of them.
    pub fn own(&self, tls: &UpstreamTls, number: u64) -> Result<ClientTls, Diagnostic> {
        ClientTls::compile(tls, &DocPath::root(), Arc::clone(&self.roots), (1 << 63) + number)
    }
}

/// The certificate for servers that request one.
#[derive(Debug)]
struct PresentedCertificate(Arc<CertifiedKey>);

impl ResolvesClientCert for PresentedCertificate {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let is_understood = self.0.key.choose_scheme(schemes).is_some();
        is_understood.then(|| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Checks certificates against the authorities of a configuration. A server may also show one of these itself, which
/// is what "self-signed" usually means: such a certificate is often marked as that of an authority.
#[derive(Debug)]
struct PinnedVerifier {
    usual: Arc<WebPkiServerVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl PinnedVerifier {
    fn new(pem: &str) -> Result<Self, String> {
        let usual = WebPkiServerVerifier::builder_with_provider(authorities(pem)?, provider());
        Ok(Self {
            usual: usual.build().map_err(|error| error.to_string())?,
            authorities: certificates(pem)?,
        })
    }
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.usual.verify_server_cert(shown, between, name, stapled, now);
        // Its dates are good when this is what is wrong: they are looked at first.
        let is_authority = matches!(
            &verified,
            Err(Error::InvalidCertificate(CertificateError::Other(OtherError(error))))
                if error.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
        );
        if is_authority && self.authorities.iter().any(|authority| authority == shown) {
            verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Accepts any certificate, if the configuration says so; that the server has its key is still verified.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
