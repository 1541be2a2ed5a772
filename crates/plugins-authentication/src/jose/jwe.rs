//! Encrypted tokens in compact form (RFC 7516, 7.1): their parts, and opening them.
//!
//! The key decides which algorithms are good: a secret is used as it is (`dir`), an RSA key with OAEP. RSA with the padding
//! of PKCS#1 is not read, because answers about it give the text away. Compressed texts are not read, because a small token
//! could grow without a limit.

use super::jwk::{Jwk, pkcs8};
use super::sign::der;
use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, PrivateDecryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use std::fmt;

/// Longer tokens are not read.
const MAX_TOKEN: usize = 64 * 1024;
const BLOCK: usize = 16;

/// A key that opens tokens. `Debug` does not show it.
pub(crate) struct DecryptionKey {
    /// The algorithm for which it was made; absent: every one that fits it.
    algorithm: Option<String>,
    kind: Kind,
}

enum Kind {
    Secret(Vec<u8>),
    Rsa(Box<OaepPrivateDecryptingKey>),
}

impl fmt::Debug for DecryptionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DecryptionKey")
    }
}

impl DecryptionKey {
    /// The key of a JSON Web Key, with its id. `None`: it cannot open tokens.
    pub(crate) fn of_jwk(text: &str) -> Option<(Option<String>, Self)> {
        let jwk: Jwk = serde_json::from_str(text).ok()?;
        if !jwk.is_for("enc") {
            return None;
        }
        let kind = match jwk.kty.as_str() {
            "oct" => Kind::Secret(jwk.secret()?),
            "RSA" => rsa(&pkcs8(&jwk.rsa_private()?))?,
            _ => return None,
        };
        let algorithm = jwk.alg;
        Some((jwk.kid, Self { algorithm, kind }))
    }

    /// The RSA key of a PEM text. `None`: it has none, or one that is encrypted or short.
    pub(crate) fn of_pem(text: &str) -> Option<Self> {
        let (label, der) = der(text)?;
        let kind = match label {
            "RSA PRIVATE KEY" => rsa(&pkcs8(&der))?,
            _ => rsa(&der)?,
        };
        Some(Self {
            algorithm: None,
            kind,
        })
    }
}

fn rsa(pkcs8: &[u8]) -> Option<Kind> {
    let key = PrivateDecryptingKey::from_pkcs8(pkcs8).ok()?;
    let key = OaepPrivateDecryptingKey::new(key).ok()?;
    Some(Kind::Rsa(Box::new(key)))
}

/// An encrypted token.
pub(crate) struct Jwe<'t> {
    head: Value,
    protected: &'t [u8],
    key: &'t [u8],
    start: &'t [u8],
    sealed: &'t [u8],
    tag: &'t [u8],
}

fn decode(part: &[u8]) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

impl<'t> Jwe<'t> {
    /// Splits a token. `None` if it is not a token, or needs an extension that is not known here (`crit`, RFC 7516,
    /// 4.1.13).
    pub(crate) fn parse(token: &'t [u8]) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let mut parts = token.split(|byte| *byte == b'.');
        let protected = parts.next()?;
        let (key, start, sealed, tag) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let head: Value = serde_json::from_slice(&decode(protected)?).ok()?;
        if parts.next().is_some() || head.get("crit").is_some() || head.get("zip").is_some() {
            return None;
        }
        Some(Self {
            head,
            protected,
            key,
            start,
            sealed,
            tag,
        })
    }

    /// A parameter of its header, if that is a text.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.head.get(name)?.as_str()
    }

    /// Opens it with the key that the token names. Each failure looks the same.
    pub(crate) fn open(&self, key: &DecryptionKey) -> Option<Vec<u8>> {
        let (algorithm, content) = (self.parameter("alg")?, self.parameter("enc")?);
        let own = key.algorithm.as_deref();
        match &key.kind {
            Kind::Secret(secret) => {
                let is_own = own.is_none_or(|own| own == algorithm || own == content);
                if algorithm != "dir" || !self.key.is_empty() || !is_own {
                    return None;
                }
                self.open_content(content, secret)
            }
            Kind::Rsa(key) => {
                let padding = match algorithm {
                    "RSA-OAEP" => &OAEP_SHA1_MGF1SHA1,
                    "RSA-OAEP-256" => &OAEP_SHA256_MGF1SHA256,
                    _ => return None,
                };
                if own.is_some_and(|own| own != algorithm) {
                    return None;
                }
                let mut out = vec![0; key.min_output_size()];
                let secret = key.decrypt(padding, &decode(self.key)?, &mut out, None).ok()?;
                self.open_content(content, secret)
            }
        }
    }

    /// Opens it with a key of AES-GCM, whatever its header says; `is_bound`: the header is protected.
    pub(crate) fn open_plain(&self, key: &LessSafeKey, is_bound: bool) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_LEN] = decode(self.start)?.try_into().ok()?;
        let tag = decode(self.tag).filter(|tag| tag.len() == BLOCK)?;
        let mut text = decode(self.sealed)?;
        text.extend_from_slice(&tag);
        let bound = if is_bound { self.protected } else { b"" };
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = key.open_in_place(nonce, Aad::from(bound), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }

    fn open_content(&self, name: &str, secret: &[u8]) -> Option<Vec<u8>> {
        let gcm = |algorithm: &'static Algorithm| {
            let key = LessSafeKey::new(UnboundKey::new(algorithm, secret).ok()?);
            self.open_plain(&key, true)
        };
        // A key of another length is refused, so that a key is only used with what it was made for.
        match (name, secret.len()) {
            ("A128GCM", 16) => gcm(&AES_128_GCM),
            ("A192GCM", 24) => gcm(&AES_192_GCM),
            ("A256GCM", 32) => gcm(&AES_256_GCM),
            ("A128CBC-HS256", 32) => self.open_blocks(secret, HMAC_SHA256),
            ("A192CBC-HS384", 48) => self.open_blocks(secret, HMAC_SHA384),
            ("A256CBC-HS512", 64) => self.open_blocks(secret, HMAC_SHA512),
            _ => None,
        }
    }

    /// AES-CBC with HMAC (RFC 7518, 5.2.2.2). The tag is checked first, so that nothing can be learnt from the padding.
    fn open_blocks(&self, secret: &[u8], hash: hmac::Algorithm) -> Option<Vec<u8>> {
        let (of_tag, of_text) = secret.split_at(secret.len() / 2);
        let bits = (self.protected.len() as u64).checked_mul(8)?.to_be_bytes();
        let (start, mut text) = (decode(self.start)?, decode(self.sealed)?);
        let mut context = hmac::Context::with_key(&hmac::Key::new(hash, of_tag));
        for part in [self.protected, &start, &text, &bits[..]] {
            context.update(part);
        }
        let tag = context.sign();
        verify_slices_are_equal(&tag.as_ref()[..of_tag.len()], &decode(self.tag)?).ok()?;
        let algorithm = match of_text.len() {
            16 => &AES_128,
            24 => &AES_192,
            _ => &AES_256,
        };
        let start: [u8; BLOCK] = start.try_into().ok()?;
        let key = UnboundCipherKey::new(algorithm, of_text).ok()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
        let context = DecryptionContext::Iv128(FixedLength::from(start));
        let length = key.decrypt(&mut text, context).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}
