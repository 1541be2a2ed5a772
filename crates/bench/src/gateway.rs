//! The gateways as data: how to find, configure and start each of them, and where it says that it is ready. A new one
//! is an entry in [`GATEWAYS`] and a folder of templates in `gateways/`; what is done with them is in `running.rs`.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::experiment::{Experiment, KEY, SECRET, Setup};
use crate::process::{find_program, free_addresses};
use crate::template::render;

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
    pub arguments: &'static [&'static str],
    /// Name of its configuration file.
    pub file: &'static str,
    /// Where it says that it is ready.
    pub ready: Ready,
    /// The template of its configuration for each setup.
    template: fn(Setup) -> &'static str,
    /// It does what the experiment asks for; the others proxy plainly and are the bar.
    pub enforces: bool,
}

/// Where a gateway says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
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
    arguments: &[
        "-e",
        "stderr",
        "-p",
        "{{dir}}",
        "-c",
        "{{config}}",
        "-g",
        "daemon off;",
    ],
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
    arguments: &[
        "run",
        "-c",
        "{{config}}",
        "--listen",
        "{{listen}}",
        "--status",
        "{{status}}",
        "--workers",
        "1",
    ],
    file: "kong.yml",
    ready: Ready::Status("/status/ready"),
    template: |setup| match setup {
        Setup::A1 => include_str!("../gateways/weir/kong/a1.yml"),
        Setup::A2 => include_str!("../gateways/weir/kong/a2.yml"),
        Setup::A3 => include_str!("../gateways/weir/kong/a3.yml"),
        Setup::A4 => include_str!("../gateways/weir/kong/a4.yml"),
        Setup::N4 => include_str!("../gateways/weir/kong/n4.yml"),
        Setup::Reload => include_str!("../gateways/weir/kong/reload.yml"),
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
        Setup::Reload => include_str!("../gateways/weir/apisix/reload.yaml"),
    },
    ..WEIR_KONG
};

const WEIR_NATIVE: Gateway = Gateway {
    name: "weir-native",
    file: "weir.yaml",
    template: |setup| match setup {
        Setup::A1 => include_str!("../gateways/weir/native/a1.yaml"),
        Setup::A2 => include_str!("../gateways/weir/native/a2.yaml"),
        Setup::A3 => include_str!("../gateways/weir/native/a3.yaml"),
        Setup::A4 => include_str!("../gateways/weir/native/a4.yaml"),
        Setup::N4 => include_str!("../gateways/weir/native/n4.yaml"),
        Setup::Reload => include_str!("../gateways/weir/native/reload.yaml"),
    },
    ..WEIR_KONG
};

/// NGINX once more: its ratio to itself is the noise of the machine.
const NGINX_TWIN: Gateway = Gateway {
    name: "nginx-twin",
    ..NGINX
};

/// Every gateway that the bench knows.
pub static GATEWAYS: [Gateway; 5] = [NGINX, WEIR_KONG, WEIR_APISIX, WEIR_NATIVE, NGINX_TWIN];

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
            return path
                .canonicalize()
                .with_context(|| format!("not found: {}", path.display()));
        }
        let beside = std::env::current_exe()
            .ok()
            .map(|bench| bench.with_file_name(self.binary));
        beside
            .filter(|path| path.is_file())
            .or_else(|| find_program(self.binary))
            .with_context(|| format!("not found: {} ({})", self.binary, self.install))
    }

    /// The version that the program prints.
    pub fn version(&self, program: &Path) -> String {
        let printed = Command::new(program).args(self.version).output();
        let text = printed
            .map(|output| [output.stdout, output.stderr].concat())
            .unwrap_or_default();
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
        Ok(Self {
            directory,
            listen,
            status,
            upstream,
        })
    }

    /// The directory as text, for a template.
    ///
    /// # Errors
    /// Its name is not UTF-8.
    pub fn directory_text(&self) -> Result<&str> {
        self.directory
            .to_str()
            .context("the temporary directory's name is not UTF-8")
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
            ("weir", Some(vec!["weir-kong", "weir-apisix", "weir-native"])),
            (
                "nginx, weir-apisix,weir",
                Some(vec!["nginx", "weir-apisix", "weir-kong", "weir-native"]),
            ),
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
                assert!(
                    text.contains("127.0.0.1:33333"),
                    "{gateway} {}: no upstream",
                    experiment.id
                );
                let routes = text.matches("/hello").count();
                let expected = if gateway.enforces {
                    experiment.routes as usize
                } else {
                    0
                };
                assert_eq!(routes, expected, "{gateway} {}", experiment.id);
            }
        }
    }
}
