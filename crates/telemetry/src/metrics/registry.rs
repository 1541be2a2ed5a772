//! The shared, off-path side of the metrics: who counts, which series exist, what the configuration is.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::names;
use super::render::{Scrape, SeriesScrape};
use super::series::{SeriesId, SeriesTotals};
use super::series_slots::SeriesSlots;
use super::targets::{TargetScrape, TargetSource};
use super::worker::{Totals, WorkerMetrics};
use crate::access_log::AccessLogStats;
use crate::calls::AnalyticsStats;
use crate::log_sinks::LogSinkStats;
use crate::ocsp::OcspStats;
use crate::redis::RedisStats;

/// The default number of series that a registry distinguishes. At this limit a full table costs 0.7 MB a worker and a
/// scrape of some 4 MB; routes beyond it are counted together.
pub const DEFAULT_SERIES_LIMIT: usize = 1_000;

/// How a registry is set up.
#[derive(Clone, Debug)]
pub struct RegistryOptions {
    /// Most (service, route) pairs with series of their own; what is above 65,000 counts as that.
    pub series_limit: usize,
    /// Version of the program, for `weir_build_info`.
    pub version: String,
    /// Source revision of the program, for `weir_build_info`; may be empty.
    pub revision: String,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            series_limit: DEFAULT_SERIES_LIMIT,
            version: String::new(),
            revision: String::new(),
        }
    }
}

/// What is known of the configuration and its reloads.
#[derive(Clone, Debug, Default)]
pub(super) struct Configuration {
    pub(super) generation: u64,
    /// Empty before the first configuration.
    pub(super) hash: String,
    pub(super) successes: u64,
    pub(super) failures: u64,
    /// Unix seconds and success of the last attempt.
    pub(super) last: Option<(u64, bool)>,
    /// Documents that are left out, and whether their store is there; `None`: no store is followed.
    pub(super) store: Option<(usize, bool)>,
}

#[derive(Debug)]
struct State {
    workers: Vec<Arc<WorkerMetrics>>,
    series_slots: SeriesSlots,
    configuration: Configuration,
    access_log: Option<Arc<AccessLogStats>>,
    log_sinks: Option<Arc<LogSinkStats>>,
    ocsp: Option<Arc<OcspStats>>,
    redis: Option<Arc<RedisStats>>,
    analytics: Option<Arc<AnalyticsStats>>,
    /// By plugin.
    evictions: Vec<(&'static str, Arc<AtomicU64>)>,
    targets: Option<Targets>,
    /// Seconds until certificates end, by their first names.
    certificates: Vec<(String, i64)>,
}

/// The source of targets' health.
struct Targets(Arc<dyn TargetSource>);

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Targets")
    }
}

impl State {
    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.workers.iter().for_each(|worker| totals.add(worker));
        totals
    }
}

/// All workers' metrics. Its lock is taken by reloads and scrapes, never by a worker.
#[derive(Debug)]
pub struct Registry {
    version: String,
    revision: String,
    state: Mutex<State>,
}

impl Registry {
    /// An empty registry.
    pub fn new(options: RegistryOptions) -> Self {
        let state = State {
            workers: Vec::new(),
            series_slots: SeriesSlots::new(options.series_limit),
            configuration: Configuration::default(),
            access_log: None,
            log_sinks: None,
            ocsp: None,
            redis: None,
            analytics: None,
            evictions: Vec::new(),
            targets: None,
            certificates: Vec::new(),
        };
        Self {
            version: options.version,
            revision: options.revision,
            state: Mutex::new(state),
        }
    }

    /// Metrics for one more worker. They count towards the sums for as long as the registry lives, so that
    /// no counter falls when a worker ends.
    pub fn worker(&self) -> Arc<WorkerMetrics> {
        let mut state = self.state();
        let worker = Arc::new(WorkerMetrics::new(state.series_slots.table_len()));
        state.workers.push(worker.clone());
        worker
    }

    /// Allots the series of a whole configuration: one id for each (service, route) pair, in order. A route
    /// without a service passes `""`. A pair that an earlier call named has the same series as then. Pairs
    /// beyond the limit get [`SeriesId::OTHER`]; series of pairs that this call does not name stay until
    /// their place is needed.
    ///
    /// To be called once per configuration that is about to be served, not for a mere check of one.
    pub fn allocate<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<SeriesId> {
        self.state().series_slots.allocate(pairs)
    }

    /// Notes that a configuration was taken over, at `unix_seconds`.
    pub fn reload_succeeded(&self, generation: u64, hash: &str, unix_seconds: u64) {
        let configuration = &mut self.state().configuration;
        configuration.generation = generation;
        configuration.hash = hash.to_owned();
        configuration.successes += 1;
        configuration.last = Some((unix_seconds, true));
    }

    /// Notes that a configuration was rejected, at `unix_seconds`, and the previous one goes on serving.
    pub fn reload_failed(&self, unix_seconds: u64) {
        let configuration = &mut self.state().configuration;
        configuration.failures += 1;
        configuration.last = Some((unix_seconds, false));
    }

    /// Notes how it stands with the store that is followed: how many of its documents are left out, and whether it is
    /// there.
    pub fn store_followed(&self, skipped: usize, is_connected: bool) {
        self.state().configuration.store = Some((skipped, is_connected));
    }

    /// Exposes the counts of an access log.
    pub fn observe_access_log(&self, stats: Arc<AccessLogStats>) {
        self.state().access_log = Some(stats);
    }

    /// Exposes the counts of what plugins log elsewhere.
    pub fn observe_log_sinks(&self, stats: Arc<LogSinkStats>) {
        self.state().log_sinks = Some(stats);
    }

    /// The counts of what plugins log elsewhere.
    pub fn log_sinks(&self) -> Option<Arc<LogSinkStats>> {
        self.state().log_sinks.clone()
    }

    /// Exposes the results of requests to the responders of certificates.
    pub fn observe_ocsp(&self, stats: Arc<OcspStats>) {
        self.state().ocsp = Some(stats);
    }

    /// Exposes how it stands with the servers that hold counts.
    pub fn observe_redis(&self, stats: Arc<RedisStats>) {
        self.state().redis = Some(stats);
    }

    /// Exposes the results of the calls and batches of analytics.
    pub fn observe_analytics(&self, stats: Arc<AnalyticsStats>) {
        self.state().analytics = Some(stats);
    }

    /// Exposes how many counters of limits were evicted, by plugin.
    pub fn observe_evictions(&self, counts: impl IntoIterator<Item = (&'static str, Arc<AtomicU64>)>) {
        self.state().evictions = counts.into_iter().collect();
    }

    /// Notes in how many seconds certificates end, by their first names; each name once.
    pub fn certificates_end(&self, ends: Vec<(String, i64)>) {
        self.state().certificates = ends;
    }

    /// Exposes the health of targets, which is read at each scrape.
    pub fn observe_targets(&self, source: Arc<dyn TargetSource>) {
        self.state().targets = Some(Targets(source));
    }

    /// The gateway-wide counts of this moment.
    pub fn totals(&self) -> Totals {
        self.state().totals()
    }

    /// Writes the Prometheus text format, version 0.0.4
    /// (`Content-Type: text/plain; version=0.0.4; charset=utf-8`). Series that were never hit are left out.
    ///
    /// # Errors
    /// Only what `out` returns; a `String` never fails.
    pub fn render(&self, out: &mut impl fmt::Write) -> fmt::Result {
        // Sums are taken under the lock, text is made outside: a slow reader must not hold up a reload.
        let targets = self
            .state()
            .targets
            .as_ref()
            .map(|targets| Arc::clone(&targets.0));
        let targets = targets.map(|source| TargetScrape::of(source.as_ref()));
        self.scrape(targets).render(&self.version, &self.revision, out)
    }

    fn scrape(&self, targets: Option<TargetScrape>) -> Scrape {
        let state = self.state();
        let reserved = [
            (names::UNMATCHED, SeriesId::UNMATCHED),
            (names::OTHER, SeriesId::OTHER),
        ];
        let reserved = reserved
            .into_iter()
            .map(|((service, route), id)| (service.into(), route.into(), id));
        let pairs = state
            .series_slots
            .pairs()
            .map(|(service, route, id)| (service.clone(), route.clone(), id));
        let series = reserved.chain(pairs).filter_map(|(service, route, id)| {
            let mut totals = SeriesTotals::default();
            state
                .workers
                .iter()
                .for_each(|worker| worker.add_series(id, &mut totals));
            (!totals.is_empty()).then_some(SeriesScrape {
                service,
                route,
                totals,
            })
        });
        Scrape {
            totals: state.totals(),
            series: series.collect(),
            pairs: state.series_slots.pairs().len(),
            limit: state.series_slots.limit(),
            overflow: state.series_slots.overflow(),
            configuration: state.configuration.clone(),
            access_log: state.access_log.clone(),
            log_sinks: state.log_sinks.clone(),
            ocsp: state.ocsp.clone(),
            redis: state.redis.clone(),
            analytics: state.analytics.clone(),
            evictions: state.evictions.clone(),
            targets,
            certificates: state.certificates.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state whole, so what a panicking thread left behind can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
