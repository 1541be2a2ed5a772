//! Tests of the aggregator.

use super::*;
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
    let call = Call {
        minute: 1_000,
        service,
        route,
        consumer,
        upstream,
        target,
        status: 200,
        total_us: 900,
        upstream_us: 600,
        ..Call::default()
    };
    aggregator.add(&call);
    aggregator.add(&Call {
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

#[test]
fn memory_is_bounded_with_a_million_keys() {
    let mut aggregator = Aggregator::new("g", "", 0);
    let service = aggregator.name("s");
    let consumers: Vec<NameId> = (0..100_000)
        .map(|it| aggregator.name(&format!("c{it}")))
        .collect();
    for number in 0..1_000_000_u32 {
        let consumer = consumers[(number % 100_000) as usize];
        aggregator.add(&Call {
            minute: 7,
            service,
            route: number,
            consumer,
            status: 200,
            caller: u64::from(number),
            ..Call::default()
        });
        if number % 4 == 0 {
            let (path, agent) = (format!("/{number}"), format!("agent {number}"));
            aggregator.add_sampled(&SampledCall {
                minute: 7,
                weight: 4,
                service,
                unmatched_path: Some(&path),
                network: &path,
                agent: &agent,
            });
        }
    }
    let bound: usize = Cube::ALL.iter().map(|cube| cube.limit() + 1).sum();
    assert!(aggregator.waiting() <= bound, "{}", aggregator.waiting());
    assert!(aggregator.texts.len() <= 50_000);
    let batch = aggregator.take_batch(480, false);
    for cube in [
        Cube::Route,
        Cube::Caller,
        Cube::CallerRoute,
        Cube::Path,
        Cube::Network,
        Cube::Agent,
    ] {
        assert_eq!(calls_of(&batch, cube, |_| true), 1_000_000, "{cube:?}");
    }
    assert!(calls_of(&batch, Cube::CallerRoute, |names| names[1] == OTHER) > 0);
}

proptest! {
    #[test]
    fn totals_are_exact_in_every_cube(calls in prop::collection::vec((0_u32..4, 0_u32..6, 0_u16..5, 0_u32..9_000), 1..200)) {
        let mut aggregator = Aggregator::new("g", "", 0);
        let names: Vec<NameId> = (0..6).map(|it| aggregator.name(&it.to_string())).collect();
        for (minute, name, class, us) in &calls {
            aggregator.add(&Call {
                minute: 60 + minute,
                service: names[*name as usize % 3],
                route: names[*name as usize],
                consumer: names[*name as usize],
                status: 100 * (class + 1),
                total_us: *us,
                bytes_out: u64::from(*us),
                ..Call::default()
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
