//! Long ranges are answered from the rows of days, the present day's among them: the numbers must be those of the hours.

use weir_analytics::AnalyticsStore;
use weir_analytics::batch::{Batch, BatchRow};
use weir_analytics::cell::{Cell, Field};
use weir_analytics::cube::Cube;
use weir_analytics::query::{Length, Query, QueryResponse};
use weir_analytics::retention::{DAY, HOUR, Retention};
use weir_analytics::sqlite::SqliteAnalytics;

/// A whole day.
const START: u64 = 20_000 * DAY;
const DAYS: u64 = 12;
const CONSUMERS: u64 = 6;
/// In the middle of the last day: hours of it are over, and summed up in its row.
const NOW: u64 = START + DAYS * DAY + 13 * HOUR + 25 * 60;

/// What all consumers called in an hour, each more than the one before.
fn batch(number: u64, hour: u64) -> Batch {
    let mut names = vec![String::new(), "shop".to_owned(), "2xx".to_owned()];
    let mut rows = Vec::new();
    for consumer in 0..CONSUMERS {
        names.push(format!("c{consumer}"));
        let (calls, us) = (
            1 + consumer * 3 + hour % 5,
            1_000 * (1 + (hour * 7 + consumer * 13) % 50),
        );
        let mut cell = Cell::default();
        cell.sums.add(Field::Calls, calls);
        cell.sums.add(Field::Total, calls * us);
        cell.sums.add(Field::Longest, us);
        cell.sketches[0].add_many(us, calls);
        rows.push(BatchRow {
            cube: Cube::Caller,
            minute: (hour * 60 + hour % 60) as u32,
            key: [0, 1, 3 + consumer as u32, 2, 0],
            cell,
        });
    }
    Batch {
        gateway: "g".to_owned(),
        run: 1,
        number,
        since: (START / 60) as u32,
        complete: (hour * 60 + 59) as u32,
        names,
        rows,
        ..Batch::default()
    }
}

fn new_query(from: u64, to: u64, group_by: &[&str], step: Option<&str>) -> Query {
    Query {
        metrics: ["calls", "latency_p95", "latency_avg", "latency_max"]
            .map(str::to_owned)
            .to_vec(),
        group_by: group_by.iter().map(|it| (*it).to_owned()).collect(),
        step: step.map(|it| Length::Text(it.to_owned())),
        limit: Some(2),
        ..Query::of("calls", from, to)
    }
}

/// The totals of all frames, those that are shown and the rest.
fn totals(answer: &QueryResponse) -> Vec<String> {
    let frames = answer.frames.iter();
    frames
        .map(|it| format!("{:?} {:?}", it.group, it.total))
        .collect()
}

/// The calls of each frame by the day.
fn calls_by_day(answer: &QueryResponse) -> Vec<Vec<f64>> {
    let by_day = |frame: &weir_analytics::query::Frame| {
        let mut days = vec![0.0; (answer.to.div_ceil(DAY) - answer.from / DAY) as usize];
        for (at, calls) in answer.times.iter().zip(&frame.values["calls"]) {
            days[(at / DAY - answer.from / DAY) as usize] += calls.unwrap_or(0.0);
        }
        days
    };
    answer.frames.iter().map(by_day).collect()
}

fn filled(folder: &std::path::Path) -> SqliteAnalytics {
    let store = SqliteAnalytics::open(&folder.join("analytics.db"), Retention::default()).expect("opened");
    for (number, hour) in (START / HOUR..NOW / HOUR).enumerate() {
        store.ingest(&batch(number as u64 + 1, hour), NOW).expect("added");
        // As a running Weir clears up: now and then, while hours go on.
        if number % 31 == 0 {
            store
                .retain(&Retention::default(), hour * HOUR + 1_200)
                .expect("done");
        }
    }
    store.retain(&Retention::default(), NOW).expect("done");
    store
}

#[test]
fn series_by_days_are_the_sums_of_hours() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    // What comes late counts in its hour and in its day: of an old day, of the present one, and of the open hour.
    for (number, hour) in [
        (1_000, START / HOUR + 30),
        (1_001, NOW / HOUR - 5),
        (1_002, NOW / HOUR),
    ] {
        store.ingest(&batch(number, hour), NOW).expect("added");
    }
    let ask = |query: &Query| store.query(query, NOW).expect("an answer");
    for group_by in [&["consumer", "class"][..], &["consumer"][..]] {
        let days = ask(&new_query(START, NOW, group_by, Some("auto")));
        assert_eq!((days.step, days.times.len() as u64), (Some(DAY), DAYS + 1));
        let hours = ask(&new_query(START, NOW, group_by, Some("1h")));
        assert_eq!(hours.step, Some(HOUR));
        assert_eq!(calls_by_day(&days), calls_by_day(&hours), "{group_by:?}");
        let none = ask(&new_query(START, NOW, group_by, None));
        assert_eq!(totals(&days), totals(&none), "{group_by:?}");
        assert_eq!(totals(&hours), totals(&none), "{group_by:?}");
        let calls: f64 = none.frames.iter().filter_map(|it| it.total["calls"]).sum();
        let sent: u64 = (START / HOUR..NOW / HOUR)
            .chain([START / HOUR + 30, NOW / HOUR - 5, NOW / HOUR])
            .flat_map(|hour| batch(1, hour).rows)
            .map(|row| row.cell.sums.get(Field::Calls))
            .sum();
        assert_eq!(calls, sent as f64, "{group_by:?}");
    }
}

#[test]
fn parts_of_days_are_not_answered_by_whole_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    let today = START + DAYS * DAY;
    for (from, to) in [
        // The present day only up to an hour before that which is summed up, and from its middle.
        (START, today + 3 * HOUR),
        (today, today + 3 * HOUR),
        (today, NOW),
        (today + 5 * HOUR, NOW),
        // From and to the middle of old days.
        (START + 5 * HOUR, START + 9 * DAY + 7 * HOUR),
        (START + DAY, START + 2 * DAY),
    ] {
        let answer = store
            .query(&new_query(from, to, &["consumer"], None), NOW)
            .expect("an answer");
        let sent: u64 = (from / HOUR..to / HOUR)
            .filter(|hour| *hour < NOW / HOUR)
            .flat_map(|hour| batch(1, hour).rows)
            .map(|row| row.cell.sums.get(Field::Calls))
            .sum();
        let calls: f64 = answer.frames.iter().filter_map(|it| it.total["calls"]).sum();
        assert_eq!(calls, sent as f64, "{from} {to}");
    }
}

#[test]
fn ranking_by_a_percentile_reads_sketches_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    let ask = |step: Option<&str>| {
        let query = Query {
            order: Some("latency_p95".to_owned()),
            ..new_query(START, NOW, &["consumer"], step)
        };
        totals(&store.query(&query, NOW).expect("an answer"))
    };
    assert_eq!(ask(Some("auto")), ask(None));
}

#[test]
fn a_file_of_the_first_form_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("analytics.db");
    drop(filled(folder.path()));
    let file = rusqlite::Connection::open(&path).expect("opened");
    // As the first form had it: days that are over are summed up, the present one is not.
    let today = (START + DAYS * DAY) / DAY;
    file.execute_batch(&format!(
        "DELETE FROM day_row WHERE day = {today}; DELETE FROM meta WHERE key = 'rolled_hours';
         INSERT INTO meta VALUES ('rolled_days', {today}); PRAGMA user_version = 1;"
    ))
    .expect("changed");
    drop(file);
    let store = SqliteAnalytics::open(&path, Retention::default()).expect("opened");
    let ask = || {
        totals(
            &store
                .query(&new_query(START, NOW, &["consumer"], None), NOW)
                .expect("an answer"),
        )
    };
    let before = ask();
    store.retain(&Retention::default(), NOW).expect("done");
    assert_eq!(ask(), before);
}

#[test]
fn a_caller_without_a_name_has_the_same_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    let calls = || -> std::collections::BTreeMap<String, f64> {
        let query = Query {
            limit: Some(100),
            ..new_query(START, NOW, &["consumer"], Some("auto"))
        };
        let answer = store.query(&query, NOW).expect("an answer");
        let one =
            |it: &weir_analytics::query::Frame| Some((it.group["consumer"].clone(), it.total["calls"]?));
        answer.frames.iter().filter_map(one).collect()
    };
    let before = calls();
    let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
    let renamed = weir_analytics::Renames {
        consumers: vec![
            pair("c2", "removed-1"),
            pair("c4", "removed-2"),
            // A service is no caller, whatever its name is.
            pair("shop", "removed-3"),
            pair("unknown", "removed-4"),
        ],
        // None of these is an application.
        applications: vec![pair("c1", "removed-5")],
        // c3 calls nothing of them.
        consumers_of_services: vec![pair("c3", "removed-6")],
        services: vec!["test.pets.1.".to_owned()],
    };
    assert!(store.anonymise(&renamed).expect("done") > 0);
    let after = calls();
    assert_eq!((after.get("c2"), after.get("c4")), (None, None));
    assert_eq!(after.get("removed-1"), before.get("c2"));
    assert_eq!(after.get("removed-2"), before.get("c4"));
    assert_eq!(after.len(), before.len());
    let services = store.query(&new_query(START, NOW, &["service", "consumer"], None), NOW);
    let services = services.expect("an answer").frames;
    assert!(
        services.iter().any(|it| it.group["service"] == "shop"),
        "{services:?}"
    );
    // The file holds the old name no more once it is cleared up.
    store.retain(&Retention::default(), NOW).expect("done");
    let file = rusqlite::Connection::open(folder.path().join("analytics.db")).expect("opened");
    let known: i64 = file
        .query_row(
            "SELECT count(*) FROM name WHERE text IN ('c2', 'c4')",
            [],
            |row| row.get(0),
        )
        .expect("counted");
    assert_eq!(known, 0);
    assert_eq!(store.anonymise(&renamed).expect("done"), 0);
}
