//! Many breakers by key, shared by all workers. Only what has failed is remembered, so that while all is well a
//! question costs one load; and no more than a bound.

use super::{Breaker, BreakerRules};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks that keys are spread over.
const SHARDS: usize = 16;

/// Breakers by key. Of those beyond the capacity, the ones that failed longest ago are forgotten.
#[derive(Debug)]
pub struct Breakers {
    shards: [Mutex<HashMap<u64, Breaker>>; SHARDS],
    /// Keys in all shards.
    count: AtomicUsize,
    /// Most keys of a shard.
    capacity: usize,
}

impl Breakers {
    /// Room for about `capacity` keys.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            shards: Default::default(),
            count: AtomicUsize::new(0),
            capacity: (capacity / SHARDS).max(1),
        }
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, HashMap<u64, Breaker>> {
        // A panic under the lock leaves whole entries only.
        let shard = &self.shards[(key % SHARDS as u64) as usize];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing at all has failed, so that every call may be made.
    #[inline]
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether a call may be made.
    #[must_use]
    pub fn allows(&self, key: u64, rules: &BreakerRules, now_s: u64) -> bool {
        self.is_quiet()
            || self
                .shard(key)
                .get(&key)
                .is_none_or(|breaker| breaker.allows(rules, now_s))
    }

    /// Notes a failure.
    pub fn note_failure(&self, key: u64, rules: &BreakerRules, now_s: u64) {
        let mut shard = self.shard(key);
        let before = shard.len();
        if before >= self.capacity && !shard.contains_key(&key) {
            make_room(&mut shard, self.capacity);
        }
        let breaker = shard.entry(key).or_default();
        *breaker = breaker.after_failure(rules, now_s);
        // Every shard's part is changed under its lock, so the sum never falls below 0.
        let after = shard.len();
        self.count
            .fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Notes a success.
    pub fn note_success(&self, key: u64, rules: &BreakerRules) {
        if self.is_quiet() {
            return;
        }
        let mut shard = self.shard(key);
        let Some(breaker) = shard.get_mut(&key) else {
            return;
        };
        match breaker.after_success(rules) {
            Some(next) => *breaker = next,
            None => {
                shard.remove(&key);
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Forgets an eighth, so that the work of finding what failed longest ago is shared by many new keys.
fn make_room(shard: &mut HashMap<u64, Breaker>, capacity: usize) {
    let mut times: Vec<u64> = shard.values().map(|breaker| breaker.failed_at_s).collect();
    times.sort_unstable();
    let gone = (capacity / 8).max(1);
    let last = times.get(gone - 1).copied().unwrap_or(u64::MAX);
    let mut left = gone;
    shard.retain(|_, breaker| {
        let goes = left > 0 && breaker.failed_at_s <= last;
        left -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        failures: 1,
        successes: 1,
        max_open_s: 300,
    };

    #[test]
    fn keys_are_kept_apart_and_forgotten() {
        let breakers = Breakers::new(1_000);
        assert!(breakers.is_quiet() && breakers.allows(1, &RULES, 100));
        breakers.note_failure(1, &RULES, 100);
        breakers.note_failure(17, &RULES, 100);
        assert!(!breakers.allows(1, &RULES, 101) && !breakers.allows(17, &RULES, 101));
        assert!(breakers.allows(2, &RULES, 101) && breakers.allows(33, &RULES, 101));
        breakers.note_success(2, &RULES);
        breakers.note_success(1, &RULES);
        assert!(breakers.allows(1, &RULES, 101) && !breakers.allows(17, &RULES, 101));
        breakers.note_success(17, &RULES);
        assert!(breakers.is_quiet());
    }

    #[test]
    fn what_failed_longest_ago_makes_room() {
        let breakers = Breakers::new(160);
        for key in 0..10_000 {
            breakers.note_failure(key, &RULES, 100 + key);
        }
        assert!(breakers.count.load(Ordering::Relaxed) <= 160);
        assert!(!breakers.allows(9_999, &RULES, 10_099), "the last is there");
        assert!(breakers.allows(1, &RULES, 101), "the first is gone");
        for key in 0..10_000 {
            breakers.note_success(key, &RULES);
        }
        assert!(breakers.is_quiet());
    }
}
