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

/// A field that was kept.
struct Kept {
    /// Name and value, one behind the other.
    bytes: Box<[u8]>,
    name_len: usize,
}

/// The fields that were kept, the newest first.
pub struct Kepts {
    fields: VecDeque<Kept>,
    size: usize,
    max_size: usize,
}

impl Kepts {
    /// None, and room for so many bytes.
    pub fn new(max_size: usize) -> Self {
        Self {
            fields: VecDeque::new(),
            size: 0,
            max_size,
        }
    }

    /// Changes how much is kept.
    pub fn resize(&mut self, max_size: usize) {
        self.max_size = max_size;
        self.make_room(0);
    }

    /// Keeps a field; one that is larger than all the room only empties it.
    pub fn keep(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        self.make_room(size);
        if size <= self.max_size {
            self.size += size;
            self.fields.push_front(Kept {
                bytes: [name, value].concat().into(),
                name_len: name.len(),
            });
        }
    }

    fn make_room(&mut self, wanted: usize) {
        while self.size + wanted > self.max_size
            && let Some(oldest) = self.fields.pop_back()
        {
            self.size -= oldest.bytes.len() + OVERHEAD;
        }
    }

    /// The field of a number: name and value.
    pub fn get(&self, number: usize) -> Option<(&[u8], &[u8])> {
        match number.checked_sub(FIXED.len() + 1) {
            Some(place) => self
                .fields
                .get(place)
                .map(|kept| kept.bytes.split_at(kept.name_len)),
            None => {
                let (name, value) = FIXED.get(number.checked_sub(1)?)?;
                Some((name.as_bytes(), value.as_bytes()))
            }
        }
    }
}
