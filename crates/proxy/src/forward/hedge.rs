//! Hedging: a second copy of a call that is not answered in time goes to another target, and the first answer counts.
//! The copy that loses is given up with its connection. Only calls without a body, whose method is idempotent.

use super::attempt::Attempt;
use super::pump::write_all;
use super::{Failure, ForwardPlan, PickRequest, choose};
use crate::dns::DnsQuery;
use crate::pool::{PoolKey, UpstreamConnection, UpstreamProtocol};
use crate::serve::RequestContext;
use crate::timer::Timer;
use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weir_flow::hedge::HedgeDelay;
use weir_http1::Framing;
use weir_snapshot::{Target, UpstreamHedge};

/// The copy of a call that was answered first; its connection stands in place of the other one.
pub(super) struct HedgeWinner<'p> {
    pub target: &'p Target,
    pub key: PoolKey,
}

/// A copy under way.
struct Copy<'p> {
    index: usize,
    target: &'p Target,
    key: PoolKey,
    connection: Box<UpstreamConnection>,
    is_reused: bool,
}

/// The first result.
enum FirstResult {
    /// The original was answered or has failed, or the client has gone: it goes on as if there were no copy.
    Original,
    /// The copy was answered, or is all that is left.
    Copy,
    /// The copy has failed.
    CopyFailed,
}

impl<'p> ForwardPlan<'p> {
    /// When slow calls are copied, if they are.
    #[inline]
    pub(super) fn hedge(&self) -> Option<&'p UpstreamHedge> {
        let traffic = self.upstream.traffic.as_ref()?;
        // A copy would go to its target directly.
        traffic.hedge.as_ref().filter(|_| self.proxy.is_none())
    }

    /// The target of a try took so long to answer.
    #[inline]
    pub(super) fn note_latency(&self, latency: Duration, now: Instant) {
        if self.upstream.traffic.is_none() {
            return;
        }
        if let Some(slot) = &self.slot {
            slot.leave(Some(latency));
        }
        if let Some(hedge) = self.hedge() {
            let whole = now.saturating_duration_since(self.started);
            let whole_us = u64::try_from(whole.as_micros()).unwrap_or(u64::MAX);
            hedge.state.latency.note(whole_us, percentile(hedge));
        }
    }

    /// The call is given up.
    #[cold]
    pub(super) fn note_given_up(&self, failure: Failure, now: Instant) {
        if let Some(slot) = &self.slot
            && matches!(failure, Failure::ResponseTimeout | Failure::ConnectTimeout)
        {
            slot.leave(Some(now.saturating_duration_since(self.started)));
        }
    }
}

fn percentile(hedge: &UpstreamHedge) -> u8 {
    match hedge.delay {
        HedgeDelay::Percentile(percentile) => percentile,
        HedgeDelay::AfterMs(_) => 50,
    }
}

impl RequestContext<'_> {
    /// Whether a second copy of this try would do no harm.
    pub(super) fn may_hedge(&self, attempt: &Attempt) -> bool {
        self.is_idempotent()
            && self.head.framing == Framing::None
            && self.exchange.request.body.is_none()
            && self.head.upgrade.is_none()
            && self.report.retries == 0
            && attempt.connection.read.stream().is_none()
    }

    /// Waits for the first bytes of the answer, or of a second copy's if the first takes too long. `None`: the attempt
    /// goes on as it is.
    pub(super) async fn hedge<'p>(
        &mut self,
        plan: &ForwardPlan<'p>,
        hedge: &UpstreamHedge,
        attempt: &mut Attempt,
    ) -> Option<HedgeWinner<'p>> {
        hedge.state.budget.note_call(hedge.rules);
        let delay = hedge.state.latency.delay_us(hedge.delay)?;
        let mut timer = Timer::new(Instant::now(), Duration::from_micros(delay));
        if self.is_answered_before(attempt, &mut timer).await {
            return None;
        }
        let index = self.other_target(plan)?;
        if !hedge.state.budget.take(hedge.rules) {
            return None;
        }
        let mut copy = self.open_copy(plan, index, attempt).await?;
        let mut out = self.worker.runtime.buffers.acquire_output();
        self.write_request_head(plan, copy.target, &mut out);
        let sent = match &mut copy.connection.write {
            Some(write) => write_all(write, &out, &mut copy.connection.timer, attempt.read_timeout).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        self.worker.runtime.buffers.release_output(out);
        sent.ok()?;
        self.worker.metrics.upstream_hedges.increment();
        match self.first_of(attempt, &mut copy.connection).await {
            FirstResult::Original | FirstResult::CopyFailed => None,
            FirstResult::Copy => {
                self.worker.metrics.upstream_hedges_won.increment();
                copy.connection
                    .timer
                    .set_within(attempt.read_timeout, attempt.deadline);
                attempt.connection = copy.connection;
                attempt.is_reused = copy.is_reused && attempt.connection.inbox.is_empty();
                self.exchange.upstream = Some(copy.key.address);
                self.report.target = Some((plan.place, copy.index));
                Some(HedgeWinner {
                    target: copy.target,
                    key: copy.key,
                })
            }
        }
    }

    /// Another target than the one that is asked.
    fn other_target(&mut self, plan: &ForwardPlan<'_>) -> Option<usize> {
        let (_, asked) = self.report.target?;
        let now_ms = match plan.upstream.balancer.uses_load() {
            true => self.exchange.unix_ms(),
            false => 0,
        };
        let choice = PickRequest {
            place: plan.place as usize,
            hash: plan.hash,
            now_ms,
            tried: &[asked],
        };
        choose(self.serving, &choice).filter(|index| *index != asked)
    }

    /// Waits until the answer begins, fails, or the client no longer waits for it (all of which the caller sees next), or
    /// until the timer expires, which is false.
    async fn is_answered_before(&mut self, attempt: &mut Attempt, timer: &mut Timer) -> bool {
        std::future::poll_fn(|context| match self.poll_original(attempt, context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => timer.poll_expired(context).map(|()| false),
        })
        .await
    }

    /// Ready when there is something to see of the original, or the client has gone.
    fn poll_original(&mut self, attempt: &mut Attempt, context: &mut Context<'_>) -> Poll<()> {
        let runtime = &self.worker.runtime;
        let limit = self.worker.shared.limits.max_head_bytes;
        let UpstreamConnection {
            read, inbox, timer, ..
        } = &mut *attempt.connection;
        let is_ready = read.poll_fill(inbox, context, &runtime.buffers, limit).is_ready()
            || self.client.reader.poll_closed(context, runtime).is_ready()
            || timer.poll_expired(context).is_ready();
        match is_ready {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// A connection to the other target, unless the original is answered first or no connection can be had.
    async fn open_copy<'p>(
        &mut self,
        plan: &ForwardPlan<'p>,
        index: usize,
        attempt: &mut Attempt,
    ) -> Option<Copy<'p>> {
        let target = &plan.upstream.targets[index];
        let tls = match &plan.forward.tls {
            None => None,
            Some(tls) => Some((tls, tls.name.clone().or_else(|| self.server_name(plan, target))?)),
        };
        let worker = self.worker;
        let timeout = plan.within(Duration::from_millis(plan.timeouts.connect_ms));
        let mut opening = std::pin::pin!(async move {
            let now = Instant::now();
            let address = match target.address {
                Some(address) => address,
                None => {
                    let wanted = DnsQuery {
                        name: &target.host,
                        port: target.port,
                        srv: plan.upstream.srv,
                        is_again: false,
                        tried: None,
                    };
                    let allows = |address| target.health.as_ref().is_none_or(|health| health.allows(address));
                    worker.resolver.address(wanted, now, allows).await.ok()?
                }
            };
            let key = PoolKey {
                address,
                tls: tls.as_ref().map(|(tls, name)| (tls.id, name.clone())),
            };
            let pooled = worker.pool.take(&key, &plan.upstream.keepalive, now);
            let is_reused = pooled.is_some();
            let mut connection = match pooled {
                Some(connection) => connection,
                None => {
                    let met = tls.map(|(tls, name)| (UpstreamProtocol::Http1.config(tls).clone(), name));
                    let timer = Timer::new(now, timeout);
                    let opened = UpstreamConnection::open(address, met, timer, &worker.metrics).await;
                    opened.ok()?
                }
            };
            connection.calls += 1;
            connection.timer.set(now, timeout);
            Some(Copy {
                index,
                target,
                key,
                connection,
                is_reused,
            })
        });
        std::future::poll_fn(|context| match opening.as_mut().poll(context) {
            Poll::Ready(opened) => Poll::Ready(opened),
            Poll::Pending => self.poll_original(attempt, context).map(|()| None),
        })
        .await
    }

    /// Waits until one of the two is answered.
    async fn first_of(&mut self, attempt: &mut Attempt, copy: &mut UpstreamConnection) -> FirstResult {
        let worker = self.worker;
        let limit = worker.shared.limits.max_head_bytes;
        let client = &mut *self.client;
        let buffers = &worker.runtime.buffers;
        std::future::poll_fn(|context| {
            let UpstreamConnection {
                read, inbox, timer, ..
            } = &mut *attempt.connection;
            match read.poll_fill(inbox, context, buffers, limit) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(FirstResult::Copy),
                Poll::Ready(Ok(_)) => return Poll::Ready(FirstResult::Original),
                Poll::Pending => {}
            }
            match copy.read.poll_fill(&mut copy.inbox, context, buffers, limit) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(FirstResult::CopyFailed),
                Poll::Ready(Ok(_)) => return Poll::Ready(FirstResult::Copy),
                Poll::Pending => {}
            }
            if client.reader.poll_closed(context, &worker.runtime).is_ready()
                || timer.poll_expired(context).is_ready()
            {
                return Poll::Ready(FirstResult::Original);
            }
            Poll::Pending
        })
        .await
    }
}
