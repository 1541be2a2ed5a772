//! Health of targets: the checks of an upstream made ready, and what is known of each address of a target.

use crate::tls::ClientTls;
use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_flow::health::{HealthCell, HealthState, Rules, Signal};
use weir_model::{ActiveChecks, NoneHealthy};

/// Most addresses of one target whose health is remembered.
const MAX_ADDRESSES: usize = 64;

/// How the health of an upstream's targets is found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checks {
    /// What is probed, when, and how.
    pub active: Option<ActiveChecks>,
    /// The TLS settings of probes, if they use TLS.
    pub tls: Option<Arc<ClientTls>>,
    /// How probes are read.
    pub probe_rules: Rules,
    /// How answers to calls are read.
    pub call_rules: Rules,
    /// Milliseconds after which an unhealthy target gets calls again without being found healthy; 0: never; `None`:
    /// the gateway's usual time, unless probes can find it healthy.
    pub ejection_ms: Option<u64>,
    /// Percent of the weight that must be healthy; 0: no bound.
    pub min_healthy_percent: u8,
    /// What happens to calls while no target is healthy.
    pub when_none_healthy: NoneHealthy,
    /// The targets' health is that of another upstream, which probes them.
    pub is_shared: bool,
}

impl Checks {
    /// Whether probes can find an unhealthy target healthy.
    pub fn can_recover(&self) -> bool {
        let probes = self
            .active
            .as_ref()
            .is_some_and(|active| active.unhealthy.interval_ms > 0);
        probes && self.probe_rules.thresholds.successes > 0
    }
}

/// What is known of the health of a target, shared by all workers and by the snapshots in which it stands.
#[derive(Debug)]
pub struct TargetHealth {
    /// The one of a target that is an address; those that a name was resolved to.
    addresses: ArcSwap<Vec<Arc<AddressHealth>>>,
    is_unresolved: AtomicBool,
}

/// What is known of the health of an address.
#[derive(Debug)]
pub struct AddressHealth {
    /// The address.
    pub address: SocketAddr,
    /// Its health.
    pub cell: HealthCell,
}

impl AddressHealth {
    fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            address,
            cell: HealthCell::default(),
        })
    }
}

impl TargetHealth {
    /// The health of a target of which nothing is known yet.
    pub(crate) fn new(address: Option<SocketAddr>) -> Self {
        let addresses = address.into_iter().map(AddressHealth::new).collect();
        Self {
            addresses: ArcSwap::from_pointee(addresses),
            is_unresolved: AtomicBool::new(false),
        }
    }

    /// All addresses that are known.
    pub fn addresses(&self) -> Arc<Vec<Arc<AddressHealth>>> {
        self.addresses.load_full()
    }

    /// Whether calls may go to the target: to one of its addresses, or to one that is not known yet.
    #[inline]
    pub fn is_usable(&self) -> bool {
        let addresses = self.addresses.load();
        addresses.is_empty() || addresses.iter().any(|known| known.cell.is_usable())
    }

    /// Whether calls may go to this address.
    pub fn allows(&self, address: SocketAddr) -> bool {
        let addresses = self.addresses.load();
        let known = addresses.iter().find(|known| known.address == address);
        known.is_none_or(|known| known.cell.is_usable())
    }

    /// Records the result of a call to this address. Returns the new state if the address became usable or unusable.
    pub fn observe(&self, address: SocketAddr, signal: Signal, rules: &Rules) -> Option<HealthState> {
        let addresses = self.addresses.load();
        if let Some(known) = addresses.iter().find(|known| known.address == address) {
            return known.cell.observe(signal, &rules.thresholds);
        }
        drop(addresses);
        // Nothing needs to be remembered of an address of which nothing bad is known.
        if signal == Signal::Success {
            return None;
        }
        self.learn(address)?.cell.observe(signal, &rules.thresholds)
    }

    /// The health of this address, from now on known; `None` when there are too many.
    fn learn(&self, address: SocketAddr) -> Option<Arc<AddressHealth>> {
        let fresh = AddressHealth::new(address);
        self.addresses.rcu(|known| {
            let mut all = Vec::clone(known);
            if all.len() < MAX_ADDRESSES && !all.iter().any(|it| it.address == address) {
                all.push(Arc::clone(&fresh));
            }
            all
        });
        let all = self.addresses.load();
        all.iter().find(|it| it.address == address).cloned()
    }

    /// Knows these addresses from now on, as a name was resolved to them, and no others. What is known of those that
    /// stay is kept.
    pub fn resolved_to(&self, addresses: &[SocketAddr]) {
        self.is_unresolved.store(false, Ordering::Relaxed);
        let known = self.addresses.load();
        let is_same = known.len() == addresses.len()
            && known
                .iter()
                .zip(addresses)
                .all(|(known, address)| known.address == *address);
        drop(known);
        if is_same {
            return;
        }
        self.addresses.rcu(|known| {
            let of = |address: &SocketAddr| {
                let kept = known.iter().find(|it| it.address == *address);
                kept.map_or_else(|| AddressHealth::new(*address), Arc::clone)
            };
            addresses.iter().take(MAX_ADDRESSES).map(of).collect::<Vec<_>>()
        });
    }

    /// Notes that the target's name could not be resolved. Its addresses stay what they were.
    pub fn note_unresolved(&self) {
        self.is_unresolved.store(true, Ordering::Relaxed);
    }

    /// Whether the target's name could not be resolved when that was last tried.
    pub fn is_unresolved(&self) -> bool {
        self.is_unresolved.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_flow::health::{Health, Thresholds};

    fn address(last: u8) -> SocketAddr {
        ([127, 0, 0, last], 80).into()
    }

    const RULES: Rules = Rules {
        healthy: weir_flow::health::StatusSet::NONE,
        unhealthy: weir_flow::health::StatusSet::NONE,
        thresholds: Thresholds {
            successes: 1,
            http_failures: 1,
            tcp_failures: 1,
            timeouts: 1,
        },
    };

    #[test]
    fn a_name_is_usable_while_one_of_its_addresses_is() {
        let health = TargetHealth::new(None);
        assert!(health.is_usable() && health.allows(address(1)));
        assert_eq!(health.observe(address(1), Signal::Success, &RULES), None);
        assert!(health.addresses().is_empty(), "good news are no news");
        let state = health.observe(address(1), Signal::TcpFailure, &RULES);
        assert_eq!(state, Some(HealthState::Unhealthy));
        assert!(!health.is_usable() && !health.allows(address(1)) && health.allows(address(2)));
        health.resolved_to(&[address(1), address(2)]);
        assert!(
            health.is_usable() && !health.allows(address(1)),
            "what is known is kept"
        );
        health.resolved_to(&[address(2)]);
        assert!(health.allows(address(1)), "an address that is gone is forgotten");
        health.note_unresolved();
        assert!(health.is_unresolved() && health.addresses().len() == 1);
    }

    #[test]
    fn addresses_are_bounded() {
        let health = TargetHealth::new(Some(address(1)));
        for last in 0..=255 {
            health.observe(address(last), Signal::TcpFailure, &RULES);
        }
        assert_eq!(health.addresses().len(), MAX_ADDRESSES);
        let many: Vec<_> = (0..=255).map(address).collect();
        health.resolved_to(&many);
        assert_eq!(health.addresses().len(), MAX_ADDRESSES);
        assert!(!health.allows(address(1)));
        health.addresses()[1].cell.set(Health::HEALTHY);
        assert!(health.allows(address(1)));
    }
}
