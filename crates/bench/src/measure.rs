//! One round of one gateway: the load of the experiment, and what it cost whom.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;

use crate::bench::Bench;
use crate::client::request;
use crate::cpu::{self, CpuTime};
use crate::experiment::{Experiment, FLOOD_HEADER, Flood, Load};
use crate::load::{self, Loader, Work};
use crate::results::{Conditions, Round};
use crate::sender::{LoadPlan, send};
use crate::single;
use crate::{machine, sender};

/// The percentiles that are kept.
pub const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];
/// The slowest call.
pub const MAX: &str = "max";
/// The part of a constant-rate round whose latencies are not kept.
const WARM_UP: Duration = Duration::from_secs(1);
/// A core that is used more than this is full.
const FULL: f64 = 0.9;
/// A load generator that is this late (99th percentile, microseconds) does not hold its rate.
const LATE_US: f64 = 1_000.0;
/// A load with fewer good answers than this part of its calls did not reach its rate.
pub const KEPT: f64 = 0.98;

/// What is measured: its address, and its processes (none for the API itself).
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Where calls go.
    pub address: SocketAddr,
    /// The first of the gateway's processes.
    pub pid: Option<u32>,
    /// The first of the API's processes.
    pub upstream: u32,
}

/// What the load itself counted.
#[derive(Debug, Default)]
struct LoadMeasurement {
    calls: u64,
    errors: u64,
    calls_per_second: f64,
    latency_us: BTreeMap<String, f64>,
    late_us: Option<(f64, f64)>,
    load_cpu: Duration,
    command: String,
}

/// Measures one round.
///
/// # Errors
/// The load could not be made, or nothing was measured; a closed loop with failed calls, whose figures would be those
/// of refusals.
pub fn round(
    bench: &Bench,
    target: Target,
    experiment: &Experiment,
    rate: Option<u32>,
    conditions: &Conditions,
    loader: &Loader,
) -> Result<Round> {
    let started = Instant::now();
    let before = target.pid.map(|pid| CpuTime::of(pid, bench.clock));
    let upstream_before = CpuTime::of(target.upstream, bench.clock);
    let counted = match (experiment.load, rate) {
        (Load::Rates(_), Some(rate)) => constant_rate(target, experiment, rate, conditions)?,
        (Load::Single, _) => single_calls(target, experiment, conditions)?,
        _ => closed_loop(target, experiment, conditions, loader)?,
    };
    let used = before.and_then(|before| Some(CpuTime::of(target.pid?, bench.clock).since(before)));
    let upstream_used = CpuTime::of(target.upstream, bench.clock).since(upstream_before);
    let elapsed = started.elapsed().as_secs_f64();
    if counted.calls == 0 || used.is_some_and(|used| used.total.is_zero()) {
        bail!(
            "{} good answers, {used:?} of CPU time: nothing was measured",
            counted.calls
        );
    }
    let cpu_us = used.map(|used| used.total.as_secs_f64() * 1e6 / counted.calls as f64);
    let busy = used.map(|used| used.total.as_secs_f64() / elapsed);
    let load_busy = counted.load_cpu.as_secs_f64() / elapsed;
    let upstream_busy = upstream_used.total.as_secs_f64() / elapsed;
    let pace = CpuShares {
        gateway: busy,
        load: load_busy,
        upstream: upstream_busy,
        shared: bench.pinning.load == bench.pinning.upstream,
        kept: rate.map_or(1.0, |rate| counted.calls_per_second / f64::from(rate)),
        late_us: counted.late_us.map_or(0.0, |(p99, _)| p99),
    };
    Ok(Round {
        experiment: experiment.id.to_owned(),
        gateway: String::new(),
        rate,
        round: 0,
        conditions: conditions.clone(),
        time: machine::now(),
        load_average: machine::load_average(),
        calls: counted.calls,
        errors: counted.errors,
        calls_per_second: counted.calls_per_second,
        cpu_us,
        user_us: cpu_us.zip(used).map(|(cpu_us, used)| cpu_us * used.user_share()),
        busy,
        load_busy,
        upstream_busy,
        limited: pace.limited(experiment.load),
        latency_us: counted.latency_us,
        late_us: counted.late_us.map(|(_, p999)| p999),
        command: counted.command,
    })
}

/// Who was how busy in a round, as shares of a core, and how the load kept its promise.
#[derive(Debug, Clone, Copy)]
struct CpuShares {
    /// The gateway; none for the API itself.
    gateway: Option<f64>,
    load: f64,
    upstream: f64,
    /// The load generator and the API share a core.
    shared: bool,
    /// Good answers per second for each call per second that was asked for.
    kept: f64,
    /// How late the load generator was, in microseconds (99th percentile).
    late_us: f64,
}

impl CpuShares {
    /// Why something else than the gateway set the pace, if so.
    fn limited(&self, load: Load) -> Option<String> {
        let others = format!(
            "load generator {:.0} %, API {:.0} % of {}",
            self.load * 100.0,
            self.upstream * 100.0,
            if self.shared { "the same core" } else { "theirs" }
        );
        let idle = self.gateway.filter(|busy| *busy < FULL);
        let full = if self.shared {
            self.load + self.upstream
        } else {
            self.load.max(self.upstream)
        };
        match (load, idle) {
            (Load::Single, _) => None,
            (Load::Closed | Load::Handshakes, idle) => idle.map(|busy| {
                format!(
                    "the gateway's core was busy for {:.0} % only ({others})",
                    busy * 100.0
                )
            }),
            (Load::Rates(_), _) if full > FULL => Some(format!("the load's core was full ({others})")),
            (Load::Rates(_), _) if self.late_us > LATE_US => Some(format!(
                "the load generator was late by {:.0} µs (p99; {others})",
                self.late_us
            )),
            // Behind its rate with an idle gateway: something took the cores away.
            (Load::Rates(_), idle) if self.kept < KEPT && (idle.is_some() || self.gateway.is_none()) => {
                Some(format!(
                    "the rate was not reached, and the gateway's core was busy for {:.0} % only ({others})",
                    idle.unwrap_or_default() * 100.0
                ))
            }
            (Load::Rates(_), _) => None,
        }
    }
}

fn closed_loop(
    target: Target,
    experiment: &Experiment,
    conditions: &Conditions,
    loader: &Loader,
) -> Result<LoadMeasurement> {
    let work = Work {
        target: target.address,
        experiment,
        connections: conditions.connections,
        duration: Duration::from_secs(conditions.seconds.into()),
    };
    let (counted, load_cpu) = loader.run(&work)?;
    if counted.errors() > 0 {
        bail!(
            "of {} calls {} were refused (status not 2xx or 3xx), and {} socket errors",
            counted.calls,
            counted.refused,
            counted.socket_errors
        );
    }
    let command = load::command(&work, Path::new(""));
    Ok(LoadMeasurement {
        calls: counted.calls,
        errors: 0,
        calls_per_second: counted.calls_per_second,
        latency_us: counted
            .latency_us
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        late_us: None,
        load_cpu,
        command,
    })
}

fn constant_rate(
    target: Target,
    experiment: &Experiment,
    rate: u32,
    conditions: &Conditions,
) -> Result<LoadMeasurement> {
    let headers = experiment.headers();
    let requests = experiment.paths();
    let requests = requests
        .iter()
        .map(|path| request("GET", path, target.address, &headers));
    let plan = LoadPlan {
        target: target.address,
        requests: requests.collect(),
        rate,
        connections: conditions.connections as usize,
        warm_up: WARM_UP,
        length: Duration::from_secs(conditions.seconds.into()),
    };
    let started = Instant::now();
    let over = AtomicBool::new(false);
    let (record, beside) = std::thread::scope(|scope| {
        let beside = flood(target, experiment, &plan);
        let flooding = beside.map(|plan| {
            let over = &over;
            scope.spawn(move || send(&plan, over))
        });
        let record = send(&plan, &over);
        over.store(true, Ordering::Relaxed);
        let beside = flooding.map(|thread| thread.join().unwrap_or_else(|_| bail!("the flood has failed")));
        anyhow::Ok((record?, beside.transpose()?))
    })?;
    let (calls_beside, cpu_beside) = beside.map_or((0, Duration::ZERO), |it| (it.calls, it.cpu));
    // Longer than planned where calls were still under way at the end.
    let elapsed = started.elapsed().as_secs_f64();
    let late = |percentile| sender::microseconds(record.lateness.value_at_percentile(percentile));
    Ok(LoadMeasurement {
        // Latencies are those of the steady client, CPU per call is that of all calls.
        calls: record.calls + calls_beside,
        errors: record.failed(),
        calls_per_second: record.calls as f64 / elapsed,
        latency_us: percentiles(&record.latency),
        late_us: Some((late(99.0), late(99.9))),
        load_cpu: record.cpu + cpu_beside,
        command: format!("weir-bench latency --experiment {experiment} --rate {rate}"),
    })
}

/// The flood that comes with the load, for as long as that.
fn flood(target: Target, experiment: &Experiment, load: &LoadPlan) -> Option<LoadPlan> {
    let keys = experiment.setup.flood.keys();
    let requests = keys.map(|key| request("GET", "/hello", target.address, &[(FLOOD_HEADER, key)]));
    let requests: Vec<Vec<u8>> = requests.collect();
    (!requests.is_empty()).then(|| LoadPlan {
        requests,
        rate: Flood::RATE,
        ..load.clone()
    })
}

fn single_calls(target: Target, experiment: &Experiment, conditions: &Conditions) -> Result<LoadMeasurement> {
    let before = cpu::of_this_thread();
    let path = experiment
        .paths()
        .into_iter()
        .next()
        .context("an experiment without a path")?;
    let bytes = request("GET", &path, target.address, &experiment.headers());
    let duration = Duration::from_secs(conditions.seconds.into());
    let started = Instant::now();
    let times = single::call(target.address, &bytes, duration)?;
    let command = format!(
        "curl -s -o /dev/null -w '%{{time_total}}\\n' http://{}{path}",
        target.address
    );
    Ok(LoadMeasurement {
        calls: times.len(),
        errors: 0,
        calls_per_second: times.len() as f64 / started.elapsed().as_secs_f64(),
        latency_us: percentiles(&times),
        late_us: None,
        load_cpu: cpu::of_this_thread().saturating_sub(before),
        command,
    })
}

fn percentiles(histogram: &Histogram<u64>) -> BTreeMap<String, f64> {
    let at = |(name, percentile): (&str, f64)| {
        let value = histogram.value_at_percentile(percentile);
        (name.to_owned(), sender::microseconds(value))
    };
    let max = (MAX.to_owned(), sender::microseconds(histogram.max()));
    PERCENTILES.map(at).into_iter().chain([max]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_the_load_limits_are_seen() {
        let good = CpuShares {
            gateway: Some(0.2),
            load: 0.4,
            upstream: 0.2,
            shared: true,
            kept: 1.0,
            late_us: 80.0,
        };
        let busy = |gateway| CpuShares {
            gateway: Some(gateway),
            ..good
        };
        let rates = Load::Rates(&[]);
        let cases = [
            (Load::Closed, busy(0.97), false),
            (Load::Closed, busy(0.7), true),
            (
                Load::Closed,
                CpuShares {
                    gateway: None,
                    ..good
                },
                false,
            ),
            (rates, good, false),
            (rates, CpuShares { load: 0.8, ..good }, true),
            (
                rates,
                CpuShares {
                    load: 0.8,
                    shared: false,
                    ..good
                },
                false,
            ),
            (
                rates,
                CpuShares {
                    late_us: 1_500.0,
                    ..good
                },
                true,
            ),
            (rates, CpuShares { kept: 0.9, ..good }, true),
            (
                rates,
                CpuShares {
                    kept: 0.9,
                    ..busy(0.99)
                },
                false,
            ),
            (
                rates,
                CpuShares {
                    kept: 0.9,
                    gateway: None,
                    ..good
                },
                true,
            ),
            (Load::Single, busy(0.1), false),
        ];
        for (load, pace, expected) in cases {
            let found = pace.limited(load);
            assert_eq!(found.is_some(), expected, "{load:?} {pace:?}: {found:?}");
        }
    }
}
