//! The certificates that gateways show: made again in each run, one of ECDSA and one of RSA, signed by themselves. The
//! load trusts these and no others.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The server name that they are for.
pub const NAME: &str = "localhost";

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Both certificates of this run.
#[derive(Debug)]
struct CertificatePair {
    ecdsa: Certificate,
    rsa: Certificate,
}

/// The certificate of this run: of RSA with 2,048 bits, or of ECDSA with P-256.
///
/// # Errors
/// It cannot be made.
pub fn of_this_run(rsa: bool) -> Result<&'static Certificate> {
    let both = both()?;
    Ok(if rsa { &both.rsa } else { &both.ecdsa })
}

/// What a client of this run trusts.
///
/// # Errors
/// A certificate cannot be made.
pub fn trusted() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let both = both()?;
    for one in [&both.ecdsa, &both.rsa] {
        let der =
            CertificateDer::from_pem_slice(one.certificate.as_bytes()).context("reading a certificate")?;
        roots.add(der).context("trusting a certificate")?;
    }
    Ok(roots)
}

fn both() -> Result<&'static CertificatePair> {
    static MADE: OnceLock<CertificatePair> = OnceLock::new();
    if let Some(both) = MADE.get() {
        return Ok(both);
    }
    let ecdsa = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("making an ECDSA key")?;
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).context("making an RSA key")?;
    let both = CertificatePair {
        ecdsa: sign(&ecdsa)?,
        rsa: sign(&rsa)?,
    };
    Ok(MADE.get_or_init(|| both))
}

fn sign(key: &KeyPair) -> Result<Certificate> {
    let params = CertificateParams::new([NAME.to_owned()]).context("a certificate's name")?;
    let signed = params.self_signed(key).context("signing a certificate")?;
    Ok(Certificate {
        certificate: signed.pem(),
        key: key.serialize_pem(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_trusted() {
        assert_eq!(trusted().unwrap().len(), 2);
        assert!(of_this_run(true).unwrap().key.len() > of_this_run(false).unwrap().key.len());
    }
}
