//! A header list without an allocation per header.
//!
//! Names and values lie in one byte arena: first the bytes of the message's head as they were read, then
//! whatever was added. An entry is a handful of offsets. Removing marks the entry; order and duplicates are
//! kept. Names compare without regard to case.

mod named;
mod owned;
mod syntax;

pub use named::FieldName;
pub use owned::OwnedNames;
pub use syntax::{is_name, is_token, is_value, name_len, token_len, value_len};

use std::borrow::Cow;

/// Headers of one request or response.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// The bits of the names of all entries, removed ones included: most look-ups are for names that are in no list.
    names: u64,
    /// Whether a line that was named has a name with other characters than letters, digits, `-` and `_`.
    has_odd_names: bool,
}

/// Offsets into the arena. `line_end` is behind the line's CRLF, so that neighbours are written in one copy.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: u32,
    value: u32,
    value_end: u32,
    line_end: u32,
    tag: Tag,
}

/// The length of a name and its first letter in lower case: what most names differ in, so that few are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag(u32);

impl Tag {
    /// Of an entry that counts no more.
    const REMOVED: Self = Self(0);

    #[inline]
    fn of(name: &[u8]) -> Self {
        let initial = name.first().map_or(0, |byte| byte | 0x20);
        Self((name.len() as u32) << 8 | u32::from(initial))
    }

    #[inline]
    fn name_len(self) -> usize {
        (self.0 >> 8) as usize
    }

    /// One bit by length and first letter, chosen so that few names share a bit. The factors separate the names of
    /// fields that frame a message from those that most messages have.
    #[inline]
    const fn name_bit(self) -> u64 {
        let (length, initial) = (self.0 >> 8, self.0 & 0xff);
        1 << (length.wrapping_mul(1).wrapping_add(initial * 13) & 63)
    }

    /// One bit for the length: names without a common bit are different.
    #[inline]
    fn length_bit(self) -> u64 {
        1 << (self.name_len() % 64)
    }
}

impl Entry {
    #[inline]
    fn is_removed(&self) -> bool {
        self.tag == Tag::REMOVED
    }
}

/// One header: its name as it was written, and its value without surrounding white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'h> {
    /// The field name.
    pub name: &'h [u8],
    /// The field value.
    pub value: &'h [u8],
}

impl Headers {
    /// Forgets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.names = 0;
        self.has_odd_names = false;
    }

    /// Whether a header may have a name of this tag.
    #[inline]
    fn may_have(&self, tag: Tag) -> bool {
        self.names & tag.name_bit() != 0
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        self.names |= entry.tag.name_bit();
        self.entries.push(entry);
    }

    /// Makes this list like another one, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.arena.clone_from(&other.arena);
        self.entries.clone_from(&other.entries);
        self.names = other.names;
        self.has_odd_names = other.has_odd_names;
    }

    /// The bytes that the list takes, about.
    pub fn bytes(&self) -> usize {
        self.arena.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Adds a header at the end. A name or value with bytes that cannot stand in a header (CR, LF, NUL, in
    /// names also white space and separators) is not added: nothing that a client sends can split a message.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        if !is_name(name) || !is_value(value) {
            return;
        }
        self.append_parsed(name, value);
    }

    /// Adds a header whose name is a constant and whose value comes from a part of a request that was checked
    /// when it was read.
    #[inline]
    pub fn append_trusted(&mut self, name: &'static [u8], value: &[u8]) {
        debug_assert!(is_name(name) && is_value(value));
        self.append_parsed(name, value);
    }

    /// Adds a header whose parts are known to be well-formed.
    #[inline]
    fn append_parsed(&mut self, name: &[u8], value: &[u8]) {
        let start = self.arena.len();
        self.arena.reserve(name.len() + value.len() + 4);
        self.arena.extend_from_slice(name);
        self.arena.extend_from_slice(b": ");
        self.arena.extend_from_slice(value);
        self.arena.extend_from_slice(b"\r\n");
        let value_start = start + name.len() + 2;
        self.push(Entry {
            name: start as u32,
            value: value_start as u32,
            value_end: (value_start + value.len()) as u32,
            line_end: self.arena.len() as u32,
            tag: Tag::of(name),
        });
    }

    /// Adds all headers of another list at the end, none of whose names may be in this one yet.
    fn append_new(&mut self, other: &Self) {
        let offset = self.arena.len() as u32;
        self.names |= other.names;
        self.arena.extend_from_slice(&other.arena);
        let present = other.entries.iter().filter(|entry| !entry.is_removed());
        self.entries.extend(present.map(|entry| Entry {
            name: entry.name + offset,
            value: entry.value + offset,
            value_end: entry.value_end + offset,
            line_end: entry.line_end + offset,
            ..*entry
        }));
    }

    /// Adds all headers of another list at the end of this one. For a name that both have, the other's come first.
    pub fn prepend_all(&mut self, other: &Self) {
        if other.entries.is_empty() {
            return;
        }
        if self.names & other.names == 0 {
            self.append_new(other);
            return;
        }
        // Hardly ever any, and then no memory is taken.
        let mut behind = Vec::new();
        let lengths = other
            .entries
            .iter()
            .fold(0, |all, entry| all | entry.tag.length_bit());
        let Self { arena, entries, .. } = self;
        for entry in entries.iter_mut().filter(|entry| !entry.is_removed()) {
            if entry.tag.length_bit() & lengths != 0 && other.contains(Self::header(arena, entry).name) {
                behind.push(*entry);
                entry.tag = Tag::REMOVED;
            }
        }
        self.append_new(other);
        self.entries.append(&mut behind);
    }

    /// Adds to the first value of this name what `addition` says for it; the value is well-formed with that.
    pub fn extend_value<'a>(&mut self, name: &[u8], addition: impl FnOnce(&[u8]) -> Option<&'a [u8]>) {
        let Some(index) = self.position(name) else { return };
        let entry = self.entries[index];
        let value = entry.value as usize..entry.value_end as usize;
        let Some(addition) = addition(&self.arena[value.clone()]) else {
            return;
        };
        debug_assert!(is_value(addition));
        let start = self.arena.len();
        self.arena.reserve(name.len() + value.len() + addition.len() + 4);
        self.arena
            .extend_from_within(entry.name as usize..entry.name as usize + name.len());
        self.arena.extend_from_slice(b": ");
        self.arena.extend_from_within(value);
        self.arena.extend_from_slice(addition);
        self.arena.extend_from_slice(b"\r\n");
        let line_end = self.arena.len() as u32;
        self.entries[index] = Entry {
            name: start as u32,
            value: (start + name.len() + 2) as u32,
            value_end: line_end - 2,
            line_end,
            ..entry
        };
    }

    /// Indexes one line of a head that [`Headers::load`] will load, or [`Headers::load_after`] has loaded, by offsets:
    /// the name, its position, the value without surrounding white space, and the position after the line's CRLF.
    #[inline]
    pub fn index_line(&mut self, name: &[u8], at: usize, value: std::ops::Range<usize>, line_end: usize) {
        debug_assert!(at + name.len() <= value.start && value.start <= value.end && value.end <= line_end);
        self.push(Entry {
            name: at as u32,
            value: value.start as u32,
            value_end: value.end as u32,
            line_end: line_end as u32,
            tag: Tag::of(name),
        });
    }

    /// Notes that a line that was named has a name with other characters than letters, digits, `-` and `_`.
    #[cold]
    pub fn note_odd_name(&mut self) {
        self.has_odd_names = true;
    }

    /// Removes the lines whose names have characters other than letters, digits, `-` and `_`, if any were noted.
    #[inline]
    pub fn remove_odd_names(&mut self) {
        if self.has_odd_names {
            self.find_odd_names();
        }
    }

    #[cold]
    fn find_odd_names(&mut self) {
        let arena = &self.arena;
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_removed()) {
            if !name_len(Self::header(arena, entry).name).1 {
                entry.tag = Tag::REMOVED;
            }
        }
        self.has_odd_names = false;
    }

    /// Brings the bytes of the head whose lines were named since the list was cleared.
    #[inline]
    pub fn load(&mut self, head: &[u8]) {
        debug_assert!(self.arena.is_empty(), "named lines begin a list");
        self.arena.extend_from_slice(head);
    }

    /// The bytes of all lines: those that were loaded, and then those that were added.
    #[inline]
    pub fn loaded(&self) -> &[u8] {
        &self.arena
    }

    /// Loads lines after those of the list, of which the well-formed ones are indexed next. Returns the offset at which
    /// they begin.
    #[inline]
    pub fn load_after(&mut self, lines: &[u8]) -> usize {
        let from = self.arena.len();
        self.arena.extend_from_slice(lines);
        from
    }

    /// Writes all headers as HTTP/1.1 lines.
    #[inline]
    pub fn write_lines(&self, out: &mut Vec<u8>) {
        let (mut start, mut end) = (0, 0);
        for entry in self.entries.iter().filter(|entry| !entry.is_removed()) {
            if entry.name as usize != end {
                out.extend_from_slice(&self.arena[start..end]);
                start = entry.name as usize;
            }
            end = entry.line_end as usize;
        }
        out.extend_from_slice(&self.arena[start..end]);
    }

    /// Replaces every header of this name by one.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.append(name, value);
    }

    /// Removes every header of this name; says whether there was one.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let (tag, arena) = (Tag::of(name), &self.arena);
        let mut found = false;
        if !self.may_have(tag) {
            return found;
        }
        for entry in &mut self.entries {
            if entry.tag == tag && is_same_name(Self::header(arena, entry).name, name) {
                entry.tag = Tag::REMOVED;
                found = true;
            }
        }
        found
    }

    /// Removes every header of these names, which are known before any message is.
    #[inline]
    pub fn remove_any<const N: usize>(&mut self, names: [&'static [u8]; N]) {
        let tags = names.map(Tag::of);
        if !tags.iter().any(|tag| self.may_have(*tag)) {
            return;
        }
        let Self { arena, entries, .. } = self;
        for entry in entries {
            // Without a branch for each name: hardly any header is one of them.
            let may_be = tags.iter().fold(false, |any, tag| any | (*tag == entry.tag));
            if may_be
                && names
                    .iter()
                    .any(|name| is_same_name(Self::header(arena, entry).name, name))
            {
                entry.tag = Tag::REMOVED;
            }
        }
    }

    /// Keeps the headers for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(Header<'_>) -> bool) {
        let Self { arena, entries, .. } = self;
        for entry in entries.iter_mut().filter(|entry| !entry.is_removed()) {
            if !keep(Self::header(arena, entry)) {
                entry.tag = Tag::REMOVED;
            }
        }
    }

    /// The first value of this name.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let entry = &self.entries[self.position(name)?];
        Some(&self.arena[entry.value as usize..entry.value_end as usize])
    }

    /// Where the first header of this name is in the list.
    #[inline]
    fn position(&self, name: &[u8]) -> Option<usize> {
        let tag = Tag::of(name);
        if !self.may_have(tag) {
            return None;
        }
        self.entries
            .iter()
            .position(|entry| entry.tag == tag && is_same_name(Self::header(&self.arena, entry).name, name))
    }

    /// Every value of this name, in order.
    pub fn get_all<'h>(&'h self, name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
        let tag = Tag::of(name);
        let entries = match self.may_have(tag) {
            true => self.entries.as_slice(),
            false => &[],
        };
        entries
            .iter()
            .filter(move |entry| {
                entry.tag == tag && is_same_name(Self::header(&self.arena, entry).name, name)
            })
            .map(|entry| Self::header(&self.arena, entry).value)
    }

    /// The values of this name as one (RFC 9110, 5.3); cookies are joined in a way of their own (RFC 9113, 8.2.3).
    pub fn joined(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        let first = self.get(name)?;
        if self.get_all(name).nth(1).is_none() {
            return Some(Cow::Borrowed(first));
        }
        let all: Vec<&[u8]> = self.get_all(name).collect();
        let between = match name.eq_ignore_ascii_case(b"cookie") {
            true => &b"; "[..],
            false => b", ",
        };
        Some(Cow::Owned(all.join(between)))
    }

    /// Whether there is a header of this name.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// Whether `is_it` holds for the name of a header that begins with this letter, in lower case.
    #[inline]
    pub fn any_name(&self, initial: u8, is_it: impl Fn(&[u8]) -> bool) -> bool {
        let is_it = |entry: &Entry| {
            entry.tag.0 as u8 == initial
                && !entry.is_removed()
                && is_it(Self::header(&self.arena, entry).name)
        };
        self.entries.iter().any(is_it)
    }

    /// All headers, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        self.entries
            .iter()
            .filter(|entry| !entry.is_removed())
            .map(|entry| Self::header(&self.arena, entry))
    }

    /// The number of headers.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_removed()).count()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Gives back memory beyond `bytes`, so that one large message does not weigh on an idle connection.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.arena.shrink_to(bytes);
        self.entries.shrink_to(bytes / 16);
    }

    #[inline]
    fn header<'h>(arena: &'h [u8], entry: &Entry) -> Header<'h> {
        let (name, value) = (entry.name as usize, entry.value as usize);
        Header {
            name: &arena[name..name + entry.tag.name_len()],
            value: &arena[value..entry.value_end as usize],
        }
    }
}

/// Compares two names of one length.
fn is_same_name(own: &[u8], name: &[u8]) -> bool {
    // Most names are looked up in the case in which they are written.
    own == name || is_same_but_case(own, name)
}

/// The same in eights, which for names of usual length are two steps.
fn is_same_but_case(own: &[u8], name: &[u8]) -> bool {
    let ((own, own_rest), (name, name_rest)) = (own.as_chunks::<8>(), name.as_chunks::<8>());
    let lower = |bytes: &[u8; 8]| lower_case(u64::from_le_bytes(*bytes));
    own.len() == name.len()
        && own_rest.len() == name_rest.len()
        && own.iter().zip(name).all(|(own, name)| lower(own) == lower(name))
        && (own_rest.iter().zip(name_rest)).all(|(own, name)| own.eq_ignore_ascii_case(name))
}

/// Eight bytes with their ASCII letters in lower case.
#[inline]
const fn lower_case(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let low = bytes & !HIGH;
    // The highest bit of each byte: whether it is behind 'Z', and whether it is 'A' or behind it.
    let (is_behind, is_from) = (
        low + (0x7f - b'Z' as u64) * EACH,
        low + (0x80 - b'A' as u64) * EACH,
    );
    let is_capital = (is_behind ^ is_from) & !bytes & HIGH;
    bytes | is_capital >> 2
}

#[cfg(test)]
mod tests;
