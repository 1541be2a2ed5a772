//! Tests of reports.

use super::chart::{Form, draw, nice};
use super::render::number;
use super::*;
use crate::query::time;
use crate::query::{Columns, ComparisonValues, Frame, QueryResponse};
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;

fn at(text: &str) -> u64 {
    time::read("at", &TimePoint::Text(text.to_owned()), 0).expect("a time")
}

fn schedule(fields: Value) -> Schedule {
    serde_json::from_value(fields).expect("a schedule")
}

#[test]
fn reports_are_due_on_their_day_in_their_time_zone() {
    let weekly = json!({ "every": "week", "day": 1, "at": "07:00", "time_zone": "Europe/Berlin" });
    let monthly = json!({ "every": "month", "day": 3, "at": "00:30", "time_zone": "America/New_York" });
    let skipped = json!({ "every": "week", "day": 7, "at": "02:30", "time_zone": "Europe/Berlin" });
    for (fields, now, last, next) in [
        // A Wednesday in winter: Monday at 06:00 UTC.
        (
            &weekly,
            "2026-01-14T10:00:00Z",
            "2026-01-12T06:00:00Z",
            "2026-01-19T06:00:00Z",
        ),
        // Right at the time, and a second before.
        (
            &weekly,
            "2026-01-12T06:00:00Z",
            "2026-01-12T06:00:00Z",
            "2026-01-19T06:00:00Z",
        ),
        (
            &weekly,
            "2026-01-12T05:59:59Z",
            "2026-01-05T06:00:00Z",
            "2026-01-12T06:00:00Z",
        ),
        // The clock changes on the 29th of March: from then on 05:00 UTC.
        (
            &weekly,
            "2026-03-25T00:00:00Z",
            "2026-03-23T06:00:00Z",
            "2026-03-30T05:00:00Z",
        ),
        // 02:30 is skipped on that day: it is 03:30 of summer time.
        (
            &skipped,
            "2026-03-29T12:00:00Z",
            "2026-03-29T01:30:00Z",
            "2026-04-05T00:30:00Z",
        ),
        (
            &monthly,
            "2026-03-01T12:00:00Z",
            "2026-02-03T05:30:00Z",
            "2026-03-03T05:30:00Z",
        ),
        (
            &monthly,
            "2026-03-20T12:00:00Z",
            "2026-03-03T05:30:00Z",
            "2026-04-03T04:30:00Z",
        ),
        // In New York it is still the year before.
        (
            &monthly,
            "2026-01-01T03:00:00Z",
            "2025-12-03T05:30:00Z",
            "2026-01-03T05:30:00Z",
        ),
    ] {
        let schedule = schedule(fields.clone());
        schedule.check().expect("good");
        let written = |it: u64| schedule.written(it, true);
        let found = schedule.last_due(at(now)).expect("a time");
        assert_eq!(found, at(last), "{fields} {now}: last {}", written(found));
        let found = schedule.next_due(at(now)).expect("a time");
        assert_eq!(found, at(next), "{fields} {now}: next {}", written(found));
    }
}

#[test]
fn periods_are_whole_weeks_and_months_of_the_zone() {
    let weekly = json!({ "every": "week", "time_zone": "Europe/Berlin" });
    let monthly = json!({ "every": "month", "time_zone": "Europe/Berlin" });
    for (fields, now, from, to) in [
        (
            &weekly,
            "2026-01-12T06:00:00Z",
            "2026-01-04T23:00:00Z",
            "2026-01-11T23:00:00Z",
        ),
        // An hour shorter, for the clock.
        (
            &weekly,
            "2026-03-30T05:00:00Z",
            "2026-03-22T23:00:00Z",
            "2026-03-29T22:00:00Z",
        ),
        (
            &monthly,
            "2026-04-01T05:00:00Z",
            "2026-02-28T23:00:00Z",
            "2026-03-31T22:00:00Z",
        ),
        (
            &monthly,
            "2026-03-28T05:00:00Z",
            "2026-01-31T23:00:00Z",
            "2026-02-28T23:00:00Z",
        ),
    ] {
        let period = schedule(fields.clone()).last(at(now)).expect("a period");
        assert_eq!((period.from, period.to), (at(from), at(to)), "{fields} {now}");
    }
    for (fields, from) in [
        (&weekly, "2026-01-11T23:00:00Z"),
        (&monthly, "2025-12-31T23:00:00Z"),
    ] {
        let now = at("2026-01-14T10:00:00Z");
        let period = schedule(fields.clone()).current(now).expect("a period");
        assert_eq!((period.from, period.to), (at(from), now), "{fields}");
    }
}

fn report(fields: Value) -> ScheduledReport {
    let mut report = json!({
        "title": "The <week>", "schedule": { "every": "week" }, "to": ["ann@example.com"],
        "panels": [{ "title": "Calls", "kind": "area", "query": { "metrics": ["calls"], "step": "auto", "group_by": ["service"] } }],
    });
    for (name, value) in fields.as_object().expect("fields") {
        report[name] = value.clone();
    }
    serde_json::from_value(report).expect("a report")
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let now = at("2026-01-14T10:00:00Z");
    for (fields, expected) in [
        (json!({}), None),
        (json!({ "board": "overview", "panels": [] }), None),
        (json!({ "title": "" }), Some("title: ")),
        (
            json!({ "board": "overview" }),
            Some("panels: give a board or panels, not both"),
        ),
        (
            json!({ "panels": [] }),
            Some("board: name a board, or give panels"),
        ),
        (json!({ "to": [] }), Some("to: there must be 1 to 20 addresses")),
        (
            json!({ "to": ["ann"] }),
            Some("to: 'ann' is not a valid mail address"),
        ),
        (
            json!({ "to": ["a b@example.com"] }),
            Some("to: 'a b@example.com' is not a valid mail address"),
        ),
        (
            json!({ "schedule": { "every": "week", "day": 8 } }),
            Some("schedule.day: 8 is not a valid day: write 1 to 7"),
        ),
        (
            json!({ "schedule": { "every": "month", "day": 31 } }),
            Some("schedule.day: 31 is not a valid day: write 1 to 28"),
        ),
        (
            json!({ "schedule": { "every": "week", "at": "7:00" } }),
            Some("schedule.at: '7:00' is not a valid time of the day"),
        ),
        (
            json!({ "schedule": { "every": "week", "at": "24:00" } }),
            Some("schedule.at: "),
        ),
        (
            json!({ "schedule": { "every": "week", "time_zone": "Mars/Olympus" } }),
            Some("schedule.time_zone: there is no time zone 'Mars/Olympus'"),
        ),
        (
            json!({ "panels": [{ "title": "P", "kind": "stat", "query": { "metrics": ["no"] } }] }),
            Some("panels.0.query.metrics: "),
        ),
    ] {
        let message = report(fields.clone())
            .check(now)
            .err()
            .map(|error| error.to_string());
        match expected {
            None => assert_eq!(message, None, "{fields}"),
            Some(part) => assert!(
                message.as_ref().is_some_and(|it| it.starts_with(part)),
                "{fields}: {message:?}"
            ),
        }
    }
}

/// The pixels of a PNG that is written without filters, and its size.
fn pixels(png: &[u8]) -> (usize, usize, Vec<u8>) {
    assert_eq!(&png[1..4], b"PNG");
    let (mut rest, mut width, mut height, mut packed) = (&png[8..], 0, 0, Vec::new());
    while !rest.is_empty() {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes")) as usize;
        let length = number(&rest[..4]);
        let (kind, content) = (&rest[4..8], &rest[8..8 + length]);
        assert_eq!(
            crc32fast::hash(&rest[4..8 + length]) as usize,
            number(&rest[8 + length..12 + length])
        );
        match kind {
            b"IHDR" => (width, height) = (number(&content[..4]), number(&content[4..8])),
            b"IDAT" => packed.extend_from_slice(content),
            _ => {}
        }
        rest = &rest[12 + length..];
    }
    let mut lines = Vec::new();
    ZlibDecoder::new(&packed[..])
        .read_to_end(&mut lines)
        .expect("deflated");
    assert_eq!(lines.len(), (width + 1) * height);
    let pixels = lines.chunks(width + 1).flat_map(|line| line[1..].to_vec());
    (width, height, pixels.collect())
}

#[test]
fn charts_show_their_values_at_their_height() {
    // A line from 0 to the top: at a quarter of the width it is a quarter high.
    let values: Vec<Option<f64>> = (0..=100).map(|it| Some(f64::from(it))).collect();
    let drawn = draw(Form::Lines, &[values]);
    assert_eq!(drawn.top, 100.0);
    let (width, height, all) = pixels(&drawn.png);
    assert_eq!((width, height), (chart::WIDTH as usize, chart::HEIGHT as usize));
    for quarter in [1, 2, 3] {
        let x = width * quarter / 4;
        let heights: Vec<usize> = (0..height)
            .filter(|y| all[y * width + x] == 3)
            .map(|y| height - y)
            .collect();
        let middle = heights.iter().sum::<usize>() / heights.len().max(1);
        assert!(middle.abs_diff(height * quarter / 4) <= 6, "{quarter}: {middle}");
    }
    // Areas lie on top of each other; a gap in a line stays one; bars are as high as their values.
    let half = vec![Some(5.0); 10];
    let areas = draw(Form::Areas, &[half.clone(), half]);
    assert_eq!(areas.top, 10.0);
    let (_, _, all) = pixels(&areas.png);
    let column = |y: usize| all[y * width + width / 2];
    assert_eq!(
        (column(height / 4 + 10), column(height * 3 / 4)),
        (12, 11),
        "light colours of both"
    );
    let gap = draw(Form::Lines, &[vec![Some(1.0), None, None, Some(1.0)]]);
    let (_, _, all) = pixels(&gap.png);
    assert!((0..height).all(|y| all[y * width + width / 2] != 3));
    let bars = draw(Form::Bars, &[vec![Some(10.0), Some(5.0)]]);
    let (_, _, all) = pixels(&bars.png);
    let high = |x: usize| (0..height).filter(|y| all[y * width + x] >= 3).count();
    let ratio = high(width / 4) as f64 / high(width * 3 / 4) as f64;
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    assert!(
        draw(Form::Lines, &[]).png.len() < 2_000,
        "an empty chart is small"
    );
}

#[test]
fn numbers_are_written_for_people() {
    for (value, unit, expected) in [
        (1_234_567.0, "calls", "1,234,567"),
        (999.0, "calls", "999"),
        (-1_000.5, "calls", "-1,000.5"),
        (11_775.0, "microseconds", "11.78 ms"),
        (2_500_000.0, "microseconds", "2.5 s"),
        (0.0125, "share", "1.25 %"),
        (1_536.0, "bytes", "1.5 KiB"),
        (0.5, "calls/s", "0.5/s"),
    ] {
        assert_eq!(number(value, unit), expected);
    }
    for (value, expected) in [
        (0.0, 1.0),
        (1.0, 1.0),
        (3.0, 5.0),
        (21.0, 25.0),
        (0.07, 0.1),
        (1e6, 1e6),
        (f64::NAN, 1.0),
    ] {
        assert!(
            (nice(value) - expected).abs() < 1e-9 * expected,
            "{value}: {}",
            nice(value)
        );
    }
}

fn answer() -> QueryResponse {
    let frame = |name: &str, calls: f64, before: f64| Frame {
        group: [("service", name.to_owned())].into(),
        total: [("calls", Some(calls))].into(),
        values: [("calls", vec![Some(calls / 2.0), Some(calls / 2.0)])].into(),
        compare: Some(Box::new(ComparisonValues {
            total: [("calls", Some(before))].into(),
            values: BTreeMap::new(),
        })),
    };
    QueryResponse {
        from: at("2026-01-05T00:00:00Z"),
        to: at("2026-01-12T00:00:00Z"),
        step: Some(302_400),
        resolution: 60,
        partial: true,
        gaps: Vec::new(),
        sampled: false,
        notes: Vec::new(),
        units: [("calls", "calls")].into(),
        times: vec![at("2026-01-05T00:00:00Z"), at("2026-01-08T12:00:00Z")],
        frames: vec![frame("<script>", 1_500.0, 1_000.0), frame("=shop", 10.0, 20.0)],
        marks: Vec::new(),
        columns: Columns {
            dimensions: vec!["service"],
            metrics: vec!["calls"],
            is_compared: true,
        },
    }
}

#[test]
fn a_mail_has_text_html_pictures_and_files() {
    let report = report(json!({}));
    let period = report
        .schedule
        .last(at("2026-01-12T07:00:00Z"))
        .expect("a period");
    let sections = [
        Section {
            panel: &report.panels[0],
            answer: Ok(answer()),
        },
        Section {
            panel: &report.panels[0],
            answer: Err("the store is unreachable".to_owned()),
        },
    ];
    let mail = render(
        &report,
        period,
        &sections,
        Some("https://console.example/boards?a=1&b=2"),
    );
    assert_eq!(mail.subject, "The <week>: 2026-01-05 to 2026-01-11");
    for part in [
        "<script>: calls 1,500 +50.0 %;",
        "=shop: calls 10 -50.0 %;",
        "the store is unreachable",
        "boards?a=1&b=2",
    ] {
        assert!(mail.text.contains(part), "{part}: {}", mail.text);
    }
    for part in [
        "The &lt;week&gt;",
        "&lt;script&gt;",
        "cid:chart-0.png",
        "1,500",
        "+50.0 %",
        "2026-01-05",
        "Something is missing",
        "boards?a=1&amp;b=2",
    ] {
        assert!(mail.html.contains(part), "{part}: {}", mail.html);
    }
    assert!(!mail.html.contains("<script>"));
    let names = |it: &[(String, Vec<u8>)]| it.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&mail.pictures), ["chart-0.png"]);
    assert_eq!(mail.files.len(), 1);
    let (name, file) = &mail.files[0];
    assert_eq!(
        (name.as_str(), file),
        ("1-calls.csv", &crate::csv::write(&answer()))
    );
    let plain = ScheduledReport {
        csv: false,
        ..report.clone()
    };
    assert_eq!(render(&plain, period, &sections[..1], None).files, []);
}

#[test]
fn the_period_and_the_one_before_are_asked_for() {
    let report = report(json!({}));
    let period = Period { from: 600, to: 1_200 };
    let query = report.query_of(None, &report.panels[0], period);
    assert_eq!(
        (query.from, query.to),
        (TimePoint::Unix(600), Some(TimePoint::Unix(1_200)))
    );
    assert_eq!(
        (query.compare, query.marks),
        (Some(Length::Seconds(600)), Some(false))
    );
    let overview = crate::boards::given()
        .iter()
        .find(|it| it.id == "overview")
        .expect("given");
    let query = report.query_of(Some(overview), &overview.panels[0], period);
    assert_eq!(
        query.from,
        TimePoint::Unix(600),
        "a board's own time does not matter"
    );
}
