//! Names of fields that are known before any call is, and so are checked once.

use super::{Entry, Headers, Tag, is_name, is_same_name, is_value};

/// The name of a field, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldName {
    /// The name, and what stands between it and the value.
    start: Box<[u8]>,
    tag: Tag,
}

impl FieldName {
    /// Checks a name; `None`: no field can be called that.
    pub fn new(name: &str) -> Option<Self> {
        let name = name.as_bytes();
        is_name(name).then(|| Self {
            start: [name, b": "].concat().into(),
            tag: Tag::of(name),
        })
    }

    /// The name as it is written.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.start[..self.start.len() - 2]
    }
}

impl Headers {
    /// Sets a header to a value that consists of digits or was checked before, and replaces all its earlier values.
    pub fn set_named(&mut self, name: &FieldName, value: &[u8]) {
        let text = name.as_bytes();
        let is_it = |entry: &Entry| {
            entry.tag == name.tag && is_same_name(Self::header(&self.arena, entry).name, text)
        };
        match self.may_have(name.tag) && self.entries.iter().any(is_it) {
            true => self.set(text, value),
            false => self.append_named(name, value),
        }
    }

    /// Adds a header at the end, whose value is made of digits or was checked before.
    #[inline]
    pub fn append_named(&mut self, name: &FieldName, value: &[u8]) {
        debug_assert!(is_value(value));
        let start = self.arena.len();
        self.arena.reserve(name.start.len() + value.len() + 2);
        self.arena.extend_from_slice(&name.start);
        self.arena.extend_from_slice(value);
        let value_end = self.arena.len() as u32;
        self.arena.extend_from_slice(b"\r\n");
        self.push(Entry {
            name: start as u32,
            value: (start + name.start.len()) as u32,
            value_end,
            line_end: value_end + 2,
            tag: name.tag,
        });
    }
}
