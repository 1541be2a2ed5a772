//! The ClickHouse store against real servers: the same batches and queries as SQLite, and the same answers. There are
//! today's engine, as Python's module chdb behind a small HTTP front, and Debian's old server.
//!
//! `make deps` installs both. Debian's server is tested if it is there, as not every release has it.

#[path = "../../weir/tests/support/ports.rs"]
mod ports;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_analytics::aggregate::{Aggregator, FinishedCall, SampledCall};
use weir_analytics::batch::Batch;
use weir_analytics::clickhouse::{ClickhouseAnalytics, Transport};
use weir_analytics::query::{Length, OneOrMany, Query, QueryResponse, TimePoint};
use weir_analytics::retention::{DAY, HOUR, Retention};
use weir_analytics::sqlite::SqliteAnalytics;
use weir_analytics::{AnalyticsStore, IngestResult, StoreError};

const START: u64 = 20_000 * DAY;
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A server in a process of its own.
struct Server {
    child: Child,
    port: u16,
    _folder: Option<tempfile::TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Server {
    /// Today's engine. `None`: the machine lacks it.
    fn engine() -> Option<Self> {
        let python = format!("{ROOT}/target/test-tools/clickhouse/bin/python");
        let has_it = Command::new(&python).args(["-c", "import chdb"]).output();
        if !has_it.is_ok_and(|it| it.status.success()) {
            let message = "chdb is not installed; `make deps` installs it";
            assert!(std::env::var_os("WEIR_REQUIRE_TOOLS").is_none(), "{message}");
            eprintln!("not tested: {message}");
            return None;
        }
        let mut child = Command::new(&python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clickhouse_front.py"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines.next().expect("a line").expect("readable").parse();
        Some(Self {
            child,
            port: port.expect("a port"),
            _folder: None,
        })
    }

    /// Debian's server. `None`: the machine lacks it.
    fn of_debian() -> Option<Self> {
        let program = "/usr/sbin/clickhouse-server";
        if !Path::new(program).exists() {
            eprintln!("not tested: Debian's clickhouse-server is not installed");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (port, path) = (ports::free_port(), folder.path().display());
        let config = format!(
            "<yandex><logger><level>error</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>
             <http_port>{port}</http_port><path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path>
             <users_config>{path}/users.xml</users_config><default_profile>default</default_profile>
             <default_database>default</default_database><mark_cache_size>100000000</mark_cache_size></yandex>"
        );
        let users = "<yandex><profiles><default></default></profiles><users><default><password></password>
             <networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
             <quotas><default></default></quotas></yandex>";
        for (name, text) in [("config.xml", config.as_str()), ("users.xml", users)] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let child = Command::new(program)
            .arg(format!("--config-file={path}/config.xml"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let server = Self {
            child,
            port,
            _folder: Some(folder),
        };
        let end = Instant::now() + Duration::from_secs(60);
        while Http(port).send("SELECT 1", None).is_err() {
            assert!(Instant::now() < end, "it does not answer in time");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(server)
    }
}

/// HTTP to a port of this machine, a connection each.
struct Http(u16);

impl Transport for Http {
    fn send(&self, sql: &str, rows: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
        let (path, body) = match rows {
            Some(rows) => (format!("/?query={}", encoded(sql)), rows),
            None => ("/".to_owned(), sql.as_bytes().to_vec()),
        };
        let to_message = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.0)).map_err(to_message)?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .map_err(to_message)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(to_message)?;
        let end = answer
            .windows(4)
            .position(|it| it == b"\r\n\r\n")
            .ok_or("half an answer")?;
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let body = match head.contains("transfer-encoding: chunked") {
            true => unchunked(&answer[end + 4..]),
            false => answer[end + 4..].to_vec(),
        };
        match head.split(' ').nth(1) {
            Some("200") => Ok(body),
            _ => Err(format!("{sql}: {}", String::from_utf8_lossy(&body))),
        }
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte as char),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        if size == 0 {
            break;
        }
        rest = &rest[end + 2 + size + 2..];
    }
    whole
}

/// Calls of several days, in a batch an hour.
fn batches(days: u64) -> Vec<Batch> {
    let mut aggregator = Aggregator::new("edge", "prod", START * 1_000);
    let services = ["shop", "it's", "", "own"].map(|name| aggregator.name(name));
    let routes = ["list", "show", "bu\\y"].map(|name| aggregator.name(name));
    let consumers = ["", "ann", "bob", "cy"].map(|name| aggregator.name(name));
    let (upstream, target, refusal) = (
        aggregator.name("up"),
        aggregator.name("10.0.0.1:80"),
        aggregator.name("limit"),
    );
    let mut batches = Vec::new();
    let mut random = 7_u64;
    let mut below = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for hour in 0..days * 24 {
        for _ in 0..40 {
            let minute = ((START + hour * HOUR) / 60 + below(60)) as u32;
            let total_us = 500 + below(90_000) as u32;
            let status = [200, 200, 200, 201, 404, 429, 502][below(7) as usize];
            let service = services[below(4) as usize];
            aggregator.add(&FinishedCall {
                minute,
                service,
                route: routes[below(3) as usize],
                consumer: consumers[below(4) as usize],
                upstream,
                target,
                refusal: if status == 429 { refusal } else { 0 },
                status,
                total_us,
                upstream_us: total_us / 2,
                bytes_in: 100,
                bytes_out: below(5_000),
                caller: below(500),
                ..FinishedCall::default()
            });
            aggregator.add_sampled(&SampledCall {
                minute,
                weight: 3,
                service,
                network: "192.0.2.0/24",
                agent: ["curl", "Firefox"][below(2) as usize],
                ..SampledCall::default()
            });
        }
        batches.push(aggregator.take_batch(START + (hour + 1) * HOUR, hour + 1 == days * 24));
    }
    batches
}

fn query(metrics: &[&str], (from, to): (u64, u64), group_by: &[&str], step: Option<&str>) -> Query {
    Query {
        metrics: metrics.iter().map(|it| (*it).to_owned()).collect(),
        group_by: group_by.iter().map(|it| (*it).to_owned()).collect(),
        step: step.map(|it| Length::Text(it.to_owned())),
        ..Query::of("calls", from, to)
    }
}

/// Queries of every cube and kind of metric, over ranges that hold summed up hours and others.
fn queries(now: u64) -> Vec<Query> {
    let all = (START, now);
    let recent = (now - 3 * HOUR - 600, now - 120);
    let mut queries = vec![
        query(
            &["calls", "errors_5xx", "share_4xx", "latency_max"],
            all,
            &["service"],
            None,
        ),
        query(
            &["calls", "latency_p95", "latency_p50"],
            all,
            &["service", "route"],
            Some("1h"),
        ),
        query(&["calls", "latency_p99"], all, &["class"], Some("1d")),
        query(&["calls", "share_5xx"], all, &["status"], Some("5m")),
        query(&["calls", "latency_p95"], recent, &["route"], Some("1m")),
        query(
            &["upstream_p95", "upstream_avg", "retries"],
            all,
            &["target"],
            Some("1h"),
        ),
        query(&["gateway_p95", "gateway_avg"], all, &["service"], Some("1h")),
        query(&["calls", "refused"], all, &["consumer", "route"], None),
        query(&["refused"], all, &["refusal", "status"], Some("6h")),
        query(&["calls", "concurrency", "bytes_out"], all, &["gateway"], None),
        query(&["calls"], all, &["agent"], Some("1h")),
        query(&["unique_callers"], all, &["service"], Some("1d")),
        query(&["unique_callers"], all, &[], None),
        query(&["calls"], all, &["environment"], None),
        query(&["calls"], (START - 10 * DAY, START - 9 * DAY), &[], Some("1h")),
    ];
    let first = queries[0].clone();
    let with = |change: &dyn Fn(&mut Query)| {
        let mut query = first.clone();
        change(&mut query);
        query
    };
    let filter = |name: &str, values: &[&str]| -> (String, OneOrMany) {
        (
            name.to_owned(),
            OneOrMany::Many(values.iter().map(|it| (*it).to_owned()).collect()),
        )
    };
    queries.push(with(&|it| it.limit = Some(2)));
    queries.push(with(&|it| {
        (it.limit, it.step) = (Some(1), Some(Length::Text("6h".to_owned())))
    }));
    queries.push(with(&|it| it.order = Some("-errors_5xx".to_owned())));
    queries.push(with(&|it| {
        it.filter.extend([
            filter("service", &["it's", "own"]),
            filter("class", &["2xx", "5xx"]),
        ])
    }));
    queries.push(with(&|it| {
        it.filter.extend([filter("service", &["' OR 1 --", "no\\"])])
    }));
    queries.push(with(&|it| {
        (it.from, it.compare) = (TimePoint::Unix(now - DAY), Some(Length::Text("1d".to_owned())));
        it.step = Some(Length::Text("1h".to_owned()));
    }));
    queries
}

/// Two answers are the same, but for sums of times and bytes, which SQLite rounds by the minute.
#[track_caller]
fn assert_same(one: &QueryResponse, other: &QueryResponse, what: &Query) {
    let plain = |it: &QueryResponse| {
        let groups: Vec<BTreeMap<&str, String>> = it.frames.iter().map(|frame| frame.group.clone()).collect();
        (
            it.from,
            it.to,
            it.step,
            it.resolution,
            it.partial,
            it.sampled,
            it.notes.clone(),
            it.times.clone(),
            groups,
        )
    };
    assert_eq!(plain(one), plain(other), "{what:?}");
    let close = |one: &Option<f64>, other: &Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 0.001 * one.abs().max(other.abs()),
        (one, other) => one == other,
    };
    let check = |metric: &str, one: &Option<f64>, other: &Option<f64>| {
        assert!(close(one, other), "{metric}: {one:?} and {other:?}: {what:?}");
    };
    for (one, other) in one.frames.iter().zip(&other.frames) {
        for (metric, value) in &one.total {
            check(metric, value, &other.total[metric]);
        }
        for (metric, values) in &one.values {
            assert_eq!(values.len(), other.values[metric].len());
            for (one, other) in values.iter().zip(&other.values[metric]) {
                check(metric, one, other);
            }
        }
        let before = one.compare.iter().zip(&other.compare);
        for (one, other) in before {
            for (metric, value) in &one.total {
                check(metric, value, &other.total[metric]);
            }
        }
        assert_eq!(one.compare.is_some(), other.compare.is_some());
    }
}

/// A transport that loses the answers to inserts while `loses` is set: what was sent arrives all the same.
#[derive(Clone)]
struct Lossy {
    to: u16,
    loses: Arc<AtomicBool>,
    inserts: Arc<Mutex<Vec<String>>>,
}

impl Transport for Lossy {
    fn send(&self, sql: &str, rows: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
        let is_insert = rows.is_some();
        let answer = Http(self.to).send(sql, rows)?;
        if is_insert {
            self.inserts.lock().expect("not poisoned").push(sql.to_owned());
            if self.loses.load(Ordering::SeqCst) {
                return Err("the connection broke".to_owned());
            }
        }
        Ok(answer)
    }
}

/// Both stores, with the same batches.
struct Stores {
    sqlite: SqliteAnalytics,
    clickhouse: ClickhouseAnalytics,
    loses: Arc<AtomicBool>,
    inserts: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Stores {
    fn new(port: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |name: &str| SqliteAnalytics::open(&folder.path().join(name), Retention::default());
        let transport = Lossy {
            to: port,
            loses: Arc::default(),
            inserts: Arc::default(),
        };
        let (loses, inserts) = (Arc::clone(&transport.loses), Arc::clone(&transport.inserts));
        let ledger = Arc::new(open("ledger.db").expect("opened"));
        Self {
            sqlite: open("sqlite.db").expect("opened"),
            clickhouse: ClickhouseAnalytics::new(transport, ledger, Retention::default()),
            loses,
            inserts,
            _folder: folder,
        }
    }

    fn both(&self) -> [&dyn AnalyticsStore; 2] {
        [&self.sqlite, &self.clickhouse]
    }

    fn clear_up(&self, now: u64) {
        for store in self.both() {
            store.retain(&Retention::default(), now).expect("cleared up");
        }
    }

    /// Adds a batch; if its answers are lost, after having tried in vain. It counts once.
    fn add(&self, batch: &Batch, is_lost: bool, now: u64) {
        self.sqlite.ingest(batch, now).expect("stored");
        if is_lost {
            self.loses.store(true, Ordering::SeqCst);
            for _ in 0..3 {
                self.clickhouse
                    .ingest(batch, now)
                    .expect_err("the answer is lost");
            }
            self.loses.store(false, Ordering::SeqCst);
        }
        for expected in [IngestResult::Added, IngestResult::Duplicate] {
            assert_eq!(self.clickhouse.ingest(batch, now).expect("taken"), expected);
        }
        let other = Batch {
            dropped: batch.dropped + 1,
            ..batch.clone()
        };
        let refused = self.clickhouse.ingest(&other, now);
        assert!(
            matches!(refused, Err(StoreError::OtherBatch { .. })),
            "{refused:?}"
        );
    }

    fn assert_same(&self, step: &str, queries: &[Query], now: u64) {
        for query in queries {
            let expected = self.sqlite.query(query, now).expect(step);
            let found = self.clickhouse.query(query, now);
            let found = found.unwrap_or_else(|error| panic!("{step}: {error}: {query:?}"));
            assert_same(&expected, &found, query);
        }
    }
}

/// One call of a gateway at a minute.
fn late(gateway: &str, minute: u64, now: u64) -> Batch {
    let mut aggregator = Aggregator::new(gateway, "prod", now * 1_000);
    let service = aggregator.name("shop");
    aggregator.add(&FinishedCall {
        minute: minute as u32,
        service,
        status: 200,
        total_us: 1_000,
        ..FinishedCall::default()
    });
    aggregator.take_batch(now, true)
}

fn works_like_sqlite(server: &Server) {
    const DAYS: u64 = 4;
    let stores = Stores::new(server.port);
    let now = START + DAYS * DAY;
    for (place, batch) in batches(DAYS).iter().enumerate() {
        // Every tenth insert is not known to have arrived, and is sent again.
        stores.add(batch, place % 10 == 5, now);
    }
    let count = stores.inserts.lock().expect("not poisoned").len();
    assert!(count >= 3 * 96, "{count} inserts");
    let all = queries(now);
    stores.assert_same("as it came", &all, now);
    // Days that are over are summed up; a second time changes nothing.
    for _ in 0..2 {
        stores.clear_up(now);
        stores.assert_same("summed up", &all, now);
    }
    // A batch that comes late counts, too.
    stores.add(&late("late", START / 60 + 5, now), false, now);
    stores.assert_same("with a late batch", &all, now);
    stores.clear_up(now);
    stores.assert_same("summed up again", &all, now);
    // After 40 days minutes are gone, and hours are there.
    let later = now + 40 * DAY;
    stores.clear_up(later);
    let by_hour = query(&["calls", "latency_p95"], (START, now), &["service"], Some("1h"));
    stores.assert_same("by the hour", std::slice::from_ref(&by_hour), later);
    let left = Http(server.port).send("SELECT count() FROM weir_minute", None);
    assert_eq!(String::from_utf8_lossy(&left.expect("an answer")).trim(), "0");
    // What comes later still is missing, and all else stays. The clock of its gateway may stand in 1970.
    let before = stores.clickhouse.query(&by_hour, later).expect("an answer");
    for (name, minute) in [("much-too-late", START / 60 + 7), ("no-clock", 3)] {
        let batch = late(name, minute, later);
        let taken = stores.clickhouse.ingest(&batch, later).expect("taken");
        assert_eq!(taken, IngestResult::Added);
    }
    stores.clear_up(later);
    let after = stores.clickhouse.query(&by_hour, later).expect("an answer");
    let is_reported = after.gaps.iter().any(|it| it.gateway == "much-too-late");
    assert!(after.partial && is_reported, "{:?}", after.gaps);
    let counts = |answer: &QueryResponse| {
        let frames = answer.frames.iter();
        frames
            .map(|it| (format!("{:?}", it.group), it.total["calls"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(&after), counts(&before));
}

#[test]
fn todays_engine_answers_as_sqlite_does() {
    if let Some(server) = Server::engine() {
        works_like_sqlite(&server);
    }
}

#[test]
fn debians_server_answers_as_sqlite_does() {
    if let Some(server) = Server::of_debian() {
        works_like_sqlite(&server);
    }
}
