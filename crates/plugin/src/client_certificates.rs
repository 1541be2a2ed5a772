//! The certificates that a client shows in the TLS handshake. What they are worth is not decided here.

use aws_lc_rs::digest;
use weir_model::x509_details::CertificateDetails;

/// What a client has shown. It has proved that it has the key of the first certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientCertificates {
    /// In DER: the client's own, then those that may lead to its authority, in the order in which they came.
    pub chain: Vec<Vec<u8>>,
    /// Whether the handshake has found that an authority of the configuration signed the first one.
    pub is_verified: bool,
}

impl ClientCertificates {
    /// What its certificate says of the client; `None`: it cannot be read.
    pub fn details(&self) -> Option<CertificateDetails> {
        CertificateDetails::of_der(self.chain.first()?)
    }

    /// The SHA-1 digest of the client's certificate, in hexadecimal digits.
    pub fn fingerprint(&self) -> Option<String> {
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, self.chain.first()?);
        Some(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
