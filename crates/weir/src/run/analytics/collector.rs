//! The thread that counts calls: it empties the workers' rings many times a second, and hands over what was counted
//! every few seconds.

use super::names::{Names, Tables};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_analytics::aggregate::{Aggregator, Call, NameId, SampledCall};
use weir_analytics::calls::CallLine;
use weir_analytics::clients::agent_family;
use weir_analytics::privacy::{AddressWriter, Hidden, Privacy};
use weir_analytics::sketch::Sketch;
use weir_control::analytics::{Analytics, Delivery};
use weir_proxy::{Calls, PublishedSnapshot};
use weir_telemetry::calls::{AnalyticsStats, CallRecord, SampledRecord};

/// How often rings are emptied while there are calls.
const PAUSE: Duration = Duration::from_millis(50);
/// How often at rest. The rings have room for the calls that come in this time.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// Rows that are handed over at every turn. With more, they are handed over when a minute ends: each is a write.
const FEW_ROWS: usize = 2_000;
/// Calls a second of which all are in the request log, and the smallest share of more.
const ALL_BELOW: u64 = 50;
const RAREST: u64 = 100;
/// Calls of a minute from which on it can be said which were slow.
const ENOUGH: u64 = 1_000;

/// What the thread has.
pub struct Collector {
    calls: Arc<Calls<PublishedSnapshot>>,
    aggregator: Aggregator,
    tables: Tables,
    delivery: Delivery,
    kept: Option<Analytics>,
    stats: Arc<AnalyticsStats>,
    interval: Duration,
    handed_over: Instant,
    minute: u64,
    dropped: u64,
    sampler: Sampler,
    hiding: Hiding,
}

/// What of calls is not kept.
struct Hiding {
    privacy: Privacy,
    /// By environment.
    known: HashMap<NameId, Hidden>,
    addresses: AddressWriter,
}

impl Hiding {
    fn new(privacy: Privacy) -> Self {
        Self {
            addresses: AddressWriter::new(privacy.addresses),
            known: HashMap::new(),
            privacy,
        }
    }

    /// What is not kept of a call. Its names are hidden already, as far as they are.
    fn apply(&mut self, names: &mut Names, aggregator: &Aggregator) -> Hidden {
        if self.privacy.hidden.is_empty() {
            return Hidden::default();
        }
        let environment = match names.environment {
            0 => aggregator.environment(),
            named => named,
        };
        let privacy = &self.privacy;
        let hidden = *self
            .known
            .entry(environment)
            .or_insert_with(|| privacy.hidden(aggregator.text(environment)));
        if hidden.consumers {
            (names.consumer, names.application) = (0, 0);
        }
        hidden
    }
}

/// Decides how many calls are sampled.
struct Sampler {
    since: Instant,
    calls: u64,
    one_in: u32,
    /// Times of the present minute.
    times: Sketch,
    minute: u64,
    slow_us: u32,
}

impl Collector {
    pub fn new(
        calls: Arc<Calls<PublishedSnapshot>>,
        aggregator: Aggregator,
        (delivery, kept): (Delivery, Option<Analytics>),
        (stats, privacy): (Arc<AnalyticsStats>, Privacy),
        interval: Duration,
    ) -> Self {
        Self {
            calls,
            aggregator,
            tables: Tables::new(),
            delivery,
            kept,
            stats,
            interval,
            handed_over: Instant::now(),
            minute: 0,
            dropped: 0,
            sampler: Sampler {
                since: Instant::now(),
                calls: 0,
                one_in: 1,
                times: Sketch::default(),
                minute: 0,
                slow_us: u32::MAX,
            },
            hiding: Hiding::new(privacy),
        }
    }

    /// Counts calls until it is told to stop.
    pub fn run(mut self, stopped: &Receiver<()>) -> Self {
        let mut pause = PAUSE;
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = match self.turn() {
                true => PAUSE,
                false => (2 * pause).min(LONGEST_PAUSE),
            };
        }
        self.turn();
        self.hand_over(true);
        self
    }

    /// Waits until what was counted is stored or delivered.
    pub async fn finish(self, timeout: Duration) {
        self.delivery.finish(timeout).await;
    }

    /// Empties the rings; whether there were any calls.
    fn turn(&mut self) -> bool {
        let mut has_calls = false;
        let idle = self.tables.idle();
        self.tables.add(self.calls.take_published());
        // Records tell the time since the rings were made; this is when that was.
        let started = unix().saturating_sub(self.calls.elapsed());
        let mut dropped = 0;
        for rings in self.calls.rings() {
            rings.drain(|record| {
                let mut names = self.tables.names(&self.calls, record, &mut self.aggregator);
                self.hiding.apply(&mut names, &self.aggregator);
                self.aggregator.add(&call(record, names, started));
                has_calls = true;
                self.sampler.calls += 1;
                self.sampler.times.add(u64::from(record.total_us));
            });
            let mut lines = Vec::new();
            rings.drain_sampled(|sampled| {
                let mut names = self
                    .tables
                    .names(&self.calls, &sampled.record, &mut self.aggregator);
                let hidden = self.hiding.apply(&mut names, &self.aggregator);
                let addresses = &mut self.hiding.addresses;
                let line = take_sampled(
                    &mut self.aggregator,
                    (&sampled, names),
                    (hidden, addresses),
                    started,
                );
                lines.extend((!hidden.calls).then_some(line));
            });
            if let Some(kept) = self.kept.as_ref().filter(|_| !lines.is_empty()) {
                kept.kept().log.add(lines);
            }
            dropped += rings.dropped().0;
        }
        self.aggregator.note_dropped(dropped - self.dropped);
        self.dropped = dropped;
        self.stats.dropped.store(dropped, Relaxed);
        self.tables.forget(&idle);
        self.sample();
        let minute = unix().as_secs() / 60;
        let is_few = self.aggregator.waiting() <= FEW_ROWS;
        if self.handed_over.elapsed() >= self.interval && (is_few || minute != self.minute) {
            self.hand_over(false);
        }
        has_calls
    }

    fn hand_over(&mut self, is_last: bool) {
        let now = unix().as_secs();
        (self.handed_over, self.minute) = (Instant::now(), now / 60);
        let mut batch = self.aggregator.take_batch(now, is_last);
        batch.lost = self.delivery.take_lost();
        self.delivery.take(batch);
    }

    /// Adjusts how many calls are sampled: every second by their number, every minute by their times.
    fn sample(&mut self) {
        let elapsed = self.sampler.since.elapsed();
        if elapsed < Duration::from_secs(1) {
            return;
        }
        let sampler = &mut self.sampler;
        let rate = (sampler.calls as f64 / elapsed.as_secs_f64()) as u64;
        sampler.one_in = (rate / ALL_BELOW).clamp(1, RAREST) as u32;
        let minute = unix().as_secs() / 60;
        if minute != sampler.minute {
            let times = std::mem::take(&mut sampler.times);
            let slow = times.percentile(0.99).filter(|_| times.count() >= ENOUGH);
            sampler.slow_us = slow.and_then(|us| us.try_into().ok()).unwrap_or(u32::MAX);
            sampler.minute = minute;
        }
        (sampler.since, sampler.calls) = (Instant::now(), 0);
        self.calls.sampling().set(sampler.one_in, sampler.slow_us);
    }
}

fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn ended(record: &CallRecord, started: Duration) -> Duration {
    started + Duration::from_micros(record.ended_us)
}

fn call(record: &CallRecord, names: Names, started: Duration) -> Call {
    Call {
        minute: (ended(record, started).as_secs() / 60) as u32,
        service: names.service,
        route: names.route,
        consumer: names.consumer,
        upstream: names.upstream,
        target: names.target,
        refusal: names.refusal,
        plugin: names.plugin,
        method: names.method,
        protocol: names.protocol,
        environment: names.environment,
        api: names.api,
        version: names.version,
        application: names.application,
        plan: names.plan,
        status: record.status,
        is_aborted: record.is_aborted,
        retries: record.retries,
        total_us: record.total_us,
        upstream_us: record.upstream_us,
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        caller: record.address,
    }
}

/// Counts a sampled call, and makes its line of the request log.
fn take_sampled(
    aggregator: &mut Aggregator,
    (sampled, names): (&SampledRecord, Names),
    (hidden, addresses): (Hidden, &mut AddressWriter),
    started: Duration,
) -> CallLine {
    let record = &sampled.record;
    let [path, request_id, host, agent] = sampled.texts.each_ref().map(|text| String::from_utf8_lossy(text));
    let ended = ended(record, started);
    let minute = (ended.as_secs() / 60) as u32;
    let (network, agent) = match hidden.clients {
        true => (String::new(), ""),
        false => (addresses.write(record.address, minute), agent_family(&agent)),
    };
    aggregator.add_sampled(&SampledCall {
        minute,
        weight: sampled.weight,
        service: names.service,
        unmatched_path: (record.route.is_none() && !hidden.clients).then_some(&path),
        network: &network,
        agent,
    });
    let text = |name| aggregator.text(name).into();
    CallLine {
        time: ended.as_millis() as u64,
        weight: sampled.weight,
        status: record.status,
        total_us: record.total_us,
        upstream_us: record.upstream_us,
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        retries: record.retries,
        request_id: request_id.into(),
        gateway: aggregator.gateway().into(),
        environment: text(names.environment),
        service: text(names.service),
        route: text(names.route),
        consumer: text(names.consumer),
        upstream: text(names.upstream),
        target: text(names.target),
        refusal: text(names.refusal),
        plugin: text(names.plugin),
        method: text(names.method),
        protocol: text(names.protocol),
        host: host.into(),
        path: path.into(),
        network: network.into(),
        agent: agent.into(),
        headers: String::from_utf8_lossy(&sampled.headers).trim_end().into(),
    }
}
