//! Sessions below HTTP: a worker's counts of them, and their exposition.

use super::counter::{Counter, Gauge};
use super::exposition::{Exposition, Labels};
use super::names::{Metric, StreamKind, StreamResult, label};
use std::fmt;

/// One worker's counts of sessions. Only its thread may change them.
#[derive(Debug, Default)]
pub struct StreamCounters {
    by_kind: [KindCounters; StreamKind::COUNT],
    /// Datagrams of clients that were not passed on.
    pub datagrams_dropped: Counter,
}

/// Counts of the sessions of one kind.
#[derive(Debug, Default)]
pub struct KindCounters {
    /// Sessions open now.
    pub active: Gauge,
    /// Bytes of clients that were passed on.
    pub bytes_in: Counter,
    /// Bytes sent to clients.
    pub bytes_out: Counter,
    ended: [Counter; StreamResult::COUNT],
}

impl StreamCounters {
    /// The counts of one kind.
    #[inline]
    pub fn of(&self, kind: StreamKind) -> &KindCounters {
        &self.by_kind[kind as usize]
    }
}

impl KindCounters {
    /// Counts a session that has ended.
    pub fn ended(&self, result: StreamResult) {
        self.ended[result as usize].increment();
    }
}

/// Counts of sessions, summed over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTotals {
    by_kind: [KindTotals; StreamKind::COUNT],
    /// Datagrams of clients that were not passed on.
    pub datagrams_dropped: u64,
}

/// Counts of the sessions of one kind, summed over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTotals {
    /// Sessions open now.
    pub active: u64,
    /// Bytes of clients that were passed on.
    pub bytes_in: u64,
    /// Bytes sent to clients.
    pub bytes_out: u64,
    ended: [u64; StreamResult::COUNT],
}

impl StreamTotals {
    pub(super) fn add(&mut self, worker: &StreamCounters) {
        let sum = |total: &mut u64, n: u64| *total = total.wrapping_add(n);
        for (total, kind) in self.by_kind.iter_mut().zip(&worker.by_kind) {
            sum(&mut total.active, kind.active.get());
            sum(&mut total.bytes_in, kind.bytes_in.get());
            sum(&mut total.bytes_out, kind.bytes_out.get());
            for (total, counter) in total.ended.iter_mut().zip(&kind.ended) {
                sum(total, counter.get());
            }
        }
        sum(&mut self.datagrams_dropped, worker.datagrams_dropped.get());
    }

    /// The counts of one kind.
    pub fn of(&self, kind: StreamKind) -> &KindTotals {
        &self.by_kind[kind as usize]
    }
}

impl KindTotals {
    /// Sessions that have ended so.
    pub fn ended(&self, result: StreamResult) -> u64 {
        self.ended[result as usize]
    }

    /// Whether there was none yet.
    fn is_unused(&self) -> bool {
        *self == Self::default()
    }
}

/// Tells of all kinds of which there was a session.
pub(super) fn render<W: fmt::Write>(totals: &StreamTotals, out: &mut Exposition<'_, W>) -> fmt::Result {
    let used = || {
        let all = StreamKind::ALL.iter().map(|kind| (*kind, totals.of(*kind)));
        all.filter(|(_, totals)| !totals.is_unused())
    };
    if used().next().is_none() && totals.datagrams_dropped == 0 {
        return Ok(());
    }
    out.family(Metric::StreamSessions)?;
    for (kind, totals) in used() {
        for &result in StreamResult::ALL {
            let labels = Labels::new(&[(label::PROTOCOL, kind.label()), (label::RESULT, result.label())]);
            out.sample(Metric::StreamSessions, &labels, totals.ended(result))?;
        }
    }
    type ReadTotal = fn(&KindTotals) -> u64;
    let families: [(Metric, ReadTotal); 3] = [
        (Metric::StreamSessionsActive, |it| it.active),
        (Metric::StreamBytesIn, |it| it.bytes_in),
        (Metric::StreamBytesOut, |it| it.bytes_out),
    ];
    for (metric, read) in families {
        out.family(metric)?;
        for (kind, totals) in used() {
            let labels = Labels::new(&[(label::PROTOCOL, kind.label())]);
            out.sample(metric, &labels, read(totals))?;
        }
    }
    out.single(Metric::StreamDatagramsDropped, totals.datagrams_dropped)
}
