//! A deserializer for texts that are read once and made nothing of. It is faster than [`serde_json`]'s, as it says that a text
//! is not good, but not why, and it refuses what is nested deeper than [`MAX_DEPTH`]. Callers read a refused text again
//! with `serde_json`, whose answer counts.

use super::Cursor;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// How deep lists and objects may be in each other.
const MAX_DEPTH: usize = 127;
/// Whole numbers of so many digits fit into 64 bits.
const FEW_DIGITS: usize = 18;

/// A text that cannot be read, or that its visitor refuses.
#[derive(Debug)]
pub struct Unreadable;

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not readable")
    }
}

impl std::error::Error for Unreadable {}

impl Error for Unreadable {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Reads a text.
pub struct Reader<'t> {
    text: &'t str,
    cursor: Cursor<'t>,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// At the beginning of a text.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            cursor: Cursor::new(text.as_bytes()),
            depth: 0,
        }
    }

    /// Whether nothing follows but white space.
    ///
    /// # Errors
    /// Something follows.
    pub fn end(mut self) -> Result<(), Unreadable> {
        self.cursor.skip_spaces();
        self.cursor.peek().map_or(Ok(()), |_| Err(Unreadable))
    }

    /// Passes the next byte if it is this one, after white space.
    #[inline]
    fn takes(&mut self, byte: u8) -> bool {
        self.cursor.skip_spaces();
        self.cursor.pass_if(byte)
    }

    /// Reads a text, whose quote is next.
    #[inline]
    fn text<V: Visitor<'t>>(&mut self, visitor: V) -> Result<V::Value, Unreadable> {
        let start = self.cursor.at();
        self.cursor.pass(1);
        self.cursor.skip_plain();
        let end = self.cursor.at();
        if self.cursor.pass_if(b'"') {
            let plain = self.text.get(start + 1..end).ok_or(Unreadable)?;
            return visitor.visit_borrowed_str(plain);
        }
        self.escaped(start, visitor)
    }

    /// Reads the rest of a text with escapes.
    #[cold]
    fn escaped<V: Visitor<'t>>(&mut self, start: usize, visitor: V) -> Result<V::Value, Unreadable> {
        while self.cursor.peek() == Some(b'\\') {
            // Whatever is escaped, it is not the end.
            self.cursor.pass(2);
            self.cursor.skip_plain();
        }
        if !self.cursor.pass_if(b'"') {
            return Err(Unreadable);
        }
        let written = self.text.get(start..self.cursor.at()).ok_or(Unreadable)?;
        let text: String = serde_json::from_str(written).map_err(|_| Unreadable)?;
        visitor.visit_string(text)
    }

    #[inline]
    fn number<V: Visitor<'t>>(&mut self, visitor: V) -> Result<V::Value, Unreadable> {
        let start = self.cursor.at();
        let is_whole = self.cursor.number().ok_or(Unreadable)?;
        let written = self.text.get(start..self.cursor.at()).ok_or(Unreadable)?;
        let digits = written.strip_prefix('-');
        // `-0` is a fraction for serde_json: whole numbers know no negative zero.
        if is_whole && written.len() <= FEW_DIGITS && written != "-0" {
            let digits = digits.unwrap_or(written).bytes();
            let value = digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
            return match written.starts_with('-') {
                true => visitor.visit_i64(-(value as i64)),
                false => visitor.visit_u64(value),
            };
        }
        if is_whole {
            return match digits {
                Some(_) => match written.parse() {
                    Ok(value) if value != 0 => visitor.visit_i64(value),
                    _ => Self::fraction(written, visitor),
                },
                None => match written.parse() {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => Self::fraction(written, visitor),
                },
            };
        }
        Self::fraction(written, visitor)
    }

    fn fraction<V: Visitor<'t>>(written: &str, visitor: V) -> Result<V::Value, Unreadable> {
        // The same number as everywhere else: others may be another one in the last digit.
        let value: f64 = serde_json::from_str(written).map_err(|_| Unreadable)?;
        visitor.visit_f64(value)
    }

    /// Goes into a list or object, whose first byte is next.
    #[inline]
    fn enter<T>(
        &mut self,
        read: impl FnOnce(&mut Container<'_, 't>) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        self.cursor.pass(1);
        if self.depth == MAX_DEPTH {
            return Err(Unreadable);
        }
        self.depth += 1;
        let mut container = Container {
            reader: self,
            is_first: true,
            is_over: false,
        };
        let value = read(&mut container)?;
        if !container.is_over {
            return Err(Unreadable);
        }
        self.depth -= 1;
        Ok(value)
    }
}

impl<'t> serde::Deserializer<'t> for &mut Reader<'t> {
    type Error = Unreadable;

    #[inline]
    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        self.cursor.skip_spaces();
        match self.cursor.peek().ok_or(Unreadable)? {
            b'"' => self.text(visitor),
            b'-' | b'0'..=b'9' => self.number(visitor),
            b'{' => self.enter(|members| visitor.visit_map(members)),
            b'[' => self.enter(|items| visitor.visit_seq(items)),
            _ => match self.cursor.literal().ok_or(Unreadable)? {
                b"null" => visitor.visit_unit(),
                word => visitor.visit_bool(word == b"true"),
            },
        }
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'t>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The items of a list or the members of an object, read one by one.
struct Container<'r, 't> {
    reader: &'r mut Reader<'t>,
    is_first: bool,
    is_over: bool,
}

impl Container<'_, '_> {
    /// Goes to the next part. `false` if there is none.
    #[inline]
    fn next(&mut self, end: u8) -> Result<bool, Unreadable> {
        let cursor = &mut self.reader.cursor;
        cursor.skip_spaces();
        if cursor.pass_if(end) {
            self.is_over = true;
            return Ok(false);
        }
        match std::mem::take(&mut self.is_first) || cursor.pass_if(b',') {
            true => Ok(true),
            false => Err(Unreadable),
        }
    }
}

impl<'t> SeqAccess<'t> for &mut Container<'_, 't> {
    type Error = Unreadable;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'t>>(&mut self, seed: T) -> Result<Option<T::Value>, Unreadable> {
        match self.next(b']')? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
}

impl<'t> MapAccess<'t> for &mut Container<'_, 't> {
    type Error = Unreadable;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'t>>(&mut self, seed: K) -> Result<Option<K::Value>, Unreadable> {
        if !self.next(b'}')? {
            return Ok(None);
        }
        self.reader.cursor.skip_spaces();
        match self.reader.cursor.peek() {
            Some(b'"') => seed.deserialize(&mut *self.reader).map(Some),
            _ => Err(Unreadable),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'t>>(&mut self, seed: V) -> Result<V::Value, Unreadable> {
        match self.reader.takes(b':') {
            true => seed.deserialize(&mut *self.reader),
            false => Err(Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::Value;

    fn read(text: &str) -> Option<Value> {
        let mut reader = Reader::new(text);
        let value = Value::deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(value)
    }

    /// What stands where in a text does not change what is read: each text is cut, and each of its bytes is changed.
    #[test]
    fn texts_are_read_as_serde_json_reads_them() {
        let texts = [
            r#" {"a": [1, -2.5e-3, 0, -0, true, false, null, "x\\y\/\u00e4\ud83d\ude00"], "": {}, "b" : [ ] } "#,
            r#"[[],{},[[{}]], 123456789012345678, 1234567890123456789, 18446744073709551615, 18446744073709551616]"#,
            r#"[-9223372036854775808, -9223372036854775809, -1234567890123456789, 1e308, 1E+2, 1e-400, 0.1]"#,
            "\"\\\\\"",
            "\"äöü\u{2028}\u{1f600} plain text of some length\"",
            r#"{"a":1,"a":2}"#,
        ];
        let others = b"\"\\{}[],:0-.eEtn \n\x01x";
        for text in texts {
            let mut variants = vec![text.as_bytes().to_vec()];
            variants.extend((0..text.len()).map(|end| text.as_bytes()[..end].to_vec()));
            for at in 0..text.len() {
                variants.extend(others.iter().map(|byte| {
                    let mut changed = text.as_bytes().to_vec();
                    changed[at] = *byte;
                    changed
                }));
            }
            for variant in variants {
                let Ok(variant) = String::from_utf8(variant) else {
                    continue;
                };
                assert_eq!(read(&variant), serde_json::from_str(&variant).ok(), "{variant}");
            }
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(MAX_DEPTH)).is_some());
        assert!(read(&nested(MAX_DEPTH + 1)).is_none() && read(&"[".repeat(1_000_000)).is_none());
    }
}
