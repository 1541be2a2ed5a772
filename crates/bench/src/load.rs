//! The closed-loop load: `wrk`, and the reading of what it prints.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cpu;
use crate::experiment::Experiment;
use crate::gateway::Stop;
use crate::process::{Start, Supervisor, find_program};
use crate::template::{Values, render};

/// What one run of `wrk` counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// Completed calls, refused ones included.
    pub calls: u64,
    /// Completed calls per second.
    pub calls_per_second: f64,
    /// Median latency in microseconds, as a closed loop sees it.
    pub p50_us: f64,
    /// 90th percentile of the latency in microseconds, as a closed loop sees it.
    pub p90_us: f64,
    /// 99th percentile of the latency in microseconds, as a closed loop sees it.
    pub p99_us: f64,
    /// Connect, read, write and time-out errors together.
    pub socket_errors: u64,
    /// Answers with a status outside 2xx and 3xx.
    pub refused: u64,
}

impl Counted {
    /// Calls that did not get a good answer.
    pub fn errors(&self) -> u64 {
        self.socket_errors + self.refused
    }
}

/// How `wrk` is run: one thread on one core.
#[derive(Debug)]
pub struct Wrk {
    program: PathBuf,
    supervisor: Supervisor,
    directory: PathBuf,
    core: usize,
}

impl Wrk {
    /// Finds `wrk`; its script and output go to `directory`.
    ///
    /// # Errors
    /// It is not installed.
    pub fn new(supervisor: &Supervisor, directory: &Path, core: usize) -> Result<Self> {
        let program = find_program("wrk").context("not found: wrk (apt-get install wrk)")?;
        Ok(Self {
            program,
            supervisor: supervisor.clone(),
            directory: directory.to_owned(),
            core,
        })
    }

    /// Asks `target` for the calls of `experiment` during `duration` (whole seconds); with the CPU time that `wrk` used.
    ///
    /// # Errors
    /// `wrk` fails, hangs or prints something unknown.
    pub fn run(
        &self,
        target: SocketAddr,
        experiment: &Experiment,
        connections: u32,
        duration: Duration,
    ) -> Result<(Counted, Duration)> {
        let script = self.directory.join("random_route.lua");
        if experiment.setup.routes > 1 {
            fs::write(&script, random_routes(experiment)?).context("writing wrk's script")?;
        }
        let before = cpu::of_ended_children();
        let mut wrk = self.supervisor.start(&Start {
            program: &self.program,
            arguments: arguments(target, experiment, connections, duration, &script),
            environment: Vec::new(),
            core: self.core,
            log: &self.directory.join("wrk.log"),
            stop: Stop::Term,
        })?;
        let status = wrk.wait(duration + Duration::from_secs(30)).context("wrk")?;
        if !status.success() {
            bail!("wrk failed ({status}): {}", wrk.last_words());
        }
        let output = wrk.output()?;
        let counted = parse(&output).with_context(|| format!("unknown output of wrk:\n{output}"))?;
        Ok((counted, cpu::of_ended_children().saturating_sub(before)))
    }
}

/// The arguments of `wrk`; `script` chooses among many routes.
pub fn arguments(
    target: SocketAddr,
    experiment: &Experiment,
    connections: u32,
    duration: Duration,
    script: &Path,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-t", "1", "--latency", "-c"].map(OsString::from).into();
    arguments.push(connections.to_string().into());
    arguments.push(format!("-d{}s", duration.as_secs()).into());
    for (name, value) in experiment.headers() {
        arguments.push("-H".into());
        arguments.push(format!("{name}: {value}").into());
    }
    let path = if experiment.setup.routes > 1 {
        arguments.push("-s".into());
        arguments.push(script.into());
        "/"
    } else {
        "/hello"
    };
    arguments.push(format!("http://{target}{path}").into());
    arguments
}

/// The script with which `wrk` asks for the experiment's routes at random.
///
/// # Errors
/// The template is wrong.
pub fn random_routes(experiment: &Experiment) -> Result<String> {
    let mut values = Values::default();
    values.text("routes", experiment.setup.routes);
    render(include_str!("../load/random_route.lua"), &values)
}

/// Reads the text that `wrk --latency` prints.
fn parse(output: &str) -> Option<Counted> {
    let mut counted = Counted::default();
    let (mut calls, mut rate, mut p50, mut p90, mut p99) = (None, None, None, None, None);
    for line in output.lines().map(str::trim) {
        if let Some(value) = line.strip_prefix("50%") {
            p50 = Some(parse_time(value.trim())?);
        } else if let Some(value) = line.strip_prefix("90%") {
            p90 = Some(parse_time(value.trim())?);
        } else if let Some(value) = line.strip_prefix("99%") {
            p99 = Some(parse_time(value.trim())?);
        } else if let Some((count, _)) = line.split_once(" requests in ") {
            calls = Some(count.parse().ok()?);
        } else if let Some(value) = line.strip_prefix("Requests/sec:") {
            rate = Some(value.trim().parse().ok()?);
        } else if let Some(kinds) = line.strip_prefix("Socket errors:") {
            for kind in kinds.split(',') {
                counted.socket_errors += kind.rsplit(' ').next()?.parse::<u64>().ok()?;
            }
        } else if let Some(value) = line.strip_prefix("Non-2xx or 3xx responses:") {
            counted.refused = value.trim().parse().ok()?;
        }
    }
    Some(Counted {
        calls: calls?,
        calls_per_second: rate?,
        p50_us: p50?,
        p90_us: p90?,
        p99_us: p99?,
        ..counted
    })
}

/// A time as wrk prints it, in microseconds.
fn parse_time(text: &str) -> Option<f64> {
    // "us" and "ms" end in "s" too: the longer units come first.
    const UNITS: [(&str, f64); 5] = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)];
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Running 2s test @ http://127.0.0.1:8080/hello
  1 threads and 50 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
    Req/Sec    56.20k     8.07k   62.00k    86.54%
  Latency Distribution
     50%  250.00us
     75%  491.00us
     90%  700.00us
     99%    5.80ms
  112400 requests in 2.00s, 17.76MB read
";
    const RATE: &str = "Requests/sec:  56196.53\nTransfer/sec:    606.33MB\n";

    #[test]
    fn outputs_of_wrk() {
        let good = Counted {
            calls: 112_400,
            calls_per_second: 56_196.53,
            p50_us: 250.0,
            p90_us: 700.0,
            p99_us: 5800.0,
            ..Counted::default()
        };
        let socket = "  Socket errors: connect 1, read 2, write 0, timeout 3\n";
        let refused = "  Non-2xx or 3xx responses: 77\n";
        let cases = [
            (format!("{PRINTED}{RATE}"), Some(good)),
            (
                format!("{PRINTED}{socket}{RATE}"),
                Some(Counted {
                    socket_errors: 6,
                    ..good
                }),
            ),
            (
                format!("{PRINTED}{refused}{RATE}"),
                Some(Counted { refused: 77, ..good }),
            ),
            (
                format!("{PRINTED}{socket}{refused}{RATE}"),
                Some(Counted {
                    socket_errors: 6,
                    refused: 77,
                    ..good
                }),
            ),
            (PRINTED.to_owned(), None),
            (
                "unable to connect to 127.0.0.1:1 Connection refused\n".to_owned(),
                None,
            ),
            (String::new(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text), expected, "{text}");
        }
    }

    #[test]
    fn times_of_wrk() {
        let cases = [
            ("635.91us", Some(635.91)),
            ("5.80ms", Some(5800.0)),
            ("1.25s", Some(1_250_000.0)),
            ("2.00m", Some(120_000_000.0)),
            ("12", None),
            ("us", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_time(text), expected, "{text:?}");
        }
    }
}
