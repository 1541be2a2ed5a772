//! One 64th of the limiter's counters, behind one lock: a bounded map that forgets what is over.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{MAX_LIMITS, Window};

/// The calls of one window of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Counter {
    /// When the window ends; milliseconds since the Unix epoch.
    pub end_ms: u64,
    /// Calls that passed.
    pub used: u64,
}

impl Counter {
    /// Whether the window is still open. One that ends impossibly late is not either: the clock was set back. (Up to
    /// one length it is kept, because another worker may have read the clock a little later.)
    fn is_open(&self, window: Window, now_ms: u64) -> bool {
        self.end_ms > now_ms && self.end_ms - now_ms <= window.longest_ms().saturating_mul(2)
    }
}

/// The counters, by key and window. All windows of a key are in one shard.
#[derive(Debug)]
pub(super) struct Shard {
    counters: HashMap<u128, Counter, BuildHasherDefault<KeyHasher>>,
    capacity: usize,
}

impl Shard {
    /// A shard of at most `capacity` counters, though never of less than twice what one decision needs.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            counters: HashMap::default(),
            capacity: capacity.max(2 * MAX_LIMITS),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.counters.len()
    }

    /// The counter as it stands; a fresh one when its window is not open.
    pub(super) fn read(&self, key: u128, window: Window, now_ms: u64) -> Counter {
        match self.counters.get(&window.place(key)) {
            Some(counter) if counter.is_open(window, now_ms) => *counter,
            _ => Counter {
                end_ms: window.end_ms(now_ms),
                used: 0,
            },
        }
    }

    /// The counter of the open window of a [`Window::Sliding`] of this length, and the calls of the window before
    /// that lie in the span. Counters are kept for a window longer than they count.
    pub(super) fn read_sliding(&self, key: u128, length_ms: u64, now_ms: u64) -> (Counter, f64) {
        let length = length_ms.max(1);
        let end_ms = Window::Sliding { length_ms }
            .end_ms(now_ms)
            .saturating_add(length);
        let used = |end_ms: u64| {
            let counter = self.counters.get(&sliding_place(key, length, end_ms));
            counter.filter(|it| it.end_ms == end_ms).map_or(0, |it| it.used)
        };
        let remaining_ms = end_ms.saturating_sub(length).saturating_sub(now_ms);
        let share = remaining_ms as f64 / length as f64;
        let carried = used(end_ms.saturating_sub(length)) as f64 * share;
        let used = used(end_ms);
        (Counter { end_ms, used }, carried)
    }

    /// Sets the counters of a key, one for each of `windows` (at most [`MAX_LIMITS`]), after making room when there is
    /// none for new ones.
    pub(super) fn write(
        &mut self,
        key: u128,
        windows: impl Iterator<Item = Window> + Clone,
        counters: &[Counter],
        now_ms: u64,
    ) {
        let places = windows.zip(counters).map(|(window, counter)| match window {
            Window::Sliding { length_ms } => sliding_place(key, length_ms.max(1), counter.end_ms),
            window => window.place(key),
        });
        // Before anything is written, so that what is written now is not displaced by it.
        if self.counters.len() + MAX_LIMITS > self.capacity
            && !places.clone().all(|place| self.counters.contains_key(&place))
        {
            self.make_room(now_ms);
        }
        for (place, counter) in places.zip(counters) {
            self.counters.insert(place, *counter);
        }
    }

    /// Frees an eighth of the shard, so that the work of going through it is shared by many new keys.
    fn make_room(&mut self, now_ms: u64) {
        self.counters.retain(|_, counter| counter.end_ms > now_ms);
        let kept = self.capacity - (self.capacity / 8).max(MAX_LIMITS);
        let Some(excess) = self.counters.len().checked_sub(kept).filter(|excess| *excess > 0) else {
            return;
        };
        // The order of counters is that of their ends, then of their calls: who floods the limiter with new keys
        // displaces the flood before the callers that were counted many times in the same window.
        let mut order: Vec<Counter> = self.counters.values().copied().collect();
        let (before, &mut last, _) = order.select_nth_unstable(excess - 1);
        let mut equals = excess - before.iter().filter(|counter| **counter < last).count();
        self.counters.retain(|_, counter| {
            let goes = *counter < last || (*counter == last && equals > 0);
            equals -= usize::from(goes && *counter == last);
            !goes
        });
    }
}

/// Of the windows of the clock, every second one has the same place.
fn sliding_place(key: u128, length: u64, end_ms: u64) -> u128 {
    let parity = u128::from((end_ms / length) & 1) << 64;
    Window::Sliding { length_ms: length }.place(key) ^ parity
}

/// A key is a strong hash already; this only folds it to the 64 bits that the map wants.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64 ^ (key >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Never on the path of a `u128`, but what a hasher must be able to do.
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
