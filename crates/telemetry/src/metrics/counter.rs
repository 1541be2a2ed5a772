//! Counters and gauges with a single writer.
//!
//! Every value belongs to one worker, so an increment is a plain load and store: no locked instruction, no
//! cache line that two cores fight for. A second writer would not be unsound, but would lose counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A monotonic count. Only the owning worker's thread may change it; any thread may read it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n`, wrapping at 2^64 as Prometheus counters may.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// The present value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// A number of things that exist right now. Only the owning worker's thread may change it.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// One more.
    #[inline]
    pub fn increment(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// One fewer; stays at zero rather than wrapping.
    #[inline]
    pub fn decrement(&self) {
        self.0.store(self.0.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// The present value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_never_goes_below_zero() {
        let gauge = Gauge::default();
        gauge.increment();
        gauge.decrement();
        gauge.decrement();
        assert_eq!(gauge.get(), 0);
    }

    #[test]
    fn a_counter_adds_and_wraps() {
        let counter = Counter::default();
        counter.increment();
        counter.add(u64::MAX);
        counter.add(4);
        assert_eq!(counter.get(), 4);
    }
}
