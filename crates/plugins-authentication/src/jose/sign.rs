//! Signs tokens: client assertions, which a client sends to a provider instead of a password (RFC 7523), and the tokens
//! that replace callers' tokens for upstreams.

use super::jwk::{Jwk, decoded};
use crate::jwt::Algorithm;
use crate::jwt::verifier::Work;
use crate::private_key::PrivateKey;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;

/// The most keys of one set that are read.
const MAX_KEYS: usize = 64;

/// A key that signs with one algorithm. `Debug` does not show it.
pub(crate) struct SigningKey {
    algorithm: Algorithm,
    id: Option<String>,
    key: SignerKey,
}

enum SignerKey {
    Secret(Box<hmac::Key>),
    Rsa(Box<RsaKeyPair>, &'static dyn RsaEncoding),
    Ecdsa(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

/// Why a key cannot sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a private key in PEM (not encrypted) that fits the algorithm {0}")]
pub(crate) struct BadKey(&'static str);

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({:?})", self.algorithm)
    }
}

impl SigningKey {
    /// A key of a secret, for the `HS…` algorithms, or of a private key in PEM.
    pub(crate) fn new(algorithm: Algorithm, text: &str, id: Option<&str>) -> Result<Self, BadKey> {
        use Algorithm::{
            ES256, ES384, ES512, EdDSA, HS256, HS384, HS512, PS256, PS384, PS512, RS256, RS384, RS512,
        };
        let name = name(algorithm);
        let secret = |work| Ok(SignerKey::Secret(Box::new(hmac::Key::new(work, text.as_bytes()))));
        let key = match algorithm {
            HS256 => secret(hmac::HMAC_SHA256),
            HS384 => secret(hmac::HMAC_SHA384),
            HS512 => secret(hmac::HMAC_SHA512),
            RS256 | RS384 | RS512 | PS256 | PS384 | PS512 => padding(algorithm)
                .ok_or(())
                .and_then(|padding| rsa(text, padding)),
            ES256 | ES384 | ES512 => ecdsa(text, curve(algorithm)),
            EdDSA => {
                let pair = der(text).and_then(|(_, der)| Ed25519KeyPair::from_pkcs8(&der).ok());
                pair.map(|pair| SignerKey::Ed25519(Box::new(pair))).ok_or(())
            }
        };
        Ok(Self {
            algorithm,
            id: id.map(str::to_owned),
            key: key.map_err(|()| BadKey(name))?,
        })
    }

    /// The first of these keys that can sign with the algorithm. `None`: none can.
    pub(crate) fn first(algorithm: Algorithm, keys: &[PrivateKey]) -> Option<Self> {
        keys.iter().find_map(|key| match (&key.jwk, &key.pem) {
            (Some(text), None) => {
                let jwk: Jwk = serde_json::from_str(text).ok()?;
                let made = Self::of_jwk(algorithm, &jwk)?;
                Some(Self {
                    id: key.id.clone().or(made.id),
                    ..made
                })
            }
            // A secret cannot be in PEM.
            (None, Some(_)) if matches!(algorithm.work(), Work::Hmac(_)) => None,
            (None, Some(text)) => Self::new(algorithm, text, key.id.as_deref()).ok(),
            _ => None,
        })
    }

    /// The first key of a key set that can sign with the algorithm. `None`: it is not a valid key set, or none can.
    pub(crate) fn of_set(algorithm: Algorithm, json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document = serde_json::from_slice(json).ok()?;
        let mut keys = document.keys.into_iter().take(MAX_KEYS);
        keys.find_map(|key| Self::of_jwk(algorithm, &serde_json::from_value(key).ok()?))
    }

    fn of_jwk(algorithm: Algorithm, jwk: &Jwk) -> Option<Self> {
        let is_own = jwk.alg.as_deref().is_none_or(|own| own == name(algorithm));
        if !is_own || !jwk.is_for("sig") {
            return None;
        }
        let on_curve = |curve: &str| (jwk.kty == "EC" && jwk.crv.as_deref() == Some(curve)).then_some(());
        let key = match algorithm {
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                let Work::Hmac(work) = algorithm.work() else {
                    return None;
                };
                let secret = jwk.secret().filter(|_| jwk.kty == "oct")?;
                SignerKey::Secret(Box::new(hmac::Key::new(work, &secret)))
            }
            Algorithm::ES256 => on_curve("P-256").and_then(|()| point(jwk, algorithm))?,
            Algorithm::ES384 => on_curve("P-384").and_then(|()| point(jwk, algorithm))?,
            Algorithm::ES512 => on_curve("P-521").and_then(|()| point(jwk, algorithm))?,
            Algorithm::EdDSA => {
                let is_it = jwk.kty == "OKP" && jwk.crv.as_deref() == Some("Ed25519");
                let (seed, public) = (decoded(&jwk.d).filter(|_| is_it)?, decoded(&jwk.x)?);
                let pair = Ed25519KeyPair::from_seed_and_public_key(&seed, &public).ok()?;
                SignerKey::Ed25519(Box::new(pair))
            }
            _ => {
                let der = jwk.rsa_private().filter(|_| jwk.kty == "RSA")?;
                SignerKey::Rsa(Box::new(RsaKeyPair::from_der(&der).ok()?), padding(algorithm)?)
            }
        };
        Some(Self {
            algorithm,
            id: jwk.kid.clone(),
            key,
        })
    }

    /// A signed token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        self.sign_as("JWT", claims)
    }

    /// A signed token of a kind, which its header names in `typ`.
    pub(crate) fn sign_as(&self, kind: &str, claims: &Value) -> Option<String> {
        let mut head = json!({"alg": name(self.algorithm), "typ": kind});
        if let Some(id) = &self.id {
            head["kid"] = Value::from(id.as_str());
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&head), part(claims));
        let bytes = message.as_bytes();
        let random = SystemRandom::new();
        let signature = match &self.key {
            SignerKey::Secret(key) => hmac::sign(key, bytes).as_ref().to_vec(),
            SignerKey::Rsa(pair, encoding) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(*encoding, &random, bytes, &mut out).ok()?;
                out
            }
            SignerKey::Ecdsa(pair) => pair.sign(&random, bytes).ok()?.as_ref().to_vec(),
            SignerKey::Ed25519(pair) => pair.sign(bytes).as_ref().to_vec(),
        };
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// How RSA signs with an algorithm.
fn padding(algorithm: Algorithm) -> Option<&'static dyn RsaEncoding> {
    Some(match algorithm {
        Algorithm::RS256 => &signature::RSA_PKCS1_SHA256,
        Algorithm::RS384 => &signature::RSA_PKCS1_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_SHA512,
        _ => return None,
    })
}

fn curve(algorithm: Algorithm) -> &'static EcdsaSigningAlgorithm {
    match algorithm {
        Algorithm::ES384 => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        Algorithm::ES512 => &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
        _ => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
    }
}

/// The key on a curve of a JSON Web Key.
fn point(jwk: &Jwk, algorithm: Algorithm) -> Option<SignerKey> {
    let (private, public) = (decoded(&jwk.d)?, jwk.point()?);
    let pair = EcdsaKeyPair::from_private_key_and_public_key(curve(algorithm), &private, &public);
    Some(SignerKey::Ecdsa(Box::new(pair.ok()?)))
}

pub(super) fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::HS256 => "HS256",
        Algorithm::HS384 => "HS384",
        Algorithm::HS512 => "HS512",
        Algorithm::RS256 => "RS256",
        Algorithm::RS384 => "RS384",
        Algorithm::RS512 => "RS512",
        Algorithm::ES256 => "ES256",
        Algorithm::ES384 => "ES384",
        Algorithm::ES512 => "ES512",
        Algorithm::PS256 => "PS256",
        Algorithm::PS384 => "PS384",
        Algorithm::PS512 => "PS512",
        Algorithm::EdDSA => "EdDSA",
    }
}

/// The first key of a PEM text: its label and its bytes.
pub(super) fn der(pem: &str) -> Option<(&str, Vec<u8>)> {
    let at = pem.find("PRIVATE KEY-----")?;
    let begin = pem[..at].rfind("-----BEGIN ")?;
    let (_, rest) = pem[begin..].split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.chars().filter(|it| !it.is_ascii_whitespace()).collect();
    Some((label, STANDARD.decode(body).ok()?))
}

fn rsa(pem: &str, encoding: &'static dyn RsaEncoding) -> Result<SignerKey, ()> {
    let (label, der) = der(pem).ok_or(())?;
    let pair = match label {
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der),
        _ => RsaKeyPair::from_pkcs8(&der),
    };
    Ok(SignerKey::Rsa(Box::new(pair.map_err(|_| ())?), encoding))
}

fn ecdsa(pem: &str, algorithm: &'static EcdsaSigningAlgorithm) -> Result<SignerKey, ()> {
    let (label, der) = der(pem).ok_or(())?;
    let pair = match label {
        "EC PRIVATE KEY" => EcdsaKeyPair::from_private_key_der(algorithm, &der),
        _ => EcdsaKeyPair::from_pkcs8(algorithm, &der),
    };
    let pair = pair.map_err(|_| ())?;
    // A key of another curve would sign with numbers of another size.
    let has_point = !pair.public_key().as_ref().is_empty();
    has_point.then(|| SignerKey::Ecdsa(Box::new(pair))).ok_or(())
}
