//! The command line: what is asked for, checked before anything starts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use crate::bench::{Bench, GatewayInstall, Options, is_debug};
use crate::experiment::{self, EXPERIMENTS, Experiment, Load};
use crate::results::{self, Results};
use crate::table::Table;
use crate::terminal::{self, note};
use crate::{
    baseline, compare, machine, memory, plugin_costs, publish, reload, render, report, scale, stall, suite,
    writes,
};

/// Where reports go when no folder is named.
const REPORTS: &str = "target/bench";

/// Compares Weir with its peers: CPU per call, calls per second, latency, memory, reloads
#[derive(Debug, Parser)]
#[command(version)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Experiments to run, as `weir-bench list` names them: N1 to N4, A1 to A4, G0 to G4, …, or all; without any, A1 to
    /// A4 and N4
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Folder of the results and the report; a run that was interrupted goes on there [default: a new one below
    /// target/bench]
    #[arg(long, global = true, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Shows what changed since another run
    #[arg(long, value_name = "OLD.jsonl")]
    compare: Option<PathBuf>,
    /// The guard: A1 to A4 and N4 of NGINX and Weir in three rounds of two seconds; fails when CPU per call relative to
    /// NGINX is worse than the checked-in baseline, beyond the noise
    #[arg(long)]
    quick: bool,
    /// The baseline of --quick, instead of the checked-in one
    #[arg(long, value_name = "FILE", requires = "quick")]
    baseline: Option<PathBuf>,
    /// Writes what --quick measured as a new baseline instead of failing
    #[arg(long, value_name = "FILE", requires = "quick")]
    record_baseline: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every experiment, and every gateway with its program on this machine
    List,
    /// Writes every configuration and the commands that repeat an experiment by hand
    Render {
        /// Folder, which must not exist
        folder: PathBuf,
    },
    /// Writes the report of a results file again
    Report {
        /// Folder with results.jsonl
        folder: PathBuf,
    },
    /// Shows what changed between two runs
    Compare {
        /// The earlier results
        old: PathBuf,
        /// The later results
        new: PathBuf,
    },
    /// Proves the constant-rate load against a server that stalls: the stall must show in the right percentile
    Stall {
        /// Calls per second
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
        rate: u32,
        /// Milliseconds for which the server stands still in each second
        #[arg(long, value_name = "MS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
        stall: u32,
    },
    /// Resident memory: idle, with 5,000 routes, with 1,000 idle clients, while a large body passes
    Memory {
        /// Size of the large body
        #[arg(long, value_name = "BYTES", default_value_t = 1_000_000_000)]
        body_bytes: u64,
    },
    /// Latency at a constant rate of your own, corrected for coordinated omission
    Latency {
        /// Calls per second
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        rate: u32,
        /// The experiment whose configuration and calls are used
        #[arg(long, default_value = "A1")]
        experiment: String,
    },
    /// Changes of the configuration file under load: no call may fail
    Reload {
        /// Number of changes
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        changes: u32,
        /// Calls per second meanwhile
        #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        rate: u32,
    },
    /// The CPU time that each plugin adds to a call, compared with a route without it in the same process
    Plugins(plugin_costs::Args),
    /// Writes to a control plane while a gateway that follows it serves a load: how much the load feels of them
    Writes {
        /// Writes per second
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        rate: u32,
        /// Seconds of writes
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
    },
    /// Publishes an API of many operations again and again while gateways that follow the control plane serve a load: how
    /// long a publish takes, when all gateways serve it, and whether a call is lost
    Publish {
        /// Operations of the API
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        operations: u32,
        /// Publishes, one after the other
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        publishes: u32,
        /// Calls per second meanwhile
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        rate: u32,
        /// Gateways that follow the control plane; the load goes to the first one
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
        followers: u32,
    },
    /// A large fleet by simulation: measures what a document, a change and a call cost on this machine, simulates the
    /// fleet from that, and checks the simulation with a real fleet of a twentieth
    Scale(scale::Args),
}

/// Does what is asked for; `true` when every row has its figure and nothing got worse.
///
/// # Errors
/// Something is wrong with the command line, the machine or a file.
pub fn run(mut line: CommandLine) -> Result<bool> {
    match line.command.take() {
        Some(_) if !line.experiments.is_empty() => {
            bail!("experiments and a command cannot be given together")
        }
        Some(command) => run_command(command, line),
        None => run_experiments(line),
    }
}

fn run_command(command: Command, line: CommandLine) -> Result<bool> {
    let options = line.options.clone();
    match command {
        Command::List => list(&options),
        Command::Render { folder } => render::run(&options, &folder),
        Command::Report { folder } => {
            let lines = results::read(&folder.join(results::FILE))?;
            report::write(&lines, &folder)?;
            Ok(true)
        }
        Command::Compare { old, new } => {
            compare::print(&results::read(&old)?, &results::read(&new)?)?;
            Ok(true)
        }
        Command::Stall { rate, stall } => stall::run(rate, stall),
        Command::Memory { body_bytes } => {
            let mut results = open(line.report.as_deref())?;
            memory::run(&Bench::new(options)?, body_bytes, &mut results)
        }
        Command::Reload { changes, rate } => {
            let mut results = open(line.report.as_deref())?;
            reload::run(&Bench::new(options)?, changes, rate, &mut results)
        }
        Command::Plugins(args) => {
            let mut results = open(line.report.as_deref())?;
            plugin_costs::run(&Bench::new(options)?, &args, &mut results)
        }
        Command::Writes { rate, seconds } => {
            let mut results = open(line.report.as_deref())?;
            writes::run(&Bench::new(options)?, rate, seconds, &mut results)
        }
        Command::Publish {
            operations,
            publishes,
            rate,
            followers,
        } => {
            let mut results = open(line.report.as_deref())?;
            let size = publish::Size {
                operations,
                publishes,
                rate,
                followers,
            };
            publish::run(&Bench::new(options)?, size, &mut results)
        }
        Command::Scale(args) => {
            let mut results = open(line.report.as_deref())?;
            scale::run(&Bench::new(options)?, &args, &mut results)
        }
        Command::Latency { rate, experiment } => {
            let named = experiment::select(&[experiment])?;
            let [experiment] = named[..] else {
                bail!("latency is measured for one experiment at a time")
            };
            let experiment = Experiment {
                // It lives as long as the program: there is one.
                load: Load::Rates(Box::leak(Box::new([rate]))),
                ..*experiment
            };
            let mut results = open(line.report.as_deref())?;
            suite::run(&Bench::new(options)?, &experiment, &mut results)
        }
    }
}

fn run_experiments(mut line: CommandLine) -> Result<bool> {
    if line.quick {
        if !line.experiments.is_empty() {
            bail!(
                "--quick measures {}; name no experiments with it",
                baseline::EXPERIMENTS.join(", ")
            );
        }
        line.experiments = baseline::EXPERIMENTS.map(str::to_owned).into();
        baseline::GATEWAYS.clone_into(&mut line.options.gateways);
        (line.options.rounds, line.options.duration) = baseline::ROUNDS;
    }
    let selected = experiment::select(&line.experiments)?;
    let old = line.compare.as_deref().map(results::read).transpose()?;
    let bench = Bench::new(line.options)?;
    if bench.gateways.iter().all(|found| found.program.is_err()) {
        bail!("none of the gateways is on this machine");
    }
    if line.quick {
        let debug = |found: &&GatewayInstall| found.program.as_ref().is_ok_and(|program| is_debug(program));
        if let Some(found) = bench.gateways.iter().find(debug) {
            bail!(
                "{} is a debug build: build it with --release for --quick",
                found.gateway
            );
        }
    }
    let mut results = open(line.report.as_deref())?;
    suite::announce(&bench, &selected)?;
    let mut complete = true;
    for experiment in selected {
        complete &= suite::run(&bench, experiment, &mut results)?;
        let folder = results.path.parent().unwrap_or(Path::new(".")).to_owned();
        report::write(results.lines(), &folder)?;
    }
    if let Some(old) = old {
        compare::print(&old, results.lines())?;
    }
    if let Some(file) = line.record_baseline {
        baseline::record(results.lines(), &file)?;
    } else if line.quick {
        complete &= baseline::check(results.lines(), line.baseline.as_deref())?;
    }
    note(&format!(
        "\nreport and raw rows: {}",
        results.path.with_file_name("index.html").display()
    ))?;
    Ok(complete)
}

/// The results file in `folder`, or in a new folder of this run.
fn open(folder: Option<&Path>) -> Result<Results> {
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => Path::new(REPORTS).join(machine::date(machine::now()).replace(' ', "T").replace(':', "-")),
    };
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Results::open(&folder.join(results::FILE))
}

fn list(options: &Options) -> Result<bool> {
    let mut table = Table::new(
        "Experiments".to_owned(),
        &["id", "by default", "load", "what it is"],
    );
    for experiment in &EXPERIMENTS {
        let load = match experiment.load {
            Load::Closed => format!("closed loop, {} connections", experiment.connections),
            Load::Rates(rates) => format!(
                "{} calls/s",
                rates.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
            ),
            Load::Single => "single calls".to_owned(),
            Load::Handshakes => format!("handshakes, {} at once", experiment.connections),
        };
        let default = if experiment.default { "yes" } else { "" };
        table.row(
            experiment.id,
            Ok(vec![default.to_owned(), load, experiment.title.to_owned()]),
        );
    }
    terminal::table(&table)?;
    let mut table = Table::new(
        "Gateways".to_owned(),
        &["name", "what it is", "version", "program"],
    );
    let given = options.given();
    for gateway in options.known_gateways()? {
        let found = GatewayInstall::of(gateway, &given);
        let cells = match &found.program {
            Ok(program) => Ok(vec![
                found.gateway.title.clone(),
                found.version.clone(),
                program.display().to_string(),
            ]),
            Err(reason) => Err(reason.clone()),
        };
        table.row(&found.gateway.name, cells);
    }
    terminal::table(&table)?;
    Ok(true)
}
