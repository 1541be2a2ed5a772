//! `weir-bench`: the field's published experiments for Weir and NGINX, side by side in one run.
//!
//! Every figure is compared inside one run on one machine: the gateway under test has a core for itself, rounds are
//! interleaved, medians are shown with their spread, and a row without a valid measurement says why instead of a number.
//! The bench starts programs and talks HTTP to them; it links nothing of the gateway.

mod bench;
mod client;
mod cores;
mod cpu;
mod experiment;
mod gateway;
mod load;
mod process;
mod procfs;
mod report;
mod rounds;
mod template;
mod token;
mod upstream;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::{Bench, Options};

/// Measures Weir beside NGINX: CPU per call, calls per second, latency, memory, reloads
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = false)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Experiments to run: A1 A2 A3 A4 N4 (these when none is named), R100K, B0, B1K, B100K, or all
    experiments: Vec<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {}

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
fn run(command_line: CommandLine) -> anyhow::Result<bool> {
    let experiments = experiment::select(&command_line.experiments)?;
    let bench = Bench::new(command_line.options)?;
    let mut complete = true;
    for experiment in experiments {
        complete &= rounds::run(&bench, experiment)?;
    }
    Ok(complete)
}
