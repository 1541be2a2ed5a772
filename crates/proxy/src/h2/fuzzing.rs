//! Entry points for fuzzing: field lists as any peer may send them. Nothing may panic, and what is kept is bounded.

use super::head;
use super::hpack::{self, Decoder};
use crate::multiplex::list::FieldList;

/// The most bytes that are kept of a list here.
const MAX_BYTES: usize = 4096;

/// Reads bytes as two field lists of one connection.
pub fn http2_fields(bytes: &[u8], cut: usize) {
    let mut decoder = Decoder::default();
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    for block in [first, second] {
        let Ok((list, is_well_formed)) = head::read(&mut decoder, block, MAX_BYTES, FieldList::default())
        else {
            return;
        };
        assert!(list.bytes() <= MAX_BYTES, "no more is kept than may be");
        if is_well_formed && head::is_request(&list) && !list.is_too_large {
            again(&list);
        }
        let (_status, _length) = (head::status(&list), head::stated_length(&list));
    }
}

/// What is understood of a request must be understood in the same way once it is written again.
fn again(list: &FieldList) {
    let mut lines = Vec::new();
    for (name, value) in list.iter() {
        crate::reply::push_header(&mut lines, name, value);
    }
    let mut block = Vec::new();
    hpack::push_lines(&lines, &mut block);
    let read = head::read(
        &mut Decoder::default(),
        &block,
        2 * MAX_BYTES,
        FieldList::default(),
    );
    let (read, is_well_formed) = read.unwrap_or_default();
    assert!(is_well_formed, "what is written is well-formed");
    let wanted = list
        .iter()
        .filter(|(name, _)| *name != b"host" && name.len() <= 256);
    let wanted: Vec<_> = wanted.map(|(name, value)| (name, value.trim_ascii())).collect();
    assert_eq!(read.iter().collect::<Vec<_>>(), wanted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_can_be_read() {
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
}
