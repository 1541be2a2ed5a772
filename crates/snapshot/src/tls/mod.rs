//! TLS: what clients are shown by the server name that they ask for, and how upstreams are met.
//!
//! Everything is read, checked and made ready here; a handshake only looks up a name.

mod client;
mod server;
mod validity;

pub use client::{ClientTls, Elsewhere};
pub use server::{CHALLENGE_PROTOCOL, End, Presented, ServerTls};
pub use validity::{Validity, validity};

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use weir_model::{Acme, Diagnostic, DocPath, KeyPair};

/// What of a key pair cannot be used, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Certificate(String),
    Key(String),
}

/// The cryptography of all connections.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: std::sync::OnceLock<Arc<CryptoProvider>> = std::sync::OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}

/// Reads a certificate and its key, and makes sure that they belong together.
pub(crate) fn certified_key(pair: &KeyPair) -> Result<CertifiedKey, Unusable> {
    let certified = read_pair(pair)?;
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(Unusable::Key("the key is not that of the certificate".to_owned()))
        }
        Err(error) => Err(Unusable::Certificate(format!("expected a certificate: {error}"))),
    }
}

/// Reads a certificate and its key.
fn read_pair(pair: &KeyPair) -> Result<CertifiedKey, Unusable> {
    let chain = certificates(&pair.certificate).map_err(Unusable::Certificate)?;
    // What the error says may quote the key.
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())
        .map_err(|_| Unusable::Key("expected an unencrypted private key in PEM".to_owned()))?;
    let key = provider()
        .key_provider
        .load_private_key(key)
        .map_err(|_| Unusable::Key("expected an RSA, ECDSA or Ed25519 key".to_owned()))?;
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
