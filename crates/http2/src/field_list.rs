//! The fields of a head, or of trailers, as a stream of HTTP/2 or HTTP/3 brings them: all in one piece of memory, with
//! those that are no header fields apart.

use weir_plugin::Headers;
use weir_plugin::headers::name_len;

/// Bytes up to which an empty list is worth keeping for another head.
const MAX_SPARE_BYTES: usize = 4096;
/// Room in a new list: bytes, and fields.
const USUAL_BYTES: usize = 512;
const USUAL_FIELDS: usize = 16;

/// What a head says besides its fields (RFC 9113, 8.3; RFC 8441, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PseudoHeader {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:protocol`
    Protocol,
    /// `:status`
    Status,
}

impl PseudoHeader {
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
    /// A line of each field, as a header list has it, and the other facts of a head.
    bytes: Vec<u8>,
    fields: Vec<FieldOffsets>,
    pseudo: [Option<(u32, u32)>; PseudoHeader::COUNT],
    /// There was more than a head may have; it was not kept.
    pub is_too_large: bool,
}

/// Where a field begins, its value begins, and its value ends.
#[derive(Debug, Clone, Copy)]
struct FieldOffsets {
    start: u32,
    value: u32,
    end: u32,
}

/// What a line has beyond name and value: between them, and behind.
const BETWEEN: &[u8; 2] = b": ";
const BEHIND: &[u8; 2] = b"\r\n";

impl FieldList {
    /// An empty list with room for a usual head.
    pub fn with_usual_room() -> Self {
        Self {
            bytes: Vec::with_capacity(USUAL_BYTES),
            fields: Vec::with_capacity(USUAL_FIELDS),
            ..Self::default()
        }
    }

    /// Whether its room is small enough to be kept for another head.
    pub fn is_worth_keeping(&self) -> bool {
        self.bytes.capacity() <= MAX_SPARE_BYTES
    }

    /// Empties it; its room is kept.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.pseudo = [None; PseudoHeader::COUNT];
        self.is_too_large = false;
    }

    /// Bytes of all names and values that it has.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.len() - self.fields.len() * (BETWEEN.len() + BEHIND.len())
    }

    /// Whether there are no fields, those that are no header fields left out.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The number of fields, those that are no header fields left out.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Adds a field.
    #[inline]
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        let beyond = BETWEEN.len() + BEHIND.len();
        self.bytes.reserve(name.len() + value.len() + beyond);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(BETWEEN);
        let place = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(BEHIND);
        self.fields.push(FieldOffsets {
            start: start as u32,
            value: place as u32,
            end: end as u32,
        });
    }

    /// Sets what a head says besides its fields; says whether it was not there yet.
    #[inline]
    pub fn set(&mut self, which: PseudoHeader, value: &[u8]) -> bool {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        let place = &mut self.pseudo[which as usize];
        place.replace((start, self.bytes.len() as u32)).is_none()
    }

    /// What it says besides its fields.
    #[inline]
    pub fn get(&self, which: PseudoHeader) -> Option<&[u8]> {
        let (start, end) = self.pseudo[which as usize]?;
        Some(&self.bytes[start as usize..end as usize])
    }

    /// Whether it says anything besides its fields.
    #[inline]
    pub fn has_pseudo(&self) -> bool {
        self.pseudo.iter().any(Option::is_some)
    }

    /// The fields: name, in lower case, and value.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|place| self.field(*place))
    }

    fn field(&self, place: FieldOffsets) -> (&[u8], &[u8]) {
        let part = |from: u32, to: u32| &self.bytes[from as usize..to as usize];
        let name_end = place.value - BETWEEN.len() as u32;
        (part(place.start, name_end), part(place.value, place.end))
    }

    /// Adds fields to a header list, all in one copy: those that `keep` says.
    ///
    /// # Errors
    /// The first that `keep` gives.
    #[inline]
    pub fn add_to<E>(
        &self,
        headers: &mut Headers,
        mut keep: impl FnMut(&[u8], &[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let from = headers.load_after(&self.bytes);
        for place in &self.fields {
            let (name, value) = self.field(*place);
            if keep(name, value)? {
                let at = |offset: u32| from + offset as usize;
                let line_end = at(place.end) + BEHIND.len();
                headers.index_line(name, at(place.start), at(place.value)..at(place.end), line_end);
                if !name_len(name).1 {
                    headers.note_odd_name();
                }
            }
        }
        Ok(())
    }

    /// The values of a field.
    #[inline]
    pub fn all<'s>(&'s self, name: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.iter()
            .filter_map(move |(it, value)| (it == name).then_some(value))
    }
}
