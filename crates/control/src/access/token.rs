//! Tokens: 256 random bits that a user shows, of which only a hash is kept.

use aws_lc_rs::{digest, rand};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The prefix of every token, so that one that leaks is recognised.
const PREFIX: &str = "weir_";

/// A token. It is shown once, when it is made.
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

impl Token {
    /// A new one; `None`: the system yields no random bits.
    pub fn random() -> Option<Self> {
        let mut bits = [0; 32];
        rand::fill(&mut bits).ok()?;
        Some(Self(format!("{PREFIX}{}", HEXLOWER.encode(&bits))))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The hash of a token. As tokens are random and long, guessing one is hopeless, and finding a hash takes no
/// constant time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a text that claims to be a token.
    pub fn of(token: &str) -> Self {
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Self(hash)
    }
}

/// In hexadecimal digits.
impl fmt::Display for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hash = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let hash = hash.and_then(|bytes| bytes.try_into().ok());
        hash.map(Self)
            .ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_random_and_hashes_keep_their_text_form() {
        let (one, other) = (Token::random().expect("random"), Token::random().expect("random"));
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(one.as_str().len(), PREFIX.len() + 64);
        assert_eq!(format!("{one:?}"), "Token");
        let hash = TokenHash::of(one.as_str());
        let text = serde_json::to_string(&hash).expect("text");
        assert_eq!(serde_json::from_str::<TokenHash>(&text).expect("a hash"), hash);
        for wrong in ["\"\"", "\"00\"", "1"] {
            assert!(serde_json::from_str::<TokenHash>(wrong).is_err(), "{wrong}");
        }
    }
}
