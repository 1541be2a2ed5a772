//! ID tokens: whether a key of the provider has signed them. The signatures are checked by the catalogue's own JOSE.
//!
//! **What it is not**: it does not say what the claims have to be, and it knows no shared keys: a provider signs with a
//! key of its own.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use weir_plugins::jose::{self, Jws, JwsError};

/// The public keys of a provider (RFC 7517).
#[derive(Debug, Default)]
pub struct KeySet(jose::KeySet);

impl<'de> Deserialize<'de> for KeySet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Value::deserialize(deserializer)?;
        let keys = jose::KeySet::parse(document.to_string().as_bytes());
        keys.map(Self)
            .ok_or_else(|| serde::de::Error::custom("expected a key set"))
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no token.
    #[error("it is not a signed token")]
    NoToken,
    /// It is signed in a way that is not accepted.
    #[error("its algorithm '{0}' is not accepted")]
    Algorithm(String),
    /// None of the keys fits. The provider may have others by now.
    #[error("it is signed with a key that the provider does not publish")]
    UnknownKey,
    /// The signature is not that of its key.
    #[error("its signature is wrong")]
    Signature,
    /// A claim is not as it has to be.
    #[error("its claim '{0}' is not as expected")]
    Claim(&'static str),
}

/// The claims of a token that one of the keys has signed.
///
/// # Errors
/// Why it is refused.
pub fn verify(token: &str, keys: &KeySet) -> Result<Value, TokenError> {
    let token = Jws::parse(token).map_err(|_| TokenError::NoToken)?;
    token.verify(&keys.0).map_err(|error| match error {
        JwsError::Malformed => TokenError::NoToken,
        JwsError::Algorithm => TokenError::Algorithm(token.algorithm.clone()),
        JwsError::UnknownKey => TokenError::UnknownKey,
        JwsError::Signature => TokenError::Signature,
    })?;
    token.claims().map(Value::Object).map_err(|_| TokenError::NoToken)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    /// Longer than any token that is read.
    const TOO_LONG: usize = 64 << 10;

    pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn key_set(keys: &[Value]) -> KeySet {
        serde_json::from_value(json!({ "keys": keys })).expect("a key set")
    }

    /// A signer and its key set.
    pub fn signer() -> (EcdsaKeyPair, KeySet) {
        let (pair, key) = signer_and_key();
        (pair, key_set(&[key]))
    }

    fn signer_and_key() -> (EcdsaKeyPair, Value) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let point = pair.public_key().as_ref().to_vec();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        let key = json!({ "kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": x, "y": y });
        (pair, key)
    }

    pub fn signed(pair: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = pair
            .sign(&SystemRandom::new(), message.as_bytes())
            .expect("signed");
        format!("{message}.{}", encoded(signature))
    }

    #[test]
    fn only_what_a_key_of_the_set_has_signed_is_accepted() {
        let (pair, keys) = signer();
        let claims = json!({ "sub": "ada" });
        let good = signed(&pair, &json!({ "alg": "ES256", "kid": "k" }), &claims);
        assert_eq!(verify(&good, &keys), Ok(claims.clone()));
        assert_eq!(
            verify(&signed(&pair, &json!({ "alg": "ES256" }), &claims), &keys),
            Ok(claims.clone())
        );
        let (other, other_keys) = signer();
        let changed = {
            let mut parts: Vec<&str> = good.split('.').collect();
            let claims = encoded(json!({ "sub": "root" }).to_string());
            parts[1] = &claims;
            parts.join(".")
        };
        let unsigned = format!(
            "{}.{}.",
            encoded(json!({ "alg": "none" }).to_string()),
            encoded(claims.to_string())
        );
        let with = |header: Value| signed(&pair, &header, &claims);
        for (token, keys, expected) in [
            (changed, &keys, TokenError::Signature),
            (good.clone(), &other_keys, TokenError::Signature),
            (
                signed(&other, &json!({ "alg": "ES256", "kid": "k" }), &claims),
                &keys,
                TokenError::Signature,
            ),
            (good.clone(), &KeySet::default(), TokenError::UnknownKey),
            (
                with(json!({ "alg": "ES256", "kid": "x" })),
                &keys,
                TokenError::UnknownKey,
            ),
            (
                with(json!({ "alg": "RS256", "kid": "k" })),
                &keys,
                TokenError::UnknownKey,
            ),
            (
                with(json!({ "alg": "HS256" })),
                &keys,
                TokenError::Algorithm("HS256".to_owned()),
            ),
            (
                with(json!({ "alg": "ES256", "crit": ["b64"], "b64": false })),
                &keys,
                TokenError::NoToken,
            ),
            (unsigned, &keys, TokenError::Algorithm("none".to_owned())),
            (good.replace('.', ""), &keys, TokenError::NoToken),
            (format!("{good}.x"), &keys, TokenError::NoToken),
            ("..".to_owned(), &keys, TokenError::NoToken),
            (String::new(), &keys, TokenError::NoToken),
            ("x".repeat(TOO_LONG) + "..", &keys, TokenError::NoToken),
        ] {
            assert_eq!(verify(&token, keys), Err(expected), "{token}");
        }
    }

    #[test]
    fn keys_for_something_else_are_not_taken() {
        let (pair, own) = signer_and_key();
        let token = signed(&pair, &json!({ "alg": "ES256" }), &json!({}));
        for (field, value) in [("use", "enc"), ("alg", "ES384"), ("crv", "P-384"), ("kty", "RSA")] {
            let mut key = own.clone();
            key[field] = value.into();
            let set = key_set(&[json!("no key"), key]);
            assert_eq!(verify(&token, &set), Err(TokenError::UnknownKey), "{field}");
        }
    }

    /// The example of RFC 8037, appendix A.4, and one of our own.
    #[test]
    fn edwards_curves_are_known() {
        let key =
            json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        // What is signed there is a text and no claims.
        assert_eq!(verify(token, &key_set(&[key])), Err(TokenError::NoToken));
        let pair = Ed25519KeyPair::generate().expect("a key");
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref()) });
        for name in ["EdDSA", "Ed25519"] {
            let message = format!(
                "{}.{}",
                encoded(json!({ "alg": name }).to_string()),
                encoded("{}")
            );
            let token = format!("{message}.{}", encoded(pair.sign(message.as_bytes())));
            assert_eq!(
                verify(&token, &key_set(std::slice::from_ref(&key))),
                Ok(json!({})),
                "{name}"
            );
        }
    }
}
