//! The targets of one priority, and the four ways to choose among them.

use super::{Load, Ring, TargetSpec};
use crate::hash::{GOLDEN, Random, scale};
use crate::slow_start::WHOLE;

/// How often a target is drawn blindly before the usable ones are counted.
const DRAWS: usize = 4;

/// Targets of equal priority, all of a weight above 0; never empty. A *member* is a position in these lists.
#[derive(Debug)]
pub(super) struct Tier {
    /// By member: its index in the caller's list.
    targets: Box<[usize]>,
    /// By member: its weight, divided by what divides all weights.
    weights: Box<[u32]>,
    /// By member: the end of its part of the wheel. Empty if all weights are equal: then member = position.
    ends: Box<[u64]>,
    /// Positions of the wheel: the sum of `weights`.
    total: u64,
    /// From one position of the wheel to the next; shares no divisor with `total`, so a turn meets each once.
    stride: u64,
    ring: Option<Ring>,
}

impl Tier {
    /// Prepares the targets at `indices` (not empty, weights above 0).
    pub(super) fn new(targets: &[TargetSpec], indices: &[usize], with_ring: bool) -> Self {
        let divisor = indices.iter().fold(0, |divisor, &index| {
            gcd(divisor, u64::from(targets[index].weight))
        });
        let weights: Box<[u32]> = indices
            .iter()
            .map(|&index| (u64::from(targets[index].weight) / divisor) as u32)
            .collect();
        let mut total = 0;
        let ends: Box<[u64]> = weights
            .iter()
            .map(|weight| {
                total += u64::from(*weight);
                total
            })
            .collect();
        let equal = total == weights.len() as u64;
        let ring = with_ring.then(|| {
            Ring::new(
                indices
                    .iter()
                    .zip(&weights)
                    .map(|(&index, weight)| (&*targets[index].id, *weight)),
            )
        });
        Self {
            targets: indices.into(),
            ends: if equal { Box::default() } else { ends },
            stride: if equal { 1 } else { golden_stride(total) },
            weights,
            total,
            ring,
        }
    }

    /// The target, when there is but one.
    pub(super) fn single(&self) -> Option<usize> {
        match *self.targets {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The targets and their weights.
    pub(super) fn members(&self) -> impl ExactSizeIterator<Item = (usize, u32)> {
        self.targets.iter().copied().zip(self.weights.iter().copied())
    }

    /// Brings any number onto the wheel.
    pub(super) fn wrap(&self, position: u64) -> u64 {
        position % self.total
    }

    /// In turn. A turn's calls of a target that is not usable go to the others by their weights, and the wheel goes
    /// on for everyone else as if nothing had happened.
    pub(super) fn pick_in_turn(
        &self,
        position: &mut u64,
        detour: &mut u64,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let target = self.targets[self.turn(position)];
        if usable(target) {
            Some(target)
        } else {
            self.pick_on_detour(detour, |member| u64::from(self.weights[member]), usable)
        }
    }

    /// In turn, but a target passes on as much of its turns as it is spared. What is passed on goes to all by the
    /// shares that they have then, so that over many calls each gets just that share.
    pub(super) fn pick_sparing(
        &self,
        position: &mut u64,
        detour: &mut u64,
        random: &mut Random,
        load: &impl Fn(usize) -> Load,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let target = self.targets[self.turn(position)];
        if usable(target) {
            let spared = usize::from(load(target).spared);
            if spared == 0 || random.below(usize::from(WHOLE)) >= spared {
                return Some(target);
            }
        }
        let share = |member: usize| u64::from(self.weights[member]) * kept(load(self.targets[member]));
        self.pick_on_detour(detour, share, usable)
    }

    /// The member whose turn it is; the wheel moves on.
    fn turn(&self, position: &mut u64) -> usize {
        let here = if *position < self.total {
            *position
        } else {
            self.wrap(*position)
        };
        let next = here + self.stride;
        *position = if next < self.total {
            next
        } else {
            next - self.total
        };
        if self.ends.is_empty() {
            here as usize
        } else {
            self.ends.partition_point(|end| *end <= here)
        }
    }

    /// One of the usable targets by its share, spread evenly over the calls that come here.
    fn pick_on_detour(
        &self,
        detour: &mut u64,
        share: impl Fn(usize) -> u64,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let usable_members = || {
            let members = self.targets.iter().enumerate();
            members.filter(|(_, target)| usable(**target))
        };
        let sum = usable_members().map(|(member, _)| share(member)).sum();
        *detour = detour.wrapping_add(GOLDEN);
        let mut point = scale(*detour, sum);
        for (member, target) in usable_members() {
            match point.checked_sub(share(member)) {
                Some(rest) => point = rest,
                None => return Some(*target),
            }
        }
        // Another worker may have found a target unhealthy between the sum and the search.
        self.targets.iter().copied().find(|target| usable(*target))
    }

    /// The first usable target on the ring.
    pub(super) fn pick_by_hash(&self, hash: u32, usable: &impl Fn(usize) -> bool) -> Option<usize> {
        let mut walk = self.ring.as_ref()?.walk(hash).map(|member| self.targets[member]);
        let owner = walk.next()?;
        if usable(owner) {
            return Some(owner);
        }
        // Look whether the walk can end before going around thousands of points in vain.
        if !self.targets.iter().any(|target| usable(*target)) {
            return None;
        }
        walk.find(|target| usable(*target))
    }

    /// The lowest `(inflight + 1) / weight`, looking from the one after the last pick on.
    pub(super) fn pick_least_connections(
        &self,
        position: &mut u64,
        load: &impl Fn(usize) -> Load,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let start = (*position % self.targets.len() as u64) as usize;
        let mut best: Option<(usize, u128, u128)> = None;
        for member in (start..self.targets.len()).chain(0..start) {
            let target = self.targets[member];
            if !usable(target) {
                continue;
            }
            let load = load(target);
            let calls = u128::from(load.inflight) + 1;
            let weight = u128::from(self.weights[member]) * u128::from(kept(load));
            // calls / weight < best calls / best weight, without dividing.
            if best.is_none_or(|(_, best_calls, best_weight)| calls * best_weight < best_calls * weight) {
                best = Some((member, calls, weight));
            }
        }
        let (member, ..) = best?;
        *position = member as u64 + 1;
        Some(self.targets[member])
    }

    /// The better of two drawn by lot.
    pub(super) fn pick_ewma(
        &self,
        random: &mut Random,
        load: &impl Fn(usize) -> Load,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let first = self.draw(random, None, usable)?;
        let Some(second) = self.draw(random, Some(first), usable) else {
            return Some(self.targets[first]);
        };
        let (load_first, load_second) = (load(self.targets[first]), load(self.targets[second]));
        // A target without a latency is tried as soon as it has no call in flight: one that comes back is not left out for
        // what it was slow at. Otherwise it is compared by its calls alone, so that it is not flooded.
        // One that starts slowly is not preferred.
        let is_new = |load: Load| (load.latency_us.is_nan() || load.latency_us <= 0.0) && load.spared == 0;
        match (is_new(load_first), is_new(load_second)) {
            (true, false) if load_first.inflight == 0 => return Some(self.targets[first]),
            (false, true) if load_second.inflight == 0 => return Some(self.targets[second]),
            _ => {}
        }
        let known = load_first.latency_us > 0.0 && load_second.latency_us > 0.0;
        let score = |member: usize, load: Load| {
            let latency = if known { load.latency_us } else { 1.0 };
            let weight = f64::from(self.weights[member]) * kept(load) as f64;
            latency * (f64::from(load.inflight) + 1.0) / weight
        };
        let better = if score(second, load_second) < score(first, load_first) {
            second
        } else {
            first
        };
        Some(self.targets[better])
    }

    /// A usable member other than `except`, each with the same chance.
    fn draw(
        &self,
        random: &mut Random,
        except: Option<usize>,
        usable: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let count = self.targets.len() - usize::from(except.is_some());
        for _ in 0..DRAWS.min(count) {
            let drawn = random.below(count);
            // Without `except` the members after it move down by one.
            let member = drawn + usize::from(except.is_some_and(|except| drawn >= except));
            if usable(self.targets[member]) {
                return Some(member);
            }
        }
        let candidates = || {
            (0..self.targets.len()).filter(|member| Some(*member) != except && usable(self.targets[*member]))
        };
        let chosen = random.below(candidates().count());
        candidates().nth(chosen)
    }
}

/// What a target has of its share, in parts of [`WHOLE`].
fn kept(load: Load) -> u64 {
    u64::from(WHOLE.saturating_sub(load.spared).max(1))
}

/// The number nearest to `total` / golden ratio that shares no divisor with it. Steps of that size, taken around a
/// circle, come back to each of its parts at intervals as even as they can be for all parts at once, so a weighted
/// wheel needs no table.
fn golden_stride(total: u64) -> u64 {
    let ideal = scale(GOLDEN, total).max(1);
    (0..total)
        .flat_map(|distance| [ideal.checked_add(distance), ideal.checked_sub(distance)])
        .flatten()
        .find(|stride| (1..total.max(2)).contains(stride) && gcd(*stride, total) == 1)
        .unwrap_or(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stride_meets_every_position() {
        for total in (1..2_000).chain([1 << 40, 6_469_693_230, u64::from(u32::MAX) * 1_000]) {
            let stride = golden_stride(total);
            assert!(stride >= 1 && gcd(stride, total) == 1, "{total}: {stride}");
        }
    }

    /// The longest wait for a weighted target is a small multiple of the ideal one.
    #[test]
    fn wheel_is_smooth() {
        let cases: [&[u32]; 7] = [
            &[5, 1, 1],
            &[100, 1],
            &[3, 2],
            &[1000, 999, 3],
            &[65_535, 32_767, 1_009, 17],
            &[7; 9],
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        ];
        for weights in cases {
            let specs: Vec<TargetSpec> = weights
                .iter()
                .map(|weight| TargetSpec {
                    id: String::new(),
                    weight: *weight,
                    priority: 0,
                })
                .collect();
            let indices: Vec<usize> = (0..specs.len()).collect();
            let tier = Tier::new(&specs, &indices, false);
            let mut last = vec![None; weights.len()];
            let mut position = 0;
            for n in 0..3 * tier.total {
                let member = tier
                    .pick_in_turn(&mut position, &mut 0, &|_| true)
                    .expect("all are usable");
                if let Some(before) = last[member].replace(n) {
                    let ideal = tier.total as f64 / f64::from(tier.weights[member]);
                    let waited = (n - before) as f64;
                    assert!(
                        waited <= 3.0 * ideal + 1.0,
                        "{weights:?} {member}: {waited}, ideal {ideal}"
                    );
                }
            }
        }
    }
}
