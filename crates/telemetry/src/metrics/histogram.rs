//! Latency histograms with fixed bounds.
//!
//! Durations are whole microseconds. Buckets are kept apart (not cumulative), so an observation costs one
//! increment; the exposition accumulates them.

use super::counter::Counter;

/// Finite buckets of every histogram; one more holds what lies above the last bound.
pub(super) const BOUNDS: usize = 12;
const BUCKETS: usize = BOUNDS + 1;

/// The upper bounds (inclusive) of a histogram, in microseconds and as the `le` label prints them in seconds.
#[derive(Debug)]
pub(super) struct Bounds {
    micros: [u32; BOUNDS],
    pub(super) labels: [&'static str; BOUNDS],
}

/// Bounds for the time of a whole request and of its upstream part.
pub(super) const REQUEST_BOUNDS: Bounds = Bounds {
    micros: [
        500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000, 30_000_000,
    ],
    labels: [
        "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "1", "5", "30",
    ],
};

/// Bounds for the gateway's own share. They begin a decade lower: a healthy gateway spends tens of
/// microseconds, and all of it would fall into the first bucket of [`REQUEST_BOUNDS`].
pub(super) const GATEWAY_BOUNDS: Bounds = Bounds {
    micros: [
        20, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000, 30_000_000,
    ],
    labels: [
        "0.00002", "0.00005", "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.1", "1",
        "30",
    ],
};

impl Bounds {
    /// The bucket for a duration: the first whose bound is not below it.
    #[inline]
    fn bucket(&self, micros: u32) -> usize {
        // From the lowest on: most calls fall into the first few.
        let above = self.micros.iter().position(|bound| micros <= *bound);
        above.unwrap_or(BOUNDS)
    }
}

/// One worker's histogram of one series. Its sum stands beside the lowest buckets, which most calls fall into.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Histogram {
    sum_micros: Counter,
    buckets: [Counter; BUCKETS],
}

impl Histogram {
    #[inline]
    pub(super) fn observe(&self, bounds: &Bounds, micros: u32) {
        self.buckets[bounds.bucket(micros)].increment();
        self.sum_micros.add(u64::from(micros));
    }

    pub(super) fn reset(&self) {
        self.buckets.iter().for_each(Counter::reset);
        self.sum_micros.reset();
    }
}

/// Two histograms with the bounds of requests, side by side: nearly always a call falls into the same bucket of both. The
/// lowest buckets and the sums are one line of the cache.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct HistogramPair {
    sums_micros: [Counter; 2],
    buckets: [[Counter; 2]; BUCKETS],
}

impl HistogramPair {
    #[inline]
    pub(super) fn observe<const WHICH: usize>(&self, micros: u32) {
        self.buckets[REQUEST_BOUNDS.bucket(micros)][WHICH].increment();
        self.sums_micros[WHICH].add(u64::from(micros));
    }

    pub(super) fn reset(&self) {
        self.buckets.iter().flatten().for_each(Counter::reset);
        self.sums_micros.iter().for_each(Counter::reset);
    }
}

/// A histogram summed over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HistogramTotals {
    /// Observations per bucket, not cumulative; the last is above every bound.
    pub(super) buckets: [u64; BUCKETS],
    pub(super) sum_micros: u64,
}

impl HistogramTotals {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        self.add_counters(histogram.buckets.iter(), &histogram.sum_micros);
    }

    /// Adds one of two.
    pub(super) fn add_of(&mut self, pair: &HistogramPair, which: usize) {
        let buckets = pair.buckets.iter().map(|bucket| &bucket[which]);
        self.add_counters(buckets, &pair.sums_micros[which]);
    }

    fn add_counters<'h>(&mut self, buckets: impl Iterator<Item = &'h Counter>, sum: &Counter) {
        for (total, bucket) in self.buckets.iter_mut().zip(buckets) {
            *total = total.wrapping_add(bucket.get());
        }
        self.sum_micros = self.sum_micros.wrapping_add(sum.get());
    }

    /// All observations. Taken from the buckets, so that it always equals the `+Inf` bucket.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Histogram {
        /// The sum and the first buckets.
        pub(in super::super) fn shortest(&self, count: usize) -> impl Iterator<Item = &Counter> {
            std::iter::once(&self.sum_micros).chain(&self.buckets[..count])
        }
    }

    impl HistogramPair {
        /// The sums and the first buckets.
        pub(in super::super) fn shortest(&self, count: usize) -> impl Iterator<Item = &Counter> {
            self.sums_micros
                .iter()
                .chain(self.buckets[..count].iter().flatten())
        }
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_is_not_below_it() {
        let request = [
            (0, 0),
            (500, 0),
            (501, 1),
            (1_000, 1),
            (2_501, 3),
            (99_999, 7),
            (100_000, 7),
            (100_001, 8),
            (30_000_000, 11),
            (30_000_001, 12),
            (u32::MAX, 12),
        ];
        let gateway = [(0, 0), (20, 0), (21, 1), (50, 1), (51, 2), (30_000_001, 12)];
        for (bounds, cases) in [(REQUEST_BOUNDS, &request[..]), (GATEWAY_BOUNDS, &gateway[..])] {
            for &(micros, bucket) in cases {
                assert_eq!(bounds.bucket(micros), bucket, "{micros} µs");
            }
        }
    }

    #[test]
    fn labels_say_what_the_bounds_are() {
        for bounds in [REQUEST_BOUNDS, GATEWAY_BOUNDS] {
            for (micros, label) in bounds.micros.iter().zip(bounds.labels) {
                let seconds: f64 = label.parse().unwrap();
                assert_eq!((seconds * 1e6).round(), f64::from(*micros), "{label}");
            }
            assert!(bounds.micros.is_sorted());
        }
    }

    #[test]
    fn totals_add_up() {
        let (one, two) = (Histogram::default(), Histogram::default());
        one.observe(&REQUEST_BOUNDS, 400);
        one.observe(&REQUEST_BOUNDS, 31_000_000);
        two.observe(&REQUEST_BOUNDS, 300);
        let mut totals = HistogramTotals::default();
        totals.add(&one);
        totals.add(&two);
        assert_eq!((totals.count(), totals.buckets[0], totals.buckets[12]), (3, 2, 1));
        assert_eq!(totals.sum_micros, 31_000_700);
        one.reset();
        let mut after = HistogramTotals::default();
        after.add(&one);
        assert_eq!(after, HistogramTotals::default());
    }
}
