//! The SQLite store, from batches to answers: exact counts, batches once, gaps, retention, sizes.

#[path = "support/made_up.rs"]
mod made_up;

use made_up::Numbers;
use std::collections::BTreeMap;
use std::path::Path;
use weir_analytics::aggregate::{Aggregator, FinishedCall};
use weir_analytics::batch::{Batch, BatchRow};
use weir_analytics::cell::{Cell, Field};
use weir_analytics::cube::Cube;
use weir_analytics::query::{Length, OneOrMany, Query, QueryResponse, TimePoint};
use weir_analytics::retention::{DAY, HOUR, Retention};
use weir_analytics::sqlite::SqliteAnalytics;
use weir_analytics::{AnalyticsStore, IngestResult, StoreError, csv};

/// A whole day and hour.
const START: u64 = 20_000 * DAY;

fn open(folder: &Path) -> SqliteAnalytics {
    SqliteAnalytics::open(&folder.join("analytics.db"), Retention::default()).expect("opened")
}

fn query(metrics: &[&str], from: u64, to: u64, group_by: &[&str], step: Option<&str>) -> Query {
    Query {
        metrics: metrics.iter().map(|it| (*it).to_owned()).collect(),
        group_by: group_by.iter().map(|it| (*it).to_owned()).collect(),
        step: step.map(|it| Length::Text(it.to_owned())),
        limit: Some(1_000),
        ..Query::of("calls", from, to)
    }
}

fn totals(answer: &QueryResponse, metric: &str) -> BTreeMap<String, f64> {
    let frames = answer.frames.iter().map(|frame| {
        let group: Vec<&str> = frame.group.values().map(String::as_str).collect();
        (group.join("/"), frame.total[metric].unwrap_or(f64::NAN))
    });
    frames.collect()
}

fn sum(answer: &QueryResponse, metric: &str) -> f64 {
    totals(answer, metric).values().sum()
}

#[test]
fn counts_are_exact_and_percentiles_close() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let mut aggregator = Aggregator::new("g", "", START * 1_000);
    let mut numbers = Numbers(7);
    let (mut by_route, mut by_consumer, mut by_status) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut times: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let statuses = [200_u16, 200, 200, 201, 404, 429, 502];
    for number in 0..100_000_u64 {
        let route = numbers.below(8);
        let consumer = numbers.below(30);
        let status = statuses[numbers.below(7) as usize];
        let us = numbers.duration();
        let call = FinishedCall {
            minute: ((START + number / 30) / 60) as u32,
            service: aggregator.name("shop"),
            route: aggregator.name(&format!("route-{route}")),
            consumer: aggregator.name(&format!("consumer-{consumer}")),
            status,
            total_us: us as u32,
            ..FinishedCall::default()
        };
        aggregator.add(&call);
        *by_route.entry(format!("route-{route}")).or_insert(0.0) += 1.0;
        *by_consumer.entry(format!("consumer-{consumer}")).or_insert(0.0) += 1.0;
        *by_status.entry(status.to_string()).or_insert(0.0) += 1.0;
        times.entry(route).or_default().push(us);
        if number % 9_999 == 0 {
            let batch = aggregator.take_batch(START + number / 30, false);
            assert_eq!(store.ingest(&batch, START).expect("added"), IngestResult::Added);
        }
    }
    let now = START + HOUR;
    store
        .ingest(&aggregator.take_batch(now, true), now)
        .expect("added");
    let ask = |query: &Query| store.query(query, now).expect("an answer");
    for (dimension, expected) in [
        ("route", &by_route),
        ("consumer", &by_consumer),
        ("status", &by_status),
    ] {
        let answer = ask(&query(&["calls"], START, now, &[dimension], None));
        assert_eq!(&totals(&answer, "calls"), expected);
        assert!(!answer.partial && !answer.sampled && answer.resolution == 60);
        let series = ask(&query(&["calls"], START, now, &[dimension], Some("1m")));
        for frame in &series.frames {
            let points: f64 = frame.values["calls"].iter().flatten().sum();
            assert_eq!(Some(points), frame.total["calls"]);
        }
    }
    let metrics = ["latency_p50", "latency_p95", "latency_p99"];
    let answer = ask(&query(&metrics, START, now, &["route"], None));
    for (route, mut values) in times {
        values.sort_unstable();
        for (metric, share) in metrics.into_iter().zip([0.5, 0.95, 0.99]) {
            let exact = values[((share * values.len() as f64).ceil() as usize) - 1] as f64;
            let total = totals(&answer, metric)[&format!("route-{route}")];
            assert!(
                (total - exact).abs() <= 0.031_25 * exact + 1.0,
                "{metric}: {total} {exact}"
            );
        }
    }
    let mut filtered = query(&["calls", "share_5xx"], START, now, &["class"], None);
    filtered
        .filter
        .insert("route".to_owned(), OneOrMany::One("route-3".to_owned()));
    filtered.filter.insert(
        "class".to_owned(),
        OneOrMany::Many(vec!["2xx".to_owned(), "5xx".to_owned()]),
    );
    let answer = ask(&filtered);
    assert_eq!(totals(&answer, "share_5xx")["5xx"], 1.0);
    assert_eq!(answer.frames.len(), 2);
    let few = ask(&Query {
        limit: Some(2),
        ..query(&["calls"], START, now, &["route"], Some("auto"))
    });
    assert_eq!(
        (few.frames.len(), few.frames[2].group["route"].as_str()),
        (3, "_other")
    );
    assert_eq!(sum(&few, "calls"), 100_000.0);
    let unique = ask(&query(&["unique_callers"], START, now, &["service"], None));
    assert_eq!(totals(&unique, "unique_callers")["shop"], 30.0);
}

fn batch(gateway: &str, run: u64, number: u64, minute: u64, calls: u64) -> Batch {
    let mut cell = Cell::default();
    cell.sums.add(Field::Calls, calls);
    cell.sums.add(Field::Total, calls * 1_000);
    cell.sketches[0].add_many(1_000, calls);
    Batch {
        gateway: gateway.to_owned(),
        run,
        number,
        since: (START / 60) as u32,
        complete: minute as u32,
        names: ["", "shop", "list", "200"].map(str::to_owned).to_vec(),
        rows: vec![BatchRow {
            cube: Cube::Route,
            minute: minute as u32,
            key: [0, 1, 2, 3, 0],
            cell,
        }],
        ..Batch::default()
    }
}

#[test]
fn a_batch_counts_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let (now, minute) = (START + 600, START / 60);
    let first = batch("g", 1, 1, minute, 5);
    let all = query(&["calls"], START, now, &[], None);
    for expected in [
        IngestResult::Added,
        IngestResult::Duplicate,
        IngestResult::Duplicate,
    ] {
        assert_eq!(store.ingest(&first, now).expect("taken"), expected);
        assert_eq!(sum(&store.query(&all, now).expect("an answer"), "calls"), 5.0);
    }
    let other = store.ingest(&batch("g", 1, 1, minute, 6), now);
    assert!(
        matches!(other, Err(StoreError::OtherBatch { number: 1, .. })),
        "{other:?}"
    );
    for (gateway, run, number) in [("g", 1, 2), ("g", 2, 1), ("h", 1, 1)] {
        store
            .ingest(&batch(gateway, run, number, minute, 5), now)
            .expect("taken");
    }
    drop(store);
    // Also after the process was started again.
    let store = open(folder.path());
    assert_eq!(store.ingest(&first, now).expect("taken"), IngestResult::Duplicate);
    assert_eq!(sum(&store.query(&all, now).expect("an answer"), "calls"), 20.0);
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let minute = START / 60;
    let at = |minutes: u64| START + minutes * 60;
    let ask = |from: u64, to: u64, now: u64| {
        let answer = store
            .query(&query(&["calls"], from, to, &[], None), now)
            .expect("an answer");
        assert_eq!(answer.partial, !answer.gaps.is_empty());
        answer
            .gaps
            .into_iter()
            .map(|gap| (gap.from, gap.to))
            .collect::<Vec<_>>()
    };
    store
        .ingest(&batch("g", 1, 1, minute + 5, 5), at(6))
        .expect("added");
    assert_eq!(ask(at(0), at(6), at(6)), []);
    // Nothing was heard for a while.
    assert_eq!(ask(at(0), at(20), at(20)), [(at(6), at(20))]);
    assert_eq!(ask(at(0), at(6), at(20)), []);
    // It was killed, and has started again.
    let mut again = batch("g", 2, 1, minute + 21, 5);
    again.since = (minute + 20) as u32;
    store.ingest(&again, at(21)).expect("added");
    assert_eq!(ask(at(0), at(21), at(22)), [(at(6), at(21))]);
    assert_eq!(ask(at(0), at(6), at(22)), []);
    // It ends and says so.
    let last = Batch {
        is_last: true,
        ..batch("g", 2, 2, minute + 23, 5)
    };
    store.ingest(&last, at(24)).expect("added");
    assert_eq!(ask(at(22), at(60), at(60)), []);
    let mut third = batch("g", 3, 1, minute + 50, 5);
    (third.since, third.lost, third.dropped) = ((minute + 45) as u32, Some((30, 40)), 2);
    store.ingest(&third, at(51)).expect("added");
    assert_eq!(ask(at(48), at(51), at(51)).len(), 1, "dropped calls are a gap");
    assert_eq!(ask(30 * 60, 40 * 60, at(51)).len(), 1, "lost batches are a gap");
}

#[test]
fn retention_makes_the_file_smaller_and_answers_coarser() {
    let folder = tempfile::tempdir().expect("a folder");
    let retention = Retention {
        minutes: DAY,
        five_minutes: 2 * DAY,
        hours: 4 * DAY,
        minute_sketches: 6 * HOUR,
        quarter_sketches: DAY,
        unique_hours: DAY,
    };
    let path = folder.path().join("analytics.db");
    let store = SqliteAnalytics::open(&path, retention).expect("opened");
    let mut aggregator = Aggregator::new("g", "", START * 1_000);
    let mut numbers = Numbers(3);
    let (days, per_minute) = (3_u64, 12_u64);
    for minute in 0..days * 24 * 60 {
        for _ in 0..per_minute {
            let call = FinishedCall {
                minute: (START / 60 + minute) as u32,
                service: aggregator.name("shop"),
                route: aggregator.name(&format!("route-{}", numbers.below(10))),
                consumer: aggregator.name(&format!("consumer-{}", numbers.below(10))),
                status: 200,
                total_us: numbers.duration() as u32,
                bytes_out: numbers.below(5_000),
                ..FinishedCall::default()
            };
            aggregator.add(&call);
        }
        if minute % 60 == 59 {
            let batch = aggregator.take_batch(START + minute * 60 + 60, minute + 1 == days * 24 * 60);
            store.ingest(&batch, START + minute * 60).expect("added");
        }
    }
    let size = || std::fs::metadata(&path).expect("there").len();
    let day = (per_minute * 24 * 60) as f64;
    // All of it is brought into the file, and nothing is put together.
    store
        .retain(&Retention::default(), START + days * DAY)
        .expect("cleared up");
    let mut sizes = vec![size()];
    for (age, resolution) in [(0, 60), (1, 300), (2, 3_600), (4, 86_400)] {
        let now = START + (days + age) * DAY;
        store.retain(&retention, now).expect("cleared up");
        sizes.push(size());
        let from = START + (days - 1) * DAY;
        let asked = query(&["calls", "latency_p95"], from, from + DAY, &[], Some("auto"));
        let answer = store.query(&asked, now + 60).expect("an answer");
        assert_eq!(sum(&answer, "calls"), day, "after {age} days");
        assert!(
            answer.resolution >= resolution,
            "after {age} days: {}",
            answer.resolution
        );
        assert!(answer.step >= Some(resolution));
        let points: f64 = answer.frames[0].values["calls"].iter().flatten().sum();
        assert_eq!(points, day, "after {age} days");
        let p95 = totals(&answer, "latency_p95").into_values().next();
        assert!(p95.is_some_and(|it| it > 1_000.0), "{p95:?}");
    }
    assert!(sizes.is_sorted_by(|a, b| b <= a), "{sizes:?}");
    assert!(sizes[4] * 4 < sizes[0], "{sizes:?}");
    // The first day stands in days only, and what comes late counts there as well.
    let now = START + (days + 4) * DAY;
    store
        .ingest(&batch("late", 1, 1, START / 60 + 30, 7), now)
        .expect("added");
    let answer = store
        .query(&query(&["calls"], START, START + DAY, &[], None), now)
        .expect("an answer");
    assert_eq!((sum(&answer, "calls"), answer.resolution), (day + 7.0, 86_400));
}

#[test]
fn comparisons_and_csv_have_the_same_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let minute = START / 60;
    store
        .ingest(&batch("g", 1, 1, minute + 1, 10), START)
        .expect("added");
    store
        .ingest(&batch("g", 1, 2, minute + 61, 30), START)
        .expect("added");
    let mut asked = query(
        &["calls", "latency_p50"],
        START + HOUR,
        START + HOUR + 180,
        &["service"],
        Some("1m"),
    );
    asked.compare = Some(Length::Text("1h".to_owned()));
    let answer = store.query(&asked, START + HOUR + 200).expect("an answer");
    let frame = &answer.frames[0];
    assert_eq!(frame.values["calls"], [Some(0.0), Some(30.0), Some(0.0)]);
    assert_eq!(frame.values["latency_p50"], [None, Some(1_007.0), None]);
    let before = frame.compare.as_ref().expect("compared");
    assert_eq!(
        (before.total["calls"], &before.values["calls"][1]),
        (Some(10.0), &Some(10.0))
    );
    let lines = csv::write(&answer);
    let start = START + HOUR;
    let expected = format!(
        "time,service,calls,latency_p50,calls_before,latency_p50_before\r\n{start},shop,0,,0,\r\n{},shop,30,1007,10,1007\r\n{},shop,0,,0,\r\n",
        start + 60,
        start + 120
    );
    assert_eq!(lines, expected);
    asked.from = TimePoint::Unix(START);
    (asked.step, asked.compare) = (None, None);
    let answer = store.query(&asked, START + HOUR + 200).expect("an answer");
    assert_eq!(
        csv::write(&answer),
        "service,calls,latency_p50\r\nshop,40,1007\r\n"
    );
    // The defect: the columns were those of the first line, and the metrics in the order of the alphabet.
    let metrics = ["latency_p50", "calls"];
    let mut of_none = query(&metrics, START, START + HOUR + 180, &["service"], None);
    of_none.filter = serde_json::from_value(serde_json::json!({ "service": "other" })).expect("a filter");
    for (compare, step, expected) in [
        (None, None, "service,latency_p50,calls\r\n"),
        (
            Some("1h"),
            Some("1m"),
            "time,service,latency_p50,calls,latency_p50_before,calls_before\r\n",
        ),
    ] {
        of_none.compare = compare.map(|it| Length::Text(it.to_owned()));
        of_none.step = step.map(|it| Length::Text(it.to_owned()));
        let answer = store.query(&of_none, START + HOUR + 200).expect("an answer");
        assert_eq!(csv::write(&answer), expected);
    }
}

/// An hour as a gateway with 10,000 calls a second would fill it, at a quarter of its size: bytes a row in the file,
/// against the sizes that docs/analytics.md states.
#[test]
fn rows_are_as_small_as_stated() {
    let mut numbers = Numbers(11);
    let (mut rows, mut names) = (Vec::new(), vec![String::new()]);
    // Cube, keys, calls a second of all of them.
    for (cube, keys, calls) in [
        (Cube::Route, 375_usize, 2_500.0),
        (Cube::Caller, 500, 2_500.0),
        (Cube::CallerRoute, 500, 2_200.0),
        (Cube::Target, 150, 2_400.0),
        (Cube::Client, 75, 2_500.0),
        (Cube::Refusal, 50, 50.0),
        (Cube::Gateway, 4, 2_500.0),
        (Cube::Network, 346, 100.0),
    ] {
        for place in 1..=keys {
            names.push(format!("{}-{place}", cube.as_str()));
            let name = (names.len() - 1) as u32;
            let mut key = [0; 5];
            key[1] = name;
            for minute in 0..60_u32 {
                let calls = numbers.calls_of((keys, calls), place);
                if calls == 0 {
                    continue;
                }
                let cell = numbers.cell(cube, calls);
                rows.push(BatchRow {
                    cube,
                    minute: (START / 60) as u32 + minute,
                    key,
                    cell,
                });
            }
        }
    }
    let retention = Retention::default();
    let size_after = |age: u64| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("analytics.db");
        let store = SqliteAnalytics::open(&path, retention).expect("opened");
        let batch = Batch {
            gateway: "g".to_owned(),
            number: 1,
            names: names.clone(),
            rows: rows.clone(),
            ..Batch::default()
        };
        store.ingest(&batch, START).expect("added");
        store
            .retain(&retention, START + HOUR + 60 + age)
            .expect("cleared up");
        drop(store);
        let file = rusqlite::Connection::open(&path).expect("opened");
        let sizes = "SELECT sum(length(key) + length(data)), count(*) FROM (SELECT key, data FROM tier_0 UNION ALL SELECT key, data FROM tier_1 UNION ALL SELECT key, data FROM tier_2
        UNION ALL SELECT key, data FROM tier_3 UNION ALL SELECT key, data FROM tier_4)";
        let (bytes, count): (f64, f64) = file
            .query_row(sizes, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("counted");
        // A row of SQLite has a head of some bytes, and pages are not full.
        (bytes / count + 8.0) * 1.06
    };
    let (first_day, first_week) = (size_after(0), size_after(2 * DAY));
    for (kept, row, stated) in [
        (
            "by the minute, 8 days",
            (first_day + 15.0 * first_week) / 16.0,
            520.0,
        ),
        ("by five minutes, 22 days", size_after(9 * DAY), 213.0),
        ("by the hour, 15 months", size_after(40 * DAY), 137.0),
    ] {
        let is_as_stated = (0.5 * stated..=1.3 * stated).contains(&row);
        assert!(
            is_as_stated,
            "{kept}: {row:.0} bytes a row, {stated} are stated ({first_day:.0} on the first half-day)"
        );
    }
}
