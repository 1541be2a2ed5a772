//! Counters of many limits: each limit has a partition of its own, so that keys made up for one of them do not push out
//! the counters of another.
//!
//! All partitions together hold about a given capacity. While there is room, a partition takes as much of it as it
//! needs. If there is none left, a partition that holds more than its share (the capacity divided by the number of
//! limits) evicts its own counters for its new ones; one that holds less still grows to its share. So all of them
//! together hold at most twice the capacity, or [`LEAST_SHARE`] for each limit if there are very many.
//!
//! A limit that was flooded once gives back its excess: while the store is full, each new counter has a few slots of
//! another partition looked through, tables that are empty by then are freed, and partitions that no limit uses go.

use crate::bounded_map::{BoundedMap, Evictable};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

const SHARD_BITS: u32 = 4;
/// Locks that the keys of one limit are spread over.
const SHARDS: usize = 1 << SHARD_BITS;
/// Counters of a shard that are always there: twice what one decision about a call needs.
const LEAST_OF_SHARD: usize = 16;
/// Counters that every limit may hold.
pub const LEAST_SHARE: usize = LEAST_OF_SHARD * SHARDS;
/// Limits that are no more, from which on they are looked for.
const FIRST_CLEANING: usize = 64;
/// Slots that one call looks through for counters that are over, and shards that it visits for them.
const SWEPT_SLOTS: usize = 128;
const SWEPT_SHARDS: usize = 32;

/// What all partitions have in common.
#[derive(Debug)]
struct Common {
    capacity: usize,
    /// Counters in all partitions.
    held: AtomicUsize,
    /// Partitions that there are.
    partitions: AtomicUsize,
    evictions: Arc<AtomicU64>,
    /// When a new counter found the store full; 0: nothing is to be swept.
    sweep_at: AtomicU64,
}

/// The partitions of one store, by the limits' names.
#[derive(Debug)]
pub(crate) struct Partitions<V> {
    common: Arc<Common>,
    known: Arc<Mutex<PartitionTable<V>>>,
}

/// No call waits for it.
#[derive(Debug)]
struct PartitionTable<V> {
    by_name: HashMap<String, Arc<Partition<V>>>,
    /// So many names, and unused ones are dropped.
    clean_at: usize,
    /// What is yet to be swept in this round, the last one first.
    round: Vec<Weak<Partition<V>>>,
    /// The shard of the last one that is swept, and how many of its slots were looked at.
    shard: usize,
    looked_at: usize,
    /// When this round began.
    began: u64,
}

/// The counters of one limit.
#[derive(Debug)]
pub(crate) struct Partition<V> {
    common: Arc<Common>,
    known: Weak<Mutex<PartitionTable<V>>>,
    /// Made with the first counter, as most of many limits have none.
    shards: OnceLock<Box<[PaddedShard<V>]>>,
}

/// Keeps the locks of two shards off one cache line (and off the pair that is fetched together).
#[derive(Debug)]
#[repr(align(128))]
struct PaddedShard<V>(Mutex<BoundedMap<V>>);

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
            sweep_at: AtomicU64::new(0),
        };
        let known = PartitionTable {
            by_name: HashMap::new(),
            clean_at: FIRST_CLEANING,
            round: Vec::new(),
            shard: 0,
            looked_at: 0,
            began: 0,
        };
        Self {
            common: Arc::new(common),
            known: Arc::new(Mutex::new(known)),
        }
    }

    /// The partition of this name. It stays while it is used, and all other callers find the same one in the meantime.
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
            known: Arc::downgrade(&self.known),
            shards: OnceLock::new(),
        });
        self.common.partitions.fetch_add(1, Ordering::Relaxed);
        known.by_name.insert(name.to_owned(), Arc::clone(&partition));
        partition
    }

    /// All partitions with their names.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Partition<V>>)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let named = known.by_name.iter();
        named.map(|(name, it)| (name.clone(), Arc::clone(it))).collect()
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

impl<V: Evictable> PartitionTable<V> {
    /// Looks through a few slots for counters that are over. Gives how many it has removed.
    fn sweep(&mut self, now: u64) -> usize {
        let (mut removed, mut left) = (0, SWEPT_SLOTS);
        for _ in 0..SWEPT_SHARDS {
            let Some(partition) = self.round.last() else { break };
            let partition = partition.upgrade();
            let shards = partition.as_ref().and_then(|it| it.shards.get());
            let Some(PaddedShard(shard)) = shards.and_then(|shards| shards.get(self.shard)) else {
                self.round.pop();
                (self.shard, self.looked_at) = (0, 0);
                continue;
            };
            let mut map = match shard.try_lock() {
                Ok(map) => map,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // A call works with it: it is swept in the next round.
                Err(TryLockError::WouldBlock) => {
                    (self.shard, self.looked_at) = (self.shard + 1, 0);
                    continue;
                }
            };
            let (looked_at, expired) = map.remove_expired(left, now);
            removed += expired;
            left -= looked_at.min(left);
            self.looked_at += looked_at;
            if self.looked_at >= map.slots() {
                (self.shard, self.looked_at) = (self.shard + 1, 0);
            }
            if left == 0 {
                break;
            }
        }
        removed
    }

    /// Begins another round, if there is none and time has passed since the last one began. Returns the partitions that
    /// no limit uses, for the caller to drop once nothing is locked.
    fn begin_round(&mut self, now: u64) -> Vec<Arc<Partition<V>>> {
        if !self.round.is_empty() || self.began == now {
            return Vec::new();
        }
        self.began = now;
        let unused = self.by_name.extract_if(|_, it| Arc::strong_count(it) == 1);
        let unused = unused.map(|(_, partition)| partition).collect();
        self.round.extend(self.by_name.values().map(Arc::downgrade));
        unused
    }
}

impl<V: Evictable> Partition<V> {
    /// Removes a few counters that are over, of whatever partition: the store is full. Waits for nothing.
    #[cold]
    fn sweep(&self) {
        let now = self.common.sweep_at.swap(0, Ordering::Relaxed);
        let Some(registry) = self.known.upgrade().filter(|_| now > 0) else {
            return;
        };
        let Ok(mut known) = registry.try_lock() else {
            return;
        };
        let unused = known.begin_round(now);
        let removed = known.sweep(now);
        drop(known);
        self.common.held.fetch_sub(removed, Ordering::Relaxed);
        if removed > 0 {
            // There is probably more in the same place.
            self.common.sweep_at.store(now, Ordering::Relaxed);
        }
        drop(unused);
    }

    /// Whether no partition of the store holds anything.
    #[inline]
    pub(crate) fn is_store_empty(&self) -> bool {
        self.common.held.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn shard(&self, key: u128) -> Shard<'_, V> {
        if self.common.sweep_at.load(Ordering::Relaxed) > 0 {
            self.sweep();
        }
        self.lock(&self.shards()[(key >> (u128::BITS - SHARD_BITS)) as usize])
    }

    /// The shard at this place, if there is one.
    pub(crate) fn shard_at(&self, place: usize) -> Option<Shard<'_, V>> {
        self.shards().get(place).map(|shard| self.lock(shard))
    }

    /// Shows all counters, each with its shard. One shard is locked at a time.
    pub(crate) fn each(&self, mut visit: impl FnMut(usize, u128, V)) {
        for (place, shard) in self.shards.get().into_iter().flatten().enumerate() {
            let shard = self.lock(shard);
            shard.map.iter().for_each(|(key, value)| visit(place, key, value));
        }
    }

    fn shards(&self) -> &[PaddedShard<V>] {
        self.shards.get_or_init(|| {
            let shard = || PaddedShard(Mutex::new(BoundedMap::default()));
            (0..SHARDS).map(|_| shard()).collect()
        })
    }

    fn lock<'p>(&'p self, shard: &'p PaddedShard<V>) -> Shard<'p, V> {
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
        let len = |shard: &PaddedShard<V>| shard.0.lock().unwrap_or_else(PoisonError::into_inner).len();
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
            if is_full {
                // By the next call, which holds no lock then.
                self.common.sweep_at.store(now.max(1), Ordering::Relaxed);
            }
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

    /// Sets a value. If its key is new, room has been made for it.
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

    /// A counter that is over at this time.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct ExpiringCounter(u64);

    impl Evictable for ExpiringCounter {
        fn eviction(&self, now: u64) -> Eviction {
            match self.0 <= now {
                true => Eviction::Expired,
                false => Eviction::Candidate(0, self.0),
            }
        }
    }

    fn fill(partition: &Partition<ExpiringCounter>, numbers: std::ops::Range<u64>, until: u64, now: u64) {
        for number in numbers {
            let mut shard = partition.shard(key(number));
            shard.make_room(1, now);
            shard.set(key(number), ExpiringCounter(until));
        }
    }

    fn there(partition: &Partition<ExpiringCounter>, numbers: std::ops::Range<u64>) -> usize {
        let is_there = |number: &u64| partition.shard(key(*number)).get(key(*number)).is_some();
        numbers.filter(is_there).count()
    }

    #[test]
    fn a_limit_that_was_flooded_once_gives_back_what_is_over() {
        let partitions = Partitions::new(8_000);
        let (later, flooded) = (partitions.partition("later"), partitions.partition("flooded"));
        fill(&flooded, 0..20_000, 10, 1);
        assert!(partitions.held() >= 7_500, "{}", partitions.held());
        // The flood is over. Its counters neither count nor are in the way.
        fill(&later, 0..6_000, 100, 11);
        assert_eq!(there(&later, 0..6_000), 6_000, "more than a share of 4,000");
        assert!(partitions.held() <= 6_500, "{}", partitions.held());
        let slots = |shard: &PaddedShard<ExpiringCounter>| shard.0.lock().unwrap().slots();
        let left: usize = flooded.shards.get().into_iter().flatten().map(slots).sum();
        assert!(left <= 1_024, "its tables are freed: {left} slots");
        // It can be flooded again.
        fill(&flooded, 0..1_000, 100, 11);
        assert_eq!(there(&flooded, 0..1_000), 1_000);
    }

    #[test]
    fn a_full_store_drops_partitions_that_no_limit_uses() {
        let partitions = Partitions::new(8_000);
        let later = partitions.partition("later");
        fill(&partitions.partition("removed"), 0..20_000, 1_000, 1);
        fill(&later, 0..6_000, 1_000, 2);
        assert_eq!(there(&later, 0..6_000), 6_000);
        assert_eq!(partitions.held(), 6_000);
        assert_eq!(partitions.common.partitions.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn partitions_without_use_are_dropped() {
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
