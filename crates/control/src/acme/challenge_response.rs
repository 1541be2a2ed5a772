//! Computes the responses to an authority's challenges, and the keys and signing requests of certificates.

use super::AcmeError;
use super::documents::ChallengeResponse;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, RsaKeySize,
};
use weir_model::AcmeKey;

/// The longest token that is taken.
const MAX_TOKEN: usize = 256;

/// The answer over HTTP (RFC 8555, section 8.3).
///
/// # Errors
/// If the token is invalid: it becomes part of a path.
pub fn over_http(token: &str, key_authorization: &str) -> Result<ChallengeResponse, AcmeError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if token.is_empty() || token.len() > MAX_TOKEN || !token.bytes().all(is_plain) {
        return Err(AcmeError::Refused("the authority's token is invalid".to_owned()));
    }
    Ok(ChallengeResponse::Http01 {
        token: token.to_owned(),
        body: key_authorization.to_owned(),
    })
}

/// The answer over TLS: a certificate for the name with the digest in it (RFC 8737, section 3).
///
/// # Errors
/// It cannot be made.
pub fn over_tls(host: &str, digest: &[u8]) -> Result<ChallengeResponse, AcmeError> {
    if digest.len() != aws_lc_rs::digest::SHA256_OUTPUT_LEN {
        return Err(AcmeError::Unusable("not a digest".to_owned()));
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new([host.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key)?;
    Ok(ChallengeResponse::TlsAlpn01 {
        host: host.to_owned(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// A key, and what asks for a certificate for it (RFC 2986). Long keys take a while.
pub struct Request {
    /// The key, in PEM.
    pub key: String,
    /// The request, in DER.
    pub request: Vec<u8>,
}

impl Request {
    /// For these names.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(hosts: &[String], kind: AcmeKey) -> Result<Self, AcmeError> {
        let rsa = |size| KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size);
        let key = match kind {
            AcmeKey::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            AcmeKey::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            AcmeKey::Rsa2048 => rsa(RsaKeySize::_2048),
            AcmeKey::Rsa3072 => rsa(RsaKeySize::_3072),
            AcmeKey::Rsa4096 => rsa(RsaKeySize::_4096),
        }?;
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key)?;
        Ok(Self {
            key: key.serialize_pem(),
            request: request.der().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_lead_elsewhere_are_refused() {
        for token in ["", "a/b", "..", "a b", "a\n", &"x".repeat(257)] {
            assert!(over_http(token, "x").is_err(), "{token}");
        }
        assert!(over_http("DGyRejmCefe7v4NfDGDKfA_-", "x").is_ok());
        assert!(over_tls("a.test", b"short").is_err());
    }

    #[test]
    fn each_kind_of_key_is_made() {
        for kind in [AcmeKey::EcdsaP256, AcmeKey::EcdsaP384, AcmeKey::Rsa2048] {
            let made = Request::new(&["a.test".to_owned()], kind).expect("made");
            assert!(made.key.contains("PRIVATE KEY"), "{kind:?}");
        }
    }
}
