//! Texts and addresses as JSON strings, whatever bytes they are.

use std::net::{IpAddr, SocketAddr};

/// An address as `Display` writes it, which takes ten times as long for those of four octets.
pub(super) fn push_ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                out.extend_from_slice(itoa::Buffer::new().format(octet).as_bytes());
            }
        }
        IpAddr::V6(address) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

/// An address and a port.
pub(super) fn push_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address {
        SocketAddr::V4(_) => push_ip(out, address.ip()),
        SocketAddr::V6(address) => {
            out.extend_from_slice(address.to_string().as_bytes());
            return;
        }
    }
    out.push(b':');
    out.extend_from_slice(itoa::Buffer::new().format(address.port()).as_bytes());
}

/// Appends a text with quotes around it. What is not UTF-8 in it is replaced; one longer than so many bytes is cut, which
/// its last character `…` shows.
pub(super) fn push(out: &mut Vec<u8>, text: &[u8], most: usize) {
    out.push(b'"');
    let shown = &text[..text.len().min(most)];
    let (plain, rest) = shown.split_at(plain_length(shown));
    out.extend_from_slice(plain);
    for chunk in rest.utf8_chunks() {
        push_escaped(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }
    if text.len() > most {
        out.extend_from_slice("…".as_bytes());
    }
    out.push(b'"');
}

/// How many bytes from the start on stand for themselves, about: most texts have no others, and are copied at once.
fn plain_length(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(chunk) = text[length..].first_chunk()
        && is_plain(*chunk)
    {
        length += chunk.len();
    }
    let is_other = |byte: &u8| is_special(*byte) || *byte > 0x7f;
    let rest = &text[length..];
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
fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\') | (byte == 0x7f)
}

/// RFC 8259 section 7, and DEL besides, which some terminals act upon.
fn push_escaped(out: &mut Vec<u8>, mut text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    while let Some(at) = text.iter().position(|byte| is_special(*byte)) {
        out.extend_from_slice(&text[..at]);
        match text[at] {
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
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_ever() {
        for text in ["192.0.2.0:80", "255.10.1.100:65535", "[2001:db8::1]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut out = Vec::new();
            push_address(&mut out, address);
            out.push(b' ');
            push_ip(&mut out, address.ip());
            assert_eq!(
                String::from_utf8(out).unwrap(),
                format!("{text} {}", address.ip())
            );
        }
    }

    #[test]
    fn text_is_escaped() {
        let cases: [(&[u8], &str); 12] = [
            (b"/plain", r#""/plain""#),
            (b"", r#""""#),
            (b"/sixteen-and-more\"", r#""/sixteen-and-more\"""#),
            (
                b"/sixteen-and-more/\xff/and-many-more",
                "\"/sixteen-and-more/\u{FFFD}/and-many-more\"",
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
        for (text, expected) in cases {
            let mut out = Vec::new();
            push(&mut out, text, 100);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
