//! Choosing by weight: every round gives each its exact share, well mixed within the round.

use std::sync::atomic::{AtomicU64, Ordering};

/// Weights to choose by; all workers share the round.
#[derive(Debug)]
pub(crate) struct Weights {
    /// Where the share of each ends, in turns of a round.
    ends: Vec<u64>,
    /// So many turns lie between those of two calls: about the golden part of a round, and coprime to it.
    step: u64,
    turn: AtomicU64,
}

impl Weights {
    /// `None` if all weights are 0.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>) -> Option<Self> {
        let weights: Vec<u64> = weights.into_iter().map(u64::from).collect();
        let common = weights.iter().copied().fold(0, gcd);
        if common == 0 {
            return None;
        }
        let mut end = 0;
        let ends = weights.iter().map(|weight| {
            end += weight / common;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let golden = (end as f64 * 0.618_033_988_75) as u64;
        let step = (golden.max(1)..end)
            .find(|step| gcd(*step, end) == 1)
            .unwrap_or(1);
        Some(Self {
            ends,
            step,
            turn: AtomicU64::new(0),
        })
    }

    /// The place of the one whose turn it is.
    pub(crate) fn next(&self) -> usize {
        let [.., round] = self.ends[..] else { return 0 };
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % round;
        let slot = (u128::from(turn) * u128::from(self.step) % u128::from(round)) as u64;
        self.ends.partition_point(|end| *end <= slot)
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        other => gcd(other, one % other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_exact() {
        for (weights, round, shares) in [
            (vec![1], 1, vec![1]),
            (vec![3, 1], 4, vec![3, 1]),
            (vec![300, 0, 100], 4, vec![3, 0, 1]),
            (vec![5, 3, 2], 10, vec![5, 3, 2]),
            (vec![97, 3], 100, vec![97, 3]),
        ] {
            let chooser = Weights::new(weights.clone()).expect("some weight");
            for _ in 0..3 {
                let mut found = vec![0; shares.len()];
                for _ in 0..round {
                    found[chooser.next()] += 1;
                }
                assert_eq!(found, shares, "{weights:?}");
            }
        }
        assert!(Weights::new([0, 0]).is_none());
        assert!(Weights::new([]).is_none());
        assert!(Weights::new([u32::MAX; 20]).is_some());
    }
}
