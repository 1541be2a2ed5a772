//! Signatures of webhooks, as the Standard Webhooks specification has them: HMAC-SHA256 over the id, the time and the
//! body.

use aws_lc_rs::hmac;
use data_encoding::BASE64;

/// The prefix of a secret; the rest is base64.
pub const SECRET_PREFIX: &str = "whsec_";

/// The value of `webhook-signature`.
pub fn sign(secret: &str, id: &str, timestamp: u64, body: &str) -> String {
    let decoded = secret
        .strip_prefix(SECRET_PREFIX)
        .and_then(|it| BASE64.decode(it.as_bytes()).ok());
    let bytes = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
    let signed = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(signed.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed() {
        let signed = sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            "{\"test\": 2432232314}",
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
