//! The addresses of a name, and whose turn it is.

use super::Endpoint;
use std::net::SocketAddr;
use std::time::Instant;
use weir_flow::balancer::{Balancer, BalancerState, BalancingAlgorithm, Load, TargetSpec};

/// The addresses of a name.
pub(super) struct ResolvedName {
    endpoints: Vec<Endpoint>,
    balancer: Balancer,
    state: BalancerState,
    good_until: Instant,
    has_failed: bool,
}

/// How an answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordState {
    /// Its time is not up.
    pub is_current: bool,
    /// It can be used.
    pub has_addresses: bool,
}

impl ResolvedName {
    pub(super) fn new(endpoints: Vec<Endpoint>, good_until: Instant, seed: u64) -> Self {
        let specs: Vec<_> = endpoints
            .iter()
            .map(|endpoint| TargetSpec {
                id: String::new(),
                weight: endpoint.weight,
                priority: endpoint.priority,
            })
            .collect();
        let balancer = Balancer::new(&specs, BalancingAlgorithm::RoundRobin, 0);
        Self {
            state: balancer.new_state(seed),
            balancer,
            endpoints,
            good_until,
            has_failed: false,
        }
    }

    pub(super) fn state(&self, now: Instant) -> RecordState {
        RecordState {
            is_current: now < self.good_until,
            has_addresses: !self.endpoints.is_empty(),
        }
    }

    /// Whether it was made of the same records, in whatever order they came.
    pub(super) fn is_of(&self, endpoints: &[Endpoint]) -> bool {
        self.endpoints == endpoints
    }

    /// Serves on until then.
    pub(super) fn renew(&mut self, good_until: Instant) {
        self.good_until = good_until;
        self.has_failed = false;
    }

    /// Serves on, though it could not be renewed.
    pub(super) fn note_failure(&mut self, good_until: Instant) {
        self.good_until = good_until;
        self.has_failed = true;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(super) fn ends_by(&self, then: Instant) -> bool {
        self.good_until <= then
    }

    pub(super) fn addresses(&self, port: u16) -> impl Iterator<Item = SocketAddr> {
        let address = move |endpoint: &Endpoint| SocketAddr::new(endpoint.ip, endpoint.port.unwrap_or(port));
        self.endpoints.iter().map(address)
    }

    /// The next address: one that is allowed and was not just tried, or else one that is allowed, or else any.
    pub(super) fn pick(
        &mut self,
        port: u16,
        tried: Option<SocketAddr>,
        allows: impl Fn(SocketAddr) -> bool,
    ) -> Option<SocketAddr> {
        let Self {
            endpoints,
            balancer,
            state,
            ..
        } = self;
        let address = |index: usize| {
            let endpoint = &endpoints[index];
            SocketAddr::new(endpoint.ip, endpoint.port.unwrap_or(port))
        };
        let load = |_| Load::default();
        balancer
            .pick(state, None, load, |index| {
                let address = address(index);
                Some(address) != tried && allows(address)
            })
            .or_else(|| balancer.pick(state, None, load, |index| allows(address(index))))
            .or_else(|| balancer.pick(state, None, load, |_| true))
            .map(address)
    }
}
