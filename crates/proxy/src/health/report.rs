//! Reports of the health of targets, for Admin APIs and metrics; and how a person puts a target in or out.

use super::{healthy_percent, is_enough_healthy};
use crate::shared::Shared;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use weir_flow::health::Health;
use weir_snapshot::{Snapshot, Target, Upstream};
use weir_telemetry::metrics::{TargetSample, TargetSource};

/// How a target, an address of it, or an upstream as a whole stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It gets calls.
    Healthy,
    /// It gets none while another is healthy.
    Unhealthy,
    /// Its name cannot be resolved.
    DnsError,
    /// It gets calls; its health is not checked.
    ChecksOff,
}

/// How all targets stand.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthReport {
    /// In the order of the configuration; those without checks too.
    pub upstreams: Vec<UpstreamReport>,
}

/// How the targets of an upstream stand.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamReport {
    /// The upstream's name.
    pub name: String,
    /// Of the whole upstream: unhealthy, when too little of its weight is healthy.
    pub status: Status,
    /// Percent of the weight that is healthy.
    pub healthy_percent: f64,
    /// In the order of the configuration.
    pub targets: Vec<TargetReport>,
}

/// How a target stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetReport {
    /// The address (IPv6 without brackets) or name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its share of the calls.
    pub weight: u32,
    /// Of all its addresses: unhealthy, when all are.
    pub status: Status,
    /// The addresses that are known: for a target without checks only the one that it is itself.
    pub addresses: Vec<AddressReport>,
}

/// How an address stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressReport {
    /// The address.
    pub address: SocketAddr,
    /// State.
    pub status: Status,
    /// Its health, and its counts.
    pub health: Health,
}

impl HealthReport {
    /// How the targets of a snapshot stand now.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            upstreams: snapshot
                .upstreams
                .iter()
                .map(|it| UpstreamReport::of(it))
                .collect(),
        }
    }
}

impl UpstreamReport {
    /// How the targets of the upstream of this name stand now.
    pub(crate) fn find(snapshot: &Snapshot, name: &str) -> Option<Self> {
        snapshot
            .upstreams
            .iter()
            .find(|upstream| upstream.name == name)
            .map(|it| Self::of(it))
    }

    fn of(upstream: &Upstream) -> Self {
        let targets: Vec<_> = upstream.targets.iter().map(TargetReport::of).collect();
        let percent = healthy_percent(upstream);
        let status = match &upstream.checks {
            None => Status::ChecksOff,
            Some(checks) if is_enough_healthy(upstream, checks) && percent > 0.0 => Status::Healthy,
            Some(_) => Status::Unhealthy,
        };
        Self {
            name: upstream.name.clone(),
            status,
            healthy_percent: percent,
            targets,
        }
    }
}

impl TargetReport {
    fn of(target: &Target) -> Self {
        let mut addresses = Vec::new();
        let status = match &target.health {
            None => {
                addresses.extend(target.address.map(|address| AddressReport {
                    address,
                    status: Status::ChecksOff,
                    health: Health::HEALTHY,
                }));
                Status::ChecksOff
            }
            Some(health) => {
                addresses.extend(health.addresses().iter().map(|known| {
                    let health = known.cell.get();
                    AddressReport {
                        address: known.address,
                        status: status_of(health.state.is_usable()),
                        health,
                    }
                }));
                match health.is_unresolved() {
                    true => Status::DnsError,
                    false => status_of(health.is_usable()),
                }
            }
        };
        Self {
            host: target.host.clone(),
            port: target.port,
            weight: target.weight,
            status,
            addresses,
        }
    }
}

fn status_of(is_usable: bool) -> Status {
    match is_usable {
        true => Status::Healthy,
        false => Status::Unhealthy,
    }
}

/// Which target, or which of its addresses, a person means.
#[derive(Debug, Clone, Copy)]
pub struct HealthSelector<'w> {
    /// The upstream's name.
    pub upstream: &'w str,
    /// The target's address (IPv6 without brackets) or name.
    pub host: &'w str,
    /// The target's port.
    pub port: u16,
    /// One of its addresses; `None`: all.
    pub address: Option<SocketAddr>,
}

/// Why a target was not put in or out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetHealthError {
    /// There is no such upstream.
    #[error("there is no such upstream")]
    NoUpstream,
    /// The upstream has no such target, or the target no such address.
    #[error("there is no such target")]
    NoTarget,
    /// The target's health is not checked, so it cannot be put out either.
    #[error("the upstream has no health checks")]
    ChecksOff,
}

/// Puts a target in or out.
pub(crate) fn set(
    snapshot: &Snapshot,
    which: &HealthSelector<'_>,
    is_healthy: bool,
) -> Result<(), SetHealthError> {
    let mut upstreams = snapshot.upstreams.iter();
    let upstream = upstreams
        .find(|upstream| upstream.name == which.upstream)
        .ok_or(SetHealthError::NoUpstream)?;
    let mut targets = upstream.targets.iter();
    let target = targets
        .find(|target| target.port == which.port && target.host.eq_ignore_ascii_case(which.host))
        .ok_or(SetHealthError::NoTarget)?;
    let health = target.health.as_ref().ok_or(SetHealthError::ChecksOff)?;
    let addresses = health.addresses();
    let mut meant = addresses
        .iter()
        .filter(|known| which.address.is_none_or(|address| address == known.address))
        .peekable();
    if meant.peek().is_none() {
        return Err(SetHealthError::NoTarget);
    }
    for known in meant {
        known.cell.set(match is_healthy {
            true => Health::HEALTHY,
            false => Health::HELD_OUT,
        });
    }
    Ok(())
}

/// Reports the health of the checked targets to metrics. It keeps no gateway alive.
pub(crate) struct Targets(Weak<Shared>);

impl Targets {
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }
}

impl TargetSource for Targets {
    fn visit_limits(&self, visit: &mut dyn FnMut(&str, u32, u32)) {
        let Some(shared) = self.0.upgrade() else { return };
        let published = shared.published.load_full();
        for upstream in &published.snapshot.upstreams {
            let traffic = upstream.traffic.as_ref();
            if let Some(overload) = traffic.and_then(|traffic| traffic.overload.as_ref()) {
                visit(&upstream.name, overload.limit.limit(), overload.limit.inflight());
            }
        }
    }

    fn visit(&self, visit: &mut dyn FnMut(TargetSample<'_>)) {
        let Some(shared) = self.0.upgrade() else { return };
        let published = shared.published.load_full();
        for upstream in &published.snapshot.upstreams {
            let is_shared = upstream.checks.as_ref().is_some_and(|checks| checks.is_shared);
            for target in &upstream.targets {
                let Some(health) = target.health.as_ref().filter(|_| !is_shared) else {
                    continue;
                };
                for known in health.addresses().iter() {
                    visit(TargetSample {
                        upstream: &upstream.name,
                        target: &target.host,
                        address: known.address,
                        is_healthy: known.cell.is_usable(),
                    });
                }
            }
        }
    }
}
