//! Instances of `rate-limit` whose counts gateways settle through their control plane. Each call is decided by the counters
//! here; what it counted is noted, and others learn of it.

use super::engine::Limits;
use crate::rate_key::settled::is_settled;
use std::sync::Arc;
use weir_flow::rate_limit::across;
use weir_plugin::{Exchange, Filter, Indeterminate, Outcome, Phases, SharedCount, SharedCounts};

/// The counts of all instances.
#[derive(Default)]
pub(super) struct SharedLimits(across::SharedCounts);

/// An instance that counts here, and with other gateways.
pub(super) struct LimitsAcross {
    pub(super) limits: Limits,
    pub(super) shared: Arc<SharedLimits>,
}

/// What a counter is called on all gateways. It may name a caller: others get a digest.
fn digest(name: &[u8]) -> u128 {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, name);
    let first = digest.as_ref().first_chunk::<16>();
    first.map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

impl Filter for LimitsAcross {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.limits.needs_body()
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.limits.indeterminate(exchange)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_settled(exchange, "rate-limit") {
            return Outcome::Continue;
        }
        let counters = &self.limits.counters;
        let decision = self
            .limits
            .decide(exchange, |group, key, limits, now_ms, exchange| {
                self.shared.0.note(counters, key, limits, now_ms, || {
                    let own = group.by.name(exchange);
                    digest(&own.unwrap_or_else(|| group.by.name_of_address(exchange.request.client)))
                });
            });
        match self.limits.conclude(decision, exchange) {
            None => Outcome::Continue,
            Some(refusal) => Outcome::Refuse(refusal),
        }
    }
}

impl SharedCounts for SharedLimits {
    fn has_counted(&self) -> bool {
        self.0.has_counted()
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn report(&self, all: bool, now_ms: u64) -> Vec<SharedCount> {
        let counts = self.0.report(all, now_ms).into_iter();
        let count = |it: across::Count| SharedCount {
            name: it.window.0,
            end_ms: it.window.1,
            until_ms: it.until_ms,
            count: it.count,
        };
        counts.map(count).collect()
    }

    fn learn(&self, name: u128, end_ms: u64, others: u64, now_ms: u64) {
        self.0.learn((name, end_ms), others, now_ms);
    }

    fn set_contact(&self, cut_off_of: Option<u64>) {
        self.0.set_contact(cut_off_of);
    }
}
