//! Keys: those of a partner's certificates, which check signatures, and the own one, which signs.

use aws_lc_rs::digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, KeyPair as _, RsaEncoding, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_model::x509::Certificate;

/// `1.2.840.113549.1.1.1`
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// `1.2.840.10045.2.1`
const ELLIPTIC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// The bytes of the shortest RSA key of 2,048 bits, as certificates write it.
const SHORTEST_RSA: usize = 265;

/// Why a key or a certificate cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadKey(pub &'static str);

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1, only for old partners.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// The hash of these bytes.
    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }

    /// Its name in XML signatures.
    pub(crate) fn uri(self) -> &'static str {
        match self {
            Self::Sha1 => "http://www.w3.org/2000/09/xmldsig#sha1",
            Self::Sha256 => "http://www.w3.org/2001/04/xmlenc#sha256",
            Self::Sha384 => "http://www.w3.org/2001/04/xmldsig-more#sha384",
            Self::Sha512 => "http://www.w3.org/2001/04/xmlenc#sha512",
        }
    }

    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        let all = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512];
        all.into_iter().find(|it| it.uri() == uri)
    }

    /// The name of a signature of RSA with it.
    pub(crate) fn rsa_uri(self) -> &'static str {
        match self {
            Self::Sha1 => "http://www.w3.org/2000/09/xmldsig#rsa-sha1",
            Self::Sha256 => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
            Self::Sha384 => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384",
            Self::Sha512 => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512",
        }
    }
}

/// What a signature was made with, as its name says. Others than these are refused, above all those with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rsa(Hash),
    Ecdsa(Hash),
}

impl Algorithm {
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        let all = [Hash::Sha1, Hash::Sha256, Hash::Sha384, Hash::Sha512];
        if let Some(hash) = all.into_iter().find(|it| it.rsa_uri() == uri) {
            return Some(Self::Rsa(hash));
        }
        let name = uri.strip_prefix("http://www.w3.org/2001/04/xmldsig-more#ecdsa-")?;
        Some(Self::Ecdsa(match name {
            "sha256" => Hash::Sha256,
            "sha384" => Hash::Sha384,
            "sha512" => Hash::Sha512,
            _ => return None,
        }))
    }

    pub(crate) fn hash(self) -> Hash {
        match self {
            Self::Rsa(hash) | Self::Ecdsa(hash) => hash,
        }
    }
}

/// The key of a certificate. The certificate is trusted because it is configured: who signed it and its times do not count.
#[derive(Debug, Clone)]
pub struct VerifyingKey {
    bytes: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    P521,
}

impl VerifyingKey {
    /// The key of a certificate in PEM, or in Base64 without the lines around it.
    ///
    /// # Errors
    /// It is no certificate, or its key is of another kind or too short.
    pub fn of_certificate(text: &str) -> Result<Self, BadKey> {
        let certificate = match text.contains("-----BEGIN") {
            true => Certificate::of_pem(text),
            false => decoded(text).and_then(|der| Certificate::of_der(&der)),
        };
        let certificate = certificate.ok_or(BadKey("expected a certificate in PEM"))?;
        let bytes = certificate.public_key;
        let kind = match (certificate.algorithm.as_slice(), bytes.len()) {
            (RSA, length) if length >= SHORTEST_RSA => Kind::Rsa,
            (RSA, _) => return Err(BadKey("expected an RSA key of at least 2048 bits")),
            (ELLIPTIC, 65) => Kind::P256,
            (ELLIPTIC, 97) => Kind::P384,
            (ELLIPTIC, 133) => Kind::P521,
            _ => {
                return Err(BadKey(
                    "expected a certificate with a key for RSA, P-256, P-384 or P-521",
                ));
            }
        };
        Ok(Self { bytes, kind })
    }

    /// Whether the signature of these bytes was made with this key.
    pub(crate) fn verifies(&self, algorithm: Algorithm, bytes: &[u8], signed: &[u8]) -> bool {
        let algorithm: &'static dyn VerificationAlgorithm = match (algorithm, self.kind) {
            (Algorithm::Rsa(Hash::Sha1), Kind::Rsa) => {
                &signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY
            }
            (Algorithm::Rsa(Hash::Sha256), Kind::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Algorithm::Rsa(Hash::Sha384), Kind::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Algorithm::Rsa(Hash::Sha512), Kind::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (Algorithm::Ecdsa(Hash::Sha256), Kind::P256) => &signature::ECDSA_P256_SHA256_FIXED,
            (Algorithm::Ecdsa(Hash::Sha384), Kind::P384) => &signature::ECDSA_P384_SHA384_FIXED,
            (Algorithm::Ecdsa(Hash::Sha512), Kind::P521) => &signature::ECDSA_P521_SHA512_FIXED,
            _ => return false,
        };
        UnparsedPublicKey::new(algorithm, &self.bytes)
            .verify(bytes, signed)
            .is_ok()
    }
}

/// A private RSA key that signs messages. `Debug` does not show it.
pub struct SigningKey {
    pair: RsaKeyPair,
    /// The hash function of the signature.
    pub(crate) hash: Hash,
    /// The hash function of what is signed.
    pub(crate) digest: Hash,
    /// The certificate, in Base64, that messages carry.
    pub(crate) certificate: Option<String>,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SigningKey({:?})", self.hash)
    }
}

impl SigningKey {
    /// A key in PEM (PKCS#8 or PKCS#1, not encrypted), or in Base64 without the lines around it.
    ///
    /// # Errors
    /// The key is invalid or too short, or the certificate is invalid.
    pub fn new(text: &str, certificate: Option<&str>, hash: Hash, digest: Hash) -> Result<Self, BadKey> {
        let expected = BadKey("expected an RSA private key in PEM (not encrypted, at least 2048 bits)");
        let der = private_key(text).ok_or(expected)?;
        let pair = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der));
        let pair = pair.map_err(|_| expected)?;
        if pair.public_modulus_len() < 256 {
            return Err(expected);
        }
        let certificate = certificate.map(|text| {
            let read = match text.contains("-----BEGIN") {
                true => Certificate::of_pem(text),
                false => decoded(text).and_then(|der| Certificate::of_der(&der)),
            };
            let read = read.ok_or(BadKey("expected a certificate in PEM"))?;
            match read.public_key == pair.public_key().as_ref() {
                true => Ok(STANDARD.encode(read.der)),
                false => Err(BadKey("the certificate is not that of the key")),
            }
        });
        Ok(Self {
            certificate: certificate.transpose()?,
            pair,
            hash,
            digest,
        })
    }

    /// The signature of these bytes.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        let encoding: &'static dyn RsaEncoding = match self.hash {
            Hash::Sha1 | Hash::Sha256 => &signature::RSA_PKCS1_SHA256,
            Hash::Sha384 => &signature::RSA_PKCS1_SHA384,
            Hash::Sha512 => &signature::RSA_PKCS1_SHA512,
        };
        let mut out = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(encoding, &SystemRandom::new(), bytes, &mut out)
            .expect("invariant: a key of 2048 bits can sign any hash");
        out
    }

    /// The name of what it signs with. New signatures are never made with SHA-1.
    pub(crate) fn uri(&self) -> &'static str {
        match self.hash {
            Hash::Sha1 => Hash::Sha256.rsa_uri(),
            hash => hash.rsa_uri(),
        }
    }
}

/// The bytes of the first private key of a text.
pub(crate) fn private_key(text: &str) -> Option<Vec<u8>> {
    let Some(at) = text.find("PRIVATE KEY-----") else {
        return decoded(text);
    };
    let (body, _) = text[at + 16..].split_once("-----END ")?;
    decoded(body)
}

/// Base64 with white space in it.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|it| !it.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok().filter(|it| !it.is_empty())
}
