//! Which bytes may stand in a header's name and value (RFC 9110, 5.5 and 5.6.2). What they mean is not asked.

/// Whether `name` is a token (RFC 9110, 5.6.2) of a length that a header name can have.
pub fn is_name(name: &[u8]) -> bool {
    token_len(name) == name.len() && !name.is_empty() && name.len() <= usize::from(u16::MAX)
}

/// Whether `value` may stand in a header: no control characters but tab.
#[inline]
pub fn is_value(value: &[u8]) -> bool {
    value_len(value) == value.len() && u32::try_from(value.len()).is_ok()
}

/// How many bytes from the start on may stand in a value: up to the first control character that is not a tab.
#[inline]
pub fn value_len(bytes: &[u8]) -> usize {
    let mut length = 0;
    loop {
        length += first_control(&bytes[length..]);
        if bytes.get(length) != Some(&b'\t') {
            return length;
        }
        length += 1;
    }
}

/// Where the first control character is, or the length.
#[inline]
fn first_control(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let found = controls(*chunk);
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_control = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
    let before = bytes.len() - rest.len();
    before + rest.iter().position(is_control).unwrap_or(rest.len())
}

/// Eight bytes looked at at once: the lowest bit that is set is the highest of the first control character. A byte
/// that is smaller than what is taken from it borrows into its highest bit, and may do so into bytes behind it.
#[inline]
fn controls(bytes: [u8; 8]) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    let bytes = u64::from_le_bytes(bytes);
    let is_delete = bytes ^ (EACH * 0x7f);
    let below_space = bytes.wrapping_sub(EACH * 0x20) & !bytes;
    let equal = is_delete.wrapping_sub(EACH) & !is_delete;
    (below_space | equal) & HIGHEST
}

/// How many bytes from the start on are token characters.
#[inline]
pub fn token_len(bytes: &[u8]) -> usize {
    name_len(bytes).0
}

/// How many bytes from the start on are token characters, and whether all of these are letters, digits, `-` or `_`.
#[inline]
pub fn name_len(bytes: &[u8]) -> (usize, bool) {
    let mut length = 0;
    let mut is_plain = true;
    while let Some(chunk) = bytes[length..].first_chunk() {
        let other = no_letters(*chunk);
        length += other.trailing_zeros() as usize / 8;
        if other != 0 {
            if !is_token(bytes[length]) {
                return (length, is_plain);
            }
            is_plain &= is_usual(bytes[length]);
            length += 1;
        }
    }
    while let Some(byte) = bytes.get(length).filter(|byte| is_token(**byte)) {
        is_plain &= is_usual(*byte);
        length += 1;
    }
    (length, is_plain)
}

/// Whether names of headers usually hold this token character.
#[inline]
fn is_usual(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Eight bytes looked at at once: the highest bit is set of each that is neither a letter nor a hyphen, of which most
/// names consist. No addition carries into the next byte.
#[inline]
fn no_letters(bytes: [u8; 8]) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    let bytes = u64::from_le_bytes(bytes);
    let ascii = bytes & !HIGHEST;
    let lower = ascii | (EACH * 0x20);
    let is_letter = (lower + EACH * (0x80 - b'a') as u64) & !(lower + EACH * (0x7f - b'z') as u64);
    let is_no_hyphen = (ascii ^ (EACH * b'-' as u64)) + EACH * 0x7f;
    (bytes | (!is_letter & is_no_hyphen)) & HIGHEST
}

/// Whether `byte` is a token character (RFC 9110, 5.6.2).
#[inline]
pub const fn is_token(byte: u8) -> bool {
    TOKENS[byte as usize]
}

const TOKENS: [bool; 256] = {
    let mut tokens = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        tokens[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"!#$%&'*+-.^_`|~";
    let mut index = 0;
    while index < marks.len() {
        tokens[marks[index] as usize] = true;
        index += 1;
    }
    tokens
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_judged_byte_by_byte_at_every_length() {
        for length in 1..20 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut value = vec![b'a'; length];
                    value[at] = byte;
                    let is_good = (byte >= 0x20 || byte == b'\t') && byte != 0x7f;
                    let expected = if is_good { length } else { at };
                    assert_eq!(value_len(&value), expected, "{byte:#x} at {at} of {length}");
                }
            }
        }
        assert!(is_value(b"") && is_value(b"\t\t a\tb") && !is_value(b"a\tb\n"));
    }

    #[test]
    fn names_are_judged_byte_by_byte_at_every_length() {
        for length in 1..20 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut name = vec![b"aZ-zA"[length % 5]; length];
                    name[at] = byte;
                    let expected = if is_token(byte) { length } else { at };
                    assert_eq!(token_len(&name), expected, "{byte:#x} at {at} of {length}");
                    assert_eq!(is_name(&name), is_token(byte), "{byte:#x} at {at} of {length}");
                }
            }
        }
        assert_eq!(token_len(b"x_9.a-bcdef1:"), 12);
        for (line, length, is_plain) in [
            (&b"X_9-Abcdefghijkl: v"[..], 16, true),
            (b"X.9-Abcdefghijkl: v", 16, false),
            (b"Abcdefghijklmno~: v", 16, false),
            (b"a!", 2, false),
            (b"a1", 2, true),
        ] {
            assert_eq!(name_len(line), (length, is_plain), "{line:?}");
        }
    }
}
