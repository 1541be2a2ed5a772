//! The thread that counts calls: it empties the workers' rings a few times a second, and whenever there is much in
//! them, and hands over what was counted every few seconds.

use super::names::{CallGroups, Tables};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_analytics::aggregate::{Aggregator, CallerNames, GroupedCall, NameId, SampledCall};
use weir_analytics::calls::CallLine;
use weir_analytics::clients::AgentFamilies;
use weir_analytics::privacy::{AddressWriter, HiddenFields, Privacy};
use weir_control::analytics::sampler::Sampler;
use weir_control::analytics::{Analytics, CallDelivery, Delivery};
use weir_proxy::{Calls, PublishedSnapshot};
use weir_telemetry::calls::{AnalyticsStats, CallRecord, SampledRecord};

/// How often rings are emptied at least. Workers wake the thread when one of them fills.
const PAUSE: Duration = Duration::from_millis(200);
/// Rows that are handed over at every turn. With more, they are handed over when a minute ends: each is a write.
const FEW_ROWS: usize = 2_000;

/// The state of the thread.
pub struct Collector {
    calls: Arc<Calls<PublishedSnapshot>>,
    aggregator: Aggregator,
    tables: Tables,
    delivery: Delivery,
    log: CallSink,
    stats: Arc<AnalyticsStats>,
    interval: Duration,
    handed_over: Instant,
    minute: u64,
    dropped: u64,
    sampler: Sampler,
    hiding: PrivacyFilter,
    clients: Clients,
}

/// Where lines of the request log go.
#[derive(Clone)]
pub enum CallSink {
    /// Into the log of this process.
    Here(Analytics),
    /// To the control plane that this gateway follows.
    Control(Arc<CallDelivery>),
}

impl CallSink {
    fn add(&self, lines: Vec<CallLine>) {
        match self {
            Self::Here(kept) => kept.kept().log.add(lines),
            Self::Control(delivery) => delivery.add(lines),
        }
    }
}

/// The data of calls that is not kept.
struct PrivacyFilter {
    privacy: Privacy,
    /// By environment.
    known: HashMap<NameId, HiddenFields>,
}

/// How what is known of clients is written.
struct Clients {
    addresses: AddressWriter,
    agents: AgentFamilies,
}

impl PrivacyFilter {
    fn new(privacy: Privacy) -> Self {
        Self {
            known: HashMap::new(),
            privacy,
        }
    }

    /// Takes away what is not kept of a call, and says what else is not.
    #[inline]
    fn apply(&mut self, groups: &mut CallGroups, aggregator: &mut Aggregator) -> HiddenFields {
        match self.privacy.hidden.is_empty() {
            true => HiddenFields::default(),
            false => self.hide(groups, aggregator),
        }
    }

    fn hide(&mut self, groups: &mut CallGroups, aggregator: &mut Aggregator) -> HiddenFields {
        let environment = match aggregator.route_names(groups.route).environment {
            0 => aggregator.environment(),
            named => named,
        };
        let privacy = &self.privacy;
        let hidden = *self
            .known
            .entry(environment)
            .or_insert_with(|| privacy.hidden(aggregator.text(environment)));
        if hidden.consumers {
            let names = CallerNames {
                consumer: 0,
                application: 0,
                subscription: 0,
                ..aggregator.caller_names(groups.caller)
            };
            groups.caller = aggregator.caller(names);
        }
        hidden
    }
}

impl Collector {
    pub fn new(
        calls: Arc<Calls<PublishedSnapshot>>,
        aggregator: Aggregator,
        (delivery, log): (Delivery, CallSink),
        (stats, privacy): (Arc<AnalyticsStats>, Privacy),
        interval: Duration,
    ) -> Self {
        Self {
            calls,
            aggregator,
            tables: Tables::new(),
            delivery,
            log,
            stats,
            interval,
            handed_over: Instant::now(),
            minute: 0,
            dropped: 0,
            sampler: Sampler::new(Instant::now()),
            clients: Clients {
                addresses: AddressWriter::new(privacy.addresses),
                agents: AgentFamilies::default(),
            },
            hiding: PrivacyFilter::new(privacy),
        }
    }

    /// Counts calls until the other end is dropped, for which the thread is to be unparked.
    pub fn run(mut self, stopped: &Receiver<()>) -> Self {
        self.calls.are_read_here();
        while stopped.try_recv() != Err(TryRecvError::Disconnected) {
            std::thread::park_timeout(PAUSE);
            self.turn();
        }
        self.turn();
        self.hand_over(true);
        self
    }

    /// Waits until what was counted is stored or delivered.
    pub async fn finish(self, timeout: Duration) {
        let calls = async {
            if let CallSink::Control(calls) = &self.log {
                calls.finish(timeout).await;
            }
        };
        tokio::join!(self.delivery.finish(timeout), calls);
    }

    /// Empties the rings.
    fn turn(&mut self) {
        let idle = self.tables.idle();
        self.tables.add(self.calls.take_published());
        // Records hold the time since the rings were made; this is when that was.
        let started_us = unix().saturating_sub(self.calls.elapsed()).as_micros() as u64;
        let mut dropped = 0;
        for rings in self.calls.rings() {
            rings.drain(|record| {
                let mut groups = self.tables.groups(&self.calls, record, &mut self.aggregator);
                self.hiding.apply(&mut groups, &mut self.aggregator);
                self.aggregator.count(&counted(record, groups, started_us));
                self.sampler.see(record.status, record.total_us);
            });
            let mut lines = Vec::new();
            rings.drain_sampled(|sampled| {
                let record = &sampled.record;
                self.sampler.see_sampled();
                let mut groups = self.tables.groups(&self.calls, record, &mut self.aggregator);
                let hidden = self.hiding.apply(&mut groups, &mut self.aggregator);
                let ended_us = started_us + record.ended_us;
                let line =
                    self.clients
                        .take_sampled(&mut self.aggregator, (&sampled, groups), hidden, ended_us);
                lines.extend((!hidden.calls).then_some(line));
            });
            if !lines.is_empty() {
                self.log.add(lines);
            }
            dropped += rings.dropped().0;
        }
        self.aggregator.note_dropped(dropped - self.dropped);
        self.dropped = dropped;
        self.stats.dropped.store(dropped, Relaxed);
        self.tables.forget(&idle);
        if self.aggregator.has_many_groups() {
            self.aggregator.forget_groups();
            self.tables.forget_groups();
        }
        let minute = unix().as_secs() / 60;
        self.sampler.adjust(self.calls.sampling(), Instant::now(), minute);
        let is_few = self.aggregator.waiting() <= FEW_ROWS;
        if self.handed_over.elapsed() >= self.interval && (is_few || minute != self.minute) {
            self.hand_over(false);
        }
    }

    fn hand_over(&mut self, is_last: bool) {
        let now = unix().as_secs();
        (self.handed_over, self.minute) = (Instant::now(), now / 60);
        let mut batch = self.aggregator.take_batch(now, is_last);
        batch.lost = self.delivery.take_lost();
        self.delivery.take(batch);
    }
}

fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Microseconds of a minute.
const MINUTE_US: u64 = 60_000_000;

fn counted(record: &CallRecord, groups: CallGroups, started_us: u64) -> GroupedCall {
    GroupedCall {
        minute: ((started_us + record.ended_us) / MINUTE_US) as u32,
        route: groups.route,
        caller: groups.caller,
        target: groups.target,
        kind: groups.kind,
        status: record.status,
        is_refused: record.refusal.is_some(),
        is_aborted: record.is_aborted,
        retries: record.retries,
        total_us: record.total_us,
        upstream_us: record.upstream_us,
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        address: record.address,
    }
}

impl Clients {
    /// Counts a sampled call, and makes its line of the request log.
    fn take_sampled(
        &mut self,
        aggregator: &mut Aggregator,
        (sampled, groups): (&SampledRecord<'_>, CallGroups),
        hidden: HiddenFields,
        ended_us: u64,
    ) -> CallLine {
        let record = &sampled.record;
        let [path, request_id, host, agent] = sampled.texts.map(String::from_utf8_lossy);
        let minute = (ended_us / MINUTE_US) as u32;
        let (network, agent) = match hidden.clients {
            true => Default::default(),
            false => (
                self.addresses.write(record.address, minute),
                self.agents.of(&agent),
            ),
        };
        let route = aggregator.route_names(groups.route);
        aggregator.add_sampled(&SampledCall {
            minute,
            weight: sampled.weight,
            service: route.service,
            unmatched_path: (record.route.is_none() && !hidden.clients).then_some(&path),
            network: &network,
            agent: &agent,
        });
        let (target, kind) = (
            aggregator.target_names(groups.target),
            aggregator.kind_names(groups.kind),
        );
        // What no route takes belongs to the environment that the gateway serves, as the counts do.
        let environment = match record.route {
            Some(_) => route.environment,
            None => aggregator.environment(),
        };
        let text = |name| Arc::clone(aggregator.text(name));
        CallLine {
            time: ended_us / 1_000,
            weight: sampled.weight,
            status: record.status,
            total_us: record.total_us,
            upstream_us: record.upstream_us,
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            retries: record.retries,
            request_id: request_id.into(),
            gateway: Arc::clone(aggregator.gateway()),
            environment: text(environment),
            service: text(route.service),
            route: text(route.route),
            consumer: text(aggregator.caller_names(groups.caller).consumer),
            upstream: text(target.upstream),
            target: text(target.target),
            refusal: text(kind.refusal),
            plugin: text(kind.plugin),
            method: text(kind.method),
            protocol: text(kind.protocol),
            host: host.into(),
            path: path.into(),
            network: network.into(),
            agent,
            headers: String::from_utf8_lossy(sampled.headers).trim_end().into(),
        }
    }
}
