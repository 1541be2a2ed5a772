//! The raw results: a file of JSON lines, one row a round, each complete in itself. A run that was interrupted goes on
//! at the end of the file; what it holds already is not measured again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The API itself among the gateways.
pub const DIRECT: &str = "direct";

/// The name of the file in the folder of a run.
pub const FILE: &str = "results.jsonl";

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Line {
    /// A measured round.
    Round(Box<Round>),
    /// Why a gateway has no figures in an experiment.
    Absent(AbsentResult),
    /// A result of another command, as it is.
    Other(serde_json::Value),
}

/// Why a gateway has no figures in an experiment: it was not found, cannot do it, or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbsentResult {
    /// The experiment.
    pub experiment: String,
    /// The gateway.
    pub gateway: String,
    /// The reason, with what to do.
    pub reason: String,
}

/// One round of one gateway. Times are in microseconds, shares between 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The experiment.
    pub experiment: String,
    /// The gateway, or `direct` for the API itself.
    pub gateway: String,
    /// The constant rate in calls per second, if there is one.
    pub rate: Option<u32>,
    /// From 1.
    pub round: u32,
    /// How it was measured; rounds that differ here are not of one experiment.
    pub conditions: Conditions,
    /// Seconds since 1970 at its end.
    pub time: u64,
    /// The machine's load averages at its end.
    pub load_average: String,
    /// Good answers.
    pub calls: u64,
    /// Calls without a good answer.
    pub errors: u64,
    /// Good answers per second.
    pub calls_per_second: f64,
    /// CPU time of the gateway's processes per call; none for the API itself.
    pub cpu_us: Option<f64>,
    /// The part of it outside the kernel.
    pub user_us: Option<f64>,
    /// The gateway's share of its core.
    pub busy: Option<f64>,
    /// The share of its core that the load generator used.
    pub load_busy: f64,
    /// The share of its core that the API used.
    pub upstream_busy: f64,
    /// Why the load generator, and not the gateway, set calls per second and latency, if it did.
    pub limited: Option<String>,
    /// Percentiles of the latency by name, `p50` to `max`.
    pub latency_us: BTreeMap<String, f64>,
    /// The 99.9th percentile of the load generator's own lateness.
    pub late_us: Option<f64>,
    /// The command that repeats the load by hand.
    pub command: String,
}

/// How a round was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The gateway's version.
    pub version: String,
    /// The kernel's version.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Cores that the bench may use.
    pub cores: usize,
    /// Who ran on which core.
    pub pinning: String,
    /// Connections of the load.
    pub connections: u32,
    /// Seconds of load.
    pub seconds: u32,
    /// Bytes of the API's answer.
    pub body_bytes: usize,
}

/// The file of a run.
#[derive(Debug)]
pub struct Results {
    /// Its path.
    pub path: PathBuf,
    file: File,
    lines: Vec<Line>,
}

impl Results {
    /// Opens the file, or starts it, and reads what it holds. A line that was cut off is dropped.
    ///
    /// # Errors
    /// It cannot be read or written, or is not a file of results.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("opening {shown}"))?;
        let text = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64)
            .with_context(|| format!("writing {shown}"))?;
        let lines = parse(&text[..whole]).with_context(|| format!("{shown}"))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            lines,
        })
    }

    /// Adds a line; it is in the file when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, line: Line) -> Result<()> {
        let text = serde_json::to_string(&line).context("a row as JSON")?;
        self.file
            .write_all(format!("{text}\n").as_bytes())
            .context("writing the results")?;
        self.lines.push(line);
        Ok(())
    }

    /// What the file holds.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The round, if it has been measured under the same conditions.
    pub fn has(
        &self,
        experiment: &str,
        gateway: &str,
        rate: Option<u32>,
        round: u32,
        under: &Conditions,
    ) -> bool {
        self.lines.iter().any(|line| {
            matches!(line, Line::Round(it) if it.experiment == experiment && it.gateway == gateway
                && it.rate == rate && it.round == round && it.conditions == *under)
        })
    }
}

/// Reads a file of results.
///
/// # Errors
/// It cannot be read, or a line is not a row.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    parse(&text[..whole]).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Vec<Line>> {
    let line = |(at, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("line {}: not a row of results", at + 1))
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A round of a test.
    pub fn round(experiment: &str, gateway: &str, number: u32, cpu_us: f64) -> Round {
        Round {
            experiment: experiment.to_owned(),
            gateway: gateway.to_owned(),
            rate: None,
            round: number,
            conditions: Conditions {
                version: "1".to_owned(),
                kernel: "6".to_owned(),
                processor: "x".to_owned(),
                cores: 2,
                pinning: "gateway on core 0".to_owned(),
                connections: 50,
                seconds: 3,
                body_bytes: 1024,
            },
            time: 0,
            load_average: "0".to_owned(),
            calls: 1000,
            errors: 0,
            calls_per_second: 1e6 / cpu_us,
            cpu_us: Some(cpu_us),
            user_us: Some(1.0),
            busy: Some(1.0),
            load_busy: 0.5,
            upstream_busy: 0.3,
            limited: None,
            latency_us: BTreeMap::from([("p50".to_owned(), 100.0), ("max".to_owned(), 900.0)]),
            late_us: None,
            command: "wrk".to_owned(),
        }
    }

    #[test]
    fn an_interrupted_run_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let measured = round("A1", "nginx", 1, 10.0);
        let mut results = Results::open(&path).unwrap();
        results.add(Line::Round(Box::new(measured.clone()))).unwrap();
        drop(results);
        let cut = format!("{}{{\"row\":\"rou", fs::read_to_string(&path).unwrap());
        fs::write(&path, cut).unwrap();
        let mut results = Results::open(&path).unwrap();
        let other = Conditions {
            seconds: 5,
            ..measured.conditions.clone()
        };
        for (experiment, gateway, number, under, expected) in [
            ("A1", "nginx", 1, &measured.conditions, true),
            ("A1", "nginx", 2, &measured.conditions, false),
            ("A1", "weir-kong", 1, &measured.conditions, false),
            ("A1", "nginx", 1, &other, false),
        ] {
            let has = results.has(experiment, gateway, None, number, under);
            assert_eq!(has, expected, "{experiment} {gateway} {number}");
        }
        results
            .add(Line::Round(Box::new(round("A1", "nginx", 2, 10.0))))
            .unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["hello\n", "{}\n", "{\"row\":\"round\"}\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
