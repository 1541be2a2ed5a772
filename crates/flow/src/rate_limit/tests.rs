//! What the limiter promises as a whole.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

mod floods;

/// 2026-11-20 15:31:00, the start of a minute.
const NOW: u64 = 1_795_188_660_000;

const FROM_FIRST: Window = Window::FromFirst { length_ms: 60_000 };

fn limit(window: Window, limit: u64) -> WindowLimit {
    WindowLimit { window, limit }
}

fn state(limit: u64, remaining: u64, reset_ms: u64) -> WindowState {
    WindowState {
        limit,
        remaining,
        reset_ms,
    }
}

const fn rejected(index_of_first_exhausted: usize) -> Verdict {
    Verdict::Rejected {
        index_of_first_exhausted,
    }
}

#[test]
fn calls_of_a_cost_pass_as_so_many_or_not_at_all() {
    for window in [Window::Minute, FROM_FIRST, Window::Sliding { length_ms: 60_000 }] {
        let counters = Limiter::new(1_000).counters("limit");
        let ten = [limit(window, 10)];
        for (cost, verdict, remaining) in [
            (4, Verdict::Allowed, 6),
            (7, rejected(0), 6),
            (u64::MAX, rejected(0), 6),
            (6, Verdict::Allowed, 0),
            (0, rejected(0), 0),
        ] {
            let mut states = [WindowState::default()];
            let found = counters.take_many(1, &ten, cost, NOW, &mut states);
            assert_eq!(
                (found, states[0].remaining),
                (verdict, remaining),
                "{window:?} {cost}"
            );
        }
    }
    // Of two windows none counts what one of them refuses.
    let counters = Limiter::new(1_000).counters("limit");
    let both = [limit(Window::Second, 5), limit(Window::Minute, 8)];
    for (cost, verdict, left) in [(5, Verdict::Allowed, [0, 3]), (1, rejected(0), [0, 3])] {
        let mut states = [WindowState::default(); 2];
        assert_eq!(counters.take_many(1, &both, cost, NOW, &mut states), verdict);
        assert_eq!(states.map(|it| it.remaining), left, "{cost}");
    }
}

#[test]
fn one_window() {
    // Milliseconds after NOW, the verdict, what remains and when it resets: minute of the clock, then from first call.
    type Step = (u64, Verdict, u64, u64);
    let cases: [(&str, Window, &[Step]); 3] = [
        (
            "calendar",
            Window::Minute,
            &[
                (50_000, Verdict::Allowed, 1, 10_000),
                (51_000, Verdict::Allowed, 0, 9_000),
                (59_999, rejected(0), 0, 1),
                (60_000, Verdict::Allowed, 1, 60_000),
            ],
        ),
        (
            "from the first call",
            FROM_FIRST,
            &[
                (50_000, Verdict::Allowed, 1, 60_000),
                (60_000, Verdict::Allowed, 0, 50_000),
                (109_999, rejected(0), 0, 1),
                (110_000, Verdict::Allowed, 1, 60_000),
                (300_000, Verdict::Allowed, 1, 60_000),
            ],
        ),
        (
            "the clock of one worker lags, then is set back for all",
            Window::Minute,
            &[
                (60_000, Verdict::Allowed, 1, 60_000),
                (59_999, Verdict::Allowed, 0, 60_001),
                (60_001, rejected(0), 0, 59_999),
                (0, rejected(0), 0, 120_000),
                (0, rejected(0), 0, 120_000),
            ],
        ),
    ];
    for (name, window, steps) in cases {
        let limiter = Limiter::new(1_000).counters("a");
        for (after, verdict, remaining, reset_ms) in steps {
            let mut out = [WindowState::default()];
            let got = limiter.take(key(&[b"a"]), &[limit(window, 2)], NOW + after, &mut out);
            assert_eq!(
                (got, out),
                (*verdict, [state(2, *remaining, *reset_ms)]),
                "{name} at {after}"
            );
        }
    }
}

#[test]
fn a_clock_set_back_far_starts_again() {
    let limiter = Limiter::new(1_000).counters("a");
    let limits = [limit(Window::Minute, 1)];
    assert_eq!(limiter.take(1, &limits, NOW, &mut []), Verdict::Allowed);
    assert_eq!(limiter.take(1, &limits, NOW, &mut []), rejected(0));
    assert_eq!(
        limiter.take(1, &limits, NOW - 3_600_000, &mut []),
        Verdict::Allowed
    );
}

#[test]
fn all_windows_or_none() {
    let limiter = Limiter::new(1_000).counters("a");
    let limits = [
        limit(Window::Minute, 2),
        limit(Window::Hour, 3),
        limit(Window::Day, 10),
    ];
    // Milliseconds after NOW, the verdict, what remains in each window.
    let steps = [
        (0, Verdict::Allowed, [1, 2, 9]),
        (0, Verdict::Allowed, [0, 1, 8]),
        (0, rejected(0), [0, 1, 8]),
        (60_000, Verdict::Allowed, [1, 0, 7]),
        (60_000, rejected(1), [1, 0, 7]),
        (3_600_000, Verdict::Allowed, [1, 2, 6]),
    ];
    for (after, verdict, remaining) in steps {
        let mut out = [WindowState::default(); 3];
        assert_eq!(
            limiter.take(7, &limits, NOW + after, &mut out),
            verdict,
            "at {after}"
        );
        assert_eq!(out.map(|state| state.remaining), remaining, "at {after}");
    }
}

#[test]
fn sliding_windows_count_what_has_passed_by_half() {
    const SLIDING: Window = Window::Sliding { length_ms: 60_000 };
    let limiter = Limiter::new(1_000).counters("a");
    // NOW is the start of a minute. Milliseconds after it, the verdict, what remains, when the next one passes.
    for (after, verdict, remaining, reset_ms) in [
        (0, Verdict::Allowed, 3, 60_000),
        (30_000, Verdict::Allowed, 2, 30_000),
        (30_000, Verdict::Allowed, 1, 30_000),
        (59_000, Verdict::Allowed, 0, 1_000),
        (59_000, rejected(0), 0, 1_000),
        // All four count at the start of the next minute, three after a quarter of it.
        (60_000, rejected(0), 0, 0),
        (75_000, Verdict::Allowed, 0, 45_000),
        (75_000, rejected(0), 0, 0),
        (90_000, Verdict::Allowed, 0, 30_000),
        (180_000, Verdict::Allowed, 3, 60_000),
    ] {
        let mut out = [WindowState::default()];
        let got = limiter.take(9, &[limit(SLIDING, 4)], NOW + after, &mut out);
        assert_eq!(
            (got, out[0].remaining, out[0].reset_ms),
            (verdict, remaining, reset_ms),
            "at {after}"
        );
    }
}

#[test]
fn many_calls_are_counted_at_once() {
    let limiter = Limiter::new(1_000).counters("a");
    let limits = [limit(Window::Hour, 100), limit(Window::Day, 100)];
    assert_eq!(limiter.used(5, Window::Hour, NOW), 0);
    limiter.add(5, &limits, 7, NOW);
    limiter.add(5, &limits[..1], 2, NOW);
    assert_eq!(limiter.used(5, Window::Hour, NOW), 9);
    assert_eq!(limiter.used(5, Window::Day, NOW), 7);
    assert_eq!(limiter.used(5, Window::Hour, NOW + 3_600_000), 0);
}

#[test]
fn peek_counts_nothing() {
    let all = Limiter::new(1_000);
    let limiter = all.counters("a");
    let limits = [limit(Window::Hour, 2), limit(FROM_FIRST, 1)];
    let mut out = [WindowState::default(); 2];
    for _ in 0..3 {
        assert_eq!(limiter.peek(7, &limits, NOW, &mut out), Verdict::Allowed);
        assert_eq!(out, [state(2, 2, 29 * 60_000), state(1, 1, 60_000)]);
    }
    assert_eq!(all.entries(), 0);
    assert_eq!(limiter.take(7, &limits, NOW, &mut out), Verdict::Allowed);
    for _ in 0..3 {
        assert_eq!(limiter.peek(7, &limits, NOW + 1_000, &mut out), rejected(1));
        assert_eq!(out, [state(2, 1, 29 * 60_000 - 1_000), state(1, 0, 59_000)]);
    }
}

#[test]
fn changed_limits_keep_the_counts() {
    let limiter = Limiter::new(1_000).counters("a");
    let mut out = [WindowState::default(); 2];
    for _ in 0..3 {
        assert_eq!(
            limiter.take(7, &[limit(Window::Hour, 5)], NOW, &mut out),
            Verdict::Allowed
        );
    }
    // The new limits in order, the verdict, what remains.
    let cases: [(&[WindowLimit], Verdict, &[u64]); 5] = [
        (&[limit(Window::Hour, 2)], rejected(0), &[0]),
        (
            &[limit(Window::Minute, 1), limit(Window::Hour, 3)],
            rejected(1),
            &[1, 0],
        ),
        (&[limit(Window::Hour, 0)], rejected(0), &[0]),
        (
            &[limit(Window::Minute, 2), limit(Window::Hour, 5)],
            Verdict::Allowed,
            &[1, 1],
        ),
        (
            &[limit(Window::Hour, 5), limit(Window::Minute, 2)],
            Verdict::Allowed,
            &[0, 0],
        ),
    ];
    for (limits, verdict, remaining) in cases {
        assert_eq!(limiter.take(7, limits, NOW, &mut out), verdict, "{limits:?}");
        let got: Vec<u64> = out[..limits.len()].iter().map(|state| state.remaining).collect();
        assert_eq!(got, remaining, "{limits:?}");
    }
}

#[test]
fn no_limits_and_short_outputs() {
    let limiter = Limiter::new(1_000).counters("a");
    assert_eq!(limiter.take(7, &[], NOW, &mut []), Verdict::Allowed);
    let all = [1, 2, 3, 4, 5, 6, 7, 8].map(|minutes| {
        limit(
            Window::FromFirst {
                length_ms: minutes * 60_000,
            },
            1,
        )
    });
    let mut out = [WindowState::default(); 1];
    assert_eq!(limiter.take(7, &all, NOW, &mut out), Verdict::Allowed);
    assert_eq!(out, [state(1, 0, 60_000)]);
    assert_eq!(limiter.take(7, &all, NOW + 7 * 60_000, &mut out), rejected(7));
}

#[test]
fn memory_is_bounded_and_what_ends_last_stays() {
    const MAX: usize = 6_400;
    let all = Limiter::new(MAX);
    let limiter = all.counters("a");
    for n in 0..100 {
        // Twice in a year's window: kept. Twice in a minute's: kept before those that were seen once.
        for _ in 0..2 {
            let limits = [limit(Window::Year, 2), limit(Window::Minute, 2)];
            assert_eq!(limiter.take(number(n), &limits, NOW, &mut []), Verdict::Allowed);
        }
    }
    for n in 100..100_000 {
        assert_eq!(
            limiter.take(number(n), &[limit(Window::Minute, 2)], NOW, &mut []),
            Verdict::Allowed
        );
        assert!(n % 1_000 != 0 || all.entries() <= MAX * 17 / 16);
    }
    assert!(all.entries() > MAX * 4 / 5);
    for n in 0..100 {
        assert_eq!(
            limiter.peek(number(n), &[limit(Window::Year, 2)], NOW, &mut []),
            rejected(0)
        );
        assert_eq!(
            limiter.peek(number(n), &[limit(Window::Minute, 2)], NOW, &mut []),
            rejected(0)
        );
    }
    // A minute later the flood is over and forgotten as soon as room is needed.
    for n in 0..MAX as u64 {
        let now = NOW + 60_000;
        assert_eq!(
            limiter.take(number(1_000_000 + n), &[limit(Window::Second, 1)], now, &mut []),
            Verdict::Allowed
        );
    }
    for n in 0..100 {
        assert_eq!(
            limiter.peek(number(n), &[limit(Window::Year, 2)], NOW, &mut []),
            rejected(0)
        );
    }
}

#[test]
fn the_smallest_limiter_still_limits() {
    let all = Limiter::new(0);
    let limiter = all.counters("a");
    for n in 0..10_000u128 {
        // All in one shard, and the last window is the first to be displaced.
        let limits = [
            limit(Window::Hour, 2),
            limit(FROM_FIRST, 2),
            limit(Window::Second, 1),
        ];
        assert_eq!(limiter.take(n, &limits, NOW, &mut []), Verdict::Allowed, "{n}");
        assert_eq!(limiter.take(n, &limits, NOW, &mut []), rejected(2), "{n}");
        assert!(all.entries() <= 20, "{}", all.entries());
    }
}

#[test]
fn exactly_the_limit_passes_concurrently() {
    const LIMIT: u64 = 20_000;
    const THREADS: u64 = 8;
    let limiter = Limiter::new(1_000).counters("a");
    let (passed, lowest) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let limits = [limit(Window::Day, LIMIT), limit(FROM_FIRST, LIMIT + 1)];
                for _ in 0..(LIMIT + 1_000) / THREADS {
                    let mut out = [WindowState::default(); 2];
                    if limiter.take(42, &limits, NOW, &mut out) == Verdict::Allowed {
                        passed.fetch_add(1, Ordering::Relaxed);
                    }
                    lowest.fetch_min(out[1].remaining, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), LIMIT);
    assert_eq!(lowest.into_inner(), 1);
}

fn number(n: u64) -> u128 {
    key(&[&n.to_le_bytes()])
}

proptest! {
    /// Against the simplest model there is: calls are written down and counted.
    #[test]
    fn agrees_with_a_list_of_calls(
        steps in prop::collection::vec((0u128..3, 0u64..40_000, prop::collection::vec((0usize..4, 0u64..4), 0..4)), 1..60),
    ) {
        const WINDOWS: [Window; 4] = [Window::Second, Window::Minute, Window::Hour, Window::Month];
        let limiter = Limiter::new(1_000).counters("a");
        let mut passed: HashMap<(u128, Window, u64), u64> = HashMap::new();
        let mut now = NOW;
        for (key, passes, limits) in steps {
            now += passes;
            let mut limits: Vec<WindowLimit> = limits.into_iter().map(|(n, max)| limit(WINDOWS[n], max)).collect();
            limits.dedup_by_key(|limit| limit.window);
            limits.truncate(2);
            let used = |limit: &WindowLimit| {
                passed.get(&(key, limit.window, limit.window.end_ms(now))).copied().unwrap_or(0)
            };
            let expected = limits.iter().position(|limit| used(limit) >= limit.limit).map_or(Verdict::Allowed, rejected);
            let counted = u64::from(expected == Verdict::Allowed);
            let states: Vec<WindowState> = limits.iter().map(|limit| {
                let reset_ms = limit.window.end_ms(now) - now;
                state(limit.limit, limit.limit.saturating_sub(used(limit) + counted), reset_ms)
            }).collect();

            let mut out = vec![WindowState::default(); limits.len()];
            prop_assert_eq!(limiter.take(key, &limits, now, &mut out), expected);
            prop_assert_eq!(out, states);
            for limit in limits.iter().filter(|_| counted == 1) {
                *passed.entry((key, limit.window, limit.window.end_ms(now))).or_default() += 1;
            }
        }
    }
}
