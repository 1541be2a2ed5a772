//! What kind of private key a PEM text holds, in the words of JSON Web Keys.

use super::SigningKey;
use crate::jwt::Algorithm;

/// The `kty` and the `crv` of a private key in PEM; `None`: it is none that can sign.
pub fn private_key_kind(pem: &str) -> Option<(&'static str, Option<&'static str>)> {
    [
        (Algorithm::RS256, "RSA", None),
        (Algorithm::ES256, "EC", Some("P-256")),
        (Algorithm::ES384, "EC", Some("P-384")),
        (Algorithm::ES512, "EC", Some("P-521")),
        (Algorithm::EdDSA, "OKP", Some("Ed25519")),
    ]
    .into_iter()
    .find(|(algorithm, ..)| SigningKey::new(*algorithm, pem, None).is_ok())
    .map(|(_, kind, curve)| (kind, curve))
}
