//! An upstream of 40 workers that take 10 ms a call can answer 4,000 calls a second. For a while twice as many come; for
//! another while it takes twice as long. Clients give up after a second.

use crate::chart::{Chart, Line, Panel};
use crate::queue::{Server, percentile_ms};
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_flow::overload::{AdaptiveLimit, OverloadRules, Priority};

const SECONDS: u64 = 90;
const GIVE_UP_US: u64 = 1_000_000;
const RULES: OverloadRules = OverloadRules {
    min: 4,
    max: 1_000,
    initial: 20,
    tolerance_percent: 150,
    window_ms: 200,
    probe_ms: 10_000,
};

/// Calls that come in this second, and how long one takes, in microseconds.
fn conditions(second: u64) -> (u64, f64) {
    match second {
        20..45 => (8_000, 10_000.0),
        60..75 => (3_000, 20_000.0),
        _ => (3_000, 10_000.0),
    }
}

#[derive(Default)]
struct Run {
    good: Vec<(f64, f64)>,
    p99: Vec<(f64, f64)>,
    limit: Vec<(f64, f64)>,
    /// Over the flood, by priority: calls that came, and that were shed.
    shed: [(u64, u64); 4],
}

const ORDER: [Priority; 4] = [
    Priority::Critical,
    Priority::High,
    Priority::Normal,
    Priority::Low,
];

/// When calls that are in flight end, and when they came.
#[derive(Default)]
struct Open(BinaryHeap<Reverse<(u64, u64)>>);

impl Open {
    fn end_until(&mut self, now_us: u64, limit: &AdaptiveLimit) {
        while let Some(Reverse((done, came))) = self.0.peek().copied() {
            if done > now_us {
                return;
            }
            self.0.pop();
            limit.leave(Some(done - came), &RULES, done / 1_000);
        }
    }
}

fn run(is_limited: bool) -> Run {
    let mut random = Random::new(5);
    let limit = AdaptiveLimit::new(&RULES);
    let mut server = Server::new(40);
    let mut run = Run::default();
    let mut open = Open::default();
    for second in 0..SECONDS {
        let (calls, takes) = conditions(second);
        let (mut latencies, mut good) = (Vec::new(), 0_u64);
        for call in 0..calls {
            let now_us = second * 1_000_000 + call * 1_000_000 / calls;
            open.end_until(now_us, &limit);
            let class = random.below(4);
            let came = &mut run.shed[class];
            let is_flood = (20..45).contains(&second);
            came.0 += u64::from(is_flood);
            if is_limited && !limit.enter(ORDER[class]) {
                came.1 += u64::from(is_flood);
                continue;
            }
            let done = server.done_us(now_us, random.exponential(takes) as u64);
            if is_limited {
                open.0.push(Reverse((done, now_us)));
            }
            let latency = (done - now_us).min(GIVE_UP_US);
            good += u64::from(latency < GIVE_UP_US);
            latencies.push(latency);
        }
        run.good.push((second as f64, good as f64));
        run.p99.push((second as f64, percentile_ms(&mut latencies, 0.99)));
        run.limit.push((second as f64, f64::from(limit.limit())));
    }
    run
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
}

#[test]
fn an_overloaded_upstream_goes_on_answering() {
    let (plain, limited) = (run(false), run(true));
    // The flood, after the limit has stabilised: without a limit hardly any call is answered in time.
    assert!(mean(&plain.good[25..45]) < 500.0, "{}", mean(&plain.good[25..45]));
    assert!(
        mean(&limited.good[25..45]) > 3_400.0,
        "{}",
        mean(&limited.good[25..45])
    );
    assert!(
        mean(&limited.p99[25..45]) < 150.0,
        "{}",
        mean(&limited.p99[25..45])
    );
    // Without a flood hardly any call is shed.
    assert!(
        mean(&limited.good[5..20]) > 2_950.0,
        "{}",
        mean(&limited.good[5..20])
    );
    let shed = limited.shed.map(|(came, shed)| shed as f64 / came as f64);
    assert!(shed[0] < 0.1, "critical calls are hardly shed: {shed:?}");
    assert!(shed.is_sorted() && shed[3] > 0.8, "{shed:?}");
    let chart = Chart {
        title: "Adaptive concurrency: 8,000 calls a second for 4,000 (20 s to 45 s); twice as slow (60 s to 75 s)",
        axis: "seconds",
        panels: vec![
            Panel {
                title: "calls answered in time, per second",
                lines: vec![
                    Line {
                        name: "no limit",
                        points: plain.good,
                    },
                    Line {
                        name: "adaptive limit",
                        points: limited.good,
                    },
                ],
            },
            Panel {
                title: "p99 of the calls let in, ms",
                lines: vec![
                    Line {
                        name: "no limit",
                        points: plain.p99,
                    },
                    Line {
                        name: "adaptive limit",
                        points: limited.p99,
                    },
                ],
            },
            Panel {
                title: "calls in flight",
                lines: vec![Line {
                    name: "the limit",
                    points: limited.limit,
                }],
            },
        ],
    };
    chart.check("adaptive-concurrency");
}
