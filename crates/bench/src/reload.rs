//! `weir-bench reload`: the configuration file changes many times under a constant load; no call may fail, and each
//! change must really be served.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::client::{self, request};
use crate::experiment::{Experiment, PLAIN, Setup, closed};
use crate::gateway::Gateway;
use crate::results::{Line, Results};
use crate::running::{self, Running};
use crate::sender::{self, LoadPlan, Record, send};
use crate::table::{Spread, Table};
use crate::terminal;
use crate::upstream::ResponseKind;

/// Connections of the load, if the call names no number.
const CONNECTIONS: u32 = 50;

/// A change is given at least this long when the gateway reports no generation.
const SHORTEST_WAIT: Duration = Duration::from_millis(60);
/// A change that is not served after this long is lost.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(2);

/// What happened while a gateway's file changed.
#[derive(Debug)]
struct ReloadResult {
    record: Record,
    /// From the file's change until the new route answered, in milliseconds.
    effect_ms: Vec<f64>,
}

/// Changes each gateway's file `changes` times under `rate` calls per second; `false` when a call failed.
///
/// # Errors
/// The upstream or the report fails; a gateway's failure is a row of the table.
pub fn run(bench: &Bench, changes: u32, rate: u32, results: &mut Results) -> Result<bool> {
    let directory = bench.directory("reload")?;
    let upstream = bench.upstream(&directory.join("upstream"), ResponseKind::Body(1024))?;
    let title = format!("Reload · {changes} changes of the configuration file under {rate} calls/s");
    let columns = [
        "gateway",
        "calls",
        "failed",
        "served after ms",
        "p50 µs",
        "p99.9 µs",
        "max µs",
    ];
    let mut table = Table::new(title, &columns);
    let mut clean = true;
    // The others have no file that they take over by themselves, so they have no row here.
    for found in bench.gateways.iter().filter(|found| found.gateway.reloads) {
        let gateway = &found.gateway;
        let start = || {
            let running = bench.start(
                found,
                &configuration(0),
                upstream.address,
                &directory,
                &gateway.name,
            )?;
            change_under_load(bench, gateway, &running, changes, rate)
        };
        let cells = match start() {
            Ok(outcome) => {
                if outcome.record.failed() > 0 {
                    clean = false;
                    table.footnote(format!("{gateway}: {}", outcome.record.failures()));
                }
                results.add(outcome.line(gateway, changes))?;
                Ok(outcome.cells())
            }
            Err(error) => Err(format!("{error:#}")),
        };
        table.row(&gateway.name, cells);
    }
    terminal::table(&table)?;
    Ok(clean && table.is_complete())
}

/// The configuration after so many changes.
fn configuration(changes: u32) -> Experiment {
    let setup = Setup { changes, ..PLAIN };
    Experiment {
        connections: CONNECTIONS,
        ..closed("reload", "one route more with each change", setup)
    }
}

fn change_under_load(
    bench: &Bench,
    gateway: &Gateway,
    running: &Running,
    changes: u32,
    rate: u32,
) -> Result<ReloadResult> {
    let target = running.place.listen;
    let plan = LoadPlan {
        target,
        requests: vec![request("GET", "/hello", target, &[])],
        rate,
        connections: bench.options.connections.unwrap_or(CONNECTIONS) as usize,
        warm_up: Duration::ZERO,
        length: LONGEST_WAIT * changes,
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(&plan, &stop));
        let changed = (1..=changes)
            .map(|number| {
                if sender.is_finished() {
                    bail!("the load ended before change {number}");
                }
                change(gateway, running, number)
            })
            .collect::<Result<Vec<f64>>>();
        stop.store(true, Ordering::Relaxed);
        let record = sender
            .join()
            .map_err(|_| anyhow::anyhow!("the sender panicked"))??;
        Ok(ReloadResult {
            record,
            effect_ms: changed?,
        })
    })
}

/// Replaces the file by one with a route more, and waits until that route is served.
fn change(gateway: &Gateway, running: &Running, number: u32) -> Result<f64> {
    let path = format!("/change/{number}/");
    let before = client::get(running.place.listen, &path, &[])?;
    if before.status != 404 {
        bail!(
            "before change {number}: expected status 404 of {path}, got {}",
            before.summary()
        );
    }
    let generation_before = generation(running.place.status);
    let values = running::values(
        &configuration(number),
        &running.place,
        Path::new(&gateway.program),
    )?;
    let files = running::configuration(gateway, &values, &running.place.directory)?;
    let (_, text) = files
        .into_iter()
        .next()
        .context("a gateway without configuration")?;
    let next = running.configuration.with_extension("next");
    fs::write(&next, text).with_context(|| format!("writing {}", next.display()))?;
    let changed = Instant::now();
    fs::rename(&next, &running.configuration).context("replacing the configuration file")?;
    if generation_before.is_some() {
        while generation(running.place.status) == generation_before && changed.elapsed() < LONGEST_WAIT {
            thread::sleep(POLL);
        }
    }
    loop {
        let after = client::get(running.place.listen, &path, &[])?;
        let elapsed = changed.elapsed();
        if after.status == 200 {
            thread::sleep(SHORTEST_WAIT.saturating_sub(elapsed));
            return Ok(elapsed.as_secs_f64() * 1e3);
        }
        if elapsed >= LONGEST_WAIT {
            bail!(
                "change {number} is not served after {} s: {}",
                elapsed.as_secs(),
                after.summary()
            );
        }
        thread::sleep(POLL);
    }
}

/// The generation that the status page shows, if it shows one.
fn generation(status: SocketAddr) -> Option<Value> {
    let response = client::get(status, "/status", &[]).ok()?;
    find_generation(&serde_json::from_slice(&response.body).ok()?).cloned()
}

fn find_generation(document: &Value) -> Option<&Value> {
    let fields = document.as_object()?;
    fields
        .get("generation")
        .or_else(|| fields.values().find_map(find_generation))
}

impl ReloadResult {
    fn cells(&self) -> Vec<String> {
        let microseconds = |nanoseconds: u64| format!("{:.0}", nanoseconds as f64 / 1e3);
        vec![
            self.record.calls.to_string(),
            self.record.failed().to_string(),
            Spread::of(self.effect_ms.iter().copied())
                .map_or_else(|| "–".to_owned(), |spread| spread.text(0)),
            microseconds(self.record.latency.value_at_percentile(50.0)),
            microseconds(self.record.latency.value_at_percentile(99.9)),
            microseconds(self.record.latency.max()),
        ]
    }

    fn line(&self, gateway: &Gateway, changes: u32) -> Line {
        Line::Other(json!({
            "what": "reload", "gateway": gateway.name, "changes": changes,
            "calls": self.record.calls, "failed": self.record.failed(), "served_after_ms": self.effect_ms,
            "p99.9_us": sender::microseconds(self.record.latency.value_at_percentile(99.9)),
            "max_us": sender::microseconds(self.record.latency.max()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_in_status_pages() {
        let cases = [
            (json!({ "generation": 3 }), Some(json!(3))),
            (
                json!({ "configuration": { "generation": "a1" } }),
                Some(json!("a1")),
            ),
            (json!({ "status": "ok" }), None),
            (json!([1, 2]), None),
        ];
        for (document, expected) in cases {
            assert_eq!(find_generation(&document), expected.as_ref(), "{document}");
        }
    }
}
