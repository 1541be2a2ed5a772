//! One call in fifty is stuck for a fifth of a second, whichever target it is for. Later all calls are slow.

use crate::chart::{Chart, Line, Panel};
use crate::queue::percentile_ms;
use crate::random::Random;
use weir_flow::hedge::{HedgeDelay, LatencyPercentile};
use weir_flow::retry_budget::{BudgetRules, RetryBudget};

const SECONDS: usize = 60;
const CALLS: usize = 1_000;
/// From here on every call is slow: copies could not help, and would only be load.
const SLOW_FROM: usize = 40;
const BUDGET: BudgetRules = BudgetRules {
    percent: 10,
    burst: 10,
};

struct Run {
    p99: Vec<(f64, f64)>,
    copies: Vec<(f64, f64)>,
}

fn run(delay: Option<HedgeDelay>) -> Run {
    let mut random = Random::new(11);
    let percentile = LatencyPercentile::default();
    let budget = RetryBudget::default();
    let mut run = Run {
        p99: Vec::new(),
        copies: Vec::new(),
    };
    for second in 0..SECONDS {
        let mut latencies = Vec::new();
        let mut copies = 0;
        for _ in 0..CALLS {
            let mut latency = || {
                let usual = 4_000.0 + random.exponential(3_000.0);
                let is_stuck = random.unit() < 0.02;
                let slow = if second >= SLOW_FROM { 10.0 } else { 1.0 };
                (usual * slow + if is_stuck { 200_000.0 } else { 0.0 }) as u64
            };
            let first = latency();
            budget.note_call(BUDGET);
            let waits = delay.and_then(|delay| percentile.delay_us(delay));
            let is_copied = waits.is_some_and(|waits| waits < first) && budget.take(BUDGET);
            let answered = match waits {
                Some(waits) if is_copied => first.min(waits + latency()),
                _ => first,
            };
            copies += usize::from(is_copied);
            percentile.note(answered, 95);
            latencies.push(answered);
        }
        run.p99.push((second as f64, percentile_ms(&mut latencies, 0.99)));
        run.copies
            .push((second as f64, copies as f64 / CALLS as f64 * 100.0));
    }
    run
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
}

#[test]
fn copies_cut_the_tail_and_are_bounded() {
    let (plain, fixed, learned) = (
        run(None),
        run(Some(HedgeDelay::AfterMs(20))),
        run(Some(HedgeDelay::Percentile(95))),
    );
    for (name, hedged) in [("fixed", &fixed), ("learned", &learned)] {
        let (before, after) = (mean(&plain.p99[5..SLOW_FROM]), mean(&hedged.p99[5..SLOW_FROM]));
        assert!(after * 4.0 < before, "{name}: {after} and {before} ms");
        let copies: f64 = hedged.copies.iter().map(|point| point.1).sum::<f64>() * CALLS as f64 / 100.0;
        let most = f64::from(BUDGET.burst) + (SECONDS * CALLS) as f64 * f64::from(BUDGET.percent) / 100.0;
        assert!(copies <= most, "{name}: {copies} of {most}");
    }
    assert!(
        mean(&learned.copies[5..SLOW_FROM]) < 8.0,
        "{}",
        mean(&learned.copies[5..SLOW_FROM])
    );
    let chart = Chart {
        title: "Hedging: one call in fifty is stuck; after 40 s every call takes ten times as long",
        axis: "seconds",
        panels: vec![
            Panel {
                title: "p99, ms",
                lines: vec![
                    Line {
                        name: "no copies",
                        points: plain.p99,
                    },
                    Line {
                        name: "after 20 ms",
                        points: fixed.p99,
                    },
                    Line {
                        name: "after p95",
                        points: learned.p99,
                    },
                ],
            },
            Panel {
                title: "copies, percent of the calls (budget 10)",
                lines: vec![
                    Line {
                        name: "no copies",
                        points: plain.copies,
                    },
                    Line {
                        name: "after 20 ms",
                        points: fixed.copies,
                    },
                    Line {
                        name: "after p95",
                        points: learned.copies,
                    },
                ],
            },
        ],
    };
    chart.check("hedging");
}
