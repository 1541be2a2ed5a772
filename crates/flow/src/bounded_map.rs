//! A map of bounded size: expired entries are removed as new keys arrive, a few slots at a time; if the map is still
//! full, a value of little importance makes room. To make room for a key, only a few dozen slots are checked, however
//! large the map is, so that nothing holds the map's lock for long.
//!
//! It is an open-addressing table with linear probing. Keys are hashes already.

/// Slots that are looked at to make room for one key.
const PROBES: usize = 24;
/// Slots that are looked at for each new key while there is room.
const SWEEP: usize = 2;
const EMPTY: u128 = u128::MAX;
const FIRST_SLOTS: usize = 16;

/// What happens to a value when room is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// It means nothing any more.
    Expired,
    /// It may go; those with the least number first.
    Candidate(u64, u64),
    /// It refuses calls: it stays while there is another one that may go.
    Protected(u64),
}

/// A value of a [`BoundedMap`].
pub(crate) trait Evictable: Copy + Default {
    fn eviction(&self, now: u64) -> Eviction;
}

#[derive(Debug)]
pub(crate) struct BoundedMap<V> {
    /// A power of two of them, or none.
    slots: Vec<(u128, V)>,
    len: usize,
    /// The slot that is looked at next when room is wanted.
    hand: usize,
    /// Slots that were looked at since a value was removed or could have been.
    fruitless: usize,
}

/// What was done to make room.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Values that were over.
    pub expired: usize,
    /// Values that still counted.
    pub evicted: usize,
}

impl<V> Default for BoundedMap<V> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
            hand: 0,
            fruitless: 0,
        }
    }
}

impl<V> BoundedMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many slots its table has.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }
}

impl<V: Evictable> BoundedMap<V> {
    /// All keys with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, V)> {
        self.slots.iter().filter(|(key, _)| *key != EMPTY).copied()
    }

    fn home(&self, key: u128) -> usize {
        let folded = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (folded >> 32) as usize & (self.slots.len() - 1)
    }

    /// The slot of the key, or the free slot for it.
    fn find(&self, key: u128) -> Result<usize, usize> {
        let mut index = self.home(key);
        loop {
            match self.slots[index].0 {
                EMPTY => return Err(index),
                found if found == key => return Ok(index),
                _ => index = (index + 1) & (self.slots.len() - 1),
            }
        }
    }

    pub(crate) fn get(&self, key: u128) -> Option<&V> {
        if self.len == 0 {
            return None;
        }
        let index = self.find(stored(key)).ok()?;
        Some(&self.slots[index].1)
    }

    /// Sets the value of a key, whatever the map's capacity: see [`BoundedMap::make_room`]. Whether the key is new.
    pub(crate) fn insert(&mut self, key: u128, value: V) -> bool {
        let key = stored(key);
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            match self.slots.is_empty() {
                false if self.find(key).is_ok() => {}
                _ => self.grow(),
            }
        }
        match self.find(key) {
            Ok(index) => {
                self.slots[index].1 = value;
                false
            }
            Err(index) => {
                self.slots[index] = (key, value);
                self.len += 1;
                true
            }
        }
    }

    pub(crate) fn remove(&mut self, key: u128) -> bool {
        if self.len == 0 {
            return false;
        }
        let found = self.find(stored(key));
        found.map(|index| self.remove_at(index)).is_ok()
    }

    /// Frees a slot; those that stand behind it move up, so that all are still found.
    fn remove_at(&mut self, mut index: usize) {
        let mask = self.slots.len() - 1;
        let mut next = (index + 1) & mask;
        while self.slots[next].0 != EMPTY {
            let home = self.home(self.slots[next].0);
            // It may move unless its home lies behind the free slot.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(index) & mask {
                self.slots[index] = self.slots[next];
                index = next;
            }
            next = (next + 1) & mask;
        }
        self.slots[index].0 = EMPTY;
        self.len -= 1;
    }

    /// Twice as many slots.
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![(EMPTY, V::default()); slots]);
        self.hand = 0;
        for (key, value) in old.into_iter().filter(|(key, _)| *key != EMPTY) {
            if let Err(index) = self.find(key) {
                self.slots[index] = (key, value);
            }
        }
    }

    /// Makes room for one key if the map holds at most `capacity`. While every checked value of one round is protected,
    /// the map holds a few keys more; a map that holds too many shrinks by one with each new key.
    pub(crate) fn make_room(&mut self, capacity: usize, now: u64) -> Removed {
        let mut removed = Removed::default();
        if self.slots.is_empty() {
            return removed;
        }
        let is_above = self.len > capacity;
        self.sweep(capacity, now, &mut removed);
        if is_above {
            self.sweep(capacity, now, &mut removed);
        }
        removed
    }

    /// Looks at up to so many slots from the hand on, removes what is over, and frees a table that is empty then. Gives how
    /// many slots are behind the hand by it, and how many values were removed.
    pub(crate) fn remove_expired(&mut self, slots: usize, now: u64) -> (usize, usize) {
        let (mut passed, mut expired) = (0, 0);
        while self.len > 0 && passed < slots.min(self.slots.len()) {
            let (key, value) = self.slots[self.hand];
            if key != EMPTY && value.eviction(now) == Eviction::Expired {
                // Another value may have moved here: the hand stays.
                self.remove_at(self.hand);
                expired += 1;
            } else {
                self.hand = (self.hand + 1) & (self.slots.len() - 1);
                passed += 1;
            }
        }
        if self.len == 0 {
            *self = Self::default();
        }
        (passed, expired)
    }

    /// Checks a few slots, removes expired entries, and evicts at most one value if that made no room.
    fn sweep(&mut self, capacity: usize, now: u64, removed: &mut Removed) {
        let is_full = self.len >= capacity;
        let mask = self.slots.len() - 1;
        let (mut least, mut soonest) = (None, None);
        let expired_before = removed.expired;
        let probes = if is_full { PROBES } else { SWEEP };
        for _ in 0..probes {
            let (key, value) = self.slots[self.hand];
            if key != EMPTY {
                match value.eviction(now) {
                    Eviction::Expired => {
                        // Another value may have moved here: the hand stays.
                        self.remove_at(self.hand);
                        removed.expired += 1;
                        continue;
                    }
                    Eviction::Candidate(first, second) => keep_lower(&mut least, (first, second), key),
                    Eviction::Protected(end) => keep_lower(&mut soonest, (end, 0), key),
                }
            }
            self.hand = (self.hand + 1) & mask;
        }
        if !is_full || removed.expired > expired_before {
            self.fruitless = 0;
            return;
        }
        self.fruitless += probes;
        let goes = match (least, soonest) {
            (Some((_, key)), _) => {
                self.fruitless = 0;
                Some(key)
            }
            // All that there is refuses calls.
            (None, Some((_, key))) if self.fruitless >= self.slots.len() => Some(key),
            _ => None,
        };
        removed.evicted += usize::from(goes.is_some_and(|key| self.remove(key)));
    }
}

/// The keys of lowest rank seen so far.
type Lowest = Option<((u64, u64), u128)>;

fn keep_lower(lowest: &mut Lowest, rank: (u64, u64), key: u128) {
    if lowest.is_none_or(|(known, _)| rank < known) {
        *lowest = Some((rank, key));
    }
}

/// A key in the form of the table, where one number means an empty slot.
fn stored(key: u128) -> u128 {
    if key == EMPTY { 0 } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// When it is over, how much it counts, whether it refuses.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct Value(u64, u64, bool);

    impl Evictable for Value {
        fn eviction(&self, now: u64) -> Eviction {
            match self {
                Self(end, ..) if *end <= now => Eviction::Expired,
                Self(end, _, true) => Eviction::Protected(*end),
                Self(end, count, false) => Eviction::Candidate(*count, *end),
            }
        }
    }

    fn mixed(number: u64) -> u128 {
        u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    #[test]
    fn eviction_keeps_protected_values_while_others_may_go() {
        let mut map = BoundedMap::default();
        for number in 0..900 {
            map.insert(mixed(number), Value(10, 5, true));
        }
        for number in 900..1_000 {
            map.insert(mixed(number), Value(10, 1, false));
        }
        // A flood: each of its keys makes room for itself. Of those that were there, only the unprotected may go.
        for number in 1_000..20_000 {
            map.make_room(1_000, 0);
            map.insert(mixed(number), Value(10, 1, false));
            assert!(map.len() <= 1_100, "{} at {number}", map.len());
        }
        for number in 0..900 {
            assert!(map.get(mixed(number)).is_some(), "{number}");
        }
    }

    #[test]
    fn eviction_ends_where_all_values_are_protected() {
        let mut map = BoundedMap::default();
        for number in 0..20_000 {
            map.make_room(1_000, 0);
            map.insert(mixed(number), Value(10 + number, 5, true));
            assert!(map.len() <= 1_100, "{} at {number}", map.len());
        }
    }

    #[test]
    fn expired_values_go_before_all_others() {
        let mut map = BoundedMap::default();
        for number in 0..1_000 {
            map.insert(mixed(number), Value(10 + 10 * (number % 2), number, false));
        }
        let mut removed = Removed::default();
        for number in 1_000..1_500 {
            let now = map.make_room(1_000, 10);
            removed.expired += now.expired;
            removed.evicted += now.evicted;
            map.insert(mixed(number), Value(20, 5_000, false));
        }
        assert!(removed.expired >= 400 && removed.evicted < 20, "{removed:?}");
    }

    #[test]
    fn a_table_above_its_capacity_shrinks() {
        let mut map = BoundedMap::default();
        for number in 0..1_000 {
            map.insert(mixed(number), Value(10, 1, false));
        }
        let mut removed = 0;
        for number in 1_000..3_000 {
            removed += map.make_room(100, 0).evicted;
            map.insert(mixed(number), Value(10, 1, false));
        }
        assert_eq!(map.len(), 3_000 - removed);
        assert!(map.len() <= 110, "{}", map.len());
    }

    proptest! {
        /// Against the standard library's map.
        #[test]
        fn agrees_with_a_hash_map(steps in prop::collection::vec((0u8..4, 0u128..40), 1..300)) {
            let (mut map, mut model) = (BoundedMap::default(), HashMap::new());
            for (step, key) in steps {
                // Keys that share homes, and the one that stands for an empty slot.
                let key = if key == 39 { u128::MAX } else { (key + 1) << 64 };
                match step {
                    0 => prop_assert_eq!(map.remove(key), model.remove(&key).is_some()),
                    number => {
                        let value = Value(1, number.into(), false);
                        prop_assert_eq!(map.insert(key, value), model.insert(key, value).is_none());
                    }
                }
                prop_assert_eq!(map.len(), model.len());
                for (key, value) in &model {
                    prop_assert_eq!(map.get(*key), Some(value));
                }
            }
        }
    }
}
