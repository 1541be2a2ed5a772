//! Keys and signatures: what a credential needs to check a token, prepared once.
//!
//! The algorithm is the credential's, never the token's: a key is made for one algorithm and can do nothing else, so
//! neither `none` nor a public key taken for a secret can happen.

use super::short_rsa::{LEAST_BITS, ShortKey};
use super::{Algorithm, Credential};
use aws_lc_rs::digest;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{self, ParsedPublicKey, VerificationAlgorithm};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::sync::OnceLock;

/// What a credential's tokens are checked with.
pub(super) struct Verifier {
    /// The one algorithm.
    pub(super) algorithm: Algorithm,
    /// In seconds.
    pub(super) leeway: u64,
    key: VerifierKey,
}

enum VerifierKey {
    Secret(SecretKey),
    Public(ParsedPublicKey),
    ShortRsa(Box<ShortKey>),
}

/// A secret and its keys. A key is larger than a kilobyte, so the second one is only made if it is needed.
struct SecretKey {
    algorithm: hmac::Algorithm,
    secret: Box<str>,
    key: Box<hmac::Key>,
    /// The key for instances that read all secrets as Base64; `None` if the secret is not Base64.
    decoded: OnceLock<Option<Box<hmac::Key>>>,
}

/// Why a credential cannot check tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadCredential {
    #[error("expected a secret, as the algorithm is an HMAC")]
    NoSecret,
    #[error("expected Base64")]
    NotBase64,
    #[error("expected a public key, as the algorithm is not an HMAC")]
    NoPublicKey,
    #[error("expected a public key in PEM that fits the algorithm")]
    BadPublicKey,
    #[error("expected an Ed25519 key: Weir does not have Ed448")]
    Ed448,
    #[error("expected an RSA key of at least 2048 bits (RFC 7518, 3.3)")]
    ShortKey,
}

impl BadCredential {
    /// The field with the fault.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::NoSecret | Self::NotBase64 => "secret",
            Self::NoPublicKey | Self::BadPublicKey | Self::Ed448 | Self::ShortKey => "public_key",
        }
    }
}

impl Verifier {
    pub(super) fn new(credential: &Credential) -> Result<Self, BadCredential> {
        let key = match credential.algorithm.work() {
            Work::Hmac(algorithm) => {
                let secret = credential.secret.as_deref().filter(|secret| !secret.is_empty());
                let secret = secret.ok_or(BadCredential::NoSecret)?;
                let key = match credential.secret_is_base64 {
                    true => {
                        let decoded = decode_secret(secret).ok_or(BadCredential::NotBase64)?;
                        hmac::Key::new(algorithm, &decoded)
                    }
                    false => hmac::Key::new(algorithm, secret.as_bytes()),
                };
                VerifierKey::Secret(SecretKey {
                    algorithm,
                    secret: secret.into(),
                    key: Box::new(key),
                    decoded: OnceLock::new(),
                })
            }
            Work::Signature(algorithm) => {
                let pem = credential
                    .public_key
                    .as_deref()
                    .ok_or(BadCredential::NoPublicKey)?;
                let der = super::pem::public_key(pem).ok_or(BadCredential::BadPublicKey)?;
                if super::pem::is_ed448(&der) {
                    return Err(BadCredential::Ed448);
                }
                match credential.algorithm.is_rsa() && super::pem::rsa_bits(&der).is_none_or(is_short) {
                    true => VerifierKey::ShortRsa(Box::new(short_key(credential, &der)?)),
                    false => {
                        let key = ParsedPublicKey::new(algorithm, der);
                        VerifierKey::Public(key.map_err(|_| BadCredential::BadPublicKey)?)
                    }
                }
            }
        };
        Ok(Self {
            algorithm: credential.algorithm,
            leeway: credential.leeway_seconds,
            key,
        })
    }

    /// Whether there is a key for instances that take all secrets as Base64, or as they are.
    pub(super) fn has_key(&self, secret_is_base64: bool) -> bool {
        match &self.key {
            VerifierKey::Secret(secret) => secret.key(secret_is_base64).is_some(),
            VerifierKey::Public(_) | VerifierKey::ShortRsa(_) => true,
        }
    }

    /// Whether the signature is good. Secrets are compared in constant time.
    pub(super) fn verify(&self, secret_is_base64: bool, message: &[u8], signature: &[u8]) -> bool {
        match &self.key {
            VerifierKey::Secret(secret) => secret
                .key(secret_is_base64)
                .is_some_and(|key| hmac::verify(key, message, signature).is_ok()),
            VerifierKey::Public(key) => key.verify_sig(message, signature).is_ok(),
            VerifierKey::ShortRsa(key) => key.verify(message, signature),
        }
    }
}

/// Whether an RSA key has fewer bits than RFC 7518 (3.3) requires.
pub(super) fn is_short(bits: usize) -> bool {
    bits < 2_048
}

/// The key of a credential that says that a short one will do.
fn short_key(credential: &Credential, der: &[u8]) -> Result<ShortKey, BadCredential> {
    let hash = match credential.algorithm {
        Algorithm::RS256 => &digest::SHA256,
        Algorithm::RS384 => &digest::SHA384,
        Algorithm::RS512 => &digest::SHA512,
        _ => return Err(BadCredential::ShortKey),
    };
    let (modulus, exponent) = super::pem::rsa_numbers(der).ok_or(BadCredential::BadPublicKey)?;
    let is_possible = super::pem::rsa_bits(der).is_some_and(|bits| bits >= LEAST_BITS);
    match credential.short_rsa_key && is_possible {
        true => ShortKey::new(modulus, exponent, hash).ok_or(BadCredential::ShortKey),
        false => Err(BadCredential::ShortKey),
    }
}

impl SecretKey {
    fn key(&self, is_base64: bool) -> Option<&hmac::Key> {
        if !is_base64 {
            return Some(&self.key);
        }
        let decode = || {
            let decoded = decode_secret(&self.secret)?;
            Some(Box::new(hmac::Key::new(self.algorithm, &decoded)))
        };
        self.decoded.get_or_init(decode).as_deref()
    }
}

/// How an algorithm checks.
pub(crate) enum Work {
    Hmac(hmac::Algorithm),
    Signature(&'static dyn VerificationAlgorithm),
}

impl Algorithm {
    /// The algorithm with this registered name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "HS256" => Self::HS256,
            "HS384" => Self::HS384,
            "HS512" => Self::HS512,
            "RS256" => Self::RS256,
            "RS384" => Self::RS384,
            "RS512" => Self::RS512,
            "ES256" => Self::ES256,
            "ES384" => Self::ES384,
            "ES512" => Self::ES512,
            "PS256" => Self::PS256,
            "PS384" => Self::PS384,
            "PS512" => Self::PS512,
            "EdDSA" => Self::EdDSA,
            _ => return None,
        })
    }

    pub(crate) fn is_rsa(self) -> bool {
        matches!(
            self,
            Self::RS256 | Self::RS384 | Self::RS512 | Self::PS256 | Self::PS384 | Self::PS512
        )
    }

    pub(crate) fn work(self) -> Work {
        match self {
            Self::HS256 => Work::Hmac(hmac::HMAC_SHA256),
            Self::HS384 => Work::Hmac(hmac::HMAC_SHA384),
            Self::HS512 => Work::Hmac(hmac::HMAC_SHA512),
            Self::RS256 => Work::Signature(&signature::RSA_PKCS1_2048_8192_SHA256),
            Self::RS384 => Work::Signature(&signature::RSA_PKCS1_2048_8192_SHA384),
            Self::RS512 => Work::Signature(&signature::RSA_PKCS1_2048_8192_SHA512),
            Self::ES256 => Work::Signature(&signature::ECDSA_P256_SHA256_FIXED),
            Self::ES384 => Work::Signature(&signature::ECDSA_P384_SHA384_FIXED),
            Self::ES512 => Work::Signature(&signature::ECDSA_P521_SHA512_FIXED),
            Self::PS256 => Work::Signature(&signature::RSA_PSS_2048_8192_SHA256),
            Self::PS384 => Work::Signature(&signature::RSA_PSS_2048_8192_SHA384),
            Self::PS512 => Work::Signature(&signature::RSA_PSS_2048_8192_SHA512),
            Self::EdDSA => Work::Signature(&signature::ED25519),
        }
    }
}

/// Base64 as secrets and tokens of both originals have it: padding may be there or not, spare bits are passed over.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// Base64 in the alphabet of URLs (RFC 4648, 5).
pub(super) const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);

fn decode_secret(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).or_else(|_| BASE64_URL.decode(text)).ok()
}
