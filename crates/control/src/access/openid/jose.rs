//! Signed tokens (RFC 7515, RFC 7519) with the keys of a key set (RFC 7517): whether a signature is one of these keys'.
//!
//! **What it is not**: it does not say what the claims have to be, and it knows no shared keys: a provider signs with a
//! key of its own.

use aws_lc_rs::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

/// The largest token, in bytes.
const MAX_TOKEN: usize = 64 << 10;
/// Keys of a set that are tried, at most.
const MAX_KEYS: usize = 100;

/// A key set.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct KeySet {
    keys: Vec<Value>,
}

/// A public key of it. What else stands there is of no interest.
#[derive(Debug, Deserialize)]
struct PublicKey {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    usage: Option<String>,
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

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that have to be understood. None is.
    #[serde(default)]
    crit: Option<Value>,
}

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no token.
    #[error("it is no signed token")]
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

/// How a signature is verified.
enum Algorithm {
    Rsa(&'static RsaParameters),
    /// With the curve's name.
    Elliptic(&'static dyn VerificationAlgorithm, &'static str),
    Edwards,
}

fn algorithm(name: &str) -> Option<Algorithm> {
    use Algorithm::{Edwards, Elliptic, Rsa};
    Some(match name {
        "RS256" => Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        "PS256" => Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        "PS384" => Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        "PS512" => Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        "ES256" => Elliptic(&signature::ECDSA_P256_SHA256_FIXED, "P-256"),
        "ES384" => Elliptic(&signature::ECDSA_P384_SHA384_FIXED, "P-384"),
        "ES512" => Elliptic(&signature::ECDSA_P521_SHA512_FIXED, "P-521"),
        "EdDSA" | "Ed25519" => Edwards,
        _ => return None,
    })
}

impl PublicKey {
    /// Whether it is for such signatures.
    fn fits(&self, header: &Header, algorithm: &Algorithm) -> bool {
        let is_of_kind = match algorithm {
            Algorithm::Rsa(_) => self.kty == "RSA",
            Algorithm::Elliptic(_, curve) => self.kty == "EC" && self.crv.as_deref() == Some(*curve),
            Algorithm::Edwards => self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519"),
        };
        let has_id = header.kid.is_none() || self.kid.is_none() || header.kid == self.kid;
        let is_for_signing = self.usage.as_deref().is_none_or(|it| it == "sig");
        let is_for_algorithm = self.alg.as_deref().is_none_or(|it| it == header.alg);
        is_of_kind && has_id && is_for_signing && is_for_algorithm
    }

    fn verifies(&self, algorithm: &Algorithm, message: &[u8], signature: &[u8]) -> Option<bool> {
        let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_ref()?).ok();
        Some(match algorithm {
            Algorithm::Rsa(parameters) => {
                let (n, e) = (bytes(&self.n)?, bytes(&self.e)?);
                let key = RsaPublicKeyComponents { n: &n, e: &e };
                key.verify(parameters, message, signature).is_ok()
            }
            Algorithm::Elliptic(algorithm, _) => {
                let point = [vec![4], bytes(&self.x)?, bytes(&self.y)?].concat();
                UnparsedPublicKey::new(*algorithm, point)
                    .verify(message, signature)
                    .is_ok()
            }
            Algorithm::Edwards => {
                let point = bytes(&self.x)?;
                UnparsedPublicKey::new(&signature::ED25519, point)
                    .verify(message, signature)
                    .is_ok()
            }
        })
    }
}

/// The claims of a token that one of the keys has signed.
///
/// # Errors
/// Why it is refused.
pub fn verify(token: &str, keys: &KeySet) -> Result<Value, TokenError> {
    let mut parts = token.split('.');
    let (Some(head), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::NoToken);
    };
    if token.len() > MAX_TOKEN {
        return Err(TokenError::NoToken);
    }
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::NoToken);
    let header: Header = serde_json::from_slice(&bytes(head)?).map_err(|_| TokenError::NoToken)?;
    if header.crit.is_some() {
        return Err(TokenError::NoToken);
    }
    let algorithm = algorithm(&header.alg).ok_or_else(|| TokenError::Algorithm(header.alg.clone()))?;
    let signature = bytes(signature)?;
    let message = token.rsplit_once('.').map_or("", |(message, _)| message);
    let known = keys.keys.iter().take(MAX_KEYS);
    let known = known.filter_map(|it| PublicKey::deserialize(it).ok());
    let mut fitting = known.filter(|it| it.fits(&header, &algorithm)).peekable();
    if fitting.peek().is_none() {
        return Err(TokenError::UnknownKey);
    }
    let mut fitting = fitting.map(|it| it.verifies(&algorithm, message.as_bytes(), &signature));
    if !fitting.any(|it| it == Some(true)) {
        return Err(TokenError::Signature);
    }
    serde_json::from_slice(&bytes(claims)?).map_err(|_| TokenError::NoToken)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// A signer and its key set.
    pub fn signer() -> (EcdsaKeyPair, KeySet) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let point = pair.public_key().as_ref().to_vec();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        let key = json!({ "kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": x, "y": y });
        (pair, KeySet { keys: vec![key] })
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
            ("x".repeat(MAX_TOKEN) + "..", &keys, TokenError::NoToken),
        ] {
            assert_eq!(verify(&token, keys), Err(expected), "{token}");
        }
    }

    #[test]
    fn keys_for_something_else_are_not_taken() {
        let (pair, keys) = signer();
        let token = signed(&pair, &json!({ "alg": "ES256" }), &json!({}));
        for (field, value) in [("use", "enc"), ("alg", "ES384"), ("crv", "P-384"), ("kty", "RSA")] {
            let mut key = keys.keys[0].clone();
            key[field] = value.into();
            let set = KeySet {
                keys: vec![json!("no key"), key],
            };
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
        assert_eq!(
            verify(token, &KeySet { keys: vec![key] }),
            Err(TokenError::NoToken)
        );
        let pair = Ed25519KeyPair::generate().expect("a key");
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref()) });
        let message = format!("{}.{}", encoded(r#"{"alg":"EdDSA"}"#), encoded("{}"));
        let token = format!("{message}.{}", encoded(pair.sign(message.as_bytes())));
        assert_eq!(verify(&token, &KeySet { keys: vec![key] }), Ok(json!({})));
    }
}
