//! Keys that the gateway makes for itself: one for each algorithm whose signatures others can check without a secret. Where they
//! are kept is for those who ask.

use super::jwk;
use super::sign::name;
use crate::jwt::Algorithm;
use aws_lc_rs::digest;
use aws_lc_rs::encoding::{AsBigEndian, AsDer, Curve25519SeedBin, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The algorithms that keys are made for.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::ES512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::EdDSA,
];

/// A private JSON Web Key for each algorithm that keys are made for. It takes a good part of a second: not for the threads that
/// serve calls. `None`: the machine gives no random numbers.
pub fn generate() -> Option<Vec<Value>> {
    ALGORITHMS.into_iter().map(key).collect()
}

fn key(algorithm: Algorithm) -> Option<Value> {
    let mut key = match algorithm {
        Algorithm::ES256 => curve("P-256", &ECDSA_P256_SHA256_FIXED_SIGNING)?,
        Algorithm::ES384 => curve("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING)?,
        Algorithm::ES512 => curve("P-521", &ECDSA_P521_SHA512_FIXED_SIGNING)?,
        Algorithm::EdDSA => edwards()?,
        _ => rsa()?,
    };
    key["kid"] = thumbprint(&key).into();
    key["alg"] = name(algorithm).into();
    key["use"] = "sig".into();
    Some(key)
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa() -> Option<Value> {
    let pair = rsa::KeyPair::generate(KeySize::Rsa2048).ok()?;
    let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).ok()?;
    let numbers = jwk::rsa_numbers(der.as_ref())?;
    let mut key = json!({ "kty": "RSA" });
    for (name, number) in ["n", "e", "d", "p", "q", "dp", "dq", "qi"].iter().zip(numbers) {
        key[*name] = text(number).into();
    }
    Some(key)
}

fn curve(curve: &str, algorithm: &'static EcdsaSigningAlgorithm) -> Option<Value> {
    let pair = EcdsaKeyPair::generate(algorithm).ok()?;
    let private: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes().ok()?;
    // Both coordinates, behind the mark of a point that is not compressed.
    let point = pair.public_key().as_ref().get(1..)?;
    let (x, y) = point.split_at_checked(point.len() / 2)?;
    Some(json!({
        "kty": "EC", "crv": curve, "x": text(x), "y": text(y), "d": text(private.as_ref()),
    }))
}

fn edwards() -> Option<Value> {
    let pair = Ed25519KeyPair::generate().ok()?;
    let seed = pair.seed().ok()?;
    let seed: Curve25519SeedBin<'_> = seed.as_be_bytes().ok()?;
    Some(json!({
        "kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()), "d": text(seed.as_ref()),
    }))
}

/// The thumbprint of a key (RFC 7638): a digest of the members that make it, in the order of their names.
fn thumbprint(key: &Value) -> String {
    let members = ["crv", "e", "kty", "n", "x", "y"].into_iter();
    let written: Vec<String> = members
        .filter_map(|name| Some(format!("\"{name}\":{}", key.get(name)?)))
        .collect();
    let text_of_key = format!("{{{}}}", written.join(","));
    text(digest::digest(&digest::SHA256, text_of_key.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::super::{Jws, KeySet, SigningKey};
    use super::*;

    #[test]
    fn keys_sign_what_their_public_halves_check() {
        let keys = generate().expect("keys");
        let others = generate().expect("keys");
        let document = |keys: &[Value]| {
            let mut keys = keys.to_vec();
            for key in &mut keys {
                let key = key.as_object_mut().expect("a key");
                key.retain(|name, _| !matches!(name.as_str(), "d" | "p" | "q" | "dp" | "dq" | "qi"));
            }
            KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).expect("a key set")
        };
        let (own_set, other_set) = (document(&keys), document(&others));
        let private = json!({ "keys": keys }).to_string();
        for (algorithm, key) in ALGORITHMS.into_iter().zip(&keys) {
            let signer = SigningKey::of_set(algorithm, private.as_bytes()).expect("a key that fits");
            let token = signer.sign(&json!({ "sub": "a" })).expect("signed");
            let jws = Jws::parse(&token).expect("a token");
            assert_eq!(jws.verify(&own_set), Ok(()), "{algorithm:?}");
            assert!(jws.verify(&other_set).is_err(), "{algorithm:?}");
            assert_eq!(key["alg"], name(algorithm));
        }
        let ids: std::collections::BTreeSet<&str> = keys
            .iter()
            .chain(&others)
            .filter_map(|key| key["kid"].as_str())
            .collect();
        assert_eq!(ids.len(), 2 * ALGORITHMS.len());
    }

    /// The example of RFC 7638, 3.1.
    #[test]
    fn ids_are_thumbprints() {
        let key = json!({
            "kty": "RSA", "alg": "RS256", "kid": "2011-04-29", "e": "AQAB",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        });
        assert_eq!(thumbprint(&key), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }
}
