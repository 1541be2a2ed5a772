//! What outlives snapshots: the states of targets, so that a reload forgets neither loads nor health, and compiled
//! regular expressions, so that it does not pay for them again.

use crate::health::TargetHealth;
use crate::table::RoutePattern;
use crate::tls::{ClientTls, ServerIdentity};
use crate::traffic::HedgeState;
use crate::upstream::TargetState;
use rustls::RootCertStore;
use rustls::server::ProducesTickets;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use weir_flow::overload::{AdaptiveLimit, OverloadRules};
use weir_flow::retry_budget::RetryBudget;
use weir_model::{Certificate, UpstreamTls};

/// Handed to every compile of a process. Holds nothing alive that no snapshot uses any more.
#[derive(Default)]
pub struct PersistentState {
    kept: Mutex<CarriedItem>,
    /// The authorities that are trusted where a configuration names none.
    roots: OnceLock<Arc<RootCertStore>>,
    tickets: OnceLock<Arc<dyn ProducesTickets>>,
    /// The zone that the gateway is in.
    zone: OnceLock<String>,
}

#[derive(Default)]
struct CarriedItem {
    /// By upstream and target (`host:port`).
    targets: HashMap<(String, String), Weak<TargetState>>,
    /// By upstream and target, of those that are checked.
    health: HashMap<(String, String), Weak<TargetHealth>>,
    /// By upstream, of those that have one.
    budgets: HashMap<String, Weak<RetryBudget>>,
    /// By upstream, of those that bound their calls in flight.
    limits: HashMap<String, Weak<AdaptiveLimit>>,
    /// By upstream, of those whose slow calls are copied.
    hedges: HashMap<String, Weak<HedgeState>>,
    presented: HashMap<Certificate, Weak<ServerIdentity>>,
    /// The same for names whose clients are asked for a certificate by a plugin.
    presented_asking: HashMap<Certificate, Weak<ServerIdentity>>,
    clients: HashMap<UpstreamTls, Weak<ClientTls>>,
    /// How many ways to meet upstreams there have been.
    client_ids: u64,
    /// By the text of the expression.
    regexes: HashMap<String, Weak<RoutePattern>>,
}

impl CarriedItem {
    fn presented(&mut self, asks: bool) -> &mut HashMap<Certificate, Weak<ServerIdentity>> {
        match asks {
            true => &mut self.presented_asking,
            false => &mut self.presented,
        }
    }
}

impl PersistentState {
    fn kept(&self) -> MutexGuard<'_, CarriedItem> {
        // A panic under the lock leaves whole entries only, so the maps stay good.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a target that a living snapshot uses, or a new one.
    pub(crate) fn target(&self, upstream: &str, target: &str) -> Arc<TargetState> {
        let mut kept = self.kept();
        let slot = kept
            .targets
            .entry((upstream.to_owned(), target.to_owned()))
            .or_default();
        slot.upgrade().unwrap_or_else(|| {
            let state = Arc::new(TargetState::default());
            *slot = Arc::downgrade(&state);
            state
        })
    }

    /// The health of a target that a living snapshot checks, or a new one. `address` is the target's, where it is not
    /// a name.
    pub(crate) fn health(
        &self,
        upstream: &str,
        target: &str,
        address: Option<SocketAddr>,
    ) -> Arc<TargetHealth> {
        let mut kept = self.kept();
        let slot = kept
            .health
            .entry((upstream.to_owned(), target.to_owned()))
            .or_default();
        slot.upgrade().unwrap_or_else(|| {
            let health = Arc::new(TargetHealth::new(address));
            *slot = Arc::downgrade(&health);
            health
        })
    }

    /// The retry budget of an upstream that a living snapshot uses, or a new one.
    pub(crate) fn budget(&self, upstream: &str) -> Arc<RetryBudget> {
        let mut kept = self.kept();
        let slot = kept.budgets.entry(upstream.to_owned()).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let budget = Arc::new(RetryBudget::default());
            *slot = Arc::downgrade(&budget);
            budget
        })
    }

    /// The limit of calls in flight of an upstream that a living snapshot uses, or a new one.
    pub(crate) fn limit(&self, upstream: &str, rules: &OverloadRules) -> Arc<AdaptiveLimit> {
        let mut kept = self.kept();
        let slot = kept.limits.entry(upstream.to_owned()).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let limit = Arc::new(AdaptiveLimit::new(rules));
            *slot = Arc::downgrade(&limit);
            limit
        })
    }

    /// What is known of the calls of an upstream whose slow ones are copied.
    pub(crate) fn hedge(&self, upstream: &str) -> Arc<HedgeState> {
        let mut kept = self.kept();
        let slot = kept.hedges.entry(upstream.to_owned()).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let hedge = Arc::new(HedgeState::default());
            *slot = Arc::downgrade(&hedge);
            hedge
        })
    }

    /// The gateway is in this zone; of several calls the first counts.
    pub fn set_zone(&self, zone: String) {
        let _known = self.zone.set(zone);
    }

    /// The zone that the gateway is in.
    pub(crate) fn zone(&self) -> Option<&str> {
        self.zone.get().map(String::as_str)
    }

    /// Trusts these authorities where a configuration names none; of several calls the first counts.
    pub fn trust(&self, roots: RootCertStore) {
        let _known = self.roots.set(Arc::new(roots));
    }

    /// The authorities that are trusted where a configuration names none.
    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(self.roots.get_or_init(|| Arc::new(RootCertStore::empty())))
    }

    /// What makes and reads session tickets, the same for the life of the process.
    pub(crate) fn tickets<E>(
        &self,
        make: impl FnOnce() -> Result<Arc<dyn ProducesTickets>, E>,
    ) -> Result<Arc<dyn ProducesTickets>, E> {
        if let Some(known) = self.tickets.get() {
            return Ok(Arc::clone(known));
        }
        let made = make()?;
        Ok(Arc::clone(self.tickets.get_or_init(|| made)))
    }

    /// What clients are shown as a living snapshot has made it ready, or as `build` does. `asks`: whether a plugin asks
    /// them for a certificate.
    pub(crate) fn presented<E>(
        &self,
        certificate: &Certificate,
        asks: bool,
        build: impl FnOnce() -> Result<ServerIdentity, E>,
    ) -> Result<Arc<ServerIdentity>, E> {
        let known = self
            .kept()
            .presented(asks)
            .get(certificate)
            .and_then(Weak::upgrade);
        if let Some(known) = known {
            return Ok(known);
        }
        let built = Arc::new(build()?);
        let weak = Arc::downgrade(&built);
        self.kept().presented(asks).insert(certificate.clone(), weak);
        Ok(built)
    }

    /// How upstreams are met as a living snapshot has made it ready, or as `build` does with a new number for it.
    pub(crate) fn client<E>(
        &self,
        tls: &UpstreamTls,
        build: impl FnOnce(u64) -> Result<ClientTls, E>,
    ) -> Result<Arc<ClientTls>, E> {
        let id = {
            let mut kept = self.kept();
            if let Some(known) = kept.clients.get(tls).and_then(Weak::upgrade) {
                return Ok(known);
            }
            kept.client_ids += 1;
            kept.client_ids
        };
        let built = Arc::new(build(id)?);
        let weak = Arc::downgrade(&built);
        self.kept().clients.insert(tls.clone(), weak);
        Ok(built)
    }

    /// The expression as a living snapshot compiled it, or as `build` does.
    pub(crate) fn regex<E>(
        &self,
        text: &str,
        build: impl FnOnce() -> Result<RoutePattern, E>,
    ) -> Result<Arc<RoutePattern>, E> {
        if let Some(known) = self.kept().regexes.get(text).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let built = Arc::new(build()?);
        self.kept()
            .regexes
            .insert(text.to_owned(), Arc::downgrade(&built));
        Ok(built)
    }

    /// Forgets what no snapshot uses any more.
    pub(crate) fn prune(&self) {
        let mut kept = self.kept();
        kept.targets.retain(|_, state| state.strong_count() > 0);
        kept.health.retain(|_, health| health.strong_count() > 0);
        kept.budgets.retain(|_, budget| budget.strong_count() > 0);
        kept.limits.retain(|_, limit| limit.strong_count() > 0);
        kept.hedges.retain(|_, hedge| hedge.strong_count() > 0);
        kept.presented.retain(|_, presented| presented.strong_count() > 0);
        kept.presented_asking
            .retain(|_, presented| presented.strong_count() > 0);
        kept.clients.retain(|_, client| client.strong_count() > 0);
        kept.regexes.retain(|_, regex| regex.strong_count() > 0);
        if kept.targets.capacity() > 4 * kept.targets.len() {
            kept.targets.shrink_to_fit();
        }
        if kept.regexes.capacity() > 4 * kept.regexes.len() {
            kept.regexes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_used_is_kept() {
        let carry = PersistentState::default();
        let pattern = || Ok::<_, ()>(RoutePattern::Template(Box::default()));
        let regex = carry.regex("a", pattern).expect("built");
        let target = carry.target("u", "t:1");
        for number in 0..100 {
            drop(carry.regex(&number.to_string(), pattern));
            drop(carry.target("u", &number.to_string()));
        }
        carry.prune();
        assert_eq!(carry.kept().targets.len(), 1);
        assert_eq!(carry.kept().regexes.len(), 1);
        assert!(Arc::ptr_eq(&carry.regex("a", pattern).expect("known"), &regex));
        assert!(Arc::ptr_eq(&carry.target("u", "t:1"), &target));
        assert!(!Arc::ptr_eq(&carry.target("v", "t:1"), &target));
    }
}
