//! The leaky bucket: lets calls through at a steady rate, with a bounded number of them waiting their turn.
//!
//! One [`LeakyBuckets`] serves the whole process. A bucket holds the calls that came faster than the rate; it leaks at
//! the rate. A call that finds it fuller than the burst is rejected; another one is told how long to wait so that calls
//! leave at the rate. It keeps numbers only; keys are those of [`crate::rate_limit::key`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;

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
#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: f64,
    at_ms: u64,
    /// From then on it is as if there were none.
    forgotten_ms: u64,
}

/// The buckets of all keys. Bounded: when it is full, those that are empty are forgotten first, then those that are
/// empty soonest.
#[derive(Debug)]
pub struct LeakyBuckets {
    shards: Box<[Padded]>,
    capacity: usize,
}

type Shard = HashMap<u128, Bucket, BuildHasherDefault<Low>>;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl LeakyBuckets {
    /// Holds at most about `max_entries` buckets of about 50 bytes each.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Padded::default()).collect(),
            capacity: max_entries.div_ceil(SHARDS).max(16),
        }
    }

    /// A call of `key` comes: `Some` of the milliseconds after which it may go on, `None` where it is rejected (and put
    /// into no bucket). `now_ms` is UTC in milliseconds since the Unix epoch; it may lag between workers.
    #[must_use]
    pub fn take(&self, key: u128, rate: Rate, now_ms: u64) -> Option<f64> {
        let shard = &self.shards[(key >> (u128::BITS - SHARD_BITS)) as usize];
        let mut shard = shard.0.lock().unwrap_or_else(PoisonError::into_inner);
        let level = match shard.get(&key) {
            None => 0.0,
            Some(bucket) => {
                let leaked = rate.per_second * now_ms.abs_diff(bucket.at_ms) as f64 / 1_000.0;
                (bucket.level - leaked + 1.0).max(0.0)
            }
        };
        if level > rate.burst {
            return None;
        }
        if shard.len() >= self.capacity && !shard.contains_key(&key) {
            make_room(&mut shard, self.capacity, now_ms);
        }
        let bucket = Bucket {
            level,
            at_ms: now_ms,
            forgotten_ms: now_ms.saturating_add(rate.memory_ms().min(1e15) as u64),
        };
        shard.insert(key, bucket);
        Some(level * 1_000.0 / rate.per_second)
    }
}

/// Frees an eighth of the shard, so that the work of going through it is shared by many new keys.
fn make_room(shard: &mut Shard, capacity: usize, now_ms: u64) {
    shard.retain(|_, bucket| bucket.forgotten_ms > now_ms);
    let kept = capacity - (capacity / 8).max(1);
    let Some(excess) = shard.len().checked_sub(kept).filter(|excess| *excess > 0) else {
        return;
    };
    let mut ends: Vec<u64> = shard.values().map(|bucket| bucket.forgotten_ms).collect();
    let (_, &mut last, _) = ends.select_nth_unstable(excess - 1);
    let mut left = excess;
    shard.retain(|_, bucket| {
        let goes = bucket.forgotten_ms <= last && left > 0;
        left -= usize::from(goes);
        !goes
    });
}

/// A key is a strong hash already.
#[derive(Debug, Default)]
struct Low(u64);

impl Hasher for Low {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_188_660_000;

    #[test]
    fn calls_leave_at_the_rate() {
        let buckets = LeakyBuckets::new(1_000);
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
        let buckets = LeakyBuckets::new(1_000);
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
        let buckets = LeakyBuckets::new(6_400);
        let rate = Rate {
            per_second: 1.0,
            burst: 0.0,
        };
        for number in 0..100_000u64 {
            let key = crate::rate_limit::key(&[&number.to_le_bytes()]);
            assert!(buckets.take(key, rate, NOW).is_some());
        }
        let count: usize = buckets
            .shards
            .iter()
            .map(|shard| shard.0.lock().expect("whole").len())
            .sum();
        assert!(count <= 6_400 && count > 5_000, "{count}");
    }
}
