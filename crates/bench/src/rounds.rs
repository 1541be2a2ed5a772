//! One experiment under the closed loop: every gateway is configured, probed, warmed up, and then measured in
//! interleaved rounds; CPU time per call is the figure, the rest stands beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use crate::bench::Bench;
use crate::cpu::CpuTime;
use crate::experiment::Experiment;
use crate::gateway::{BAR, Gateway};
use crate::load::{Counted, Wrk};
use crate::report::{Spread, Table};
use crate::running::Running;
use crate::upstream::Upstream;

/// The load before anything counts.
const WARM_UP: Duration = Duration::from_secs(2);

/// One valid round of one gateway.
#[derive(Debug, Clone, Copy)]
struct Round {
    counted: Counted,
    cpu_us: f64,
    user_us: f64,
    busy: f64,
}

/// A gateway in one experiment: what it measured, until something made its row invalid.
#[derive(Debug)]
struct Contender {
    gateway: &'static Gateway,
    state: Result<Running, String>,
    rounds: Vec<Round>,
}

/// Measures one experiment and prints its table; `false` when a row has no figure.
///
/// # Errors
/// The upstream, the load or the report fails; a gateway's failure is a row of the table.
pub fn run(bench: &Bench, experiment: &Experiment) -> Result<bool> {
    let directory = bench.directory(experiment.id)?;
    let upstream = Upstream::start(
        &directory.join("upstream"),
        experiment.body_bytes,
        bench.pinning.upstream,
        &bench.supervisor,
    )?;
    let wrk = Wrk::new(
        &bench.supervisor,
        &directory,
        bench.pinning.load,
        bench.options.connections,
    )?;
    let mut contenders: Vec<Contender> = bench
        .gateways()
        .iter()
        .map(|gateway| enter(bench, gateway, experiment, &upstream, &directory))
        .collect();
    for round in 0..=bench.options.rounds {
        for contender in &mut contenders {
            contender.measure(bench, experiment, &wrk, round)?;
        }
    }
    let table = tabulate(bench, experiment, &contenders)?;
    bench.rows.table(&table)?;
    Ok(table.is_complete())
}

fn enter(
    bench: &Bench,
    gateway: &'static Gateway,
    experiment: &Experiment,
    upstream: &Upstream,
    directory: &Path,
) -> Contender {
    let start = || {
        let running = bench.start(gateway, experiment, upstream.address, directory, gateway.name)?;
        running.probe(experiment)?;
        anyhow::Ok(running)
    };
    Contender {
        gateway,
        state: start().map_err(|error| format!("{error:#}")),
        rounds: Vec::new(),
    }
}

impl Contender {
    /// Round 0 is the warm-up.
    fn measure(&mut self, bench: &Bench, experiment: &Experiment, wrk: &Wrk, round: u32) -> Result<()> {
        let Ok(running) = &mut self.state else {
            return Ok(());
        };
        let duration = if round == 0 {
            WARM_UP
        } else {
            Duration::from_secs(bench.options.duration.into())
        };
        match measure_once(bench, running, experiment, wrk, duration) {
            Ok(_) if round == 0 => {}
            Ok(measured) => {
                let name = format!(
                    "{} round {round}/{} {}",
                    experiment.id, bench.options.rounds, self.gateway
                );
                bench.rows.progress(&format!(
                    "{name}: {:.0} calls/s, {:.2} µs CPU per call",
                    measured.counted.calls_per_second, measured.cpu_us
                ));
                self.note(bench, experiment, round, &measured)?;
                self.rounds.push(measured);
            }
            Err(error) => self.state = Err(format!("round {round}: {error:#}")),
        }
        Ok(())
    }

    fn note(&self, bench: &Bench, experiment: &Experiment, round: u32, measured: &Round) -> Result<()> {
        bench.rows.raw(&json!({
            "row": "round", "experiment": experiment.id, "gateway": self.gateway.name, "round": round,
            "calls": measured.counted.calls, "calls_per_second": measured.counted.calls_per_second,
            "cpu_us_per_call": measured.cpu_us, "user_cpu_us_per_call": measured.user_us,
            "core_busy": measured.busy, "p50_us": measured.counted.p50_us, "p99_us": measured.counted.p99_us,
        }))
    }
}

fn measure_once(
    bench: &Bench,
    running: &mut Running,
    experiment: &Experiment,
    wrk: &Wrk,
    duration: Duration,
) -> Result<Round> {
    let pid = running.process.pid();
    let started = Instant::now();
    let before = CpuTime::of(pid, bench.clock);
    let counted = wrk.run(running.place.listen, experiment, duration)?;
    let used = CpuTime::of(pid, bench.clock).since(before);
    let elapsed = started.elapsed();
    if let Some(status) = running.process.ended()? {
        bail!("the gateway ended ({status}):\n{}", running.process.last_words());
    }
    if counted.errors() > 0 {
        bail!(
            "of {} calls {} were refused (status not 2xx or 3xx), and {} socket errors",
            counted.calls,
            counted.refused,
            counted.socket_errors
        );
    }
    if counted.calls == 0 || used.total.is_zero() {
        bail!(
            "{} calls and {:?} of CPU time: nothing was measured",
            counted.calls,
            used.total
        );
    }
    let cpu_us = used.total.as_secs_f64() * 1e6 / counted.calls as f64;
    let busy = used.total.as_secs_f64() / elapsed.as_secs_f64();
    Ok(Round {
        counted,
        cpu_us,
        user_us: cpu_us * used.user_share(),
        busy,
    })
}

fn tabulate(bench: &Bench, experiment: &Experiment, contenders: &[Contender]) -> Result<Table> {
    let title = format!(
        "{} · {} · {} bytes of body",
        experiment.id, experiment.title, experiment.body_bytes
    );
    let columns = [
        "gateway",
        "calls/s",
        "CPU µs/call",
        "of it user",
        "ratio to nginx",
        "core busy",
        "p50 µs",
        "p99 µs",
        "errors",
    ];
    let mut table = Table::new(title, &columns);
    let bar: Option<&Contender> = contenders
        .iter()
        .find(|contender| contender.gateway.name == BAR && contender.state.is_ok());
    for contender in contenders {
        let cells = match &contender.state {
            Ok(_) => contender
                .cells(bar)
                .ok_or_else(|| "no round was measured".to_owned()),
            Err(reason) => Err(reason.clone()),
        };
        bench.rows.raw(&contender.summary(experiment, bar))?;
        table.row(contender.gateway.name, cells);
    }
    if contenders.iter().any(Contender::was_waiting) {
        table.footnote(
            "A gateway's core was partly idle: calls/s and latency show the limit of the load's core, not its own."
                .to_owned(),
        );
    }
    Ok(table)
}

impl Contender {
    fn spread(&self, figure: impl Fn(&Round) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(figure))
    }

    /// Its core was idle for more than a tenth of the time, so something else set the pace.
    fn was_waiting(&self) -> bool {
        self.state.is_ok()
            && self
                .spread(|round| round.busy)
                .is_some_and(|busy| busy.median < 0.9)
    }

    /// CPU time per call against that of the bar's neighbouring round. The median of these pairs, not the ratio of the
    /// medians: a virtual machine changes its speed by a fifth from one minute to the next, which a pair shares.
    fn ratio(&self, bar: Option<&Self>) -> Option<Spread> {
        Spread::of(
            self.rounds
                .iter()
                .zip(&bar?.rounds)
                .map(|(mine, its)| mine.cpu_us / its.cpu_us),
        )
    }

    fn cells(&self, bar: Option<&Self>) -> Option<Vec<String>> {
        Some(vec![
            self.spread(|round| round.counted.calls_per_second)?.text(0),
            self.spread(|round| round.cpu_us)?.text(2),
            format!("{:.1}", self.spread(|round| round.user_us)?.median),
            self.ratio(bar)
                .map_or_else(|| "–".to_owned(), |ratio| ratio.text(2)),
            format!("{:.0} %", 100.0 * self.spread(|round| round.busy)?.median),
            format!("{:.0}", self.spread(|round| round.counted.p50_us)?.median),
            format!("{:.0}", self.spread(|round| round.counted.p99_us)?.median),
            "0".to_owned(),
        ])
    }

    fn summary(&self, experiment: &Experiment, bar: Option<&Self>) -> serde_json::Value {
        let (experiment, gateway) = (experiment.id, self.gateway.name);
        if let Err(reason) = &self.state {
            return json!({ "row": "result", "experiment": experiment, "gateway": gateway, "invalid": reason });
        }
        json!({
            "row": "result", "experiment": experiment, "gateway": gateway,
            "calls_per_second": self.spread(|round| round.counted.calls_per_second).map(|spread| spread.median),
            "cpu_us_per_call": self.spread(|round| round.cpu_us).map(|spread| spread.median),
            "ratio_to_nginx": self.ratio(bar).map(|ratio| ratio.median),
        })
    }
}
