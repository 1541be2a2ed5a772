//! JSON text, appended to a buffer, for lines and entries of logs: a peer's bytes need not be UTF-8, which no JSON
//! serialiser takes, and nothing is allocated for a value. The result holds no line feed, whatever the bytes are: no one
//! can forge a second line.

use std::net::{IpAddr, SocketAddr};

/// Appends an object's field name; its value is to follow.
pub fn key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    text(out, name.as_bytes());
    out.push(b':');
}

/// Appends a field name that a program has chosen: nothing in it is to be escaped.
#[inline]
pub fn name(out: &mut Vec<u8>, name: &'static str) {
    out.reserve(name.len() + 4);
    comma(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a field name that is a token (RFC 9110, 5.6.2), in lower case.
pub fn token_key(out: &mut Vec<u8>, name: &[u8]) {
    comma(out);
    out.push(b'"');
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.extend_from_slice(b"\":");
}

/// Appends what stands between two values, unless the next is the first.
pub fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[') | None) {
        out.push(b',');
    }
}

/// Appends a text; what is not UTF-8 in it is replaced.
#[inline]
pub fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    part(out, bytes);
    out.push(b'"');
}

/// Appends a text in the same way. A text with more bytes than `most` is cut, and ends in `…`.
#[inline]
pub fn text_up_to(out: &mut Vec<u8>, bytes: &[u8], most: usize) {
    out.push(b'"');
    part(out, &bytes[..bytes.len().min(most)]);
    if bytes.len() > most {
        out.extend_from_slice("…".as_bytes());
    }
    out.push(b'"');
}

/// Appends a part of a text, without the quotes around the whole. It must end at the end of a character.
pub fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    let (plain, rest) = bytes.split_at(plain_length(bytes));
    out.extend_from_slice(plain);
    for chunk in rest.utf8_chunks() {
        escaped(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }
}

/// How many bytes from the start on stand for themselves, about: most texts have no others, and are copied at once.
fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(chunk) = bytes[length..].first_chunk()
        && is_plain(*chunk)
    {
        length += chunk.len();
    }
    let is_other = |byte: &u8| is_special(byte) || *byte > 0x7f;
    let rest = &bytes[length..];
    length + rest.iter().position(is_other).unwrap_or(rest.len())
}

/// Whether none of eight bytes is special or beyond ASCII; they are looked at at once.
fn is_plain(bytes: [u8; 8]) -> bool {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    let bytes = u64::from_le_bytes(bytes);
    let below = |bytes: u64, bound: u8| bytes.wrapping_sub(EACH * u64::from(bound)) & !bytes;
    let equal = |other: u8| below(bytes ^ (EACH * u64::from(other)), 1);
    (bytes | below(bytes, b' ') | equal(b'"') | equal(b'\\') | equal(0x7f)) & HIGHEST == 0
}

/// Whether a character of ASCII is written in another way.
fn is_special(byte: &u8) -> bool {
    (*byte < b' ') | (*byte == b'"') | (*byte == b'\\') | (*byte == 0x7f)
}

/// Appends a whole number.
#[inline]
pub fn number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends an address as a text.
pub fn address(out: &mut Vec<u8>, address: IpAddr) {
    out.push(b'"');
    digits(out, address);
    out.push(b'"');
}

/// Appends an address and a port as a text.
pub fn socket_address(out: &mut Vec<u8>, address: SocketAddr) {
    out.push(b'"');
    match address {
        SocketAddr::V4(_) => {
            digits(out, address.ip());
            out.push(b':');
            number(out, address.port());
        }
        // It may have a zone.
        SocketAddr::V6(address) => out.extend_from_slice(address.to_string().as_bytes()),
    }
    out.push(b'"');
}

/// An address as `Display` writes it, which takes ten times as long for those of four octets.
fn digits(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                number(out, octet);
            }
        }
        IpAddr::V6(address) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

/// Appends microseconds as milliseconds with three decimals.
pub fn millis(out: &mut Vec<u8>, micros: u64) {
    thousandths(out, micros);
}

/// Appends a number of thousandths with three decimals.
pub fn thousandths(out: &mut Vec<u8>, count: u64) {
    number(out, count / 1000);
    let rest = (count % 1000) as u16;
    out.push(b'.');
    out.extend([rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8));
}

/// RFC 8259 section 7, and DEL besides, which some terminals act upon.
fn escaped(out: &mut Vec<u8>, mut bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    while let Some(at) = bytes.iter().position(is_special) {
        out.extend_from_slice(&bytes[..at]);
        match bytes[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let cases: [(&[u8], &str); 13] = [
            (b"/plain", r#""/plain""#),
            (b"", r#""""#),
            (b"/sixteen-and-more\"", r#""/sixteen-and-more\"""#),
            (
                b"/sixteen-and-more/\xff/and-many-more",
                "\"/sixteen-and-more/\u{FFFD}/and-many-more\"",
            ),
            (
                b"sixteen plain ones, then \xff and \xc3\xbc, and plain again",
                "\"sixteen plain ones, then \u{FFFD} and \u{fc}, and plain again\"",
            ),
            (br#"/a"b\c"#, r#""/a\"b\\c""#),
            (b"/\n{\"forged\":1}\r\t", r#""/\n{\"forged\":1}\r\t""#),
            (b"\x00\x1b[31m\x7f", r#""\u0000\u001b[31m\u007f""#),
            ("/grüße/✓".as_bytes(), r#""/grüße/✓""#),
            (b"/\xff\xfe", "\"/\u{FFFD}\u{FFFD}\""),
            (b"/\xe2\x9c", "\"/\u{FFFD}\""),
            (b"/ok\xc3/\xc3\xbc", "\"/ok\u{FFFD}/ü\""),
            (b"/\xed\xa0\x80", "\"/\u{FFFD}\u{FFFD}\u{FFFD}\""),
        ];
        for (bytes, expected) in cases {
            let (mut out, mut bounded) = (Vec::new(), Vec::new());
            text(&mut out, bytes);
            text_up_to(&mut bounded, bytes, 100);
            assert_eq!(out, bounded);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            let read: String = serde_json::from_slice(&bounded).unwrap();
            assert_eq!(read, String::from_utf8_lossy(bytes));
        }
        let mut out = Vec::new();
        text_up_to(&mut out, b"abc", 2);
        assert_eq!(out, "\"ab…\"".as_bytes());
    }

    #[test]
    fn addresses_are_written_as_ever() {
        for text in ["192.0.2.0:80", "255.10.1.100:65535", "[2001:db8::1]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut out = Vec::new();
            socket_address(&mut out, address);
            super::address(&mut out, address.ip());
            let expected = format!("\"{text}\"\"{}\"", address.ip());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn times_have_three_decimals() {
        for (micros, expected) in [(0, "0.000"), (1_234_005, "1234.005"), (60, "0.060")] {
            let mut out = Vec::new();
            millis(&mut out, micros);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
