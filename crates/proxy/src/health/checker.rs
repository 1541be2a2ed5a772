//! The checks of one upstream at work: looks after its names, and probes its addresses when it is time.

use super::probe::probe;
use crate::dns::Resolver;
use crate::shared::Shared;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use weir_flow::health::Signal;
use weir_model::ActiveChecks;
use weir_snapshot::{AddressHealth, Checks, Target, TargetHealth, Upstream};

/// How often names are looked after. Their answers are kept for as long as their records may be.
const NAMES_EVERY: Duration = Duration::from_secs(1);
/// A first probe waits for no longer than this, so that a gateway that starts soon knows what is there.
const MAX_FIRST_WAIT_MS: u64 = 500;

/// A checked upstream.
pub(super) struct CheckedUpstream {
    pub name: String,
    pub checks: Arc<Checks>,
    pub srv: bool,
    pub targets: Vec<CheckedTarget>,
    /// Wakes the checks when an address has come, gone, or changed its health.
    pub stirred: Notify,
}

/// A target of a checked upstream.
pub(super) struct CheckedTarget {
    pub host: String,
    pub port: u16,
    pub is_name: bool,
    pub host_header: Vec<u8>,
    pub health: Arc<TargetHealth>,
}

impl CheckedUpstream {
    /// The upstream, if it is checked.
    pub(super) fn of(upstream: &Upstream) -> Option<Self> {
        let target = |target: &Target| {
            Some(CheckedTarget {
                host: target.host.clone(),
                port: target.port,
                is_name: target.address.is_none(),
                host_header: target.host_header.clone(),
                health: Arc::clone(target.health.as_ref()?),
            })
        };
        Some(Self {
            name: upstream.name.clone(),
            checks: Arc::clone(upstream.checks.as_ref()?),
            srv: upstream.srv,
            targets: upstream.targets.iter().filter_map(target).collect(),
            stirred: Notify::new(),
        })
    }

    /// Whether an upstream of another snapshot is to be checked in just the same way.
    pub(super) fn is_like(&self, other: &Upstream) -> bool {
        let is_same = |(own, other): (&CheckedTarget, &Target)| {
            let has_same_health = other
                .health
                .as_ref()
                .is_some_and(|health| Arc::ptr_eq(health, &own.health));
            has_same_health && own.host_header == other.host_header
        };
        other.checks.as_ref() == Some(&self.checks)
            && self.srv == other.srv
            && self.targets.len() == other.targets.len()
            && self.targets.iter().zip(&other.targets).all(is_same)
    }

    /// Whether there is anything to do but to wait for what calls show.
    pub(super) fn needs_work(&self) -> bool {
        self.checks.active.is_some() || self.targets.iter().any(|target| target.is_name)
    }

    async fn look_after_names(&self, resolver: &Rc<Resolver>) {
        for target in self.targets.iter().filter(|target| target.is_name) {
            let found = resolver
                .all(&target.host, target.port, self.srv, Instant::now())
                .await;
            match found {
                Ok(addresses) => target.health.resolved_to(&addresses),
                Err(_) => target.health.note_unresolved(),
            }
        }
        self.stirred.notify_one();
    }
}

/// Checks an upstream until the task is ended.
pub(super) async fn check(
    upstream: Rc<CheckedUpstream>,
    resolver: Rc<Resolver>,
    shared: Arc<Shared>,
    seed: u64,
) {
    let names = async {
        if upstream.targets.iter().any(|target| target.is_name) {
            loop {
                upstream.look_after_names(&resolver).await;
                tokio::time::sleep(NAMES_EVERY).await;
            }
        }
    };
    let probes = async {
        if let Some(active) = &upstream.checks.active {
            Prober::new(&upstream, active, &shared, seed).run().await;
        }
    };
    tokio::join!(names, probes);
}

/// An address that is probed.
struct Slot {
    health: Arc<AddressHealth>,
    target: usize,
    /// When the last probe began; or when, one interval later, the first one is to.
    last: Instant,
    /// Spreads probes of many targets and gateways: percent of the interval, around 100.
    stretch: u32,
    is_running: bool,
}

struct Prober<'c> {
    upstream: &'c Rc<CheckedUpstream>,
    active: &'c ActiveChecks,
    shared: &'c Arc<Shared>,
    slots: HashMap<(usize, SocketAddr), Slot>,
    running: JoinSet<((usize, SocketAddr), Option<Signal>)>,
    random: u64,
}

impl<'c> Prober<'c> {
    fn new(
        upstream: &'c Rc<CheckedUpstream>,
        active: &'c ActiveChecks,
        shared: &'c Arc<Shared>,
        seed: u64,
    ) -> Self {
        Self {
            upstream,
            active,
            shared,
            slots: HashMap::new(),
            running: JoinSet::new(),
            random: seed,
        }
    }

    async fn run(mut self) {
        loop {
            self.take_in_addresses();
            let next = self.start_due(Instant::now());
            let sleeping = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(done) = self.running.join_next() => {
                    if let Ok((place, signal)) = done {
                        self.note(place, signal);
                    }
                }
                () = sleeping => {}
                () = self.upstream.stirred.notified() => {}
            }
        }
    }

    /// Knows the addresses that the targets have now.
    fn take_in_addresses(&mut self) {
        let mut known = std::mem::take(&mut self.slots);
        for (target, checked) in self.upstream.targets.iter().enumerate() {
            for health in checked.health.addresses().iter() {
                let place = (target, health.address);
                let kept = known
                    .remove(&place)
                    .filter(|slot| Arc::ptr_eq(&slot.health, health));
                let slot = kept.unwrap_or_else(|| self.new_slot(target, health));
                self.slots.insert(place, slot);
            }
        }
    }

    fn new_slot(&mut self, target: usize, health: &Arc<AddressHealth>) -> Slot {
        let interval = self.interval(health).unwrap_or_default();
        let longest = u64::try_from(interval.as_millis())
            .unwrap_or(u64::MAX)
            .min(MAX_FIRST_WAIT_MS);
        let wait = Duration::from_millis(self.random_below(longest + 1));
        let now = Instant::now();
        Slot {
            health: Arc::clone(health),
            target,
            last: (now + wait).checked_sub(interval).unwrap_or(now),
            stretch: 100,
            is_running: false,
        }
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        // An odd constant with well-spread bits; the high half of its multiples is even enough to spread probes.
        self.random = self
            .random
            .wrapping_mul(0x2545_f491_4f6c_dd1d)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        (self.random >> 32) % bound.max(1)
    }

    /// How often an address is probed as it stands now; `None`: it is not.
    fn interval(&self, health: &AddressHealth) -> Option<Duration> {
        let millis = match health.cell.is_usable() {
            true => self.active.healthy.interval_ms,
            false => self.active.unhealthy.interval_ms,
        };
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Starts the probes whose time has come, and says when the next one's comes.
    fn start_due(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let places: Vec<_> = self.slots.keys().copied().collect();
        for place in places {
            let Some(slot) = self.slots.get(&place).filter(|slot| !slot.is_running) else {
                continue;
            };
            let Some(interval) = self.interval(&slot.health) else {
                continue;
            };
            let due = slot.last + interval * slot.stretch / 100;
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
            } else if self.running.len() < self.active.concurrency as usize {
                self.start(place, now);
            }
            // One whose time has come and that has to wait is started when another one is done.
        }
        next
    }

    fn start(&mut self, place: (usize, SocketAddr), now: Instant) {
        let stretch = 90 + self.random_below(21) as u32;
        if let Some(slot) = self.slots.get_mut(&place) {
            slot.last = now;
            slot.stretch = stretch;
            slot.is_running = true;
            let upstream = Rc::clone(self.upstream);
            self.running.spawn_local(async move {
                let host = &upstream.targets[place.0].host_header;
                let signal = probe(&upstream.checks, place.1, host).await;
                (place, signal)
            });
        }
    }

    fn note(&mut self, place: (usize, SocketAddr), signal: Option<Signal>) {
        let Some(slot) = self.slots.get_mut(&place) else {
            return;
        };
        slot.is_running = false;
        let Some(signal) = signal else { return };
        let thresholds = &self.upstream.checks.probe_rules.thresholds;
        if slot.health.cell.observe(signal, thresholds).is_some() {
            tracing::debug!(
                upstream = self.upstream.name,
                target = self.upstream.targets[slot.target].host,
                address = %place.1,
                ?signal,
                "a probe has changed a target's health"
            );
            self.shared.health.note_change();
        }
    }
}
