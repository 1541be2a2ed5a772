//! What few upstreams have beside their balancer: slow start, sticky sessions, hedged calls, and a limit of calls in
//! flight that follows their latency. An upstream without any of it costs one look at a pointer.

use std::sync::Arc;
use weir_flow::hedge::{HedgeDelay, LatencyPercentile};
use weir_flow::overload::{AdaptiveLimit, OverloadRules};
use weir_flow::retry_budget::{BudgetRules, RetryBudget};
use weir_flow::slow_start::SlowStart;

/// What few upstreams have.
#[derive(Debug, Default)]
pub struct UpstreamTraffic {
    /// How targets that have just come start.
    pub slow_start: Option<SlowStart>,
    /// How clients stay with their target.
    pub sticky: Option<StickySessions>,
    /// When slow calls are copied.
    pub hedge: Option<UpstreamHedge>,
    /// How many calls may be in flight.
    pub overload: Option<UpstreamOverload>,
}

/// How clients stay with their target.
#[derive(Debug)]
pub struct StickySessions {
    /// The name of the cookie.
    pub cookie: Vec<u8>,
    /// What stands behind the value of a cookie that is set.
    pub attributes: Vec<u8>,
    /// By target: the value of its cookie. It depends on the target's host and port alone, so it stays the same over
    /// reloads, restarts and gateways.
    pub values: Box<[[u8; 16]]>,
}

impl StickySessions {
    /// The target that this value of the cookie names.
    pub fn target(&self, value: &[u8]) -> Option<usize> {
        self.values.iter().position(|known| known == value)
    }
}

/// When slow calls are copied.
#[derive(Debug)]
pub struct UpstreamHedge {
    /// When a copy is sent.
    pub delay: HedgeDelay,
    /// How many copies there may be.
    pub rules: BudgetRules,
    /// What is known of the calls; shared by all workers and by the snapshots in which the upstream stands.
    pub state: Arc<HedgeState>,
}

/// What is known of the calls of an upstream whose slow ones are copied.
#[derive(Debug, Default)]
pub struct HedgeState {
    /// How long they take.
    pub latency: LatencyPercentile,
    /// How many more copies there may be.
    pub budget: RetryBudget,
}

/// How many calls may be in flight.
#[derive(Debug)]
pub struct UpstreamOverload {
    /// The bounds of the limit.
    pub rules: OverloadRules,
    /// The limit; shared by all workers and by the snapshots in which the upstream stands.
    pub limit: Arc<AdaptiveLimit>,
}
