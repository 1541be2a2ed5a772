//! JSON text, appended to a buffer: a peer's bytes need not be UTF-8, which no JSON serialiser takes, and nothing is
//! allocated for a value.

/// Appends an object's field name; its value is to follow.
pub fn key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    text(out, name.as_bytes());
    out.push(b':');
}

/// Appends what stands between two values, unless the next is the first.
pub fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[') | None) {
        out.push(b',');
    }
}

/// Appends a text; what is not UTF-8 in it is replaced.
pub fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        escaped(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }
    out.push(b'"');
}

/// Appends a whole number.
pub fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
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

fn escaped(out: &mut Vec<u8>, mut bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let is_special = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f);
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
    fn texts_and_numbers_are_json() {
        for bytes in [
            &b"plain"[..],
            b"a\"b\\c\n\r\t\x01\x7f",
            b"\xff\xfe",
            "grün".as_bytes(),
        ] {
            let mut out = Vec::new();
            text(&mut out, bytes);
            let read: String = serde_json::from_slice(&out).expect("JSON");
            assert_eq!(read, String::from_utf8_lossy(bytes));
        }
        for (micros, expected) in [(0, "0.000"), (1_234_005, "1234.005"), (60, "0.060")] {
            let mut out = Vec::new();
            millis(&mut out, micros);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
