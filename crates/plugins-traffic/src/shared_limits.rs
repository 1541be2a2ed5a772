//! Counts that gateways synchronize through the control plane, for the limits of a plugin. Each call is decided by the
//! counters of its own gateway; its count is recorded and sent to the other gateways.

use crate::rate_key::RateKey;
use weir_flow::rate_limit::{Counters, WindowLimit, across};
use weir_plugin::{Exchange, SharedCount, SharedCounts};

/// The counts of all instances of a plugin.
pub(crate) struct SharedLimits {
    /// What names of counters begin with, so that those of two plugins are never the same.
    plugin: &'static str,
    counts: across::SharedCounts,
}

impl SharedLimits {
    /// Those of a plugin.
    pub(crate) fn of(plugin: &'static str) -> Self {
        Self {
            plugin,
            counts: across::SharedCounts::default(),
        }
    }

    /// Notes that a call was counted as so many in these windows, by what `by` says.
    pub(crate) fn note(
        &self,
        counters: &Counters,
        (by, key): (&RateKey, u128),
        limits: &[WindowLimit],
        count: u64,
        now_ms: u64,
        exchange: &Exchange,
    ) {
        self.counts.note(counters, key, limits, count, now_ms, || {
            let own = by.name(exchange);
            let own = own.unwrap_or_else(|| by.name_of_address(exchange.request.client));
            digest(&[self.plugin.as_bytes(), &own].concat())
        });
    }
}

/// What a counter is called on all gateways. It may name a caller: others get a digest.
fn digest(name: &[u8]) -> u128 {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, name);
    let first = digest.as_ref().first_chunk::<16>();
    first.map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

impl SharedCounts for SharedLimits {
    fn has_counted(&self) -> bool {
        self.counts.has_counted()
    }

    fn is_open(&self) -> bool {
        self.counts.is_open()
    }

    fn report(&self, all: bool, now_ms: u64) -> Vec<SharedCount> {
        let counts = self.counts.report(all, now_ms).into_iter();
        let count = |it: across::Count| SharedCount {
            name: it.window.0,
            end_ms: it.window.1,
            until_ms: it.until_ms,
            count: it.count,
        };
        counts.map(count).collect()
    }

    fn learn(&self, name: u128, end_ms: u64, others: u64, now_ms: u64) {
        self.counts.learn((name, end_ms), others, now_ms);
    }

    fn set_contact(&self, cut_off_of: Option<u64>) {
        self.counts.set_contact(cut_off_of);
    }
}
