//! A sketch of durations: counts in buckets whose width grows with the value, so that every percentile is known to
//! within 3.1 %.
//!
//! Each octave (a doubling) is cut into 16 buckets of equal width, from 1 µs to 67 s. Merging adds counts: the result
//! does not depend on the order. Only buckets with counts are kept.

use crate::varint::{self, DecodeError, Reader};

/// Buckets of an octave.
const PER_OCTAVE: u64 = 16;
/// Octaves: 2^26 µs are 67 s.
const OCTAVES: u64 = 26;
/// All buckets. Durations beyond the last one count in it.
pub const BUCKETS: u16 = (PER_OCTAVE * OCTAVES) as u16;

/// The bucket of a duration in microseconds. Zero counts as one.
#[inline]
pub fn bucket_of(us: u64) -> u16 {
    let us = us.clamp(1, (1 << OCTAVES) - 1);
    let octave = u64::from(us.ilog2());
    let part = ((us - (1 << octave)) * PER_OCTAVE) >> octave;
    (octave * PER_OCTAVE + part) as u16
}

/// The duration that stands for a bucket: its middle, in microseconds.
pub fn middle_of(bucket: u16) -> u64 {
    let bucket = u64::from(bucket.min(BUCKETS - 1));
    let (octave, part) = (bucket / PER_OCTAVE, bucket % PER_OCTAVE);
    let low = (1 << octave) + ((part << octave) / PER_OCTAVE);
    let width = ((1 << octave) / PER_OCTAVE).max(1);
    low + (width - 1) / 2
}

/// The longest duration of a bucket, in microseconds.
pub fn longest_of(bucket: u16) -> u64 {
    let next = u64::from(bucket.min(BUCKETS - 1)) + 1;
    let (octave, part) = (next / PER_OCTAVE, next % PER_OCTAVE);
    // Short durations have less than a microsecond between two buckets.
    ((1 << octave) + (part << octave).div_ceil(PER_OCTAVE) - 1).max(middle_of(bucket))
}

/// Counts by bucket, in the order of the buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch(Vec<(u16, u64)>);

impl Sketch {
    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a duration in microseconds.
    #[inline]
    pub fn add(&mut self, us: u64) {
        self.add_to(bucket_of(us), 1);
    }

    /// Adds so many durations of the same length.
    pub fn add_many(&mut self, us: u64, count: u64) {
        if count > 0 {
            self.add_to(bucket_of(us), count);
        }
    }

    /// A sketch of these counts, in the order of their buckets.
    pub(crate) fn of_buckets(counts: impl Iterator<Item = (u16, u64)>) -> Self {
        Self(counts.collect())
    }

    /// The counts by bucket.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Adds counts to a bucket. Buckets out of range count as the last one.
    pub(crate) fn add_to(&mut self, bucket: u16, count: u64) {
        let bucket = bucket.min(BUCKETS - 1);
        match self.0.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(place) => self.0[place].1 = self.0[place].1.saturating_add(count),
            Err(place) => self.0.insert(place, (bucket, count)),
        }
    }

    /// Adds all counts of another sketch.
    pub fn merge(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut place = 0;
        for (bucket, count) in &other.0 {
            place = self.add_from(place, *bucket, *count);
        }
    }

    /// Adds counts to a bucket that stands at a place or after it. Returns the place after the bucket: a caller that
    /// adds buckets in their order looks through all of them once.
    fn add_from(&mut self, mut place: usize, bucket: u16, count: u64) -> usize {
        while self.0.get(place).is_some_and(|(known, _)| *known < bucket) {
            place += 1;
        }
        match self.0.get_mut(place) {
            Some((known, sum)) if *known == bucket => *sum = sum.saturating_add(count),
            _ => self.0.insert(place, (bucket, count)),
        }
        place + 1
    }

    /// How many durations were added.
    pub fn count(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The duration that a share of all durations does not exceed, in microseconds; `None`: nothing was added.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let total = self.count();
        let rank = ((share.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0_u64;
        for (bucket, count) in &self.0 {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return Some(middle_of(*bucket));
            }
        }
        None
    }

    /// Appends the sketch: the number of buckets, then the count of each, with the distance from the one before if it is
    /// not the next one.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.0.len() as u64);
        let mut next = 0;
        for (bucket, count) in &self.0 {
            let skipped = u64::from(*bucket - next);
            varint::put(out, (*count).min(u64::MAX >> 1) << 1 | u64::from(skipped > 0));
            if skipped > 0 {
                varint::put(out, skipped);
            }
            next = *bucket + 1;
        }
    }

    /// Adds the counts of an encoded sketch.
    ///
    /// # Errors
    /// The bytes are damaged. Counts before the damage are added.
    pub fn merge_encoded(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let length: usize = reader.small()?;
        let (mut bucket, mut place) = (0_u64, 0);
        for _ in 0..length {
            let count = reader.number()?;
            if count & 1 == 1 {
                bucket = bucket.saturating_add(reader.number()?);
            }
            if bucket >= u64::from(BUCKETS) {
                return Err(DecodeError);
            }
            place = self.add_from(place, bucket as u16, count >> 1);
            bucket += 1;
        }
        Ok(())
    }

    /// Reads an encoded sketch.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut sketch = Self::default();
        sketch.merge_encoded(reader)?;
        Ok(sketch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The largest relative error of a percentile.
    const ERROR: f64 = 0.031_25;

    fn of(values: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|us| sketch.add(*us));
        sketch
    }

    #[test]
    fn every_bucket_holds_its_own_middle_and_errors_stay_small() {
        for us in (1..5_000).chain((5_000..67_000_000).step_by(997)) {
            let middle = middle_of(bucket_of(us));
            assert_eq!(bucket_of(middle), bucket_of(us), "{us}");
            assert!(
                middle.abs_diff(us) as f64 <= ERROR * us as f64 + 0.5,
                "{us} {middle}"
            );
        }
        for bucket in (1..70_000_u64).chain([1 << 20, (1 << 26) - 1]).map(bucket_of) {
            let longest = longest_of(bucket);
            assert_eq!(bucket_of(longest), bucket, "{bucket}");
            assert!(
                bucket_of(longest + 1) > bucket || bucket == BUCKETS - 1,
                "{bucket}"
            );
        }
        assert_eq!(bucket_of(0), bucket_of(1));
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        let buckets: Vec<u16> = (1..4_000_000).step_by(101).map(bucket_of).collect();
        assert!(buckets.is_sorted());
    }

    #[test]
    fn percentiles_of_nothing_are_none() {
        assert_eq!(Sketch::default().percentile(0.5), None);
        assert_eq!(of(&[7]).percentile(0.0), Some(7));
        assert_eq!(of(&[7]).percentile(1.0), Some(7));
    }

    proptest! {
        #[test]
        fn percentiles_are_close_to_exact(mut values in prop::collection::vec(1_u64..60_000_000, 1..400), share in 0.0..=1.0_f64) {
            let sketch = of(&values);
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let estimate = sketch.percentile(share).expect("not empty");
            prop_assert!(estimate.abs_diff(exact) as f64 <= ERROR * exact as f64 + 0.5, "{exact} {estimate}");
            prop_assert_eq!(sketch.count(), values.len() as u64);
        }

        #[test]
        fn merging_is_associative_and_commutative(
            a in prop::collection::vec(0_u64..100_000_000, 0..60),
            b in prop::collection::vec(0_u64..100_000_000, 0..60),
            c in prop::collection::vec(0_u64..100_000_000, 0..60),
        ) {
            let (mut left, mut right) = (of(&a), of(&c));
            left.merge(&of(&b));
            left.merge(&of(&c));
            right.merge(&of(&b));
            right.merge(&of(&a));
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(left, of(&[a, b, c].concat()));
        }

        #[test]
        fn sketches_come_back(values in prop::collection::vec(0_u64..100_000_000, 0..200)) {
            let (sketch, mut bytes) = (of(&values), Vec::new());
            sketch.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(Sketch::decode(&mut reader), Ok(sketch));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn damaged_sketches_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            // Whatever comes of it: it ends, and uses little memory.
            let _read = Sketch::decode(&mut Reader::new(&bytes));
        }
    }
}
