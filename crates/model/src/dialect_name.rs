//! The names of dialects. The dialects themselves are defined elsewhere: here a name only distinguishes routes.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The longest name.
const MAX_LENGTH: usize = 15;

/// Which dialect a resource came through, and so the words, status codes and header spellings of its refusals. Cheap to
/// copy and compare: it holds no pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DialectName {
    /// The name, then zeros, and in the last byte the length: as much as is compared at once.
    bytes: [u8; MAX_LENGTH + 1],
}

impl DialectName {
    /// The dialect of Weir's own files.
    pub const NATIVE: Self = Self::new("native");

    /// A name from the source code.
    ///
    /// # Panics
    /// Panics if the text is not a valid name: at compile time, if the name is a constant.
    pub const fn new(name: &str) -> Self {
        match Self::read(name) {
            Some(name) => name,
            None => panic!("invariant: a dialect's name has 1 to 15 lower-case letters, digits and '-'"),
        }
    }

    /// Parses a name; `None` if the text is not a valid name.
    pub const fn read(name: &str) -> Option<Self> {
        let text = name.as_bytes();
        if text.is_empty() || text.len() > MAX_LENGTH {
            return None;
        }
        let mut bytes = [0; MAX_LENGTH + 1];
        let mut at = 0;
        while at < text.len() {
            if !matches!(text[at], b'a'..=b'z' | b'0'..=b'9' | b'-') {
                return None;
            }
            bytes[at] = text[at];
            at += 1;
        }
        bytes[MAX_LENGTH] = text.len() as u8;
        Some(Self { bytes })
    }

    /// The word in documents, logs and metrics.
    pub fn as_str(&self) -> &str {
        // Nothing else was let in.
        let length = usize::from(self.bytes[MAX_LENGTH]);
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl Default for DialectName {
    fn default() -> Self {
        Self::NATIVE
    }
}

impl fmt::Debug for DialectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for DialectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for DialectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for DialectName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::read(&text)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"the name of a dialect"))
    }
}

impl JsonSchema for DialectName {
    fn schema_name() -> Cow<'static, str> {
        "Dialect".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The gateway whose answers a route imitates: messages, status codes and header spellings of its refusals. `native` answers with RFC 9457 problem documents.",
            "type": "string",
            "pattern": "^[a-z0-9-]{1,15}$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_names_are_short_words() {
        for (text, is_name) in [
            ("native", true),
            ("a", true),
            ("exactly-15-long", true),
            ("more-than-15-is-", false),
            ("", false),
            ("Upper", false),
            ("a/b", false),
            ("é", false),
        ] {
            let name = DialectName::read(text);
            assert_eq!(name.is_some(), is_name, "{text}");
            assert!(name.is_none_or(|name| name.as_str() == text), "{text}");
            let json = serde_json::to_string(text).expect("JSON");
            let read: Result<DialectName, _> = serde_json::from_str(&json);
            assert_eq!(read.is_ok(), is_name, "{text}");
        }
        assert_eq!(DialectName::default(), DialectName::new("native"));
    }
}
