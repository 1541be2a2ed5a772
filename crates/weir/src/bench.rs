//! `weir bench`: starts `weir-bench`, which is a program of its own.

use crate::args::BenchArgs;
use crate::command_output::CommandOutput;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "weir-bench";

/// Becomes `weir-bench`. Returns only when that cannot be started.
pub fn bench(args: &BenchArgs) -> CommandOutput {
    let program = beside_this().unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(&args.arguments).exec();
    let message = match error.kind() {
        std::io::ErrorKind::NotFound => format!(
            "weir bench: {PROGRAM} is neither beside this program nor on the PATH; \
             build it with `cargo build --release -p weir-bench`\n"
        ),
        _ => format!("weir bench: {} cannot be started: {error}\n", program.display()),
    };
    CommandOutput::failed(2, message)
}

/// The program in the folder of this one, if it is there.
fn beside_this() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    beside.is_file().then_some(beside)
}
