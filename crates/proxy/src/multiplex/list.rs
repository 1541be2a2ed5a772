//! The fields of a head, or of trailers, as a stream of HTTP/2 or HTTP/3 brings them: all in one piece of memory, with
//! those that are no header fields apart.

use crate::spares::Spares;

/// Lists that a worker keeps, and the most bytes of each.
const MAX_SPARES: usize = 1024;
const MAX_SPARE_BYTES: usize = 4096;
/// Room in a new list: bytes, and fields.
const USUAL_BYTES: usize = 512;
const USUAL_FIELDS: usize = 16;

/// What a head says besides its fields (RFC 9113, 8.3; RFC 8441, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    Status,
}

impl Pseudo {
    const COUNT: usize = 6;

    /// That of a name, which begins with a colon.
    pub fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            b":status" => Self::Status,
            _ => return None,
        })
    }
}

/// A list of fields.
#[derive(Debug, Clone, Default)]
pub struct FieldList {
    /// Names and values, one behind the other.
    bytes: Vec<u8>,
    /// Where each field begins, its name ends, and its value ends.
    fields: Vec<(u32, u32, u32)>,
    pseudo: [Option<(u32, u32)>; Pseudo::COUNT],
    /// There was more than a head may have; it was not kept.
    pub is_too_large: bool,
}

impl FieldList {
    /// Empties it; its room is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.pseudo = [None; Pseudo::COUNT];
        self.is_too_large = false;
    }

    /// Bytes of all that it has.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The number of fields, those that are no header fields left out.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Adds a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.fields.push((start, middle, self.bytes.len() as u32));
    }

    /// Sets what a head says besides its fields; says whether it was not there yet.
    pub fn set(&mut self, which: Pseudo, value: &[u8]) -> bool {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        let place = &mut self.pseudo[which as usize];
        place.replace((start, self.bytes.len() as u32)).is_none()
    }

    /// What it says besides its fields.
    pub fn get(&self, which: Pseudo) -> Option<&[u8]> {
        let (start, end) = self.pseudo[which as usize]?;
        Some(&self.bytes[start as usize..end as usize])
    }

    /// Whether it says anything besides its fields.
    pub fn has_pseudo(&self) -> bool {
        self.pseudo.iter().any(Option::is_some)
    }

    /// The fields: name, in lower case, and value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(start, middle, end)| {
            let part = |from: u32, to: u32| &self.bytes[from as usize..to as usize];
            (part(*start, *middle), part(*middle, *end))
        })
    }

    /// The values of a field.
    pub fn all<'s>(&'s self, name: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.iter()
            .filter_map(move |(it, value)| (it == name).then_some(value))
    }
}

/// Lists of a worker that wait for their next use.
pub struct SpareLists(Spares<FieldList>);

impl Default for SpareLists {
    fn default() -> Self {
        Self(Spares::new(MAX_SPARES))
    }
}

impl SpareLists {
    /// An empty list.
    pub fn take(&self) -> FieldList {
        self.0.take().unwrap_or_else(|| FieldList {
            bytes: Vec::with_capacity(USUAL_BYTES),
            fields: Vec::with_capacity(USUAL_FIELDS),
            ..FieldList::default()
        })
    }

    /// Takes a list back.
    pub fn give(&self, mut list: FieldList) {
        if list.bytes.capacity() <= MAX_SPARE_BYTES {
            list.clear();
            self.0.give(list);
        }
    }

    /// Lets go of some that nobody has needed for a while.
    pub fn trim(&self) {
        drop(self.0.trim());
    }
}
