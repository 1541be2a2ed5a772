//! The thread that looks after health: follows what is served, starts and ends checks, brings targets back whose time
//! is up, and reports changes.

use super::checker::{CheckedUpstream, check};
use crate::dns::Resolver;
use crate::shared::Shared;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use weir_flow::health::Health;
use weir_snapshot::{Snapshot, Upstream};

/// How often the resolver is looked after.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Starts the thread. It ends when the gateway drains.
pub(crate) fn start(shared: Arc<Shared>, seed: u64) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("weir-health".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(tokio::runtime::LocalOptions::default());
            match runtime {
                Ok(runtime) => runtime.block_on(run(shared, seed)),
                Err(error) => tracing::error!(%error, "health checks cannot be started"),
            }
        })
}

async fn run(shared: Arc<Shared>, seed: u64) {
    let mut drain = shared.drain.subscribe();
    let mut watch = HealthWatcher {
        resolver: Resolver::new(shared.name_servers.clone(), seed),
        upstreams: HashMap::new(),
        seed,
        shared: Arc::clone(&shared),
    };
    watch.follow(&shared.published.load_full().snapshot);
    let mut tick = tokio::time::interval(HOUSEKEEPING);
    loop {
        let next = watch.scan(Instant::now());
        let returning = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The gateway may also have gone.
            _ = drain.wait_for(|draining| *draining) => return,
            () = shared.health.published.notified() => watch.follow(&shared.published.load_full().snapshot),
            () = shared.health.changed.notified() => {}
            () = returning => {}
            _ = tick.tick() => watch.resolver.refresh(Instant::now()),
        }
    }
}

/// All checked upstreams.
struct HealthWatcher {
    resolver: Rc<Resolver>,
    upstreams: HashMap<String, WatchedUpstream>,
    seed: u64,
    shared: Arc<Shared>,
}

/// An upstream whose checks are at work.
struct WatchedUpstream {
    upstream: Rc<CheckedUpstream>,
    /// Addresses that are out, by target, with the time at which they come back by themselves.
    out: HashMap<(usize, SocketAddr), Option<Instant>>,
    task: Option<AbortHandle>,
}

impl Drop for WatchedUpstream {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl HealthWatcher {
    /// Checks what this snapshot wants checked, and nothing else. What has not changed goes on.
    fn follow(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.upstreams);
        let is_own =
            |upstream: &&Arc<Upstream>| upstream.checks.as_ref().is_some_and(|checks| !checks.is_shared);
        for upstream in snapshot.upstreams.iter().filter(is_own) {
            let old = before.remove(&upstream.name);
            let watched = match old {
                Some(watched) if watched.upstream.is_like(upstream) => watched,
                old => {
                    let Some(checked) = CheckedUpstream::of(upstream) else {
                        continue;
                    };
                    self.watch(checked, old)
                }
            };
            self.upstreams.insert(upstream.name.clone(), watched);
        }
    }

    fn watch(&mut self, checked: CheckedUpstream, old: Option<WatchedUpstream>) -> WatchedUpstream {
        let upstream = Rc::new(checked);
        self.seed = self
            .seed
            .wrapping_mul(0x2545_f491_4f6c_dd1d)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        let task = upstream.needs_work().then(|| {
            let (resolver, shared) = (Rc::clone(&self.resolver), Arc::clone(&self.shared));
            let checking = check(Rc::clone(&upstream), resolver, shared, self.seed);
            tokio::task::spawn_local(checking).abort_handle()
        });
        // A target that stays is not announced again, and does not have to wait again.
        let mut out = HashMap::new();
        for ((position, address), until) in old.iter().flat_map(|old| &old.out) {
            let health = old.as_ref().and_then(|old| old.upstream.targets.get(*position));
            let stays = health.and_then(|before| {
                let targets = upstream.targets.iter();
                targets
                    .clone()
                    .position(|target| Arc::ptr_eq(&target.health, &before.health))
            });
            if let Some(position) = stays {
                out.insert((position, *address), *until);
            }
        }
        WatchedUpstream { upstream, out, task }
    }

    /// Reports what has changed, and brings back what is due. Returns the time at which the next target is due.
    fn scan(&mut self, now: Instant) -> Option<Instant> {
        let shared = &self.shared;
        let nexts = self
            .upstreams
            .values_mut()
            .filter_map(|watched| watched.scan(shared, now));
        nexts.min()
    }
}

impl WatchedUpstream {
    fn scan(&mut self, shared: &Shared, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut is_stirred = false;
        let mut still_out = HashMap::new();
        let upstream = &self.upstream;
        for (position, target) in upstream.targets.iter().enumerate() {
            for known in target.health.addresses().iter() {
                let place = (position, known.address);
                let health = known.cell.get();
                let was_out = self.out.get(&place);
                if health.state.is_usable() {
                    if was_out.is_some() {
                        is_stirred = true;
                        log_change(upstream, position, known.address, "a target is healthy again");
                    }
                    continue;
                }
                let until = match was_out {
                    Some(until) => until.filter(|_| !health.is_held),
                    None => {
                        is_stirred = true;
                        log_unhealthy(upstream, position, known.address, health);
                        let ejection = shared.health.ejection(&upstream.checks);
                        ejection
                            .filter(|_| !health.is_held)
                            .map(|ejection| now + ejection)
                    }
                };
                match until {
                    Some(until) if until <= now => {
                        known.cell.set(Health::HEALTHY);
                        is_stirred = true;
                        log_change(
                            upstream,
                            position,
                            known.address,
                            "a target gets calls again, as its time is up",
                        );
                    }
                    until => {
                        next = [next, until].into_iter().flatten().min();
                        still_out.insert(place, until);
                    }
                }
            }
        }
        self.out = still_out;
        if is_stirred {
            upstream.stirred.notify_one();
        }
        next
    }
}

fn log_change(upstream: &CheckedUpstream, position: usize, address: SocketAddr, what: &str) {
    let target = &upstream.targets[position];
    tracing::info!(upstream = upstream.name, target = target.host, port = target.port, %address, "{what}");
}

fn log_unhealthy(upstream: &CheckedUpstream, position: usize, address: SocketAddr, health: Health) {
    let target = &upstream.targets[position];
    tracing::warn!(
        upstream = upstream.name,
        target = target.host,
        port = target.port,
        %address,
        http_failures = health.http_failures,
        tcp_failures = health.tcp_failures,
        timeouts = health.timeouts,
        by_hand = health.is_held,
        "a target is unhealthy"
    );
}
