//! What outlives snapshots: the states of targets, so that a reload forgets neither loads nor health, and compiled
//! regular expressions, so that it does not pay for them again.

use crate::health::TargetHealth;
use crate::table::PatternCache;
use crate::tls::{ClientTls, ServerTlsState};
use crate::traffic::HedgeState;
use crate::upstream::TargetState;
use crate::weak_map::WeakMap;
use rustls::RootCertStore;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weir_flow::overload::{AdaptiveLimit, OverloadRules};
use weir_flow::retry_budget::RetryBudget;
use weir_model::UpstreamTls;

/// Handed to every compile of a process. Holds nothing alive that no snapshot uses any more.
#[derive(Default)]
pub struct PersistentState {
    /// By upstream and target (`host:port`).
    targets: WeakMap<(String, String), TargetState>,
    /// By upstream and target, of those that are checked.
    health: WeakMap<(String, String), TargetHealth>,
    /// By upstream, of those that have one.
    budgets: WeakMap<String, RetryBudget>,
    /// By upstream, of those that bound their calls in flight.
    limits: WeakMap<String, AdaptiveLimit>,
    /// By upstream, of those whose slow calls are copied.
    hedges: WeakMap<String, HedgeState>,
    server_tls: ServerTlsState,
    clients: WeakMap<UpstreamTls, ClientTls>,
    /// How many ways to meet upstreams there have been.
    client_ids: AtomicU64,
    patterns: PatternCache,
    /// The authorities that are trusted if a configuration names none.
    roots: OnceLock<Arc<RootCertStore>>,
    /// The zone that the gateway is in.
    zone: OnceLock<String>,
}

impl PersistentState {
    /// The state of a target that a living snapshot uses, or a new one.
    pub(crate) fn target(&self, upstream: &str, target: &str) -> Arc<TargetState> {
        let key = (upstream.to_owned(), target.to_owned());
        self.targets.find_or_make(key, TargetState::default)
    }

    /// The health of a target that a living snapshot checks, or a new one. `address` is the target's, if it is not a
    /// name.
    pub(crate) fn health(
        &self,
        upstream: &str,
        target: &str,
        address: Option<SocketAddr>,
    ) -> Arc<TargetHealth> {
        let key = (upstream.to_owned(), target.to_owned());
        self.health.find_or_make(key, || TargetHealth::new(address))
    }

    /// The retry budget of an upstream that a living snapshot uses, or a new one.
    pub(crate) fn budget(&self, upstream: &str) -> Arc<RetryBudget> {
        self.budgets
            .find_or_make(upstream.to_owned(), RetryBudget::default)
    }

    /// The limit of calls in flight of an upstream that a living snapshot uses, or a new one.
    pub(crate) fn limit(&self, upstream: &str, rules: &OverloadRules) -> Arc<AdaptiveLimit> {
        self.limits
            .find_or_make(upstream.to_owned(), || AdaptiveLimit::new(rules))
    }

    /// What is known of the calls of an upstream whose slow ones are copied.
    pub(crate) fn hedge(&self, upstream: &str) -> Arc<HedgeState> {
        self.hedges.find_or_make(upstream.to_owned(), HedgeState::default)
    }

    /// The gateway is in this zone; of several calls the first counts.
    pub fn set_zone(&self, zone: String) {
        let _known = self.zone.set(zone);
    }

    /// The zone that the gateway is in.
    pub(crate) fn zone(&self) -> Option<&str> {
        self.zone.get().map(String::as_str)
    }

    /// Trusts these authorities if a configuration names none; only the first call has an effect.
    pub fn trust(&self, roots: RootCertStore) {
        let _known = self.roots.set(Arc::new(roots));
    }

    /// The authorities that are trusted if a configuration names none.
    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(self.roots.get_or_init(|| Arc::new(RootCertStore::empty())))
    }

    /// What clients are shown.
    pub(crate) fn server_tls(&self) -> &ServerTlsState {
        &self.server_tls
    }

    /// How upstreams are met as a living snapshot has made it ready, or as `build` does with a new number for it.
    pub(crate) fn client<E>(
        &self,
        tls: &UpstreamTls,
        build: impl FnOnce(u64) -> Result<ClientTls, E>,
    ) -> Result<Arc<ClientTls>, E> {
        self.clients
            .find_or_build(tls, || build(self.client_ids.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// Path patterns, by the text of their expressions.
    pub(crate) fn patterns(&self) -> &PatternCache {
        &self.patterns
    }

    /// Forgets what no snapshot uses any more.
    pub(crate) fn prune(&self) {
        self.targets.prune();
        self.health.prune();
        self.budgets.prune();
        self.limits.prune();
        self.hedges.prune();
        self.server_tls.prune();
        self.clients.prune();
        self.patterns.prune();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_targets_are_found_by_upstream_and_target() {
        let persistent = PersistentState::default();
        let target = persistent.target("u", "t:1");
        persistent.prune();
        assert!(Arc::ptr_eq(&persistent.target("u", "t:1"), &target));
        assert!(!Arc::ptr_eq(&persistent.target("v", "t:1"), &target));
    }
}
