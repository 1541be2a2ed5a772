//! The leaky bucket: passes calls at a steady rate, with a bounded number of them waiting their turn.
//!
//! One [`LeakyBuckets`] serves the whole process and gives each limit its own [`Buckets`]. A bucket holds the calls
//! that came faster than the rate; it leaks at the rate. A call that finds it fuller than the burst is rejected; any
//! other call learns how long to wait so that calls leave at the rate. It keeps numbers only; keys are those of
//! [`crate::rate_limit::key`].

use crate::bounded_map::{Evictable, Eviction};
use crate::partition::{Partition, Partitions};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How fast calls pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Calls a second; more than 0.
    pub per_second: f64,
    /// Calls that may wait.
    pub burst: f64,
}

impl Rate {
    /// Milliseconds until a full bucket is empty; then nothing is left to remember.
    fn memory_ms(self) -> f64 {
        (self.burst + 1.0) * 1_000.0 / self.per_second
    }
}

/// A bucket: how many calls were in it when the last one came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bucket {
    level: f64,
    at_ms: u64,
    /// From then on it is as if there were none.
    forgotten_ms: u64,
    /// A call that came now would be rejected.
    is_full: bool,
}

impl Evictable for Bucket {
    fn eviction(&self, now_ms: u64) -> Eviction {
        if self.forgotten_ms <= now_ms {
            Eviction::Expired
        } else if self.is_full {
            Eviction::Protected(self.forgotten_ms)
        } else {
            Eviction::Candidate(self.level as u64, self.forgotten_ms)
        }
    }
}

/// The buckets of all limits. Bounded: empty buckets are dropped first; if that is not enough, others of the same
/// limit, with those that reject calls last.
#[derive(Debug)]
pub struct LeakyBuckets(Partitions<Bucket>);

/// The buckets of one limit: those of another do not push them out.
#[derive(Debug, Clone)]
pub struct Buckets(Arc<Partition<Bucket>>);

impl LeakyBuckets {
    /// Holds about `max_entries` buckets of 48 bytes each, in tables that are three eighths to three quarters full; see
    /// [`Limiter::new`](crate::rate_limit::Limiter::new) for the bound.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self(Partitions::new(max_entries))
    }

    /// The buckets of the limit of this name.
    #[must_use]
    pub fn buckets(&self, limit: &str) -> Buckets {
        Buckets(self.0.partition(limit))
    }

    /// How many buckets that were not empty were forgotten to make room.
    #[must_use]
    pub fn evictions(&self) -> Arc<AtomicU64> {
        self.0.evictions()
    }
}

impl Buckets {
    /// A call of `key` comes: `Some` of the milliseconds after which it may go on, `None` if it is rejected (and put
    /// into no bucket). `now_ms` is UTC in milliseconds since the Unix epoch; it may lag between workers.
    #[must_use]
    pub fn take(&self, key: u128, rate: Rate, now_ms: u64) -> Option<f64> {
        let mut shard = self.0.shard(key);
        let known = shard.get(key);
        let level = known.map_or(0.0, |bucket| {
            let leaked = rate.per_second * now_ms.abs_diff(bucket.at_ms) as f64 / 1_000.0;
            (bucket.level - leaked + 1.0).max(0.0)
        });
        if level > rate.burst {
            return None;
        }
        let new = usize::from(known.is_none());
        shard.make_room(new, now_ms);
        let bucket = Bucket {
            level,
            at_ms: now_ms,
            forgotten_ms: now_ms.saturating_add(rate.memory_ms().min(1e15) as u64),
            is_full: level + 1.0 > rate.burst,
        };
        shard.set(key, bucket);
        Some(level * 1_000.0 / rate.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_188_660_000;

    #[test]
    fn calls_leave_at_the_rate() {
        let buckets = LeakyBuckets::new(1_000).buckets("a");
        let rate = Rate {
            per_second: 2.0,
            burst: 1.0,
        };
        // Milliseconds after NOW, and the time to wait.
        for (after, expected) in [
            (0, Some(0.0)),
            (0, Some(500.0)),
            (0, None),
            (400, None),
            (500, Some(500.0)),
            (1_000, Some(500.0)),
            (1_750, Some(250.0)),
            (10_000, Some(0.0)),
        ] {
            assert_eq!(buckets.take(7, rate, NOW + after), expected, "at {after}");
        }
    }

    #[test]
    fn without_a_burst_calls_keep_their_distance() {
        let buckets = LeakyBuckets::new(1_000).buckets("a");
        let rate = Rate {
            per_second: 0.5,
            burst: 0.0,
        };
        for (after, passes) in [
            (0, true),
            (600, false),
            (1_999, false),
            (2_700, true),
            (2_700, false),
        ] {
            assert_eq!(buckets.take(7, rate, NOW + after).is_some(), passes, "at {after}");
        }
        assert!(buckets.take(8, rate, NOW).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let all = LeakyBuckets::new(6_400);
        let buckets = all.buckets("a");
        let rate = Rate {
            per_second: 1.0,
            burst: 0.0,
        };
        for number in 0..100_000u64 {
            let key = crate::rate_limit::key(&[&number.to_le_bytes()]);
            assert!(buckets.take(key, rate, NOW).is_some());
        }
        let count = all.0.held();
        assert!(count <= 6_800 && count > 5_000, "{count}");
    }
}
