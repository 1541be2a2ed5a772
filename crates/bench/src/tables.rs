//! The tables of the experiments: which figures each kind of load shows, and what stands below them.

use crate::experiment::{Experiment, Load};
use crate::measure::{MAX, PERCENTILES};
use crate::results::Round;
use crate::summary::Summary;
use crate::table::{Spread, Table};

const NONE: &str = "–";
/// What stands where calls per second would be those of the load generator.
const LIMITED: &str = "invalid";

/// The table of one experiment.
pub fn of(experiment: &Experiment, summaries: &[Summary]) -> Table {
    let connections = summaries
        .iter()
        .find_map(|it| it.conditions.as_ref())
        .map_or(experiment.connections, |it| it.connections);
    let callers = match experiment.load {
        Load::Single => "each call over a new connection".to_owned(),
        Load::Handshakes => format!("{connections} at once, each over a new connection"),
        Load::Closed | Load::Rates(_) => format!("{connections} connections"),
    };
    let title = format!(
        "{experiment} · {} · {} bytes of body, {callers}",
        experiment.title, experiment.body_bytes
    );
    let mut table = match experiment.load {
        Load::Closed | Load::Handshakes => Table::new(title, &closed_columns(experiment)),
        Load::Rates(_) => Table::new(title, &RATES),
        Load::Single => Table::new(title, &SINGLE),
    };
    let many = experiment.rates().len() > 1;
    for summary in summaries {
        let name = match summary.rate.filter(|_| many) {
            Some(rate) => format!("{} at {rate}", summary.gateway),
            None => summary.gateway.clone(),
        };
        let cells = match &summary.absent {
            Some(reason) => Err(reason.clone()),
            None => Ok(match experiment.load {
                Load::Closed | Load::Handshakes => closed(summary, experiment),
                Load::Rates(_) => rates(summary),
                Load::Single => single(summary),
            }),
        };
        table.row(&name, cells);
    }
    for (number, summary) in summaries.iter().filter(|it| it.limited.is_some()).enumerate() {
        if number == 0 {
            table.footnote(format!(
                "{LIMITED}: something else than the gateway set the pace, so calls/s and latency are not its own; CPU \
                 per call is."
            ));
        }
        let rate = summary
            .rate
            .filter(|_| many)
            .map_or_else(String::new, |rate| format!(" at {rate}"));
        let cause = summary.limited.as_deref().unwrap_or_default();
        table.footnote(format!("  {}{rate}: {cause}", summary.gateway));
    }
    if !experiment.published.is_empty() {
        table.footnote(format!("Published, on other machines: {}.", experiment.published));
    }
    table
}

const CLOSED: [&str; 10] = [
    "gateway",
    "calls/s",
    "CPU µs/call",
    "of it user",
    "CPU to nginx",
    "core busy",
    "load busy",
    "p50 µs",
    "p99 µs",
    "rounds",
];
/// The place of the ratios to other gateways than NGINX.
const OTHER_RATIOS: usize = 5;

fn closed_columns(experiment: &Experiment) -> Vec<&'static str> {
    let mut columns = CLOSED.to_vec();
    let others = experiment.bars.iter().map(|bar| match *bar {
        "envoy" => "to envoy",
        "haproxy" => "to haproxy",
        other => other,
    });
    columns.splice(OTHER_RATIOS..OTHER_RATIOS, others);
    columns
}

fn closed(it: &Summary, experiment: &Experiment) -> Vec<String> {
    let mut cells = vec![
        valid(it, it.calls_per_second, 0),
        full(it.cpu_us, 2),
        median(it.user_us, 1),
        full(it.ratio, 2),
        share(it.busy),
        share(it.load_busy),
        if it.limited.is_some() {
            LIMITED.to_owned()
        } else {
            latency(it, "p50")
        },
        if it.limited.is_some() {
            LIMITED.to_owned()
        } else {
            latency(it, "p99")
        },
        it.rounds.to_string(),
    ];
    let others = experiment
        .bars
        .iter()
        .map(|bar| full(it.ratios.get(*bar).copied(), 2));
    // The cells begin behind the gateway's name.
    cells.splice(OTHER_RATIOS - 1..OTHER_RATIOS - 1, others);
    cells
}

const RATES: [&str; 14] = [
    "gateway",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "p99.99",
    "max µs",
    "calls/s",
    "errors",
    "CPU µs/call",
    "core busy",
    "load busy",
    "sender late p99.9",
];

fn rates(it: &Summary) -> Vec<String> {
    let names = PERCENTILES.iter().map(|(name, _)| *name).chain([MAX]);
    let shown = |name: &str| match it.limited {
        Some(_) => LIMITED.to_owned(),
        None => latency(it, name),
    };
    let mut cells: Vec<String> = names.map(shown).collect();
    cells.extend([
        median(it.calls_per_second, 0),
        format!("{} ({:.2} %)", it.errors, 100.0 * it.error_share()),
        full(it.cpu_us, 2),
        share(it.busy),
        share(it.load_busy),
        median(it.late_us, 0),
    ]);
    cells
}

const SINGLE: [&str; 8] = [
    "gateway",
    "median call µs",
    "added to direct",
    "p90",
    "p99",
    "max µs",
    "CPU µs/call",
    "calls",
];

fn single(it: &Summary) -> Vec<String> {
    vec![
        full(it.latency_us.get("p50").copied(), 0),
        full(it.added_us, 0),
        latency(it, "p90"),
        latency(it, "p99"),
        latency(it, MAX),
        full(it.cpu_us, 2),
        it.calls.to_string(),
    ]
}

fn valid(it: &Summary, spread: Option<Spread>, decimals: usize) -> String {
    match it.limited {
        Some(_) => LIMITED.to_owned(),
        None => full(spread, decimals),
    }
}

fn full(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(|| NONE.to_owned(), |spread| spread.text(decimals))
}

fn median(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(
        || NONE.to_owned(),
        |spread| format!("{:.decimals$}", spread.median),
    )
}

fn share(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || NONE.to_owned(),
        |spread| format!("{:.0} %", 100.0 * spread.median),
    )
}

fn latency(it: &Summary, name: &str) -> String {
    it.latency(name)
        .map_or_else(|| NONE.to_owned(), |value| format!("{value:.0}"))
}

/// A round's figures for the progress display.
pub fn in_a_line(round: &Round) -> String {
    let cpu = round
        .cpu_us
        .map_or_else(String::new, |cpu| format!(", {cpu:.2} µs CPU per call"));
    let p99 = round
        .latency_us
        .get("p99")
        .map_or_else(String::new, |p99| format!(", p99 {p99:.0} µs"));
    let errors = if round.errors > 0 {
        format!(", {} errors", round.errors)
    } else {
        String::new()
    };
    let limited = if round.limited.is_some() {
        " (limited by the load)"
    } else {
        ""
    };
    format!("{:.0} calls/s{cpu}{p99}{errors}{limited}", round.calls_per_second)
}
