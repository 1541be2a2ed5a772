//! `weir-bench plugins`: the CPU time that each plugin adds to a call, compared with a route without it in the same
//! process.
//!
//! Slices of some milliseconds of a closed loop go in turn to the route without the plugin and to the one with it;
//! the figure is the median of the differences of neighbours. Of a machine that changes its speed from second to second
//! both see the same. Where valgrind is installed, the instructions that a call adds are counted too.

mod cases;
mod closed_loop;
mod gateways;
mod instructions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::bench::Bench;
use crate::client;
use crate::cpu::{Clock, CpuTime, of_this_thread};
use crate::results::{Line, Results};
use crate::table::{Spread, Table};
use crate::terminal::{self, progress};
use cases::{CASES, Case, CostLimit};
use closed_loop::ClosedLoop;
use gateways::{Gateway, RunContext};
use instructions::Counter;

const CONNECTIONS: usize = 32;
/// The level of gzip, of the plugin and of the library.
const LEVEL: u32 = 1;
/// Size of a page in bytes.
const PAGE_BYTES: usize = 20_000;
/// What is done later has been done when the process has rested for so long; batches of logs wait for less.
const QUIET: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// What the plugin around the library may take more, in microseconds and as a share.
const AROUND_LIBRARY: (f64, f64) = (0.4, 1.1);

/// What is measured, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Plugins to measure; without any, all
    names: Vec<String>,
    /// Pairs of slices of each plugin
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    slices: u32,
    /// Milliseconds of a slice
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(5..=10_000))]
    slice: u64,
    /// Counts no instructions
    #[arg(long)]
    no_instructions: bool,
}

/// A Weir that is measured.
struct MeasuredGateway {
    gateway: Gateway,
    calls: ClosedLoop,
    clock: Clock,
}

/// What was measured of one case, in microseconds of CPU time a call.
#[derive(Debug, Default)]
struct Measured {
    own: Vec<f64>,
    beside: Vec<f64>,
    /// Of the library alone, for the case that is compared with it.
    library: Vec<f64>,
    instructions: Option<f64>,
}

/// Measures the plugins; `false` when one is above its bar.
///
/// # Errors
/// A name is unknown, or something does not start.
pub fn run(bench: &Bench, args: &Args, results: &mut Results) -> Result<bool> {
    let is_known = |name: &&String| CASES.iter().any(|case| case.name == **name);
    if let Some(unknown) = args.names.iter().find(|name| !is_known(name)) {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        bail!("unknown plugin {unknown:?}: there are {}", names.join(", "));
    }
    let weir = bench
        .gateways
        .iter()
        .find(|found| found.gateway.program == "weir");
    let weir = weir.context("plugins are measured with weir: name one of its dialects with --gateways")?;
    let program = weir.program.clone().map_err(|error| anyhow::anyhow!(error))?;
    let directory = bench.directory("plugins")?;
    let context = RunContext::start(bench, &directory)?;
    let wanted = |case: &&Case| args.names.is_empty() || args.names.iter().any(|name| name == case.name);
    let (here, lacking): (Vec<Case>, Vec<Case>) = CASES
        .iter()
        .filter(wanted)
        .partition(|case| context.lacks(case).is_none());
    let mut measured = measure(bench, args, &program, &context, &here)?;
    if !args.no_instructions {
        count_instructions(bench, &program, &context, &here, &mut measured)?;
    }
    let mut table = Table::new(
        format!(
            "Plugins · CPU time added to a call, {} pairs of {} ms",
            args.slices, args.slice
        ),
        &[
            "plugin",
            "beside it µs",
            "added µs",
            "±",
            "instructions",
            "bar",
            "verdict",
        ],
    );
    let mut good = true;
    for case in &here {
        let figures = measured.remove(case.name).unwrap_or_default();
        good &= figures.add_to(&mut table, case, results)?;
    }
    for case in &lacking {
        let reason = context.lacks(case).unwrap_or_default();
        table.row(case.name, Err(reason.to_owned()));
    }
    table.footnote("±: how far the median may be off by chance (95 %)".to_owned());
    terminal::table(&table)?;
    Ok(good && table.is_complete())
}

/// Slices in turn, again and again over all cases.
fn measure(
    bench: &Bench,
    args: &Args,
    weir: &Path,
    context: &RunContext,
    cases: &[Case],
) -> Result<BTreeMap<&'static str, Measured>> {
    let length = Duration::from_millis(args.slice);
    let mut side = MeasuredGateway::start(bench, weir, context, ("weir", &of_routes(cases)), &[])?;
    let log = access_log(bench, "access-log")?;
    let mut with_log = match cases.iter().any(|case| case.access_log) {
        true => Some(MeasuredGateway::start(
            bench,
            weir,
            context,
            ("weir-with-log", &[]),
            &log,
        )?),
        false => None,
    };
    let page = page();
    let mut measured: BTreeMap<&str, Measured> = BTreeMap::new();
    // The first sweep warms up.
    for sweep in 0..=args.slices {
        progress(&format!("sweep {sweep}/{}", args.slices));
        for case in cases {
            let figures = measured.entry(case.name).or_default();
            let mut own = |side: &mut MeasuredGateway| match (&mut with_log, case.access_log) {
                (Some(with_log), true) => with_log.slice(case.beside, true, length),
                _ => side.slice(case.name, case.deferred, length),
            };
            // The first may have the better half of the time. Both wait if one does: waiting costs too.
            let (of_case, beside) = if sweep % 2 == 0 {
                let of_case = own(&mut side)?;
                (of_case, side.slice(case.beside, case.deferred, length)?)
            } else {
                let beside = side.slice(case.beside, case.deferred, length)?;
                (own(&mut side)?, beside)
            };
            if sweep == 0 {
                continue;
            }
            figures.own.push(of_case);
            figures.beside.push(beside);
            if case.bar == CostLimit::Library {
                figures.library.push(library(&page, length)?);
            }
        }
    }
    Ok(measured)
}

/// The cases that are routes of the first gateway.
fn of_routes(cases: &[Case]) -> Vec<Case> {
    // The route that a case is compared with has to be there too.
    let is_wanted = |case: &&Case| {
        !case.access_log
            && cases
                .iter()
                .any(|it| it.name == case.name || it.beside == case.name)
    };
    CASES.iter().filter(is_wanted).copied().collect()
}

/// The flags of a gateway that writes an access log, in a folder of this name.
fn access_log(bench: &Bench, name: &str) -> Result<[OsString; 2]> {
    let file = bench.directory(name)?.join("access.log");
    Ok(["--access-log".into(), file.into()])
}

fn count_instructions(
    bench: &Bench,
    weir: &Path,
    context: &RunContext,
    cases: &[Case],
    measured: &mut BTreeMap<&'static str, Measured>,
) -> Result<()> {
    let routes = of_routes(cases);
    let started = Counter::start(bench, weir, context, ("counted", &routes), &[])?;
    let Some(mut counter) = started else {
        return Ok(());
    };
    let log = access_log(bench, "counted-access-log")?;
    let mut beside: BTreeMap<&str, f64> = BTreeMap::new();
    for case in cases {
        progress(&format!("instructions of {}", case.name));
        if !beside.contains_key(case.beside) {
            beside.insert(case.beside, counter.count(case.beside, false)?);
        }
        let own = if case.access_log {
            let with_log = Counter::start(bench, weir, context, ("counted-with-log", &[]), &log)?;
            with_log.context("valgrind has gone")?.count(case.beside, true)?
        } else {
            counter.count(case.name, case.deferred)?
        };
        let added = own - beside.get(case.beside).copied().unwrap_or_default();
        measured.entry(case.name).or_default().instructions = Some(added);
    }
    Ok(())
}

impl MeasuredGateway {
    fn start(
        bench: &Bench,
        weir: &Path,
        context: &RunContext,
        cases: (&str, &[Case]),
        more: &[OsString],
    ) -> Result<Self> {
        let gateway = context.gateway(bench, cases, &[weir.into()], more)?;
        Ok(Self {
            calls: ClosedLoop::open(gateway.address, CONNECTIONS)?,
            gateway,
            clock: bench.clock,
        })
    }

    /// CPU time of a call in a slice, in microseconds.
    fn slice(&mut self, route: &str, deferred: bool, length: Duration) -> Result<f64> {
        let pid = self.gateway.process.pid();
        let request = request(route, self.gateway.address);
        let before = CpuTime::of(pid, self.clock);
        let begun = Instant::now();
        let run = self.calls.run(&request, |_| begun.elapsed() < length);
        let calls = run.with_context(|| format!("calling /{route}"))?;
        if deferred {
            wait_until_idle(pid, QUIET);
        }
        let used = CpuTime::of(pid, self.clock).since(before).total;
        Ok(used.as_secs_f64() * 1e6 / calls as f64)
    }
}

/// Waits until a process has used next to no CPU time for so long: all that was put off has been done.
fn wait_until_idle(pid: u32, quiet: Duration) {
    let used = || CpuTime::of(pid, Clock::available()).total;
    let begun = Instant::now();
    while begun.elapsed() < LONGEST_WAIT {
        let before = used();
        thread::sleep(quiet);
        if (used() - before) < quiet / 200 {
            return;
        }
    }
}

/// The bytes of a call of a route.
fn request(route: &str, host: SocketAddr) -> Vec<u8> {
    client::request("GET", &format!("/{route}"), host, &gateways::headers())
}

/// A page as an API may give it: lines of JSON that are alike and never the same.
fn page() -> Vec<u8> {
    let mut page = String::with_capacity(PAGE_BYTES + 200);
    let mut number: u32 = 7;
    while page.len() < PAGE_BYTES {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        page.push_str(&format!(
            "{{\"id\":{number},\"name\":\"order {}\",\"state\":\"{}\",\"total\":{}.{:02},\"currency\":\"EUR\"}}\n",
            number % 9_973,
            ["open", "paid", "sent", "returned"][(number >> 16) as usize % 4],
            number % 500,
            number % 97,
        ));
    }
    page.truncate(PAGE_BYTES);
    page.into_bytes()
}

/// The time that the library takes for a body, in microseconds, over as long as a slice.
fn library(body: &[u8], length: Duration) -> Result<f64> {
    let mut coder = flate2::Compress::new_gzip(flate2::Compression::new(LEVEL), 15);
    let mut out = Vec::with_capacity(body.len());
    let (begun, before, mut bodies) = (Instant::now(), of_this_thread(), 0);
    while begun.elapsed() < length {
        out.clear();
        coder.reset();
        coder
            .compress_vec(body, &mut out, flate2::FlushCompress::Finish)
            .context("compressing a page")?;
        bodies += 1;
    }
    Ok((of_this_thread() - before).as_secs_f64() * 1e6 / f64::from(bodies))
}

impl Measured {
    /// Adds its row; `false` when it is above its bar.
    fn add_to(&self, table: &mut Table, case: &Case, results: &mut Results) -> Result<bool> {
        let pairs = self.own.iter().zip(&self.beside);
        let differences: Vec<f64> = pairs.map(|(own, beside)| own - beside).collect();
        let median = |of: &[f64]| Spread::of(of.iter().copied()).map_or(0.0, |spread| spread.median);
        let (added, off, beside) = (median(&differences), doubt(&differences), median(&self.beside));
        let library = median(&self.library);
        let (bar, most) = match case.bar {
            CostLimit::Added(most) => (format!("{most}"), Some(most)),
            CostLimit::Share(share) => (format!("{share} of proxying"), Some((share - 1.0) * beside)),
            CostLimit::Library => {
                let (more, share) = AROUND_LIBRARY;
                (format!("library's {library:.1}"), Some(library * share + more))
            }
            CostLimit::Noise => (String::new(), None),
        };
        let is_good = most.is_none_or(|most| added <= most);
        let verdict = match most {
            None => "noise",
            Some(_) if is_good => "holds",
            Some(most) if added - off <= most => "above, within ±",
            Some(_) => "above",
        };
        table.row(
            case.name,
            Ok(vec![
                format!("{beside:.2}"),
                format!("{added:.2}"),
                format!("{off:.2}"),
                self.instructions
                    .map_or_else(String::new, |count| format!("{count:.0}")),
                bar,
                verdict.to_owned(),
            ]),
        );
        results.add(Line::Other(json!({
            "what": "plugins", "gateway": "weir", "plugin": case.name, "beside": case.beside,
            "beside_us": beside, "added_us": added, "off_us": off, "added_instructions": self.instructions,
            "library_us": library, "pairs": differences.len(), "bar_us": most, "holds": is_good,
        })))?;
        Ok(is_good)
    }
}

/// How far the median of some figures may be off by chance, at 95 %: 1.57 times the distance of the quartiles by the
/// root of their number (McGill, Tukey, Larsen 1978).
fn doubt(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        sorted
            .get(((sorted.len() as f64 - 1.0) * share) as usize)
            .copied()
    };
    let distance = at(0.75).zip(at(0.25)).map_or(0.0, |(high, low)| high - low);
    1.57 * distance / (figures.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_falls_with_the_number_of_figures() {
        let few: Vec<f64> = (0..9).map(f64::from).collect();
        let many: Vec<f64> = few.iter().copied().cycle().take(900).collect();
        assert!((doubt(&few) - 1.57 * 4.0 / 3.0).abs() < 1e-9, "{}", doubt(&few));
        assert!(doubt(&many) < doubt(&few) / 9.0, "{}", doubt(&many));
        assert!(doubt(&[]).abs() < f64::EPSILON);
    }

    #[test]
    fn pages_are_worth_compressing() {
        let page = page();
        assert_eq!(page.len(), PAGE_BYTES);
        assert!(!page.is_empty() && library(&page, Duration::from_millis(1)).is_ok_and(|time| time > 0.0));
    }
}
