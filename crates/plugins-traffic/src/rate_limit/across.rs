//! Instances of `rate-limit` whose gateways synchronize their counts through the control plane. Each call is decided by
//! the local counters; its count is recorded and sent to the other gateways.

use super::engine::Limits;
use crate::rate_key::handled::is_handled;
use crate::shared_limits::SharedLimits;
use std::sync::Arc;
use weir_plugin::{Exchange, Filter, Indeterminate, Outcome, Phases};

/// An instance that counts here, and with other gateways.
pub(super) struct LimitsAcross {
    pub(super) limits: Limits,
    pub(super) shared: Arc<SharedLimits>,
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
        if is_handled(exchange, "rate-limit") {
            return Outcome::Continue;
        }
        let cost = match self.limits.cost(exchange) {
            Ok(cost) => cost,
            Err(outcome) => return outcome,
        };
        let counters = &self.limits.counters;
        let decision = self
            .limits
            .decide(exchange, cost, |group, key, limits, now_ms, exchange| {
                let key = (&group.by, key);
                self.shared.note(counters, key, limits, cost, now_ms, exchange);
            });
        match self.limits.conclude(decision, exchange) {
            None => Outcome::Continue,
            Some(refusal) => Outcome::Refuse(refusal),
        }
    }
}
