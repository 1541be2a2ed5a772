//! Codes of authenticator apps: TOTP (RFC 6238) with SHA-1, six digits and a step of 30 seconds, which every app knows. The
//! time is an argument.
//!
//! **What it is not**: it remembers nothing. Who keeps a secret remembers the step of the last code, so that none counts twice.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{hmac, rand};
use data_encoding::BASE32_NOPAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::SystemTime;
use weir_model::unix_time;

/// Seconds of a step.
const STEP: u64 = 30;
/// Digits of a code.
const DIGITS: u32 = 6;
/// Steps that a clock may be ahead or behind.
const DRIFT: u64 = 1;
/// The length of a secret in bytes: that of SHA-1, as RFC 4226 recommends.
const LENGTH: usize = 20;

/// The secret that an authenticator app and Weir share. It is kept in plain text, since codes are computed with it.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; LENGTH]);

/// Secrets are not for logs.
impl fmt::Debug for TotpSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TotpSecret")
    }
}

impl TotpSecret {
    /// A new one; `None`: the system yields no random bits.
    pub fn random() -> Option<Self> {
        let mut bits = [0; LENGTH];
        rand::fill(&mut bits).ok()?;
        Some(Self(bits))
    }

    /// As people type it into an app: 32 letters and digits.
    pub fn text(&self) -> String {
        BASE32_NOPAD.encode(&self.0)
    }

    /// The content of a QR code for an app, in the form that the apps have agreed on.
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (issuer, account) = (encoded(issuer), encoded(account));
        let secret = self.text();
        format!("otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}")
    }

    /// The code of now.
    pub fn code(&self, now: SystemTime) -> String {
        self.code_of(step_of(now), DIGITS)
    }

    /// The step of a code that is good now and later than another step; `None`: it is not.
    pub fn step_of_code(&self, code: &str, after: u64, now: SystemTime) -> Option<u64> {
        let current = step_of(now);
        let steps = current.saturating_sub(DRIFT)..=current + DRIFT;
        // All are compared, so that the time that it takes reveals nothing.
        let matching = steps.filter(|step| {
            let expected = self.code_of(*step, DIGITS);
            verify_slices_are_equal(expected.as_bytes(), code.as_bytes()).is_ok()
        });
        matching.max().filter(|step| *step > after)
    }

    /// RFC 4226, section 5.3, with a step as the counter.
    fn code_of(&self, step: u64, digits: u32) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        let offset = tag.last().map_or(0, |it| usize::from(it & 15));
        let mut bits = [0; 4];
        bits.copy_from_slice(&tag[offset..offset + 4]);
        let number = u32::from_be_bytes(bits) & 0x7fff_ffff;
        format!("{:0width$}", number % 10_u32.pow(digits), width = digits as usize)
    }
}

fn step_of(time: SystemTime) -> u64 {
    unix_time::seconds(time) / STEP
}

impl Serialize for TotpSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for TotpSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE32_NOPAD.decode(text.as_bytes()).ok();
        let bytes = bytes.and_then(|it| it.try_into().ok());
        bytes
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("expected 32 characters of base32"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use std::time::Duration;

    fn secret() -> TotpSecret {
        TotpSecret(*b"12345678901234567890")
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// RFC 6238, appendix B, the rows of SHA-1; and RFC 4226, appendix D.
    #[test]
    fn codes_are_those_of_the_rfcs() {
        for (seconds, expected) in [
            (59, "94287082"),
            (1_111_111_109, "07081804"),
            (1_111_111_111, "14050471"),
            (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"),
            (20_000_000_000, "65353130"),
        ] {
            let now = at(seconds);
            assert_eq!(secret().code_of(step_of(now), 8), expected, "{seconds}");
            assert_eq!(secret().code(now), expected[2..], "{seconds}");
        }
        for (counter, expected) in [(0, "755224"), (1, "287082"), (2, "359152"), (9, "520489")] {
            assert_eq!(secret().code_of(counter, 6), expected, "{counter}");
        }
    }

    #[test]
    fn a_code_is_good_for_a_step_around_and_not_after_a_later_one() {
        // Step 100 is from 3,000 to 3,029 seconds.
        let of = |step: u64| secret().code(at(step * STEP));
        for (code, after, now, expected) in [
            (of(100), 0, 3_000, Some(100)),
            (of(100), 0, 3_029, Some(100)),
            (of(100), 0, 3_059, Some(100)),
            (of(100), 0, 3_060, None),
            (of(100), 0, 2_970, Some(100)),
            (of(100), 0, 2_969, None),
            // Used already, or one that is older than the one that was used.
            (of(100), 100, 3_000, None),
            (of(99), 100, 3_000, None),
            (of(101), 100, 3_000, Some(101)),
            (of(1), 0, 0, Some(1)),
            (String::new(), 0, 3_000, None),
            (format!("{} ", of(100)), 0, 3_000, None),
            (of(100)[1..].to_owned(), 0, 3_000, None),
            ("０12345".to_owned(), 0, 3_000, None),
        ] {
            let found = secret().step_of_code(&code, after, at(now));
            assert_eq!(found, expected, "{code:?} after {after} at {now}");
        }
    }

    #[test]
    fn secrets_are_random_and_read_back_and_in_no_log() {
        let (one, other) = (
            TotpSecret::random().expect("random"),
            TotpSecret::random().expect("random"),
        );
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "TotpSecret");
        let text = serde_json::to_string(&one).expect("text");
        assert_eq!(serde_json::from_str::<TotpSecret>(&text).expect("a secret"), one);
        for wrong in ["\"\"", "\"MFRA\"", "\"1\"", "1"] {
            assert!(serde_json::from_str::<TotpSecret>(wrong).is_err(), "{wrong}");
        }
        let uri = secret().uri("Acme & Söhne", "ann+x@example.com");
        assert_eq!(
            uri,
            "otpauth://totp/Acme%20%26%20S%C3%B6hne:ann%2Bx%40example%2Ecom?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Acme%20%26%20S%C3%B6hne"
        );
    }
}
