//! JSON Web Tokens (RFC 7519) signed with HS256, made when a run starts.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// 1 January 2100: no run sees these tokens expire.
pub const EXPIRES: u64 = 4_102_444_800;

/// 1 January 2020: no run sees these tokens fresh.
const EXPIRED: u64 = 1_577_836_800;

/// A token for the consumer `key`, in the claims that the dialects read: `iss` (Kong) and `key` (APISIX).
pub fn hs256(key: &str, secret: &str) -> String {
    token(key, secret, EXPIRES)
}

/// The same, but out of date for years.
pub fn expired(key: &str, secret: &str) -> String {
    token(key, secret, EXPIRED)
}

fn token(key: &str, secret: &str, expires: u64) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let claims = serde_json::json!({ "iss": key, "key": key, "sub": "bench", "exp": expires });
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        signed.as_bytes(),
    );
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_over_header_and_claims() {
        let token = hs256("who", "secret-of-the-test");
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret-of-the-test");
        assert!(
            hmac::verify(
                &key,
                signed.as_bytes(),
                &URL_SAFE_NO_PAD.decode(signature).unwrap()
            )
            .is_ok()
        );
        let claims = URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(
            (claims["iss"].as_str(), claims["key"].as_str()),
            (Some("who"), Some("who"))
        );
        assert_eq!(claims["exp"].as_u64(), Some(EXPIRES));
    }
}
