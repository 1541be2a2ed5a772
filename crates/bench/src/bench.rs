//! What all commands share: the options, the machine, the directory of the run, and the start of a gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::cores::{self, Pinning};
use crate::cpu::Clock;
use crate::experiment::Experiment;
use crate::gateway::{self, Gateway};
use crate::machine::{self, Machine};
use crate::process::{Supervisor, find_program};
use crate::results::Conditions;
use crate::running::{self, InstanceLocation, Running};
use crate::terminal::note;
use crate::upstream::{ResponseKind, Upstream};

/// The options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The weir program; without it, one next to the bench or in PATH
    #[arg(long, global = true, value_name = "PATH")]
    pub weir: Option<PathBuf>,
    /// The program of a gateway, as in kong=/usr/local/bin/kong; may be given several times
    #[arg(long = "program", global = true, value_name = "NAME=PATH", value_parser = parse_program)]
    pub programs: Vec<(String, PathBuf)>,
    /// Gateways to measure, separated by commas; `weir-bench list` shows them. nginx is the bar of every ratio, a name
    /// with -twin behind it is the same once more and shows the noise
    #[arg(
        long,
        global = true,
        value_name = "NAMES",
        default_value = "nginx,weir,haproxy,envoy,caddy,kong,apisix"
    )]
    pub gateways: String,
    /// A folder with descriptions and templates instead of those that are built in
    #[arg(long, global = true, value_name = "DIR")]
    pub gateway_files: Option<PathBuf>,
    /// Rounds, interleaved over the gateways
    #[arg(long, global = true, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seconds of load in a round
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub duration: u32,
    /// Connections of the load, instead of the experiment's
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: Option<u32>,
}

fn parse_program(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err("expected NAME=PATH, as in kong=/usr/local/bin/kong".to_owned()),
    }
}

impl Options {
    /// The programs given, by gateway.
    pub fn given(&self) -> BTreeMap<String, PathBuf> {
        let weir = self.weir.iter().map(|path| ("weir".to_owned(), path.clone()));
        weir.chain(self.programs.iter().cloned()).collect()
    }

    /// Every gateway that is described.
    ///
    /// # Errors
    /// A description is wrong.
    pub fn known_gateways(&self) -> Result<Vec<Gateway>> {
        gateway::all(self.gateway_files.as_deref())
    }
}

/// One run of the bench on this machine.
#[derive(Debug)]
pub struct Bench {
    /// The options.
    pub options: Options,
    /// Cores.
    pub pinning: Pinning,
    /// The account of CPU time.
    pub clock: Clock,
    /// Ends what was started.
    pub supervisor: Supervisor,
    /// The gateways to measure.
    pub gateways: Vec<GatewayInstall>,
    machine: Machine,
    directory: tempfile::TempDir,
}

/// A gateway and its program on this machine.
#[derive(Debug)]
pub struct GatewayInstall {
    /// The description.
    pub gateway: Gateway,
    /// The program, or the reason why there is none.
    pub program: Result<PathBuf, String>,
    /// What the program prints as its version.
    pub version: String,
}

impl Bench {
    /// Checks tools and machine, and says what will be measured how.
    ///
    /// # Errors
    /// A tool is missing, there are too few cores, an option is wrong.
    pub fn new(options: Options) -> Result<Self> {
        let known = options.known_gateways()?;
        let selected = gateway::select(&known, &options.gateways)?;
        let given = options.given();
        check_names(&given, &known)?;
        if let Some((name, path)) = given.iter().find(|(_, path)| !path.is_file()) {
            bail!("--program {name}={}: there is no such file", path.display());
        }
        check_tools()?;
        raise_open_files()?;
        let pinning = cores::choose()?;
        pin_to(pinning.load)?;
        let supervisor = Supervisor::default();
        supervisor.stop_on_signals()?;
        let gateways = selected
            .into_iter()
            .map(|gateway| GatewayInstall::of(gateway, &given))
            .collect();
        let bench = Self {
            pinning,
            clock: Clock::available(),
            gateways,
            machine: Machine::this(),
            directory: supervisor.directory()?,
            supervisor,
            options,
        };
        bench.describe()?;
        Ok(bench)
    }

    fn describe(&self) -> Result<()> {
        let Machine { processor, kernel } = &self.machine;
        note(&format!(
            "{processor}, Linux {kernel}, load average {}",
            machine::load_average()
        ))?;
        note(&format!("{}; CPU time from {}", self.pinning, self.clock))?;
        for GatewayInstall {
            gateway,
            program,
            version,
        } in &self.gateways
        {
            match program {
                Ok(path) if is_debug(path) => note(&format!(
                    "{gateway}: {version} ({}) — a debug build: its figures say nothing",
                    path.display()
                ))?,
                Ok(path) => note(&format!("{gateway}: {version} ({})", path.display()))?,
                Err(reason) => note(&format!("{gateway}: {reason}"))?,
            }
        }
        Ok(())
    }

    /// A new directory for one experiment, inside that of the run.
    ///
    /// # Errors
    /// It exists already.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.directory.path().join(name);
        std::fs::create_dir(&directory).with_context(|| format!("creating {}", directory.display()))?;
        Ok(directory)
    }

    /// How rounds of an experiment are measured here.
    pub fn conditions(&self, experiment: &Experiment, version: &str) -> Conditions {
        Conditions {
            version: version.to_owned(),
            kernel: self.machine.kernel.clone(),
            processor: self.machine.processor.clone(),
            cores: self.pinning.allowed,
            pinning: self.pinning.to_string(),
            connections: self.options.connections.unwrap_or(experiment.connections),
            seconds: self.options.duration,
            body_bytes: experiment.body_bytes,
        }
    }

    /// Why a gateway is not measured in an experiment here, if it is not.
    pub fn refuses<'g>(&self, gateway: &'g Gateway, experiment: &Experiment) -> Option<&'g str> {
        let has_cores = self.pinning.allowed >= experiment.setup.workers as usize;
        match has_cores {
            true => gateway.refuses(experiment),
            false => Some("the bench may use fewer cores than there are to be workers"),
        }
    }

    /// Starts the API with its files in a new directory.
    ///
    /// # Errors
    /// It is missing, or does not come up.
    pub fn upstream(&self, directory: &Path, answer: ResponseKind) -> Result<Upstream> {
        Upstream::start(directory, answer, self.pinning.upstream, &self.supervisor)
    }

    /// Starts a gateway for an experiment in a new directory `name` below `parent`.
    ///
    /// # Errors
    /// It is missing, cannot do what the experiment asks for, or does not come up.
    pub fn start(
        &self,
        found: &GatewayInstall,
        experiment: &Experiment,
        upstream: SocketAddr,
        parent: &Path,
        name: &str,
    ) -> Result<Running> {
        let program = found
            .program
            .as_ref()
            .map_err(|reason| anyhow::anyhow!("{reason}"))?;
        if let Some(reason) = self.refuses(&found.gateway, experiment) {
            bail!("not measured: {reason}");
        }
        let place = InstanceLocation::new(parent, name, upstream)?;
        running::start(
            &found.gateway,
            program,
            experiment,
            place,
            self.pinning.gateway_cores(experiment.setup.workers),
            &self.supervisor,
        )
    }
}

impl GatewayInstall {
    /// Looks for the gateway's program.
    pub fn of(gateway: Gateway, given: &BTreeMap<String, PathBuf>) -> Self {
        let program = gateway.find(given).map_err(|error| format!("{error:#}"));
        let version = program.as_ref().map(|program| gateway.print_version(program));
        Self {
            version: version.unwrap_or_default(),
            program,
            gateway,
        }
    }
}

/// The program lies in a folder of debug builds.
pub fn is_debug(program: &Path) -> bool {
    program.components().any(|part| part.as_os_str() == "debug")
}

/// A program may be given for a gateway that is not measured this time; one for no gateway at all is a mistake.
fn check_names(given: &BTreeMap<String, PathBuf>, known: &[Gateway]) -> Result<()> {
    let is_known = |name: &String| known.iter().any(|it| [&it.name, &it.program].contains(&name));
    match given.keys().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(unknown) => {
            let names: Vec<&str> = known.iter().map(|it| it.name.as_str()).collect();
            bail!(
                "--program {unknown}=…: there is no such gateway, but {}",
                names.join(", ")
            )
        }
    }
}

fn check_tools() -> Result<()> {
    let tools = [
        ("curl", "curl"),
        ("nginx", "nginx-light"),
        ("wrk", "wrk"),
        ("taskset", "util-linux"),
        ("setpriv", "util-linux"),
    ];
    let missing: Vec<String> = tools
        .iter()
        .filter(|(tool, _)| find_program(tool).is_none())
        .map(|(tool, package)| format!("{tool} (apt-get install {package})"))
        .collect();
    if !missing.is_empty() {
        bail!(
            "not found: {}; make deps FOR=bench installs them",
            missing.join(", ")
        );
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_given_for_gateways_that_there_are() {
        let known = gateway::all(None).unwrap();
        for (name, is_good) in [
            ("kong", true),
            ("weir", true),
            ("weir-kong", true),
            ("apisix", true),
            ("apache", false),
        ] {
            let given = BTreeMap::from([(name.to_owned(), PathBuf::from("/bin/true"))]);
            assert_eq!(check_names(&given, &known).is_ok(), is_good, "{name}");
        }
    }
}
