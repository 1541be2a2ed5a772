//! The rate limiter: fixed and sliding windows, counted exactly over all workers.
//!
//! One [`Limiter`] serves the whole process and gives each limit [`Counters`] of its own. A decision takes one lock, of
//! one of their shards, and checks and counts all windows of a key under it, so that of any number of concurrent calls
//! exactly as many pass as the limit says.
//! It keeps numbers only: who a caller is (see [`key`]), what a refusal says and which headers announce the limits
//! belong to the plugins.

pub mod across;
mod key;
mod persistence;
mod shard;
mod window;

use crate::partition::{Partition, Partitions, Shard};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use key::{KeyPrefix, key, secret, use_secret};
pub use persistence::NotCounters;
pub use window::Window;

use shard::{Counter, PackedCounter, read, read_sliding, write};

/// The most windows that one decision can check.
pub const MAX_LIMITS: usize = 8;

/// How many calls may pass in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowLimit {
    /// The window.
    pub window: Window,
    /// Calls that pass in one window; with 0 none does.
    pub limit: u64,
}

/// How a window stands after a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowState {
    /// The limit that was asked about.
    pub limit: u64,
    /// Calls that still pass in this window.
    pub remaining: u64,
    /// Milliseconds until the window ends, and with it the count.
    pub reset_ms: u64,
}

impl WindowState {
    /// How the window of a limit stands in which `used` calls are counted and which ends at `end_ms` (for a sliding one:
    /// the open window of the clock). `carried` is what a sliding one counts of the window before. `is_exhausted`: a
    /// call was just rejected.
    #[must_use]
    pub fn of(
        limit: WindowLimit,
        used: u64,
        carried: f64,
        end_ms: u64,
        now_ms: u64,
        is_exhausted: bool,
    ) -> Self {
        let left = limit.limit.saturating_sub(used);
        let open_ms = end_ms.saturating_sub(now_ms);
        Self {
            limit: limit.limit,
            remaining: left.saturating_sub(carried.ceil() as u64),
            reset_ms: match limit.window {
                Window::Sliding { length_ms } => {
                    until_one_passes(left as f64, carried, open_ms, length_ms, is_exhausted)
                }
                _ => open_ms,
            },
        }
    }
}

/// The share of the `before` calls of the previous window that counts in a [`Window::Sliding`] of this length, whose
/// current window of the clock ends at `end_ms`, under this limit.
#[must_use]
pub fn carried(before: u64, length_ms: u64, end_ms: u64, now_ms: u64, limit: u64) -> f64 {
    let share = end_ms.saturating_sub(now_ms) as f64 / length_ms.max(1) as f64;
    (before as f64 * share).min(limit as f64)
}

/// Whether a call passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It passes, and (unless this was a peek) was counted in every window.
    Allowed,
    /// It does not, and was counted in no window.
    Rejected {
        /// The first window, in the order asked, in which no call is left.
        index_of_first_exhausted: usize,
    },
}

/// The counters of all limits. Bounded: expired windows are dropped first; if that is not enough, counters of the same
/// limit whose calls still pass, those with the fewest calls first, and the others last.
#[derive(Debug)]
pub struct Limiter(Partitions<PackedCounter>);

/// The counters of one limit: what is counted for another does not push them out.
#[derive(Debug, Clone)]
pub struct Counters(Arc<Partition<PackedCounter>>);

impl Limiter {
    /// A limiter that holds about `max_entries` counters of 32 bytes each, in tables that are three eighths to three
    /// quarters full: one for each window of each key. Every limit may hold its share of them (at least
    /// [`LEAST_SHARE`](crate::LEAST_SHARE)) while others are flooded, so at most there are twice as many counters, or
    /// the least share for each of very many limits. Memory is taken as it is needed.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self(Partitions::new(max_entries))
    }

    /// The counters of the limit of this name. They stay while they are used, so an instance that takes over from
    /// another must get them before that one is gone.
    #[must_use]
    pub fn counters(&self, limit: &str) -> Counters {
        Counters(self.0.partition(limit))
    }

    /// How many counters are held, including those of windows that are over and were not forgotten yet.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.0.held()
    }

    /// How many counters of open windows were forgotten to make room.
    #[must_use]
    pub fn evictions(&self) -> Arc<AtomicU64> {
        self.0.evictions()
    }
}

impl Counters {
    /// Decides whether a call of `key` passes, and counts it in every one of `limits` if it does; if any window is
    /// exhausted it is counted in none.
    ///
    /// A counter belongs to a key and a window: a changed limit (a reload) applies to the calls already counted.
    /// `out` receives the state of each window, as far as it reaches. Of more than [`MAX_LIMITS`] limits only the
    /// first count. `now_ms` is UTC in milliseconds since the Unix epoch; it need not be the same moment for all
    /// workers: one that lags counts in the window that another has opened already.
    pub fn take(&self, key: u128, limits: &[WindowLimit], now_ms: u64, out: &mut [WindowState]) -> Verdict {
        self.decide(key, limits, now_ms, out, 1)
    }

    /// [`Counters::take`] for a call that costs as much as so many, at least 1: it passes if all of them would.
    pub fn take_many(
        &self,
        key: u128,
        limits: &[WindowLimit],
        cost: u64,
        now_ms: u64,
        out: &mut [WindowState],
    ) -> Verdict {
        self.decide(key, limits, now_ms, out, cost.max(1))
    }

    /// The answer that [`Counters::take`] would give, without counting. Here `remaining` includes this call.
    pub fn peek(&self, key: u128, limits: &[WindowLimit], now_ms: u64, out: &mut [WindowState]) -> Verdict {
        self.decide(key, limits, now_ms, out, 0)
    }

    /// How many calls have been counted in the window; not for sliding ones.
    #[must_use]
    pub fn used(&self, key: u128, window: Window, now_ms: u64) -> u64 {
        read(&self.0.shard(key), key, window, now_ms).used
    }

    /// Counts so many calls at once in every one of `limits` (of which only the first [`MAX_LIMITS`] count), even if
    /// that is more than they allow; not for sliding ones.
    pub fn add(&self, key: u128, limits: &[WindowLimit], count: u64, now_ms: u64) {
        let limits = &limits[..limits.len().min(MAX_LIMITS)];
        let mut counters = [Counter::default(); MAX_LIMITS];
        let mut shard = self.0.shard(key);
        for (limit, counter) in limits.iter().zip(&mut counters) {
            *counter = read(&shard, key, limit.window, now_ms);
            counter.used = counter.used.saturating_add(count);
            counter.is_exhausted = counter.used >= limit.limit;
        }
        let windows = limits.iter().map(|limit| limit.window);
        write(&mut shard, key, windows, &counters, now_ms);
    }

    /// Takes over what was counted elsewhere: so many calls in the window that ends at `end_ms` (of a sliding one, the
    /// window of the clock).
    pub fn set(&self, key: u128, limit: WindowLimit, used: u64, end_ms: u64, now_ms: u64) {
        let end_ms = match limit.window {
            Window::Sliding { length_ms } => end_ms.saturating_add(length_ms.max(1)),
            _ => end_ms,
        };
        let counter = Counter {
            end_ms,
            used,
            is_exhausted: used >= limit.limit,
        };
        let mut shard = self.0.shard(key);
        write(&mut shard, key, std::iter::once(limit.window), &[counter], now_ms);
    }

    /// How many calls have been counted in the window that ends then; of a sliding one, in that window of the clock.
    pub(crate) fn used_until(&self, key: u128, window: Window, end_ms: u64, now_ms: u64) -> u64 {
        let counter = shard::read_until(&self.0.shard(key), key, window, end_ms, now_ms);
        counter.map_or(0, |counter| counter.used)
    }

    /// Changes what is counted in the window that ends then (of a sliding one, in that window of the clock), if that is
    /// still worth something.
    pub(crate) fn adjust(&self, key: u128, limit: WindowLimit, end_ms: u64, by: i64, now_ms: u64) {
        let mut shard = self.0.shard(key);
        let Some(mut counter) = shard::read_until(&shard, key, limit.window, end_ms, now_ms) else {
            return;
        };
        counter.used = counter.used.saturating_add_signed(by);
        counter.is_exhausted = counter.used >= limit.limit;
        write(&mut shard, key, std::iter::once(limit.window), &[counter], now_ms);
    }

    /// `cost` is what a call that passes is counted as; with 0 nothing is counted.
    fn decide(
        &self,
        key: u128,
        limits: &[WindowLimit],
        now_ms: u64,
        out: &mut [WindowState],
        cost: u64,
    ) -> Verdict {
        debug_assert!(
            limits.len() <= MAX_LIMITS,
            "at most {MAX_LIMITS} limits can be checked at once"
        );
        // Nearly always there is one, which needs no room for eight.
        match limits {
            [_] => self.decide_up_to::<1>(key, limits, now_ms, out, cost),
            _ => self.decide_up_to::<MAX_LIMITS>(key, limits, now_ms, out, cost),
        }
    }

    fn decide_up_to<const MOST: usize>(
        &self,
        key: u128,
        limits: &[WindowLimit],
        now_ms: u64,
        out: &mut [WindowState],
        cost: u64,
    ) -> Verdict {
        let limits = &limits[..limits.len().min(MOST)];
        let (count, further) = (cost > 0, cost.saturating_sub(1));
        let mut counters = [Counter::default(); MOST];
        let mut carried = [0.0; MOST];
        let mut exhausted = None;

        let mut shard = self.0.shard(key);
        for (index, (limit, counter)) in limits.iter().zip(&mut counters).enumerate() {
            if let Window::Sliding { length_ms } = limit.window {
                (*counter, carried[index]) = read_sliding(&shard, key, length_ms, now_ms);
                carried[index] = carried[index].min(limit.limit as f64);
            } else {
                *counter = read(&shard, key, limit.window, now_ms);
            }
            let used = counter.used.saturating_add(further) as f64 + carried[index];
            if used >= limit.limit as f64 && exhausted.is_none() {
                exhausted = Some(index);
            }
        }
        if count && exhausted.is_none() {
            for ((counter, limit), carried) in counters.iter_mut().zip(limits).zip(carried) {
                counter.used = counter.used.saturating_add(cost);
                counter.is_exhausted = counter.used as f64 + carried >= limit.limit as f64;
            }
            write(
                &mut shard,
                key,
                limits.iter().map(|limit| limit.window),
                &counters,
                now_ms,
            );
        }
        if let Some(index) = exhausted.filter(|_| count) {
            mark_exhausted(&mut shard, key, limits[index].window, counters[index], now_ms);
        }
        drop(shard);

        for (((limit, counter), carried), state) in limits.iter().zip(counters).zip(carried).zip(out) {
            let end_ms = match limit.window {
                Window::Sliding { length_ms } => counter.end_ms.saturating_sub(length_ms.max(1)),
                _ => counter.end_ms,
            };
            *state = WindowState::of(*limit, counter.used, carried, end_ms, now_ms, exhausted.is_some());
        }
        exhausted.map_or(Verdict::Allowed, |index_of_first_exhausted| Verdict::Rejected {
            index_of_first_exhausted,
        })
    }
}

/// When a sliding window lets a call pass again, and for one that still does, when it ends. `left` is what the open
/// window leaves, `carried` what the one before takes of it now.
fn until_one_passes(left: f64, carried: f64, open_ms: u64, length_ms: u64, is_exhausted: bool) -> u64 {
    if !is_exhausted || left < 1.0 || carried <= 0.0 {
        return open_ms;
    }
    // What is carried falls evenly to nothing until the open window ends.
    let rate = carried / (open_ms.max(1) as f64);
    let wait = (carried - left) / rate;
    (wait.max(0.0).ceil() as u64).min(length_ms.max(1))
}

/// Marks a counter that has just refused a call so that it is kept, if it was not marked before: its limit was lowered,
/// or it contains counts from elsewhere.
fn mark_exhausted(
    shard: &mut Shard<'_, PackedCounter>,
    key: u128,
    window: Window,
    mut counter: Counter,
    now_ms: u64,
) {
    if counter.used > 0 && !counter.is_exhausted {
        counter.is_exhausted = true;
        write(shard, key, std::iter::once(window), &[counter], now_ms);
    }
}

#[cfg(test)]
mod tests;
