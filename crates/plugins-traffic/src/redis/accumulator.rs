//! Counts that are kept locally and synchronized with a Redis from time to time.
//!
//! A call is decided by this gateway's own counters, which is as fast as without a Redis. Its count is also recorded,
//! and added to the common count after a while. The Redis answers with the count of all gateways, which replaces the
//! local count. While the Redis is unavailable, recorded counts wait as long as their window lasts.

use super::{Shared, windows};
use std::collections::HashMap;
use std::fmt;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_flow::rate_limit::{Counters, Window, WindowLimit};
use weir_plugin::{RedisAccumulator, RedisCall, RedisServer};

const SHARDS: usize = 16;
/// The most counters that wait for synchronization in each shard. Others are counted locally only.
const MAX_NOTES: usize = 16 * 1024;

/// A window of a counter, with its end if the end is a time of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct WindowKey {
    key: u128,
    window: Window,
    end_ms: u64,
}

/// What was counted since the last settlement.
struct PendingCount {
    name: Arc<[u8]>,
    count: u64,
    /// Calls that pass in the window.
    limit: u64,
    /// From then on it is not needed.
    until_ms: u64,
}

type PendingCounts = HashMap<WindowKey, PendingCount>;

/// The counts of one instance.
pub(crate) struct Accumulator {
    shared: Shared,
    counters: Counters,
    delay: Duration,
    shards: [Mutex<PendingCounts>; SHARDS],
    under_way: Mutex<HashMap<u64, (WindowKey, PendingCount)>>,
    /// Whether the engine knows that there are counts to synchronize.
    is_running: AtomicBool,
}

impl fmt::Debug for Accumulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Ledger({:?})", self.shared.server)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves whole entries.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the counter of a window is worth nothing any more.
fn until(window: Window, end_ms: u64) -> u64 {
    match window {
        // It is of use for the window after it.
        Window::Sliding { length_ms } => end_ms.saturating_add(length_ms),
        _ => end_ms,
    }
}

impl Accumulator {
    /// Nothing was counted yet.
    pub(crate) fn new(shared: Shared, counters: Counters, delay: Duration) -> Self {
        Self {
            shared,
            counters,
            delay,
            shards: Default::default(),
            under_way: Mutex::default(),
            is_running: AtomicBool::new(false),
        }
    }

    fn shard(&self, key: u128) -> MutexGuard<'_, PendingCounts> {
        lock(&self.shards[key as usize % SHARDS])
    }

    /// Records a count for these windows. `name` is called once per synchronization.
    pub(crate) fn note(
        &self,
        key: u128,
        limits: &[WindowLimit],
        count: u64,
        now_ms: u64,
        name: impl FnOnce() -> Vec<u8>,
    ) {
        let mut notes = self.shard(key);
        let (mut make, mut made) = (Some(name), None::<Arc<[u8]>>);
        for limit in limits {
            let end_ms = limit.window.end_ms(now_ms);
            let place = WindowKey {
                key,
                window: limit.window,
                end_ms: if matches!(limit.window, Window::FromFirst { .. }) {
                    0
                } else {
                    end_ms
                },
            };
            if let Some(note) = notes.get_mut(&place) {
                note.count += count;
            } else if notes.len() < MAX_NOTES {
                if let Some(make) = make.take() {
                    made = Some(make().into());
                }
                let note = PendingCount {
                    name: made.clone().unwrap_or_default(),
                    count,
                    limit: limit.limit,
                    until_ms: until(limit.window, end_ms),
                };
                notes.insert(place, note);
            }
        }
    }

    /// Whether the engine must be notified that there are counts to synchronize.
    pub(crate) fn starts(&self) -> bool {
        !self.is_running.load(Ordering::Relaxed) && !self.is_running.swap(true, Ordering::AcqRel)
    }
}

impl RedisAccumulator for Accumulator {
    fn server(&self) -> &Arc<RedisServer> {
        &self.shared.server
    }

    fn delay(&self) -> Duration {
        self.delay
    }

    fn due(&self, now_ms: u64) -> Vec<(u64, RedisCall)> {
        let mut under_way = lock(&self.under_way);
        under_way.clear();
        let mut due = Vec::new();
        for shard in &self.shards {
            for (place, note) in take(&mut *lock(shard)) {
                if note.until_ms <= now_ms {
                    continue;
                }
                let number = due.len() as u64;
                let of = (&*note.name, place.window, place.end_ms);
                due.push((
                    number,
                    windows::add(&self.shared, std::iter::once(of), note.count),
                ));
                under_way.insert(number, (place, note));
            }
        }
        due
    }

    fn complete(&self, number: u64, answer: Option<&[i64]>, now_ms: u64) {
        let Some((place, note)) = lock(&self.under_way).remove(&number) else {
            return;
        };
        let mut notes = self.shard(place.key);
        let Some((used, left)) = answer.and_then(|numbers| windows::added(numbers).next()) else {
            // It counts with the next settlement.
            if let Some(more) = notes.get_mut(&place) {
                more.count += note.count;
            } else if notes.len() < MAX_NOTES {
                notes.insert(place, note);
            }
            return;
        };
        let since = notes.get(&place).map_or(0, |more| more.count);
        let end_ms = match place.window {
            Window::FromFirst { .. } => now_ms.saturating_add(left.unwrap_or(0)),
            _ => place.end_ms,
        };
        let used = used.saturating_add(since);
        let limit = WindowLimit {
            window: place.window,
            limit: note.limit,
        };
        self.counters.set(place.key, limit, used, end_ms, now_ms);
    }

    fn finish(&self) -> bool {
        let is_empty = || self.shards.iter().all(|shard| lock(shard).is_empty());
        if !is_empty() {
            return true;
        }
        self.is_running.store(false, Ordering::Release);
        // A call that recorded a count just before may have seen that the engine was already notified.
        !is_empty() && !self.is_running.swap(true, Ordering::AcqRel)
    }
}
