//! How upstreams are met over TLS.

use super::{Unusable, authorities, certified_key, provider};
use crate::carry::Carry;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, UpstreamTls};

/// How the targets of a service are met.
#[derive(Debug)]
pub struct ClientTls {
    /// For the handshake.
    pub config: Arc<ClientConfig>,
    /// The name that every target is asked for; `None`: the one that it is told in `Host`.
    pub name: Option<ServerName<'static>>,
    /// Tells connections apart that were made by different rules.
    pub id: u64,
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for ClientTls {}

impl ClientTls {
    pub(crate) fn compile(
        tls: &UpstreamTls,
        place: &DocPath,
        carry: &Carry,
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
                builder.with_root_certificates(authorities(pem).map_err(|it| refuse("authorities", it))?)
            }
            (None, true) => builder.with_root_certificates(carry.roots()),
        };
        let mut config = match &tls.certificate {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = certified_key(pair).map_err(|unusable| match unusable {
                    Unusable::Certificate(message) | Unusable::Key(message) => refuse("certificate", message),
                })?;
                builder.with_client_cert_resolver(Arc::new(Shown(Arc::new(key))))
            }
        };
        config.resumption = Resumption::in_memory_sessions(256);
        let name = tls.server_name.as_deref().map(|name| {
            let parsed = ServerName::try_from(name.to_owned());
            parsed.map_err(|_| refuse("server_name", format!("expected a server name, found '{name}'")))
        });
        Ok(Self {
            config: Arc::new(config),
            name: name.transpose()?,
            id,
        })
    }
}

/// The certificate that a server is shown when it asks for one.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let is_understood = self.0.key.choose_scheme(schemes).is_some();
        is_understood.then(|| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Takes any certificate for good, where the configuration says so; that the server has its key is still proven.
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
