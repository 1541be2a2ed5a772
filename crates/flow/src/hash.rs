//! The stable 64-bit hash and the small generators that the balancers are built on.
//!
//! Nothing here withstands an adversary who picks the input: two keys on one target do no harm.
//! What must withstand one (a caller's identity in a rate limit) is hashed by [`crate::rate_limit::key`].

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

/// 2^64 divided by the golden ratio: the step whose multiples spread most evenly over all `u64`.
pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hashes what a call is balanced by to a place on the ring of consistent hashing: CRC-32, as in NGINX and
/// lua-resty-chash.
#[must_use]
pub fn hash_key(key: &[u8]) -> u32 {
    crc32fast::hash(key)
}

/// Hashes `bytes` to 64 bits with XXH64 and seed 0.
///
/// The result is the same on every platform, in every run and in every release, so gateways that never talk to each
/// other send one key to the same target.
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let (stripes, tail) = bytes.as_chunks::<32>();
    let mut hash = if stripes.is_empty() {
        PRIME_5
    } else {
        hash_stripes(stripes)
    };
    hash = hash.wrapping_add(bytes.len() as u64);

    let (words, tail) = tail.as_chunks::<8>();
    for word in words {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    }
    let (halves, tail) = tail.as_chunks::<4>();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
    }
    for byte in tail {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }

    hash ^= hash >> 33;
    hash = hash.wrapping_mul(PRIME_2);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

fn hash_stripes(stripes: &[[u8; 32]]) -> u64 {
    let mut lanes = [
        PRIME_1.wrapping_add(PRIME_2),
        PRIME_2,
        0,
        0u64.wrapping_sub(PRIME_1),
    ];
    for stripe in stripes {
        for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    let mut hash = lanes
        .iter()
        .zip([1, 7, 12, 18])
        .fold(0u64, |sum, (lane, bits)| sum.wrapping_add(lane.rotate_left(bits)));
    for lane in lanes {
        hash ^= round(0, lane);
        hash = hash.wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    }
    hash
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2))
        .rotate_left(31)
        .wrapping_mul(PRIME_1)
}

/// Spreads every bit of `value` over all bits of the result (the finalizer of SplitMix64, a bijection).
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Maps a `u64` that is uniform over its whole range to `0..bound`; 0 for a bound of 0.
pub(crate) fn scale(value: u64, bound: u64) -> u64 {
    ((u128::from(value) * u128::from(bound)) >> 64) as u64
}

/// SplitMix64: a few instructions a number, good enough to choose targets, of no use for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(GOLDEN);
        scale(mix(self.state), bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_bytes_is_xxh64() {
        let cases: [(&str, u64); 4] = [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ];
        for (input, expected) in cases {
            assert_eq!(hash_bytes(input.as_bytes()), expected, "{input:?}");
        }
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[random.below(5)] += 1;
        }
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
