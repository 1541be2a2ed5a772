//! Man pages and shell completions, made from the declarations of the command line. **What it is not**: a second
//! place that describes a flag.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::command_output::CommandOutput;
use clap::CommandFactory;
use std::path::Path;

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> CommandOutput {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    CommandOutput::succeeded(String::from_utf8_lossy(&script).into_owned())
}

/// Writes a man page for each command.
pub fn man(args: &ManArgs) -> CommandOutput {
    match write_pages(&args.out) {
        Ok(count) => CommandOutput::succeeded(format!("{count} pages in {}\n", args.out.display())),
        Err(error) => CommandOutput::failed(
            1,
            format!("weir: cannot write to {}: {error}\n", args.out.display()),
        ),
    }
}

/// Writes `weir.1`, `weir-run.1` and so on, and returns how many there are.
fn write_pages(folder: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pending = vec![command];
    let mut count = 0;
    while let Some(command) = pending.pop() {
        pending.extend(
            command
                .get_subcommands()
                .filter(|sub| !sub.is_hide_set())
                .cloned(),
        );
        clap_mangen::Man::new(command).generate_to(folder)?;
        count += 1;
    }
    Ok(count)
}
