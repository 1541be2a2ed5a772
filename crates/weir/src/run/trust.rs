//! Default trust of the gateway and its default certificate: the system's authorities, and a self-signed
//! certificate.

use anyhow::Context;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use weir_model::{Certificate, TlsVersion};
use weir_snapshot::{PersistentState, ServerIdentity, ServerTlsState};

/// The state that outlives snapshots, with the authorities of the system, for a gateway in this zone.
pub fn persistent_state(zone: Option<&str>) -> PersistentState {
    let persistent = PersistentState::default();
    if let Some(zone) = zone {
        persistent.set_zone(zone.to_owned());
    }
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate authority of the system cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(found.certs);
    if unusable > 0 {
        tracing::debug!(
            unusable,
            "some certificate authorities of the system cannot be used"
        );
    }
    persistent.trust(roots);
    persistent
}

/// A certificate that Weir has signed itself, with its key.
pub fn own_certificate() -> anyhow::Result<(rcgen::Certificate, KeyPair)> {
    let key = KeyPair::generate().context("a key cannot be generated")?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params
        .distinguished_name
        .push(DnType::CommonName, "weir self-signed");
    let certificate = params
        .self_signed(&key)
        .context("a certificate cannot be generated")?;
    Ok((certificate, key))
}

/// The certificate for clients for whose server name none is configured.
pub fn self_signed() -> anyhow::Result<Arc<ServerConfig>> {
    let (certificate, key) = own_certificate()?;
    let certificate = Certificate {
        names: vec!["*".to_owned()],
        key_pairs: vec![weir_model::KeyPair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }],
        client: None,
        min_version: TlsVersion::default(),
        ocsp_stapling: None,
    };
    let presented = ServerIdentity::of(&certificate, &ServerTlsState::default())
        .map_err(|found| anyhow::anyhow!("the self-signed certificate: {}", found.message))?;
    Ok(presented.config)
}
