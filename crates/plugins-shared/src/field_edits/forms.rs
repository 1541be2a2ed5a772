//! Queries, and bodies of forms, as named values.

use super::{Fields, text_of};
use serde_json::Value;
use weir_plugin::multipart::parts;
use weir_plugin::uri::{decode_form, encode_component, query_pairs};

/// The pairs of a query or of an urlencoded form, decoded.
#[derive(Debug, Default)]
pub struct Pairs(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Pairs {
    /// Reads pairs as they are written.
    pub fn read(text: &[u8]) -> Self {
        let decoded = query_pairs(text).map(|(name, value)| {
            (
                decode_form(name).into_owned(),
                value.map(|value| decode_form(value).into_owned()),
            )
        });
        Self(decoded.collect())
    }

    /// Whether there are no edits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the pairs of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Writes the pairs in the order of their names; those of one name stay in theirs.
    pub fn write(mut self) -> Vec<u8> {
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut out = Vec::new();
        for (name, value) in &self.0 {
            if !out.is_empty() {
                out.push(b'&');
            }
            encode_component(name, &mut out);
            if let Some(value) = value {
                out.push(b'=');
                encode_component(value, &mut out);
            }
        }
        out
    }
}

impl Fields for Pairs {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name.as_bytes())
    }

    fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name.as_bytes());
    }

    fn keep(&mut self, names: &[String]) {
        self.0
            .retain(|(known, _)| names.iter().any(|name| known == name.as_bytes()));
    }

    fn rename(&mut self, old: &str, new: &str) {
        let is_old = |(name, _): &(Vec<u8>, Option<Vec<u8>>)| name == old.as_bytes();
        let (renamed, mut rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0).into_iter().partition(is_old);
        rest.retain(|(name, _)| name != new.as_bytes());
        if old != new {
            rest.extend(
                renamed
                    .into_iter()
                    .map(|(_, value)| (new.as_bytes().to_vec(), value)),
            );
        }
        self.0 = rest;
    }

    fn set(&mut self, name: &str, value: &Value) {
        self.remove(name);
        self.append(name, value);
    }

    fn append(&mut self, name: &str, value: &Value) -> bool {
        // A name alone is no value to stand beside.
        self.0
            .retain(|(known, value)| known != name.as_bytes() || value.is_some());
        self.0
            .push((name.as_bytes().to_vec(), Some(text_of(value).into_bytes())));
        true
    }
}

/// The parts of a multipart form.
#[derive(Debug)]
pub struct Multipart {
    boundary: Vec<u8>,
    /// Name, header lines and content.
    parts: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
}

impl Multipart {
    /// Reads a body whose parts this boundary separates.
    pub fn read(body: &[u8], boundary: &[u8]) -> Self {
        let owned = parts(body, boundary).into_iter().map(|part| {
            let name = part.name().unwrap_or_default().to_vec();
            (name, part.head.to_vec(), part.content.to_vec())
        });
        Self {
            boundary: boundary.to_vec(),
            parts: owned.collect(),
        }
    }

    /// Writes the parts in their order; without any, nothing.
    pub fn write(self) -> Vec<u8> {
        let mut out = Vec::new();
        for (_, head, content) in &self.parts {
            for piece in [
                &b"--"[..],
                &self.boundary,
                b"\r\n",
                head,
                b"\r\n\r\n",
                content,
                b"\r\n",
            ] {
                out.extend_from_slice(piece);
            }
        }
        if !self.parts.is_empty() {
            for piece in [&b"--"[..], &self.boundary, b"--\r\n"] {
                out.extend_from_slice(piece);
            }
        }
        out
    }
}

impl Fields for Multipart {
    fn has(&self, name: &str) -> bool {
        self.parts.iter().any(|(known, ..)| known == name.as_bytes())
    }

    fn remove(&mut self, name: &str) {
        self.parts.retain(|(known, ..)| known != name.as_bytes());
    }

    fn keep(&mut self, names: &[String]) {
        self.parts
            .retain(|(known, ..)| names.iter().any(|name| known == name.as_bytes()));
    }

    fn rename(&mut self, old: &str, new: &str) {
        let found = self.parts.iter().find(|(name, ..)| name == old.as_bytes());
        if let Some((.., content)) = found {
            let content = String::from_utf8_lossy(content).into_owned();
            self.remove(old);
            self.set(new, &Value::String(content));
        }
    }

    fn set(&mut self, name: &str, value: &Value) {
        self.remove(name);
        // Whatever would end the quoted name, or the line, cannot be in it.
        let quoted: String = name
            .chars()
            .filter(|it| !matches!(it, '"' | '\r' | '\n'))
            .collect();
        let head = format!("Content-Disposition: form-data; name=\"{quoted}\"");
        self.parts.push((
            name.as_bytes().to_vec(),
            head.into_bytes(),
            text_of(value).into_bytes(),
        ));
    }

    /// Forms with parts have one value of each name.
    fn append(&mut self, _: &str, _: &Value) -> bool {
        false
    }
}
