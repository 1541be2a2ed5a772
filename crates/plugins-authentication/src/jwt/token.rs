//! The parts of a token in compact form (RFC 7515, 7.1), and the few claims that the filter reads.

use super::Algorithm;
use super::verifier::BASE64_URL;
use base64::Engine as _;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use weir_plugin::TokenDefect;

/// Room for a decoded part on the stack; longer ones are decoded on the heap.
const ROOM: usize = 1024;

/// Holds a decoded part.
pub(super) struct DecodeBuffer {
    stack: [u8; ROOM],
    heap: Vec<u8>,
}

impl DecodeBuffer {
    pub(super) fn new() -> Self {
        Self {
            stack: [0; ROOM],
            heap: Vec::new(),
        }
    }

    /// Decodes Base64; `None` if the text is not Base64.
    pub(super) fn decode(&mut self, text: &[u8]) -> Option<&[u8]> {
        if base64::decoded_len_estimate(text.len()) <= ROOM {
            let length = BASE64_URL.decode_slice(text, &mut self.stack).ok()?;
            return Some(&self.stack[..length]);
        }
        self.heap.clear();
        BASE64_URL.decode_vec(text, &mut self.heap).ok()?;
        Some(&self.heap)
    }
}

/// A token cut into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts<'t> {
    pub(super) header: &'t [u8],
    pub(super) claims: &'t [u8],
    pub(super) signature: &'t [u8],
    /// What is signed.
    pub(super) message: &'t [u8],
}

impl<'t> Parts<'t> {
    /// Cuts a token; whatever stands behind the second dot is the signature.
    pub(super) fn cut(token: &'t [u8]) -> Option<Self> {
        let first = memchr::memchr(b'.', token)?;
        let second = first + 1 + memchr::memchr(b'.', &token[first + 1..])?;
        Some(Self {
            header: &token[..first],
            claims: &token[first + 1..second],
            signature: &token[second + 1..],
            message: &token[..second],
        })
    }
}

/// A value of a header parameter or claim, as far as anybody asks.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClaimValue<'t> {
    Text(Cow<'t, str>),
    Number(f64),
    /// The texts of a list.
    Texts(Vec<String>),
    Other,
}

impl ClaimValue<'_> {
    /// Whether it is this text, or a list with this text in it.
    pub(super) fn has(&self, text: &str) -> bool {
        match self {
            Self::Text(value) => value == text,
            Self::Texts(values) => values.iter().any(|value| value == text),
            Self::Number(_) | Self::Other => false,
        }
    }
}

/// Reads the values of some names of a JSON object into places of the same order. Of a name that is there several
/// times, the last counts. What is not an object has no names.
pub(super) fn read<'t>(
    json: &'t [u8],
    names: &[&str],
    values: &mut [Option<ClaimValue<'t>>],
) -> Result<(), TokenDefect> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let seed = Reader { names, values };
    let read = seed
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    read.map_err(|_| TokenDefect::Malformed("JSON"))
}

/// The token's algorithm, if it is known.
pub(super) fn algorithm(value: Option<&ClaimValue<'_>>) -> Result<Algorithm, TokenDefect> {
    match value {
        Some(ClaimValue::Text(name)) => Algorithm::parse(name).ok_or(TokenDefect::Malformed("alg")),
        _ => Err(TokenDefect::Malformed("alg")),
    }
}

struct Reader<'n, 'v, 't> {
    names: &'n [&'n str],
    values: &'v mut [Option<ClaimValue<'t>>],
}

impl<'t> DeserializeSeed<'t> for Reader<'_, '_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Reader<'_, '_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(ClaimName(name)) = map.next_key()? {
            match self.names.iter().position(|wanted| *wanted == name) {
                Some(place) => self.values[place] = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// A name, borrowed if it has no escapes.
struct ClaimName<'t>(Cow<'t, str>);

impl<'t> Deserialize<'t> for ClaimName<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        match ClaimValue::deserialize(deserializer)? {
            ClaimValue::Text(name) => Ok(Self(name)),
            _ => Ok(Self(Cow::Borrowed(""))),
        }
    }
}

impl<'t> Deserialize<'t> for ClaimValue<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'t> Visitor<'t> for ValueVisitor {
    type Value = ClaimValue<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'t str) -> Result<Self::Value, E> {
        Ok(ClaimValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(ClaimValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(ClaimValue::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(ClaimValue::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(ClaimValue::Number(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(ClaimValue::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(ClaimValue::Other)
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = list.next_element::<ClaimValue<'t>>()? {
            if let ClaimValue::Text(text) = item {
                texts.push(text.into_owned());
            }
        }
        Ok(ClaimValue::Texts(texts))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ClaimValue::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_cut_at_the_first_two_dots() {
        for (token, expected) in [
            ("a.b.c", Some(["a", "b", "c", "a.b"])),
            ("a.b.c.d", Some(["a", "b", "c.d", "a.b"])),
            ("..", Some(["", "", "", "."])),
            ("a.b", None),
            ("", None),
        ] {
            let parts = Parts::cut(token.as_bytes());
            let parts = parts.map(|it| [it.header, it.claims, it.signature, it.message]);
            assert_eq!(parts, expected.map(|texts| texts.map(str::as_bytes)), "{token}");
        }
    }

    #[test]
    fn wanted_claims_are_read() {
        let text = |text: &'static str| Some(ClaimValue::Text(text.into()));
        for (json, expected) in [
            (
                r#"{"iss":"a","x":{"iss":"b"},"exp":5}"#,
                Ok([text("a"), Some(ClaimValue::Number(5.0))]),
            ),
            (
                r#"{"iss":"a","iss":"\u0062","exp":-1.5}"#,
                Ok([text("b"), Some(ClaimValue::Number(-1.5))]),
            ),
            (
                r#"{"iss":null,"exp":"5"}"#,
                Ok([Some(ClaimValue::Other), text("5")]),
            ),
            (
                r#"{"iss":["a",1,"b"]}"#,
                Ok([Some(ClaimValue::Texts(vec!["a".into(), "b".into()])), None]),
            ),
            ("[1]", Ok([None, None])),
            ("{} x", Err(TokenDefect::Malformed("JSON"))),
            ("{", Err(TokenDefect::Malformed("JSON"))),
            ("", Err(TokenDefect::Malformed("JSON"))),
            ("1", Err(TokenDefect::Malformed("JSON"))),
        ] {
            let mut values = [None, None];
            let result = read(json.as_bytes(), &["iss", "exp"], &mut values);
            assert_eq!(result.map(|()| values), expected, "{json}");
        }
        // Nesting is bounded, not a way to the end of the stack.
        let deep = format!("{{\"iss\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(deep.as_bytes(), &["iss"], &mut [None]).is_err());
    }

    #[test]
    fn parts_decode_into_their_room() {
        let mut room = DecodeBuffer::new();
        let long = "QUFB".repeat(1_000);
        for (text, decoded) in [
            ("", Some(&b""[..])),
            ("YWI", Some(b"ab")),
            ("YWI=", Some(b"ab")),
            ("YWJ", Some(b"ab")),
            ("-_8", Some(b"\xfb\xff")),
            ("a", None),
            ("a.b", None),
            (&long, Some(&[b'A'; 3_000])),
        ] {
            assert_eq!(room.decode(text.as_bytes()), decoded, "{text}");
        }
    }
}
