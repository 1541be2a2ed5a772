//! Key sets: the keys of another server by which its tokens are checked, each for the algorithms that it may be used with.

use super::jwk::{Jwk, decoded};
use crate::jwt::Algorithm;
use crate::jwt::pem;
use crate::jwt::verifier::Work;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::ParsedPublicKey;
use serde::Deserialize;
use std::fmt;

/// The most keys of one set that are read.
const MAX_KEYS: usize = 64;
/// The most keys that are tried for one token.
const MAX_TRIED: usize = 16;
/// RFC 7518 (3.3).
const LEAST_RSA_BITS: usize = 2_048;

/// Keys that check signatures.
#[derive(Default)]
pub struct KeySet(Vec<VerificationKey>);

struct VerificationKey {
    id: Option<String>,
    /// The algorithms that it is good for: those of a public key, or those of a secret, and never both.
    uses: Vec<(Algorithm, Verifier)>,
}

enum Verifier {
    Public(ParsedPublicKey),
    Secret(Box<hmac::Key>),
}

impl Verifier {
    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Public(key) => key.verify_sig(message, signature).is_ok(),
            Self::Secret(key) => hmac::verify(key, message, signature).is_ok(),
        }
    }
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

/// Key ids may be long, and the keys are of no use in a log.
impl fmt::Debug for KeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeySet({})", self.0.len())
    }
}

impl KeySet {
    /// Reads a key set. Keys that cannot be used are left out, and so are secrets; `None`: it is not a valid key set.
    pub fn parse(json: &[u8]) -> Option<Self> {
        Self::read(json, false)
    }

    /// The same, with its secrets.
    pub(crate) fn parse_with_secrets(json: &[u8]) -> Option<Self> {
        Self::read(json, true)
    }

    fn read(json: &[u8], takes_secrets: bool) -> Option<Self> {
        let document: Document = serde_json::from_slice(json).ok()?;
        let keys = document.keys.into_iter().take(MAX_KEYS);
        Some(Self(keys.filter_map(|key| read(key, takes_secrets)).collect()))
    }

    /// The one key of a PEM text: a public key or a certificate. `None`: it is neither.
    pub(crate) fn of_pem(text: &str) -> Option<Self> {
        let der = pem::public_key(text)?;
        let uses = uses(&ALL, &der, pem::rsa_bits(&der));
        (!uses.is_empty()).then(|| Self(vec![VerificationKey { id: None, uses }]))
    }

    /// Whether one of the keys has signed the message. `None`: there is no key of this id for this algorithm.
    pub(crate) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let has_id = |key: &&VerificationKey| match (id, &key.id) {
            (Some(wanted), Some(id)) => wanted == id,
            // A token without an id, or a key without one, may be any of them.
            _ => true,
        };
        let keys = self.0.iter().filter(has_id);
        let fitting = keys.filter_map(|key| key.uses.iter().find(|(it, _)| *it == algorithm));
        let mut fitting = fitting.take(MAX_TRIED).peekable();
        fitting.peek()?;
        Some(fitting.any(|(_, key)| key.has_signed(message, signature)))
    }
}

/// The algorithm of a name, in a token or a key set. `Ed25519` is the newer name of `EdDSA` with such a key (RFC 9864).
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    match name {
        "Ed25519" => Some(Algorithm::EdDSA),
        name => Algorithm::parse(name),
    }
}

const RSA: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

const ALL: [Algorithm; 10] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::ES512,
    Algorithm::EdDSA,
];

const HMAC: [Algorithm; 3] = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];

fn read(value: serde_json::Value, takes_secrets: bool) -> Option<VerificationKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    if !jwk.is_for("sig") {
        return None;
    }
    let (possible, bytes): (&[Algorithm], Vec<u8>) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => (&RSA, jwk.rsa_public()?),
        ("EC", Some("P-256")) => (&[Algorithm::ES256], jwk.point()?),
        ("EC", Some("P-384")) => (&[Algorithm::ES384], jwk.point()?),
        ("EC", Some("P-521")) => (&[Algorithm::ES512], jwk.point()?),
        ("OKP", Some("Ed25519")) => (&[Algorithm::EdDSA], decoded(&jwk.x)?),
        // A secret in a public document is not a usable key.
        ("oct", _) if takes_secrets => (&HMAC, jwk.secret()?),
        _ => return None,
    };
    let bits = pem::rsa_bits(&bytes).filter(|_| jwk.kty == "RSA");
    let mut uses = uses(possible, &bytes, bits);
    if let Some(name) = &jwk.alg {
        uses.retain(|(it, _)| algorithm(name) == Some(*it));
    }
    (!uses.is_empty()).then_some(VerificationKey { id: jwk.kid, uses })
}

fn uses(possible: &[Algorithm], key: &[u8], rsa_bits: Option<usize>) -> Vec<(Algorithm, Verifier)> {
    let is_long = rsa_bits.is_some_and(|bits| bits >= LEAST_RSA_BITS);
    let usable = possible.iter().filter(|it| !it.is_rsa() || is_long);
    let parsed = usable.filter_map(|algorithm| match algorithm.work() {
        Work::Signature(work) => {
            let key = ParsedPublicKey::new(work, key).ok()?;
            Some((*algorithm, Verifier::Public(key)))
        }
        Work::Hmac(work) => Some((*algorithm, Verifier::Secret(Box::new(hmac::Key::new(work, key))))),
    });
    parsed.collect()
}
