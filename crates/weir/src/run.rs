//! `weir run`.

use crate::args::RunArgs;

/// Serves the configuration until it is told to stop.
pub fn run(args: RunArgs) -> anyhow::Result<()> {
    let _ = args;
    anyhow::bail!("this build cannot serve yet")
}
