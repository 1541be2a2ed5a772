//! Field sections as they are sent (QPACK; RFC 9204): whether pseudo-header fields stand at an allowed position, each
//! once (RFC 9114, section 4.3). The `h3` crate, which decodes sections, keeps the last of each at any position, and
//! drops those of trailers.
//!
//! Nothing is decoded here: a name is known by its place in the static table, or by the bytes that stand for it.

use h3::error::Code;

/// Which message a section belongs to, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The head of a request.
    Request,
    /// The trailers of one.
    Trailers,
}

/// A pseudo-header field, by its name as it stands, and as its one Huffman coding (RFC 7541, appendix B).
struct PseudoHeader(&'static [u8], &'static [u8]);

/// Those of requests, and that of responses.
const PSEUDO: [PseudoHeader; 6] = [
    PseudoHeader(b":authority", b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f"),
    PseudoHeader(b":path", b"\xb9\x58\xd3\x3f"),
    PseudoHeader(b":method", b"\xb9\x49\x53\x39\xe4"),
    PseudoHeader(b":scheme", b"\xb8\x82\x4e\x5a\x4b"),
    PseudoHeader(b":protocol", b"\xb9\x5d\x87\x49\xc8\x7a\x3f"),
    PseudoHeader(b":status", b"\xb8\x84\x8d\x36\xa3"),
];
const AUTHORITY: usize = 0;
const PATH: usize = 1;
const METHOD: usize = 2;
const SCHEME: usize = 3;
const STATUS: usize = 5;

/// The static table's length (RFC 9204, appendix A).
const STATIC: usize = 99;
/// The index of `:authority` there; its value is empty.
const STATIC_AUTHORITY: usize = 0;

/// The kind of a field line's name.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    Regular,
    Pseudo(usize),
    /// A name that begins with `:` and is not one of them.
    Unknown,
}

/// Checks a section.
///
/// # Errors
/// `H3_MESSAGE_ERROR` when it makes no message, `QPACK_DECOMPRESSION_FAILED` when it cannot be read or needs a table that
/// there is not.
pub fn check(section: &[u8], kind: Kind) -> Result<(), Code> {
    let mut reader = Reader(section);
    let mut seen = [false; PSEUDO.len()];
    let mut is_past = false;
    // A table of fields that were sent before was never offered.
    if reader.prefix() != Some(0) {
        return Err(Code::QPACK_DECOMPRESSION_FAILED);
    }
    while !reader.0.is_empty() {
        let (name, is_empty) = reader.line().ok_or(Code::QPACK_DECOMPRESSION_FAILED)?;
        let which = match name {
            Name::Regular => {
                is_past = true;
                continue;
            }
            Name::Pseudo(which) => which,
            Name::Unknown => return Err(Code::H3_MESSAGE_ERROR),
        };
        let is_repeated = std::mem::replace(&mut seen[which], true);
        let is_good = kind == Kind::Request && which != STATUS && !is_past && !is_repeated && !is_empty;
        if !is_good {
            return Err(Code::H3_MESSAGE_ERROR);
        }
    }
    Ok(())
}

/// Reads a section from its start.
struct Reader<'s>(&'s [u8]);

impl<'s> Reader<'s> {
    /// How many earlier insertions it needs (RFC 9204, section 4.5.1), coded.
    fn prefix(&mut self) -> Option<usize> {
        let (_, needed) = self.number(8)?;
        let _base = self.number(7)?;
        Some(needed)
    }

    /// The name of the next line, and whether the value is empty (RFC 9204, sections 4.5.2 to 4.5.6).
    fn line(&mut self) -> Option<(Name, bool)> {
        match self.0.first()? {
            0x80.. => {
                let (flags, index) = self.number(6)?;
                let is_static = flags & 0x40 != 0 && index < STATIC;
                is_static.then(|| (static_name(index), index == STATIC_AUTHORITY))
            }
            0x40..=0x7f => {
                let (flags, index) = self.number(4)?;
                if flags & 0x10 == 0 || index >= STATIC {
                    return None;
                }
                let (_, value) = self.text(7)?;
                Some((static_name(index), value.is_empty()))
            }
            0x20..=0x3f => {
                let (flags, name) = self.text(3)?;
                let (_, value) = self.text(7)?;
                Some((literal_name(name, flags & 0x08 != 0), value.is_empty()))
            }
            // Of the table that there is not.
            _ => None,
        }
    }

    /// A text whose length begins in the lowest `bits` of a byte; the bit above says whether it is coded.
    fn text(&mut self, bits: u32) -> Option<(u8, &'s [u8])> {
        let (flags, length) = self.number(bits)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((flags, text))
    }

    /// A number that begins in the lowest `bits` of a byte (RFC 7541, section 5.1), and the byte.
    fn number(&mut self, bits: u32) -> Option<(u8, usize)> {
        let first = self.byte()?;
        let most = u8::MAX >> (8 - bits);
        let mut number = usize::from(first & most);
        if first & most < most {
            return Some((first, number));
        }
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            number += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some((first, number));
            }
        }
        // No head is so long.
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
}

/// The names of the static table (RFC 9204, appendix A).
fn static_name(index: usize) -> Name {
    match index {
        STATIC_AUTHORITY => Name::Pseudo(AUTHORITY),
        1 => Name::Pseudo(PATH),
        15..=21 => Name::Pseudo(METHOD),
        22 | 23 => Name::Pseudo(SCHEME),
        24..=28 | 63..=71 => Name::Pseudo(STATUS),
        _ => Name::Regular,
    }
}

/// A name that is spelt out. Coded, `:` is the seven bits 1011100; a name that begins with it and is not as one of
/// the known ones would be coded is unknown.
fn literal_name(name: &[u8], is_coded: bool) -> Name {
    let begins = match is_coded {
        true => name.first().is_some_and(|first| first & 0xfe == 0xb8),
        false => name.first() == Some(&b':'),
    };
    if !begins {
        return Name::Regular;
    }
    let is_it = |PseudoHeader(plain, coded): &PseudoHeader| name == if is_coded { *coded } else { *plain };
    PSEUDO.iter().position(is_it).map_or(Name::Unknown, Name::Pseudo)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section of these lines.
    fn section(lines: &[&[u8]]) -> Vec<u8> {
        [&[&b"\0\0"[..]], lines].concat().concat()
    }

    const GET: &[u8] = b"\xd1";
    const HTTPS: &[u8] = b"\xd7";
    const ROOT: &[u8] = b"\xc1";
    const HOST: &[u8] = b"\x50\x01h";
    /// `accept: */*`, and `x: y`.
    const ACCEPT: &[u8] = b"\xdd";
    const SPELT: &[u8] = b"\x21x\x01y";

    #[test]
    fn pseudo_header_fields_stand_first_and_once() {
        let bad = Err(Code::H3_MESSAGE_ERROR);
        let broken = Err(Code::QPACK_DECOMPRESSION_FAILED);
        for (lines, wanted) in [
            (&[GET, HTTPS, ROOT, HOST][..], Ok(())),
            (&[GET, HTTPS, ROOT, HOST, ACCEPT, SPELT, SPELT], Ok(())),
            (&[b"\x51\x02/a", GET, HTTPS, HOST], Ok(())),
            (&[b"\x27\x00:method\x03GET", HTTPS, ROOT, HOST], Ok(())),
            (&[b"\x2c\xb9\x58\xd3\x3f\x02/a", GET, HTTPS, HOST], Ok(())),
            // Twice, in the same form and in others.
            (&[GET, GET, HTTPS, ROOT], bad),
            (&[GET, b"\xd4", HTTPS, ROOT], bad),
            (&[GET, HTTPS, ROOT, b"\x51\x02/a"], bad),
            (&[GET, HTTPS, ROOT, b"\x25:path\x02/a"], bad),
            (&[GET, HTTPS, ROOT, b"\x2c\xb9\x58\xd3\x3f\x02/a"], bad),
            (&[GET, HTTPS, ROOT, HOST, HOST], bad),
            // Behind others, empty, of responses, unknown.
            (&[GET, HTTPS, ROOT, ACCEPT, HOST], bad),
            (&[SPELT, GET, HTTPS, ROOT], bad),
            (&[GET, HTTPS, b"\x51\x00"], bad),
            (&[GET, HTTPS, ROOT, b"\xc0"], bad),
            (&[GET, HTTPS, ROOT, b"\xd9"], bad),
            (&[GET, HTTPS, ROOT, b"\xff\x08"], bad),
            (&[GET, HTTPS, ROOT, b"\x22:x\x01y"], bad),
            (&[GET, HTTPS, ROOT, b"\x21:\x01y"], bad),
            // The known bytes with another ending.
            (&[GET, HTTPS, b"\x2c\xb9\x58\xd3\x3e\x02/a"], bad),
            // Cut off, beyond the table, of the table that there is not.
            (&[GET, b"\x51\x05/a"], broken),
            (&[GET, b"\x51"], broken),
            (&[b"\x2f"], broken),
            (&[b"\xff\x24"], broken),
            (&[b"\x80"], broken),
            (&[b"\x40\x00"], broken),
            (&[b"\x10"], broken),
            (&[b"\x00\x00"], broken),
            (&[b"\x51\x7f\xff\xff\xff\xff\xff\x01"], broken),
        ] {
            assert_eq!(check(&section(lines), Kind::Request), wanted, "{lines:x?}");
        }
        for (prefix, wanted) in [
            (&b"\x00\x00"[..], Ok(())),
            (b"\x00\x80", Ok(())),
            (b"", broken),
            (b"\x00", broken),
            (b"\x01\x00", broken),
        ] {
            assert_eq!(check(prefix, Kind::Request), wanted, "{prefix:x?}");
        }
    }

    #[test]
    fn trailers_have_none() {
        for (lines, wanted) in [
            (&[SPELT, ACCEPT][..], Ok(())),
            (&[SPELT, ROOT], Err(Code::H3_MESSAGE_ERROR)),
            (&[b"\xd9"], Err(Code::H3_MESSAGE_ERROR)),
            (&[b"\x25:path\x02/a"], Err(Code::H3_MESSAGE_ERROR)),
        ] {
            assert_eq!(check(&section(lines), Kind::Trailers), wanted, "{lines:x?}");
        }
    }
}
