//! `weir-bench`: the field's published experiments for Weir and its peers, side by side in one run.
//!
//! Every figure is compared inside one run on one machine: the gateway under test has a core for itself, rounds are
//! interleaved, medians are shown with their spread, and a row without a valid measurement says why instead of a number.
//! The bench starts programs and talks HTTP to them; it links nothing of the gateway.

mod baseline;
mod bench;
mod byte_server;
mod certificate;
mod chart;
mod client;
mod command;
mod compare;
mod control_plane;
mod cores;
mod cpu;
mod curl;
mod experiment;
mod gateway;
mod html;
mod load;
mod loopback;
mod machine;
mod measure;
mod memory;
#[cfg(test)]
#[path = "originals/tests.rs"]
mod originals;
mod overview;
mod picture;
mod plugin_costs;
mod probe;
mod process;
mod procfs;
mod publish;
mod reload;
mod render;
mod report;
mod results;
mod running;
mod scale;
mod schedule;
mod section;
mod sender;
mod single;
mod stall;
mod suite;
mod summary;
mod table;
mod tables;
mod template;
mod terminal;
mod token;
mod upstream;
mod writes;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let command_line = command::CommandLine::parse();
    match command::run(command_line) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("weir-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}
