//! `weir-bench latency`: latency at a constant rate, corrected for coordinated omission, gateways interleaved.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::json;

use crate::bench::Bench;
use crate::client::request;
use crate::experiment::Experiment;
use crate::gateway::Gateway;
use crate::report::{Spread, Table};
use crate::running::Running;
use crate::sender::{Plan, Record, send};
use crate::upstream::Upstream;

const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];
/// The part of a round whose latencies are not kept.
const WARM_UP: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Contender {
    gateway: &'static Gateway,
    state: Result<Running, String>,
    rounds: Vec<Record>,
}

/// Measures latency at `rate` calls per second for one experiment; `false` when a row has no figure.
///
/// # Errors
/// The upstream or the report fails; a gateway's failure is a row of the table.
pub fn run(bench: &Bench, experiment: &Experiment, rate: u32) -> Result<bool> {
    let Some(path) = experiment.path() else {
        bail!(
            "{} asks for many routes; latency is measured on one: A1, A2, A3, N4, B0, B100K",
            experiment.id
        );
    };
    let directory = bench.directory("latency")?;
    let upstream = Upstream::start(
        &directory.join("upstream"),
        experiment.body_bytes,
        bench.pinning.upstream,
        &bench.supervisor,
    )?;
    let enter = |gateway: &&'static Gateway| {
        let running = bench.start(gateway, experiment, upstream.address, &directory, gateway.name)?;
        running.probe(experiment)?;
        anyhow::Ok(running)
    };
    let mut contenders: Vec<Contender> = bench
        .gateways()
        .iter()
        .map(|gateway| Contender {
            gateway,
            state: enter(gateway).map_err(|error| format!("{error:#}")),
            rounds: Vec::new(),
        })
        .collect();
    for round in 1..=bench.options.rounds {
        for contender in &mut contenders {
            let Ok(running) = &contender.state else { continue };
            let target = running.place.listen;
            let plan = Plan {
                target,
                request: request("GET", path, target, &experiment.headers()),
                rate,
                connections: bench.options.connections as usize,
                warm_up: WARM_UP,
                length: Duration::from_secs(bench.options.duration.into()),
            };
            match measure(bench, experiment, contender.gateway, &plan, round) {
                Ok(record) => contender.rounds.push(record),
                Err(error) => contender.state = Err(format!("round {round}: {error:#}")),
            }
        }
    }
    let table = tabulate(experiment, rate, &contenders);
    bench.rows.table(&table)?;
    Ok(table.is_complete())
}

fn measure(
    bench: &Bench,
    experiment: &Experiment,
    gateway: &Gateway,
    plan: &Plan,
    round: u32,
) -> Result<Record> {
    let record = send(plan, &AtomicBool::new(false))?;
    if record.failed() > 0 {
        bail!("{}", record.failures());
    }
    let mut row = json!({
        "row": "latency_round", "experiment": experiment.id, "gateway": gateway.name, "round": round,
        "rate": plan.rate, "calls": record.latency.len(), "max_us": microseconds(record.latency.max()),
        "sender_late_p99.9_us": microseconds(record.lateness.value_at_percentile(99.9)),
    });
    for (name, percentile) in PERCENTILES {
        row[format!("{name}_us")] = microseconds(record.latency.value_at_percentile(percentile)).into();
    }
    bench.rows.raw(&row)?;
    bench.rows.progress(&format!(
        "{} at {}/s, round {round}/{} {gateway}: p99.9 {:.0} µs",
        experiment.id,
        plan.rate,
        bench.options.rounds,
        microseconds(record.latency.value_at_percentile(99.9))
    ));
    Ok(record)
}

fn tabulate(experiment: &Experiment, rate: u32, contenders: &[Contender]) -> Table {
    let title = format!(
        "Latency in µs at a constant {rate} calls/s · {} · {} · from the intended time of each call",
        experiment.id, experiment.title
    );
    let columns = [
        "gateway",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "max (of each round)",
        "errors",
        "sender late p99.9",
    ];
    let mut table = Table::new(title, &columns);
    for contender in contenders {
        let cells = match &contender.state {
            Ok(_) => contender
                .cells()
                .ok_or_else(|| "no round was measured".to_owned()),
            Err(reason) => Err(reason.clone()),
        };
        table.row(contender.gateway.name, cells);
    }
    table.footnote(
        "Medians of the rounds; the last column is the load generator's own share of p99.9.".to_owned(),
    );
    table
}

impl Contender {
    fn cells(&self) -> Option<Vec<String>> {
        let spread = |figure: &dyn Fn(&Record) -> u64| {
            Spread::of(self.rounds.iter().map(|record| microseconds(figure(record))))
        };
        let mut cells = Vec::new();
        for (name, percentile) in PERCENTILES {
            let found = spread(&|record| record.latency.value_at_percentile(percentile))?;
            let text = if name == "p99.9" {
                found.text(0)
            } else {
                format!("{:.0}", found.median)
            };
            cells.push(text);
        }
        cells.push(spread(&|record| record.latency.max())?.text(0));
        cells.push("0".to_owned());
        cells.push(format!(
            "{:.0}",
            spread(&|record| record.lateness.value_at_percentile(99.9))?.median
        ));
        Some(cells)
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}
