//! A signed token: its parts, and whether a key has signed it.

use super::keys::{KeySet, algorithm};
use crate::jwt::verifier::Work;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longer tokens are not read.
const MAX_TOKEN: usize = 64 * 1024;

/// A token whose signature has not been checked yet.
pub struct Jws<'t> {
    /// The algorithm that it names.
    pub algorithm: String,
    /// What kind of token it says that it is (`typ`).
    pub kind: Option<String>,
    key_id: Option<String>,
    message: &'t [u8],
    claims: &'t str,
    signature: Vec<u8>,
}

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwsError {
    /// It is not a signed token.
    Malformed,
    /// Its algorithm is not known, or may not be used.
    Algorithm,
    /// There is no key of its id. A newer key set may have it.
    UnknownKey,
    /// The key has not signed it.
    Signature,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    typ: Option<Value>,
    #[serde(default)]
    crit: Option<Value>,
}

impl<'t> Jws<'t> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// It is not a signed token, or has extensions that must be understood.
    pub fn parse(token: &'t str) -> Result<Self, JwsError> {
        let mut parts = token.split('.');
        let (Some(head), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(JwsError::Malformed);
        };
        if token.len() > MAX_TOKEN {
            return Err(JwsError::Malformed);
        }
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| JwsError::Malformed);
        let parsed: Head = serde_json::from_slice(&decode(head)?).map_err(|_| JwsError::Malformed)?;
        if parsed.crit.is_some() {
            return Err(JwsError::Algorithm);
        }
        Ok(Self {
            algorithm: parsed.alg,
            kind: parsed.typ.and_then(|it| it.as_str().map(str::to_owned)),
            key_id: parsed.kid,
            message: &token.as_bytes()[..head.len() + 1 + claims.len()],
            claims,
            signature: decode(signature)?,
        })
    }

    /// What it claims. That is only true once the signature has been checked.
    ///
    /// # Errors
    /// It holds no claims.
    pub fn claims(&self) -> Result<Map<String, Value>, JwsError> {
        let json = URL_SAFE_NO_PAD
            .decode(self.claims)
            .map_err(|_| JwsError::Malformed)?;
        serde_json::from_slice(&json).map_err(|_| JwsError::Malformed)
    }

    /// Checks the signature by a public key of the set.
    ///
    /// # Errors
    /// No key of the set has signed it.
    pub fn verify(&self, keys: &KeySet) -> Result<(), JwsError> {
        match algorithm(&self.algorithm) {
            Some(algorithm) if matches!(algorithm.work(), Work::Signature(_)) => self.verify_any(keys),
            _ => Err(JwsError::Algorithm),
        }
    }

    /// Checks the signature by a key of the set, which may hold secrets.
    pub(crate) fn verify_any(&self, keys: &KeySet) -> Result<(), JwsError> {
        let algorithm = algorithm(&self.algorithm).ok_or(JwsError::Algorithm)?;
        let id = self.key_id.as_deref();
        match keys.verify(id, algorithm, self.message, &self.signature) {
            None => Err(JwsError::UnknownKey),
            Some(false) => Err(JwsError::Signature),
            Some(true) => Ok(()),
        }
    }

    /// Checks the signature by a secret that both sides share.
    pub(crate) fn verify_secret(&self, secret: &[u8]) -> Result<(), JwsError> {
        let algorithm = algorithm(&self.algorithm).ok_or(JwsError::Algorithm)?;
        let Work::Hmac(work) = algorithm.work() else {
            return Err(JwsError::Algorithm);
        };
        let key = hmac::Key::new(work, secret);
        let checked = hmac::verify(&key, self.message, &self.signature);
        checked.map_err(|_| JwsError::Signature)
    }
}
