//! A shared map of values that expire: answers of other servers, such as documents, key sets and tokens.
//!
//! It is bounded in bytes. One caller fetches a value that is missing, and all others wait for it. A value may be used
//! for a while after it is no longer fresh, while one caller fetches a newer one. A fetch that has failed is not repeated
//! for a while. The time is an argument. It is not for counters: see [`crate::rate_limit`].

mod fetch;
mod shard;

pub use fetch::{Fetch, Pending};

use fetch::Flight;
use shard::{KeyState, Shard};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts of a map, each with its own lock.
const SHARDS: usize = 16;

/// How long a value may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// How long it is used as it is, in milliseconds.
    pub fresh_ms: u64,
    /// How long it is still used after that, while a newer one is fetched or cannot be.
    pub stale_ms: u64,
}

impl Lifetime {
    /// Without a time in which it is stale.
    pub fn fresh(fresh_ms: u64) -> Self {
        Self {
            fresh_ms,
            stale_ms: 0,
        }
    }
}

/// What a caller finds.
#[derive(Debug)]
pub enum Lookup<V: Clone> {
    /// A value that may be used.
    Hit(V),
    /// A value that may be used, while the caller fetches a newer one.
    Stale(V, Fetch<V>),
    /// No value: the caller fetches it, and all others wait.
    Miss(Fetch<V>),
    /// Another caller fetches the value. When it has ended, look again.
    Pending(Pending),
    /// The last fetch has failed, not long ago.
    Failed,
}

/// A map of values that expire, shared by all workers.
pub struct ExpiringMap<V> {
    shards: Box<[Mutex<Shard<V>>]>,
    shard_bytes: usize,
    hasher: RandomState,
    evicted: Arc<AtomicU64>,
}

impl<V> std::fmt::Debug for ExpiringMap<V> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ExpiringMap").finish_non_exhaustive()
    }
}

impl<V: Clone> ExpiringMap<V> {
    /// A map that holds at most so many bytes, with the values' sizes as their owners state them.
    #[must_use]
    pub fn new(max_bytes: usize) -> Arc<Self> {
        let shards = std::iter::repeat_with(|| Mutex::new(Shard::default()));
        Arc::new(Self {
            shards: shards.take(SHARDS).collect(),
            shard_bytes: max_bytes / SHARDS,
            hasher: RandomState::new(),
            evicted: Arc::default(),
        })
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard<V>> {
        let index = self.hasher.hash_one(key) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a value, or says who fetches it.
    pub fn lookup(self: &Arc<Self>, key: &[u8], now_ms: u64) -> Lookup<V> {
        self.lookup_since(key, 0, now_ms)
    }

    /// Finds a value that was stored at `since_ms` or later. For callers that miss something in an older one, such as a key
    /// in a key set: with `now_ms` minus an interval, they cause one fetch in each interval.
    pub fn lookup_since(self: &Arc<Self>, key: &[u8], since_ms: u64, now_ms: u64) -> Lookup<V> {
        let mut shard = self.shard(key);
        let state = shard.state(key, since_ms, now_ms);
        let usable = match state {
            KeyState::Fresh(value) => return Lookup::Hit(value),
            KeyState::Stale(value) => Some(value),
            KeyState::Absent => None,
        };
        if let Some(flight) = shard.flight(key) {
            return match usable {
                Some(value) => Lookup::Hit(value),
                None => Lookup::Pending(Pending::new(flight)),
            };
        }
        if shard.has_failed(key, now_ms) {
            return usable.map_or(Lookup::Failed, Lookup::Hit);
        }
        let key: Arc<[u8]> = key.into();
        let flight = Arc::new(Flight::default());
        shard.begin(&key, &flight);
        drop(shard);
        let fetch = Fetch::new(self, key, flight);
        match usable {
            Some(value) => Lookup::Stale(value, fetch),
            None => Lookup::Miss(fetch),
        }
    }

    /// The value, if it may be used, fresh or stale. No caller becomes the one to fetch it.
    pub fn get(&self, key: &[u8], now_ms: u64) -> Option<V> {
        match self.shard(key).state(key, 0, now_ms) {
            KeyState::Fresh(value) | KeyState::Stale(value) => Some(value),
            KeyState::Absent => None,
        }
    }

    /// Stores a value of so many bytes.
    pub fn insert(&self, key: &[u8], value: V, bytes: usize, lifetime: Lifetime, now_ms: u64) {
        let evicted = self
            .shard(key)
            .insert(key.into(), value, bytes, lifetime, now_ms, self.shard_bytes);
        self.evicted.fetch_add(evicted, Ordering::Relaxed);
    }

    /// Removes a value. A fetch that is under way goes on.
    pub fn remove(&self, key: &[u8]) {
        self.shard(key).remove(key);
    }

    /// The bytes that it holds now.
    pub fn bytes(&self) -> usize {
        let locked = self
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        locked.map(|shard| shard.bytes()).sum()
    }

    /// How many values were removed that had not expired, to make room for others.
    pub fn evictions(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.evicted)
    }

    fn fail(&self, key: &Arc<[u8]>, retry_ms: u64, now_ms: u64) {
        let evicted = self.shard(key).fail(key, retry_ms, now_ms, self.shard_bytes);
        self.evicted.fetch_add(evicted, Ordering::Relaxed);
    }

    fn end(&self, key: &[u8], flight: &Arc<Flight>) {
        self.shard(key).end(key, flight);
        flight.land();
    }
}

#[cfg(test)]
mod tests;
