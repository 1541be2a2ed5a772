//! Balancers: which target of an upstream gets the next call.
//!
//! A [`Balancer`] is immutable and shared; what moves (the position of the wheel, the random numbers) is in a
//! [`BalancerState`] that each worker owns, so a pick takes no lock, touches no shared cache line and allocates
//! nothing. Health, retries and the loads belong to the caller, who answers for them target by target.

mod ewma;
mod ring;
mod tier;
mod zones;

use std::cmp::Reverse;
use std::collections::BTreeMap;

pub use ewma::{EWMA_DECAY_MS, EWMA_FAILED_US, ewma_update};
pub use zones::Zones;

use crate::hash::{Random, mix};
use ring::Ring;
use tier::Tier;
use zones::ZonePlan;

/// One target as the configuration names it. A pick answers with its index in the slice given to [`Balancer::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSpec {
    /// What the target is known by: its host and port, as `10.0.0.1:8080`. It places the target on the ring of consistent
    /// hashing, so it should be unique in its upstream and stay the same over reloads and restarts.
    pub id: String,
    /// The share of calls relative to the other targets of the same priority. A target of weight 0 gets none.
    pub weight: u32,
    /// Targets of a lower priority are asked only when no target of a higher one is usable.
    pub priority: i32,
}

/// How a target is chosen among the usable ones of the highest priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BalancingAlgorithm {
    /// In turn. Over one turn of the wheel (the sum of the weights, divided by what divides them all) each target
    /// gets exactly its weight, and its calls are spread over the turn.
    RoundRobin,
    /// The target that owns the call's hash on the ring; the next on the ring when that is not usable.
    /// Calls without a hash go in turn.
    ConsistentHash,
    /// The lowest `(inflight + 1) / weight`; equals in turn.
    LeastConnections,
    /// Of two targets drawn by lot the one with the lower `latency * (inflight + 1) / weight`.
    Ewma,
}

/// How busy a target is at the moment, as the caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Calls that were sent to the target and are not finished.
    pub inflight: u32,
    /// The moving average of the latency in microseconds (see [`ewma_update`]); 0 while nothing is known: then
    /// the target is preferred while it has no call in flight, and else counts as fast as the other one. Only [`BalancingAlgorithm::Ewma`] looks at it.
    pub latency_us: f64,
    /// How much of its share the target is spared while it starts slowly, in parts of
    /// [`WHOLE`](crate::slow_start::WHOLE). Only balancers [with slow start](Balancer::with_slow_start) look at it.
    pub spared: u16,
}

/// The targets of one upstream, prepared for picking. Built once for each configuration.
#[derive(Debug)]
pub struct Balancer {
    algorithm: BalancingAlgorithm,
    seed: u64,
    /// The one target that can ever be picked, when there is but one.
    single: Option<usize>,
    /// Highest priority first; none is empty.
    tiers: Box<[Tier]>,
    has_slow_start: bool,
    zones: Option<Zones>,
}

/// What moves between two picks of one worker. Belongs to the balancer that made it.
#[derive(Debug, Clone)]
pub struct BalancerState {
    /// By tier: the position on the wheel.
    positions: Box<[u64]>,
    /// How far calls were passed on from targets that were not usable.
    detour: u64,
    random: Random,
    /// By tier; empty without zones.
    zone_plans: Box<[ZonePlan]>,
}

impl Balancer {
    /// Prepares `targets`. If the list is empty, or every weight is 0, the balancer never finds a target.
    ///
    /// `seed` distinguishes upstreams: two balancers with different seeds start at different targets. It does not move
    /// the ring of consistent hashing, which depends on the targets alone.
    #[must_use]
    pub fn new(targets: &[TargetSpec], algorithm: BalancingAlgorithm, seed: u64) -> Self {
        let mut by_priority: BTreeMap<Reverse<i32>, Vec<usize>> = BTreeMap::new();
        for (index, target) in targets.iter().enumerate().filter(|(_, target)| target.weight > 0) {
            by_priority
                .entry(Reverse(target.priority))
                .or_default()
                .push(index);
        }
        let tiers: Box<[Tier]> = by_priority
            .values()
            .map(|indices| Tier::new(targets, indices, algorithm == BalancingAlgorithm::ConsistentHash))
            .collect();
        let single = match &*tiers {
            [only] => only.single(),
            _ => None,
        };
        Self {
            algorithm,
            seed,
            single,
            tiers,
            has_slow_start: false,
            zones: None,
        }
    }

    /// Targets that are spared get so much less of their share; not with consistent hashing.
    #[must_use]
    pub fn with_slow_start(self) -> Self {
        let has_slow_start = self.algorithm != BalancingAlgorithm::ConsistentHash;
        Self {
            has_slow_start,
            // The callers are to see that the target gets calls, though there is nothing to choose.
            single: self.single.filter(|_| !has_slow_start),
            ..self
        }
    }

    /// Calls stay in the gateway's own zone as far as it can carry them. Calls with a hash do not look at zones.
    ///
    /// `zones.of` has an entry for each target that the balancer was built from.
    #[must_use]
    pub fn with_zones(self, zones: Zones) -> Self {
        Self {
            zones: Some(zones),
            ..self
        }
    }

    /// Whether the balancer goes by how busy targets are.
    #[must_use]
    pub fn needs_load(&self) -> bool {
        matches!(
            self.algorithm,
            BalancingAlgorithm::LeastConnections | BalancingAlgorithm::Ewma
        )
    }

    /// Whether [`Balancer::pick`] uses the load of targets: how busy they are, or whether they are spared.
    #[must_use]
    pub fn uses_load(&self) -> bool {
        self.needs_load() || self.has_slow_start
    }

    /// The state of one worker. Workers with different seeds start their turns at different targets, so that the
    /// first calls after a start do not all meet on one.
    #[must_use]
    pub fn new_state(&self, seed: u64) -> BalancerState {
        let seed = mix(self.seed ^ mix(seed));
        let positions = self
            .tiers
            .iter()
            .zip(1u64..)
            .map(|(tier, n)| tier.wrap(mix(seed ^ n)))
            .collect();
        BalancerState {
            positions,
            detour: mix(!seed),
            random: Random::new(seed),
            zone_plans: match self.zones {
                Some(_) => vec![ZonePlan::default(); self.tiers.len()].into(),
                None => Box::default(),
            },
        }
    }

    /// Picks a target and answers with its index in the slice that the balancer was built from; `None` when no
    /// target is usable.
    ///
    /// `hash` places the call on the ring of [`BalancingAlgorithm::ConsistentHash`] (see [`crate::hash_key`]).
    /// `target_load` and `usable` are asked with such an index too; `usable` denies targets that are unhealthy or
    /// were tried for this call already. Either may be asked several times for one target.
    pub fn pick(
        &self,
        state: &mut BalancerState,
        hash: Option<u32>,
        target_load: impl Fn(usize) -> Load,
        usable: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if let Some(only) = self.single {
            return usable(only).then_some(only);
        }
        if let Some(zones) = &self.zones
            && (hash.is_none() || self.algorithm != BalancingAlgorithm::ConsistentHash)
        {
            return self.pick_by_zone(zones, state, &target_load, &usable);
        }
        (0..self.tiers.len()).find_map(|tier| self.pick_in(tier, state, hash, &target_load, &usable))
    }

    /// Picks in the zone of the call; if that has no usable target, in any zone.
    fn pick_by_zone(
        &self,
        zones: &Zones,
        state: &mut BalancerState,
        target_load: &impl Fn(usize) -> Load,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        self.tiers.iter().enumerate().find_map(|(place, tier)| {
            let plan = &mut state.zone_plans[place];
            let zone = plan.next(zones, tier.members(), &mut state.random, usable);
            let is_there = |target: usize| zones.of[target] == zone && usable(target);
            let found = zone.and_then(|_| self.pick_in(place, state, None, target_load, &is_there));
            found.or_else(|| self.pick_in(place, state, None, target_load, usable))
        })
    }

    /// Picks among the targets of one priority.
    #[inline]
    fn pick_in(
        &self,
        place: usize,
        state: &mut BalancerState,
        hash: Option<u32>,
        target_load: &impl Fn(usize) -> Load,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let tier = &self.tiers[place];
        let position = &mut state.positions[place];
        match (self.algorithm, hash) {
            (BalancingAlgorithm::ConsistentHash, Some(hash)) => tier.pick_by_hash(hash, usable),
            (BalancingAlgorithm::RoundRobin, _) if self.has_slow_start => {
                let random = &mut state.random;
                tier.pick_sparing(position, &mut state.detour, random, target_load, usable)
            }
            (BalancingAlgorithm::RoundRobin | BalancingAlgorithm::ConsistentHash, _) => {
                tier.pick_in_turn(position, &mut state.detour, usable)
            }
            (BalancingAlgorithm::LeastConnections, _) => {
                tier.pick_least_connections(position, target_load, usable)
            }
            (BalancingAlgorithm::Ewma, _) => tier.pick_ewma(&mut state.random, target_load, usable),
        }
    }
}

#[cfg(test)]
mod test_vectors;
#[cfg(test)]
mod tests;
