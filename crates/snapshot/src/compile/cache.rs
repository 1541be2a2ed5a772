//! The results of the previous compile, reused if the model has not changed.
//!
//! A dialect that caches its translations passes the same shared value again, so the address of a value shows whether
//! it has changed. Its compiled form stays valid as long as everything that it depends on is the same too: a route's
//! service, the index of its upstream, and, if it has plugins, the consumers, the shared parts, and the dialect's
//! settings about plugins. **What it is not**: it does not outlive the process, and does not store errors: only valid
//! results are kept.

use super::compiled::{CompiledGatewayHeaders, CompiledRoute, CompiledService, Forwardings};
use crate::chain::{ConsumerTable, Instance};
use crate::upstream::Upstream;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weir_model::{
    self as model, ChainStep, Consumer, DialectName, Model, PluginInstance, PluginRef, UpstreamHost,
};
use weir_plugin::GatewayLog;

pub(super) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// More places than this of which nothing may be left are a reason to compile all again.
const MAX_SPARE_DESTINATIONS: usize = 64;

/// What was compiled before. Keeps the values of the model alive that it was compiled of.
#[derive(Default)]
pub struct CompileCache {
    /// Counts compiles.
    round: u64,
    pub(super) routes: Map<usize, CachedItem<model::Route, CompiledRoute>>,
    pub(super) services: Map<usize, CachedItem<model::Service, CompiledService>>,
    pub(super) upstreams: Map<usize, CachedItem<model::Upstream, Upstream>>,
    /// Upstreams of services with a `url`, by their names.
    pub(super) servers: Map<Arc<str>, (Arc<Upstream>, u64)>,
    /// Where upstreams stand in the list, so that most keep their places whichever come and go.
    stable_indices: Map<Arc<str>, u32>,
    pub(super) forwardings: Forwardings,
    pub(super) gateway_headers: CompiledGatewayHeaders,
    shared: Shared,
}

/// Something compiled, and of what.
pub(super) struct CachedItem<M, C> {
    /// Its address is the key: while it is held here, no other value has that address.
    model: Arc<M>,
    pub compiled: Arc<C>,
    round: u64,
}

/// What chains have in common.
#[derive(Default)]
struct Shared {
    rules: Vec<BuildRules>,
    consumers: Vec<Consumer>,
    plugins: Vec<PluginInstance>,
    consumer_tables: Vec<model::ConsumerTable>,
    known: SharedParts,
    /// How many destinations there were when nothing was used again.
    least_destinations: usize,
}

/// What a dialect's settings say about how its plugins are built: the dialect, whether keys may repeat, and whether consumers
/// may be missing.
type BuildRules = (DialectName, bool, bool);

/// What is known of shared parts of chains.
#[derive(Default, Clone)]
pub(super) struct SharedParts {
    /// By the place in the model and dialect.
    pub instances: HashMap<(usize, DialectName), Arc<Instance>>,
    pub tables: HashMap<(usize, DialectName), Arc<ConsumerTable>>,
    /// Where filters may send calls.
    pub destinations: Vec<(String, UpstreamHost)>,
}

impl SharedParts {
    /// What takes lines of the gateway's own log. An instance that several dialects use is built once for each, and
    /// takes them once.
    pub fn gateway_logs(&self) -> Vec<Arc<dyn GatewayLog>> {
        let taking = self.instances.iter();
        let mut taking: Vec<_> = taking
            .filter_map(|((place, _), instance)| Some((*place, instance.filter.gateway_log()?)))
            .collect();
        taking.sort_by_key(|(place, _)| *place);
        taking.dedup_by_key(|(place, _)| *place);
        taking.into_iter().map(|(_, takes)| takes).collect()
    }
}

/// The address of a shared value.
pub(super) fn address<T>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value) as usize
}

impl CompileCache {
    /// Begins a compile of this model: forgets what does not hold for it.
    pub(super) fn begin(&mut self, model: &Model) {
        self.round += 1;
        let shared = &mut self.shared;
        let rules = model.dialect_settings.iter();
        let rules: Vec<BuildRules> = rules
            .map(|it| (it.dialect, it.keys_may_repeat, it.consumers_may_be_missing))
            .collect();
        let has_other_rules = shared.rules != rules;
        shared.rules = rules;
        let has_other_callers = shared.consumers != model.consumers;
        let has_other_plugins =
            shared.plugins != model.plugins || shared.consumer_tables != model.consumer_tables;
        if has_other_callers {
            shared.consumers.clone_from(&model.consumers);
        }
        if has_other_plugins {
            shared.plugins.clone_from(&model.plugins);
            shared.consumer_tables.clone_from(&model.consumer_tables);
        }
        if has_other_rules || has_other_callers || self.has_wrong_destinations(model) {
            self.shared.known = SharedParts::default();
            self.routes.retain(|_, item| item.model.plugins.is_empty());
        } else if has_other_plugins {
            self.shared.known.instances.clear();
            self.shared.known.tables.clear();
            self.routes
                .retain(|_, item| item.model.plugins.iter().all(is_independent));
        }
    }

    /// Whether there are destinations that are gone, or many that may be used no more.
    fn has_wrong_destinations(&self, model: &Model) -> bool {
        let destinations = &self.shared.known.destinations;
        if destinations.is_empty() {
            return false;
        }
        let services: HashSet<&str> = model.services.iter().map(|it| it.name.as_str()).collect();
        destinations.len() > 2 * self.shared.least_destinations + MAX_SPARE_DESTINATIONS
            || !destinations
                .iter()
                .all(|(name, _)| services.contains(name.as_str()))
    }

    /// What is known of shared parts of chains.
    pub(super) fn known(&self) -> SharedParts {
        self.shared.known.clone()
    }

    /// Takes back what is known of shared parts of chains, with what is new.
    pub(super) fn learn(&mut self, known: SharedParts) {
        if self.shared.known.destinations.is_empty() {
            self.shared.least_destinations = known.destinations.len();
        }
        self.shared.known = known;
    }

    /// Ends a compile that went well. What was not used is forgotten.
    pub(super) fn end(&mut self, model: &Model, upstreams: &[Arc<Upstream>]) {
        let round = self.round;
        keep(&mut self.routes, model.routes.len(), round);
        keep(&mut self.services, model.services.len(), round);
        keep(&mut self.upstreams, model.upstreams.len(), round);
        if self.servers.len() + model.upstreams.len() > upstreams.len() {
            self.servers.retain(|_, (_, used)| *used == round);
        }
    }

    /// Which compile this is.
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    /// An index from 0 for each of these names. Names keep their earlier index if possible, and otherwise get one in
    /// their order.
    pub(super) fn stable_indices(&mut self, names: &[&str]) -> Vec<u32> {
        const NOWHERE: u32 = u32::MAX;
        let mut taken = vec![false; names.len()];
        let mut homeless = 0;
        let mut stable_indices: Vec<u32> = Vec::with_capacity(names.len());
        for name in names {
            let known = self.stable_indices.get(*name).map_or(NOWHERE, |place| *place);
            let is_free = taken.get(known as usize).is_some_and(|is_taken| !is_taken);
            stable_indices.push(if is_free { known } else { NOWHERE });
            match taken.get_mut(known as usize) {
                Some(is_taken) if is_free => *is_taken = true,
                _ => homeless += 1,
            }
        }
        if homeless > 0 {
            let mut free = (0..).zip(&taken).filter(|(_, is_taken)| !**is_taken);
            for (place, name) in stable_indices
                .iter_mut()
                .zip(names)
                .filter(|(place, _)| **place == NOWHERE)
            {
                // As many are free as are without a place.
                if let Some((found, _)) = free.next() {
                    *place = found;
                    self.stable_indices.insert(Arc::from(*name), found);
                }
            }
        }
        if self.stable_indices.len() > names.len() {
            let there: HashSet<&str> = names.iter().copied().collect();
            self.stable_indices.retain(|name, _| there.contains(&**name));
        }
        stable_indices
    }
}

impl<M, C> CachedItem<M, C> {
    /// Notes what was compiled of a value.
    pub(super) fn note(cache: &mut Map<usize, Self>, model: &Arc<M>, compiled: &Arc<C>, round: u64) {
        let item = Self {
            model: Arc::clone(model),
            compiled: Arc::clone(compiled),
            round,
        };
        cache.insert(address(model), item);
    }

    /// The compiled form of a value, if `holds` confirms that it is still valid.
    pub(super) fn find(
        cache: &mut Map<usize, Self>,
        model: &Arc<M>,
        round: u64,
        holds: impl FnOnce(&C) -> bool,
    ) -> Option<Arc<C>> {
        let item = cache.get_mut(&address(model))?;
        if !Arc::ptr_eq(&item.model, model) || !holds(&item.compiled) {
            return None;
        }
        item.round = round;
        Some(Arc::clone(&item.compiled))
    }
}

/// Whether a step needs nothing that chains share.
fn is_independent(step: &ChainStep) -> bool {
    step.consumer_overrides.is_empty() && !matches!(step.plugin, Some(PluginRef::Shared(_)))
}

/// Drops the items that were not used in this round.
fn keep<M, C>(cache: &mut Map<usize, CachedItem<M, C>>, used: usize, round: u64) {
    if cache.len() > used {
        cache.retain(|_, item| item.round == round);
        if cache.capacity() > 4 * cache.len().max(16) {
            cache.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_keep_their_places() {
        let mut cache = CompileCache::default();
        for (names, stable_indices) in [
            (&["a", "b", "c"][..], &[0, 1, 2][..]),
            (&["a", "n", "b", "c"], &[0, 3, 1, 2]),
            (&["n", "b", "c"], &[0, 1, 2]),
            (&["c", "b"], &[0, 1]),
            (&[], &[]),
            (&["x", "x"], &[0, 1]),
        ] {
            assert_eq!(cache.stable_indices(names), stable_indices, "{names:?}");
            assert!(cache.stable_indices.len() <= names.len().max(1), "{names:?}");
        }
    }
}
