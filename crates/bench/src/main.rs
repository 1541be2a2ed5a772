//! `weir-bench`: the field's published experiments for Weir and NGINX, side by side in one run.
//!
//! Every figure is compared inside one run on one machine: the gateway under test has a core for itself, rounds are
//! interleaved, medians are shown with their spread, and a row without a valid measurement says why instead of a number.
//! The bench starts programs and talks HTTP to them; it links nothing of the gateway.

mod bench;
mod byte_server;
mod client;
mod cores;
mod cpu;
mod experiment;
mod gateway;
mod latency;
mod load;
mod memory;
mod process;
mod procfs;
mod reload;
mod report;
mod rounds;
mod running;
mod schedule;
mod sender;
mod template;
mod token;
mod upstream;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use crate::bench::{Bench, Options};

/// Measures Weir beside NGINX: CPU per call, calls per second, latency, memory, reloads
#[derive(Debug, Parser)]
#[command(version)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Experiments to run: A1 A2 A3 A4 N4 (these when none is named), R100K, B0, B1K, B100K, or all
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Resident memory: idle, with 5,000 routes, with 1,000 idle clients, while a large body passes
    Memory {
        /// Size of the large body
        #[arg(long, value_name = "BYTES", default_value_t = 1_000_000_000)]
        body_bytes: u64,
    },
    /// Latency at a constant rate, corrected for coordinated omission
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
}

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    match run(command_line) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("weir-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `true` when every row has its figure.
fn run(command_line: CommandLine) -> Result<bool> {
    let CommandLine {
        command,
        experiments,
        options,
    } = command_line;
    if command.is_some() && !experiments.is_empty() {
        bail!("experiments and a command cannot be given together");
    }
    match command {
        Some(Command::Memory { body_bytes }) => memory::run(&Bench::new(options)?, body_bytes),
        Some(Command::Latency { rate, experiment }) => {
            let named = experiment::select(&[experiment])?;
            let [experiment] = named[..] else {
                bail!("latency is measured for one experiment at a time")
            };
            latency::run(&Bench::new(options)?, experiment, rate)
        }
        Some(Command::Reload { changes, rate }) => reload::run(&Bench::new(options)?, changes, rate),
        None => {
            let selected = experiment::select(&experiments)?;
            let bench = Bench::new(options)?;
            let mut complete = true;
            for experiment in selected {
                complete &= rounds::run(&bench, experiment)?;
            }
            Ok(complete)
        }
    }
}
