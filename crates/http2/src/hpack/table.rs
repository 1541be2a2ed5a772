//! The fields that a number stands for: the fixed ones (RFC 7541, appendix A), and those that the peer has had kept.

use std::collections::VecDeque;

/// Bytes that a field counts beyond its name and value (RFC 7541, 4.1).
const OVERHEAD: usize = 32;

/// The fixed fields; the first has the number 1.
#[rustfmt::skip]
pub const FIXED: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""),
    ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""),
    ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""),
    ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""),
    ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
];

/// A stored field: the positions of its name and its value, one after the other.
#[derive(Clone, Copy)]
struct DynamicEntry {
    start: usize,
    name_len: usize,
    len: usize,
    is_good: bool,
}

/// A field that a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEntry<'t> {
    pub name: &'t [u8],
    pub value: &'t [u8],
    pub known: ValidationHint,
}

/// What was found good of a field when it came first, and need not be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationHint {
    /// Nothing is known.
    Nothing,
    /// Its name.
    Name,
    /// All of it.
    Field,
}

/// The fields that were kept.
pub struct DynamicTable {
    /// The newest first.
    fields: VecDeque<DynamicEntry>,
    /// Their names and values, the oldest first, behind what is kept no more.
    bytes: Vec<u8>,
    size: usize,
    max_size: usize,
}

impl DynamicTable {
    /// None, and room for so many bytes.
    pub fn new(max_size: usize) -> Self {
        Self {
            fields: VecDeque::new(),
            bytes: Vec::new(),
            size: 0,
            max_size,
        }
    }

    /// Changes how much is kept.
    pub fn resize(&mut self, max_size: usize) {
        self.max_size = max_size;
        self.make_room(0);
    }

    /// Keeps a field, and whether it is good; one that is larger than all the room only empties it.
    pub fn keep(&mut self, name: &[u8], value: &[u8], is_good: bool) {
        let len = name.len() + value.len();
        self.make_room(len + OVERHEAD);
        if len + OVERHEAD > self.max_size {
            return;
        }
        // Now and then, so that a byte is moved about once.
        if self.bytes.len() + len > 2 * self.max_size {
            self.move_to_front();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += len + OVERHEAD;
        self.fields.push_front(DynamicEntry {
            start,
            name_len: name.len(),
            len,
            is_good,
        });
    }

    fn make_room(&mut self, wanted: usize) {
        while self.size + wanted > self.max_size
            && let Some(oldest) = self.fields.pop_back()
        {
            self.size -= oldest.len + OVERHEAD;
        }
    }

    /// Overwrites what is kept no more.
    fn move_to_front(&mut self) {
        let gone = self.fields.back().map_or(self.bytes.len(), |oldest| oldest.start);
        self.bytes.drain(..gone);
        for field in &mut self.fields {
            field.start -= gone;
        }
    }

    /// The field of a number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<TableEntry<'_>> {
        let Some(place) = number.checked_sub(FIXED.len() + 1) else {
            let (name, value) = fixed(number)?;
            let known = ValidationHint::Name;
            return Some(TableEntry { name, value, known });
        };
        let kept = self.fields.get(place)?;
        let bytes = &self.bytes[kept.start..kept.start + kept.len];
        let (name, value) = bytes.split_at(kept.name_len);
        let known = if kept.is_good {
            ValidationHint::Field
        } else {
            ValidationHint::Nothing
        };
        Some(TableEntry { name, value, known })
    }
}

/// The fixed field of a number.
#[inline]
pub fn fixed(number: usize) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = FIXED.get(number.checked_sub(1)?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_what_they_are_however_many_come() {
        let mut kepts = DynamicTable::new(200);
        let field = |number: usize| (format!("name-{number}"), "v".repeat(number % 60));
        for number in 0..500 {
            let (name, value) = field(number);
            kepts.keep(name.as_bytes(), value.as_bytes(), number % 2 == 0);
            for back in 0..kepts.fields.len() {
                let (name, value) = field(number - back);
                let is_good = (number - back) % 2 == 0;
                let wanted = TableEntry {
                    name: name.as_bytes(),
                    value: value.as_bytes(),
                    known: if is_good {
                        ValidationHint::Field
                    } else {
                        ValidationHint::Nothing
                    },
                };
                assert_eq!(kepts.get(62 + back), Some(wanted), "{number} {back}");
            }
            assert_eq!(kepts.get(62 + kepts.fields.len()), None);
            assert!(!kepts.fields.is_empty() && kepts.size <= 200 && kepts.bytes.len() <= 400);
        }
        kepts.keep(&[b'n'; 200], b"", true);
        assert_eq!(kepts.get(62), None);
        kepts.keep(b"a", b"b", true);
        assert_eq!(
            kepts.get(62).map(|it| (it.name, it.value)),
            Some((&b"a"[..], &b"b"[..]))
        );
    }
}
