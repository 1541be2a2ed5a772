//! What a balancer promises as a whole, over all algorithms and tiers.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;
use crate::hash_key;

const ALGORITHMS: [BalancingAlgorithm; 4] = [
    BalancingAlgorithm::RoundRobin,
    BalancingAlgorithm::ConsistentHash,
    BalancingAlgorithm::LeastConnections,
    BalancingAlgorithm::Ewma,
];

fn specs(weights: &[u32]) -> Vec<TargetSpec> {
    weights
        .iter()
        .enumerate()
        .map(|(n, weight)| TargetSpec {
            id: format!("10.0.0.{n}:8080"),
            weight: *weight,
            priority: 0,
        })
        .collect()
}

fn idle(_: usize) -> Load {
    Load::default()
}

/// Where call `n` is on the ring.
fn place(n: u64) -> u32 {
    hash_key(&n.to_le_bytes())
}

/// How often each of `targets` is picked in `calls` calls, call n with hash n.
fn counts(
    balancer: &Balancer,
    targets: usize,
    calls: u64,
    hashed: bool,
    usable: impl Fn(usize) -> bool,
) -> Vec<u64> {
    let mut state = balancer.new_state(1);
    let mut counts = vec![0; targets];
    for call in 0..calls {
        let picked = balancer
            .pick(&mut state, hashed.then(|| place(call)), idle, &usable)
            .expect("one is usable");
        counts[picked] += 1;
    }
    counts
}

#[test]
fn is_shared_between_workers() {
    fn shared<T: Send + Sync>() {}
    shared::<Balancer>();
}

#[test]
fn every_algorithm_finds_what_there_is() {
    // Weights, priorities, usable targets, the targets that may be picked.
    type Case = (
        &'static str,
        &'static [u32],
        &'static [i32],
        &'static [usize],
        &'static [usize],
    );
    let cases: [Case; 10] = [
        ("no targets", &[], &[], &[], &[]),
        ("one", &[1], &[0], &[0], &[0]),
        ("one, unusable", &[1], &[0], &[], &[]),
        ("only weight 0", &[0, 0], &[0, 0], &[0, 1], &[]),
        ("one that has weight", &[0, 3, 0], &[0, 0, 0], &[0, 1, 2], &[1]),
        ("several", &[1, 3, 2], &[0, 0, 0], &[0, 1, 2], &[0, 1, 2]),
        ("several, one usable", &[1, 3, 2], &[0, 0, 0], &[2], &[2]),
        (
            "higher priority first",
            &[1, 1, 1, 1],
            &[-1, 5, 5, 0],
            &[0, 1, 2, 3],
            &[1, 2],
        ),
        (
            "next priority after that",
            &[1, 1, 1, 1],
            &[-1, 5, 5, 0],
            &[0, 3],
            &[3],
        ),
        (
            "weight 0 is not a tier",
            &[1, 0, 0, 1],
            &[-1, 5, 5, -1],
            &[0, 1, 2, 3],
            &[0, 3],
        ),
    ];
    for algorithm in ALGORITHMS {
        for (name, weights, priorities, usable, expected) in cases {
            let mut targets = specs(weights);
            for (target, priority) in targets.iter_mut().zip(priorities) {
                target.priority = *priority;
            }
            let balancer = Balancer::new(&targets, algorithm, 3);
            for hashed in [false, true] {
                let mut state = balancer.new_state(9);
                let mut seen: Vec<usize> = (0..500u64)
                    .filter_map(|call| {
                        let load = |target: usize| Load {
                            inflight: (call as u32 * 7) % (target as u32 + 2),
                            latency_us: 9.0,
                            spared: 0,
                        };
                        balancer.pick(&mut state, hashed.then(|| place(call)), load, |target| {
                            usable.contains(&target)
                        })
                    })
                    .collect();
                let answers = seen.len();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen, expected, "{algorithm:?} {name}");
                assert_eq!(
                    answers,
                    if expected.is_empty() { 0 } else { 500 },
                    "{algorithm:?} {name}"
                );
            }
        }
    }
}

#[test]
fn equal_targets_take_turns_in_order() {
    let balancer = Balancer::new(&specs(&[100, 100, 100]), BalancingAlgorithm::RoundRobin, 0);
    let mut state = balancer.new_state(4);
    let picks: Vec<usize> = (0..6)
        .filter_map(|_| balancer.pick(&mut state, None, idle, |_| true))
        .collect();
    for pair in picks.windows(2) {
        assert_eq!(pair[1], (pair[0] + 1) % 3, "{picks:?}");
    }
}

#[test]
fn seeds_start_the_turn_at_different_targets() {
    let targets = specs(&[1; 8]);
    let first = |balancer_seed, state_seed| {
        let balancer = Balancer::new(&targets, BalancingAlgorithm::RoundRobin, balancer_seed);
        balancer
            .pick(&mut balancer.new_state(state_seed), None, idle, |_| true)
            .expect("all are usable")
    };
    let mut starts = [0u32; 8];
    for seed in 0..400 {
        starts[first(0, seed)] += 1;
        starts[first(seed, 0)] += 1;
    }
    assert!(starts.iter().all(|count| (60..140).contains(count)), "{starts:?}");
    assert_eq!(first(1, 2), first(1, 2));
}

#[test]
fn calls_of_an_unusable_target_are_shared_by_weight() {
    let cases: [(&[u32], usize, &[f64]); 4] = [
        (&[1, 1, 1, 1], 1, &[1.0 / 3.0, 0.0, 1.0 / 3.0, 1.0 / 3.0]),
        (&[100, 50, 50], 0, &[0.0, 0.5, 0.5]),
        (&[100, 50, 50], 2, &[2.0 / 3.0, 1.0 / 3.0, 0.0]),
        (&[1, 1], 0, &[0.0, 1.0]),
    ];
    for (weights, down, shares) in cases {
        for (algorithm, tolerance) in [
            (BalancingAlgorithm::RoundRobin, 0.01),
            (BalancingAlgorithm::ConsistentHash, 0.1),
        ] {
            let balancer = Balancer::new(&specs(weights), algorithm, 0);
            let counts = counts(&balancer, weights.len(), 20_000, true, |target| target != down);
            for (count, share) in counts.iter().zip(shares) {
                let got = *count as f64 / 20_000.0;
                assert!(
                    (got - share).abs() <= tolerance,
                    "{algorithm:?} {weights:?} without {down}: {counts:?}"
                );
            }
        }
    }
}

#[test]
fn ring_gives_shares_by_weight_and_is_the_same_for_everybody() {
    let targets = specs(&[4, 2, 1, 1]);
    let balancer = Balancer::new(&targets, BalancingAlgorithm::ConsistentHash, 0);
    let counts = counts(&balancer, 4, 80_000, true, |_| true);
    for (count, share) in counts.iter().zip([0.5, 0.25, 0.125, 0.125]) {
        assert!((*count as f64 / 80_000.0 - share).abs() < 0.05, "{counts:?}");
    }

    let other = Balancer::new(&targets, BalancingAlgorithm::ConsistentHash, 99);
    for key in 0..1_000u32 {
        let hash = Some(hash_key(&key.to_le_bytes()));
        assert_eq!(
            balancer.pick(&mut balancer.new_state(1), hash, idle, |_| true),
            other.pick(&mut other.new_state(2), hash, idle, |_| true),
        );
    }
}

#[test]
fn least_connections_takes_the_least_loaded() {
    // Weights, calls in flight, unusable, the expected target (with all states alike).
    type Case = (&'static [u32], &'static [u32], &'static [usize], usize);
    let cases: [Case; 6] = [
        (&[1, 1, 1], &[3, 1, 2], &[], 1),
        (&[1, 1, 1], &[3, 1, 2], &[1], 2),
        (&[1, 10, 1], &[0, 8, 1], &[], 1),
        (&[1, 10, 1], &[0, 10, 1], &[], 0),
        (&[100, 200], &[0, 0], &[], 1),
        (&[u32::MAX, u32::MAX - 1], &[u32::MAX, u32::MAX], &[], 0),
    ];
    for (weights, inflight, down, expected) in cases {
        let balancer = Balancer::new(&specs(weights), BalancingAlgorithm::LeastConnections, 0);
        for seed in 0..5 {
            let picked = balancer.pick(
                &mut balancer.new_state(seed),
                None,
                |target| Load {
                    inflight: inflight[target],
                    latency_us: 0.0,
                    spared: 0,
                },
                |target| !down.contains(&target),
            );
            assert_eq!(
                picked,
                Some(expected),
                "{weights:?} {inflight:?} without {down:?}"
            );
        }
    }
}

#[test]
fn least_connections_takes_equals_in_turn() {
    let balancer = Balancer::new(&specs(&[1; 5]), BalancingAlgorithm::LeastConnections, 0);
    assert_eq!(counts(&balancer, 5, 50, false, |_| true), [10; 5]);
    // Calls that stay fill all targets alike.
    let inflight = RefCell::new([0u32; 5]);
    let mut state = balancer.new_state(0);
    for _ in 0..35 {
        let load = |target: usize| Load {
            inflight: inflight.borrow()[target],
            latency_us: 0.0,
            spared: 0,
        };
        let picked = balancer
            .pick(&mut state, None, load, |_| true)
            .expect("all are usable");
        inflight.borrow_mut()[picked] += 1;
    }
    assert_eq!(*inflight.borrow(), [7; 5]);
}

#[test]
fn ewma_prefers_the_faster_of_two() {
    let balancer = Balancer::new(&specs(&[1, 1, 1]), BalancingAlgorithm::Ewma, 0);
    let mut share = [0u32; 3];
    let mut state = balancer.new_state(5);
    for _ in 0..3_000 {
        let load = |target: usize| Load {
            inflight: 1,
            latency_us: [300.0, 100.0, 200.0][target],
            spared: 0,
        };
        share[balancer
            .pick(&mut state, None, load, |_| true)
            .expect("all are usable")] += 1;
    }
    // Of the three pairs the fastest wins two, the second one, the slowest none.
    assert!(share[0] == 0 && (1_850..2_150).contains(&share[1]), "{share:?}");
}

#[test]
fn ewma_weighs_calls_weights_and_unknown_latencies() {
    // Weights, (calls, latency) of each, the winner of the one pair; None: whichever was drawn first.
    type Case = (&'static str, [u32; 2], [(u32, f64); 2], Option<usize>);
    let cases: [Case; 9] = [
        ("latency", [1, 1], [(0, 50.0), (0, 60.0)], Some(0)),
        ("calls", [1, 1], [(5, 50.0), (0, 60.0)], Some(1)),
        ("weight", [1, 3], [(0, 50.0), (0, 60.0)], Some(1)),
        ("one unknown, no calls", [1, 1], [(0, 0.0), (0, 60.0)], Some(0)),
        ("one unknown, as busy", [1, 1], [(2, 0.0), (2, 60.0)], None),
        ("one unknown with calls", [1, 1], [(3, 0.0), (0, 60.0)], Some(1)),
        ("both unknown", [1, 2], [(0, 0.0), (0, 0.0)], Some(1)),
        ("no number", [1, 1], [(0, f64::NAN), (1, 60.0)], Some(0)),
        ("the other one unknown", [1, 9], [(0, 50.0), (0, 0.0)], Some(1)),
    ];
    for (name, weights, loads, expected) in cases {
        let balancer = Balancer::new(&specs(&weights), BalancingAlgorithm::Ewma, 0);
        let mut state = balancer.new_state(1);
        let mut share = [0u32; 2];
        for _ in 0..200 {
            let load = |target: usize| Load {
                inflight: loads[target].0,
                latency_us: loads[target].1,
                spared: 0,
            };
            share[balancer
                .pick(&mut state, None, load, |_| true)
                .expect("both are usable")] += 1;
        }
        match expected {
            Some(winner) => assert_eq!(share[winner], 200, "{name}: {share:?}"),
            None => assert!(share.iter().all(|count| *count > 60), "{name}: {share:?}"),
        }
    }
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(0u32..=12, 1..12),
        prop::collection::vec(prop::sample::select(vec![0u32, 1, 10, 50, 100, 1_000]), 1..12),
        (1u32..500, 1usize..20).prop_map(|(weight, count)| vec![weight; count]),
    ]
}

proptest! {
    #[test]
    fn round_robin_is_exact_over_a_turn(weights in weights(), seed: u64, turns in 1u64..4) {
        let balancer = Balancer::new(&specs(&weights), BalancingAlgorithm::RoundRobin, seed);
        let total = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>();
        prop_assume!(total > 0);
        let counts = counts(&balancer, weights.len(), turns * total, false, |_| true);
        let expected: Vec<u64> = weights.iter().map(|weight| turns * u64::from(*weight)).collect();
        prop_assert_eq!(counts, expected);
    }

    #[test]
    fn only_usable_targets_and_one_whenever_there_is(
        weights in weights(), down: u32, priorities in prop::collection::vec(-2i32..3, 20), seed: u64,
    ) {
        let mut targets = specs(&weights);
        for (target, priority) in targets.iter_mut().zip(priorities) {
            target.priority = priority;
        }
        let usable = |target: usize| down >> target & 1 == 0;
        let best = targets.iter().enumerate()
            .filter(|(n, target)| usable(*n) && target.weight > 0).map(|(_, target)| target.priority).max();
        for algorithm in ALGORITHMS {
            let balancer = Balancer::new(&targets, algorithm, seed);
            let mut state = balancer.new_state(seed);
            for hash in [None, Some(1), Some(place(seed))] {
                let picked = balancer.pick(&mut state, hash, idle, usable);
                prop_assert_eq!(picked.map(|n| targets[n].priority), best);
                prop_assert!(picked.is_none_or(|n| usable(n) && targets[n].weight > 0));
            }
        }
    }

    /// Marked unusable: no other key moves, whatever the weights.
    #[test]
    fn an_unusable_target_moves_only_its_own_keys(weights in weights(), gone: usize, keys in prop::collection::vec(any::<u64>(), 50)) {
        prop_assume!(weights.iter().filter(|weight| **weight > 0).count() > 1);
        let gone = gone % weights.len();
        let balancer = Balancer::new(&specs(&weights), BalancingAlgorithm::ConsistentHash, 0);
        let mut state = balancer.new_state(0);
        for key in keys {
            let before = balancer.pick(&mut state, Some(place(key)), idle, |_| true);
            let after = balancer.pick(&mut state, Some(place(key)), idle, |target| target != gone);
            if before == Some(gone) {
                prop_assert!(after.is_some() && after != before);
            } else {
                prop_assert_eq!(before, after);
            }
        }
    }

    /// If a target is removed from the configuration, no other key moves as long as the remaining weights have the same
    /// common divisor, and each key moves to the same target as when its own target was only unusable.
    #[test]
    fn a_removed_target_moves_only_its_own_keys(
        mut weights in prop::collection::vec(1u32..6, 2..12), factor in 1u32..200, gone: usize, keys in prop::collection::vec(any::<u64>(), 50),
    ) {
        weights.push(1);
        weights.push(1);
        let gone = gone % weights.len();
        weights.iter_mut().for_each(|weight| *weight *= factor);
        let targets = specs(&weights);
        let mut left = targets.clone();
        left.remove(gone);
        let before = Balancer::new(&targets, BalancingAlgorithm::ConsistentHash, 0);
        let after = Balancer::new(&left, BalancingAlgorithm::ConsistentHash, 0);
        for key in keys {
            let without = before.pick(&mut before.new_state(0), Some(place(key)), idle, |target| target != gone);
            let removed = after.pick(&mut after.new_state(0), Some(place(key)), idle, |_| true);
            prop_assert_eq!(without.map(|n| &targets[n].id), removed.map(|n| &left[n].id));
        }
    }
}
