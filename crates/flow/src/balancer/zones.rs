//! Zone awareness: calls stay in the gateway's own zone as far as its targets can carry them.
//!
//! Gateways do not know of each other. Each assumes that calls come to the zones in the configured shares (by default
//! the same to each), and that a target can carry its weight. A zone whose usable targets are as large a part of all
//! as its share of the calls keeps its calls; of a smaller one the rest goes to the zones that have some to spare. If
//! every gateway follows this rule, all targets get calls by their weights.

use crate::hash::Random;

/// Calls after which the usable targets are counted again; more for tiers of more targets.
const RECOUNT_EVERY: u32 = 16;
/// What chances are measured in.
const CERTAIN: usize = 1 << 20;

/// The zones of an upstream's targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Zones {
    /// By target: its zone, a number below the length of `shares`; `None`: it is in none.
    pub of: Box<[Option<u16>]>,
    /// The gateway's own zone.
    pub own: u16,
    /// By zone: its share of the calls that come to all gateways, relative to the others.
    pub shares: Box<[u32]>,
}

/// To which zone one tier's calls go. Renewed now and then, as targets come and go.
#[derive(Debug, Clone, Default)]
pub(super) struct ZonePlan {
    calls_left: u32,
    /// The chance that a call stays in the own zone.
    stays: usize,
    /// What other zones have to spare.
    spare: Box<[u64]>,
    spare_sum: u64,
}

impl ZonePlan {
    /// The zone for the next call; `None`: any. `members` are the tier's targets with their weights.
    pub(super) fn next(
        &mut self,
        zones: &Zones,
        members: impl ExactSizeIterator<Item = (usize, u32)>,
        random: &mut Random,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<u16> {
        match self.calls_left.checked_sub(1) {
            Some(left) => self.calls_left = left,
            None => self.renew(zones, members, usable),
        }
        if self.stays > 0 && (self.stays >= CERTAIN || random.below(CERTAIN) < self.stays) {
            return Some(zones.own);
        }
        let mut point = random.below(usize::try_from(self.spare_sum).unwrap_or(usize::MAX)) as u64;
        for (zone, spare) in (0..).zip(&self.spare) {
            match point.checked_sub(*spare) {
                Some(rest) => point = rest,
                None => return Some(zone),
            }
        }
        None
    }

    #[cold]
    fn renew(
        &mut self,
        zones: &Zones,
        members: impl ExactSizeIterator<Item = (usize, u32)>,
        usable: &impl Fn(usize) -> bool,
    ) {
        self.calls_left = RECOUNT_EVERY.max(members.len() as u32) - 1;
        if self.spare.len() != zones.shares.len() {
            self.spare = vec![0; zones.shares.len()].into();
        }
        let weights = &mut self.spare;
        weights.fill(0);
        let mut all = 0;
        for (target, weight) in members.filter(|(target, _)| usable(*target)) {
            all += u64::from(weight);
            if let Some(zone) = zones.of[target] {
                weights[usize::from(zone)] += u64::from(weight);
            }
        }
        let shares: u64 = zones.shares.iter().map(|share| u64::from(*share)).sum();
        let own = usize::from(zones.own);
        let own_share = u128::from(zones.shares[own]) * u128::from(all);
        let can = u128::from(weights[own]) * u128::from(shares);
        self.stays = match own_share {
            0 if can == 0 => 0,
            share if can >= share => CERTAIN,
            share => (can * CERTAIN as u128 / share) as usize,
        };
        // What is left of each zone's targets once its own calls are carried, in parts of the same whole.
        self.spare_sum = 0;
        for (zone, weight) in weights.iter_mut().enumerate() {
            let can = u128::from(*weight) * u128::from(shares.max(1));
            let share = u128::from(zones.shares[zone]) * u128::from(all);
            let spare = can.saturating_sub(share) * CERTAIN as u128
                / (u128::from(all.max(1)) * u128::from(shares.max(1)));
            *weight = if zone == own { 0 } else { spare as u64 };
            self.spare_sum += *weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which part of 10,000 calls goes to each of three zones, the last number: to any.
    fn parts(weights: [u32; 3], shares: [u32; 3], usable: [bool; 3]) -> [u32; 4] {
        let zones = Zones {
            of: [Some(0), Some(1), Some(2)].into(),
            own: 0,
            shares: shares.into(),
        };
        let mut plan = ZonePlan::default();
        let mut random = Random::new(1);
        let mut parts = [0; 4];
        for _ in 0..10_000 {
            let members = weights.iter().copied().enumerate();
            let zone = plan.next(&zones, members, &mut random, &|target| usable[target]);
            parts[zone.map_or(3, usize::from)] += 1;
        }
        parts
    }

    #[test]
    fn calls_stay_as_far_as_the_zone_can_carry_them() {
        const ALL: [bool; 3] = [true; 3];
        for (weights, shares, usable, wanted) in [
            ([1, 1, 1], [1, 1, 1], ALL, [100, 0, 0, 0]),
            ([5, 1, 1], [1, 1, 1], ALL, [100, 0, 0, 0]),
            // A third of the calls, an eighth of the targets: three eighths of the calls stay.
            ([1, 3, 4], [1, 1, 1], ALL, [37, 12, 50, 0]),
            ([1, 1, 1], [1, 1, 1], [false, true, true], [0, 50, 50, 0]),
            ([1, 1, 1], [1, 1, 1], [true, false, true], [100, 0, 0, 0]),
            // Most calls come here.
            ([1, 1, 1], [4, 1, 1], ALL, [50, 25, 25, 0]),
            ([1, 1, 1], [1, 1, 1], [false; 3], [0, 0, 0, 100]),
            ([1, 1, 1], [0, 1, 1], ALL, [100, 0, 0, 0]),
        ] {
            let parts = parts(weights, shares, usable);
            for (part, wanted) in parts.iter().zip(wanted) {
                assert!(
                    part.div_ceil(100).abs_diff(wanted) <= 2,
                    "{weights:?} {shares:?} {usable:?}: {parts:?}"
                );
            }
        }
    }

    #[test]
    fn a_zone_that_fails_is_noticed() {
        let zones = Zones {
            of: vec![Some(0), Some(1)].into(),
            own: 0,
            shares: vec![1, 1].into(),
        };
        let mut plan = ZonePlan::default();
        let mut random = Random::new(1);
        let members = || [1, 1].into_iter().enumerate();
        assert_eq!(plan.next(&zones, members(), &mut random, &|_| true), Some(0));
        let after = (0..RECOUNT_EVERY)
            .map(|_| plan.next(&zones, members(), &mut random, &|target| target == 1))
            .last();
        assert_eq!(after, Some(Some(1)));
    }
}
