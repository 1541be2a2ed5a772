//! The closed-loop load: the program that makes it for each protocol, how it is run, and what it counted.

mod h2load;
mod handshakes;
mod wrk;

pub use wrk::random_routes;

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cpu;
use crate::experiment::{Experiment, Load};
use crate::gateway::StopSignal;
use crate::process::{StartOptions, Supervisor, find_program};

/// What one run of the load counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadResult {
    /// Completed calls, refused ones included; or handshakes.
    pub calls: u64,
    /// Completed calls per second.
    pub calls_per_second: f64,
    /// Percentiles of the latency in microseconds, as a closed loop sees it; none if the program reports none.
    pub latency_us: Vec<(&'static str, f64)>,
    /// Connect, read, write and time-out errors together.
    pub socket_errors: u64,
    /// Answers with a status outside 2xx and 3xx.
    pub refused: u64,
}

impl LoadResult {
    /// Calls that did not get a good answer.
    pub fn errors(&self) -> u64 {
        self.socket_errors + self.refused
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// Who is asked.
    pub target: SocketAddr,
    /// For which calls.
    pub experiment: &'a Experiment,
    /// Over how many connections.
    pub connections: u32,
    /// For how long, in whole seconds.
    pub duration: Duration,
}

/// A program that makes load, for one thread on one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Wrk,
    H2load,
}

impl Tool {
    fn of(experiment: &Experiment) -> Self {
        match experiment.setup.speaks.is_http2() {
            true => Self::H2load,
            false => Self::Wrk,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::H2load => "nghttp2-client",
        }
    }
}

/// How the load is run: one thread on one core.
#[derive(Debug)]
pub struct Loader {
    supervisor: Supervisor,
    directory: PathBuf,
    core: usize,
}

impl Loader {
    /// Scripts and output go to `directory`.
    pub fn new(supervisor: &Supervisor, directory: &Path, core: usize) -> Self {
        Self {
            supervisor: supervisor.clone(),
            directory: directory.to_owned(),
            core,
        }
    }

    /// Does it; with the CPU time of the load.
    ///
    /// # Errors
    /// The program is not installed, fails, hangs or prints something unknown.
    pub fn run(&self, work: &Work<'_>) -> Result<(LoadResult, Duration)> {
        if work.experiment.load == Load::Handshakes {
            return handshakes::run(work.target, work.connections, work.duration);
        }
        let tool = Tool::of(work.experiment);
        let (name, package) = (tool.name(), tool.package());
        let program =
            find_program(name).with_context(|| format!("not found: {name} (apt-get install {package})"))?;
        for (file, text) in files(work.experiment)? {
            fs::write(self.directory.join(file), text).context("writing the load's files")?;
        }
        let before = cpu::of_ended_children();
        let mut load = self.supervisor.start(&StartOptions {
            program: &program,
            arguments: arguments(work, &self.directory),
            environment: Vec::new(),
            cores: vec![self.core],
            log: &self.directory.join("load.log"),
            stop: StopSignal::Term,
        })?;
        let status = load.wait(work.duration + Duration::from_secs(30)).context(name)?;
        if !status.success() {
            bail!("{name} failed ({status}): {}", load.last_words());
        }
        let output = load.output()?;
        let counted = match tool {
            Tool::Wrk => wrk::parse(&output),
            Tool::H2load => h2load::parse(&output),
        };
        let counted = counted.with_context(|| format!("unknown output of {name}:\n{output}"))?;
        Ok((counted, cpu::of_ended_children().saturating_sub(before)))
    }
}

/// What the load reads: names of files and what is in them.
///
/// # Errors
/// A template is wrong.
pub fn files(experiment: &Experiment) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut files = Vec::new();
    if experiment.setup.routes > 1 {
        files.push((wrk::SCRIPT, random_routes(experiment)?.into_bytes()));
    }
    if let Some(body) = experiment.request_body() {
        files.push((h2load::BODY, body));
    }
    Ok(files)
}

/// The arguments of the program; its files are in `directory`.
fn arguments(work: &Work<'_>, directory: &Path) -> Vec<OsString> {
    match Tool::of(work.experiment) {
        Tool::Wrk => wrk::arguments(work, directory),
        Tool::H2load => h2load::arguments(work, directory),
    }
}

/// The command line that makes the same load by hand; the program's files are in `directory`.
pub fn command(work: &Work<'_>, directory: &Path) -> String {
    if work.experiment.load == Load::Handshakes {
        return format!(
            "timeout {} sh -c 'while :; do openssl s_client -tls1_3 -groups X25519 -connect {} </dev/null; done'",
            work.duration.as_secs(),
            work.target
        );
    }
    let words = arguments(work, directory);
    shell(
        Tool::of(work.experiment).name(),
        words.iter().map(|word| word.to_string_lossy()),
    )
}

/// A command line as it is typed.
pub fn shell<T: AsRef<str>>(program: &str, words: impl Iterator<Item = T>) -> String {
    let mut line = program.to_owned();
    for word in words {
        let word = word.as_ref();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
        if !word.is_empty() && word.bytes().all(is_plain) {
            line.push_str(&format!(" {word}"));
        } else {
            line.push_str(&format!(" '{}'", word.replace('\'', r"'\''")));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed() {
        let words = [
            "-H",
            "Authorization: Bearer x",
            "it's",
            "http://127.0.0.1:1/hello",
        ];
        let line = shell("wrk", words.iter());
        assert_eq!(
            line,
            r"wrk -H 'Authorization: Bearer x' 'it'\''s' http://127.0.0.1:1/hello"
        );
    }

    #[test]
    fn every_protocol_has_its_load() {
        let target = "127.0.0.1:1".parse().unwrap();
        let cases = [
            ("A1", "wrk -t 1 --latency -c 50 -d2s http://127.0.0.1:1/hello"),
            (
                "A4",
                "wrk -t 1 --latency -c 50 -d2s -s d/random_route.lua http://127.0.0.1:1/",
            ),
            ("https", "wrk -t 1 --latency -c 50 -d2s https://127.0.0.1:1/hello"),
            ("h2", "h2load -t 1 -c 50 -m 100 -D 2 http://127.0.0.1:1/hello"),
            (
                "grpc",
                "h2load -t 1 -c 50 -m 100 -D 2 -d d/message -H 'content-type: application/grpc' -H 'te: trailers' \
                 http://127.0.0.1:1/hello",
            ),
        ];
        for (id, expected) in cases {
            let work = Work {
                target,
                experiment: crate::experiment::select(&[id.to_owned()]).unwrap()[0],
                connections: 50,
                duration: Duration::from_secs(2),
            };
            let line = command(&work, Path::new("d"));
            assert_eq!(line, expected);
        }
    }
}
