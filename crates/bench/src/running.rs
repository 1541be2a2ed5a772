//! A gateway that runs: configured for an experiment, started with its workers on its cores, and ready.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::certificate;
use crate::client;
use crate::experiment::{Experiment, FLOOD_HEADER, Flood, KEY, SECRET, WireProtocol};
use crate::gateway::{Gateway, Ready};
use crate::process::{Process, StartOptions, Supervisor, free_addresses};
use crate::template::{Values, render};

/// How long a gateway may take to be ready: 100,000 routes have to be read.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Streams that gateways let a connection have, at least.
const USUAL_STREAMS: u32 = 256;

/// A gateway that serves, until dropped.
#[derive(Debug)]
pub struct Running {
    /// Its folder.
    pub place: InstanceLocation,
    /// Its first configuration file.
    pub configuration: PathBuf,
    /// Its processes.
    pub process: Process,
}

/// The folder of one instance of a gateway.
#[derive(Debug, Clone)]
pub struct InstanceLocation {
    /// Its own directory, for configuration, log and temporary files.
    pub directory: PathBuf,
    /// Its proxy port.
    pub listen: SocketAddr,
    /// Its status port, if it has one.
    pub status: SocketAddr,
    /// The API behind it.
    pub upstream: SocketAddr,
}

impl InstanceLocation {
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
}

/// What the templates of a gateway are filled with.
///
/// # Errors
/// The directory's name is not UTF-8.
pub fn values(experiment: &Experiment, place: &InstanceLocation, program: &Path) -> Result<Values> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .context("a path that is not UTF-8")
    };
    let setup = experiment.setup;
    let mut values = Values::default();
    values
        .text("dir", text(&place.directory)?)
        .text("program", text(program)?)
        .text("listen", place.listen)
        .text("listen_host", place.listen.ip())
        .text("listen_port", place.listen.port())
        .text("status", place.status)
        .text("upstream", place.upstream)
        .text("upstream_host", place.upstream.ip())
        .text("upstream_port", place.upstream.port())
        .text("open_files", open_files())
        .text("workers", setup.workers)
        .text("max_streams", experiment.streams.max(USUAL_STREAMS))
        .text(
            "scheme",
            match setup.speaks {
                WireProtocol::HttpsUpstream => "https",
                WireProtocol::Http2Both => "h2c",
                WireProtocol::Grpc => "grpc",
                _ => "http",
            },
        )
        .text("key", KEY)
        .text("secret", SECRET)
        .text("secret_base64url", URL_SAFE_NO_PAD.encode(SECRET))
        .flag("http", setup.speaks.is_plain_http())
        .flag("https", setup.speaks == WireProtocol::Https)
        .flag("tcp", setup.speaks == WireProtocol::Tcp)
        .flag("grpc", setup.speaks == WireProtocol::Grpc)
        .flag("calls", setup.speaks != WireProtocol::Tcp)
        .flag(
            "http_calls",
            !matches!(setup.speaks, WireProtocol::Tcp | WireProtocol::Grpc),
        )
        .flag("http2", setup.speaks.is_http2())
        .flag("http2_upstream", setup.speaks.is_http2_upstream())
        .flag(
            "http1_upstream",
            !setup.speaks.is_http2_upstream() && setup.speaks != WireProtocol::HttpsUpstream,
        )
        .flag("https_upstream", setup.speaks == WireProtocol::HttpsUpstream)
        .flag(
            "cleartext_upstream",
            !matches!(
                setup.speaks,
                WireProtocol::HttpsUpstream | WireProtocol::Tcp | WireProtocol::Grpc
            ),
        )
        .flag("forwarded", setup.forwarded)
        .flag("key", setup.key)
        .flag("jwt", setup.jwt)
        .flag("limit", setup.limit.is_some() && setup.flood == Flood::No)
        .flag("limit_by_key", setup.limit.is_some() && setup.flood != Flood::No)
        .text("flood_header", FLOOD_HEADER)
        .flag("rules", setup.key || setup.jwt || setup.limit.is_some())
        .flag("consumer", setup.key || setup.jwt)
        .count("change", setup.changes)
        .routes(setup.routes);
    if setup.speaks == WireProtocol::Https {
        let shown = certificate::of_this_run(setup.rsa)?;
        // On one line, as YAML reads it between double quotes.
        let in_line = |pem: &str| pem.replace("\r\n", "\n").replace('\n', "\\n");
        values
            .text("certificate_pem", in_line(&shown.certificate))
            .text("key_pem", in_line(&shown.key));
    }
    if let Some(limit) = setup.limit {
        let (window, rate) = match (limit.seconds, limit.count) {
            (1, count) => ("second", format!("{count}r/s")),
            // Spread over the seconds if that leaves something.
            (_, count) if count >= 600 => ("minute", format!("{}r/s", count / 60)),
            (_, count) => ("minute", format!("{count}r/m")),
        };
        values
            .text("limit", limit.count)
            .text("window", window)
            .text("window_seconds", limit.seconds)
            .text("limit_rate", rate)
            .text("limit_burst", limit.count.min(100_000));
    }
    Ok(values)
}

/// The configuration files of a gateway: path and text of each.
///
/// # Errors
/// A template has an unknown placeholder.
pub fn configuration(gateway: &Gateway, values: &Values, directory: &Path) -> Result<Vec<(PathBuf, String)>> {
    let fill = |(name, template): &(String, String)| {
        let text = gateway.templates.get(template).map_or("", String::as_str);
        let text = render(text, values).with_context(|| format!("{gateway}: {template}"))?;
        Ok((directory.join(name), text))
    };
    gateway.files.iter().map(fill).collect()
}

/// The files of the certificate that a gateway shows, if it shows one: path and text of each.
///
/// # Errors
/// It cannot be made.
pub fn certificate_files(experiment: &Experiment, directory: &Path) -> Result<Vec<(PathBuf, String)>> {
    if experiment.setup.speaks != WireProtocol::Https {
        return Ok(Vec::new());
    }
    let shown = certificate::of_this_run(experiment.setup.rsa)?;
    let both = format!("{}{}", shown.certificate, shown.key);
    let files = [
        ("certificate.pem", shown.certificate.clone()),
        ("key.pem", shown.key.clone()),
        ("both.pem", both),
    ];
    Ok(files.map(|(name, text)| (directory.join(name), text)).into())
}

/// Starts `gateway` for `experiment` on `core` and waits until it is ready.
///
/// # Errors
/// It ends, or is not ready in time; with the last lines that it wrote.
pub fn start(
    gateway: &Gateway,
    program: &Path,
    experiment: &Experiment,
    place: InstanceLocation,
    cores: Vec<usize>,
    supervisor: &Supervisor,
) -> Result<Running> {
    let values = values(experiment, &place, program)?;
    let files = configuration(gateway, &values, &place.directory)?;
    for (path, text) in files
        .iter()
        .chain(&certificate_files(experiment, &place.directory)?)
    {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let (configuration, _) = files.into_iter().next().context("it has no configuration file")?;
    let filled = |text: &String| render(text, &values);
    let words = gateway
        .command(experiment)
        .map(filled)
        .collect::<Result<Vec<_>>>()?;
    let environment = gateway.environment.iter();
    let environment = environment
        .map(|(name, value)| Ok((name.clone(), filled(value)?)))
        .collect::<Result<Vec<_>>>()?;
    let (command, arguments) = words.split_first().context("it has no start command")?;
    let process = supervisor.start(&StartOptions {
        program: Path::new(command),
        arguments: arguments.iter().map(Into::into).collect(),
        environment,
        cores,
        log: &place.directory.join("log"),
        stop: gateway.stop,
    })?;
    let mut running = Running {
        place,
        configuration,
        process,
    };
    running.wait_until_ready(gateway, experiment.setup.speaks)?;
    running.process.note_members();
    Ok(running)
}

impl Running {
    fn wait_until_ready(&mut self, gateway: &Gateway, speaks: WireProtocol) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let answer = match &gateway.ready {
                Ready::Listen if speaks.is_plain_http() => client::get(self.place.listen, "/", &[]).is_ok(),
                Ready::Listen => client::connect(self.place.listen).is_ok(),
                Ready::Status { path } => {
                    client::get(self.place.status, path, &[]).is_ok_and(|response| response.status == 200)
                }
            };
            if let Some(status) = self.process.ended()? {
                bail!(
                    "it ended while starting ({status}):\n{}",
                    self.process.last_words()
                );
            }
            if answer {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!(
                    "not ready after {} s:\n{}",
                    START_LIMIT.as_secs(),
                    self.process.last_words()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// How many files a process may have open here; the configuration of servers has this number.
pub fn open_files() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(65_536).min(65_536)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::EXPERIMENTS;
    use crate::gateway::all;
    use crate::probe::with_low_limit;

    #[test]
    fn every_template_is_complete() {
        let place = InstanceLocation {
            directory: "/tmp/somewhere".into(),
            listen: "127.0.0.1:11111".parse().unwrap(),
            status: "127.0.0.1:22222".parse().unwrap(),
            upstream: "127.0.0.1:33333".parse().unwrap(),
        };
        let small = EXPERIMENTS.iter().filter(|experiment| experiment.id != "R100K");
        let experiments: Vec<Experiment> = small
            .flat_map(|experiment| [Some(*experiment), with_low_limit(experiment)])
            .flatten()
            .collect();
        for gateway in all(None).unwrap() {
            for experiment in experiments.iter().filter(|it| gateway.refuses(it).is_none()) {
                let values = values(experiment, &place, Path::new("/bin/gateway")).unwrap();
                let files = configuration(&gateway, &values, &place.directory).unwrap();
                let text: String = files.into_iter().map(|(_, text)| text).collect();
                let all_of = |part: &str| text.matches(part).count();
                assert!(all_of("33333") > 0, "{gateway} {experiment}: no upstream");
                if !gateway.plain && experiment.setup.speaks != WireProtocol::Tcp {
                    let routes = all_of("/hello");
                    assert_eq!(routes, experiment.setup.routes as usize, "{gateway} {experiment}");
                    if let Some(limit) = experiment.setup.limit {
                        let header_bytes =
                            all_of(&limit.count.to_string()) + all_of(&(limit.count / 60).to_string());
                        assert!(header_bytes > 0, "{gateway} {experiment}: no limit");
                    }
                }
            }
        }
    }
}
