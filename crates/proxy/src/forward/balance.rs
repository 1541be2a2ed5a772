//! Which target a try goes to, by what is known of the targets' health; what the try makes known of it, and whether
//! there is another one.

use super::target_override::NO_TARGET;
use super::{Failure, ForwardPlan, RequestContext};
use crate::dns::{DnsQuery, ResolveError};
use crate::health::is_enough_healthy;
use crate::worker::WorkerSnapshot;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_flow::balancer::{BalancerState, Load};
use weir_flow::health::Signal;
use weir_model::NoneHealthy;
use weir_snapshot::{Checks, Target, Upstream};

impl RequestContext<'_> {
    /// Chooses a target that was not tried yet; once all were, any. `None`: no target is there, or only healthy ones
    /// may be called and none is.
    pub(super) fn pick(&mut self, plan: &ForwardPlan<'_>, tried: &[usize]) -> Option<usize> {
        let upstream = plan.upstream;
        if let Some(index) = plan.sticky.filter(|index| !tried.contains(index))
            && is_healthy(upstream, index)
        {
            return Some(index);
        }
        if plan.place == NO_TARGET {
            return Some(0);
        }
        let now_ms = if upstream.balancer.uses_load() {
            self.exchange.unix_ms()
        } else {
            0
        };
        let choice = PickRequest {
            place: plan.place as usize,
            hash: plan.hash,
            now_ms,
            tried,
        };
        choose(self.serving, &choice)
    }

    /// Whether another try is wanted, safe, and within the upstream's budget.
    pub(super) fn may_retry(&self, plan: &ForwardPlan<'_>, failure: Failure) -> bool {
        let elapsed = Instant::now().saturating_duration_since(plan.started);
        let in_time = (plan.forward.retry_timeout_ms == 0
            || elapsed < Duration::from_millis(plan.forward.retry_timeout_ms))
            && plan.deadline.is_none_or(|deadline| Instant::now() < deadline);
        let is_safe = failure.is_unsent() || plan.forward.retry_non_idempotent || self.is_idempotent();
        let is_wanted =
            self.report.retries < plan.forward.retries && in_time && is_safe && self.is_replayable();
        let budget = &plan.upstream.retry_budget;
        is_wanted
            && budget
                .as_ref()
                .is_none_or(|budget| budget.left.take(budget.rules))
    }

    /// The address of a target that is a name: of several the next that is healthy, and on a further try another one.
    pub(super) async fn resolve(
        &mut self,
        plan: &ForwardPlan<'_>,
        target: &Target,
    ) -> Result<SocketAddr, ResolveError> {
        let is_again = self.report.retries > 0;
        let wanted = DnsQuery {
            name: &target.host,
            port: target.port,
            srv: plan.upstream.srv,
            is_again,
            tried: self.exchange.upstream.filter(|_| is_again),
        };
        let now = if is_again { Instant::now() } else { plan.started };
        let allows = |address| target.health.as_ref().is_none_or(|health| health.allows(address));
        self.worker.resolver.address(wanted, now, allows).await
    }

    /// Notes what a try that failed shows of its target.
    #[cold]
    pub(super) fn note_failure(&mut self, plan: &ForwardPlan<'_>, target: &Target, failure: Failure) {
        let is_idle = matches!(
            failure,
            Failure::StaleConnection | Failure::Unprocessed | Failure::Status
        );
        if plan.upstream.balancer.needs_load() && !is_idle {
            target.state.note_failure(self.exchange.unix_ms());
        }
        let Some(checks) = plan.passive_checks() else {
            return;
        };
        let signal = match failure {
            Failure::Connect | Failure::NoResponse => Signal::TcpFailure,
            Failure::ConnectTimeout | Failure::ResponseTimeout => Signal::Timeout,
            // The health of names has checks of its own. A connection that had idled may be closed by a target in the
            // best of health.
            Failure::NameResolution | Failure::StaleConnection | Failure::Unprocessed | Failure::Status => {
                return;
            }
        };
        self.note_health(checks, target, signal);
    }

    /// Notes what the status of an answer shows of its target.
    pub(super) fn note_status(&self, checks: &Checks, target: &Target) {
        if let Some(signal) = checks.call_rules.read(self.exchange.response.status) {
            self.note_health(checks, target, signal);
        }
    }

    fn note_health(&self, checks: &Checks, target: &Target, signal: Signal) {
        if let (Some(health), Some(address)) = (&target.health, self.exchange.upstream)
            && health.observe(address, signal, &checks.call_rules).is_some()
        {
            self.worker.shared.health.note_change();
        }
    }
}

/// The facts for a choice among the targets of an upstream.
pub struct PickRequest<'c> {
    /// The upstream's place in the snapshot.
    pub place: usize,
    /// The hash for consistent hashing.
    pub hash: Option<u32>,
    /// The time, if the balancer needs loads.
    pub now_ms: u64,
    /// Targets that were tried before.
    pub tried: &'c [usize],
}

/// Chooses a target that was not tried yet; once all were, any. `None`: no target is there, or none is healthy and
/// only such may be used.
pub fn choose(serving: &WorkerSnapshot, choice: &PickRequest<'_>) -> Option<usize> {
    let upstream: &Upstream = &serving.published.snapshot.upstreams[choice.place];
    let load = |index: usize| upstream.load(index, choice.now_ms);
    let is_new = |index: usize| !choice.tried.contains(&index);
    serving.with_balancer(choice.place, |state| {
        if let Some(checks) = &upstream.checks {
            return pick_healthy(upstream, checks, state, choice.hash, &load, &is_new);
        }
        let balancer = &upstream.balancer;
        balancer
            .pick(state, choice.hash, load, is_new)
            .or_else(|| balancer.pick(state, choice.hash, load, |_| true))
    })
}

/// Whether calls may go to a target. One that comes back later starts slowly then, if targets of its upstream do.
fn is_healthy(upstream: &Upstream, index: usize) -> bool {
    let target = &upstream.targets[index];
    let is_usable = target.health.as_ref().is_none_or(|health| health.is_usable());
    if !is_usable && upstream.slow_start().is_some() {
        target.state.cool_down();
    }
    is_usable
}

fn pick_healthy(
    upstream: &Upstream,
    checks: &Checks,
    state: &mut BalancerState,
    hash: Option<u32>,
    load: &impl Fn(usize) -> Load,
    is_new: &impl Fn(usize) -> bool,
) -> Option<usize> {
    if !is_enough_healthy(upstream, checks) {
        return None;
    }
    let is_healthy = |index: usize| is_healthy(upstream, index);
    let balancer = &upstream.balancer;
    let healthy = balancer
        .pick(state, hash, load, |index| is_new(index) && is_healthy(index))
        .or_else(|| balancer.pick(state, hash, load, is_healthy));
    match (healthy, checks.when_none_healthy) {
        (None, NoneHealthy::UseAll) => balancer
            .pick(state, hash, load, is_new)
            .or_else(|| balancer.pick(state, hash, load, |_| true)),
        (healthy, _) => healthy,
    }
}
