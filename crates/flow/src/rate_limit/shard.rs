//! The stored counters of windows: their form, their place, and their lifetime.

use super::{MAX_LIMITS, Window};
use crate::bounded_map::{Evictable, Eviction};
use crate::partition::Shard;

/// The calls of one window of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counter {
    /// When the window ends; milliseconds since the Unix epoch.
    pub end_ms: u64,
    /// Calls that passed.
    pub used: u64,
    /// The next call is refused: it is kept while there are counters that refuse none.
    pub is_exhausted: bool,
}

/// A counter as it is kept, in 16 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PackedCounter {
    end_ms: u64,
    /// Its highest bit means that the counter is exhausted.
    used: u64,
}

const EXHAUSTED: u64 = 1 << 63;

impl PackedCounter {
    /// When the window ends, and what is counted, as they are kept.
    pub(super) fn parts(self) -> (u64, u64) {
        (self.end_ms, self.used)
    }

    pub(super) fn from_parts(end_ms: u64, used: u64) -> Self {
        Self { end_ms, used }
    }
}

impl From<Counter> for PackedCounter {
    fn from(counter: Counter) -> Self {
        let used = counter.used.min(EXHAUSTED - 1);
        Self {
            end_ms: counter.end_ms,
            used: if counter.is_exhausted {
                used | EXHAUSTED
            } else {
                used
            },
        }
    }
}

impl From<PackedCounter> for Counter {
    fn from(stored: PackedCounter) -> Self {
        Self {
            end_ms: stored.end_ms,
            used: stored.used & !EXHAUSTED,
            is_exhausted: stored.used & EXHAUSTED != 0,
        }
    }
}

impl Evictable for PackedCounter {
    fn eviction(&self, now_ms: u64) -> Eviction {
        if self.end_ms <= now_ms {
            Eviction::Expired
        } else if self.used & EXHAUSTED != 0 {
            Eviction::Protected(self.end_ms)
        } else {
            // A flood of new keys displaces itself before the callers that were counted many times.
            Eviction::Candidate(self.used, self.end_ms)
        }
    }
}

impl Counter {
    /// Whether the window is still open. One that ends impossibly late is not either: the clock was set back. (Up to
    /// one length it is kept, because another worker may have read the clock a little later.)
    fn is_open(&self, window: Window, now_ms: u64) -> bool {
        self.end_ms > now_ms && self.end_ms - now_ms <= window.longest_ms().saturating_mul(2)
    }
}

/// The counter as it stands; a fresh one when its window is not open.
pub(super) fn read(shard: &Shard<'_, PackedCounter>, key: u128, window: Window, now_ms: u64) -> Counter {
    match shard.get(window.place(key)).map(|it| Counter::from(*it)) {
        Some(counter) if counter.is_open(window, now_ms) => counter,
        _ => Counter {
            end_ms: window.end_ms(now_ms),
            ..Counter::default()
        },
    }
}

/// The counter of the open window of a [`Window::Sliding`] of this length, and the calls of the window before that lie in
/// the span. Counters are kept for a window longer than they count.
pub(super) fn read_sliding(
    shard: &Shard<'_, PackedCounter>,
    key: u128,
    length_ms: u64,
    now_ms: u64,
) -> (Counter, f64) {
    let length = length_ms.max(1);
    let end_ms = Window::Sliding { length_ms }
        .end_ms(now_ms)
        .saturating_add(length);
    let counter = |end_ms: u64| {
        let counter = shard
            .get(sliding_place(key, length, end_ms))
            .map(|it| Counter::from(*it));
        counter.filter(|it| it.end_ms == end_ms).unwrap_or(Counter {
            end_ms,
            ..Counter::default()
        })
    };
    let remaining_ms = end_ms.saturating_sub(length).saturating_sub(now_ms);
    let share = remaining_ms as f64 / length as f64;
    let carried = counter(end_ms.saturating_sub(length)).used as f64 * share;
    (counter(end_ms), carried)
}

/// The counter of the window that ends then (of a sliding one, of that window of the clock); `None`: it is worth nothing
/// any more.
pub(super) fn read_until(
    shard: &Shard<'_, PackedCounter>,
    key: u128,
    window: Window,
    end_ms: u64,
    now_ms: u64,
) -> Option<Counter> {
    if let Window::Sliding { length_ms } = window {
        let length = length_ms.max(1);
        let kept_ms = end_ms.saturating_add(length);
        let known = shard
            .get(sliding_place(key, length, kept_ms))
            .map(|it| Counter::from(*it));
        let fresh = Counter {
            end_ms: kept_ms,
            ..Counter::default()
        };
        return (kept_ms > now_ms).then(|| known.filter(|it| it.end_ms == kept_ms).unwrap_or(fresh));
    }
    Some(read(shard, key, window, now_ms)).filter(|it| it.end_ms == end_ms && end_ms > now_ms)
}

/// Sets the counters of a key, one for each of `windows` (at most [`MAX_LIMITS`]), after making room for new ones. All
/// windows of a key are in one shard.
pub(super) fn write(
    shard: &mut Shard<'_, PackedCounter>,
    key: u128,
    windows: impl Iterator<Item = Window> + Clone,
    counters: &[Counter],
    now_ms: u64,
) {
    debug_assert!(windows.clone().count() <= MAX_LIMITS, "room is made for so many");
    let places = windows.zip(counters).map(|(window, counter)| match window {
        Window::Sliding { length_ms } => sliding_place(key, length_ms.max(1), counter.end_ms),
        window => window.place(key),
    });
    // Before anything is written, so that what is written now is not displaced by it.
    let new = places.clone().filter(|place| shard.get(*place).is_none()).count();
    shard.make_room(new, now_ms);
    for (place, counter) in places.zip(counters) {
        shard.set(place, (*counter).into());
    }
}

/// Of the windows of the clock, every second one has the same place.
fn sliding_place(key: u128, length: u64, end_ms: u64) -> u128 {
    let parity = u128::from((end_ms / length) & 1) << 64;
    Window::Sliding { length_ms: length }.place(key) ^ parity
}
