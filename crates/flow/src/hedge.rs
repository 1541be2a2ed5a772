//! Hedging: when a second copy of a call is worth sending. Only how long to wait is found out here; how many copies
//! there may be is for a [`RetryBudget`](crate::retry_budget::RetryBudget).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far an estimate moves with one sample.
const STEP: f64 = 0.05;

/// When a copy is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HedgeDelay {
    /// After so many milliseconds.
    AfterMs(u64),
    /// Once the call takes longer than this percentage of the calls before.
    Percentile(u8),
}

/// A running estimate of how long calls take, for one upstream and shared by all workers. It follows the percentile by
/// small steps: up by its distance from 0 for each call that took longer, down by its distance from 100 for the others.
#[derive(Debug, Default)]
pub struct LatencyPercentile {
    /// Bits of an `f64`: microseconds, 0 while nothing is known.
    estimate_us: AtomicU64,
}

impl LatencyPercentile {
    /// Learns how long a call took.
    pub fn note(&self, latency_us: u64, percentile: u8) {
        let latency_us = latency_us.max(1) as f64;
        let part = f64::from(percentile.min(100)) / 100.0;
        let before = self.estimate_us();
        let after = match before {
            before if before <= 0.0 => latency_us,
            before if latency_us > before => before * (1.0 + STEP * part),
            before => before * (1.0 - STEP * (1.0 - part)),
        };
        // Another worker's step may be lost: the estimate does not depend on a single one.
        self.estimate_us.store(after.to_bits(), Relaxed);
    }

    /// The estimate in microseconds; 0 while nothing is known.
    #[must_use]
    pub fn estimate_us(&self) -> f64 {
        f64::from_bits(self.estimate_us.load(Relaxed))
    }

    /// After how many microseconds a copy is sent; `None`: not yet, as nothing is known of the upstream.
    #[must_use]
    pub fn delay_us(&self, delay: HedgeDelay) -> Option<u64> {
        match delay {
            HedgeDelay::AfterMs(ms) => Some(ms.saturating_mul(1_000)),
            HedgeDelay::Percentile(_) => Some(self.estimate_us() as u64).filter(|delay| *delay > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Random;

    #[test]
    fn estimates_follow_the_percentile() {
        for (percentile, wanted) in [(50, 500.0), (90, 900.0), (95, 950.0)] {
            let latency = LatencyPercentile::default();
            assert_eq!(latency.delay_us(HedgeDelay::Percentile(percentile)), None);
            let mut random = Random::new(1);
            let mut sum = 0.0;
            for call in 0..20_000 {
                latency.note(random.below(1_000) as u64, percentile);
                sum += if call < 10_000 { 0.0 } else { latency.estimate_us() };
            }
            let average = sum / 10_000.0;
            assert!(
                (average / wanted - 1.0_f64).abs() < 0.08,
                "{percentile}: {average} instead of {wanted}"
            );
        }
        let latency = LatencyPercentile::default();
        assert_eq!(latency.delay_us(HedgeDelay::AfterMs(7)), Some(7_000));
        latency.note(0, 95);
        assert_eq!(latency.delay_us(HedgeDelay::Percentile(95)), Some(1));
    }
}
