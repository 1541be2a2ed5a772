//! The state machine of health, as tables.

use super::HealthState::{Healthy, MostlyHealthy, MostlyUnhealthy, Unhealthy};
use super::Signal::{HttpFailure as H, Success as S, TcpFailure as T, Timeout as O};
use super::*;

const LIMITS: Thresholds = Thresholds {
    successes: 2,
    http_failures: 3,
    tcp_failures: 2,
    timeouts: 2,
};

/// A name, thresholds, events, and what is left: the state, and successes, HTTP failures, TCP failures and time-outs.
type Case = (&'static str, Thresholds, &'static [Signal], HealthState, [u8; 4]);

const NOTHING: Thresholds = Thresholds {
    successes: 0,
    http_failures: 0,
    tcp_failures: 0,
    timeouts: 0,
};

const ONLY_HTTP: Thresholds = Thresholds {
    http_failures: 2,
    ..NOTHING
};

const AT_ONCE: Thresholds = Thresholds {
    successes: 1,
    http_failures: 1,
    tcp_failures: 1,
    timeouts: 1,
};

const CASES: &[Case] = &[
    ("nothing yet", LIMITS, &[], Healthy, [0, 0, 0, 0]),
    (
        "successes of a healthy target do not count",
        LIMITS,
        &[S, S, S],
        Healthy,
        [0, 0, 0, 0],
    ),
    (
        "a failure is remembered",
        LIMITS,
        &[H],
        MostlyHealthy,
        [0, 1, 0, 0],
    ),
    (
        "kinds are counted apart",
        LIMITS,
        &[H, H, T, O],
        MostlyHealthy,
        [0, 2, 1, 1],
    ),
    (
        "a success makes failures forgotten",
        LIMITS,
        &[H, H, S, H, H],
        MostlyHealthy,
        [0, 2, 0, 0],
    ),
    (
        "enough successes make it whole",
        LIMITS,
        &[H, S, S],
        Healthy,
        [2, 0, 0, 0],
    ),
    ("too many statuses", LIMITS, &[H, H, H], Unhealthy, [0, 3, 0, 0]),
    ("too many connections", LIMITS, &[T, T], Unhealthy, [0, 0, 2, 0]),
    ("too many time-outs", LIMITS, &[O, O], Unhealthy, [0, 0, 0, 2]),
    (
        "failures of an unhealthy target do not count",
        LIMITS,
        &[T, T, T, T],
        Unhealthy,
        [0, 0, 2, 0],
    ),
    (
        "a success is remembered",
        LIMITS,
        &[T, T, S],
        MostlyUnhealthy,
        [1, 0, 0, 0],
    ),
    (
        "a failure makes successes forgotten",
        LIMITS,
        &[T, T, S, T, S],
        MostlyUnhealthy,
        [1, 0, 0, 0],
    ),
    ("back again", LIMITS, &[T, T, S, S], Healthy, [2, 0, 0, 0]),
    ("out again", LIMITS, &[T, T, S, S, T, T], Unhealthy, [0, 0, 2, 0]),
    (
        "what does not count changes nothing",
        ONLY_HTTP,
        &[H, S, S, T, O],
        MostlyHealthy,
        [0, 1, 0, 0],
    ),
    (
        "and so is not forgotten either",
        ONLY_HTTP,
        &[H, S, H],
        Unhealthy,
        [0, 2, 0, 0],
    ),
    (
        "never back by itself",
        ONLY_HTTP,
        &[H, H, S, S, S],
        Unhealthy,
        [0, 2, 0, 0],
    ),
    ("at once", AT_ONCE, &[O, S, H, S, T], Unhealthy, [0, 0, 1, 0]),
    ("nothing counts", NOTHING, &[H, T, O, S], Healthy, [0, 0, 0, 0]),
];

#[test]
fn events_are_counted() {
    for (name, thresholds, events, state, counts) in CASES {
        let health = events
            .iter()
            .fold(Health::HEALTHY, |health, event| health.after(*event, thresholds));
        assert_eq!(health.state, *state, "{name}");
        let got = [
            health.successes,
            health.http_failures,
            health.tcp_failures,
            health.timeouts,
        ];
        assert_eq!(got, *counts, "{name}");
        assert_eq!(Health::from_bits(health.to_bits()), health, "{name}");
    }
}

#[test]
fn counts_do_not_overflow() {
    let thresholds = Thresholds {
        http_failures: 255,
        tcp_failures: 255,
        ..Thresholds::default()
    };
    let mut health = Health::HEALTHY;
    for _ in 0..254 {
        health = health.after(H, &thresholds).after(T, &thresholds);
        assert!(health.state.is_usable());
    }
    assert_eq!(health.after(H, &thresholds).state, HealthState::Unhealthy);
    let lowered = health.after(O, &LIMITS).after(T, &LIMITS);
    assert_eq!(
        lowered.state,
        HealthState::Unhealthy,
        "limits may be lowered by a reload"
    );
}

#[test]
fn a_hold_ends_with_the_target_being_back() {
    let held = Health::HELD_OUT;
    assert!(!held.state.is_usable() && held.is_held);
    assert!(held.after(H, &LIMITS).is_held);
    assert!(held.after(S, &LIMITS).is_held);
    let back = held.after(S, &LIMITS).after(S, &LIMITS);
    assert!(back.state.is_usable() && !back.is_held);
    assert_eq!(Health::from_bits(held.to_bits()), held);
}

#[test]
fn a_cell_reports_changes_of_use_only() {
    let cell = HealthCell::default();
    for (event, change) in [
        (S, None),
        (T, None),
        (T, Some(HealthState::Unhealthy)),
        (T, None),
        (S, None),
        (S, Some(HealthState::Healthy)),
        (S, None),
    ] {
        assert_eq!(cell.observe(event, &LIMITS), change);
    }
    assert_eq!(cell.set(Health::HELD_OUT), Some(HealthState::Unhealthy));
    assert_eq!(cell.set(Health::HELD_OUT), None);
    assert_eq!(cell.set(Health::HEALTHY), Some(HealthState::Healthy));
    assert!(cell.is_usable());
}

#[test]
fn no_event_of_many_threads_is_lost() {
    let cell = HealthCell::default();
    let thresholds = Thresholds {
        http_failures: 200,
        ..Thresholds::default()
    };
    let changes: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..50).filter_map(|_| cell.observe(H, &thresholds)).count()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!(changes, 1, "the change is reported once");
    assert_eq!(cell.get().http_failures, 200);
}

#[test]
fn statuses_are_read() {
    let rules = Rules {
        healthy: [200, 302, 404].into_iter().collect(),
        unhealthy: [404, 500, 999, 2000].into_iter().collect(),
        thresholds: LIMITS,
    };
    for (status, signal) in [
        (200, Some(S)),
        (302, Some(S)),
        (404, Some(S)),
        (500, Some(H)),
        (999, Some(H)),
        (201, None),
        (0, None),
        (2000, None),
        (u16::MAX, None),
    ] {
        assert_eq!(rules.read(status), signal, "{status}");
    }
}
