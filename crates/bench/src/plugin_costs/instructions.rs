//! The instructions that a call costs in user space, counted by callgrind: the same on a busy machine and in a virtual
//! one whose processor counts none, but blind to the kernel and to waiting for memory.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::cases::Case;
use super::closed_loop::ClosedLoop;
use super::gateways::{Gateway, RunContext};
use super::{request, wait_until_idle};
use crate::bench::Bench;
use crate::process::find_program;

/// Calls that are counted, and those before them.
const CALLS: u64 = 1_000;
const WARM_UP: u64 = 200;
const CONNECTIONS: usize = 10;
/// Under callgrind all threads share one core, so work for later takes longer to begin.
const QUIET: Duration = Duration::from_millis(500);

/// A Weir whose instructions are counted.
#[derive(Debug)]
pub struct Counter {
    gateway: Gateway,
    calls: ClosedLoop,
    directory: PathBuf,
    dumps: u32,
}

impl Counter {
    /// Starts it; `None` where valgrind is not installed.
    ///
    /// # Errors
    /// It does not come up.
    pub fn start(
        bench: &Bench,
        weir: &Path,
        context: &RunContext,
        cases: (&str, &[Case]),
        more: &[OsString],
    ) -> Result<Option<Self>> {
        let Some(valgrind) = find_program("valgrind") else {
            return Ok(None);
        };
        let directory = bench.directory(&format!("callgrind-{}", cases.0))?;
        let mut out = OsString::from("--callgrind-out-file=");
        out.push(directory.join("out"));
        let command = [valgrind.into(), "--tool=callgrind".into(), out, weir.into()];
        let gateway = context.gateway(bench, cases, &command, more)?;
        Ok(Some(Self {
            calls: ClosedLoop::open(gateway.address, CONNECTIONS)?,
            gateway,
            directory,
            dumps: 0,
        }))
    }

    /// Instructions of one call of a route, what is done for it later included.
    ///
    /// # Errors
    /// If a call fails, or callgrind prints no count.
    pub fn count(&mut self, route: &str, deferred: bool) -> Result<f64> {
        let request = request(route, self.gateway.address);
        self.calls.run(&request, |answers| answers < WARM_UP)?;
        self.wait_until_done(deferred);
        self.dump()?;
        let calls = self.calls.run(&request, |answers| answers < CALLS)?;
        self.wait_until_done(deferred);
        Ok(self.dump()? / calls as f64)
    }

    fn wait_until_done(&self, deferred: bool) {
        if deferred {
            wait_until_idle(self.gateway.process.pid(), QUIET);
        }
    }

    /// Instructions since the last dump.
    fn dump(&mut self) -> Result<f64> {
        let asked = Command::new("callgrind_control")
            .arg("--dump")
            .arg(self.gateway.process.pid().to_string())
            .output()
            .context("starting callgrind_control")?;
        self.dumps += 1;
        let file = self.directory.join(format!("out.{}", self.dumps));
        let text = fs::read_to_string(&file);
        if !asked.status.success() || text.is_err() {
            bail!("callgrind_control: {}", String::from_utf8_lossy(&asked.stderr));
        }
        fs::remove_file(&file).context("removing callgrind's file")?;
        parse(&text.context("reading callgrind's file")?).context("callgrind's file has no totals")
    }
}

/// The sum at the end of a file of callgrind.
fn parse(text: &str) -> Option<f64> {
    let totals = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    totals.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        for (text, expected) in [
            ("version: 1\nfn=(1)\n1 2\n\ntotals: 12345\n", Some(12_345.0)),
            ("version: 1\n", None),
            ("totals: x", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
