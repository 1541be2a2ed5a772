//! What one worker counts, in memory of its own. The names stand elsewhere, and so does the sum over workers.

use std::sync::OnceLock;

use super::counter::{Counter, Gauge};
use super::names::{ProtocolError, Refusal};
use super::series::{FIRST_EPOCH, Observation, SeriesCounters, SeriesId, SeriesTotals};
use super::streams::{StreamCounters, StreamTotals};

/// One worker's metrics. Only that worker's thread may count; any thread may read. Counting takes no lock
/// and allocates nothing, save a series' counters on the first request that a worker serves for it.
///
/// Aligned to two cache lines (processors fetch them in pairs), so that two workers never share one.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    requests: Counter,
    bytes_in: Counter,
    bytes_out: Counter,
    /// Client connections accepted.
    pub connections_accepted: Counter,
    /// Client connections closed at once, as there was no room for them.
    pub connections_refused: Counter,
    /// Connections and calls that were ended by a panic.
    pub panics: Counter,
    /// Those of them that speak HTTP/3.
    pub http3_connections: Counter,
    /// Client connections open now.
    pub connections_active: Gauge,
    /// Connections opened to upstreams.
    pub upstream_connections_opened: Counter,
    /// Upstream calls that took an idle connection.
    pub upstream_connections_reused: Counter,
    /// Connections to upstreams open now, idle ones included.
    pub upstream_connections_active: Gauge,
    /// Upstream calls beyond the first of a request.
    pub upstream_retries: Counter,
    /// Copies of slow calls, which were sent to another target.
    pub upstream_hedges: Counter,
    /// Those of them that were answered first.
    pub upstream_hedges_won: Counter,
    /// Sessions below HTTP.
    pub streams: StreamCounters,
    protocol_errors: [Counter; ProtocolError::COUNT],
    refusals: [Counter; Refusal::COUNT],
    slots: Box<[OnceLock<Box<SeriesCounters>>]>,
    other: SeriesCounters,
}

impl WorkerMetrics {
    /// Metrics with room for `slots` series besides [`SeriesId::OTHER`].
    pub(super) fn new(slots: usize) -> Self {
        Self {
            requests: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            connections_accepted: Counter::default(),
            connections_refused: Counter::default(),
            panics: Counter::default(),
            http3_connections: Counter::default(),
            connections_active: Gauge::default(),
            upstream_connections_opened: Counter::default(),
            upstream_connections_reused: Counter::default(),
            upstream_connections_active: Gauge::default(),
            upstream_retries: Counter::default(),
            upstream_hedges: Counter::default(),
            upstream_hedges_won: Counter::default(),
            streams: StreamCounters::default(),
            protocol_errors: Default::default(),
            refusals: Default::default(),
            slots: (0..slots).map(|_| OnceLock::new()).collect(),
            other: SeriesCounters::new(FIRST_EPOCH),
        }
    }

    /// Counts one finished request, in its series and for the gateway as a whole. To be called exactly once
    /// a request, with [`SeriesId::UNMATCHED`] when no route took it. A request that outlived its series (its
    /// route was removed and the slot given away meanwhile) is counted as [`SeriesId::OTHER`].
    #[inline]
    pub fn record(&self, series: SeriesId, seen: &Observation) {
        self.requests.increment();
        self.bytes_in.add(seen.bytes_in);
        self.bytes_out.add(seen.bytes_out);
        self.counters(series).observe(seen);
    }

    #[inline]
    fn counters(&self, series: SeriesId) -> &SeriesCounters {
        let Some(slot) = self.slots.get(series.slot()) else {
            return &self.other;
        };
        let counters = slot.get_or_init(|| Box::new(SeriesCounters::new(series.epoch())));
        if counters.admit(series.epoch()) {
            counters
        } else {
            &self.other
        }
    }

    /// Counts a violation of the protocol.
    #[inline]
    pub fn protocol_error(&self, kind: ProtocolError) {
        self.protocol_errors[kind as usize].increment();
    }

    /// Counts a response that the gateway gave by itself.
    #[inline]
    pub fn refusal(&self, reason: Refusal) {
        self.refusals[reason as usize].increment();
    }

    /// Adds this worker's share of a series to its sum.
    pub(super) fn add_series(&self, series: SeriesId, totals: &mut SeriesTotals) {
        match self.slots.get(series.slot()) {
            None => totals.add(&self.other, FIRST_EPOCH),
            Some(slot) => {
                if let Some(counters) = slot.get() {
                    totals.add(counters, series.epoch());
                }
            }
        }
    }
}

/// Gateway-wide counts, summed over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests answered or given up.
    pub requests: u64,
    /// Bytes of requests received from clients.
    pub bytes_in: u64,
    /// Bytes of responses sent to clients.
    pub bytes_out: u64,
    /// Client connections accepted.
    pub connections_accepted: u64,
    /// Client connections closed at once, as there was no room for them.
    pub connections_refused: u64,
    /// Connections and calls that were ended by a panic.
    pub panics: u64,
    /// Those of them that speak HTTP/3.
    pub http3_connections: u64,
    /// Client connections open now.
    pub connections_active: u64,
    /// Connections opened to upstreams.
    pub upstream_connections_opened: u64,
    /// Upstream calls that took an idle connection.
    pub upstream_connections_reused: u64,
    /// Connections to upstreams open now, idle ones included.
    pub upstream_connections_active: u64,
    /// Upstream calls beyond the first of a request.
    pub upstream_retries: u64,
    /// Copies of slow calls, which were sent to another target.
    pub upstream_hedges: u64,
    /// Those of them that were answered first.
    pub upstream_hedges_won: u64,
    /// Sessions below HTTP.
    pub streams: StreamTotals,
    protocol_errors: [u64; ProtocolError::COUNT],
    refusals: [u64; Refusal::COUNT],
}

impl Totals {
    pub(super) fn add(&mut self, worker: &WorkerMetrics) {
        self.streams.add(&worker.streams);
        let sums = [
            (&mut self.requests, worker.requests.get()),
            (&mut self.bytes_in, worker.bytes_in.get()),
            (&mut self.bytes_out, worker.bytes_out.get()),
            (&mut self.connections_accepted, worker.connections_accepted.get()),
            (&mut self.connections_refused, worker.connections_refused.get()),
            (&mut self.panics, worker.panics.get()),
            (&mut self.http3_connections, worker.http3_connections.get()),
            (&mut self.connections_active, worker.connections_active.get()),
            (
                &mut self.upstream_connections_opened,
                worker.upstream_connections_opened.get(),
            ),
            (
                &mut self.upstream_connections_reused,
                worker.upstream_connections_reused.get(),
            ),
            (
                &mut self.upstream_connections_active,
                worker.upstream_connections_active.get(),
            ),
            (&mut self.upstream_retries, worker.upstream_retries.get()),
            (&mut self.upstream_hedges, worker.upstream_hedges.get()),
            (&mut self.upstream_hedges_won, worker.upstream_hedges_won.get()),
        ];
        let errors = self
            .protocol_errors
            .iter_mut()
            .zip(worker.protocol_errors.iter().map(Counter::get));
        let refusals = self
            .refusals
            .iter_mut()
            .zip(worker.refusals.iter().map(Counter::get));
        for (total, n) in sums.into_iter().chain(errors).chain(refusals) {
            *total = total.wrapping_add(n);
        }
    }

    /// Violations of the protocol of one kind.
    pub fn protocol_errors(&self, kind: ProtocolError) -> u64 {
        self.protocol_errors[kind as usize]
    }

    /// Responses that the gateway gave by itself for one reason.
    pub fn refusals(&self, reason: Refusal) -> u64 {
        self.refusals[reason as usize]
    }
}
