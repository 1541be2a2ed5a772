//! What analytics cost at the size that they are built for: 30 days with 8,000 keys an hour, 20,000 calls a second. It
//! shows the size of the file, the times of queries, and what the aggregator and the store need of a core and of memory,
//! compared with their bars, and fails if one is missed.
//!
//! `make bench-analytics` runs it in full; `-- --keys 200 --days 10` is a quick look. Times are CPU times of the thread: a
//! busy machine does not change them. **What it is not**: a load test of a gateway.

#![allow(clippy::print_stdout, reason = "its output is its purpose")]

#[path = "../tests/support/made_up.rs"]
mod made_up;

use clap::Parser;
use made_up::Numbers;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use weir_analytics::AnalyticsStore;
use weir_analytics::aggregate::{
    Aggregator, CallerNames, GroupedCall, KindNames, NameId, RouteNames, SampledCall, TargetNames,
};
use weir_analytics::batch::{Batch, BatchRow};
use weir_analytics::cube::Cube;
use weir_analytics::query::Query;
use weir_analytics::retention::{DAY, HOUR, Retention};
use weir_analytics::sqlite::SqliteAnalytics;

/// A whole day.
const START: u64 = 20_000 * DAY;
/// Bytes of a key and an hour by the minute and by five minutes, as docs/analytics.md states them.
const STATED: [f64; 2] = [520.0, 213.0];
/// How much larger than stated the file may be, how long a query may take, in seconds, and which share of a core counting
/// may need.
const MOST_SIZE: f64 = 1.3;
const MOST_SECONDS: f64 = 0.5;
const MOST_CORE: f64 = 0.03;
/// What counting a call may need that is like the one before, in microseconds: what a gateway with one busy route pays.
const MOST_ALIKE: f64 = 0.07;
/// Memory of counting, in megabytes.
const MOST_MEMORY: f64 = 64.0;
/// The calls of a second that are counted, and after how many seconds they are stored.
const RATE: u64 = 20_000;
const STORED_EVERY: u64 = 10;
/// Each query is asked so many times; the median counts.
const ROUNDS: usize = 5;

/// How much is stored.
#[derive(Debug, Parser)]
struct Args {
    /// Keys that are called in an hour
    #[arg(long, default_value_t = 8_000)]
    keys: usize,
    /// Keys of the file whose size is measured: all of their minutes are filled, and the size is linear in them
    #[arg(long, default_value_t = 2_000)]
    full_keys: usize,
    /// Days
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// Cargo gives it to all benches
    #[arg(long, hide = true)]
    bench: bool,
}

/// A batch of one hour, whose rows move on by an hour each time.
struct Hours {
    batch: Batch,
    numbers: Numbers,
}

impl Hours {
    fn new() -> Self {
        let batch = Batch {
            gateway: "bench".to_owned(),
            names: vec![String::new()],
            ..Batch::default()
        };
        Self {
            batch,
            numbers: Numbers(11),
        }
    }

    /// Adds keys of a cube. `calls` of a second are shared by Zipf's law; they come in these minutes.
    fn add(&mut self, cube: Cube, (keys, calls): (usize, f64), minutes: std::ops::Range<u32>) {
        for place in 1..=keys {
            let name = self.batch.names.len() as u32;
            self.batch.names.push(format!("{}-{place}", cube.as_str()));
            let mut key = [0; 5];
            // The place of the dimension that has many values: the consumer, the route, the target …
            let many = if cube == Cube::Caller { 2 } else { 1 };
            key[many] = name;
            for minute in minutes.clone() {
                let calls = self.numbers.calls_of((keys, calls), place);
                if calls > 0 {
                    let (minute, cell) = ((START / 60) as u32 + minute, self.numbers.cell(cube, calls));
                    self.batch.rows.push(BatchRow {
                        cube,
                        minute,
                        key,
                        cell,
                    });
                }
            }
        }
    }

    /// Stores so many hours, and clears up after each day as a running Weir does. Gives the time at the end.
    fn store(&mut self, store: &SqliteAnalytics, hours: u64) -> u64 {
        for hour in 0..hours {
            let now = START + (hour + 1) * HOUR;
            self.batch.number = hour + 1;
            self.batch.complete = (now / 60) as u32 - 1;
            self.batch.is_last = hour + 1 == hours;
            store.ingest(&self.batch, now).expect("stored");
            for row in &mut self.batch.rows {
                row.minute += 60;
            }
            if (hour + 1).is_multiple_of(24) {
                store.retain(&Retention::default(), now).expect("cleared up");
            }
        }
        let now = START + hours * HOUR;
        store.retain(&Retention::default(), now).expect("cleared up");
        now
    }
}

/// What this thread has used of a core, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    nanoseconds.expect("a number") / 1e9
}

/// One line: a figure, its bar, and whether it is kept.
fn line(what: &str, (figure, most): (f64, f64), unit: &str) -> bool {
    let holds = figure <= most;
    let verdict = if holds { "" } else { "  MISSED" };
    println!("{what:<68} {figure:>8.3} {unit:<2} of {most:.3}{verdict}");
    holds
}

fn open(folder: &Path) -> SqliteAnalytics {
    SqliteAnalytics::open(&folder.join("analytics.db"), Retention::default()).expect("opened")
}

/// The file as a gateway with 10,000 calls a second fills it for 8,000 keys, in proportion.
fn size(args: &Args) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, begun) = (open(folder.path()), Instant::now());
    let (mut hours, share) = (Hours::new(), args.full_keys as f64 / 8_000.0);
    let mut keys = 0;
    for (cube, of, calls) in [
        (Cube::Route, 1_500.0, 10_000.0),
        (Cube::Caller, 2_000.0, 10_000.0),
        (Cube::CallerRoute, 2_000.0, 8_800.0),
        (Cube::Target, 600.0, 9_600.0),
        (Cube::Client, 300.0, 10_000.0),
        (Cube::Refusal, 200.0, 200.0),
        (Cube::Gateway, 16.0, 10_000.0),
        (Cube::Network, 1_384.0, 400.0),
    ] {
        let some = ((of * share) as usize).max(1);
        keys += some;
        hours.add(cube, (some, calls * share), 0..60);
    }
    let now = hours.store(&store, args.days * 24);
    store
        .retain(&Retention::default(), now + HOUR)
        .expect("cleared up");
    drop(store);
    let file = std::fs::metadata(folder.path().join("analytics.db"))
        .expect("there")
        .len() as f64;
    let by_minute = args.days.min(8) as f64;
    let row_days = by_minute * STATED[0] + (args.days as f64 - by_minute) * STATED[1];
    let stated = keys as f64 * 24.0 * row_days;
    println!(
        "{keys} keys, {} days: {:.1} MB, {:.1} MB stated; filled in {:.0} s",
        args.days,
        file / 1e6,
        stated / 1e6,
        begun.elapsed().as_secs_f64()
    );
    line(
        "size of the file, times of what is stated",
        (file / stated, MOST_SIZE),
        "",
    )
}

/// Times of queries over all days and one cube with all keys.
fn queries(args: &Args) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, begun) = (open(folder.path()), Instant::now());
    let mut hours = Hours::new();
    // Queries over days read no minutes, so two an hour are enough.
    hours.add(Cube::Caller, (args.keys, 10.0 * args.keys as f64), 20..22);
    // It is noon: the first day that is asked for is a half one, and so is the present one.
    let now = hours.store(&store, args.days * 24 + 12);
    println!(
        "one cube of {} keys, {} days: filled in {:.0} s",
        args.keys,
        args.days,
        begun.elapsed().as_secs_f64()
    );
    let from = format!("-{}d", args.days);
    let mut holds = true;
    for (what, fields) in [
        (
            "calls and p95 of the 20 busiest callers",
            json!({ "group_by": ["consumer"] }),
        ),
        (
            "calls and p95 of the 20 busiest callers by class",
            json!({ "group_by": ["consumer", "class"] }),
        ),
        (
            "the 20 busiest callers as a series",
            json!({ "group_by": ["consumer"], "step": "auto" }),
        ),
        (
            "one caller as a series",
            json!({ "step": "auto", "filter": { "consumer": "caller-7" } }),
        ),
        (
            "the 20 busiest callers beside the month before",
            json!({ "group_by": ["consumer"], "step": "auto", "compare": "30d" }),
        ),
    ] {
        let mut asked = json!({ "metrics": ["calls", "latency_p95"], "from": from, "limit": 20 });
        if let (Value::Object(asked), Value::Object(fields)) = (&mut asked, fields) {
            asked.extend(fields);
        }
        let query: Query = serde_json::from_value(asked).expect("a query");
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begun = cpu();
                let answer = store.query(&query, now).expect("an answer");
                assert!(!answer.frames.is_empty());
                cpu() - begun
            })
            .collect();
        times.sort_by(f64::total_cmp);
        holds &= line(
            &format!("{} days: {what}", args.days),
            (times[ROUNDS / 2], MOST_SECONDS),
            "s",
        );
    }
    holds
}

/// Calls of a gateway: consumers by Zipf's law, each of one service, of which it uses some routes.
fn some_calls(aggregator: &mut Aggregator, keys: usize) -> Vec<GroupedCall> {
    let mut numbers = Numbers(5);
    let mut named = |kind: &str, count: usize| -> Vec<NameId> {
        (0..count)
            .map(|place| aggregator.name(&format!("{kind}-{place}")))
            .collect()
    };
    let (routes, consumers) = (named("route", keys / 16), named("consumer", keys / 4));
    let (services, targets) = (named("service", 20), named("target", 60));
    let method = named("GET", 1)[0];
    let frequent = |numbers: &mut Numbers, of: usize| {
        let share = numbers.below(1 << 20) as f64 / f64::from(1 << 20);
        ((of as f64).powf(share) as usize).min(of - 1)
    };
    let one = |_| {
        let consumer = frequent(&mut numbers, consumers.len());
        let used = 7 * consumer + numbers.below(4) as usize;
        let route = (used * services.len() + consumer % services.len()) % routes.len();
        let total_us = numbers.duration() as u32;
        let service = services[route % services.len()];
        GroupedCall {
            route: aggregator.route(RouteNames {
                service,
                route: routes[route],
                ..RouteNames::default()
            }),
            caller: aggregator.caller(CallerNames {
                consumer: consumers[consumer],
                ..CallerNames::default()
            }),
            target: aggregator.target(TargetNames {
                upstream: service,
                target: targets[numbers.below(60) as usize],
            }),
            kind: aggregator.kind(KindNames {
                method,
                protocol: method,
                ..KindNames::default()
            }),
            status: [200, 200, 200, 200, 201, 204, 404, 502][numbers.below(8) as usize],
            total_us,
            upstream_us: total_us / 10 * 9,
            bytes_in: 300,
            bytes_out: 2_000,
            ..GroupedCall::default()
        }
    };
    (0..RATE * STORED_EVERY).map(one).collect()
}

/// What counting and storing these calls need of a core, and how many seconds it was.
fn spent(calls: &mut [GroupedCall], aggregator: &mut Aggregator) -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let (mut counted, mut stored, mut rows) = (0.0, 0.0, 0);
    // The first minute is not measured: names and rows are new in it.
    for round in 0..18 {
        let at = START + round * STORED_EVERY;
        let begun = cpu();
        for call in &mut *calls {
            call.minute = (at / 60) as u32;
            aggregator.count(call);
        }
        let now = at + STORED_EVERY;
        // What is counted is spread over the cubes with the batch.
        let batch = aggregator.take_batch(now, false);
        let after = cpu();
        store.ingest(&batch, now).expect("stored");
        if round >= 6 {
            counted += after - begun;
            stored += cpu() - after;
            rows = rows.max(batch.rows.len());
        }
    }
    let seconds = (12 * STORED_EVERY) as f64;
    println!(
        "{RATE} calls/s, {rows} rows each {STORED_EVERY} s: {:.3} µs a call, {:.2} µs a row",
        counted * 1e6 / (RATE as f64 * seconds),
        stored * 1e6 / (12.0 * rows as f64)
    );
    (counted / seconds, stored / seconds)
}

/// What counting and storing calls need of a core: calls of many series, and of one.
fn counting(args: &Args) -> bool {
    let mut aggregator = Aggregator::new("bench", "prod", START * 1_000);
    let mut calls = some_calls(&mut aggregator, args.keys);
    let (counted, stored) = spent(&mut calls, &mut aggregator);
    let mut holds = line("counting, share of a core", (counted, MOST_CORE), "");
    let _of_the_control_plane = line("storing, share of a core", (stored, 1.0), "");
    let first = calls[0];
    let mut alike: Vec<GroupedCall> = calls
        .iter()
        .map(|call| GroupedCall {
            total_us: call.total_us,
            upstream_us: call.upstream_us,
            ..first
        })
        .collect();
    let (counted, _) = spent(&mut alike, &mut aggregator);
    let a_call = counted * 1e6 / RATE as f64;
    holds &= line("counting a call of one series", (a_call, MOST_ALIKE), "µs");
    holds
}

/// What memory counting needs with a million callers, paths, addresses and agents, and what of them is in a batch.
fn memory() -> bool {
    let mut aggregator = Aggregator::new("bench", "prod", START * 1_000);
    let (service, minute) = (aggregator.name("shop"), (START / 60) as u32);
    let (begun, mut most) = (cpu(), 0);
    for number in 0..1_000_000_u32 {
        let consumer = aggregator.name(&format!("consumer-{}", number % 200_000));
        let call = GroupedCall {
            minute,
            route: aggregator.route(RouteNames {
                service,
                route: number,
                ..RouteNames::default()
            }),
            caller: aggregator.caller(CallerNames {
                consumer,
                ..CallerNames::default()
            }),
            status: 200,
            total_us: number,
            address: number.into(),
            ..GroupedCall::default()
        };
        aggregator.count(&call);
        let text = format!("/{number}");
        aggregator.add_sampled(&SampledCall {
            minute,
            weight: 1,
            service,
            unmatched_path: Some(&text),
            network: &text,
            agent: &text,
        });
        if number % 10_000 == 0 {
            most = most.max(aggregator.bytes());
        }
    }
    let a_call = (cpu() - begun) * 1e6 / 1e6;
    println!("a million of everything: {a_call:.2} µs a call with its names and texts");
    let size = aggregator.take_batch(START + 60, false).encode().len();
    line("memory of counting, MB", (most as f64 / 1e6, MOST_MEMORY), "")
        & line("the batch of it, MB", (size as f64 / 1e6, MOST_MEMORY), "")
}

fn main() -> ExitCode {
    let args = Args::parse();
    let holds = [counting(&args), memory(), queries(&args), size(&args)];
    match holds.iter().all(|it| *it) || cfg!(debug_assertions) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
