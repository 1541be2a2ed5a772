//! Durations while calls are counted: a counter for each bucket of [`crate::sketch`] between the shortest and the longest
//! duration. A duration is added without a search.
//!
//! **What it is not**: what is stored. A [`Sketch`] keeps only buckets with counts.

use crate::sketch::{BUCKETS, Sketch};
use std::ops::Range;

/// Counters that are made on each side of a duration that has none: the next one is likely to be near.
const MARGIN: u16 = 8;

/// Counters of buckets that follow each other.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// The bucket of the first counter.
    first: u16,
    counts: Vec<u32>,
}

impl Times {
    /// Adds a duration by its bucket ([`crate::sketch::bucket_of`]).
    #[inline]
    pub fn add(&mut self, bucket: u16) {
        // A bucket below the first one becomes a large number.
        let place = usize::from(bucket.wrapping_sub(self.first));
        match self.counts.get_mut(place) {
            Some(count) => *count = count.saturating_add(1),
            None => self.add_outside(bucket.min(BUCKETS - 1)),
        }
    }

    #[cold]
    fn add_outside(&mut self, bucket: u16) {
        self.cover(bucket.saturating_sub(MARGIN)..(bucket + MARGIN + 1).min(BUCKETS));
        let count = &mut self.counts[usize::from(bucket - self.first)];
        *count = count.saturating_add(1);
    }

    /// Makes counters for these buckets, and for those between them and the ones that there are.
    fn cover(&mut self, buckets: Range<u16>) {
        if self.counts.is_empty() {
            self.first = buckets.start;
        }
        if let Some(before) = self.first.checked_sub(buckets.start) {
            self.counts.splice(..0, (0..before).map(|_| 0));
            self.first = buckets.start;
        }
        let length = usize::from(buckets.end.saturating_sub(self.first));
        if length > self.counts.len() {
            self.counts.resize(length, 0);
        }
    }

    /// Adds all counts of others.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        self.cover(other.first..other.first + other.counts.len() as u16);
        let start = usize::from(other.first - self.first);
        for (known, count) in self.counts[start..].iter_mut().zip(&other.counts) {
            *known = known.saturating_add(*count);
        }
    }

    /// Takes all counts away. Counters stay, as the next durations are likely to be like the last ones.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// The counts as they are stored.
    pub fn to_sketch(&self) -> Sketch {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Sketch::of_buckets(counted.map(|(place, count)| (self.first + place as u16, u64::from(*count))))
    }

    /// Bytes of its counters.
    pub fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::bucket_of;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Times {
        let mut times = Times::default();
        values.iter().for_each(|us| times.add(bucket_of(*us)));
        times
    }

    fn sketch(values: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|us| sketch.add(*us));
        sketch
    }

    #[test]
    fn what_is_beyond_all_buckets_is_in_the_last_one() {
        let mut times = Times::default();
        times.add(u16::MAX);
        times.add(BUCKETS);
        assert_eq!(
            times.to_sketch().buckets().collect::<Vec<_>>(),
            [(BUCKETS - 1, 2)]
        );
        times.clear();
        assert!(times.to_sketch().is_empty());
        assert!(times.bytes() > 0, "counters stay");
    }

    proptest! {
        #[test]
        fn times_are_the_sketch_of_the_same_durations(
            a in prop::collection::vec(0_u64..100_000_000, 0..60),
            b in prop::collection::vec(0_u64..100_000_000, 0..60),
        ) {
            prop_assert_eq!(of(&a).to_sketch(), sketch(&a));
            let both = sketch(&[a.clone(), b.clone()].concat());
            for (one, other) in [(&a, &b), (&b, &a)] {
                let mut times = of(one);
                times.merge(&of(other));
                prop_assert_eq!(times.to_sketch(), both.clone());
                prop_assert!(times.counts.len() <= usize::from(BUCKETS));
                times.clear();
                times.merge(&of(one));
                prop_assert_eq!(times.to_sketch(), sketch(one));
            }
        }
    }
}
