//! The most frequent of unboundedly many keys in bounded memory: the Space-Saving algorithm.
//!
//! A key that is not tracked takes the place of the least frequent one and starts with its count. Every key that makes
//! up more than one in `limit` of all is tracked. What is counted *for* a key is not in here: see [`crate::aggregate`].

use foldhash::HashMap;
use std::hash::Hash;

/// A key that stands for more calls than it was counted with is believed if it came so often: of a key that came once, its weight
/// says nothing.
const ENOUGH: u64 = 3;

struct Entry<K> {
    key: K,
    count: u64,
    /// The part of it that was the count of the key whose place it took.
    inherited: u64,
    /// How often the key was counted itself.
    times: u64,
    /// Its place in the heap, once there is one.
    place: usize,
}

/// The tracked keys.
pub struct HeavyHitters<K> {
    limit: usize,
    entries: Vec<Entry<K>>,
    /// Entries by their numbers, the least frequent first: no entry has a smaller count than the one above it. It is made
    /// when there is no more room: until then no one asks which is the least frequent.
    heap: Vec<usize>,
    known: HashMap<K, usize>,
}

impl<K: Clone + Eq + Hash> HeavyHitters<K> {
    /// Room for this many keys, at least one.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            entries: Vec::new(),
            heap: Vec::new(),
            known: HashMap::default(),
        }
    }

    /// Counts a key. Returns the key that lost its place to it.
    pub fn count(&mut self, key: &K, weight: u64) -> Option<K> {
        if let Some(number) = self.known.get(key) {
            let number = *number;
            let entry = &mut self.entries[number];
            entry.count = entry.count.saturating_add(weight);
            entry.times += 1;
            if !self.heap.is_empty() {
                self.sink(self.entries[number].place);
            }
            return None;
        }
        if self.entries.len() < self.limit {
            let number = self.entries.len();
            self.entries.push(Entry {
                key: key.clone(),
                count: weight,
                inherited: 0,
                times: 1,
                place: 0,
            });
            self.known.insert(key.clone(), number);
            if self.entries.len() == self.limit {
                self.order();
            }
            return None;
        }
        let least = self.heap[0];
        let entry = &mut self.entries[least];
        entry.inherited = entry.count;
        entry.times = 1;
        entry.count = entry.count.saturating_add(weight);
        let evicted = std::mem::replace(&mut entry.key, key.clone());
        self.known.remove(&evicted);
        self.known.insert(key.clone(), least);
        self.sink(0);
        Some(evicted)
    }

    /// Whether the count of a key is its own beyond doubt. It came often enough, or with no more weight than as often as it came.
    /// And once there is no room for all keys, more of the count is its own than was there before it.
    pub fn is_sure(&self, key: &K) -> bool {
        self.known.get(key).is_some_and(|number| {
            let entry = &self.entries[*number];
            let own = entry.count - entry.inherited;
            own >= entry.inherited && (entry.times >= ENOUGH || own <= entry.times)
        })
    }

    /// Whether there is no room for all keys any more.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.limit
    }

    /// The tracked keys, the most frequent first.
    pub fn by_count(&self) -> Vec<K> {
        let mut entries: Vec<&Entry<K>> = self.entries.iter().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        entries.into_iter().map(|entry| entry.key.clone()).collect()
    }

    /// How many keys are tracked.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is tracked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn count_at(&self, place: usize) -> u64 {
        self.entries[self.heap[place]].count
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.entries[self.heap[place]].place = place;
        }
    }

    /// Makes the heap: what is sorted is one.
    fn order(&mut self) {
        self.heap = (0..self.entries.len()).collect();
        self.heap.sort_by_key(|number| self.entries[*number].count);
        for (place, number) in self.heap.iter().enumerate() {
            self.entries[*number].place = place;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = [2 * place + 1, 2 * place + 2];
            let least = children.into_iter().filter(|child| *child < self.heap.len());
            match least.min_by_key(|child| self.count_at(*child)) {
                Some(child) if self.count_at(child) < self.count_at(place) => {
                    self.swap(place, child);
                    place = child;
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frequent_keys_stay_whatever_else_comes() {
        let mut tracked = HeavyHitters::new(50);
        for round in 0..100_000_u64 {
            // Ten keys make up half of all; the other half never comes twice.
            tracked.count(&(round % 10), 1);
            tracked.count(&(1_000 + round), 1);
            assert!(tracked.len() <= 50);
        }
        for key in 0..10 {
            assert_eq!(tracked.count(&key, 0), None, "{key} is tracked");
            let number = tracked.known[&key];
            let count = tracked.entries[number].count;
            assert!(
                (10_000..=10_000 + 200_000 / 50).contains(&count),
                "{key}: {count}"
            );
            assert!(tracked.is_sure(&key), "{key}");
        }
        let rare = (1_000..101_000).filter(|key| tracked.known.contains_key(key) && tracked.is_sure(key));
        assert_eq!(rare.count(), 0, "keys that came once are not frequent");
    }

    #[test]
    fn keys_are_sure_that_came_often_or_with_no_more_weight() {
        let mut tracked = HeavyHitters::new(2);
        tracked.count(&"a", 1);
        assert!(tracked.is_sure(&"a") && !tracked.is_sure(&"unknown") && !tracked.is_full());
        tracked.count(&"b", 5);
        assert!(!tracked.is_sure(&"b"), "it came once");
        for _ in 0..2 {
            tracked.count(&"b", 5);
        }
        for _ in 0..3 {
            tracked.count(&"c", 3);
        }
        let sure = ["a", "b", "c"].map(|key| tracked.is_sure(&key));
        assert_eq!(sure, [false, true, true], "of ten of c, one was of a");
        assert_eq!((tracked.by_count(), tracked.is_full()), (vec!["b", "c"], true));
    }

    proptest! {
        #[test]
        fn the_heap_stays_a_heap(keys in prop::collection::vec((0_u16..40, 1_u64..9), 0..300), limit in 1_usize..20) {
            let mut tracked = HeavyHitters::new(limit);
            let mut sum = 0;
            for (key, weight) in keys {
                tracked.count(&key, weight);
                sum += weight;
                for place in 1..tracked.heap.len() {
                    prop_assert!(tracked.count_at((place - 1) / 2) <= tracked.count_at(place));
                }
                prop_assert_eq!(tracked.heap.is_empty(), tracked.len() < limit);
                for (number, entry) in tracked.entries.iter().enumerate() {
                    prop_assert!(tracked.heap.is_empty() || tracked.heap[entry.place] == number);
                    prop_assert_eq!(tracked.known[&entry.key], number);
                }
                prop_assert_eq!(tracked.known.len(), tracked.entries.len());
            }
            prop_assert_eq!(tracked.entries.iter().map(|entry| entry.count).sum::<u64>(), sum);
        }
    }
}
