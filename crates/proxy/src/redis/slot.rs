//! Which of a cluster's 16,384 slots a key is in.

/// How many there are.
pub const SLOTS: usize = 16_384;

/// The slot of a key: that of its hash tag, if it has one.
pub fn slot_of(key: &[u8]) -> usize {
    usize::from(crc16(tag(key))) % SLOTS
}

/// The text between the first `{` and the first `}` after it, or else the whole key.
fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else {
        return key;
    };
    let rest = &key[open + 1..];
    match memchr::memchr(b'}', rest) {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16 as XMODEM has it: polynomial 0x1021, beginning with 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first is the check value of the CRC's definition, others are from `CLUSTER KEYSLOT`.
    #[test]
    fn keys_have_slots() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        for (key, slot) in [
            ("foo", 12_182),
            ("{foo}bar", 12_182),
            ("a{foo}{bar}", 12_182),
            ("{foo", slot_of(b"{foo")),
            ("", 0),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_ne!(slot_of(b"{}a"), slot_of(b"{}b"));
    }
}
