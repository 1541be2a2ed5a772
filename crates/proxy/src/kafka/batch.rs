//! Record batches (the form since Kafka 0.11), and where records with a key belong.

use super::wire::{Writer, length};
use std::io;

/// The bytes of a batch before its own length counts.
const BEFORE_LENGTH: usize = 12;
/// Those before what the checksum is about.
const BEFORE_SUM: usize = 21;

/// A batch of records with the same key. They are sent as they are, in no transaction.
///
/// # Errors
/// When it is too long.
pub fn batch(values: &[&[u8]], key: Option<&[u8]>, now_ms: u64) -> io::Result<Vec<u8>> {
    let last = length(values.len())? - 1;
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let mut out = Writer(Vec::with_capacity(
        64 + values.iter().map(|value| value.len() + 16).sum::<usize>(),
    ));
    out.i64(0);
    out.i32(0);
    // The leader's epoch is not known; the form is 2; then the checksum, which is filled in.
    out.i32(-1);
    out.0.push(2);
    out.i32(0);
    out.i16(0);
    out.i32(last);
    out.i64(now);
    out.i64(now);
    // No producer with a number of its own.
    out.i64(-1);
    out.i16(-1);
    out.i32(-1);
    out.i32(last + 1);
    for (place, value) in values.iter().enumerate() {
        let mut record = Writer(Vec::with_capacity(value.len() + 16));
        record.0.push(0);
        record.varint(0);
        record.varint(place as i64);
        match key {
            None => record.varint(-1),
            Some(key) => {
                record.varint(i64::from(length(key.len())?));
                record.0.extend_from_slice(key);
            }
        }
        record.varint(i64::from(length(value.len())?));
        record.0.extend_from_slice(value);
        record.varint(0);
        out.varint(i64::from(length(record.0.len())?));
        out.0.extend_from_slice(&record.0);
    }
    let mut out = out.0;
    let rest = length(out.len() - BEFORE_LENGTH)?;
    out[8..BEFORE_LENGTH].copy_from_slice(&rest.to_be_bytes());
    let sum = crc32c(&out[BEFORE_SUM..]);
    out[BEFORE_SUM - 4..BEFORE_SUM].copy_from_slice(&sum.to_be_bytes());
    Ok(out)
}

/// The partition, of so many, of records with this key: the one that Kafka's own clients choose.
pub fn partition_of(key: &[u8], count: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % count.max(1)
}

/// The checksum of RFC 3720, by a table of what each byte adds.
pub fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut rest = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                rest = rest >> 1 ^ if rest & 1 == 1 { 0x82f6_3b78 } else { 0 };
                bit += 1;
            }
            table[byte] = rest;
            byte += 1;
        }
        table
    };
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8;
    !bytes.iter().fold(u32::MAX, step)
}

/// Austin Appleby's second hash, with the seed that Kafka gives it.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(M);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(M) ^ mixed.wrapping_mul(M);
    }
    for (place, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * place);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_hashes_are_those_of_others() {
        // RFC 3720, B.4, and the common check value.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        // From the tests of Kafka's own client.
        for (key, expected) in [
            (&b"21"[..], -973_932_308_i32),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key) as i32, expected);
        }
    }

    #[test]
    fn batches_hold_their_records() {
        let batch = batch(&[b"ab", b""], Some(b"k"), 5).expect("short");
        assert_eq!(
            batch.len(),
            12 + i32::from_be_bytes([batch[8], batch[9], batch[10], batch[11]]) as usize
        );
        assert_eq!(batch[57..61], [0, 0, 0, 2]);
        // Length, attributes, times, place, key, value, no headers.
        assert_eq!(
            batch[61..],
            [18, 0, 0, 0, 2, b'k', 4, b'a', b'b', 0, 14, 0, 0, 2, 2, b'k', 0, 0]
        );
    }
}
