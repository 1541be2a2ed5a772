//! The gateways as data: how to find, configure, start and ready each of them. A new one is an entry in [`GATEWAYS`]
//! and a folder of templates in `gateways/`.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client;
use crate::experiment::{Experiment, KEY, SECRET, Setup};
use crate::process::{Process, Supervisor, find_program, free_addresses};
use crate::template::render;

/// How long a gateway may take to be ready: 100,000 routes have to be read.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The description of one gateway in one dialect.
#[derive(Debug)]
pub struct Gateway {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// The program's name in `PATH`.
    pub binary: &'static str,
    /// What to do when it is missing.
    pub install: &'static str,
    /// Arguments that make it print its version.
    version: &'static [&'static str],
    /// Arguments that start it with one worker in the foreground, with placeholders as in the templates.
    arguments: &'static [&'static str],
    /// Name of its configuration file.
    file: &'static str,
    /// Where it says that it is ready.
    ready: Ready,
    /// The template of its configuration for each setup.
    template: fn(Setup) -> &'static str,
    /// It does what the experiment asks for; the others proxy plainly and are the bar.
    pub enforces: bool,
}

/// Where a gateway says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// On its proxy port: it answers there.
    Listen,
    /// On its status port, with 200 on this path.
    Status(&'static str),
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The gateway that every ratio is to.
pub const BAR: &str = "nginx";

const NGINX: Gateway = Gateway {
    name: BAR,
    binary: "nginx",
    install: "apt-get install nginx",
    version: &["-v"],
    arguments: &["-e", "stderr", "-p", "{{dir}}", "-c", "{{config}}", "-g", "daemon off;"],
    file: "nginx.conf",
    ready: Ready::Listen,
    template: |_| include_str!("../gateways/nginx/plain.conf"),
    enforces: false,
};

const WEIR_KONG: Gateway = Gateway {
    name: "weir-kong",
    binary: "weir",
    install: "cargo build --release -p weir, and give its path with --weir",
    version: &["--version"],
    arguments:
        &["run", "-c", "{{config}}", "--listen", "{{listen}}", "--status", "{{status}}", "--workers", "1"],
    file: "kong.yml",
    ready: Ready::Status("/status/ready"),
    template: |setup| match setup {
        Setup::A1 => include_str!("../gateways/weir/kong/a1.yml"),
        Setup::A2 => include_str!("../gateways/weir/kong/a2.yml"),
        Setup::A3 => include_str!("../gateways/weir/kong/a3.yml"),
        Setup::A4 => include_str!("../gateways/weir/kong/a4.yml"),
        Setup::N4 => include_str!("../gateways/weir/kong/n4.yml"),
    },
    enforces: true,
};

const WEIR_APISIX: Gateway = Gateway {
    name: "weir-apisix",
    file: "apisix.yaml",
    template: |setup| match setup {
        Setup::A1 => include_str!("../gateways/weir/apisix/a1.yaml"),
        Setup::A2 => include_str!("../gateways/weir/apisix/a2.yaml"),
        Setup::A3 => include_str!("../gateways/weir/apisix/a3.yaml"),
        Setup::A4 => include_str!("../gateways/weir/apisix/a4.yaml"),
        Setup::N4 => include_str!("../gateways/weir/apisix/n4.yaml"),
    },
    ..WEIR_KONG
};

/// NGINX once more: its ratio to itself is the noise of the machine.
const NGINX_TWIN: Gateway = Gateway { name: "nginx-twin", ..NGINX };

/// Every gateway that the bench knows.
pub static GATEWAYS: [Gateway; 4] = [NGINX, WEIR_KONG, WEIR_APISIX, NGINX_TWIN];

/// The gateways named, separated by commas; a name's beginning up to a dash stands for all of its dialects.
///
/// # Errors
/// A name is unknown.
pub fn select(names: &str) -> Result<Vec<&'static Gateway>> {
    let mut selected: Vec<&'static Gateway> = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let exact = |gateway: &&Gateway| gateway.name == name;
        let dialect = |gateway: &&Gateway| gateway.name.split('-').next() == Some(name);
        let mut found: Vec<&'static Gateway> = GATEWAYS.iter().filter(exact).collect();
        if found.is_empty() {
            found = GATEWAYS.iter().filter(dialect).collect();
        }
        if found.is_empty() {
            let known: Vec<&str> = GATEWAYS.iter().map(|gateway| gateway.name).collect();
            bail!("unknown gateway {name:?}: there are {}", known.join(", "));
        }
        found.retain(|gateway| selected.iter().all(|other| other.name != gateway.name));
        selected.extend(found);
    }
    Ok(selected)
}

impl Gateway {
    /// The program: the path given, one beside the bench itself, or the first in `PATH`.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, given: Option<&Path>) -> Result<PathBuf> {
        if let (Some(path), "weir") = (given, self.binary) {
            return path.canonicalize().with_context(|| format!("not found: {}", path.display()));
        }
        let beside = std::env::current_exe().ok().map(|bench| bench.with_file_name(self.binary));
        beside
            .filter(|path| path.is_file())
            .or_else(|| find_program(self.binary))
            .with_context(|| format!("not found: {} ({})", self.binary, self.install))
    }

    /// The version that the program prints.
    pub fn version(&self, program: &Path) -> String {
        let printed = Command::new(program).args(self.version).output();
        let text = printed.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().next().unwrap_or("version unknown").trim().to_owned()
    }

    /// Its configuration for `experiment` in front of `upstream`.
    ///
    /// # Errors
    /// The template has a placeholder that nobody fills.
    pub fn configuration(&self, experiment: &Experiment, place: &Place) -> Result<String> {
        let open_files = open_files().to_string();
        let (upstream, listen) = (place.upstream.to_string(), place.listen.to_string());
        let values = [
            ("upstream", upstream.as_str()),
            ("listen", listen.as_str()),
            ("dir", place.directory_text()?),
            ("open_files", open_files.as_str()),
            ("key", KEY),
            ("secret", SECRET),
        ];
        render((self.template)(experiment.setup), &values, experiment.routes)
    }
}

/// Where one instance of a gateway lives.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its own directory, for configuration, log and temporary files.
    pub directory: PathBuf,
    /// Its proxy port.
    pub listen: SocketAddr,
    /// Its status port, if it has one.
    pub status: SocketAddr,
    /// The API behind it.
    pub upstream: SocketAddr,
}

impl Place {
    /// A new directory `name` below `parent`, and free ports.
    ///
    /// # Errors
    /// The directory exists or no port is free.
    pub fn new(parent: &Path, name: &str, upstream: SocketAddr) -> Result<Self> {
        let directory = parent.join(name);
        fs::create_dir(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let [listen, status] = free_addresses()?;
        Ok(Self { directory, listen, status, upstream })
    }

    fn directory_text(&self) -> Result<&str> {
        self.directory.to_str().context("the temporary directory's name is not UTF-8")
    }
}

/// A gateway that serves.
#[derive(Debug)]
pub struct Running {
    /// What it is.
    pub gateway: &'static Gateway,
    /// Where it lives.
    pub place: Place,
    /// Its configuration file.
    pub configuration: PathBuf,
    /// Its processes.
    pub process: Process,
}

/// Starts `gateway` for `experiment` on `core` and waits until it is ready.
///
/// # Errors
/// It ends, or is not ready in time; with the last lines that it wrote.
pub fn start(
    gateway: &'static Gateway,
    program: &Path,
    experiment: &Experiment,
    place: Place,
    core: usize,
    supervisor: &Supervisor,
) -> Result<Running> {
    let configuration = place.directory.join(gateway.file);
    let text = gateway.configuration(experiment, &place)?;
    fs::write(&configuration, text).with_context(|| format!("writing {}", configuration.display()))?;
    let config = configuration.to_str().context("the temporary directory's name is not UTF-8")?;
    let (listen, status) = (place.listen.to_string(), place.status.to_string());
    let values = [
        ("dir", place.directory_text()?),
        ("config", config),
        ("listen", listen.as_str()),
        ("status", status.as_str()),
    ];
    let rendered = gateway.arguments.iter().map(|argument| render(argument, &values, 0).map(OsString::from));
    let arguments = rendered.collect::<Result<Vec<OsString>>>()?;
    let process = supervisor.start(program, &arguments, core, &place.directory.join("log"))?;
    let mut running = Running { gateway, place, configuration, process };
    running.wait_until_ready()?;
    running.process.note_members();
    Ok(running)
}

impl Running {
    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let answer = match self.gateway.ready {
                Ready::Listen => client::get(self.place.listen, "/", &[]),
                Ready::Status(path) => client::get(self.place.status, path, &[]),
            };
            match (answer, self.gateway.ready) {
                (Ok(_), Ready::Listen) => return Ok(()),
                (Ok(response), Ready::Status(_)) if response.status == 200 => return Ok(()),
                _ => {}
            }
            if let Some(status) = self.process.ended()? {
                bail!("it ended while starting ({status}):\n{}", self.process.last_words());
            }
            if Instant::now() >= deadline {
                bail!("not ready after {} s:\n{}", START_LIMIT.as_secs(), self.process.last_words());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks the probe calls of `experiment` and checks every answer.
    ///
    /// # Errors
    /// An answer is not what the experiment needs; it is shown.
    pub fn probe(&self, experiment: &Experiment) -> Result<()> {
        let mut probes = experiment.accepted();
        if self.gateway.enforces {
            probes.extend(experiment.refused());
        }
        for probe in probes {
            let what = format!("{}: GET {}", probe.what, probe.path);
            let response = client::get(self.place.listen, &probe.path, &probe.headers)
                .with_context(|| format!("probe refused, {what}"))?;
            let whole = probe.status != 200 || response.body.len() == experiment.body_bytes;
            if response.status != probe.status || !whole {
                let expected = match probe.status {
                    200 => format!("status 200 with a body of {} bytes", experiment.body_bytes),
                    status => format!("status {status}"),
                };
                bail!("probe refused, {what}: expected {expected}, got {}", response.summary());
            }
            if let Some(mark) = experiment.mark()
                && self.gateway.enforces
                && probe.status == 200
                && !response.has_header_like(mark)
            {
                bail!("probe refused, {what}: no header like {mark} in\n{}", response.head.trim_end());
            }
        }
        Ok(())
    }
}

/// How many files a process may have open here; servers are told so.
pub fn open_files() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(65_536).min(65_536)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::EXPERIMENTS;

    #[test]
    fn selection() {
        let cases = [
            ("nginx", Some(vec!["nginx"])),
            ("weir", Some(vec!["weir-kong", "weir-apisix"])),
            ("nginx, weir-apisix,weir", Some(vec!["nginx", "weir-apisix", "weir-kong"])),
            ("nginx,nginx-twin", Some(vec!["nginx", "nginx-twin"])),
            ("apache", None),
        ];
        for (names, expected) in cases {
            let selected = select(names).ok();
            let found = selected.map(|all| all.iter().map(|gateway| gateway.name).collect::<Vec<_>>());
            assert_eq!(found, expected, "{names}");
        }
    }

    #[test]
    fn every_template_is_complete() {
        let place = Place {
            directory: "/tmp/somewhere".into(),
            listen: "127.0.0.1:11111".parse().unwrap(),
            status: "127.0.0.1:22222".parse().unwrap(),
            upstream: "127.0.0.1:33333".parse().unwrap(),
        };
        for gateway in &GATEWAYS {
            for experiment in EXPERIMENTS.iter().filter(|experiment| experiment.id != "R100K") {
                let text = gateway.configuration(experiment, &place).unwrap();
                assert!(text.contains("127.0.0.1:33333"), "{gateway} {}: no upstream", experiment.id);
                let routes = text.matches("/hello").count();
                let expected = if gateway.enforces { experiment.routes as usize } else { 0 };
                assert_eq!(routes, expected, "{gateway} {}", experiment.id);
            }
        }
    }
}
