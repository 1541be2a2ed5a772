//! Keys: who is counted, as 128 bits that no client can aim at another's.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Hashes what a limit is counted by (its scope, the caller's identity) to a key of [`super::Limiter`].
///
/// `parts` are kept apart: `["ab", "c"]`, `["a", "bc"]` and `["abc"]` are three keys. The hash is SipHash-1-3 with 128
/// bits of output under a secret that each process draws for itself, because callers choose what is hashed: no one can
/// compute an identity that falls together with another's counters. So a key is good within one process only, and no
/// decision depends on its value.
#[must_use]
pub fn key(parts: &[&[u8]]) -> u128 {
    KeyPrefix::new(parts).key(&[])
}

static SECRET: OnceLock<[u64; 2]> = OnceLock::new();

/// What the keys of this process are hashed with: of use only to another process that takes over its counters.
pub fn secret() -> [u64; 2] {
    *SECRET.get_or_init(|| {
        let random = RandomState::new();
        [random.hash_one(0u8), random.hash_one(1u8)]
    })
}

/// Hashes keys with this secret from now on; `false`: some were hashed with another one already.
pub fn use_secret(secret: [u64; 2]) -> bool {
    *SECRET.get_or_init(|| secret) == secret
}

/// The first parts of many keys, hashed once.
#[derive(Clone)]
pub struct KeyPrefix(SipHash<1, 3>);

impl KeyPrefix {
    /// What all the keys begin with.
    #[must_use]
    pub fn new(parts: &[&[u8]]) -> Self {
        Self::with(secret(), parts)
    }

    /// Adds parts to what all the keys begin with.
    pub fn extend(&mut self, parts: &[&[u8]]) {
        self.absorb(parts);
    }

    fn with(secret: [u64; 2], parts: &[&[u8]]) -> Self {
        let mut start = Self(SipHash::new(secret));
        start.absorb(parts);
        start
    }

    /// The [`key`] of those parts with these behind them.
    #[must_use]
    pub fn key(&self, parts: &[&[u8]]) -> u128 {
        let mut whole = self.clone();
        whole.absorb(parts);
        whole.0.finish(&[])
    }

    /// Each part goes in as its length and then its bytes, filled up with zeros to whole words: no two lists of parts
    /// make the same words.
    fn absorb(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.0.absorb(part.len() as u64);
            let (words, tail) = part.as_chunks::<8>();
            for word in words {
                self.0.absorb(u64::from_le_bytes(*word));
            }
            if !tail.is_empty() {
                self.0.absorb(word_of(tail));
            }
        }
    }
}

/// Up to 8 bytes as a little-endian word, filled up with zeros.
fn word_of(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// SipHash with `C` rounds a word, `D` rounds at the end and 128 bits of output (Aumasson and Bernstein, 2012).
#[derive(Clone)]
struct SipHash<const C: usize, const D: usize> {
    v: [u64; 4],
    words: u64,
}

impl<const C: usize, const D: usize> SipHash<C, D> {
    fn new([k0, k1]: [u64; 2]) -> Self {
        let v = [
            k0 ^ 0x736F_6D65_7073_6575,
            k1 ^ 0x646F_7261_6E64_6F6D ^ 0xEE,
            k0 ^ 0x6C79_6765_6E65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        Self { v, words: 0 }
    }

    fn absorb(&mut self, word: u64) {
        self.words = self.words.wrapping_add(1);
        self.v[3] ^= word;
        self.rounds(C);
        self.v[0] ^= word;
    }

    /// Ends with the last bytes of the message, fewer than 8.
    fn finish(mut self, tail: &[u8]) -> u128 {
        let length = self.words.wrapping_mul(8).wrapping_add(tail.len() as u64);
        self.absorb(word_of(tail) | length << 56);
        self.v[2] ^= 0xEE;
        self.rounds(D);
        let low = self.folded();
        self.v[1] ^= 0xDD;
        self.rounds(D);
        u128::from(self.folded()) << 64 | u128::from(low)
    }

    fn folded(&self) -> u64 {
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    fn rounds(&mut self, count: usize) {
        let [mut a, mut b, mut c, mut d] = self.v;
        for _ in 0..count {
            a = a.wrapping_add(b);
            b = b.rotate_left(13) ^ a;
            a = a.rotate_left(32);
            c = c.wrapping_add(d);
            d = d.rotate_left(16) ^ c;
            a = a.wrapping_add(d);
            d = d.rotate_left(21) ^ a;
            c = c.wrapping_add(b);
            b = b.rotate_left(17) ^ c;
            c = c.rotate_left(32);
        }
        self.v = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of SipHash-2-4-128 from the authors: key 00..0f, message 00.. of so many bytes.
    #[test]
    fn is_siphash() {
        let cases = [
            (0, 0xA381_7F04_BA25_A8E6_6DF6_7214_C755_0293_u128),
            (1, 0xDA87_C1D8_6B99_AF44_3476_5911_9B22_FC45),
        ];
        for (length, expected) in cases {
            let message: Vec<u8> = (0..length).collect();
            let mut hash = SipHash::<2, 4>::new([0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908]);
            let (words, tail) = message.as_chunks::<8>();
            words
                .iter()
                .for_each(|word| hash.absorb(u64::from_le_bytes(*word)));
            assert_eq!(
                hash.finish(tail).to_le_bytes(),
                expected.to_be_bytes(),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let cases: [&[&[u8]]; 12] = [
            &[],
            &[b""],
            &[b"", b""],
            &[b"\0"],
            &[b"abc"],
            &[b"ab", b"c"],
            &[b"a", b"bc"],
            &[b"abc", b""],
            &[b"", b"abc"],
            &[b"abc\0"],
            &[b"abcdefgh", b"i"],
            &[b"abcdefghi"],
        ];
        let key_with = |secret, parts: &[&[u8]]| KeyPrefix::with([1, secret], parts).key(&[]);
        let mut keys: Vec<u128> = cases.iter().map(|parts| key_with(2, parts)).collect();
        assert_eq!(keys, cases.map(|parts| key_with(2, parts)), "repeatable");
        for (parts, key) in cases.iter().zip(&keys) {
            let (start, rest) = parts.split_at(parts.len() / 2);
            assert_eq!(KeyPrefix::with([1, 2], start).key(rest), *key, "{parts:?} in two");
        }
        keys.extend(cases.iter().map(|parts| key_with(3, parts)));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 2 * cases.len());
        assert_eq!(key(&[b"a"]), key(&[b"a"]));
    }
}
