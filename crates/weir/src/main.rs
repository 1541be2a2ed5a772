//! The `weir` binary: flags in, parts wired together.
//!
//! `args` holds the command line; `load` turns files into what is served, for all commands alike; `run` serves
//! it; `check` and `explain` talk about it; `plugins` lists the catalogue; `remote` talks to one that runs. **What it
//! is not**: a place for logic that a request needs.

mod args;
mod assemble;
mod bench;
mod certificates;
mod check;
mod clock;
mod command_output;
mod dialects;
mod explain;
mod guards;
mod load;
mod manual;
mod plugins;
mod remote;
mod run;
mod seconds;
mod status;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => match run::run(*args) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => {
                let code = if error.is::<run::UsageError>() { 2 } else { 1 };
                command_output::CommandOutput::failed(code, format!("weir: {error:#}\n"))
            }
        },
        Command::Check(args) => check::check(&args),
        Command::Convert(args) => check::convert(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Plugins(args) => plugins::plugins(&args),
        Command::User(args) => remote::user(&args),
        Command::Developer(args) => remote::developer(&args),
        Command::History(args) => remote::history(&args),
        Command::Diff(args) => remote::diff(&args),
        Command::Rollback(args) => remote::rollback(&args),
        Command::Import(args) => remote::import(&args),
        Command::Api(args) => remote::api(&args),
        Command::Portal(args) => remote::portal(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    };
    outcome.print()
}
