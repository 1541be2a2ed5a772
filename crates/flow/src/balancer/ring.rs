//! The ring of consistent hashing, as ketama draws it: each target owns many points, a key belongs to the next one.

use crate::hash::{GOLDEN, hash_bytes, mix};

/// Points of a target of relative weight 1, as in ketama.
const POINTS_PER_UNIT: u64 = 160;

/// No ring is larger than this (or than its number of targets): 768 KiB. Large upstreams get fewer points a target.
const MAX_POINTS: u64 = 65_536;

/// Points sorted by hash. A point depends on its target's id and its number alone, so that a target that leaves takes
/// only its own points along.
#[derive(Debug)]
pub(super) struct Ring {
    hashes: Box<[u64]>,
    owners: Box<[u32]>,
}

impl Ring {
    /// Draws the ring of `members`, an id and a relative weight each; their positions are what [`Ring::walk`] gives.
    pub(super) fn new<'a>(members: impl Iterator<Item = (&'a str, u32)> + Clone) -> Self {
        let total = members.clone().map(|(_, weight)| u64::from(weight)).sum();
        let mut points: Vec<(u64, u32)> = members
            .zip(0u32..)
            .flat_map(|((id, weight), member)| {
                let base = hash_bytes(id.as_bytes());
                (1..=points_of(weight, total))
                    .map(move |n| (mix(base.wrapping_add(n.wrapping_mul(GOLDEN))), member))
            })
            .collect();
        points.sort_unstable();
        Self {
            hashes: points.iter().map(|point| point.0).collect(),
            owners: points.iter().map(|point| point.1).collect(),
        }
    }

    /// The owners of the points from `hash` on, once around. A target appears as often as it has points.
    pub(super) fn walk(&self, hash: u64) -> impl Iterator<Item = usize> {
        // A caller may hash to less than 64 good bits (an address, a counter): mixed they spread as well.
        let hash = mix(hash);
        let start = self.hashes.partition_point(|point| *point < hash);
        let (before, from) = self.owners.split_at(start);
        from.iter().chain(before).map(|owner| *owner as usize)
    }
}

/// How many points a member gets. While the ring has room this does not depend on the other members; then it halves
/// for all at once, so that it stays the same over most changes of a large upstream.
fn points_of(weight: u32, total: u64) -> u64 {
    let weight = u64::from(weight);
    let mut per_unit = POINTS_PER_UNIT;
    while per_unit > 1 && per_unit.saturating_mul(total) > MAX_POINTS {
        per_unit /= 2;
    }
    if per_unit.saturating_mul(total) <= MAX_POINTS {
        return weight * per_unit;
    }
    (u128::from(weight) * u128::from(MAX_POINTS) / u128::from(total)).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_bounded_and_no_member_is_without() {
        let cases: [(&str, Vec<u32>, std::ops::RangeInclusive<usize>); 5] = [
            ("one", vec![1], 160..=160),
            ("two", vec![2, 1], 480..=480),
            ("many equals", vec![1; 1_000], 40_000..=40_000),
            ("huge weights", vec![u32::MAX, u32::MAX - 1, 1], 65_536..=65_536),
            ("more members than points", vec![1; 70_000], 70_000..=70_000),
        ];
        for (name, weights, expected) in cases {
            let ids: Vec<String> = (0..weights.len()).map(|n| format!("10.0.0.{n}:80")).collect();
            let ring = Ring::new(ids.iter().map(String::as_str).zip(weights.iter().copied()));
            assert!(
                expected.contains(&ring.hashes.len()),
                "{name}: {}",
                ring.hashes.len()
            );
            let mut owners: Vec<u32> = ring.owners.to_vec();
            owners.sort_unstable();
            owners.dedup();
            assert_eq!(owners.len(), weights.len(), "{name}");
        }
    }
}
