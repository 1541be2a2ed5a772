//! Many breakers by key, shared by all workers. Only what has failed is remembered, so that while all is well a
//! question costs one load; and no more than a bound.

use super::{Breaker, BreakerRules};
use crate::bounded_map::{Evictable, Eviction};
use crate::partition::{Partition, Partitions};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The breakers of all instances. Of those beyond the capacity, the ones of the same instance that never opened and
/// failed longest ago are forgotten first, then those that opened longest ago.
#[derive(Debug)]
pub struct BreakerStore(Partitions<Breaker>);

/// The breakers of one instance, by key: those of another do not push them out.
#[derive(Debug, Clone)]
pub struct Breakers(Arc<Partition<Breaker>>);

impl Evictable for Breaker {
    fn eviction(&self, _: u64) -> Eviction {
        match self.opened_at_s {
            Some(opened_at_s) => Eviction::Protected(opened_at_s),
            None => Eviction::Candidate(self.failed_at_s, 0),
        }
    }
}
impl BreakerStore {
    /// Room for about `capacity` keys; see [`Limiter::new`](crate::rate_limit::Limiter::new) for the bound.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(Partitions::new(capacity))
    }

    /// The breakers of the instance of this name.
    #[must_use]
    pub fn breakers(&self, instance: &str) -> Breakers {
        Breakers(self.0.partition(instance))
    }

    /// How many breakers were forgotten to make room.
    #[must_use]
    pub fn evictions(&self) -> Arc<AtomicU64> {
        self.0.evictions()
    }
}

impl Breakers {
    /// Whether nothing at all has failed, of no instance, so that every call may be made.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_store_empty()
    }

    /// Whether a call may be made.
    #[must_use]
    pub fn allows(&self, key: u64, rules: &BreakerRules, now_s: u64) -> bool {
        let key = spread(key);
        self.is_empty()
            || self
                .0
                .shard(key)
                .get(key)
                .is_none_or(|it| it.allows(rules, now_s))
    }

    /// Notes a failure.
    pub fn note_failure(&self, key: u64, rules: &BreakerRules, now_s: u64) {
        let key = spread(key);
        let mut shard = self.0.shard(key);
        let known = shard.get(key).copied();
        shard.make_room(usize::from(known.is_none()), now_s);
        shard.set(key, known.unwrap_or_default().after_failure(rules, now_s));
    }

    /// Notes a success.
    pub fn note_success(&self, key: u64, rules: &BreakerRules) {
        if self.is_empty() {
            return;
        }
        let key = spread(key);
        let mut shard = self.0.shard(key);
        let Some(breaker) = shard.get(key).copied() else {
            return;
        };
        match breaker.after_success(rules) {
            Some(next) => shard.set(key, next),
            None => shard.remove(key),
        }
    }
}

/// A key for the store, which takes its shard from the highest bits.
fn spread(key: u64) -> u128 {
    u128::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
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
        let breakers = BreakerStore::new(1_000).breakers("a");
        assert!(breakers.is_empty() && breakers.allows(1, &RULES, 100));
        breakers.note_failure(1, &RULES, 100);
        breakers.note_failure(17, &RULES, 100);
        assert!(!breakers.allows(1, &RULES, 101) && !breakers.allows(17, &RULES, 101));
        assert!(breakers.allows(2, &RULES, 101) && breakers.allows(33, &RULES, 101));
        breakers.note_success(2, &RULES);
        breakers.note_success(1, &RULES);
        assert!(breakers.allows(1, &RULES, 101) && !breakers.allows(17, &RULES, 101));
        breakers.note_success(17, &RULES);
        assert!(breakers.is_empty());
    }

    #[test]
    fn what_failed_longest_ago_makes_room() {
        let store = BreakerStore::new(160);
        let breakers = store.breakers("a");
        for key in 0..10_000 {
            breakers.note_failure(key, &RULES, 100 + key);
        }
        assert!(store.0.held() <= 300, "{}", store.0.held());
        assert!(!breakers.allows(9_999, &RULES, 10_099), "the last is there");
        assert!(breakers.allows(1, &RULES, 101), "the first is gone");
        for key in 0..10_000 {
            breakers.note_success(key, &RULES);
        }
        assert!(breakers.is_empty());
    }
}
