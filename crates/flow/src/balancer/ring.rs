//! The ring of consistent hashing: each target owns many points, a key belongs to the next one.
//!
//! It is the ring of NGINX's `hash … consistent` and of lua-resty-chash: CRC-32 everywhere,
//! 160 points for a unit of weight, each point hashed from the target and the point before it. So a key keeps its
//! target over a move from either, and caches behind the gateway stay warm.

use crc32fast::Hasher;

/// Points of a target of relative weight 1.
const POINTS_PER_UNIT: u64 = 160;

/// No ring is larger than this (or than its number of targets): 2 MiB. Larger upstreams get fewer points a target.
const MAX_POINTS: u64 = 262_144;

/// Points sorted by hash; of equal ones, the target that stands first in the configuration comes first. A point
/// depends on its target's id and its number alone, so that a target that leaves takes only its own points along.
#[derive(Debug)]
pub(super) struct Ring {
    hashes: Box<[u32]>,
    owners: Box<[u32]>,
}

impl Ring {
    /// Draws the ring of `members`, an id and a relative weight each; their positions are what [`Ring::walk`] gives.
    pub(super) fn new<'a>(members: impl Iterator<Item = (&'a str, u32)> + Clone) -> Self {
        let total = members.clone().map(|(_, weight)| u64::from(weight)).sum();
        let mut points: Vec<(u32, u32)> = Vec::new();
        for ((id, weight), member) in members.zip(0u32..) {
            let base = hasher_of(id);
            let mut point = 0u32;
            for _ in 0..points_of(weight, total) {
                let mut hasher = base.clone();
                hasher.update(&point.to_le_bytes());
                point = hasher.finalize();
                points.push((point, member));
            }
        }
        points.sort_unstable();
        Self {
            hashes: points.iter().map(|point| point.0).collect(),
            owners: points.iter().map(|point| point.1).collect(),
        }
    }

    /// The owners of the points from `hash` on, once around. A target appears as often as it has points.
    pub(super) fn walk(&self, hash: u32) -> impl Iterator<Item = usize> {
        let start = self.hashes.partition_point(|point| *point < hash);
        let (before, from) = self.owners.split_at(start);
        from.iter().chain(before).map(|owner| *owner as usize)
    }
}

/// The input of the hash for a target's points: its host and port, with a zero byte instead of each colon.
fn hasher_of(id: &str) -> Hasher {
    let mut hasher = Hasher::new();
    for (n, part) in id.split(':').enumerate() {
        if n > 0 {
            hasher.update(&[0]);
        }
        hasher.update(part.as_bytes());
    }
    hasher
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
            ("many equals", vec![1; 2_000], 160_000..=160_000),
            ("huge weights", vec![u32::MAX, u32::MAX - 1, 1], 262_144..=262_144),
            ("more members than points", vec![1; 270_000], 270_000..=270_000),
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
