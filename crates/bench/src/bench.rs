//! What all commands share: the options, the machine, the directory of the run, and the start of a gateway.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;

use crate::cores::{self, Pinning};
use crate::cpu::Clock;
use crate::experiment::Experiment;
use crate::gateway::{self, Gateway, Place};
use crate::process::{Supervisor, find_program};
use crate::report::Rows;
use crate::running::{self, Running};

/// The options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The weir program; without it one beside the bench or in PATH
    #[arg(long, global = true, value_name = "PATH")]
    pub weir: Option<PathBuf>,
    /// Gateways to measure, separated by commas, of nginx (the bar of every ratio), weir (all of weir-kong, weir-apisix,
    /// weir-native) and nginx-twin (shows the noise)
    #[arg(long, global = true, value_name = "NAMES", default_value = "nginx,weir")]
    pub gateways: String,
    /// Rounds, interleaved over the gateways
    #[arg(long, global = true, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seconds of load in a round
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub duration: u32,
    /// Connections of the load
    #[arg(long, global = true, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Three rounds of two seconds: a first impression
    #[arg(long, global = true)]
    pub quick: bool,
    /// Appends the machine, every round and every result to a file of JSON lines
    #[arg(long, global = true, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// One run of the bench on this machine.
#[derive(Debug)]
pub struct Bench {
    /// The options, `--quick` applied.
    pub options: Options,
    /// Cores.
    pub pinning: Pinning,
    /// The account of CPU time.
    pub clock: Clock,
    /// Ends what was started.
    pub supervisor: Supervisor,
    /// Raw results.
    pub rows: Rows,
    gateways: Vec<&'static Gateway>,
    directory: tempfile::TempDir,
}

impl Bench {
    /// Checks tools and machine, and says what will be measured how.
    ///
    /// # Errors
    /// A tool is missing, there are too few cores, an option is wrong.
    pub fn new(mut options: Options) -> Result<Self> {
        if options.quick {
            (options.rounds, options.duration) = (3, 2);
        }
        let missing: Vec<String> = [
            ("nginx", "nginx"),
            ("wrk", "wrk"),
            ("taskset", "util-linux"),
            ("setpriv", "util-linux"),
        ]
        .iter()
        .filter(|(tool, _)| find_program(tool).is_none())
        .map(|(tool, package)| format!("{tool} (apt-get install {package})"))
        .collect();
        if !missing.is_empty() {
            bail!("not found: {}", missing.join(", "));
        }
        raise_open_files()?;
        let pinning = cores::choose()?;
        pin_to(pinning.load)?;
        let supervisor = Supervisor::default();
        supervisor.stop_on_signals()?;
        let bench = Self {
            pinning,
            clock: Clock::available(),
            rows: Rows::open(options.json.as_deref())?,
            gateways: gateway::select(&options.gateways)?,
            directory: supervisor.directory()?,
            supervisor,
            options,
        };
        bench.describe()?;
        Ok(bench)
    }

    fn describe(&self) -> Result<()> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let kernel = read("/proc/sys/kernel/osrelease");
        let load = read("/proc/loadavg");
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.to_owned());
        let mut versions = serde_json::Map::new();
        self.rows
            .note(&format!("{processor}, Linux {kernel}, load average {load}"))?;
        self.rows
            .note(&format!("{}; CPU time from {}", self.pinning, self.clock))?;
        for gateway in &self.gateways {
            let text = match self.program(gateway) {
                Ok(program) => {
                    let debug = program.components().any(|part| part.as_os_str() == "debug");
                    let warning = if debug {
                        " — a debug build: its figures say nothing"
                    } else {
                        ""
                    };
                    format!("{} ({}){warning}", gateway.version(&program), program.display())
                }
                Err(error) => error.to_string(),
            };
            self.rows.note(&format!("{gateway}: {text}"))?;
            versions.insert(gateway.name.to_owned(), text.into());
        }
        self.rows.raw(&json!({
            "row": "machine", "processor": processor, "kernel": kernel, "load_average": load,
            "pinning": self.pinning.to_string(), "cpu_time_from": self.clock.to_string(), "gateways": versions,
            "connections": self.options.connections, "rounds": self.options.rounds,
            "seconds": self.options.duration,
        }))
    }

    /// The gateways to measure.
    pub fn gateways(&self) -> &[&'static Gateway] {
        &self.gateways
    }

    /// A new directory for one experiment, inside that of the run.
    ///
    /// # Errors
    /// It exists already.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.directory.path().join(name);
        fs::create_dir(&directory).with_context(|| format!("creating {}", directory.display()))?;
        Ok(directory)
    }

    fn program(&self, gateway: &Gateway) -> Result<PathBuf> {
        gateway.find(self.options.weir.as_deref())
    }

    /// Starts a gateway for an experiment in a new directory `name` below `parent`.
    ///
    /// # Errors
    /// It is missing or does not come up.
    pub fn start(
        &self,
        gateway: &'static Gateway,
        experiment: &Experiment,
        upstream: SocketAddr,
        parent: &Path,
        name: &str,
    ) -> Result<Running> {
        let program = self.program(gateway)?;
        let place = Place::new(parent, name, upstream)?;
        running::start(
            gateway,
            &program,
            experiment,
            place,
            self.pinning.gateway,
            &self.supervisor,
        )
    }
}

/// Pins this thread, and those that it starts later, so that the bench's own work never lands on the gateway's core.
fn pin_to(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).context("pinning the bench to the core of the load")
}

fn raise_open_files() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .context("raising the limit of open files")
}
