//! Test vectors for the ring of consistent hashing: what lua-resty-chash answers to the same keys.

use super::*;
use crate::hash_key;

fn idle(_: usize) -> Load {
    Load::default()
}

const KEYS: [&str; 12] = [
    "",
    "alice",
    "bob",
    "carol",
    "192.168.7.9",
    "/path?q=1",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
];
/// Targets with their weights, and for each key the target and the next one.
type Case = (&'static [(&'static str, u32)], [(usize, usize); 12]);

const CASES: [Case; 4] = [
    (
        &[
            ("127.0.0.1:1980", 1),
            ("127.0.0.1:1981", 1),
            ("127.0.0.1:1982", 1),
        ],
        [
            (2, 0),
            (2, 0),
            (1, 0),
            (0, 2),
            (1, 2),
            (1, 2),
            (2, 1),
            (0, 1),
            (0, 2),
            (1, 2),
            (1, 0),
            (1, 2),
        ],
    ),
    (
        &[("10.0.0.1:80", 4), ("10.0.0.2:80", 2), ("10.0.0.3:8080", 2)],
        [
            (0, 1),
            (0, 2),
            (0, 2),
            (0, 1),
            (0, 1),
            (2, 0),
            (1, 2),
            (0, 2),
            (0, 1),
            (1, 2),
            (0, 2),
            (2, 0),
        ],
    ),
    (
        &[
            ("10.0.0.0:80", 100),
            ("10.0.0.1:80", 50),
            ("10.0.0.2:80", 30),
            ("10.0.0.3:80", 20),
            ("10.0.0.4:80", 10),
        ],
        [
            (0, 1),
            (0, 1),
            (2, 0),
            (1, 2),
            (0, 1),
            (0, 4),
            (1, 0),
            (1, 0),
            (3, 0),
            (0, 2),
            (2, 1),
            (0, 2),
        ],
    ),
    (
        &[("[::1]:1980", 3), ("[2001:db8::1]:1980", 2)],
        [
            (1, 0),
            (1, 0),
            (1, 0),
            (0, 1),
            (1, 0),
            (0, 1),
            (1, 0),
            (1, 0),
            (1, 0),
            (1, 0),
            (0, 1),
            (0, 1),
        ],
    ),
];

/// Answers of lua-resty-chash 0.05: for each key the target, and the one that is tried next.
/// A change here would move the keys of every running gateway.
#[test]
fn keys_go_where_lua_resty_chash_sends_them() {
    for (targets, expected) in CASES {
        let targets: Vec<TargetSpec> = targets
            .iter()
            .map(|(id, weight)| TargetSpec {
                id: (*id).to_owned(),
                weight: *weight,
                priority: 0,
            })
            .collect();
        let balancer = Balancer::new(&targets, BalancingAlgorithm::ConsistentHash, 0);
        let mut state = balancer.new_state(0);
        for (key, expected) in KEYS.iter().zip(expected) {
            let hash = Some(hash_key(key.as_bytes()));
            let first = balancer
                .pick(&mut state, hash, idle, |_| true)
                .expect("all are usable");
            let next = balancer.pick(&mut state, hash, idle, |target| target != first);
            assert_eq!(
                (first, next),
                (expected.0, Some(expected.1)),
                "{key:?} of {targets:?}"
            );
        }
    }
}

/// Two targets of which a point of each has the same hash, so that the order among equals decides.
#[test]
fn of_equal_points_the_first_target_in_the_configuration_comes_first() {
    let targets: Vec<TargetSpec> = ["10.7.0.1:80", "10.7.0.13:80"]
        .iter()
        .map(|id| TargetSpec {
            id: (*id).to_owned(),
            // The points that are equal are among the first 3 × 160.
            weight: 3,
            priority: 0,
        })
        .chain([TargetSpec {
            id: "10.7.0.200:80".to_owned(),
            weight: 1,
            priority: 0,
        }])
        .collect();
    let balancer = Balancer::new(&targets, BalancingAlgorithm::ConsistentHash, 0);
    let mut state = balancer.new_state(0);
    let mut pick = |hash| balancer.pick(&mut state, Some(hash), idle, |_| true);
    assert_eq!(pick(159_234_211), Some(0));
    assert_eq!(
        balancer.pick(
            &mut balancer.new_state(0),
            Some(159_234_211),
            idle,
            |target| target != 0
        ),
        Some(1)
    );
}
