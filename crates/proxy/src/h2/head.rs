//! Heads and trailers as HTTP/2 has them: which field lists make one (RFC 9113, 8.1.1, 8.2, 8.3).

use super::hpack::{Decoder, Malformed};
use crate::h1::parse_length;
use crate::multiplex::fields::belongs;
use crate::multiplex::list::{FieldList, Pseudo};
use weir_plugin::headers::{is_value, token_len};

/// What a field adds to a list's size beyond its name and value (RFC 9113, 6.5.2).
const FIELD_OVERHEAD: usize = 32;
/// Fields that are kept of a list; whoever sends more is refused for it.
const MAX_KEPT: usize = 256;

/// Reads a field list into `list`, of which no more than `max_bytes` are kept; says whether its fields are well-formed.
///
/// # Errors
/// It is no list; the connection is of no further use.
pub fn read(
    decoder: &mut Decoder,
    block: &[u8],
    max_bytes: usize,
    mut list: FieldList,
) -> Result<(FieldList, bool), Malformed> {
    let mut is_well_formed = true;
    decoder.decode(block, |name, value| {
        let size = list.bytes() + name.len() + value.len() + FIELD_OVERHEAD * list.len();
        if size > max_bytes || list.len() >= MAX_KEPT {
            list.is_too_large = true;
            return;
        }
        if name.first() == Some(&b':') {
            // They stand before all others, and once.
            let is_first = list.len() == 0 && is_value(value);
            is_well_formed &= is_first && Pseudo::of(name).is_some_and(|which| list.set(which, value));
            return;
        }
        is_well_formed &= is_name(name) && is_value(value) && belongs(name, value);
        list.push(name, value);
    })?;
    Ok((list, is_well_formed))
}

/// Whether a well-formed list is the head of a request.
pub fn is_request(list: &FieldList) -> bool {
    let get = |which| list.get(which).filter(|value| !value.is_empty());
    if list.get(Pseudo::Status).is_some() {
        return false;
    }
    // Where too much came, what is missing may be among what was not kept.
    let (Some(method), false) = (get(Pseudo::Method), list.is_too_large) else {
        return list.is_too_large;
    };
    let (scheme, path) = (get(Pseudo::Scheme), get(Pseudo::Path));
    if method == b"CONNECT" && list.get(Pseudo::Protocol).is_none() {
        return list.get(Pseudo::Scheme).is_none() && list.get(Pseudo::Path).is_none();
    }
    if list.get(Pseudo::Protocol).is_some() && method != b"CONNECT" {
        return false;
    }
    let is_path = |path: &[u8]| path[0] == b'/' || (path == b"*" && method == b"OPTIONS");
    scheme.is_some() && path.is_some_and(is_path)
}

/// The status of a response.
pub fn status(list: &FieldList) -> Option<u16> {
    let others = [
        Pseudo::Method,
        Pseudo::Scheme,
        Pseudo::Authority,
        Pseudo::Path,
        Pseudo::Protocol,
    ];
    if others.iter().any(|which| list.get(*which).is_some()) {
        return None;
    }
    match list.get(Pseudo::Status)? {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            Some(digit(a) * 100 + digit(b) * 10 + digit(c))
        }
        _ => None,
    }
}

/// The length that the body is to have, where it is stated clearly. What is not clear is refused with the other fields.
pub fn stated_length(list: &FieldList) -> Option<u64> {
    let mut stated = list.all(b"content-length");
    let length = parse_length(stated.next()?)?;
    stated.next().is_none().then_some(length)
}

/// Whether it may be the name of a field, which is in lower case here.
fn is_name(name: &[u8]) -> bool {
    token_len(name) == name.len() && !name.is_empty() && !name.iter().any(u8::is_ascii_uppercase)
}
