//! Tests of the aggregator.

use super::*;
use crate::batch::{Batch, BatchRow};
use proptest::prelude::*;

fn calls_of(batch: &Batch, cube: Cube, value: impl Fn(&[&str]) -> bool) -> u64 {
    let rows = batch.rows.iter().filter(|row| row.cube == cube);
    let of = |row: &&BatchRow| {
        let names: Vec<&str> = row.key[..cube.dimensions().len()]
            .iter()
            .map(|name| batch.names[*name as usize].as_str())
            .collect();
        value(&names)
    };
    rows.filter(of).map(|row| row.cell.sums.get(Field::Calls)).sum()
}

#[test]
fn a_call_counts_in_every_cube_that_it_concerns() {
    let mut aggregator = Aggregator::new("edge-1", "prod", 60_000 * 1_000);
    let [service, route, consumer, upstream, target, refusal] =
        ["shop", "list", "alice", "u", "h:1", "rate_limited"].map(|name| aggregator.name(name));
    let call = FinishedCall {
        minute: 1_000,
        service,
        route,
        consumer,
        upstream,
        target,
        status: 200,
        total_us: 900,
        upstream_us: 600,
        ..FinishedCall::default()
    };
    aggregator.add(&call);
    aggregator.add(&FinishedCall {
        refusal,
        upstream: 0,
        upstream_us: 0,
        status: 429,
        ..call
    });
    let batch = aggregator.take_batch(60_000, false);
    for (cube, key, calls) in [
        (Cube::Route, &["prod", "shop", "list", "200"][..], 1),
        (Cube::Route, &["prod", "shop", "list", "429"], 1),
        (Cube::Caller, &["prod", "shop", "alice", "4xx"], 1),
        (Cube::CallerRoute, &["prod", "alice", "shop", "list"], 2),
        (Cube::Target, &["prod", "u", "h:1", "2xx"], 1),
        (Cube::Refusal, &["prod", "shop", "rate_limited", "", "429"], 1),
        (Cube::Gateway, &["prod", "edge-1", "2xx"], 1),
    ] {
        assert_eq!(calls_of(&batch, cube, |names| names == key), calls, "{key:?}");
    }
    assert_eq!((batch.number, batch.since, batch.complete), (1, 1_000, 999));
    assert_eq!(batch.uniques.len(), 1);
    assert_eq!(batch.uniques[0].3.estimate(), 1);
    let next = aggregator.take_batch(60_060, true);
    assert_eq!((next.number, next.rows.len(), next.is_last), (2, 0, true));
    assert_eq!(Batch::decode(&batch.encode()), Ok(batch));
}

/// Calls of a published API count by operation and revision, and by subscription. What was counted before groups are
/// forgotten stays counted.
#[test]
fn calls_of_apis_count_by_revision_and_subscription() {
    let mut aggregator = Aggregator::new("edge-1", "", 60_000 * 1_000);
    let names = ["test", "pets", "1", "7", "listPets", "shop", "s1"];
    let [
        environment,
        api,
        version,
        revision,
        operation,
        application,
        subscription,
    ] = names.map(|name| aggregator.name(name));
    let call = FinishedCall {
        minute: 1_000,
        environment,
        api,
        version,
        revision,
        operation,
        application,
        consumer: application,
        subscription,
        status: 200,
        total_us: 900,
        ..FinishedCall::default()
    };
    aggregator.add(&call);
    assert!(!aggregator.has_many_groups());
    aggregator.forget_groups();
    aggregator.add(&call);
    aggregator.add(&FinishedCall {
        subscription: 0,
        application: 0,
        consumer: 0,
        ..call
    });
    let batch = aggregator.take_batch(60_000, false);
    for (cube, key, calls) in [
        (Cube::Operation, ["test", "pets", "1", "7", "listPets"], 3),
        (Cube::Subscription, ["test", "pets", "1", "shop", "s1"], 2),
        (Cube::Usage, ["test", "pets", "1", "shop", ""], 2),
        (Cube::Usage, ["test", "pets", "1", "", ""], 1),
    ] {
        assert_eq!(calls_of(&batch, cube, |names| names == key), calls, "{key:?}");
    }
    assert_eq!(calls_of(&batch, Cube::Subscription, |_| true), 2);
    for number in 0..groups::MAX_GROUPS as u32 / 2 {
        aggregator.route(RouteNames {
            route: number,
            ..RouteNames::default()
        });
    }
    assert!(aggregator.has_many_groups());
    aggregator.forget_groups();
    assert!(!aggregator.has_many_groups());
}

/// A million paths, addresses and agents that never come twice, and 200,000 routes and callers.
#[test]
fn memory_is_bounded_with_a_million_keys() {
    const TEXTS: u32 = 1_000_000;
    const CALLS: u32 = 200_000;
    let mut aggregator = Aggregator::new("g", "", 0);
    let service = aggregator.name("s");
    let mut most = 0;
    for number in 0..TEXTS {
        if number < CALLS {
            // A third of the calls is by consumers, the others are by addresses.
            let consumer = match number % 3 {
                0 => aggregator.name(&format!("c{number}")),
                _ => 0,
            };
            aggregator.add(&FinishedCall {
                minute: 7,
                service,
                route: number,
                consumer,
                status: 200,
                total_us: number,
                caller: u64::from(number),
                ..FinishedCall::default()
            });
        }
        let text = format!("/{number}");
        aggregator.add_sampled(&SampledCall {
            minute: 7,
            weight: 4,
            service,
            unmatched_path: Some(&text),
            network: &text,
            agent: &text,
        });
        if number % 20_000 == 0 {
            most = most.max(aggregator.bytes());
        }
    }
    assert!(most < 64_000_000, "{most} bytes");
    let bound: usize = Cube::ALL.iter().map(|cube| cube.limit() + 1).sum();
    let waiting = aggregator.waiting();
    assert!(waiting <= bound + 3 * series::MAX_SERIES, "{waiting}");
    let batch = aggregator.take_batch(480, false);
    for (cube, calls) in [
        (Cube::Route, CALLS),
        (Cube::Caller, CALLS),
        (Cube::CallerRoute, CALLS / 3 + 1),
        (Cube::Path, 4 * TEXTS),
        (Cube::Network, 4 * TEXTS),
        (Cube::Agent, 4 * TEXTS),
    ] {
        assert_eq!(calls_of(&batch, cube, |_| true), u64::from(calls), "{cube:?}");
    }
    assert!(calls_of(&batch, Cube::CallerRoute, |names| names[1] == OTHER) > 0);
    // No text came often enough to have a row of its own: there is no row for each of those that came last.
    let texts = |row: &&BatchRow| row.cube.is_sampled();
    assert!(batch.rows.iter().filter(texts).count() < 10);
    assert!(batch.encode().len() < 10_000_000);
}

#[test]
fn a_frequent_path_stays_among_many_rare_ones() {
    let mut aggregator = Aggregator::new("g", "", 0);
    for number in 0..20_000_u32 {
        let rare = format!("/{number}");
        for path in [&*rare, "/often"] {
            aggregator.add_sampled(&SampledCall {
                minute: 7,
                weight: 3,
                unmatched_path: Some(path),
                ..SampledCall::default()
            });
        }
    }
    let batch = aggregator.take_batch(480, false);
    let of = |path: &str| calls_of(&batch, Cube::Path, |names| names[1] == path);
    assert_eq!((of("/often"), of(OTHER)), (60_000, 60_000));
    assert_eq!(batch.rows.len(), 2);
    // In the next hour there is room for texts again.
    let empty = aggregator.take_batch(3_700, false);
    assert_eq!(empty.rows, []);
    aggregator.add_sampled(&SampledCall {
        minute: 62,
        weight: 1,
        unmatched_path: Some("/new"),
        ..SampledCall::default()
    });
    let batch = aggregator.take_batch(3_730, false);
    assert_eq!(calls_of(&batch, Cube::Path, |names| names[1] == "/new"), 1);
}

/// The defect: a path that was called once stood there with the weight of its line, and there were more rows than the bound.
#[test]
fn a_path_that_came_once_claims_no_more() {
    let mut aggregator = Aggregator::new("g", "", 0);
    let add = |aggregator: &mut Aggregator, minute: u32, weight: u32, path: &str| {
        aggregator.add_sampled(&SampledCall {
            minute,
            weight,
            unmatched_path: Some(path),
            ..SampledCall::default()
        });
    };
    let mut paths = std::collections::BTreeSet::new();
    let mut take = |aggregator: &mut Aggregator, at: u64| {
        let batch = aggregator.take_batch(at, false);
        let rows = batch.rows.iter().filter(|row| row.cube == Cube::Path);
        paths.extend(rows.map(|row| batch.names[row.key[1] as usize].clone()));
        let of = |path: &str| calls_of(&batch, Cube::Path, |names| names[1] == path);
        (of("/once"), of("/often"), of(OTHER), paths.len())
    };
    add(&mut aggregator, 7, 334, "/once");
    (0..3).for_each(|_| add(&mut aggregator, 7, 334, "/often"));
    assert_eq!(take(&mut aggregator, 480), (0, 1_002, 334, 2));
    // Lines that stand for themselves are certain, up to the bound.
    for number in 0..5_000 {
        add(&mut aggregator, 8, 1, &format!("/{number}"));
    }
    for number in 0..5_000 {
        add(&mut aggregator, 8, 1_271, &format!("/u{number}"));
        add(&mut aggregator, 8, 1_271, "/later");
    }
    let (_, _, _, rows) = take(&mut aggregator, 540);
    assert!(rows <= 500, "{rows}");
    assert!(paths.contains("/later"), "{paths:?}");
}

/// Calls of several minutes, hours and kinds, in any order: what series have counted goes to the rows of their minute.
#[test]
fn counts_go_to_the_minutes_of_their_calls() {
    let mut aggregator = Aggregator::new("g", "", 0);
    let service = aggregator.name("s");
    let apart = [7_u32, 8, 7, 61, 59, 61, 8];
    for (place, minute) in apart.into_iter().enumerate() {
        for caller in 0..3 {
            aggregator.add(&FinishedCall {
                minute,
                service,
                upstream: service,
                status: 200,
                total_us: 1_000 * (place as u32 + 1),
                upstream_us: 500,
                caller,
                ..FinishedCall::default()
            });
        }
    }
    let batch = aggregator.take_batch(3_720, false);
    for (minute, calls, longest) in [(7, 6, 3_000), (8, 6, 7_000), (59, 3, 5_000), (61, 6, 6_000)] {
        let of = |cube: Cube| {
            let row = batch
                .rows
                .iter()
                .find(|row| row.cube == cube && row.minute == minute);
            row.map(|row| {
                let counts = row.cell.sketches.each_ref().map(crate::sketch::Sketch::count);
                (
                    row.cell.sums.get(Field::Calls),
                    row.cell.sums.get(Field::Longest),
                    counts,
                )
            })
        };
        assert_eq!(of(Cube::Route), Some((calls, longest, [calls; 3])), "{minute}");
        assert_eq!(
            of(Cube::Caller),
            Some((calls, longest, [calls, 0, 0])),
            "{minute}"
        );
        assert_eq!(
            of(Cube::Target),
            Some((calls, longest, [0, calls, 0])),
            "{minute}"
        );
        assert_eq!(of(Cube::Client), Some((calls, longest, [0, 0, 0])), "{minute}");
    }
    let callers: Vec<(u32, u64)> = {
        let mut callers: Vec<_> = batch.uniques.iter().map(|it| (it.2, it.3.estimate())).collect();
        callers.sort_unstable();
        callers
    };
    assert_eq!(callers, [(0, 3), (1, 3)], "three addresses in each of two hours");
}

/// With more series than there is room for, everything is counted still.
#[test]
fn more_series_than_there_is_room_for_are_all_counted() {
    let mut aggregator = Aggregator::new("g", "", 0);
    let (service, target) = (aggregator.name("s"), aggregator.name("t"));
    let calls = series::MAX_SERIES as u32 + 1_000;
    for route in 0..calls {
        aggregator.add(&FinishedCall {
            minute: 7,
            service,
            route,
            upstream: service,
            target,
            status: 200,
            total_us: 5,
            upstream_us: 4,
            ..FinishedCall::default()
        });
    }
    let spread = aggregator.by_route.called();
    assert_eq!(spread, 1_000, "the first ones were spread, and forgotten");
    let batch = aggregator.take_batch(480, false);
    for cube in [Cube::Route, Cube::Caller, Cube::Target, Cube::Gateway] {
        assert_eq!(calls_of(&batch, cube, |_| true), u64::from(calls), "{cube:?}");
    }
}

proptest! {
    #[test]
    fn totals_are_exact_in_every_cube(calls in prop::collection::vec((0_u32..4, 0_u32..6, 0_u16..5, 0_u32..9_000), 1..200)) {
        let mut aggregator = Aggregator::new("g", "", 0);
        let names: Vec<NameId> = (0..6).map(|it| aggregator.name(&it.to_string())).collect();
        for (minute, name, class, us) in &calls {
            aggregator.add(&FinishedCall {
                minute: 60 + minute,
                service: names[*name as usize % 3],
                route: names[*name as usize],
                consumer: names[*name as usize],
                status: 100 * (class + 1),
                total_us: *us,
                bytes_out: u64::from(*us),
                ..FinishedCall::default()
            });
        }
        let batch = aggregator.take_batch(3_900, false);
        for cube in [Cube::Route, Cube::Caller, Cube::CallerRoute, Cube::Client, Cube::Gateway] {
            prop_assert_eq!(calls_of(&batch, cube, |_| true), calls.len() as u64);
        }
        let total: u64 = calls.iter().map(|(_, _, _, us)| u64::from(*us)).sum();
        let counted = |field| batch.rows.iter().filter(|row| row.cube == Cube::Route).map(|row| row.cell.sums.get(field)).sum::<u64>();
        prop_assert_eq!((counted(Field::Total), counted(Field::BytesOut)), (total, total));
        prop_assert_eq!(counted(Field::ClientErrors), calls.iter().filter(|(_, _, class, _)| *class == 3).count() as u64);
    }
}
