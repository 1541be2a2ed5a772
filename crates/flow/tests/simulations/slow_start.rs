//! A fourth target joins three that are warm. It is slow while it is cold: each call that it has served makes it faster.

use crate::chart::{Chart, Line, Panel};
use crate::queue::{Server, percentile_ms};
use crate::random::Random;
use weir_flow::balancer::{Balancer, BalancingAlgorithm, Load, TargetSpec};
use weir_flow::slow_start::SlowStart;

const SECONDS: u64 = 90;
const JOINS: u64 = 10;
const CALLS_PER_SECOND: u64 = 1_200;

struct Run {
    share: Line,
    latency: Line,
    /// The worst second.
    worst_ms: f64,
    /// The newcomer's share of the last ten seconds.
    last_share: f64,
}

fn run(algorithm: BalancingAlgorithm, name: &'static str, slow_start: Option<SlowStart>) -> Run {
    let specs: Vec<TargetSpec> = (0..4)
        .map(|n| TargetSpec {
            id: format!("10.0.0.{n}:80"),
            weight: 1,
            priority: 0,
        })
        .collect();
    let mut balancer = Balancer::new(&specs, algorithm, 7);
    if slow_start.is_some() {
        balancer = balancer.with_slow_start();
    }
    let mut state = balancer.new_state(7);
    let mut random = Random::new(7);
    let mut servers: Vec<Server> = (0..4).map(|_| Server::new(8)).collect();
    let mut open: Vec<Vec<u64>> = vec![Vec::new(); 4];
    let mut served = 0_u64;
    let (mut shares, mut p99s) = (Vec::new(), Vec::new());
    for second in 0..SECONDS {
        let (mut latencies, mut to_new) = (Vec::new(), 0);
        for call in 0..CALLS_PER_SECOND {
            let now_us = second * 1_000_000 + call * 1_000_000 / CALLS_PER_SECOND;
            open.iter_mut().for_each(|it| it.retain(|done| *done > now_us));
            let has_joined = second >= JOINS;
            let load = |target: usize| Load {
                inflight: open[target].len() as u32,
                latency_us: 0.0,
                spared: match slow_start {
                    Some(rules) if target == 3 => rules.spared(JOINS * 1_000, now_us / 1_000),
                    _ => 0,
                },
            };
            let target = balancer
                .pick(&mut state, None, load, |target| target < 3 || has_joined)
                .unwrap();
            // A warm target takes 10 ms. A cold one takes 60 ms; after two thousand calls it is half as cold.
            let cold = if target == 3 {
                0.5_f64.powf(served as f64 / 2_000.0)
            } else {
                0.0
            };
            let takes = random.exponential(10_000.0 + 50_000.0 * cold) as u64;
            let done = servers[target].done_us(now_us, takes);
            open[target].push(done);
            latencies.push(done - now_us);
            if target == 3 {
                (to_new, served) = (to_new + 1, served + 1);
            }
        }
        shares.push((second as f64, to_new as f64 / CALLS_PER_SECOND as f64 * 100.0));
        p99s.push((second as f64, percentile_ms(&mut latencies, 0.99)));
    }
    Run {
        worst_ms: p99s.iter().fold(0.0, |worst, point| point.1.max(worst)),
        last_share: shares[SECONDS as usize - 10..]
            .iter()
            .map(|point| point.1)
            .sum::<f64>()
            / 10.0,
        share: Line { name, points: shares },
        latency: Line { name, points: p99s },
    }
}

#[test]
fn a_new_target_warms_up() {
    let rules = SlowStart {
        window_ms: 40_000,
        min_percent: 5,
        aggression: 1.0,
    };
    let at_once = run(BalancingAlgorithm::RoundRobin, "at once", None);
    let slowly = run(BalancingAlgorithm::RoundRobin, "slow start", Some(rules));
    assert!(
        slowly.worst_ms * 3.0 < at_once.worst_ms,
        "{} and {} ms",
        slowly.worst_ms,
        at_once.worst_ms
    );
    assert!((slowly.last_share - 25.0).abs() < 0.1, "{} %", slowly.last_share);
    let first = slowly.share.points[JOINS as usize].1;
    assert!((1.0..3.0).contains(&first), "its first second: {first} %");
    let chart = Chart {
        title: "A cold target joins three warm ones after 10 s",
        axis: "seconds",
        panels: vec![
            Panel {
                title: "its share of the calls, percent",
                lines: vec![at_once.share, slowly.share],
            },
            Panel {
                title: "p99 of all calls, ms",
                lines: vec![at_once.latency, slowly.latency],
            },
        ],
    };
    chart.check("slow-start");
}

#[test]
fn the_least_busy_target_starts_slowly_too() {
    let rules = SlowStart {
        window_ms: 40_000,
        min_percent: 5,
        aggression: 1.0,
    };
    let at_once = run(BalancingAlgorithm::LeastConnections, "at once", None);
    let slowly = run(BalancingAlgorithm::LeastConnections, "slow start", Some(rules));
    let early = |run: &Run| {
        run.share.points[JOINS as usize..][..5]
            .iter()
            .map(|it| it.1)
            .sum::<f64>()
            / 5.0
    };
    assert!(
        early(&slowly) < early(&at_once),
        "{} and {} %",
        early(&slowly),
        early(&at_once)
    );
    assert!(slowly.worst_ms <= at_once.worst_ms);
}
