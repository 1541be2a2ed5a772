//! Forwarding: chooses a target, connects, sends the request, and retries if that is safe.

mod attempt;
mod balance;
mod bandwidth;
mod body_filters;
mod buffer_response;
mod connect;
mod cookie;
mod dialogue;
mod error;
mod head;
mod hedge;
mod http2;
mod informational;
mod overload;
mod pump;
mod relay;
mod secure_target;
mod sticky;
mod target_override;
mod through_proxy;

pub use balance::{PickRequest, choose};
pub use pump::Background;

use cookie::StickyCookie;
use overload::OverloadSlot;
use target_override::{NO_TARGET, UpstreamOverride};

use crate::forwarded;
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::pool::{IdleList, PoolKey, UpstreamConnection, UpstreamProtocol};
use crate::reply;
use crate::serve::RequestContext;
use crate::timer::{Timer, later};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use weir_http1::fields::is_forwarded;
use weir_model::{Scheme, Timeouts, UpstreamHost};
use weir_plugin::uri::NormalForm;
use weir_plugin::{RefusalKind, UpstreamProxy, UpstreamTimeouts};
use weir_snapshot::{Checks, Forward, HashSource, Route, RouteMatch, Target, Upstream};

/// The result of one attempt.
enum AttemptResult {
    /// The call is over.
    Done(ConnectionFate),
    /// The target could not be used; nothing of a response has been seen.
    Failed(Failure),
    /// The target has answered with a status for which another try is made; that is within all bounds.
    Again,
    /// The target has refused the call, and a filter makes another one of it; that is within all bounds.
    Repeat,
    /// No further try can help.
    Stopped(ShortCircuit),
}

/// Why a try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    NameResolution,
    Connect,
    ConnectTimeout,
    /// A connection from the pool had been closed by the target before it answered.
    StaleConnection,
    /// The target closed, or broke the protocol, before a response.
    NoResponse,
    ResponseTimeout,
    /// The target has said that it did not look at the request.
    Unprocessed,
    /// The target has answered with a status for which another try may be made.
    Status,
}

impl Failure {
    fn refusal(self) -> RefusalKind {
        match self {
            Self::NameResolution => RefusalKind::NameResolution,
            Self::Connect => RefusalKind::ConnectFailed,
            Self::StaleConnection | Self::NoResponse | Self::Unprocessed | Self::Status => {
                RefusalKind::UpstreamFailed
            }
            Self::ConnectTimeout | Self::ResponseTimeout => RefusalKind::UpstreamTimeout,
        }
    }

    /// Whether the target cannot have seen the request.
    fn is_unsent(self) -> bool {
        matches!(
            self,
            Self::NameResolution | Self::Connect | Self::ConnectTimeout | Self::Unprocessed
        )
    }
}

/// The parts of a forwarded call that stay the same over all tries.
struct ForwardPlan<'p> {
    /// Bytes of the path that are cut off.
    stripped: Option<usize>,
    /// The `X-Forwarded-*` are written with each try and not kept in the header list.
    tells_plainly: bool,
    /// `Via` is in the header list, with what other hops have written.
    has_via: bool,
    route: &'p Route,
    forward: &'p Forward,
    found: &'p RouteMatch,
    upstream: &'p Upstream,
    /// The upstream's place in the snapshot; [`NO_TARGET`]: only this call knows it.
    place: u32,
    /// The protocol of the service's targets.
    scheme: Scheme,
    is_decoded: bool,
    hash: Option<u32>,
    /// The cookie that the client gets, so that its next call goes to the same target.
    cookie: Option<Box<StickyCookie>>,
    /// The target that the client's cookie names.
    sticky: Option<usize>,
    /// The route's time-outs, or those that a filter has set.
    timeouts: Timeouts,
    started: Instant,
    /// When the call must be over.
    deadline: Option<Instant>,
    /// The proxies that the call goes through.
    proxy: Option<Arc<UpstreamProxy>>,
    /// The call's place among those in flight, if their number is bounded.
    slot: Option<OverloadSlot<'p>>,
}

impl ForwardPlan<'_> {
    /// A time-out, shortened to what is left of the whole call's. Without a bound for that no clock is read.
    fn within(&self, timeout: Duration) -> Duration {
        match self.deadline {
            None => timeout,
            Some(deadline) => timeout.min(deadline.saturating_duration_since(Instant::now())),
        }
    }

    /// The checks that learn from what comes of the call. Behind a proxy there are none: it is the proxy that is
    /// connected to, so neither its address nor its failures are those of a target.
    fn passive_checks(&self) -> Option<&Checks> {
        self.upstream.checks.as_deref().filter(|_| self.proxy.is_none())
    }

    /// The version of HTTP that the upstream speaks.
    fn upstream_version(&self) -> (u8, u8) {
        match self.scheme.is_http2() {
            true => (2, 0),
            false => (1, 1),
        }
    }
}

impl RequestContext<'_> {
    /// Carries the call to one of the upstream's targets and its answer back.
    pub async fn forward(
        &mut self,
        route: &Route,
        forward: &Forward,
        found: &RouteMatch,
    ) -> Result<ConnectionFate, ShortCircuit> {
        let snapshot = &self.serving.published.snapshot;
        let scheme = snapshot.upstreams[forward.upstream as usize].scheme;
        let other = match self.exchange.target_override.take() {
            None => UpstreamOverride::Indexed(forward.upstream),
            Some(wanted) => target_override::find(snapshot, forward.upstream, &wanted),
        };
        let (place, upstream): (u32, &Upstream) = match &other {
            UpstreamOverride::Indexed(place) => (*place, &snapshot.upstreams[*place as usize]),
            UpstreamOverride::AdHoc(upstream) => (NO_TARGET, upstream),
        };
        let stripped = forward.path.strip_matched.then_some(found.matched_len);
        if route.chain.has_request_work {
            weir_http1::fields::forget_framing(&mut self.exchange.request.headers);
            if self.exchange.trace.is_some_and(|trace| trace.is_sampled) {
                self.report.forwarded_at = Some(Instant::now());
            }
        }
        let proxy = self.exchange.upstream_proxy.take();
        let headers = &mut self.exchange.request.headers;
        let tells_otherwise = (proxy.as_deref()).is_some_and(|proxy| through_proxy::prepare(proxy, headers));
        let tells_plainly = !tells_otherwise && self.has_plain_forwarded_headers(route, forward);
        if !tells_plainly && !tells_otherwise {
            let settings = self.serving.published.snapshot.settings(route.rules.dialect);
            let is_proxy = settings.trusts_proxy(self.exchange.request.peer.ip());
            forwarded::apply(
                &route.rules.forwarded,
                self.head.has_forwarded,
                is_proxy,
                stripped,
                self.exchange,
            );
        }
        for header in route.rules.request_headers.iter() {
            self.exchange.request.headers.remove(&header.name);
        }
        let dialect = self.worker.shared.error_renderers.get(route.rules.dialect);
        let version = self.exchange.request.version;
        let may_have_via = self.head.has_via || route.chain.has_request_work;
        let headers = &mut self.exchange.request.headers;
        let has_via = may_have_via && reply::extend_via(&route.rules.forwarded, version, headers);
        let (hash, cookie) = self.hash(upstream);
        // A body that was read for a filter may have taken its time.
        let started = match self.report.forwarded_at {
            Some(forwarded_at) => forwarded_at,
            None if self.exchange.request.body.is_some() => Instant::now(),
            None => self.started(),
        };
        let timeouts = own_timeouts(forward.timeouts, self.exchange.upstream_timeouts);
        let total_ms = timeouts.total_ms;
        let plan = ForwardPlan {
            stripped,
            tells_plainly,
            has_via,
            route,
            forward,
            found,
            upstream,
            place,
            scheme,
            is_decoded: dialect.normal_form() == NormalForm::Decoded,
            hash,
            cookie,
            sticky: self.sticky_target(upstream),
            timeouts,
            started,
            deadline: (total_ms > 0).then(|| later(started, Duration::from_millis(total_ms))),
            proxy,
            slot: OverloadSlot::enter(upstream, route.rules.priority)?,
        };
        if let Some(budget) = &upstream.retry_budget {
            budget.left.note_call(budget.rules);
        }
        if let Some(port) = self.head.connect_port {
            return Box::pin(self.connect_through(&plan, port)).await;
        }
        self.try_targets(&plan).await
    }

    /// Tries targets until one has answered, or no further try can be made.
    async fn try_targets(&mut self, plan: &ForwardPlan<'_>) -> Result<ConnectionFate, ShortCircuit> {
        let upstream = plan.upstream;
        let mut tried: Vec<usize> = Vec::new();
        let mut cookie = plan.cookie.as_ref();
        loop {
            let Some(index) = self.pick(plan, &tried) else {
                return Err(RefusalKind::NoTarget.into());
            };
            if let Some(cookie) = cookie.take() {
                self.exchange.response_headers.append(b"Set-Cookie", &cookie.line);
            }
            self.report.target = (plan.place != NO_TARGET).then_some((plan.place, index));
            let failure = match self.try_target(plan, index).await {
                AttemptResult::Done(after) => return Ok(after),
                AttemptResult::Stopped(stop) => return Err(stop),
                AttemptResult::Failed(failure) => failure,
                AttemptResult::Again => Failure::Status,
                AttemptResult::Repeat => {
                    Box::pin(self.note_refused(plan)).await?;
                    continue;
                }
            };
            // A copy of the call may have gone elsewhere.
            let index = self.report.target.map_or(index, |(_, index)| index);
            let status = match failure {
                Failure::Status => self.report.answered.take(),
                _ => None,
            };
            self.note_failure(plan, &upstream.targets[index], failure);
            let now = Instant::now();
            self.report.upstream_time = Some(now.saturating_duration_since(plan.started));
            self.report
                .tries
                .push(status.unwrap_or_else(|| failure.refusal().status()));
            let address = (failure != Failure::NameResolution).then_some(self.exchange.upstream);
            self.report.failures.push((address.flatten(), now));
            if failure != Failure::Status && !self.may_retry(plan, failure) {
                plan.note_given_up(failure, now);
                return Err(failure.refusal().into());
            }
            self.report.retries += 1;
            self.worker.metrics.upstream_retries.increment();
            tried.push(index);
        }
    }

    /// Has filters change a call that its target has refused, which is sent once more.
    async fn note_refused(&mut self, plan: &ForwardPlan<'_>) -> Result<(), ShortCircuit> {
        self.exchange.repeat_on = None;
        let status = self.report.answered.take();
        let now = Instant::now();
        self.report.upstream_time = Some(now.saturating_duration_since(plan.started));
        self.report.tries.extend(status);
        self.report.failures.push((self.exchange.upstream, now));
        self.run_refused(&plan.route.chain).await?;
        self.report.retries += 1;
        self.worker.metrics.upstream_retries.increment();
        Ok(())
    }

    /// Whether the usual `X-Forwarded-*` can be written without a look at the header list.
    fn has_plain_forwarded_headers(&self, route: &Route, forward: &Forward) -> bool {
        let forwarded = &route.rules.forwarded;
        // The client's Host must still be in the list when it is repeated as written.
        let keeps_host = !forwarded.host_as_written || forward.upstream_host == UpstreamHost::Client;
        let may_have_some = self.head.has_forwarded || route.chain.has_request_work;
        let has_some = || {
            let request = &self.exchange.request;
            request.overridden_headers != 0 || request.headers.any_name(b'x', is_forwarded)
        };
        let may_have_list = self.head.has_forwarded_list || route.chain.has_request_work;
        forwarded::is_plain(forwarded, may_have_list, self.exchange)
            && keeps_host
            && !(may_have_some && has_some())
    }

    /// The hash that chooses the target, and the cookie that the client is given if that is what was hashed.
    fn hash(&mut self, upstream: &Upstream) -> (Option<u32>, Option<Box<StickyCookie>>) {
        for source in &upstream.hash_on {
            if let Some(hash) = source.hash(self.exchange) {
                return (Some(hash), None);
            }
            if let HashSource::Cookie {
                name,
                set_for_path: Some(path),
                attributes,
            } = source
            {
                let value = random_uuid(self.exchange.random_u64(), self.exchange.random_u64());
                let cookie = StickyCookie::new(name, &value, path, attributes);
                return (
                    Some(weir_flow::hash_key(value.as_bytes())),
                    Some(Box::new(cookie)),
                );
            }
        }
        (None, None)
    }

    /// RFC 9110, 9.2.2.
    fn is_idempotent(&self) -> bool {
        matches!(
            self.exchange.request.method.as_slice(),
            b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE"
        )
    }

    /// Whether no byte of the body has been given away.
    fn is_replayable(&self) -> bool {
        self.exchange.request.body.is_some() || self.body.received == self.body.prefix.len() as u64
    }

    async fn try_target(&mut self, plan: &ForwardPlan<'_>, index: usize) -> AttemptResult {
        if let Some(proxy) = &plan.proxy {
            if let Some(spoken) = &self.exchange.upstream_dialogue {
                let reason = "only HTTP can go through a proxy";
                return AttemptResult::Stopped(dialogue::no_answer(spoken.plugin, reason));
            }
            return Box::pin(self.try_through(plan, index, proxy)).await;
        }
        let target = &plan.upstream.targets[index];
        // Close enough for the ages of idle connections and of answers of the name service.
        let now = plan.started;
        let address = match target.address {
            Some(address) => address,
            None => match self.resolve(plan, target).await {
                Ok(address) => address,
                Err(_) => return AttemptResult::Failed(Failure::NameResolution),
            },
        };
        self.exchange.upstream = Some(address);
        let speaks = self.speaks(plan);
        let named = self.named_target(plan, target, index, address);
        let own_key;
        let key = match &named {
            Some(named) => &named.key,
            None => {
                let tls = match &plan.forward.tls {
                    None => None,
                    Some(tls) => match tls.name.clone().or_else(|| self.server_name(plan, target)) {
                        Some(name) => Some((tls.id, name)),
                        None => return AttemptResult::Failed(Failure::Connect),
                    },
                };
                own_key = PoolKey { address, tls };
                &own_key
            }
        };
        if let Some(spoken) = self.exchange.upstream_dialogue.take() {
            return Box::pin(self.speak(plan, target, key, spoken)).await;
        }
        let bounds = &plan.upstream.keepalive;
        let pool = &self.worker.pool;
        let http1 = || match (target.address, &named) {
            // All connections to it are alike: their list is found by its place, without a hash of the key.
            (Some(_), None) if plan.place != NO_TARGET && key.tls.is_none() => {
                let place = (plan.place as usize, index);
                let list = self.serving.idle_list(place, || pool.list(key));
                IdleList::take(&list, bounds, now)
            }
            (_, Some(named)) => IdleList::take(&named.idle, bounds, now),
            _ => pool.take(key, bounds, now),
        };
        let reused = match speaks {
            UpstreamProtocol::Http1 => http1(),
            UpstreamProtocol::Http2 => self.worker.streams.take(key, bounds, now),
            UpstreamProtocol::Either => self.worker.streams.take(key, bounds, now).or_else(http1),
        };
        if let Some(connection) = reused {
            self.worker.metrics.upstream_connections_reused.increment();
            match self.attempt(plan, target, key, connection, true).await {
                AttemptResult::Failed(Failure::StaleConnection)
                    if self.is_idempotent() && self.is_replayable() => {}
                AttemptResult::Failed(Failure::Unprocessed) if self.is_replayable() => {}
                other => return other,
            }
        }
        match self.connect(plan, key, speaks).await {
            Ok(Some(connection)) => self.attempt(plan, target, key, connection, false).await,
            Ok(None) => AttemptResult::Stopped(ShortCircuit::Gone),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                AttemptResult::Failed(Failure::ConnectTimeout)
            }
            Err(_) => AttemptResult::Failed(Failure::Connect),
        }
    }

    /// The version of HTTP that the target is asked for. A call that wants another protocol is one of HTTP/1.1.
    fn speaks(&self, plan: &ForwardPlan<'_>) -> UpstreamProtocol {
        match plan.scheme {
            scheme if !scheme.is_http2() => UpstreamProtocol::Http1,
            Scheme::H2c | Scheme::H2 if plan.route.rules.upgrade && self.head.upgrade.is_some() => {
                UpstreamProtocol::Http1
            }
            Scheme::H2 => UpstreamProtocol::Either,
            _ => UpstreamProtocol::Http2,
        }
    }

    /// Connects; `None` when the client went meanwhile.
    async fn connect(
        &mut self,
        plan: &ForwardPlan<'_>,
        key: &PoolKey,
        speaks: UpstreamProtocol,
    ) -> io::Result<Option<Box<UpstreamConnection>>> {
        let rules = plan.forward.tls.as_ref().map(|tls| speaks.config(tls));
        let name = key.tls.as_ref().map(|(_, name)| name.clone());
        let met = rules.cloned().zip(name);
        let timeouts = &plan.timeouts;
        let timeout = plan.within(Duration::from_millis(timeouts.connect_ms));
        let (client, worker) = (&mut *self.client, self.worker);
        let open = async {
            match speaks {
                UpstreamProtocol::Http1 => {
                    let timer = Timer::new(Instant::now(), timeout);
                    UpstreamConnection::open(key.address, met, timer, &worker.metrics).await
                }
                UpstreamProtocol::Http2 | UpstreamProtocol::Either => {
                    Box::pin(worker.streams.connect(
                        &worker.runtime,
                        key,
                        (met, speaks),
                        timeout,
                        &plan.upstream.keepalive,
                    ))
                    .await
                }
            }
        };
        let mut opening = std::pin::pin!(open);
        std::future::poll_fn(|context| match opening.as_mut().poll(context) {
            Poll::Ready(opened) => Poll::Ready(opened.map(Some)),
            Poll::Pending => client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| Ok(None)),
        })
        .await
    }
}

/// Counts a call among those that its target is busy with, for balancers that ask.
struct InFlightGuard<'t>(Option<&'t Target>);

impl<'t> InFlightGuard<'t> {
    fn is_counting(&self) -> bool {
        self.0.is_some()
    }

    fn new(upstream: &Upstream, target: &'t Target) -> Self {
        let counts = upstream.balancer.needs_load();
        if counts {
            target.state.inflight.fetch_add(1, Relaxed);
        }
        Self(counts.then_some(target))
    }

    /// Notes how long the target took.
    fn note_latency(&self, latency: Duration, now_ms: u64) {
        if let Some(target) = self.0 {
            target.state.note_latency(latency, now_ms);
        }
    }
}

/// A random UUID (RFC 9562, 5.4) in its usual form.
fn random_uuid(high: u64, low: u64) -> String {
    let high = (high & !0xf000) | 0x4000;
    let low = (low >> 2) | (1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        if let Some(target) = self.0 {
            target.state.inflight.fetch_sub(1, Relaxed);
        }
    }
}

/// The route's time-outs, but for those that a filter has set.
#[inline]
fn own_timeouts(route: Timeouts, own: UpstreamTimeouts) -> Timeouts {
    Timeouts {
        connect_ms: own.connect_ms.unwrap_or(route.connect_ms),
        write_ms: own.write_ms.unwrap_or(route.write_ms),
        read_ms: own.read_ms.unwrap_or(route.read_ms),
        total_ms: own.total_ms.unwrap_or(route.total_ms),
    }
}

/// The Host that a filter has set; `None` if it gives way to the route's own.
fn own_host<'x>(decided: Option<&'x [u8]>, yields: bool, forward: &Forward) -> Option<&'x [u8]> {
    decided.filter(|_| !yields || forward.upstream_host == UpstreamHost::Client)
}
