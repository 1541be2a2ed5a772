//! `weir-bench publish`: an API of many operations is published again and again while gateways that follow the control
//! plane serve a constant load. It shows how long a publish takes, when all gateways serve it, and whether calls are lost.
//!
//! Each publish replaces all operations but one, which the load calls. Only Weir has this. On a machine of two cores the
//! control plane shares one with the load and the upstream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::bench::Bench;
use crate::client::request;
use crate::control_plane::{ControlPlane, call, first};
use crate::results::{Line, Results};
use crate::sender::{self, LoadPlan, Record, send};
use crate::table::{Spread, Table};
use crate::terminal;
use crate::upstream::{ResponseKind, Upstream};

const CONNECTIONS: usize = 50;
const ENVIRONMENT: &str = "test";
const VERSION: &str = "/api/v1/apis/pets/versions";
const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";
/// The load alone, before the first publish and after the last one.
const MARGIN: Duration = Duration::from_secs(1);
/// The load ends by itself after this long, if a publish never ends.
const LONGEST: Duration = Duration::from_secs(600);

/// What is published, and under what load.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Operations of the API.
    pub operations: u32,
    /// Publishes, one after the other.
    pub publishes: u32,
    /// Calls per second through the first gateway.
    pub rate: u32,
    /// Gateways that follow the control plane.
    pub followers: u32,
}

struct PublishResult {
    record: Record,
    /// From the call to its answer, in milliseconds.
    published: Vec<f64>,
    /// From that answer until every gateway served the last operation, in milliseconds.
    served: Vec<f64>,
}

/// Publishes under load; `false` if a call failed.
///
/// # Errors
/// Weir is not among the gateways, a process does not start, or a publish fails.
pub fn run(bench: &Bench, size: Size, results: &mut Results) -> Result<bool> {
    let directory = bench.directory("publish")?;
    // The upstream inherits it.
    let upstream = first(|| bench.upstream(&directory.join("upstream"), ResponseKind::Body(1024)))?;
    let found = bench
        .gateways
        .iter()
        .find(|found| found.gateway.program == "weir");
    let found =
        found.context("publishing is measured with weir: name one of its dialects with --gateways")?;
    let program = found.program.clone().map_err(|error| anyhow::anyhow!(error))?;
    let flags = ["--environment", ENVIRONMENT];
    let plane = ControlPlane::start(bench, &program, &directory.join("weir"), size.followers, &flags)?;
    let outcome = measure(&plane, &upstream, size)?;
    let title = format!(
        "Publish · {} operations, {} times, under {} calls/s",
        size.operations, size.publishes, size.rate
    );
    let columns = [
        "gateways",
        "publish ms",
        "then served by all after ms",
        "calls",
        "failed",
        "p50 µs",
        "p99 µs",
        "max µs",
    ];
    let mut table = Table::new(title, &columns);
    if outcome.record.failed() > 0 {
        table.footnote(outcome.record.failures());
    }
    table.row(&size.followers.to_string(), Ok(outcome.cells()));
    results.add(outcome.line(size))?;
    terminal::table(&table)?;
    Ok(outcome.record.failed() == 0)
}

fn measure(plane: &ControlPlane, upstream: &Upstream, size: Size) -> Result<PublishResult> {
    let api = |method: &str, path: &str, body: &Value| call(plane.console, method, path, &body.to_string());
    let runtime =
        json!({"base_path": "/v1", "backends": {"main": {"url": format!("http://{}", upstream.address)}}});
    api("PUT", &format!("/api/v1/environments/{ENVIRONMENT}"), &json!({}))?;
    api("PUT", "/api/v1/apis/pets", &json!({}))?;
    api(
        "POST",
        &format!("{VERSION}?version=1.0.0"),
        &document(0, size.operations),
    )?;
    api("POST", PUBLICATION, &json!({"runtime": runtime}))?;
    plane.wait_until_served(&last(0, size.operations))?;
    let proxy = plane.gateways[0].proxy;
    let load = LoadPlan {
        target: proxy,
        requests: vec![request("GET", "/v1/steady", proxy, &[])],
        rate: size.rate,
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        length: LONGEST,
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let loader = scope.spawn(|| first(|| send(&load, &is_over)));
        let publish_all = || -> Result<(Vec<f64>, Vec<f64>)> {
            thread::sleep(MARGIN);
            let (mut published, mut served) = (Vec::new(), Vec::new());
            for round in 1..=size.publishes {
                let draft = document(round, size.operations);
                api("PUT", &format!("{VERSION}/1.0.0"), &draft)?;
                // Operations that go away break callers: `force` says that this is meant.
                let body = json!({"runtime": runtime, "force": true});
                let begun = Instant::now();
                api("POST", PUBLICATION, &body)?;
                let answered = Instant::now();
                plane.wait_until_served(&last(round, size.operations))?;
                published.push((answered - begun).as_secs_f64() * 1e3);
                served.push(answered.elapsed().as_secs_f64() * 1e3);
            }
            thread::sleep(MARGIN);
            Ok((published, served))
        };
        let done = publish_all();
        is_over.store(true, Ordering::Relaxed);
        let record = loader
            .join()
            .map_err(|_| anyhow::anyhow!("the load panicked"))??;
        let (published, served) = done?;
        Ok(PublishResult {
            record,
            published,
            served,
        })
    })
}

/// The document of a round: one operation that stays, the others with names of the round.
fn document(round: u32, operations: u32) -> Value {
    let operation =
        |id: &str| json!({"get": {"operationId": id, "responses": {"200": {"description": "ok"}}}});
    let mut paths: Map<String, Value> = (0..operations)
        .map(|at| {
            let id = format!("r{round}o{at}");
            (format!("/{id}"), operation(&id))
        })
        .collect();
    paths.insert("/steady".to_owned(), operation("steady"));
    json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": "1.0.0"}, "paths": paths})
}

/// The path of a round's last operation.
fn last(round: u32, operations: u32) -> String {
    format!("/v1/r{round}o{}", operations - 1)
}

impl PublishResult {
    fn cells(&self) -> Vec<String> {
        let latency = &self.record.latency;
        let micros = |percentile| {
            format!(
                "{:.0}",
                sender::microseconds(latency.value_at_percentile(percentile))
            )
        };
        let spread = |figures: &[f64]| {
            Spread::of(figures.iter().copied()).map_or_else(|| "–".to_owned(), |it| it.text(0))
        };
        vec![
            spread(&self.published),
            spread(&self.served),
            self.record.calls.to_string(),
            self.record.failed().to_string(),
            micros(50.0),
            micros(99.0),
            micros(100.0),
        ]
    }

    fn line(&self, size: Size) -> Line {
        let latency = &self.record.latency;
        Line::Other(json!({
            "what": "publish", "gateway": "weir", "gateways": size.followers, "operations": size.operations,
            "rate": size.rate, "published_ms": self.published, "served_after_ms": self.served,
            "calls": self.record.calls, "failed": self.record.failed(),
            "p50_us": sender::microseconds(latency.value_at_percentile(50.0)),
            "p99_us": sender::microseconds(latency.value_at_percentile(99.0)),
        }))
    }
}
