//! The health of targets: probes, ejection and return, and reports of it.
//!
//! A target's health lies in atomics next to the target ([`weir_snapshot::TargetHealth`]), which outlive
//! snapshots. Workers read them when they choose a target and note what calls show; a thread of its own probes, brings
//! targets back whose time is up, and reports changes. No worker ever waits for it, and it never waits for a worker.

mod checker;
mod grpc;
mod probe;
mod report;
mod watch;

pub use report::{
    AddressReport, HealthReport, HealthSelector, SetHealthError, Status, TargetReport, UpstreamReport,
};

pub(crate) use report::{Targets, set};
pub(crate) use watch::start;

use std::time::Duration;
use tokio::sync::Notify;
use weir_snapshot::{Checks, Upstream};

/// Notifies the thread of the health checks, for workers and the publisher.
pub struct HealthNotifier {
    changed: Notify,
    published: Notify,
    passive_ejection: Duration,
}

impl HealthNotifier {
    pub(crate) fn new(passive_ejection: Duration) -> Self {
        Self {
            changed: Notify::new(),
            published: Notify::new(),
            passive_ejection,
        }
    }

    /// A target has become healthy or unhealthy.
    pub(crate) fn note_change(&self) {
        self.changed.notify_one();
    }

    /// Another snapshot is served.
    pub(crate) fn note_published(&self) {
        self.published.notify_one();
    }

    /// For how long a target stays out without being found healthy; `None`: until it is.
    fn ejection(&self, checks: &Checks) -> Option<Duration> {
        let ejection = match checks.ejection_ms {
            Some(millis) => Duration::from_millis(millis),
            None if checks.can_recover() => Duration::ZERO,
            None => self.passive_ejection,
        };
        (!ejection.is_zero()).then_some(ejection)
    }
}

/// Whether as much of the upstream's weight is healthy as its checks ask for.
#[inline]
pub(crate) fn is_enough_healthy(upstream: &Upstream, checks: &Checks) -> bool {
    checks.min_healthy_percent == 0 || healthy_percent(upstream) >= f64::from(checks.min_healthy_percent)
}

/// Percent of the upstream's weight that is healthy.
fn healthy_percent(upstream: &Upstream) -> f64 {
    let (mut healthy, mut all) = (0u64, 0u64);
    for target in &upstream.targets {
        let weight = u64::from(target.weight);
        all += weight;
        if target.health.as_ref().is_none_or(|health| health.is_usable()) {
            healthy += weight;
        }
    }
    if all == 0 {
        return 0.0;
    }
    healthy as f64 * 100.0 / all as f64
}
