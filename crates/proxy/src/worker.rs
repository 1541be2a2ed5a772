//! A worker: one thread, one single-threaded runtime, and all that its connections share. How it runs is in
//! [`crate::run_worker`].

use crate::calls::WorkerCalls;
use crate::date::Date;
use crate::dns::Resolver;
use crate::h2::pool::Http2Pool;
use crate::h3::alt_svc::Alternatives;
use crate::kafka::consumer::ConsumerCache;
use crate::object_pool::ObjectPool;
use crate::pool::{IdleList, Pool, PoolKey, TaggedPoolKey};
use crate::redis::Redis;
use crate::route_infos::RouteInfos;
use crate::runtime::Runtime;
use crate::shared::{PublishedSnapshot, Shared};
use crate::wall_clock::WallClock;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use weir_flow::balancer::BalancerState;
use weir_http1::request::RequestHeads;
use weir_http1::response::ResponseHeads;
use weir_plugin::{Exchange, system_clock};
use weir_telemetry::access_log::AccessLogHandle;
use weir_telemetry::metrics::WorkerMetrics;

/// How often a worker looks after what is idle.
pub const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Addresses of targets over TLS that a worker remembers.
const MAX_NAMED: usize = 4096;
/// Spare exchanges that a worker keeps.
const SPARE_EXCHANGES: usize = 1024;

/// The state that the connections of one worker share.
pub struct Worker {
    pub shared: Arc<Shared>,
    pub pool: Pool,
    /// Connections to servers that filters ask, through proxies or in other protocols than HTTP.
    pub tagged_pool: Pool<TaggedPoolKey>,
    /// Connections to upstreams that speak HTTP/2.
    pub streams: Rc<Http2Pool>,
    /// The resources of connections, whatever they carry.
    pub runtime: Rc<Runtime>,
    /// For answers of the gateway's own.
    pub date: Date,
    wall_clock: WallClock,
    pub resolver: Rc<Resolver>,
    /// Servers that hold counts for filters.
    pub redis: Redis,
    /// Readers of Kafka that are kept for the next call.
    pub kafka: ConsumerCache,
    /// Held once by the worker, and once for each background request under way.
    pub background_requests: Rc<()>,
    pub metrics: Arc<WorkerMetrics>,
    pub access_log: Option<RefCell<AccessLogHandle>>,
    /// If analytics are on: receives finished calls.
    pub calls: Option<WorkerCalls<PublishedSnapshot>>,
    /// Heads that came before, from clients and from upstreams.
    pub request_heads: RefCell<RequestHeads>,
    pub response_heads: RefCell<ResponseHeads>,
    serving: RefCell<Rc<WorkerSnapshot>>,
    /// Lent to calls as pointers, and not copied there and back.
    exchanges: ObjectPool<Box<Exchange>>,
    connections: RefCell<slab::Slab<Option<Waker>>>,
    /// The buffer that sessions of streams read into.
    pub stream_buffer: RefCell<Vec<u8>>,
    /// Held once for each pipe between connections.
    pub splice_pipes: Rc<()>,
    /// Sessions of datagrams that are open.
    pub datagram_sessions: Cell<usize>,
    draining: Cell<bool>,
    /// When it was last logged that there is no room for a client.
    warned_full: Cell<Option<Instant>>,
    /// QUIC handshakes under way.
    pub handshakes: Cell<usize>,
    /// The announcements of HTTP/3 to clients.
    pub alternatives: Alternatives,
    seeds: Cell<u64>,
}

/// The lists of idle connections to an upstream's targets.
#[derive(Default)]
enum IdleLists {
    /// None was asked for yet.
    #[default]
    Unasked,
    /// Of the only target. Nearly all upstreams have one: with many routes, each look at memory less counts.
    Only(Rc<IdleList>),
    /// By the places of the targets.
    Several(Box<[Option<Rc<IdleList>>]>),
}

/// The position of a target in the snapshot, the rules for TLS with it, and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TargetPosition {
    pub upstream: u32,
    pub target: usize,
    pub tls: u64,
    pub address: SocketAddr,
}

/// A target that is always met over TLS by the same name.
pub struct NamedTarget {
    pub key: PoolKey,
    /// The idle connections to it.
    pub idle: Rc<IdleList>,
}

/// A snapshot as one worker serves it.
pub struct WorkerSnapshot {
    pub published: Arc<PublishedSnapshot>,
    balancers: RefCell<Vec<Option<BalancerState>>>,
    /// For each upstream that was called, the lists of idle connections to its targets.
    idle: RefCell<Vec<IdleLists>>,
    /// Targets over TLS that were called.
    named: RefCell<HashMap<TargetPosition, Rc<NamedTarget>, foldhash::fast::RandomState>>,
    pub route_infos: RouteInfos,
    seed: u64,
}

impl WorkerSnapshot {
    fn new(published: Arc<PublishedSnapshot>, seed: u64) -> Self {
        let mut balancers = Vec::new();
        balancers.resize_with(published.snapshot.upstreams.len(), || None);
        let mut idle = Vec::new();
        idle.resize_with(published.snapshot.upstreams.len(), Default::default);
        Self {
            published,
            balancers: RefCell::new(balancers),
            idle: RefCell::new(idle),
            named: RefCell::default(),
            route_infos: RouteInfos::default(),
            seed,
        }
    }

    /// The idle connections to a target of an upstream, by their places in the snapshot. `find` is asked once.
    #[inline]
    pub fn idle_list(
        &self,
        (upstream, target): (usize, usize),
        find: impl FnOnce() -> Rc<IdleList>,
    ) -> Rc<IdleList> {
        let mut idle = self.idle.borrow_mut();
        let lists = &mut idle[upstream];
        if let IdleLists::Only(list) = lists {
            return Rc::clone(list);
        }
        if let IdleLists::Unasked = lists {
            let targets = self.published.snapshot.upstreams[upstream].targets.len();
            if targets == 1 {
                let list = find();
                *lists = IdleLists::Only(Rc::clone(&list));
                return list;
            }
            *lists = IdleLists::Several(std::iter::repeat_with(|| None).take(targets).collect());
        }
        match lists {
            IdleLists::Several(lists) => Rc::clone(lists[target].get_or_insert_with(find)),
            IdleLists::Unasked | IdleLists::Only(_) => find(),
        }
    }

    /// A target over TLS, by its place; `make` is asked once.
    pub fn named_target(
        &self,
        place: TargetPosition,
        make: impl FnOnce() -> Option<NamedTarget>,
    ) -> Option<Rc<NamedTarget>> {
        let mut named = self.named.borrow_mut();
        if let Some(known) = named.get(&place) {
            return Some(Rc::clone(known));
        }
        let made = Rc::new(make()?);
        // Names may lead to ever new addresses.
        if named.len() >= MAX_NAMED {
            named.clear();
        }
        named.insert(place, Rc::clone(&made));
        Some(made)
    }

    /// Lends the balancer state of an upstream.
    pub fn with_balancer<R>(&self, upstream: usize, work: impl FnOnce(&mut BalancerState) -> R) -> R {
        let mut balancers = self.balancers.borrow_mut();
        let balancer = &self.published.snapshot.upstreams[upstream].balancer;
        work(balancers[upstream].get_or_insert_with(|| balancer.new_state(self.seed)))
    }
}

impl Worker {
    /// A worker of the calling thread, whose runtime it needs. Nothing comes to it by itself.
    pub fn new(
        shared: Arc<Shared>,
        metrics: Arc<WorkerMetrics>,
        access_log: Option<AccessLogHandle>,
        alternatives: Alternatives,
        seed: u64,
    ) -> Rc<Self> {
        let published = shared.published.load_full();
        let resolver = Resolver::new(shared.name_servers.clone(), seed);
        Rc::new(Self {
            pool: Pool::default(),
            tagged_pool: Pool::default(),
            streams: Rc::default(),
            runtime: Rc::new(Runtime::new(&shared, &metrics)),
            date: Date::default(),
            wall_clock: WallClock::default(),
            kafka: ConsumerCache::default(),
            background_requests: Rc::default(),
            redis: Redis::new(&shared, &resolver),
            resolver,
            metrics,
            access_log: access_log.map(RefCell::new),
            calls: shared.calls.as_ref().map(WorkerCalls::new),
            request_heads: RefCell::default(),
            response_heads: RefCell::default(),
            serving: RefCell::new(Rc::new(WorkerSnapshot::new(published, seed))),
            exchanges: ObjectPool::new(SPARE_EXCHANGES),
            connections: RefCell::default(),
            stream_buffer: RefCell::default(),
            splice_pipes: Rc::default(),
            datagram_sessions: Cell::new(0),
            draining: Cell::new(false),
            warned_full: Cell::new(None),
            handshakes: Cell::new(0),
            alternatives,
            seeds: Cell::new(seed),
            shared,
        })
    }

    /// The current snapshot. A request asks once and holds on to the answer.
    #[inline]
    pub fn serving(&self) -> Rc<WorkerSnapshot> {
        let newest = self.shared.generation.load(Ordering::Acquire);
        let current = self.serving.borrow();
        if current.published.generation == newest {
            return Rc::clone(&current);
        }
        let seed = current.seed;
        drop(current);
        let fresh = Rc::new(WorkerSnapshot::new(self.shared.published.load_full(), seed));
        *self.serving.borrow_mut() = Rc::clone(&fresh);
        fresh
    }

    /// The time of day at a moment, in milliseconds since the Unix epoch.
    #[inline]
    pub fn unix_ms(&self, at: Instant) -> u64 {
        self.wall_clock.unix_ms(at, || (Instant::now(), system_clock()))
    }

    /// An empty exchange.
    pub fn acquire_exchange(&self) -> Box<Exchange> {
        if let Some(exchange) = self.exchanges.take() {
            return exchange;
        }
        let seed = self.seeds.get();
        // An odd constant with well-spread bits, so that exchanges do not draw the same numbers.
        self.seeds.set(
            seed.wrapping_mul(0x2545_f491_4f6c_dd1d)
                .wrapping_add(0x9e37_79b9_7f4a_7c15),
        );
        Box::new(Exchange::new(system_clock, seed))
    }

    /// Takes an exchange back.
    pub fn release_exchange(&self, mut exchange: Box<Exchange>) {
        if self.exchanges.has_room() {
            exchange.clear();
            exchange.request.headers.shrink_to(16 * 1024);
            exchange.response.headers.shrink_to(16 * 1024);
            self.exchanges.give(exchange);
        }
    }

    /// Whether connections are to end with their current call.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether there is room for another client. One that is turned away is counted, and at most one a second is logged.
    pub fn has_room(&self) -> bool {
        if self.connections.borrow().len() < self.shared.limits.max_connections {
            return true;
        }
        self.metrics.connections_refused.increment();
        let now = Instant::now();
        let warned = self.warned_full.get();
        if warned.is_none_or(|at| now.saturating_duration_since(at) >= HOUSEKEEPING) {
            self.warned_full.set(Some(now));
            tracing::warn!(
                max_connections = self.shared.limits.max_connections,
                refused = self.metrics.connections_refused.get(),
                "client connection refused: worker is at --max-connections"
            );
        }
        false
    }

    /// Whether clients are connected.
    pub fn has_connections(&self) -> bool {
        !self.connections.borrow().is_empty()
    }

    /// Frees exchanges, heads and readers of Kafka that were not needed for a while.
    pub fn trim(&self) {
        drop(self.exchanges.trim());
        self.request_heads.borrow_mut().trim();
        self.response_heads.borrow_mut().trim();
        self.kafka.prune();
    }

    /// Has connections end with their current call.
    pub fn drain(&self) {
        self.draining.set(true);
        for (_, waker) in self.connections.borrow().iter() {
            if let Some(waker) = waker {
                waker.wake_by_ref();
            }
        }
    }
}

/// Counts a connection for as long as it lives, and lets draining wake it.
pub struct ConnectionGuard {
    pub worker: Rc<Worker>,
    key: usize,
    /// Whether it counts among the connections.
    is_counted: bool,
}

impl ConnectionGuard {
    /// Counts a connection, before its task runs for the first time.
    pub fn new(worker: &Rc<Worker>) -> Self {
        worker.metrics.connections_accepted.increment();
        worker.metrics.connections_active.increment();
        Self::of(worker, true)
    }

    /// For a session that is no connection.
    pub fn uncounted(worker: &Rc<Worker>) -> Self {
        Self::of(worker, false)
    }

    fn of(worker: &Rc<Worker>, is_counted: bool) -> Self {
        Self {
            worker: Rc::clone(worker),
            key: worker.connections.borrow_mut().insert(None),
            is_counted,
        }
    }

    /// Lets draining wake the calling task.
    pub async fn attach(&self) -> Rc<Worker> {
        let waker = std::future::poll_fn(|context| Poll::Ready(context.waker().clone())).await;
        self.worker.connections.borrow_mut()[self.key] = Some(waker);
        Rc::clone(&self.worker)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(self.key);
        if std::thread::panicking() {
            self.worker.metrics.panics.increment();
        }
        if self.is_counted {
            self.worker.metrics.connections_active.decrement();
        }
    }
}
