//! How many different callers there were, as an estimate: HyperLogLog with 4,096 registers, about 1.6 % off.
//!
//! Merging takes the larger of each two registers, so a caller that several gateways saw counts once.

use crate::varint::{self, DecodeError, Reader};

/// Bits of a hash that choose the register.
const BITS: u32 = 12;
const REGISTERS: usize = 1 << BITS;

/// A hash that is the same in every process.
pub fn hash(bytes: &[u8]) -> u64 {
    // FNV-1a, then the finalizer of SplitMix64: FNV alone leaves the upper bits of short texts alike.
    let mut value = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        value = (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    spread(value)
}

/// Spreads the bits of a number over all of it.
pub fn spread(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The registers; empty, until something is added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uniques(Vec<u8>);

impl Uniques {
    /// Adds a caller by its hash ([`hash`]).
    pub fn add(&mut self, hash: u64) {
        let register = (hash >> (64 - BITS)) as usize;
        let rank = ((hash << BITS) | (1 << (BITS - 1))).leading_zeros() as u8 + 1;
        self.raise(register, rank);
    }

    /// The registers that are in use, with their ranks.
    pub(crate) fn registers(&self) -> impl Iterator<Item = (u16, u8)> + '_ {
        let used = self.0.iter().enumerate().filter(|(_, rank)| **rank > 0);
        used.map(|(register, rank)| (register as u16, *rank))
    }

    /// Sets a register to a rank, if that is larger. Registers out of range are ignored.
    pub(crate) fn raise(&mut self, register: usize, rank: u8) {
        if register >= REGISTERS {
            return;
        }
        if self.0.is_empty() {
            self.0 = vec![0; REGISTERS];
        }
        self.0[register] = self.0[register].max(rank);
    }

    /// Adds all callers of another one.
    pub fn merge(&mut self, other: &Self) {
        for (register, rank) in other.0.iter().enumerate().filter(|(_, rank)| **rank > 0) {
            self.raise(register, *rank);
        }
    }

    /// How many different callers were added, about.
    pub fn estimate(&self) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let count = REGISTERS as f64;
        let (mut sum, mut zeros) = (0.0, 0_u32);
        for rank in &self.0 {
            sum += f64::powi(2.0, -i32::from(*rank));
            zeros += u32::from(*rank == 0);
        }
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let estimate = match raw <= 2.5 * count && zeros > 0 {
            // With so few callers, counting empty registers is more exact.
            true => count * (count / f64::from(zeros)).ln(),
            false => raw,
        };
        estimate.round() as u64
    }

    /// Appends the registers that are in use: how many, then for each its distance from the one before and its rank.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let used = || self.0.iter().enumerate().filter(|(_, rank)| **rank > 0);
        varint::put(out, used().count() as u64);
        let mut next = 0;
        for (register, rank) in used() {
            varint::put(out, (register - next) as u64);
            out.push(*rank);
            next = register;
        }
    }

    /// Adds the callers of an encoded one.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn merge_encoded(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let length: usize = reader.small()?;
        let mut register = 0_usize;
        for _ in 0..length {
            register = register.saturating_add(reader.small()?);
            let rank = reader.byte()?;
            if register >= REGISTERS || rank > 64 {
                return Err(DecodeError);
            }
            self.raise(register, rank);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(range: std::ops::Range<u32>) -> Uniques {
        let mut uniques = Uniques::default();
        range.for_each(|caller| uniques.add(hash(format!("caller {caller}").as_bytes())));
        uniques
    }

    #[test]
    fn estimates_are_close() {
        for count in [0_u32, 1, 10, 100, 1_000, 5_000, 20_000, 100_000, 1_000_000] {
            let estimate = of(0..count).estimate();
            let off = (estimate as f64 - f64::from(count)).abs() / f64::from(count.max(1));
            assert!(off < 0.05, "{count}: {estimate}");
        }
    }

    proptest! {
        #[test]
        fn merging_counts_callers_once(a in 0_u32..3_000, b in 0_u32..3_000) {
            let (mut left, mut right) = (of(0..a), of(0..b));
            left.merge(&of(0..b));
            right.merge(&of(0..a));
            prop_assert_eq!(&left.0, &right.0);
            prop_assert_eq!(left.0, of(0..a.max(b)).0);
        }

        #[test]
        fn registers_come_back(count in 0_u32..6_000) {
            let (uniques, mut bytes, mut read) = (of(0..count), Vec::new(), Uniques::default());
            uniques.encode(&mut bytes);
            prop_assert!(bytes.len() <= 2 * REGISTERS + 2);
            prop_assert_eq!(read.merge_encoded(&mut Reader::new(&bytes)), Ok(()));
            prop_assert_eq!(read, uniques);
        }
    }
}
