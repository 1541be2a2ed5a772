//! Handing finished calls to analytics, where they are on: a record of numbers into the worker's ring, at the end of a
//! call. Names stand in the snapshots, which whoever reads the rings is given.

use crate::gateway::PublishedSnapshot;
use crate::serve::RequestContext;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_telemetry::calls::{CallRecord, CallRings, CallTexts, Sampling, method_number, protocol_number};

/// The rings of all workers, and what their numbers mean.
pub struct Calls {
    /// Records tell the time since then.
    started: Instant,
    /// The names of plugins, in order.
    plugins: Box<[&'static str]>,
    sampling: Arc<Sampling>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rings: Vec<Arc<CallRings>>,
    /// Snapshots that were published and not handed over yet.
    published: Vec<Arc<PublishedSnapshot>>,
}

impl Calls {
    /// Rings for a gateway whose plugins have these names.
    pub fn new(plugins: impl IntoIterator<Item = &'static str>) -> Self {
        let mut plugins: Vec<&'static str> = plugins.into_iter().collect();
        plugins.sort_unstable();
        Self {
            started: Instant::now(),
            plugins: plugins.into(),
            sampling: Arc::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rings for one more worker.
    pub(crate) fn worker(&self) -> Arc<CallRings> {
        let rings = Arc::new(CallRings::new(Arc::clone(&self.sampling)));
        self.state().rings.push(Arc::clone(&rings));
        rings
    }

    /// Notes a snapshot before any call is served by it.
    pub(crate) fn note_published(&self, published: &Arc<PublishedSnapshot>) {
        self.state().published.push(Arc::clone(published));
    }

    /// The rings of all workers. One thread may read them.
    pub fn rings(&self) -> Vec<Arc<CallRings>> {
        self.state().rings.clone()
    }

    /// Snapshots that were published since the last time.
    pub fn take_published(&self) -> Vec<Arc<PublishedSnapshot>> {
        std::mem::take(&mut self.state().published)
    }

    /// How many calls the request log takes.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// For how long there have been rings: the time that records are of.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The name of a plugin.
    pub fn plugin(&self, number: u16) -> &'static str {
        self.plugins.get(usize::from(number)).map_or("", |name| name)
    }
}

/// The rings of a worker, and what it shares with the others.
pub struct WorkerCalls {
    rings: Arc<CallRings>,
    shared: Arc<Calls>,
}

impl WorkerCalls {
    /// Rings for one more worker.
    pub fn new(shared: &Arc<Calls>) -> Self {
        Self {
            rings: shared.worker(),
            shared: Arc::clone(shared),
        }
    }
}

impl RequestContext<'_> {
    /// Hands the finished call over.
    pub(crate) fn note_call(
        &self,
        calls: &WorkerCalls,
        route: Option<usize>,
        (status, ended, total): (u16, Instant, Duration),
    ) {
        let microseconds = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let (report, request) = (&self.report, &self.exchange.request);
        let plugins = &calls.shared.plugins;
        let plugin = report
            .refused_by
            .and_then(|name| plugins.binary_search(&name).ok());
        let identity = self.exchange.identity.as_ref();
        let record = CallRecord {
            ended_us: ended.saturating_duration_since(calls.shared.started).as_micros() as u64,
            generation: self.serving.published.generation as u32,
            route: route.map(|route| route as u32),
            consumer: identity.map(|identity| identity.consumer.index),
            target: report.target.map(|(upstream, target)| (upstream, target as u16)),
            status,
            refusal: report.refusal.map(|reason| reason as u8),
            plugin: plugin.map(|place| place as u16),
            method: method_number(&request.method),
            protocol: protocol_number(request.version),
            is_aborted: report.aborted,
            retries: report.retries.min(255) as u8,
            total_us: microseconds(total),
            upstream_us: report.upstream_time.map_or(0, |time| microseconds(time).max(1)),
            bytes_in: report.bytes_in,
            bytes_out: report.bytes_out,
            address: match request.client {
                IpAddr::V4(address) => 0xffff << 32 | u64::from(address.to_bits()),
                IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
            },
        };
        if let Some(weight) = calls.rings.push(&record) {
            let texts = CallTexts {
                path: &request.raw_path,
                request_id: self.exchange.request_id().as_bytes(),
                host: &request.host,
                agent: request.headers.get(b"user-agent").unwrap_or_default(),
            };
            calls.rings.push_sampled(&record, weight, texts);
        }
    }
}
