//! `weir-bench writes`: a control plane takes many writes a second while a gateway that follows it serves a constant
//! load. It shows how much the load feels of them, once with few and once with many routes.
//!
//! Only Weir has this: gateway and control plane are two processes, and the gateway has a core of its own. On a
//! machine of two cores the control plane shares one with the load and the API, which go before it if the system
//! lets them: what they wait for each other is not what calls feel in the gateway.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::client::request;
use crate::control_plane::{ControlPlane, call, first};
use crate::cpu::{Clock, CpuTime};
use crate::process::Process;
use crate::results::{Line, Results};
use crate::sender::{self, LoadPlan, Record, send};
use crate::table::Table;
use crate::terminal;
use crate::upstream::{ResponseKind, Upstream};

/// How many routes there are.
const SIZES: [u32; 2] = [200, 20_000];
/// Calls per second through the gateway.
const RATE: u32 = 2_000;
/// Connections of the load, and of the writers.
const CONNECTIONS: usize = 50;
const WRITERS: usize = 16;
/// What the load felt.
struct WriteResult {
    quiet: Record,
    written: Record,
    writes: Record,
    /// From the last write until it was served.
    served_after: Duration,
    /// CPU seconds of gateway and control plane while there were writes, per second.
    cores: (f64, f64),
}

/// Writes `rate` times a second for `seconds`, to few and to many routes; `false` when a call or a write failed.
///
/// # Errors
/// The upstream or the report fails; what Weir fails at is a row of the table.
pub fn run(bench: &Bench, rate: u32, seconds: u32, results: &mut Results) -> Result<bool> {
    let directory = bench.directory("writes")?;
    // The API inherits it.
    let upstream = first(|| bench.upstream(&directory.join("upstream"), ResponseKind::Body(1024)))?;
    let found = bench
        .gateways
        .iter()
        .find(|found| found.gateway.program == "weir");
    let found = found.context("writes are measured with weir: name one of its dialects with --gateways")?;
    let program = found.program.clone().map_err(|error| anyhow::anyhow!(error))?;
    let title = format!("Writes · {rate} a second for {seconds} s under {RATE} calls/s");
    let columns = [
        "routes",
        "p99 µs without",
        "p99 µs with",
        "more",
        "load late µs",
        "failed calls",
        "writes answered",
        "last served after ms",
        "cores of gateway",
        "of control plane",
    ];
    let mut table = Table::new(title, &columns);
    let mut clean = true;
    for routes in SIZES {
        let measured = ControlPlane::start(bench, &program, &directory.join(routes.to_string()), 1, &[])
            .and_then(|plane| {
                measure(
                    &plane,
                    bench.clock,
                    &upstream,
                    routes,
                    rate,
                    Duration::from_secs(seconds.into()),
                )
            });
        let cells = match measured {
            Ok(outcome) => {
                for (what, record) in [("calls", &outcome.written), ("writes", &outcome.writes)] {
                    if record.failed() > 0 {
                        clean = false;
                        table.footnote(format!("{routes} routes, {what}: {}", record.failures()));
                    }
                }
                results.add(outcome.line(routes, rate, seconds))?;
                Ok(outcome.cells())
            }
            Err(error) => Err(format!("{error:#}")),
        };
        table.row(&routes.to_string(), cells);
    }
    terminal::table(&table)?;
    Ok(clean && table.is_complete())
}

fn measure(
    plane: &ControlPlane,
    clock: Clock,
    upstream: &Upstream,
    routes: u32,
    rate: u32,
    length: Duration,
) -> Result<WriteResult> {
    let proxy = plane.gateways[0].proxy;
    let cpu = || {
        let of = |process: &Process| CpuTime::of(process.pid(), clock).total.as_secs_f64();
        (of(&plane.gateways[0].process), of(&plane.process))
    };
    call(
        plane.admin,
        "POST",
        "/config",
        &configuration(upstream.address, routes),
    )?;
    plane.wait_until_served(&path(routes - 1, 0))?;
    let load = LoadPlan {
        target: proxy,
        requests: vec![request("GET", "/hello", proxy, &[])],
        rate: RATE,
        connections: CONNECTIONS,
        warm_up: Duration::from_secs(1),
        length,
    };
    let quiet = first(|| send(&load, &AtomicBool::new(false)))?;
    let writes = LoadPlan {
        target: plane.admin,
        requests: (0..routes).map(|at| write(plane.admin, at, 1)).collect(),
        rate,
        connections: WRITERS,
        warm_up: Duration::ZERO,
        length: length + load.warm_up,
    };
    let (begun, before) = (Instant::now(), cpu());
    let stop = AtomicBool::new(false);
    let (written, made) = thread::scope(|scope| {
        let writer = scope.spawn(|| send(&writes, &stop));
        let written = first(|| send(&load, &AtomicBool::new(false)));
        stop.store(written.is_err(), Ordering::Relaxed);
        let made = writer
            .join()
            .map_err(|_| anyhow::anyhow!("the writer panicked"))??;
        Ok::<_, anyhow::Error>((written?, made))
    })?;
    let (elapsed, after) = (begun.elapsed().as_secs_f64(), cpu());
    let asked = Instant::now();
    let mark = format!("{{\"paths\":[\"/mark\"],\"service\":{{\"id\":\"{SERVICE}\"}}}}");
    call(plane.admin, "PUT", &format!("/routes/{}", id(routes)), &mark)?;
    plane.wait_until_served("/mark")?;
    Ok(WriteResult {
        quiet,
        written,
        writes: made,
        served_after: asked.elapsed(),
        cores: ((after.0 - before.0) / elapsed, (after.1 - before.1) / elapsed),
    })
}

const SERVICE: &str = "5f3e1c80-0000-4000-8000-000000000001";

/// Ids that are far from each other, as random ones are.
fn id(at: u32) -> String {
    format!("{:08x}-1234-4000-8000-{at:012x}", at.wrapping_mul(2_654_435_761))
}

/// The path of a route after so many writes.
fn path(at: u32, writes: u32) -> String {
    format!("/routes/{at}/{writes}")
}

fn configuration(upstream: SocketAddr, routes: u32) -> String {
    let hello = json!({"id": id(u32::MAX), "paths": ["/hello"], "strip_path": false});
    let route = |at| json!({"id": id(at), "paths": [path(at, 0)]});
    let all: Vec<Value> = (0..routes).map(route).chain([hello]).collect();
    let service = json!({"id": SERVICE, "name": "api", "url": format!("http://{upstream}"), "routes": all});
    json!({"_format_version": "3.0", "services": [service]}).to_string()
}

fn write(admin: SocketAddr, at: u32, writes: u32) -> Vec<u8> {
    let body = json!({"paths": [path(at, writes)], "service": {"id": SERVICE}}).to_string();
    let headers = [
        ("Content-Type", "application/json".to_owned()),
        ("Content-Length", body.len().to_string()),
    ];
    let mut bytes = request("PUT", &format!("/routes/{}", id(at)), admin, &headers);
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

impl WriteResult {
    fn p99(record: &Record) -> f64 {
        sender::microseconds(record.latency.value_at_percentile(99.0))
    }

    /// How late the load itself was, likewise.
    fn late(record: &Record) -> f64 {
        sender::microseconds(record.lateness.value_at_percentile(99.0))
    }

    fn cells(&self) -> Vec<String> {
        let (quiet, written) = (Self::p99(&self.quiet), Self::p99(&self.written));
        vec![
            format!("{quiet:.0}"),
            format!("{written:.0}"),
            format!("{:.0}", written - quiet),
            format!("{:.0}", Self::late(&self.written)),
            self.written.failed().to_string(),
            self.writes.calls.to_string(),
            format!("{:.0}", self.served_after.as_secs_f64() * 1e3),
            format!("{:.2}", self.cores.0),
            format!("{:.2}", self.cores.1),
        ]
    }

    fn line(&self, routes: u32, rate: u32, seconds: u32) -> Line {
        Line::Other(json!({
            "what": "writes", "gateway": "weir", "routes": routes, "rate": rate, "seconds": seconds,
            "p99_us_without": Self::p99(&self.quiet), "p99_us_with": Self::p99(&self.written),
            "p99_late_us": Self::late(&self.written),
            "failed": self.written.failed(), "writes": self.writes.calls, "failed_writes": self.writes.failed(),
            "served_after_ms": self.served_after.as_secs_f64() * 1e3,
            "gateway_cores": self.cores.0, "control_cores": self.cores.1,
        }))
    }
}
