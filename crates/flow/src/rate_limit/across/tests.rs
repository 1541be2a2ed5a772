//! What gateways learn of each other, and how many calls pass.

use super::*;
use crate::rate_limit::{Limiter, Verdict, WindowState};

/// 2026-11-20 15:31:00, the start of a minute.
const NOW: u64 = 1_795_188_660_000;
const MINUTE: WindowLimit = WindowLimit {
    window: Window::Minute,
    limit: 10,
};

struct Gateway {
    counters: Counters,
    shared: SharedCounts,
    name: &'static str,
}

impl Gateway {
    fn new(name: &'static str) -> Self {
        Self {
            counters: Limiter::new(1_000).counters("limit"),
            shared: SharedCounts::default(),
            name,
        }
    }

    fn call(&self, key: u128, limit: WindowLimit, now_ms: u64) -> bool {
        let verdict = self.counters.take(key, &[limit], now_ms, &mut []);
        if verdict == Verdict::Allowed {
            self.shared.note(&self.counters, key, &[limit], 1, now_ms, || key);
        }
        verdict == Verdict::Allowed
    }

    /// How many of so many calls pass.
    fn calls(&self, count: usize, now_ms: u64) -> usize {
        (0..count).filter(|_| self.call(7, MINUTE, now_ms)).count()
    }

    fn merge(&self, exchange: &CountExchange, all: bool, now_ms: u64) -> u64 {
        let counts = self.shared.report(all, now_ms);
        let settlement = exchange.merge((self.name, 1), all, &counts, now_ms);
        for (window, others) in settlement.others {
            self.shared.learn(window, others, now_ms);
        }
        settlement.gateways
    }
}

#[test]
fn calls_that_count_as_several_are_reported_as_several() {
    let exchange = CountExchange::new(1);
    let (one, other) = (Gateway::new("one"), Gateway::new("other"));
    for (gateway, cost) in [(&one, 6), (&one, 1), (&other, 2)] {
        let verdict = gateway.counters.take_many(7, &[MINUTE], cost, NOW, &mut []);
        assert_eq!(verdict, Verdict::Allowed);
        gateway
            .shared
            .note(&gateway.counters, 7, &[MINUTE], cost, NOW, || 7);
    }
    one.merge(&exchange, true, NOW);
    other.merge(&exchange, true, NOW);
    assert_eq!(
        other.calls(9, NOW + 1),
        1,
        "10 without 7 of the other one and 2 of its own"
    );
}

#[test]
fn what_one_has_counted_the_others_learn() {
    let exchange = CountExchange::new(1);
    let (one, other) = (Gateway::new("one"), Gateway::new("other"));
    assert_eq!(one.calls(4, NOW), 4);
    assert_eq!(other.calls(3, NOW), 3);
    assert_eq!(one.merge(&exchange, true, NOW), 1);
    assert_eq!(other.merge(&exchange, true, NOW), 2);
    assert_eq!(other.calls(9, NOW + 1), 3, "10 with the 4 of the other one");
    one.merge(&exchange, false, NOW + 2);
    assert_eq!(one.calls(9, NOW + 3), 3, "it has not heard of those yet");
    other.merge(&exchange, false, NOW + 4);
    one.merge(&exchange, false, NOW + 5);
    assert_eq!((one.calls(9, NOW + 6), other.calls(9, NOW + 6)), (0, 0));
    // A new window is one for all.
    let next = NOW + 60_000;
    assert_eq!(one.calls(10, next), 10);
    one.merge(&exchange, false, next);
    assert_eq!(other.calls(1, next), 1);
    other.merge(&exchange, false, next);
    assert_eq!(other.calls(5, next), 0);
}

#[test]
fn reports_that_are_lost_or_come_twice_change_nothing() {
    let exchange = CountExchange::new(1);
    let (one, other) = (Gateway::new("one"), Gateway::new("other"));
    one.calls(4, NOW);
    let lost = one.shared.report(false, NOW);
    assert_eq!(lost[0].count, 4);
    assert!(one.shared.report(false, NOW).is_empty());
    for _ in 0..3 {
        exchange.merge(("one", 1), true, &one.shared.report(true, NOW), NOW);
        exchange.merge(("one", 1), false, &lost, NOW);
    }
    other.calls(1, NOW);
    other.merge(&exchange, true, NOW);
    assert_eq!(other.calls(9, NOW), 5);
    // An exchange that has forgotten everything makes no gateway forget.
    let exchange = CountExchange::new(2);
    other.merge(&exchange, true, NOW);
    assert_eq!(other.calls(9, NOW), 0);
    one.merge(&exchange, true, NOW);
    assert_eq!(one.calls(9, NOW), 0);
}

#[test]
fn sliding_windows_carry_what_others_have_counted() {
    let exchange = CountExchange::new(1);
    let (one, other) = (Gateway::new("one"), Gateway::new("other"));
    let sliding = WindowLimit {
        window: Window::Sliding { length_ms: 60_000 },
        limit: 10,
    };
    for gateway in [&one, &other] {
        assert_eq!((0..5).filter(|_| gateway.call(7, sliding, NOW)).count(), 5);
        gateway.merge(&exchange, true, NOW);
    }
    one.merge(&exchange, false, NOW);
    assert!(!one.call(7, sliding, NOW + 1) && !other.call(7, sliding, NOW + 1));
    // Half of the window before counts in the middle of the next one.
    let mut state = [WindowState::default()];
    let middle = NOW + 90_000;
    assert_eq!(
        one.counters.peek(7, &[sliding], middle, &mut state),
        Verdict::Allowed
    );
    assert_eq!(state[0].remaining, 5);
}

#[test]
fn gateways_without_contact_have_shares() {
    let exchange = CountExchange::new(1);
    let (one, other) = (Gateway::new("one"), Gateway::new("other"));
    one.calls(2, NOW);
    for gateway in [&one, &other, &one] {
        gateway.merge(&exchange, true, NOW);
    }
    one.shared.set_contact(Some(3));
    assert_eq!(one.calls(20, NOW), 8, "it goes on with what it knows");
    let next = NOW + 60_000;
    assert_eq!(one.calls(20, next), 4, "a third, rounded up");
    other.calls(3, next);
    other.merge(&exchange, false, next);
    // It was silent for so long that it was forgotten; what it has counted was not.
    let later = next + 55_000;
    exchange.merge(("third", 1), true, &[], NOW + 90_000);
    // There is contact again: what was assumed gives way to what is known.
    one.shared.set_contact(None);
    one.merge(&exchange, true, later);
    assert_eq!(one.calls(20, later), 3);
}

#[test]
fn counts_of_before_a_restart_are_not_counted_twice() {
    let exchange = CountExchange::new(1);
    let old = Gateway::new("old");
    old.calls(6, NOW);
    old.merge(&exchange, true, NOW);
    let mut new = Gateway::new("new");
    new.counters = old.counters.clone();
    assert_eq!(new.calls(1, NOW + 10), 1);
    new.merge(&exchange, true, NOW + 11);
    assert_eq!(new.calls(9, NOW + 12), 3);
}

#[test]
fn windows_that_are_over_are_forgotten() {
    let exchange = CountExchange::new(1);
    let one = Gateway::new("one");
    for key in 0..100 {
        one.call(key, MINUTE, NOW);
    }
    one.merge(&exchange, true, NOW);
    assert_eq!(exchange.windows(), 100);
    assert!(one.shared.is_open());
    assert!(one.shared.report(true, NOW + 60_000).is_empty());
    assert!(!one.shared.is_open() && one.shared.has_counted());
    exchange.merge(("one", 1), false, &[], NOW + 121_000);
    assert_eq!(exchange.windows(), 0);
    let settlement = exchange.merge(("other", 1), true, &[], NOW + 130_000);
    assert_eq!(settlement.gateways, 1, "the first one is silent");
}

#[test]
fn windows_of_one_key_and_those_that_begin_with_a_call() {
    let one = Gateway::new("one");
    let limits = [
        MINUTE,
        // Another limit of the same window is no second call.
        WindowLimit { limit: 20, ..MINUTE },
        WindowLimit {
            window: Window::Hour,
            limit: 100,
        },
        WindowLimit {
            window: Window::FromFirst { length_ms: 1_000 },
            limit: 100,
        },
    ];
    let mut named = 0;
    for _ in 0..2 {
        one.shared.note(&one.counters, 7, &limits, 1, NOW, || {
            named += 1;
            7
        });
    }
    assert_eq!(named, 1);
    let mut counts = one.shared.report(false, NOW);
    counts.sort_by_key(|it| it.until_ms);
    assert_eq!(counts.len(), 2);
    assert_ne!(counts[0].window.0, counts[1].window.0);
    assert!(counts.iter().all(|it| it.count == 2));
}

/// A count of a window of its own that ends after so long.
fn count_of(key: u128, after_ms: u64, count: u64) -> Count {
    Count {
        window: (key, NOW + after_ms),
        until_ms: NOW + after_ms,
        count,
    }
}

#[test]
fn what_is_not_credible_is_refused() {
    const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1_000;
    let exchange = CountExchange::new(1);
    let late_in_use = Count {
        until_ms: u64::MAX,
        ..count_of(3, 1_000, 1)
    };
    let counts = [
        count_of(1, 2 * YEAR_MS, 1 << 48),
        count_of(2, 2 * YEAR_MS + 60_001, 1),
        late_in_use,
        count_of(4, 1_000, (1 << 48) + 1),
    ];
    let settlement = exchange.merge(("one", 1), true, &counts, NOW);
    assert_eq!((settlement.not_credible, settlement.without_room), (3, 0));
    assert_eq!(settlement.others, [(counts[0].window, 0)]);
    assert_eq!(exchange.windows(), 1);
    exchange.merge(("one", 1), true, &[], NOW + 2 * YEAR_MS + 60_000);
    assert_eq!(exchange.windows(), 0);
}

#[test]
fn the_runs_of_a_gateway_are_bounded() {
    let exchange = CountExchange::new(1);
    let count = count_of(1, 60 * 60_000, 1);
    for run in 0..16 {
        let settlement = exchange.merge(("one", run), true, &[count], NOW);
        assert_eq!(settlement.others, [(count.window, run)]);
    }
    let settlement = exchange.merge(("one", 16), true, &[count], NOW);
    assert_eq!((settlement.without_room, settlement.others.len()), (1, 0));
    let settlement = exchange.merge(("other", 16), true, &[count], NOW);
    assert_eq!(settlement.others, [(count.window, 16)]);
    // Later those runs are over. What they have counted stays.
    for run in 17..34 {
        let settlement = exchange.merge(("one", run), true, &[count], NOW + 100_000 * run);
        assert_eq!(settlement.without_room, 0);
    }
    let settlement = exchange.merge(("other", 16), true, &[count], NOW + 100_000 * 34);
    assert_eq!(settlement.others, [(count.window, 33)]);
}

#[test]
fn gateways_and_the_windows_of_one_are_bounded() {
    let exchange = CountExchange::new(1);
    for number in 0..1_000 {
        exchange.merge((&number.to_string(), 1), true, &[], NOW);
    }
    let one = [count_of(1, 1_000, 1)];
    assert_eq!(exchange.merge(("more", 1), true, &one, NOW).without_room, 1);
    assert!(!exchange.is_idle(NOW) && exchange.is_idle(NOW + 60_000));
    let (most, more) = (1 << 19, 5);
    let counts: Vec<Count> = (0..most + more).map(|key| count_of(key, 1_000, 1)).collect();
    let settlement = exchange.merge(("one", 1), false, &counts, NOW + 60_000);
    assert_eq!(settlement.without_room, more as usize);
}

#[test]
fn a_report_looks_only_where_calls_have_counted() {
    let gateway = Gateway::new("one");
    let limit = |length_ms: u64| WindowLimit {
        window: Window::Aligned { length_ms },
        limit: 10,
    };
    let counted = |all: bool, now_ms: u64| {
        let mut counts: Vec<(u64, u64)> = gateway
            .shared
            .report(all, now_ms)
            .iter()
            .map(|it| (it.window.1 - NOW, it.count))
            .collect();
        counts.sort_unstable();
        counts
    };
    for key in 0..100 {
        assert!(gateway.call(key, limit(60_000), NOW));
    }
    assert!(gateway.call(3, limit(1_000), NOW) && gateway.call(3, limit(1_000), NOW));
    let reported = counted(false, NOW);
    assert_eq!(
        (reported.len(), reported[0], reported[100]),
        (101, (1_000, 2), (60_000, 1))
    );
    // Nothing has happened: no shard is locked, so that a call that holds one is not waited for.
    let held = lock(&gateway.shared.shards[3].notes);
    assert_eq!(counted(false, NOW + 1), []);
    drop(held);
    assert!(gateway.call(5, limit(60_000), NOW + 2));
    let held = lock(&gateway.shared.shards[4].notes);
    assert_eq!(counted(false, NOW + 3), [(60_000, 2)]);
    drop(held);
    assert_eq!(counted(false, NOW + 3), [], "it is reported once");
    // A call that counts in a window that is over before the report is not reported.
    assert!(gateway.call(3, limit(1_000), NOW + 4));
    assert_eq!(counted(false, NOW + 1_000), []);
    assert_eq!(counted(true, NOW + 1_000).len(), 100);
    assert_eq!(counted(false, NOW + 60_000), []);
    assert!(!gateway.shared.is_open());
    let over = |shard: &Shard| shard.first_over_ms.load(Ordering::Relaxed) == u64::MAX;
    assert!(gateway.shared.shards.iter().all(over));
}
