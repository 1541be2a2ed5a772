//! LDAP messages (RFC 4511) in BER, as far as recognising users needs them: binds, one search, StartTLS.

use thiserror::Error;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const ENUMERATED: u8 = 0x0a;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// An answer to a bind.
pub(super) const BIND_ANSWER: u8 = 0x61;
/// An entry that a search has found.
pub(super) const ENTRY: u8 = 0x64;
/// The end of a search.
pub(super) const SEARCH_DONE: u8 = 0x65;
/// Where else a search could go on. It is not followed.
pub(super) const REFERENCE: u8 = 0x73;
/// An answer to an extended operation.
pub(super) const EXTENDED_ANSWER: u8 = 0x78;
/// Most values of an attribute that are read.
const MAX_VALUES: usize = 1000;
/// Most bytes of one message.
const MAX_MESSAGE: usize = 1 << 20;
/// StartTLS (RFC 4511, 4.14.1).
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

/// A message of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'b> {
    pub(super) id: u32,
    /// Its kind.
    pub(super) operation: u8,
    /// What it says.
    pub(super) content: &'b [u8],
    /// The bytes of the whole.
    pub(super) length: usize,
}

/// That what a directory sends is not LDAP, or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the directory's message cannot be read")]
pub(super) struct Invalid;

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    match content.len() {
        short @ 0..=0x7f => out.push(short as u8),
        long => {
            let digits = (long as u32).to_be_bytes();
            out.push(0x84);
            out.extend_from_slice(&digits);
        }
    }
    out.extend_from_slice(content);
    out
}

fn number(tag: u8, value: u32) -> Vec<u8> {
    let digits = value.to_be_bytes();
    let zeros = digits.iter().take_while(|digit| **digit == 0).count().min(3);
    let mut content = digits[zeros..].to_vec();
    // A first bit that is set would make it negative.
    if content[0] & 0x80 != 0 {
        content.insert(0, 0);
    }
    element(tag, &content)
}

fn message(id: u32, operation: u8, content: &[u8]) -> Vec<u8> {
    let parts = [number(INTEGER, id), element(operation, content)].concat();
    element(SEQUENCE, &parts)
}

/// A request to prove who this is.
pub(super) fn bind(id: u32, name: &str, password: &str) -> Vec<u8> {
    let content = [
        number(INTEGER, 3),
        element(OCTETS, name.as_bytes()),
        element(0x80, password.as_bytes()),
    ];
    message(id, 0x60, &content.concat())
}

/// What a search is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'s> {
    /// An entry.
    pub(super) base: &'s str,
    /// The entries below it in which an attribute has this value; `None`: the entry itself.
    pub(super) below: Option<(&'s str, &'s str)>,
    /// The most entries, and the most seconds.
    pub(super) limits: (u32, u32),
    /// The attribute that is wanted of them.
    pub(super) wanted: Option<&'s str>,
}

/// A request for entries. A value is a field of its own, so that nothing in it can be taken for a part of the filter.
pub(super) fn search(id: u32, search: Search<'_>) -> Vec<u8> {
    const ONLY_BASE: u32 = 0;
    const WHOLE_SUBTREE: u32 = 2;
    const FOLLOW_ALIASES: u32 = 3;
    let (scope, filter) = match search.below {
        // Every entry has this attribute.
        None => (ONLY_BASE, element(0x87, b"objectClass")),
        Some((attribute, value)) => {
            let filter = [
                element(OCTETS, attribute.as_bytes()),
                element(OCTETS, value.as_bytes()),
            ];
            (WHOLE_SUBTREE, element(0xa3, &filter.concat()))
        }
    };
    // `1.1` requests no attributes (RFC 4511, 4.5.1.8).
    let wanted = search.wanted.unwrap_or("1.1");
    let content = [
        element(OCTETS, search.base.as_bytes()),
        number(ENUMERATED, scope),
        number(ENUMERATED, FOLLOW_ALIASES),
        number(INTEGER, search.limits.0),
        number(INTEGER, search.limits.1),
        element(BOOLEAN, &[0]),
        filter,
        element(SEQUENCE, &element(OCTETS, wanted.as_bytes())),
    ];
    message(id, 0x63, &content.concat())
}

/// A request to go on under TLS.
pub(super) fn start_tls(id: u32) -> Vec<u8> {
    message(id, 0x77, &element(0x80, START_TLS))
}

/// That this is the end.
pub(super) fn unbind(id: u32) -> Vec<u8> {
    message(id, 0x42, &[])
}

/// The tag of an element, its content, and the bytes of the whole.
type Element<'b> = (u8, &'b [u8], usize);

/// The element that these bytes begin with; `None`: it is not whole yet.
fn read(bytes: &[u8]) -> Result<Option<Element<'_>>, Invalid> {
    let [tag, first, rest @ ..] = bytes else {
        return Ok(None);
    };
    let (head, length) = match usize::from(*first) {
        short @ 0..=0x7f => (2, short),
        long @ 0x81..=0x84 => {
            let count = long & 0x7f;
            let Some(digits) = rest.get(..count) else {
                return Ok(None);
            };
            let length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
            (2 + count, length)
        }
        _ => return Err(Invalid),
    };
    if length > MAX_MESSAGE {
        return Err(Invalid);
    }
    Ok(bytes
        .get(head..head + length)
        .map(|content| (*tag, content, head + length)))
}

/// An element that must be whole.
fn whole(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), Invalid> {
    let (tag, content, length) = read(bytes)?.ok_or(Invalid)?;
    Ok((tag, content, &bytes[length..]))
}

/// Reads the first message; `None`: it is not whole yet.
pub(super) fn next(bytes: &[u8]) -> Result<Option<Message<'_>>, Invalid> {
    let Some((tag, content, length)) = read(bytes)? else {
        return Ok(None);
    };
    if tag != SEQUENCE {
        return Err(Invalid);
    }
    let (tag, id, rest) = whole(content)?;
    if tag != INTEGER || id.is_empty() || id.len() > 4 {
        return Err(Invalid);
    }
    let id = id.iter().fold(0, |id, digit| id << 8 | u32::from(*digit));
    let (operation, content, _controls) = whole(rest)?;
    Ok(Some(Message {
        id,
        operation,
        content,
        length,
    }))
}

/// The result of an operation (RFC 4511, 4.1.9).
pub(super) fn result_code(content: &[u8]) -> Result<u32, Invalid> {
    let (tag, code, _) = whole(content)?;
    if tag != ENUMERATED || code.is_empty() || code.len() > 4 {
        return Err(Invalid);
    }
    Ok(code.iter().fold(0, |code, digit| code << 8 | u32::from(*digit)))
}

/// The name of an entry.
pub(super) fn entry_name(content: &[u8]) -> Result<String, Invalid> {
    let (tag, name, _) = whole(content)?;
    match tag {
        OCTETS => String::from_utf8(name.to_vec()).map_err(|_| Invalid),
        _ => Err(Invalid),
    }
}

/// The values of an attribute of an entry that are texts.
pub(super) fn entry_values(content: &[u8], attribute: &str) -> Result<Vec<String>, Invalid> {
    let expect = |bytes, wanted| match whole(bytes)? {
        (tag, content, rest) if tag == wanted => Ok((content, rest)),
        _ => Err(Invalid),
    };
    let (_name, rest) = expect(content, OCTETS)?;
    let (mut attributes, _) = expect(rest, SEQUENCE)?;
    let mut found = Vec::new();
    while !attributes.is_empty() {
        let (item, others) = expect(attributes, SEQUENCE)?;
        attributes = others;
        let (kind, values) = expect(item, OCTETS)?;
        let (mut values, _) = expect(values, SET)?;
        while !values.is_empty() {
            let (value, others) = expect(values, OCTETS)?;
            values = others;
            if kind.eq_ignore_ascii_case(attribute.as_bytes()) && found.len() < MAX_VALUES {
                found.extend(String::from_utf8(value.to_vec()));
            }
        }
    }
    Ok(found)
}

/// A value as it stands in a distinguished name (RFC 4514, 2.4).
pub(super) fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 8);
    let last = value.chars().count().saturating_sub(1);
    for (place, character) in value.chars().enumerate() {
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' => out.extend(['\\', character]),
            '#' if place == 0 => out.push_str("\\#"),
            ' ' if place == 0 || place == last => out.push_str("\\ "),
            control if control.is_ascii_control() => out.push_str(&format!("\\{:02x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_the_standard_has_them() {
        for (written, expected) in [
            (bind(1, "", ""), "300c020101600702010304008000"),
            (
                bind(2, "cn=a", "pw"),
                "301202010260 0d020103 0404636e3d61 80027077",
            ),
            (unbind(3), "30050201034200"),
            (
                start_tls(1),
                "301d02010177188016 312e332e362e312e342e312e313436362e3230303337",
            ),
            (
                search(
                    2,
                    Search {
                        base: "o=x",
                        below: Some(("uid", "a*)(uid=*")),
                        limits: (2, 5),
                        wanted: None,
                    },
                ),
                "3032020102632d 04036f3d78 0a0102 0a0103 020102 020105 010100 a310 0403756964 0409612a29287569643d2a 3005 0403312e31",
            ),
        ] {
            let expected = expected.replace(' ', "");
            assert_eq!(data_encoding::HEXLOWER.encode(&written), expected);
        }
    }

    #[test]
    fn answers_are_read_whatever_the_split() {
        let answer = data_encoding::HEXLOWER
            .decode(b"300c02010161070a013104000400")
            .expect("hex");
        for end in 0..answer.len() {
            assert_eq!(next(&answer[..end]), Ok(None), "{end}");
        }
        let read = next(&answer).expect("valid").expect("whole");
        assert_eq!((read.id, read.operation, read.length), (1, BIND_ANSWER, 14));
        assert_eq!(result_code(read.content), Ok(49));
        for broken in [
            "0400",
            "300502010061",
            "30800000",
            "3085ffffffffff",
            "30847fffffff",
            "3003020500",
        ] {
            let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(broken.as_bytes());
            let read = bytes.map(|bytes| next(&bytes).map(|it| it.map(|it| it.id)));
            assert!(!matches!(read, Ok(Ok(Some(_)))), "{broken}");
        }
        let entry = element(OCTETS, b"cn=a,o=x");
        assert_eq!(entry_name(&entry).as_deref(), Ok("cn=a,o=x"));
    }

    #[test]
    fn values_of_entries_are_read() {
        let attribute = |name: &[u8], values: &[&[u8]]| {
            let values: Vec<u8> = values.iter().flat_map(|value| element(OCTETS, value)).collect();
            element(SEQUENCE, &[element(OCTETS, name), element(SET, &values)].concat())
        };
        let entry = |attributes: &[u8]| [element(OCTETS, b"cn=a"), element(SEQUENCE, attributes)].concat();
        let attributes = [
            attribute(b"mail", &[b"m"]),
            attribute(b"MemberOf", &[b"cn=x", b"\xff", b"cn=y"]),
        ];
        let whole = entry(&attributes.concat());
        assert_eq!(
            entry_values(&whole, "memberOf"),
            Ok(vec!["cn=x".to_owned(), "cn=y".to_owned()])
        );
        assert_eq!(entry_values(&entry(&[]), "memberOf"), Ok(vec![]));
        let many: Vec<&[u8]> = vec![b"cn=x"; MAX_VALUES + 5];
        let found = entry_values(&entry(&attribute(b"memberOf", &many)), "memberOf");
        assert_eq!(found.map(|found| found.len()), Ok(MAX_VALUES));
        for end in 0..whole.len() {
            let _ends_without_a_panic = entry_values(&whole[..end], "memberOf");
        }
        assert_eq!(entry_values(&entry(&[0x30, 0x7f]), "memberOf"), Err(Invalid));
    }

    #[test]
    fn names_cannot_leave_their_place() {
        for (name, escaped) in [
            ("alice", "alice"),
            ("a,o=evil", "a\\,o\\=evil"),
            ("a+cn=b", "a\\+cn\\=b"),
            ("\"<>;\\", "\\\"\\<\\>\\;\\\\"),
            (" #a ", "\\ #a\\ "),
            ("#a", "\\#a"),
            ("a\0b\n", "a\\00b\\0a"),
            ("ä b", "ä b"),
        ] {
            assert_eq!(escape(name), escaped);
        }
    }
}
