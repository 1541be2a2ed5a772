//! Field lists as any peer may send them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod checks;

use checks::http2_fields;

#[test]
fn field_lists_of_any_bytes_can_be_read() {
    // splitmix64: the same bytes in every run.
    let mut seed = 0u64;
    let mut roll = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let head = [0x82, 0x86, 0x84, 0x41, 1, b'h'];
    for _ in 0..50_000 {
        let length = (roll() % 64) as usize;
        let mut bytes = head.to_vec();
        // Mostly of what lists are made of: literals, short lengths, letters.
        bytes.extend((0..length).map(|_| match roll() % 4 {
            0 => [0x00, 0x40, 0x10, 0x81, 0x01, 0x02][(roll() % 6) as usize],
            1 | 2 => b'a' + (roll() % 26) as u8,
            _ => roll() as u8,
        }));
        http2_fields(&bytes, head.len() + (roll() % 16) as usize);
    }
}
