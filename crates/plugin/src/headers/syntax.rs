//! Which bytes may stand in a header.

/// Whether `name` is a token (RFC 9110, 5.6.2) of a length that a header name can have.
pub fn is_name(name: &[u8]) -> bool {
    let is_token = name.iter().fold(true, |good, byte| good & is_token(*byte));
    is_token && !name.is_empty() && name.len() <= usize::from(u16::MAX)
}

/// Whether `value` may stand in a header: no control characters but tab.
pub fn is_value(value: &[u8]) -> bool {
    let is_control = |byte: u8| ((byte < 0x20) & (byte != b'\t')) | (byte == 0x7f);
    // Without an early end, so that the compiler can look at many bytes at once.
    !value.iter().fold(false, |bad, byte| bad | is_control(*byte)) && u32::try_from(value.len()).is_ok()
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
