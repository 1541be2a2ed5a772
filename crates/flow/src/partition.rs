//! Counters of many limits: each limit has a partition of its own, so that keys made up for one of them do not push out
//! the counters of another.
//!
//! All partitions together hold about a capacity that is given. While there is room, a partition takes as much of it as
//! it needs. When there is none left, a partition that holds more than its share (the capacity divided by the number of
//! limits) evicts its own counters for its new ones; one that holds less still grows to its share. So all of them
//! together hold at most twice the capacity, or [`LEAST_SHARE`] for each limit where there are very many.

use crate::bounded_map::{BoundedMap, Evictable};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const SHARD_BITS: u32 = 4;
/// Locks that the keys of one limit are spread over.
const SHARDS: usize = 1 << SHARD_BITS;
/// Counters of a shard that are always there: twice what one decision about a call needs.
const LEAST_OF_SHARD: usize = 16;
/// Counters that every limit may hold.
pub const LEAST_SHARE: usize = LEAST_OF_SHARD * SHARDS;
/// Limits that are no more, from which on they are looked for.
const FIRST_CLEANING: usize = 64;

/// What all partitions have in common.
#[derive(Debug)]
struct Common {
    capacity: usize,
    /// Counters in all partitions.
    held: AtomicUsize,
    /// Partitions that there are.
    partitions: AtomicUsize,
    evictions: Arc<AtomicU64>,
}

/// The partitions of one store, by the limits' names.
#[derive(Debug)]
pub(crate) struct Partitions<V> {
    common: Arc<Common>,
    known: Mutex<Known<V>>,
}

#[derive(Debug)]
struct Known<V> {
    by_name: HashMap<String, Arc<Partition<V>>>,
    /// So many names, and those that nobody uses are let go.
    clean_at: usize,
}

/// The counters of one limit.
#[derive(Debug)]
pub(crate) struct Partition<V> {
    common: Arc<Common>,
    /// Made with the first counter, as most of many limits have none.
    shards: OnceLock<Box<[Padded<V>]>>,
}

/// Keeps the locks of two shards off one cache line (and off the pair that is fetched together).
#[derive(Debug)]
#[repr(align(128))]
struct Padded<V>(Mutex<BoundedMap<V>>);

/// One shard of a limit's counters, locked.
pub(crate) struct Shard<'p, V> {
    map: MutexGuard<'p, BoundedMap<V>>,
    common: &'p Common,
}

impl<V: Evictable> Partitions<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        let common = Common {
            capacity,
            held: AtomicUsize::new(0),
            partitions: AtomicUsize::new(0),
            evictions: Arc::default(),
        };
        Self {
            common: Arc::new(common),
            known: Mutex::new(Known {
                by_name: HashMap::new(),
                clean_at: FIRST_CLEANING,
            }),
        }
    }

    /// The partition of this name. It stays while it is used, and is found again by all that ask for it meanwhile.
    pub(crate) fn partition(&self, name: &str) -> Arc<Partition<V>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(partition) = known.by_name.get(name) {
            return Arc::clone(partition);
        }
        if known.by_name.len() >= known.clean_at {
            known.by_name.retain(|_, it| Arc::strong_count(it) > 1);
            known.clean_at = (known.by_name.len() * 2).max(FIRST_CLEANING);
        }
        let partition = Arc::new(Partition {
            common: Arc::clone(&self.common),
            shards: OnceLock::new(),
        });
        self.common.partitions.fetch_add(1, Ordering::Relaxed);
        known.by_name.insert(name.to_owned(), Arc::clone(&partition));
        partition
    }

    /// Counters in all partitions, those that are over included.
    pub(crate) fn held(&self) -> usize {
        self.common.held.load(Ordering::Relaxed)
    }

    /// How many counters that still counted have been evicted.
    pub(crate) fn evictions(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.common.evictions)
    }
}

impl<V: Evictable> Partition<V> {
    /// Whether no partition of the store holds anything.
    #[inline]
    pub(crate) fn is_store_empty(&self) -> bool {
        self.common.held.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn shard(&self, key: u128) -> Shard<'_, V> {
        let shards = self.shards.get_or_init(|| {
            let shard = || Padded(Mutex::new(BoundedMap::default()));
            (0..SHARDS).map(|_| shard()).collect()
        });
        let shard = &shards[(key >> (u128::BITS - SHARD_BITS)) as usize];
        Shard {
            // A panic under the lock leaves whole values only.
            map: shard.0.lock().unwrap_or_else(PoisonError::into_inner),
            common: &self.common,
        }
    }
}

impl<V> Drop for Partition<V> {
    fn drop(&mut self) {
        let shards = self.shards.get().into_iter().flatten();
        let len = |shard: &Padded<V>| shard.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        let held = shards.map(len).sum();
        self.common.held.fetch_sub(held, Ordering::Relaxed);
        self.common.partitions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<V: Evictable> Shard<'_, V> {
    pub(crate) fn get(&self, key: u128) -> Option<&V> {
        self.map.get(key)
    }

    /// Makes room for so many keys that are new. Before any of them is set, as one may go that was set before.
    pub(crate) fn make_room(&mut self, keys: usize, now: u64) {
        if keys == 0 {
            return;
        }
        let share = self.common.capacity / self.common.partitions.load(Ordering::Relaxed).max(1);
        let (mut expired, mut evicted) = (0, 0);
        for ahead in 0..keys {
            let is_full = self.common.held.load(Ordering::Relaxed) >= self.common.capacity;
            let most = if is_full { share } else { self.common.capacity };
            let most = most.div_ceil(SHARDS).max(LEAST_OF_SHARD).saturating_sub(ahead);
            let removed = self.map.make_room(most, now);
            expired += removed.expired;
            evicted += removed.evicted;
        }
        if expired + evicted > 0 {
            self.common.held.fetch_sub(expired + evicted, Ordering::Relaxed);
        }
        if evicted > 0 {
            self.common.evictions.fetch_add(evicted as u64, Ordering::Relaxed);
        }
    }

    /// Sets a value, for which room has been made where its key is new.
    pub(crate) fn set(&mut self, key: u128, value: V) {
        if self.map.insert(key, value) {
            self.common.held.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn remove(&mut self, key: u128) {
        if self.map.remove(key) {
            self.common.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded_map::Eviction;

    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct Count(u64);

    impl Evictable for Count {
        fn eviction(&self, _: u64) -> Eviction {
            Eviction::Candidate(self.0, 0)
        }
    }

    fn key(number: u64) -> u128 {
        crate::rate_limit::key(&[&number.to_le_bytes()])
    }

    fn set(partition: &Partition<Count>, number: u64, count: u64) {
        let mut shard = partition.shard(key(number));
        let keys = usize::from(shard.get(key(number)).is_none());
        shard.make_room(keys, 0);
        shard.set(key(number), Count(count));
    }

    #[test]
    fn a_flood_of_one_limit_leaves_the_counters_of_others() {
        let partitions = Partitions::new(8_000);
        let (quiet, flooded) = (partitions.partition("quiet"), partitions.partition("flooded"));
        for number in 0..1_000 {
            // The least that there is: in one map with the flood they would be the first to go.
            set(&quiet, number, 0);
        }
        for number in 0..100_000 {
            set(&flooded, number, 1);
            assert!(partitions.held() <= 8_500, "{}", partitions.held());
        }
        for number in 0..1_000 {
            assert_eq!(
                quiet.shard(key(number)).get(key(number)),
                Some(&Count(0)),
                "{number}"
            );
        }
        // Those that come later still get their share.
        for number in 1_000..3_000 {
            set(&quiet, number, 1);
        }
        let there = |number: &u64| quiet.shard(key(*number)).get(key(*number)).is_some();
        assert!((0..3_000).all(|number| there(&number)));
        assert!(partitions.held() <= 16_000);
        for number in 0..10_000 {
            set(&flooded, number, 1);
        }
        assert!(
            partitions.held() <= 8_500,
            "the flood gives back: {}",
            partitions.held()
        );
        assert!(partitions.evictions().load(Ordering::Relaxed) > 90_000);
    }

    #[test]
    fn partitions_that_nobody_uses_are_let_go() {
        let partitions = Partitions::new(1_000);
        let kept = partitions.partition("kept");
        set(&kept, 1, 1);
        for number in 0..10_000 {
            set(&partitions.partition(&number.to_string()), 1, 1);
        }
        assert!(partitions.held() <= FIRST_CLEANING + 1, "{}", partitions.held());
        let again = partitions.partition("kept");
        assert_eq!(again.shard(key(1)).get(key(1)), Some(&Count(1)));
        drop((kept, again, partitions));
    }
}
