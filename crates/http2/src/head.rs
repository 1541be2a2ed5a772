//! Heads and trailers as HTTP/2 has them: which field lists make one (RFC 9113, 8.1.1, 8.2, 8.3).

use crate::field_list::{FieldList, PseudoHeader};
use crate::fields::belongs;
use crate::hpack::{Decoder, Malformed, ValidationHint};
use weir_http1::fields::parse_length;
use weir_plugin::headers::{is_value, token_len};

/// What a field adds to a list's size beyond its name and value (RFC 9113, 6.5.2).
const FIELD_OVERHEAD: usize = 32;
/// Fields that are kept of a list; a request with more is refused.
const MAX_KEPT: usize = 256;

/// Reads a field list into `list`, of which no more than `max_bytes` are kept; says whether its fields are well-formed.
///
/// # Errors
/// It is no list; the connection is of no further use.
pub fn read(
    decoder: &mut Decoder,
    block: &[u8],
    max_bytes: usize,
    list: &mut FieldList,
) -> Result<bool, Malformed> {
    let mut is_well_formed = true;
    decoder.decode(block, |name, value, known| {
        let size = list.bytes() + name.len() + value.len() + FIELD_OVERHEAD * list.len();
        if size > max_bytes || list.len() >= MAX_KEPT {
            list.is_too_large = true;
            return false;
        }
        let is_pseudo = name.first() == Some(&b':');
        let is_good = match known {
            ValidationHint::Field => true,
            _ if is_pseudo => is_value(value),
            ValidationHint::Name => is_value(value) && belongs(name, value),
            ValidationHint::Nothing => is_name(name) && is_value(value) && belongs(name, value),
        };
        is_well_formed &= is_good;
        if is_pseudo {
            // They stand before all others, and once.
            let is_first = list.is_empty();
            is_well_formed &= is_first && PseudoHeader::of(name).is_some_and(|which| list.set(which, value));
        } else {
            list.push(name, value);
        }
        is_good
    })?;
    Ok(is_well_formed)
}

/// Whether a well-formed list is the head of a request.
pub fn is_request(list: &FieldList) -> bool {
    let get = |which| list.get(which).filter(|value| !value.is_empty());
    if list.get(PseudoHeader::Status).is_some() {
        return false;
    }
    // Where too much came, what is missing may be among what was not kept.
    let (Some(method), false) = (get(PseudoHeader::Method), list.is_too_large) else {
        return list.is_too_large;
    };
    let (scheme, path) = (get(PseudoHeader::Scheme), get(PseudoHeader::Path));
    if method == b"CONNECT" && list.get(PseudoHeader::Protocol).is_none() {
        return list.get(PseudoHeader::Scheme).is_none() && list.get(PseudoHeader::Path).is_none();
    }
    if list.get(PseudoHeader::Protocol).is_some() && method != b"CONNECT" {
        return false;
    }
    let is_path = |path: &[u8]| path[0] == b'/' || (path == b"*" && method == b"OPTIONS");
    scheme.is_some() && path.is_some_and(is_path)
}

/// The status of a response.
pub fn status(list: &FieldList) -> Option<u16> {
    let others = [
        PseudoHeader::Method,
        PseudoHeader::Scheme,
        PseudoHeader::Authority,
        PseudoHeader::Path,
        PseudoHeader::Protocol,
    ];
    if others.iter().any(|which| list.get(*which).is_some()) {
        return None;
    }
    match list.get(PseudoHeader::Status)? {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            Some(digit(a) * 100 + digit(b) * 10 + digit(c))
        }
        _ => None,
    }
}

/// Whether the head of a response, which has a [`status`], is an interim one.
pub fn is_interim(list: &FieldList) -> bool {
    matches!(list.get(PseudoHeader::Status), Some([b'1', ..]))
}

/// The announced length of the body, if it is clear. An unclear one is refused with the other fields.
pub fn stated_length(list: &FieldList) -> Option<u64> {
    let mut stated = list.all(b"content-length");
    let length = parse_length(stated.next()?)?;
    stated.next().is_none().then_some(length)
}

/// Whether it may be the name of a field, which is in lower case here.
fn is_name(name: &[u8]) -> bool {
    token_len(name) == name.len() && !name.is_empty() && !name.iter().any(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(what, a list, how much is kept of it, whether it is well-formed; and another one of the same connection)`.
    type Case = (&'static str, &'static [u8], usize, bool, &'static [u8], bool);

    /// A field that the peer has had kept is as good as it was when it came.
    #[test]
    fn fields_are_judged_once() {
        let cases: [Case; 9] = [
            ("good", b"\x40\x01a\x01b", 100, true, b"\xbe", true),
            ("a name", b"\x40\x01A\x01b", 100, false, b"\xbe", false),
            ("a value", b"\x40\x01a\x01\n", 100, false, b"\xbe", false),
            (
                "a value of a fixed name",
                b"\x4f\x01\n",
                100,
                false,
                b"\xbe",
                false,
            ),
            (
                "a name with another value",
                b"\x40\x01A\x01b",
                100,
                false,
                b"\x0f\x2f\x01c",
                false,
            ),
            (
                "a good name",
                b"\x40\x01a\x01b",
                100,
                true,
                b"\x0f\x2f\x01\n",
                false,
            ),
            (
                "what no code has looked at",
                b"\x40\x01A\x01b",
                0,
                true,
                b"\xbe",
                false,
            ),
            ("of a connection", b"\x40\x02te\x01b", 100, false, b"\xbe", false),
            (
                "of a connection, by its number",
                b"\xb9",
                100,
                false,
                b"\x8f",
                true,
            ),
        ];
        for (what, first, most, is_first_good, second, is_second_good) in cases {
            let mut decoder = Decoder::default();
            let mut read =
                |block: &[u8], most| super::read(&mut decoder, block, most, &mut FieldList::default());
            assert_eq!(read(first, most), Ok(is_first_good), "{what}");
            assert_eq!(read(second, 100), Ok(is_second_good), "{what}, again");
        }
    }

    /// What a head says besides its fields stands there before them and once, whether it was kept or not.
    #[test]
    fn pseudo_fields_have_their_place() {
        for (block, is_good) in [
            (&b"\x82\x84\x41\x01h"[..], true),
            (b"\x82\x41\x01h\xbe", false),
            (b"\x41\x01h\x82\x90", true),
            (b"\x41\x01h\x90\x82", false),
            (b"\x41\x01\n", false),
            (b"\x40\x02:a\x01b", false),
        ] {
            let mut list = FieldList::default();
            let read = read(&mut Decoder::default(), block, 1000, &mut list);
            assert_eq!(read, Ok(is_good), "{block:x?}");
        }
    }
}
