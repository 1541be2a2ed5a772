//! TLS: the certificates for clients by server name, and the settings for connections to upstreams.
//!
//! Everything is parsed, checked and prepared here; a handshake only looks up a name.

mod any_authority;
mod certificate_request_names;
mod client;
mod client_verifier;
mod server;
mod staple;
mod validity;

pub(crate) use certificate_request_names::CertificateRequestNames;
pub use client::{AdHocClientTls, ClientTls};
pub use client_verifier::client_verifier;
pub use server::{CHALLENGE_PROTOCOL, Expiry, ServerIdentity, ServerTls, ServerTlsState};
pub use staple::{MAX_RESPONSE, Staple, StapleError, UnusableAnswer};
pub use validity::{Validity, validity};

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use weir_model::{Acme, Diagnostic, DocPath, KeyPair, x509};

/// What of a key pair cannot be used, and why.
#[derive(Debug, PartialEq, Eq)]
pub enum UnusableKeyPair {
    /// The certificate.
    Certificate(String),
    /// The key.
    Key(String),
}

/// The cryptography of all connections.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: std::sync::OnceLock<Arc<CryptoProvider>> = std::sync::OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}

/// Reads a certificate and its key, and makes sure that they belong together. The certificate may be of X.509 version 1:
/// whether to trust it is for the peer to decide.
///
/// # Errors
/// One of them cannot be read, or they do not belong together.
pub fn certified_key(pair: &KeyPair) -> Result<CertifiedKey, UnusableKeyPair> {
    let certified = read_pair(pair)?;
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => Err(UnusableKeyPair::Key(
            "the key is not that of the certificate".to_owned(),
        )),
        // What is presented is for its reader to judge: one of version 1 is as good as any for those who take it.
        Err(error) => match certified
            .cert
            .first()
            .and_then(|first| x509::Certificate::of_der(first))
        {
            Some(read) if read.fits(&pair.key) => Ok(certified),
            Some(_) => Err(UnusableKeyPair::Key(
                "the key is not that of the certificate".to_owned(),
            )),
            None => Err(UnusableKeyPair::Certificate(format!(
                "expected a certificate: {error}"
            ))),
        },
    }
}

/// Reads a certificate and its key.
fn read_pair(pair: &KeyPair) -> Result<CertifiedKey, UnusableKeyPair> {
    let chain = certificates(&pair.certificate).map_err(UnusableKeyPair::Certificate)?;
    // What the error says may quote the key.
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())
        .map_err(|_| UnusableKeyPair::Key("expected an unencrypted private key in PEM".to_owned()))?;
    let key = provider().key_provider.load_private_key(key).map_err(|_| {
        UnusableKeyPair::Key(
            "expected a key of RSA of at least 2048 bits, of ECDSA on P-256, P-384 or P-521, or of Ed25519"
                .to_owned(),
        )
    })?;
    Ok(CertifiedKey::new(chain, key))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        _ => Err("expected certificates in PEM".to_owned()),
    }
}

/// What is wrong with the authorities that entries of ACME name: they matter only once there is a certificate.
pub(crate) fn check_acme(entries: &[Acme], diagnostics: &mut Vec<Diagnostic>) {
    for (index, entry) in entries.iter().enumerate() {
        let place = DocPath::root().field("acme").index(index);
        let client = entry.client.as_ref().map(|client| &client.authorities);
        let named = [
            (place.field("client").field("authorities"), client),
            (place.field("authorities"), entry.authorities.as_ref()),
        ];
        for (place, pem) in named {
            if let Some(Err(message)) = pem.map(|pem| authorities(pem)) {
                diagnostics.push(Diagnostic::error(place, message));
            }
        }
    }
}

/// Reads the authorities that may have signed a certificate.
pub(crate) fn authorities(pem: &str) -> Result<Arc<RootCertStore>, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(pem)? {
        store
            .add(certificate)
            .map_err(|error| format!("expected the certificates of authorities: {error}"))?;
    }
    Ok(Arc::new(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of version 1, as `openssl x509 -req` makes them.
    pub(super) const OLD: &str = "\
-----BEGIN CERTIFICATE-----
MIIBIzCByQIUNvm95Ox5c8Ox6ip5S9Nlu1NC9bYwCgYIKoZIzj0EAwIwEzERMA8G
A1UEAwwIb2xkLnRlc3QwIBcNMjYxMTIyMjA0MDI2WhgPMjEyNjEwMjkyMDQwMjZa
MBMxETAPBgNVBAMMCG9sZC50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
cNqqFOZ1vApIJ1F9I4JYc+9gcoFcyGf5zsyAnomoMMGT4dVsEqtXgSTuyOiWuzJy
N5tIZo+V8AF+h/xKfpg94TAKBggqhkjOPQQDAgNJADBGAiEA4UXXOmSmPg5rhVPK
5m4HqHYsbHfC+40IlnDwY3OMHAMCIQDwQ5B/4c8SE04o5N4pNI8wNyp5o7sXOUI6
2ElXB4MNOQ==
-----END CERTIFICATE-----
";
    const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgM4wLAnlhT41zQ1AS
i+ecWOdA3C+q0WMCKc/Xda35+GShRANCAARw2qoU5nW8CkgnUX0jglhz72BygVzI
Z/nOzICeiagwwZPh1WwSq1eBJO7I6Ja7MnI3m0hmj5XwAX6H/Ep+mD3h
-----END PRIVATE KEY-----
";

    #[test]
    fn certificates_of_version_1_are_presented_with_their_own_key_only() {
        let pair = |certificate: &str, key: String| {
            certified_key(&KeyPair {
                certificate: certificate.to_owned(),
                key,
            })
        };
        assert!(pair(OLD, KEY.to_owned()).is_ok());
        let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
        assert!(matches!(pair(OLD, other), Err(UnusableKeyPair::Key(_))));
        let none = KEY.replace("PRIVATE KEY", "CERTIFICATE");
        let refused = pair(&none, KEY.to_owned());
        assert!(matches!(refused, Err(UnusableKeyPair::Certificate(_))));
    }
}
