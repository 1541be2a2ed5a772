//! The series of one (service, route) pair: its id, one worker's counters for it, and their sum.
//!
//! A pair's counters live in a *slot* of a fixed table. When a configuration drops the pair and the table is
//! full, its slot is given to another pair under a higher *epoch*. The worker that owns the counters notices
//! the higher epoch on the next request and starts them from zero by itself, so no other thread ever writes them.

use std::sync::atomic::{AtomicU16, Ordering};

use super::counter::Counter;
use super::histogram::{GATEWAY_BOUNDS, Histogram, HistogramPair, HistogramTotals};

/// Names the series of one (service, route) pair, as the [`Registry`](super::Registry) allocated it. Copied
/// into a compiled route; the names themselves stay off the request path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeriesId(u32);

impl SeriesId {
    /// The series of requests that no route took.
    pub const UNMATCHED: Self = Self::new(0, FIRST_EPOCH);
    /// The series of all routes beyond the registry's limit. Its slot lies outside every table.
    pub const OTHER: Self = Self::new(u16::MAX, FIRST_EPOCH);

    pub(super) const fn new(slot: u16, epoch: u16) -> Self {
        Self((slot as u32) << 16 | epoch as u32)
    }

    #[inline]
    pub(super) const fn slot(self) -> usize {
        (self.0 >> 16) as usize
    }

    #[inline]
    pub(super) const fn epoch(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
}

/// The epoch of a slot's first pair.
pub(super) const FIRST_EPOCH: u16 = 1;

/// What is to be counted of one finished request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    /// Status sent to the client; 0 when none was sent.
    pub status: u16,
    /// From when the request's head is read to the response's last byte, in microseconds; saturate what is longer.
    pub total_us: u32,
    /// The part spent on upstreams, in microseconds. 0 means that none was called, and leaves the upstream
    /// histogram alone.
    pub upstream_us: u32,
    /// Bytes received from the client for this request.
    pub bytes_in: u64,
    /// Bytes sent to the client for this request.
    pub bytes_out: u64,
}

/// Statuses with a counter of their own; the rest is counted by class.
const CODES: [u16; 32] = [
    101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 412, 413,
    415, 422, 426, 429, 431, 499, 500, 501, 502, 503, 504,
];
/// What stands for the rest: no or an impossible status, then 1xx to 5xx.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
const STATUSES: usize = CODES.len() + CLASSES.len();

/// From a status to its counter; whatever is 600 or above has the counter of 0.
const STATUS_INDEX: [u8; 600] = {
    let mut table = [0; 600];
    let mut status = 0;
    while status < table.len() {
        table[status] = (CODES.len() + status / 100) as u8;
        status += 1;
    }
    let mut code = 0;
    while code < CODES.len() {
        table[CODES[code] as usize] = code as u8;
        code += 1;
    }
    table
};

#[inline]
fn status_index(status: u16) -> usize {
    usize::from(
        STATUS_INDEX
            .get(usize::from(status))
            .copied()
            .unwrap_or(STATUS_INDEX[0]),
    )
}

/// The histograms of [`SeriesCounters::requests`].
const TOTAL: usize = 0;
const UPSTREAM: usize = 1;

/// One worker's counters of one slot, some 700 bytes. A gateway with many routes has them in no near cache, so what most
/// calls count lies in two lines of 64 bytes: the epoch, bytes, status 200 and the gateway's shortest times; the shortest
/// times of calls.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct SeriesCounters {
    epoch: AtomicU16,
    bytes_in: Counter,
    bytes_out: Counter,
    /// Status 200, whose place in `statuses` is not used.
    ok: Counter,
    gateway: Histogram,
    statuses: [Counter; STATUSES],
    /// Of whole calls, and of their parts on upstreams.
    requests: HistogramPair,
}

impl SeriesCounters {
    pub(super) fn new(epoch: u16) -> Self {
        Self {
            epoch: AtomicU16::new(epoch),
            statuses: std::array::from_fn(|_| Counter::default()),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            ok: Counter::default(),
            gateway: Histogram::default(),
            requests: HistogramPair::default(),
        }
    }

    /// Whether these counters may take a request of `epoch`; starts them again when `epoch` is later than
    /// theirs. `false` for a request that began before its slot went to another pair.
    #[inline]
    pub(super) fn admit(&self, epoch: u16) -> bool {
        let own = self.epoch.load(Ordering::Relaxed);
        if own < epoch {
            self.restart(epoch);
        }
        own <= epoch
    }

    #[cold]
    fn restart(&self, epoch: u16) {
        self.statuses.iter().for_each(Counter::reset);
        self.bytes_in.reset();
        self.bytes_out.reset();
        self.ok.reset();
        self.requests.reset();
        self.gateway.reset();
        // Pairs with the load in `SeriesTotals::add`: who sees the new epoch sees the zeros.
        self.epoch.store(epoch, Ordering::Release);
    }

    #[inline]
    pub(super) fn observe(&self, seen: &Observation) {
        match seen.status {
            200 => self.ok.increment(),
            status => self.statuses[status_index(status)].increment(),
        }
        self.bytes_in.add(seen.bytes_in);
        self.bytes_out.add(seen.bytes_out);
        self.requests.observe::<TOTAL>(seen.total_us);
        if seen.upstream_us > 0 {
            self.requests.observe::<UPSTREAM>(seen.upstream_us);
        }
        self.gateway
            .observe(&GATEWAY_BOUNDS, seen.total_us.saturating_sub(seen.upstream_us));
    }
}

/// A series summed over workers.
#[derive(Clone, Debug)]
pub(super) struct SeriesTotals {
    statuses: [u64; STATUSES],
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) total: HistogramTotals,
    pub(super) upstream: HistogramTotals,
    pub(super) gateway: HistogramTotals,
}

impl Default for SeriesTotals {
    fn default() -> Self {
        Self {
            statuses: [0; STATUSES],
            bytes_in: 0,
            bytes_out: 0,
            total: HistogramTotals::default(),
            upstream: HistogramTotals::default(),
            gateway: HistogramTotals::default(),
        }
    }
}

impl SeriesTotals {
    /// Adds one worker's counters, unless they are still those of an earlier pair in the same slot. To be
    /// called while no slot can change hands: then counters of this epoch stay of this epoch.
    pub(super) fn add(&mut self, counters: &SeriesCounters, epoch: u16) {
        if counters.epoch.load(Ordering::Acquire) != epoch {
            return;
        }
        for (total, status) in self.statuses.iter_mut().zip(&counters.statuses) {
            *total = total.wrapping_add(status.get());
        }
        let ok = &mut self.statuses[status_index(200)];
        *ok = ok.wrapping_add(counters.ok.get());
        self.bytes_in = self.bytes_in.wrapping_add(counters.bytes_in.get());
        self.bytes_out = self.bytes_out.wrapping_add(counters.bytes_out.get());
        self.total.add_of(&counters.requests, TOTAL);
        self.upstream.add_of(&counters.requests, UPSTREAM);
        self.gateway.add(&counters.gateway);
    }

    /// Whether no request was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.statuses.iter().all(|&n| n == 0)
    }

    /// The statuses seen: class, exact code (`None` for the rest of the class) and number of requests.
    pub(super) fn statuses(&self) -> impl Iterator<Item = (&'static str, Option<u16>, u64)> {
        let exact = CODES
            .iter()
            .map(|&code| (CLASSES[usize::from(code / 100)], Some(code)));
        let rest = CLASSES.iter().map(|&class| (class, None));
        exact
            .chain(rest)
            .zip(self.statuses)
            .filter(|&(_, n)| n > 0)
            .map(|((class, code), n)| (class, code, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_exactly_or_by_class() {
        let cases = [
            (200, ("2xx", Some(200))),
            (101, ("1xx", Some(101))),
            (504, ("5xx", Some(504))),
            (100, ("1xx", None)),
            (299, ("2xx", None)),
            (399, ("3xx", None)),
            (418, ("4xx", None)),
            (599, ("5xx", None)),
            (0, ("none", None)),
            (99, ("none", None)),
            (600, ("none", None)),
            (u16::MAX, ("none", None)),
        ];
        for (status, (class, code)) in cases {
            let counters = SeriesCounters::new(FIRST_EPOCH);
            counters.observe(&Observation {
                status,
                ..Observation::default()
            });
            let mut totals = SeriesTotals::default();
            totals.add(&counters, FIRST_EPOCH);
            assert_eq!(
                totals.statuses().collect::<Vec<_>>(),
                [(class, code, 1)],
                "{status}"
            );
        }
    }

    #[test]
    fn what_most_calls_count_lies_in_two_cache_lines() {
        let counters = SeriesCounters::new(FIRST_EPOCH);
        let line = |counter: &Counter| {
            (std::ptr::from_ref(counter).addr() - std::ptr::from_ref(&counters).addr()) / 64
        };
        let mut lines: Vec<usize> = [&counters.bytes_in, &counters.bytes_out, &counters.ok]
            .into_iter()
            .chain(counters.gateway.shortest(3))
            .chain(counters.requests.shortest(3))
            .map(line)
            .collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!((lines.len(), lines[0]), (2, 0), "{lines:?}");
    }

    #[test]
    fn the_gateways_share_is_what_the_upstream_did_not_take() {
        let cases = [(900, 300, 600, true), (900, 0, 900, false), (100, 300, 0, true)];
        for (total_us, upstream_us, gateway, called) in cases {
            let counters = SeriesCounters::new(FIRST_EPOCH);
            counters.observe(&Observation {
                total_us,
                upstream_us,
                ..Observation::default()
            });
            let mut totals = SeriesTotals::default();
            totals.add(&counters, FIRST_EPOCH);
            assert_eq!(totals.gateway.sum_micros, gateway);
            assert_eq!(totals.upstream.count(), u64::from(called));
        }
    }

    #[test]
    fn a_slot_changes_hands_without_mixing_its_pairs() {
        let counters = SeriesCounters::new(FIRST_EPOCH);
        let seen = Observation {
            status: 200,
            bytes_in: 7,
            ..Observation::default()
        };
        assert!(counters.admit(1));
        counters.observe(&seen);

        let mut totals = SeriesTotals::default();
        totals.add(&counters, 2);
        assert!(totals.is_empty(), "the new pair has not been hit yet");

        assert!(counters.admit(2));
        counters.observe(&seen);
        totals.add(&counters, 2);
        assert_eq!((totals.statuses().count(), totals.bytes_in), (1, 7));
        assert!(!counters.admit(1), "a request of the old pair is late");
    }

    #[test]
    fn a_series_stays_small() {
        assert!(
            size_of::<SeriesCounters>() <= 704,
            "{}",
            size_of::<SeriesCounters>()
        );
    }
}
