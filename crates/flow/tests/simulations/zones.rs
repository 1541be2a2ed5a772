//! Three zones with two gateways each. Targets of one zone fail one after the other, and come back.

use crate::chart::{Chart, Line, Panel};
use weir_flow::balancer::{Balancer, BalancingAlgorithm, Load, TargetSpec, Zones};

const STEPS: usize = 120;
const CALLS: usize = 300;
const TARGETS: usize = 12;

/// How many of the first zone's four targets are usable.
fn alive(step: usize) -> usize {
    match step {
        20..40 => 3,
        40..60 => 1,
        60..80 => 0,
        _ => 4,
    }
}

struct Step {
    /// Percent of the calls that leave their zone.
    leave: f64,
    /// The busiest target's calls, to the average of the usable ones.
    busiest: f64,
}

fn run(is_aware: bool, algorithm: BalancingAlgorithm) -> Vec<Step> {
    let specs: Vec<TargetSpec> = (0..TARGETS)
        .map(|n| TargetSpec {
            id: format!("10.0.{}.{}:80", n / 4, n % 4),
            weight: 1,
            priority: 0,
        })
        .collect();
    let of: Box<[Option<u16>]> = (0..TARGETS).map(|n| Some(n as u16 / 4)).collect();
    let gateways: Vec<(usize, Balancer)> = (0..6)
        .map(|gateway| {
            let zone = gateway / 2;
            let balancer = Balancer::new(&specs, algorithm, 3);
            let zones = Zones {
                of: of.clone(),
                own: zone as u16,
                shares: [1, 1, 1].into(),
            };
            (
                zone,
                if is_aware {
                    balancer.with_zones(zones)
                } else {
                    balancer
                },
            )
        })
        .collect();
    let mut states: Vec<_> = gateways
        .iter()
        .zip(0..)
        .map(|((_, it), seed)| it.new_state(seed))
        .collect();
    (0..STEPS)
        .map(|step| {
            // The first zone's targets fail from the end.
            let usable = |target: usize| target >= 4 || target < alive(step);
            let mut calls = [0_usize; TARGETS];
            let mut left = 0;
            for _ in 0..CALLS {
                for ((zone, balancer), state) in gateways.iter().zip(&mut states) {
                    let target = balancer.pick(state, None, |_| Load::default(), usable).unwrap();
                    calls[target] += 1;
                    left += usize::from(target / 4 != *zone);
                }
            }
            let all = CALLS * gateways.len();
            let up = (0..TARGETS).filter(|it| usable(*it)).count();
            Step {
                leave: left as f64 / all as f64 * 100.0,
                busiest: calls.into_iter().max().unwrap() as f64 / (all as f64 / up as f64),
            }
        })
        .collect()
}

fn line(name: &'static str, steps: &[Step], value: impl Fn(&Step) -> f64) -> Line {
    let points = steps.iter().enumerate();
    Line {
        name,
        points: points.map(|(at, step)| (at as f64, value(step))).collect(),
    }
}

#[test]
fn calls_stay_in_their_zone_and_targets_stay_even() {
    let (plain, aware) = (
        run(false, BalancingAlgorithm::RoundRobin),
        run(true, BalancingAlgorithm::RoundRobin),
    );
    for (at, step) in aware.iter().enumerate() {
        // The usable targets are counted again every 16 calls at most.
        if at % 20 != 0 {
            assert!(step.busiest < 1.25, "step {at}: {}", step.busiest);
        }
    }
    assert!(aware[10].leave < 0.001 && plain[10].leave > 60.0);
    assert!(
        aware[70].leave < 40.0 && plain[70].leave > 60.0,
        "{}",
        aware[70].leave
    );
    let chart = Chart {
        title: "Zone awareness: the first of three zones loses 1, 3 and all of its 4 targets",
        axis: "seconds",
        panels: vec![
            Panel {
                title: "calls that leave their zone, percent",
                lines: vec![
                    line("not aware", &plain, |step| step.leave),
                    line("zone aware", &aware, |step| step.leave),
                ],
            },
            Panel {
                title: "calls of the busiest target, to the average",
                lines: vec![
                    line("not aware", &plain, |step| step.busiest),
                    line("zone aware", &aware, |step| step.busiest),
                ],
            },
        ],
    };
    chart.check("zones");
}

#[test]
fn other_algorithms_know_zones_too() {
    for algorithm in [BalancingAlgorithm::LeastConnections, BalancingAlgorithm::Ewma] {
        let aware = run(true, algorithm);
        assert!(aware[10].leave < 0.001, "{algorithm:?}");
        assert!(aware[70].busiest < 1.5, "{algorithm:?}: {}", aware[70].busiest);
    }
}
