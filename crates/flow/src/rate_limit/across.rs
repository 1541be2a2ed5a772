//! Limits over several gateways: what each gateway has counted, and what it learns of the others.
//!
//! A gateway decides by its own counters ([`SharedCounts`]). Again and again it reports what it has counted in each open
//! window, and a [`CountExchange`] answers with what the others have counted there; its own counters then hold both. What
//! is reported is a sum, not a difference: a report that is lost or comes twice changes nothing.
//!
//! How wrong it can be: a call that one gateway has counted is known to the others after two intervals between reports
//! and two round trips at most. So beyond a limit pass at most the calls that come in that time, and never more than the
//! limit at each gateway. A gateway without contact goes on with what it knows in windows that are open; in the next ones
//! it lets its share pass, the limit divided by the number of gateways.
//!
//! **What it is not**: it moves nothing between gateways; that is for its callers.

mod exchange;

pub use exchange::{CountExchange, CountUpdate};

use super::{Counters, Window, WindowLimit};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 16;
/// Windows that are shared at most, in each shard. Others are counted by each gateway for itself.
const MAX_NOTES: usize = 16 * 1024;

/// What a window of a counter is called on all gateways: its name, and when it ends.
pub type WindowName = (u128, u64);

/// What one gateway has counted in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Which window.
    pub window: WindowName,
    /// From then on it is worth nothing; milliseconds since the Unix epoch.
    pub until_ms: u64,
    /// The calls.
    pub count: u64,
}

/// A window of a counter in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct WindowKey {
    key: u128,
    window: Window,
    end_ms: u64,
}

/// What is known of a window.
struct WindowCount {
    name: u128,
    counters: Counters,
    limit: u64,
    until_ms: u64,
    own: u64,
    reported: u64,
    /// Of the calls in the counter, those of the others.
    others: u64,
    /// Those of the others are only assumed: there was no contact.
    is_assumed: bool,
}

/// Notes of some counters. Calls lock it for a moment each; a report locks it only if there is something to report, and
/// looks at no note that has not changed.
struct Shard {
    notes: Mutex<WindowCounts>,
    /// Whether calls have counted since the last report.
    has_news: AtomicBool,
    /// When the first of the notes is worth nothing any more; milliseconds since the Unix epoch.
    first_over_ms: AtomicU64,
}

#[derive(Default)]
struct WindowCounts {
    by_place: HashMap<WindowKey, WindowCount>,
    /// Windows in which calls have counted since the last report.
    counted: Vec<WindowKey>,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            notes: Mutex::default(),
            has_news: AtomicBool::new(false),
            first_over_ms: AtomicU64::new(u64::MAX),
        }
    }
}

impl Shard {
    /// Adds what is to be reported, and the windows that are over, which it forgets.
    fn report(&self, all: bool, now_ms: u64, counts: &mut Vec<Count>, over: &mut Vec<WindowName>) {
        let is_over = self.first_over_ms.load(Ordering::Relaxed) <= now_ms;
        if !all && !is_over && !self.has_news.load(Ordering::Relaxed) {
            return;
        }
        let mut notes = lock(&self.notes);
        // Calls set it while they hold the lock.
        self.has_news.store(false, Ordering::Relaxed);
        let WindowCounts { by_place, counted } = &mut *notes;
        if is_over {
            let mut first_over_ms = u64::MAX;
            by_place.retain(|place, note| {
                let is_open = note.until_ms > now_ms;
                match is_open {
                    true => first_over_ms = first_over_ms.min(note.until_ms),
                    false => over.push((note.name, place.end_ms)),
                }
                is_open
            });
            self.first_over_ms.store(first_over_ms, Ordering::Relaxed);
        }
        let mut tell = |place: &WindowKey, note: &mut WindowCount| {
            note.reported = note.own;
            counts.push(Count {
                window: (note.name, place.end_ms),
                until_ms: note.until_ms,
                count: note.own,
            });
        };
        if all {
            counted.clear();
            by_place.iter_mut().for_each(|(place, note)| tell(place, note));
            return;
        }
        for place in counted.drain(..) {
            // A window that is over is gone.
            if let Some(note) = by_place.get_mut(&place).filter(|note| note.own > note.reported) {
                tell(&place, note);
            }
        }
    }
}

impl WindowCounts {
    /// A call has counted in a window: it is to be reported, if it is not yet.
    fn count(&mut self, place: WindowKey, count: u64) -> bool {
        let Some(note) = self.by_place.get_mut(&place) else {
            return false;
        };
        if note.own == note.reported && count > 0 {
            self.counted.push(place);
        }
        note.own = note.own.saturating_add(count);
        true
    }
}

/// The counts of this gateway that it shares with others.
pub struct SharedCounts {
    shards: [Shard; SHARDS],
    names: Mutex<HashMap<WindowName, WindowKey>>,
    /// How many gateways share limits, while there is no contact with them; otherwise 0.
    cut_off_of: AtomicU64,
    /// When this process began to count: windows that were open then may have been counted in before.
    began_ms: AtomicU64,
    has_counted: AtomicBool,
}

impl Default for SharedCounts {
    fn default() -> Self {
        Self {
            shards: Default::default(),
            names: Mutex::default(),
            cut_off_of: AtomicU64::new(0),
            began_ms: AtomicU64::new(u64::MAX),
            has_counted: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for SharedCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = lock(&self.names).len();
        write!(formatter, "SharedCounts({count} windows)")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves whole entries.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedCounts {
    fn shard(&self, key: u128) -> &Shard {
        &self.shards[key as usize % SHARDS]
    }

    /// Records a call that passed and is counted in `counters`, with its weight. `name` returns the key's name on all
    /// gateways, and is called once per window. Windows that begin with a call are not shared: each gateway would have
    /// its own.
    pub fn note(
        &self,
        counters: &Counters,
        key: u128,
        limits: &[WindowLimit],
        count: u64,
        now_ms: u64,
        name: impl FnOnce() -> u128,
    ) {
        let shard = self.shard(key);
        let mut notes = lock(&shard.notes);
        let (mut make, mut made) = (Some(name), 0);
        for (at, limit) in limits.iter().enumerate() {
            // Two limits of one window have one counter.
            let is_noted = limits[..at].iter().any(|it| it.window == limit.window);
            if is_noted || matches!(limit.window, Window::FromFirst { .. }) {
                continue;
            }
            let place = WindowKey {
                key,
                window: limit.window,
                end_ms: limit.window.end_ms(now_ms),
            };
            if notes.count(place, count) {
                shard.has_news.store(true, Ordering::Relaxed);
            } else if notes.by_place.len() < MAX_NOTES {
                if let Some(make) = make.take() {
                    made = make();
                }
                let note = self.first(counters, place, *limit, (made, count), now_ms);
                lock(&self.names).insert((note.name, place.end_ms), place);
                shard.first_over_ms.fetch_min(note.until_ms, Ordering::Relaxed);
                shard.has_news.store(true, Ordering::Relaxed);
                notes.counted.push(place);
                notes.by_place.insert(place, note);
                self.has_counted.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The note of a call that is the first of this gateway in a window.
    fn first(
        &self,
        counters: &Counters,
        place: WindowKey,
        WindowLimit { limit, .. }: WindowLimit,
        (name, count): (u128, u64),
        now_ms: u64,
    ) -> WindowCount {
        let began_ms = self.began_ms.fetch_min(now_ms, Ordering::Relaxed).min(now_ms);
        let cut_off_of = self.cut_off_of.load(Ordering::Relaxed);
        let mut note = WindowCount {
            name: place.window.place(name),
            counters: counters.clone(),
            limit,
            until_ms: match place.window {
                // It is of use for the window after it.
                Window::Sliding { length_ms } => place.end_ms.saturating_add(length_ms),
                _ => place.end_ms,
            },
            own: count,
            reported: 0,
            others: 0,
            is_assumed: false,
        };
        if cut_off_of > 1 {
            note.is_assumed = true;
            note.change_others(place, limit - limit.div_ceil(cut_off_of), now_ms);
        } else if place.window.end_ms(began_ms) == place.end_ms {
            // What was counted before a restart, by this gateway and the others.
            let used = counters.used_until(place.key, place.window, place.end_ms, now_ms);
            note.others = used.saturating_sub(count);
        }
        note
    }

    /// What is to be reported: what was counted since the last time, or in all open windows. Forgets windows that are over.
    pub fn report(&self, all: bool, now_ms: u64) -> Vec<Count> {
        let (mut counts, mut over) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            shard.report(all, now_ms, &mut counts, &mut over);
        }
        if over.is_empty() {
            return counts;
        }
        let mut names = lock(&self.names);
        for window in over {
            names.remove(&window);
        }
        counts
    }

    /// Learns what the others have counted in a window.
    pub fn learn(&self, window: WindowName, others: u64, now_ms: u64) {
        let place = lock(&self.names).get(&window).copied();
        let Some(place) = place else { return };
        if let Some(note) = lock(&self.shard(place.key).notes).by_place.get_mut(&place) {
            // What others have counted only grows; an exchange that was started again may not know all of it yet.
            let known = if note.is_assumed { 0 } else { note.others };
            note.is_assumed = false;
            note.change_others(place, others.max(known), now_ms);
        }
    }

    /// Whether there are windows to hear of.
    pub fn is_open(&self) -> bool {
        !lock(&self.names).is_empty()
    }

    /// Whether anything was ever shared.
    pub fn has_counted(&self) -> bool {
        self.has_counted.load(Ordering::Relaxed)
    }

    /// There is contact with the other gateways, or none any more with the others of so many.
    pub fn set_contact(&self, cut_off_of: Option<u64>) {
        self.cut_off_of.store(cut_off_of.unwrap_or(0), Ordering::Relaxed);
    }
}

impl WindowCount {
    fn change_others(&mut self, place: WindowKey, others: u64, now_ms: u64) {
        let by = i64::try_from(others).unwrap_or(i64::MAX) - i64::try_from(self.others).unwrap_or(i64::MAX);
        self.others = others;
        if by != 0 {
            let limit = WindowLimit {
                window: place.window,
                limit: self.limit,
            };
            self.counters.adjust(place.key, limit, place.end_ms, by, now_ms);
        }
    }
}

#[cfg(test)]
mod tests;
