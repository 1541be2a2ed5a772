//! Adaptive concurrency: how many calls an upstream may have in flight, found out from how long it takes to answer.
//!
//! The latency of an upstream that is not overloaded, its *baseline*, does not depend on the number of calls. Once
//! calls queue in it, the latency grows. Over each short window the average latency is compared with the baseline: up to
//! `tolerance_percent` of it the limit grows by its square root, above that it shrinks in proportion (the gradient). If
//! no window has confirmed the baseline for a while, the limit is halved for two windows to measure it again: then an
//! upstream that got slower for good is believed, and a queue that never empties is not taken for its nature.
//!
//! Calls of low priority are shed first: each priority may use its part of the limit only.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, TryLockError};

/// Calls that a window needs at least; until there are so many it stays open.
const LEAST_CALLS: u32 = 10;
/// A window whose average is at most this many times the baseline confirms it.
const CONFIRMING: f64 = 1.1;
/// How much of the way to a new limit is gone at once.
const SMOOTHING: f64 = 0.2;

/// The bounds of an adaptive limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverloadRules {
    /// The limit is never lower; at least 1 counts.
    pub min: u32,
    /// And never higher.
    pub max: u32,
    /// The limit at the beginning.
    pub initial: u32,
    /// Up to which part of the baseline, in percent, an average latency is no sign of overload; above 100.
    pub tolerance_percent: u32,
    /// Milliseconds over which latencies are averaged.
    pub window_ms: u64,
    /// Milliseconds after which a baseline that was not confirmed is measured again.
    pub probe_ms: u64,
}

impl OverloadRules {
    /// A limit within the bounds. Of bounds that contradict each other the lower one holds.
    fn bound(&self, limit: f64) -> f64 {
        let least = f64::from(self.min.max(1));
        limit.min(f64::from(self.max)).max(least)
    }
}

/// How important a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// It is shed last: it may use the whole limit.
    Critical,
    /// It may use nine tenths of the limit.
    High,
    /// It may use eight tenths.
    #[default]
    Normal,
    /// It may use half.
    Low,
}

impl Priority {
    /// Calls in flight up to which one of this priority is let in.
    #[must_use]
    pub fn part_of(self, limit: u32) -> u32 {
        let tenths = match self {
            Self::Critical => 10,
            Self::High => 9,
            Self::Normal => 8,
            Self::Low => 5,
        };
        ((u64::from(limit) * tenths).div_ceil(10) as u32).max(1)
    }
}

/// The limit of one upstream, shared by all workers.
#[derive(Debug)]
pub struct AdaptiveLimit {
    inflight: AtomicU32,
    limit: AtomicU32,
    sampler: Mutex<Sampler>,
}

#[derive(Debug, Default)]
struct Sampler {
    limit: f64,
    opened_ms: u64,
    calls: u32,
    sum_us: f64,
    /// Most calls in flight when one of the window ended.
    most: u32,
    /// 0: not known yet.
    baseline_us: f64,
    confirmed_ms: u64,
    probe: Probe,
}

/// Whether the baseline is being measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Probe {
    #[default]
    No,
    /// Calls from before the limit was halved end.
    Settling,
    Measuring,
}

impl AdaptiveLimit {
    /// A limit that nothing is known for yet.
    #[must_use]
    pub fn new(rules: &OverloadRules) -> Self {
        let limit = rules.bound(f64::from(rules.initial)) as u32;
        Self {
            inflight: AtomicU32::new(0),
            limit: AtomicU32::new(limit),
            sampler: Mutex::new(Sampler {
                limit: f64::from(limit),
                ..Sampler::default()
            }),
        }
    }

    /// How many calls may be in flight now.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// How many calls are in flight.
    #[must_use]
    pub fn inflight(&self) -> u32 {
        self.inflight.load(Relaxed)
    }

    /// Lets a call in, or says that it is to be shed. Each call that was let in must [leave](Self::leave).
    #[must_use]
    pub fn enter(&self, priority: Priority) -> bool {
        let most = priority.part_of(self.limit());
        let enter = |inflight: u32| (inflight < most).then(|| inflight + 1);
        self.inflight.fetch_update(Relaxed, Relaxed, enter).is_ok()
    }

    /// A call has ended. `latency_us` is the time until the upstream answered, or until the call was given up; `None`
    /// if the call says nothing about the upstream's load.
    pub fn leave(&self, latency_us: Option<u64>, rules: &OverloadRules, now_ms: u64) {
        let inflight = self.inflight.fetch_sub(1, Relaxed);
        let Some(latency_us) = latency_us else { return };
        let mut sampler = match self.sampler.try_lock() {
            Ok(sampler) => sampler,
            // Each change leaves it usable.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another worker counts at this moment; the average does without this call.
            Err(TryLockError::WouldBlock) => return,
        };
        if let Some(limit) = sampler.note(latency_us as f64, inflight, rules, now_ms) {
            self.limit.store(limit, Relaxed);
        }
    }
}

impl Sampler {
    /// Counts a call; gives the new limit once a window is over.
    fn note(&mut self, latency_us: f64, inflight: u32, rules: &OverloadRules, now_ms: u64) -> Option<u32> {
        if self.calls == 0 {
            self.opened_ms = now_ms;
        }
        self.calls += 1;
        self.sum_us += latency_us;
        self.most = self.most.max(inflight);
        if self.calls < LEAST_CALLS || now_ms.saturating_sub(self.opened_ms) < rules.window_ms {
            return None;
        }
        let average = (self.sum_us / f64::from(self.calls)).max(1.0);
        let most = std::mem::take(&mut self.most);
        (self.calls, self.sum_us) = (0, 0.0);
        self.learn(average, rules, now_ms);
        if self.probe == Probe::No {
            self.adjust(average, most, rules);
        }
        let limit = match self.probe {
            Probe::No => self.limit,
            Probe::Settling | Probe::Measuring => self.limit / 2.0,
        };
        Some(rules.bound(limit.round()) as u32)
    }

    /// Learns the baseline from the average of a window.
    fn learn(&mut self, average: f64, rules: &OverloadRules, now_ms: u64) {
        match self.probe {
            Probe::Settling => {
                self.probe = Probe::Measuring;
                return;
            }
            Probe::Measuring => {
                self.probe = Probe::No;
                self.baseline_us = average;
                self.confirmed_ms = now_ms;
                return;
            }
            Probe::No => {}
        }
        if self.baseline_us == 0.0 {
            self.baseline_us = average;
            self.confirmed_ms = now_ms;
        } else if average <= self.baseline_us * CONFIRMING {
            let lower = average.min(self.baseline_us);
            self.baseline_us += (lower - self.baseline_us) * SMOOTHING;
            self.confirmed_ms = now_ms;
        } else if now_ms.saturating_sub(self.confirmed_ms) >= rules.probe_ms {
            self.probe = Probe::Settling;
        }
    }

    fn adjust(&mut self, average: f64, most: u32, rules: &OverloadRules) {
        let bearable = self.baseline_us * f64::from(rules.tolerance_percent.max(100)) / 100.0;
        let gradient = (bearable / average).clamp(0.5, 1.0);
        // Of a limit that is not used it is not known whether it could be higher.
        if gradient >= 1.0 && f64::from(most) < self.limit / 2.0 {
            return;
        }
        let wanted = self.limit * gradient + self.limit.sqrt();
        let limit = self.limit + (wanted - self.limit) * SMOOTHING;
        self.limit = rules.bound(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: OverloadRules = OverloadRules {
        min: 5,
        max: 1_000,
        initial: 20,
        tolerance_percent: 150,
        window_ms: 100,
        probe_ms: 5_000,
    };

    #[test]
    fn low_priorities_are_shed_first() {
        let limit = AdaptiveLimit::new(&OverloadRules { initial: 10, ..RULES });
        let mut let_in = Vec::new();
        for priority in [
            Priority::Low,
            Priority::Normal,
            Priority::High,
            Priority::Critical,
        ] {
            let before = limit.inflight();
            while limit.enter(priority) {}
            let_in.push(limit.inflight() - before);
        }
        assert_eq!(let_in, [5, 3, 1, 1]);
        limit.leave(None, &RULES, 0);
        assert!(!limit.enter(Priority::High) && limit.enter(Priority::Critical));
        for (limit, parts) in [
            (1, [1, 1, 1, 1]),
            (3, [3, 3, 3, 2]),
            (u32::MAX, [u32::MAX, 3_865_470_566, 3_435_973_836, 2_147_483_648]),
        ] {
            let order = [
                Priority::Critical,
                Priority::High,
                Priority::Normal,
                Priority::Low,
            ];
            assert_eq!(order.map(|priority| priority.part_of(limit)), parts);
        }
    }

    /// The limit after windows of so many calls each, with this latency and all of the limit used.
    fn after(limit: &AdaptiveLimit, now_ms: &mut u64, windows: u32, latency_us: u64) -> u32 {
        for _ in 0..windows {
            while limit.enter(Priority::Critical) {}
            for call in (0..limit.inflight().max(10)).rev() {
                *now_ms += if call == 0 { 100 } else { 0 };
                while limit.inflight() == 0 && limit.enter(Priority::Critical) {}
                limit.leave(Some(latency_us), &RULES, *now_ms);
            }
        }
        limit.limit()
    }

    #[test]
    fn the_limit_follows_the_latency() {
        let limit = AdaptiveLimit::new(&RULES);
        let mut now_ms = 1_000_000;
        let grown = after(&limit, &mut now_ms, 50, 10_000);
        assert!(grown > 60, "{grown}");
        let shrunk = after(&limit, &mut now_ms, 30, 40_000);
        assert!((5..grown / 3).contains(&shrunk), "{shrunk}");
        let recovered = after(&limit, &mut now_ms, 60, 10_000);
        assert!(recovered > grown, "{recovered}");
        // Slower for good: the baseline is measured again, and the limit grows once more.
        let adapted = after(&limit, &mut now_ms, 400, 40_000);
        assert!(adapted > 100, "{adapted}");
    }

    #[test]
    fn bounds_hold_whatever_comes() {
        let limit = AdaptiveLimit::new(&RULES);
        let mut now_ms = 0;
        assert_eq!(after(&limit, &mut now_ms, 10_000, 1), RULES.max);
        for (round, latency) in (0..300).zip([u64::MAX, 0, 1, 1 << 40].into_iter().cycle()) {
            let found = after(&limit, &mut now_ms, 3, latency);
            assert!((RULES.min..=RULES.max).contains(&found), "{round}: {found}");
        }
    }

    #[test]
    fn an_unused_limit_stays() {
        let limit = AdaptiveLimit::new(&RULES);
        for now_ms in 0..100_000 {
            assert!(limit.enter(Priority::Low));
            limit.leave(Some(500), &RULES, now_ms);
        }
        assert_eq!(limit.limit(), RULES.initial);
    }
}
