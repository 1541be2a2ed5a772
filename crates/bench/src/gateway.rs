//! The gateways as data: `gateways/NAME/gateway.toml` says how to find, configure and start each of them, and how
//! it shows that it is ready; the templates next to it are its configuration. A new gateway is a new folder. What is
//! done with them is in `running.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::experiment::{Experiment, Flood, Setup, WireProtocol};
use crate::machine;
use crate::process::find_program;

/// The gateway that every ratio is to.
pub const BAR: &str = "nginx";
/// Behind a gateway's name: the same once more, whose ratio to the first is the noise of the machine.
const TWIN: &str = "-twin";
const DESCRIPTION: &str = "gateway.toml";
/// Descriptions and templates as they were when this program was built: path below `gateways/`, text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/gateway_files.rs"));
/// Where `scripts/deps` puts what no package brings, below the build directory.
const TOOLS: [&str; 2] = ["bench-tools/bin", "bench-tools/python/bin"];

/// The addresses of the API.
#[derive(Debug, Clone, Copy)]
pub struct Listeners {
    /// For HTTP/1.1.
    pub http1: SocketAddr,
    /// For HTTP/2.
    pub http2: SocketAddr,
    /// For HTTP/1.1 over TLS.
    pub https: SocketAddr,
}

/// The description of one gateway in one spelling.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Its name on the command line and in the report: that of its folder.
    #[serde(skip)]
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The program's name in `PATH`.
    pub program: String,
    /// What to do when it is missing.
    pub install: String,
    /// Arguments that make it print its version.
    version: Vec<String>,
    /// What the line with the version holds, if it is not the first.
    #[serde(default)]
    version_line: String,
    /// The command that runs it in the foreground, with placeholders as in the templates.
    pub start: Vec<String>,
    /// Its configuration: names of files in its directory, and the template of each.
    pub files: Vec<(String, String)>,
    /// Its environment in addition to that of the bench, with placeholders.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How it shows that it is ready.
    pub ready: Ready,
    /// The signal that ends it.
    #[serde(default)]
    pub stop: StopSignal,
    /// It proxies and does nothing else, whatever an experiment asks for: the bar.
    #[serde(default)]
    pub plain: bool,
    /// It runs only if its whole name is given: neither `all` nor the beginning of its name selects it.
    #[serde(default)]
    only_named: bool,
    /// It takes over a changed configuration file by itself.
    #[serde(default)]
    pub reloads: bool,
    /// The protocols other than HTTP/1.1 that its templates are for, and what its command has for each; `http`: what it
    /// has for HTTP/1.1.
    #[serde(default)]
    protocols: BTreeMap<String, Vec<String>>,
    /// Protocols in which it speaks HTTP/1.1 with the API all the same.
    #[serde(default)]
    http1_upstream: Vec<String>,
    /// What it has not (limit, key, jwt, forwarded, flood, workers), and why.
    #[serde(default)]
    cannot: BTreeMap<String, String>,
    /// The texts of its templates by their names in `files`.
    #[serde(skip)]
    pub templates: BTreeMap<String, String>,
}

/// How a gateway shows that it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "on", rename_all = "lowercase", deny_unknown_fields)]
pub enum Ready {
    /// On its proxy port: it answers there.
    Listen,
    /// On its status port, with 200 on this path.
    Status {
        /// The path asked for.
        path: String,
    },
}

/// The signal that ends a gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    #[default]
    Term,
    /// SIGQUIT.
    Quit,
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Every gateway that the bench knows, from `folder` or as built in.
///
/// # Errors
/// A description is wrong or names a template that is not there.
pub fn all(folder: Option<&Path>) -> Result<Vec<Gateway>> {
    let mut files = BTreeMap::new();
    match folder {
        None => files.extend(
            EMBEDDED
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
        ),
        Some(folder) => read_folder(folder, &mut files)?,
    }
    let mut found = Vec::new();
    for (path, text) in &files {
        let Some(name) = path
            .strip_suffix(DESCRIPTION)
            .map(|folder| folder.trim_end_matches('/'))
        else {
            continue;
        };
        let gateway = describe(name, text, &files).with_context(|| format!("gateways/{path}"))?;
        found.push(gateway);
    }
    // The bar comes first, Weir next: in the order of a table.
    let place = |gateway: &Gateway| match gateway.program.as_str() {
        _ if gateway.name == BAR => 0,
        "weir" => 1,
        _ => 2,
    };
    found.sort_by_key(place);
    if found.is_empty() {
        bail!("no {DESCRIPTION} in any folder of the gateways");
    }
    Ok(found)
}

fn describe(name: &str, text: &str, files: &BTreeMap<String, String>) -> Result<Gateway> {
    let mut gateway: Gateway = toml::from_str(text)?;
    name.clone_into(&mut gateway.name);
    for protocol in gateway.protocols.keys().chain(&gateway.http1_upstream) {
        if WireProtocol::ALL.iter().all(|it| it.name() != *protocol) {
            bail!("unknown protocol {protocol:?}");
        }
    }
    for (_, template) in &gateway.files {
        let path = match template.strip_prefix("../") {
            Some(other) => other.to_owned(),
            None => format!("{name}/{template}"),
        };
        let text = files
            .get(&path)
            .with_context(|| format!("there is no template {path}"))?;
        gateway.templates.insert(template.clone(), text.clone());
    }
    Ok(gateway)
}

fn read_folder(folder: &Path, files: &mut BTreeMap<String, String>) -> Result<()> {
    let entries =
        |folder: &Path| fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()));
    for gateway in entries(folder)? {
        let gateway = gateway.context("reading the gateways' folder")?;
        if !gateway.path().is_dir() {
            continue;
        }
        for file in entries(&gateway.path())? {
            let file = file.context("reading a gateway's folder")?.path();
            let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.insert(format!("{}/{name}", gateway.file_name().to_string_lossy()), text);
        }
    }
    Ok(())
}

/// The gateways named, separated by commas; a name's beginning up to a dash stands for all of its spellings, and `all`
/// for every one, without those that run only if they are named. A name with `-twin` behind it is the same gateway once more.
///
/// # Errors
/// A name is unknown.
pub fn select(known: &[Gateway], names: &str) -> Result<Vec<Gateway>> {
    let mut selected: Vec<Gateway> = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let base = name.strip_suffix(TWIN).unwrap_or(name);
        let exact = known.iter().filter(|gateway| gateway.name == base);
        let mut found: Vec<Gateway> = exact.cloned().collect();
        if found.is_empty() {
            let spelling = |gateway: &&Gateway| {
                !gateway.only_named && (gateway.name.split('-').next() == Some(base) || base == "all")
            };
            found = known.iter().filter(spelling).cloned().collect();
        }
        if found.is_empty() {
            let known: Vec<&str> = known.iter().map(|gateway| gateway.name.as_str()).collect();
            bail!("unknown gateway {name:?}: there are {} and all", known.join(", "));
        }
        if base != name {
            found.iter_mut().for_each(|gateway| gateway.name.push_str(TWIN));
        }
        found.retain(|gateway| selected.iter().all(|other| other.name != gateway.name));
        selected.extend(found);
    }
    if selected.is_empty() {
        bail!("no gateway is named");
    }
    Ok(selected)
}

impl Gateway {
    /// The program: the path given for it, one next to the bench itself, one that `scripts/deps` fetched, or the first
    /// in `PATH`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, given: &BTreeMap<String, PathBuf>) -> Result<PathBuf> {
        if let Some(path) = given.get(&self.name).or_else(|| given.get(&self.program)) {
            return path
                .canonicalize()
                .with_context(|| format!("not found: {}", path.display()));
        }
        let bench = std::env::current_exe().ok();
        let beside = bench.iter().map(|bench| bench.with_file_name(&self.program));
        let build = bench.iter().filter_map(|bench| bench.parent()?.parent());
        let build = build.map(Path::to_owned).chain([PathBuf::from("target")]);
        let fetched = build.flat_map(|build| TOOLS.map(|tools| build.join(tools).join(&self.program)));
        beside
            .chain(fetched)
            .find(|path| path.is_file())
            .and_then(|path| path.canonicalize().ok())
            .or_else(|| find_program(&self.program))
            .with_context(|| format!("not found: {} ({})", self.program, self.install))
    }

    /// The version that the program prints, and the date of its file: a program that is built again counts as another.
    pub fn print_version(&self, program: &Path) -> String {
        let printed = Command::new(program).args(&self.version).output();
        let text = printed
            .map(|output| [output.stdout, output.stderr].concat())
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace(&program.display().to_string(), "");
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let version = lines
            .find(|line| line.contains(&self.version_line))
            .unwrap_or("version unknown");
        let words: Vec<&str> = version.split_whitespace().collect();
        let changed = fs::metadata(program).and_then(|file| file.modified()).ok();
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let date = changed.map_or_else(|| "unknown date".to_owned(), |time| machine::date(time.as_secs()));
        format!("{}, program of {date}", words.join(" "))
    }

    /// The words of the command that runs it for an experiment, with placeholders.
    pub fn command(&self, experiment: &Experiment) -> impl Iterator<Item = &String> {
        let more = self.protocols.get(experiment.setup.speaks.name());
        self.start.iter().chain(more.into_iter().flatten())
    }

    /// Whether it speaks HTTP/2 with the API where clients speak so with it.
    pub fn speaks_http2_upstream(&self, speaks: WireProtocol) -> bool {
        speaks.is_http2_upstream() && !self.http1_upstream.iter().any(|it| it == speaks.name())
    }

    /// Which of the API's listeners it calls in an experiment.
    pub fn upstream_for(&self, experiment: &Experiment, listeners: &Listeners) -> SocketAddr {
        match experiment.setup.speaks {
            WireProtocol::HttpsUpstream => listeners.https,
            speaks if self.speaks_http2_upstream(speaks) => listeners.http2,
            _ => listeners.http1,
        }
    }

    /// Why it cannot do what an experiment asks for, if it cannot. A plain proxy is not asked for rules.
    pub fn refuses(&self, experiment: &Experiment) -> Option<&str> {
        let Setup {
            limit,
            key,
            jwt,
            speaks,
            forwarded,
            flood,
            workers,
            ..
        } = experiment.setup;
        if speaks != WireProtocol::Http && !self.protocols.contains_key(speaks.name()) {
            return Some("its templates here have nothing for this protocol");
        }
        if self.plain {
            let lacks = self.cannot.get("workers").filter(|_| workers > 1);
            return lacks.map(String::as_str);
        }
        let asked = [
            (limit.is_some(), "limit"),
            (key, "key"),
            (jwt, "jwt"),
            (forwarded, "forwarded"),
            (flood != Flood::No, "flood"),
            (workers > 1, "workers"),
        ];
        let mut asked = asked.iter().filter(|(asked, _)| *asked);
        asked
            .find_map(|(_, what)| self.cannot.get(*what))
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::select as experiments;

    #[test]
    fn selection() {
        let known = all(None).unwrap();
        let names: Vec<&str> = known.iter().map(|gateway| gateway.name.as_str()).collect();
        let mut without_extra = names.clone();
        without_extra.retain(|name| *name != "weir-analytics");
        let cases = [
            ("nginx", Some(vec!["nginx"])),
            ("weir", Some(vec!["weir-apisix", "weir-kong", "weir-native"])),
            (
                "nginx, weir-kong,weir",
                Some(vec!["nginx", "weir-kong", "weir-apisix", "weir-native"]),
            ),
            ("nginx,nginx-twin", Some(vec!["nginx", "nginx-twin"])),
            ("weir-analytics", Some(vec!["weir-analytics"])),
            ("all", Some(without_extra)),
            ("apache", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let selected = select(&known, text).ok();
            let found = selected.map(|all| all.into_iter().map(|gateway| gateway.name).collect::<Vec<_>>());
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(names[0], BAR);
    }

    #[test]
    fn what_a_gateway_has_not_is_said() {
        let known = all(None).unwrap();
        let cases = [
            ("caddy", "A1", false),
            ("caddy", "A2", true),
            ("caddy", "N4", true),
            ("nginx-rules", "A3", false),
            ("nginx-rules", "G3", true),
            ("envoy", "G3", false),
            ("nginx", "A3", false),
            ("nginx", "tcp", false),
            ("nginx", "W2-A1", false),
            ("relay", "A3", false),
            ("relay", "W2-A1", true),
            ("relay", "https", true),
            ("weir-native", "XFF", false),
            ("weir-kong", "XFF", true),
            ("weir-native", "FLOOD-many", false),
            ("weir-apisix", "FLOOD-many", true),
            ("caddy", "tcp", true),
        ];
        for (name, id, refuses) in cases {
            let gateway = &select(&known, name).unwrap()[0];
            let experiment = experiments(&[id.to_owned()]).unwrap()[0];
            assert_eq!(gateway.refuses(experiment).is_some(), refuses, "{name} {id}");
        }
    }

    #[test]
    fn descriptions_are_checked() {
        let good = "title = \"x\"\nprogram = \"x\"\ninstall = \"x\"\nversion = []\nstart = [\"x\"]\n\
                    files = [[\"a\", \"a\"]]\nready = { on = \"listen\" }\n";
        let files = |description: &str| {
            BTreeMap::from([
                ("x/gateway.toml".to_owned(), description.to_owned()),
                ("x/a".to_owned(), String::new()),
            ])
        };
        let cases = [
            (good.to_owned(), true),
            (good.replace("\"a\"]]", "\"b\"]]"), false),
            (format!("{good}colour = \"red\"\n"), false),
            (good.replace("listen", "moon"), false),
            (format!("{good}stop = \"KILL\"\n"), false),
            (format!("{good}protocols = {{ h2 = [] }}\n"), true),
            (format!("{good}protocols = {{ h9 = [] }}\n"), false),
            (format!("{good}stop = \"QUIT\"\n"), true),
        ];
        for (text, is_good) in cases {
            assert_eq!(describe("x", &text, &files(&text)).is_ok(), is_good, "{text}");
        }
    }
}
