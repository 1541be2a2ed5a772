//! `weir-bench scale`: what a fleet needs that is too large for one machine. Two small fleets give the costs of this
//! machine, a simulation computes the large one from them, and a real fleet of a twentieth shows how right it is.
//!
//! It is no load test: it says nothing about networks between data centres or disks that are slower than this one.

mod fleet;
mod model;

use anyhow::{Context, Result};
use serde_json::json;

use self::fleet::{FleetCost, Size};
use self::model::{Costs, Fleet, Forecast, Line};
use crate::bench::Bench;
use crate::results::{self, Results};
use crate::table::Table;
use crate::terminal::{self, progress};
use crate::upstream::ResponseKind;

/// The real fleet has this part of the simulated one.
const PART: u32 = 20;
/// Routes and consumers of the two fleets that give the costs.
const SMALL: (u32, u32) = (2_500, 250);
const LARGE: (u32, u32) = (12_500, 1_250);
const SEED: u64 = 20_261_122;

/// The fleet to simulate.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Gateways that follow one control plane
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fleet: u32,
    /// Routes
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    routes: u32,
    /// Consumers, each with one key
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    consumers: u32,
    /// Calls in a day over all gateways, in millions
    #[arg(long, value_name = "MILLIONS", default_value_t = 12_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    calls: u32,
    /// Changes an hour
    #[arg(long, value_name = "N", default_value_t = 3_600, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    changes: u32,
    /// Network of the control plane, in Gbit/s
    #[arg(long, value_name = "GBIT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    network: u32,
    /// Cores of the control plane
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    control_cores: u32,
    /// Keys of analytics that are active within an hour
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    active_keys: u32,
}

/// Measures, simulates and checks; `false` when calls failed meanwhile.
///
/// # Errors
/// Weir is not found, does not start, or does not serve a change in time.
pub fn run(bench: &Bench, args: &Args, results: &mut Results) -> Result<bool> {
    let upstream = bench.upstream(
        &bench.directory("upstream")?.join("api"),
        ResponseKind::Body(1024),
    )?;
    let found = bench
        .gateways
        .iter()
        .find(|found| found.gateway.program == "weir");
    let found = found.context("scale is measured with weir: name one of its dialects with --gateways")?;
    let program = found.program.clone().map_err(|error| anyhow::anyhow!(error))?;
    let whole = Fleet {
        gateways: args.fleet,
        gateways_on_a_core: 1,
        control_cores: args.control_cores,
        routes: args.routes.into(),
        consumers: args.consumers.into(),
        calls_a_day: f64::from(args.calls) * 1e6,
        changes_a_second: f64::from(args.changes) / 3600.0,
        network_bits: f64::from(args.network) * 1e9,
        active_keys: args.active_keys.into(),
    };
    let part = whole.part(PART);
    let rate = (part.calls_a_day / 86_400.0) as u32;
    let measure = |gateways, (routes, consumers), name: &str| {
        progress(&format!(
            "a fleet of {gateways} with {routes} routes and {consumers} consumers"
        ));
        let rate = (rate / part.gateways).max(1) * gateways;
        let size = Size {
            gateways,
            routes,
            consumers,
            rate,
        };
        fleet::run(bench, &program, &upstream, size, name)
    };
    let (small, large) = (measure(1, SMALL, "small")?, measure(1, LARGE, "large")?);
    let several = measure(part.gateways.max(2), SMALL, "several")?;
    let costs = costs(&small, &large, &several, part.gateways.max(2));
    let size = (u32::try_from(part.routes)?, u32::try_from(part.consumers)?);
    let real = measure(part.gateways, size, "real")?;
    let (expected, forecast) = (
        model::simulate(&part, &costs, SEED),
        model::simulate(&whole, &costs, SEED),
    );
    let title = format!(
        "Scale · simulated {} gateways, {} routes, {} consumers, {} million calls a day, {} changes an hour",
        args.fleet, args.routes, args.consumers, args.calls, args.changes
    );
    let columns = [
        "",
        "whole, simulated",
        "1/20 simulated",
        "1/20 real",
        "real / simulated",
    ];
    let mut table = Table::new(title, &columns);
    let checked = checks(&expected, &real);
    for (name, cells) in rows(&forecast, &expected, &checked) {
        table.row(name, Ok(cells));
    }
    table.footnote(format!(
        "The real fleet has {} gateways on one core, the control plane on another. A call costs a gateway {:.1} µs here, a \
         change {:.1} ms of the control plane and {:.2} ms of each of its gateways; a document adds {:.0} bytes to a gateway.",
        part.gateways, costs.call_cpu * 1e6, costs.control_cpu * 1e3, costs.gateway_cpu.at(part.documents()) * 1e3, costs.gateway_memory.each,
    ));
    let failed = small.failed_calls + large.failed_calls + several.failed_calls + real.failed_calls;
    if failed > 0 {
        table.footnote(format!("{failed} calls failed meanwhile."));
    }
    results.add(results::Line::Other(json!({
        "what": "scale", "gateways": args.fleet, "routes": args.routes, "consumers": args.consumers,
        "propagation_p50_ms": forecast.propagation_p50 * 1e3, "propagation_p99_ms": forecast.propagation_p99 * 1e3,
        "control_memory_mb": forecast.control_memory / 1e6, "gateway_memory_mb": forecast.gateway_memory / 1e6,
        "real_over_simulated": checked.iter().map(|it| json!({it.name: it.real / it.expected})).collect::<Vec<_>>(),
    })))?;
    terminal::table(&table)?;
    Ok(failed == 0)
}

/// The costs of single things: lines through two sizes; what one more gateway costs from a fleet of several.
fn costs(small: &FleetCost, large: &FleetCost, several: &FleetCost, gateways: u32) -> Costs {
    let line = |figure: fn(&FleetCost) -> f64| {
        Line::through((small.documents, figure(small)), (large.documents, figure(large)))
    };
    Costs {
        control_memory: line(|it| it.control_memory),
        gateway_memory: line(|it| it.gateway_memory),
        first_read: line(|it| it.first_read),
        first_read_control: line(|it| it.first_read_control),
        first_read_bytes: line(|it| it.first_read_bytes),
        store_bytes: line(|it| it.store_bytes),
        changes: large.changes.clone(),
        changes_documents: large.documents,
        change_bytes: large.change_bytes,
        control_cpu: large.control_cpu,
        send_cpu: ((several.control_cpu - small.control_cpu) / f64::from(gateways - 1)).max(0.0),
        gateway_cpu: line(|it| it.gateway_cpu),
        call_cpu: large.call_cpu,
    }
}

/// A figure of the real fleet with the simulated one.
struct Check {
    name: &'static str,
    expected: f64,
    real: f64,
}

fn checks(part: &Forecast, real: &FleetCost) -> Vec<Check> {
    let mut times: Vec<f64> = real.changes.iter().map(|it| it.commit + it.serve).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let check = |name, expected, real| Check { name, expected, real };
    vec![
        check(PROPAGATION, part.propagation_p50, median),
        check(CONTROL_MEMORY, part.control_memory, real.control_memory),
        check(GATEWAY_MEMORY, part.gateway_memory, real.gateway_memory),
        check(STORE, part.store, real.store_bytes),
        check(FIRST_BYTES, part.first_read_bytes, real.first_read_bytes),
        check(FIRST_ALL, part.first_read_all, real.first_read),
    ]
}

const PROPAGATION: &str = "change served by all, p50 ms";
const CONTROL_MEMORY: &str = "control plane, MB";
const GATEWAY_MEMORY: &str = "gateway, MB";
const STORE: &str = "store, MB";
const FIRST_BYTES: &str = "first read of a gateway, MB";
const FIRST_ALL: &str = "all gateways started at once, s";

/// A figure of a forecast.
type Figure = fn(&Forecast) -> f64;

fn rows(whole: &Forecast, part: &Forecast, checked: &[Check]) -> Vec<(&'static str, Vec<String>)> {
    let figures: [(&str, f64, Figure); 14] = [
        (PROPAGATION, 1e3, |it| it.propagation_p50),
        ("change served by all, p99 ms", 1e3, |it| it.propagation_p99),
        (CONTROL_MEMORY, 1e-6, |it| it.control_memory),
        (GATEWAY_MEMORY, 1e-6, |it| it.gateway_memory),
        (STORE, 1e-6, |it| it.store),
        ("control plane busy with changes, cores", 1.0, |it| {
            it.control_cores
        }),
        ("stream to all gateways, kB/s", 1e-3, |it| it.stream_rate),
        (FIRST_BYTES, 1e-6, |it| it.first_read_bytes),
        ("one gateway started, s", 1.0, |it| it.first_read_one),
        (FIRST_ALL, 1.0, |it| it.first_read_all),
        ("calls/s of a gateway", 1.0, |it| it.calls_each),
        ("gateway busy, cores", 1.0, |it| it.gateway_cores),
        ("analytics, GB a day by the minute", 1e-9, |it| it.analytics_day),
        ("analytics kept after 15 months, GB", 1e-9, |it| it.analytics_kept),
    ];
    let text = |figure: f64| {
        if figure >= 100.0 {
            format!("{figure:.0}")
        } else {
            format!("{figure:.3}")
        }
    };
    figures
        .into_iter()
        .map(|(name, unit, figure)| {
            let mut cells = vec![text(figure(whole) * unit), text(figure(part) * unit)];
            match checked.iter().find(|check| check.name == name) {
                Some(check) => cells.extend([
                    text(check.real * unit),
                    format!("{:.2}", check.real / check.expected),
                ]),
                None => cells.extend(["–".to_owned(), "–".to_owned()]),
            }
            (name, cells)
        })
        .collect()
}
