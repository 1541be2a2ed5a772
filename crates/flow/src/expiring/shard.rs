//! A part of the map: its values in the order in which they came, within its share of the bytes.

use super::Lifetime;
use super::fetch::Flight;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What a value costs besides its own bytes and its key: its places in the table and in the order.
const OVERHEAD: usize = 192;
/// Values that are looked at for each new one, whether they have expired.
const SWEEP: usize = 2;
/// Values that stay for now because they were used, for each new one.
const SPARED: usize = 32;

/// A part of an [`ExpiringMap`](super::ExpiringMap).
pub(super) struct Shard<V> {
    entries: HashMap<Arc<[u8]>, Entry<V>>,
    flights: HashMap<Arc<[u8]>, Arc<Flight>>,
    /// The keys as they came, each with its entry's number. Removed entries leave theirs behind for a while.
    order: VecDeque<(Arc<[u8]>, u64)>,
    bytes: usize,
    last_number: u64,
}

impl<V> Default for Shard<V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            flights: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            last_number: 0,
        }
    }
}

struct Entry<V> {
    /// `None`: only that the last fetch has failed.
    value: Option<V>,
    stored_ms: u64,
    fresh_until_ms: u64,
    gone_at_ms: u64,
    /// After a fetch that has failed: the next one is not before.
    retry_at_ms: u64,
    bytes: usize,
    number: u64,
    was_used: bool,
}

impl<V> Entry<V> {
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.gone_at_ms && now_ms >= self.retry_at_ms
    }
}

/// What is known of a key.
pub(super) enum KeyState<V> {
    Fresh(V),
    Stale(V),
    Absent,
}

impl<V: Clone> Shard<V> {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn state(&mut self, key: &[u8], since_ms: u64, now_ms: u64) -> KeyState<V> {
        let Some(entry) = self.entries.get_mut(key) else {
            return KeyState::Absent;
        };
        entry.was_used = true;
        let is_usable = now_ms < entry.gone_at_ms && entry.stored_ms >= since_ms;
        match entry.value.as_ref().filter(|_| is_usable) {
            Some(value) if now_ms < entry.fresh_until_ms => KeyState::Fresh(value.clone()),
            Some(value) => KeyState::Stale(value.clone()),
            None => KeyState::Absent,
        }
    }

    pub(super) fn has_failed(&self, key: &[u8], now_ms: u64) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| now_ms < entry.retry_at_ms)
    }

    pub(super) fn flight(&self, key: &[u8]) -> Option<Arc<Flight>> {
        self.flights.get(key).cloned()
    }

    pub(super) fn begin(&mut self, key: &Arc<[u8]>, flight: &Arc<Flight>) {
        self.flights.insert(Arc::clone(key), Arc::clone(flight));
    }

    pub(super) fn end(&mut self, key: &[u8], flight: &Arc<Flight>) {
        if self.flights.get(key).is_some_and(|it| Arc::ptr_eq(it, flight)) {
            self.flights.remove(key);
        }
    }

    /// Stores a value. Gives how many had to go that had not expired.
    pub(super) fn insert(
        &mut self,
        key: Arc<[u8]>,
        value: V,
        bytes: usize,
        lifetime: Lifetime,
        now_ms: u64,
        most: usize,
    ) -> u64 {
        let fresh_until_ms = now_ms.saturating_add(lifetime.fresh_ms);
        let entry = Entry {
            value: Some(value),
            stored_ms: now_ms,
            fresh_until_ms,
            gone_at_ms: fresh_until_ms.saturating_add(lifetime.stale_ms),
            retry_at_ms: 0,
            bytes: bytes + key.len() + OVERHEAD,
            number: 0,
            was_used: false,
        };
        self.put(key, entry, now_ms, most)
    }

    /// Notes a fetch that has failed; a value that is there stays as it is.
    pub(super) fn fail(&mut self, key: &Arc<[u8]>, retry_ms: u64, now_ms: u64, most: usize) -> u64 {
        let retry_at_ms = now_ms.saturating_add(retry_ms);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.retry_at_ms = retry_at_ms;
            return 0;
        }
        let entry = Entry {
            value: None,
            stored_ms: now_ms,
            fresh_until_ms: 0,
            gone_at_ms: 0,
            retry_at_ms,
            bytes: key.len() + OVERHEAD,
            number: 0,
            was_used: false,
        };
        self.put(Arc::clone(key), entry, now_ms, most)
    }

    fn put(&mut self, key: Arc<[u8]>, mut entry: Entry<V>, now_ms: u64, most: usize) -> u64 {
        self.remove(&key);
        if entry.bytes > most {
            return 0;
        }
        self.last_number += 1;
        entry.number = self.last_number;
        self.bytes += entry.bytes;
        self.order.push_back((Arc::clone(&key), entry.number));
        self.entries.insert(key, entry);
        self.sweep(now_ms);
        self.make_room(most)
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
        if self.order.len() > self.entries.len() * 2 + 16 {
            let entries = &self.entries;
            let is_there = |key: &[u8], number| entries.get(key).is_some_and(|it| it.number == number);
            self.order.retain(|(key, number)| is_there(key, *number));
        }
    }

    /// Removes the oldest values that have expired.
    fn sweep(&mut self, now_ms: u64) {
        for _ in 0..SWEEP {
            let Some((key, number)) = self.order.pop_front() else {
                return;
            };
            match self.entries.get(&key).filter(|entry| entry.number == number) {
                Some(entry) if entry.is_over(now_ms) => self.remove(&key),
                Some(_) => return self.order.push_front((key, number)),
                None => {}
            }
        }
    }

    /// Removes the oldest values until the rest fits; some that were used stay for another round.
    fn make_room(&mut self, most: usize) -> u64 {
        let (mut evicted, mut spared) = (0, 0);
        while self.bytes > most {
            let Some((key, number)) = self.order.pop_front() else {
                break;
            };
            match self.entries.get_mut(&key).filter(|entry| entry.number == number) {
                Some(entry) if entry.was_used && spared < SPARED => {
                    entry.was_used = false;
                    spared += 1;
                    self.order.push_back((key, number));
                }
                Some(_) => {
                    self.remove(&key);
                    evicted += 1;
                }
                None => {}
            }
        }
        evicted
    }
}
