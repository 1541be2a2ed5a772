//! Key sets: the public keys of another server, each for the algorithms that it may be used with.

use crate::jwt::Algorithm;
use crate::jwt::pem;
use crate::jwt::verifier::Work;
use aws_lc_rs::signature::ParsedPublicKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use std::fmt;

/// The most keys of one set that are read.
const MAX_KEYS: usize = 64;
/// The most keys that are tried for one token.
const MAX_TRIED: usize = 16;
/// RFC 7518 (3.3).
const LEAST_RSA_BITS: usize = 2_048;

/// Public keys.
#[derive(Default)]
pub(crate) struct KeySet(Vec<VerificationKey>);

struct VerificationKey {
    id: Option<String>,
    /// The algorithms that it is good for. Never an HMAC.
    uses: Vec<(Algorithm, ParsedPublicKey)>,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

/// Key ids may be long, and the keys are of no use in a log.
impl fmt::Debug for KeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeySet({})", self.0.len())
    }
}

impl KeySet {
    /// Reads a key set. Keys that cannot be used are left out; `None`: it is no key set.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(json).ok()?;
        let keys = document.keys.into_iter().take(MAX_KEYS);
        Some(Self(keys.filter_map(read).collect()))
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
        Some(fitting.any(|(_, key)| key.verify_sig(message, signature).is_ok()))
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

fn read(value: serde_json::Value) -> Option<VerificationKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let decode = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let (possible, bytes): (&[Algorithm], Vec<u8>) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => (&RSA, rsa_key(&decode(&jwk.n)?, &decode(&jwk.e)?)),
        ("EC", Some("P-256")) => (&[Algorithm::ES256], point(decode(&jwk.x)?, &decode(&jwk.y)?)),
        ("EC", Some("P-384")) => (&[Algorithm::ES384], point(decode(&jwk.x)?, &decode(&jwk.y)?)),
        ("EC", Some("P-521")) => (&[Algorithm::ES512], point(decode(&jwk.x)?, &decode(&jwk.y)?)),
        ("OKP", Some("Ed25519")) => (&[Algorithm::EdDSA], decode(&jwk.x)?),
        // A secret (`oct`) in a public document is none.
        _ => return None,
    };
    let bits = pem::rsa_bits(&bytes).filter(|_| jwk.kty == "RSA");
    let mut uses = uses(possible, &bytes, bits);
    if let Some(name) = &jwk.alg {
        uses.retain(|(algorithm, _)| Algorithm::parse(name) == Some(*algorithm));
    }
    (!uses.is_empty()).then_some(VerificationKey { id: jwk.kid, uses })
}

fn uses(possible: &[Algorithm], key: &[u8], rsa_bits: Option<usize>) -> Vec<(Algorithm, ParsedPublicKey)> {
    let is_long = rsa_bits.is_some_and(|bits| bits >= LEAST_RSA_BITS);
    let usable = possible.iter().filter(|it| !it.is_rsa() || is_long);
    let parsed = usable.filter_map(|algorithm| match algorithm.work() {
        Work::Signature(work) => Some((*algorithm, ParsedPublicKey::new(work, key).ok()?)),
        Work::Hmac(_) => None,
    });
    parsed.collect()
}

fn point(mut x: Vec<u8>, y: &[u8]) -> Vec<u8> {
    x.insert(0, 4);
    x.extend_from_slice(y);
    x
}

/// An `RSAPublicKey` (RFC 8017, A.1.1).
fn rsa_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let numbers = [integer(modulus), integer(exponent)].concat();
    element(0x30, &numbers)
}

fn integer(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let mut digits = number[zeros..].to_vec();
    if digits.first().is_none_or(|first| first & 0x80 != 0) {
        digits.insert(0, 0);
    }
    element(0x02, &digits)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let mut out = vec![tag];
    match content.len() {
        short @ 0..0x80 => out.push(short as u8),
        _ => {
            out.push(0x80 | (length.len() - zeros) as u8);
            out.extend_from_slice(&length[zeros..]);
        }
    }
    out.extend_from_slice(content);
    out
}
