//! Runs experiments: every gateway is configured, proven equal by the same probe calls, warmed up, and measured in
//! interleaved rounds. What the results file holds already is not measured again.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, GatewayInstall};
use crate::experiment::{Direct, Experiment};
use crate::load::Loader;
use crate::measure::{self, Target};
use crate::probe;
use crate::results::{AbsentResult, Conditions, DIRECT, Line, Results};
use crate::running::Running;
use crate::terminal::{note, progress};
use crate::upstream::{ResponseKind, Upstream};

const WARM_UP_SECONDS: u32 = 2;

/// Something that is measured: a gateway or the API itself.
struct Contender {
    name: String,
    conditions: Conditions,
    address: SocketAddr,
    /// None for the API itself.
    running: Option<Running>,
}

/// Measures one experiment into `results`, and prints its table; `false` when a row has no figure.
///
/// # Errors
/// The upstream, the load or the results file fails; a gateway's failure is a row of the table.
pub fn run(bench: &Bench, experiment: &Experiment, results: &mut Results) -> Result<bool> {
    if is_finished(bench, experiment, results) {
        progress(&format!(
            "{experiment}: measured already, in {}",
            results.path.display()
        ));
        return conclude(bench, experiment, results);
    }
    let directory = bench.directory(experiment.id)?;
    let upstream = bench.upstream(&directory.join("upstream"), ResponseKind::of(experiment))?;
    let loader = Loader::new(&bench.supervisor, &directory, bench.pinning.load);
    let mut contenders = enter_all(bench, experiment, &upstream, &directory, results)?;
    for rate in experiment.rates() {
        for round in 0..=bench.options.rounds {
            // A contender that fails leaves; its place among the others stays.
            let mut at = 0;
            while at < contenders.len() {
                match turn(
                    bench,
                    experiment,
                    &upstream,
                    &loader,
                    &contenders[at],
                    (rate, round),
                    results,
                ) {
                    Ok(()) => at += 1,
                    Err(error) => {
                        let gone = contenders.remove(at);
                        let words = gone
                            .running
                            .map(|mut running| last_words(&mut running))
                            .unwrap_or_default();
                        absent(
                            results,
                            experiment,
                            &gone.name,
                            format!("round {round}: {error:#}{words}"),
                        )?;
                    }
                }
            }
        }
    }
    drop(contenders);
    conclude(bench, experiment, results)
}

/// The gateway's own last words, if it has ended.
fn last_words(running: &mut Running) -> String {
    match running.process.ended() {
        Ok(Some(status)) => format!("; it ended ({status}):\n{}", running.process.last_words()),
        _ => String::new(),
    }
}

fn absent(results: &mut Results, experiment: &Experiment, gateway: &str, reason: String) -> Result<()> {
    progress(&format!("{experiment} {gateway}: {reason}"));
    results.add(Line::Absent(AbsentResult {
        experiment: experiment.id.to_owned(),
        gateway: gateway.to_owned(),
        reason,
    }))
}

fn conclude(bench: &Bench, experiment: &Experiment, results: &Results) -> Result<bool> {
    let summaries = crate::summary::of(results.lines(), experiment.id);
    let names = names(bench, experiment);
    let summaries: Vec<_> = summaries
        .into_iter()
        .filter(|it| names.contains(&it.gateway))
        .collect();
    let table = crate::tables::of(experiment, &summaries);
    crate::terminal::table(&table)?;
    Ok(summaries
        .iter()
        .all(|it| it.absent.is_none() || is_excused(bench, experiment, &it.gateway)))
}

/// A gateway that is not on this machine, or has not what the experiment asks for, is no failure of the run.
fn is_excused(bench: &Bench, experiment: &Experiment, name: &str) -> bool {
    let cannot = |found: &GatewayInstall| {
        found.program.is_err() || bench.refuses(&found.gateway, experiment).is_some()
    };
    bench
        .gateways
        .iter()
        .any(|found| found.gateway.name == name && cannot(found))
}

fn names(bench: &Bench, experiment: &Experiment) -> Vec<String> {
    let direct = (experiment.direct != Direct::No).then(|| DIRECT.to_owned());
    let gateways = bench.gateways.iter().map(|found| found.gateway.name.clone());
    match experiment.direct {
        Direct::Only => direct.into_iter().collect(),
        Direct::No | Direct::Also => direct.into_iter().chain(gateways).collect(),
    }
}

fn is_finished(bench: &Bench, experiment: &Experiment, results: &Results) -> bool {
    let is_measured = |name: &str, version: &str| {
        let conditions = bench.conditions(experiment, version);
        experiment.rates().into_iter().all(|rate| {
            (1..=bench.options.rounds).all(|round| results.has(experiment.id, name, rate, round, &conditions))
        })
    };
    names(bench, experiment).iter().all(|name| {
        let found = bench.gateways.iter().find(|found| found.gateway.name == *name);
        is_measured(name, found.map_or(DIRECT, |found| &found.version))
    })
}

fn enter_all(
    bench: &Bench,
    experiment: &Experiment,
    upstream: &Upstream,
    directory: &Path,
    results: &mut Results,
) -> Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    for name in names(bench, experiment) {
        let found = bench.gateways.iter().find(|found| found.gateway.name == name);
        let Some(found) = found else {
            contenders.push(Contender {
                conditions: bench.conditions(experiment, DIRECT),
                name,
                address: upstream.address,
                running: None,
            });
            continue;
        };
        progress(&format!("{experiment}: starting and probing {name}"));
        match enter(bench, experiment, found, upstream, directory) {
            Ok(running) => contenders.push(Contender {
                conditions: bench.conditions(experiment, &found.version),
                name,
                address: running.place.listen,
                running: Some(running),
            }),
            Err(error) => absent(results, experiment, &name, format!("{error:#}"))?,
        }
    }
    Ok(contenders)
}

/// Starts a gateway and proves that it does what the experiment asks for, its limit with a low one first.
fn enter(
    bench: &Bench,
    experiment: &Experiment,
    found: &GatewayInstall,
    upstream: &Upstream,
    directory: &Path,
) -> Result<Running> {
    let (gateway, name) = (&found.gateway, &found.gateway.name);
    let api = upstream.address_for(gateway, experiment);
    if let Some(low) = probe::with_low_limit(experiment).filter(|_| !gateway.plain) {
        let running = bench.start(found, &low, api, directory, &format!("{name}-low-limit"))?;
        probe::check_low_limit(running.place.listen, &low)?;
    }
    let running = bench.start(found, experiment, api, directory, name)?;
    probe::check(running.place.listen, experiment, gateway.plain)?;
    Ok(running)
}

/// One round of one contender; round 0 is the warm-up.
fn turn(
    bench: &Bench,
    experiment: &Experiment,
    upstream: &Upstream,
    loader: &Loader,
    contender: &Contender,
    (rate, number): (Option<u32>, u32),
    results: &mut Results,
) -> Result<()> {
    let name = &contender.name;
    if results.has(experiment.id, name, rate, number, &contender.conditions) {
        return Ok(());
    }
    let target = Target {
        address: contender.address,
        pid: contender.running.as_ref().map(|running| running.process.pid()),
        upstream: upstream.process.pid(),
    };
    let mut conditions = contender.conditions.clone();
    if number == 0 {
        conditions.seconds = WARM_UP_SECONDS.min(conditions.seconds);
    }
    let at = rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    progress(&format!(
        "{experiment}{at} round {number}/{} {name} …",
        bench.options.rounds
    ));
    let mut round = measure::round(bench, target, experiment, rate, &conditions, loader)?;
    if number == 0 {
        return Ok(());
    }
    (round.gateway, round.round) = (name.clone(), number);
    progress(&format!(
        "{experiment}{at} round {number}/{} {name}: {}",
        bench.options.rounds,
        crate::tables::in_a_line(&round)
    ));
    results.add(Line::Round(Box::new(round)))
}

/// How long the experiments take at least, for the progress display.
pub fn duration(bench: &Bench, experiments: &[&Experiment]) -> Duration {
    let here = bench
        .gateways
        .iter()
        .filter(|found| found.program.is_ok())
        .count() as u32;
    let seconds = experiments.iter().map(|experiment| {
        let round = bench.options.duration + u32::from(experiment.rates()[0].is_some());
        let rounds = bench.options.rounds * round + WARM_UP_SECONDS;
        let contenders = match experiment.direct {
            Direct::No => here,
            Direct::Also => here + 1,
            Direct::Only => 1,
        };
        experiment.rates().len() as u32 * contenders * rounds
    });
    Duration::from_secs(seconds.sum::<u32>().into())
}

/// Says how long the experiments take at least.
///
/// # Errors
/// The reader has gone.
pub fn announce(bench: &Bench, experiments: &[&Experiment]) -> Result<()> {
    let ids: Vec<&str> = experiments.iter().map(|experiment| experiment.id).collect();
    let minutes = duration(bench, experiments).as_secs().div_ceil(60);
    note(&format!("{}: {minutes} minutes of load", ids.join(", ")))
}
