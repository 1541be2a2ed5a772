//! The report of a run: a page that needs nothing else, and its charts as separate pictures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::chart::{Axes, Bar, Series, bars, lines, number};
use crate::experiment::{EXPERIMENTS, Experiment, Load};
use crate::html;
use crate::measure::{KEPT, MAX, PERCENTILES};
use crate::overview;
use crate::picture;
use crate::results::Line;
use crate::section::Section;
use crate::summary::{self, Summary};
use crate::table::Spread;

/// Writes `index.html` and the pictures into `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn write(lines: &[Line], folder: &Path) -> Result<()> {
    let sections: Vec<Section<'_>> = EXPERIMENTS
        .iter()
        .map(|experiment| {
            let summaries = summary::of(lines, experiment.id);
            let charts = charts(experiment, &summaries);
            Section {
                experiment,
                summaries,
                charts,
            }
        })
        .filter(|section| !section.summaries.is_empty())
        .collect();
    for (name, svg) in sections.iter().flat_map(|section| &section.charts) {
        picture::write(svg, &folder.join(name))?;
    }
    let overview = overview::draw(&overview::groups(&sections));
    if !overview.is_empty() {
        picture::write(&overview, &folder.join(overview::FILE))?;
    }
    let page = folder.join("index.html");
    fs::write(&page, html::page(&overview, &sections, lines))
        .with_context(|| format!("writing {}", page.display()))
}

fn charts(experiment: &Experiment, summaries: &[Summary]) -> Vec<(String, String)> {
    let id = experiment.id.to_lowercase();
    let named = |what: &str| format!("{id}-{what}.png");
    let title = |what: &str| format!("{experiment} · {}: {what}", experiment.title);
    let mut charts = Vec::new();
    match experiment.load {
        Load::Closed | Load::Handshakes => {
            let cpu = bar_each(summaries, |it| it.cpu_us, 2, "µs");
            charts.push((named("cpu"), bars(&title("CPU per call"), &cpu)));
            let calls = bar_each(summaries, Summary::quotable_calls_per_second, 0, "calls/s");
            charts.push((named("calls"), bars(&title("calls per second"), &calls)));
        }
        Load::Single => {
            let added = bar_each(
                summaries,
                |it| it.added_us.filter(|_| it.cpu_us.is_some()),
                0,
                "µs",
            );
            charts.push((named("added"), bars(&title("added to the direct call"), &added)));
        }
        Load::Rates(rates) => {
            // A chart of latency for each rate would be many: where rates rise, CPU over the rate is the point.
            if rates.len() > 2 {
                charts.push((
                    named("cpu"),
                    lines(
                        &cpu_axes(title("CPU over rate"), rates),
                        &cpu_over_rate(summaries),
                    ),
                ));
                charts.push((
                    named("latency"),
                    lines(
                        &p99_axes(title("p99 over rate"), rates),
                        &p99_over_rate(summaries),
                    ),
                ));
            } else {
                let axes = percentile_axes(title("latency"));
                charts.push((
                    named("latency"),
                    lines(&axes, &over_percentiles(summaries, rates.len() > 1)),
                ));
            }
        }
    }
    charts.retain(|(_, svg)| !svg.is_empty());
    charts
}

fn bar_each(
    summaries: &[Summary],
    figure: impl Fn(&Summary) -> Option<Spread>,
    decimals: usize,
    unit: &str,
) -> Vec<Bar> {
    let bar = |it: &Summary| {
        let spread = figure(it).filter(|_| it.absent.is_none());
        let note = match (spread, &it.absent) {
            (Some(spread), _) => format!("{:.decimals$} {unit}", spread.median),
            (None, Some(reason)) => reason
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(70)
                .collect(),
            (None, None) if it.limited.is_some() => "invalid: limited by the load".to_owned(),
            (None, None) => "none".to_owned(),
        };
        Bar {
            name: it.gateway.clone(),
            value: spread.map(|spread| (spread.median, spread.min, spread.max)),
            note,
        }
    };
    summaries.iter().map(bar).collect()
}

fn names(summaries: &[Summary]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = summaries.iter().map(|it| it.gateway.clone());
    names.filter(|name| seen.insert(name.clone())).collect()
}

fn rate_ticks(rates: &[u32]) -> Vec<(f64, String)> {
    rates
        .iter()
        .map(|rate| (f64::from(*rate), number(f64::from(*rate))))
        .collect()
}

fn cpu_axes(title: String, rates: &[u32]) -> Axes {
    Axes {
        title,
        x: "calls per second".to_owned(),
        y: "CPU of one core in %".to_owned(),
        ticks: rate_ticks(rates),
        logarithmic: false,
    }
}

fn p99_axes(title: String, rates: &[u32]) -> Axes {
    Axes {
        y: "p99 in µs".to_owned(),
        logarithmic: true,
        ..cpu_axes(title, rates)
    }
}

fn over_rate(summaries: &[Summary], figure: impl Fn(&Summary) -> Option<f64>) -> Vec<Series> {
    let series = |name: String| {
        let mine = summaries
            .iter()
            .filter(|it| it.gateway == name && it.absent.is_none());
        let points = mine
            .filter_map(|it| Some((f64::from(it.rate?), figure(it)?)))
            .collect();
        Series { name, points }
    };
    let all = names(summaries).into_iter().map(series);
    all.filter(|series| !series.points.is_empty()).collect()
}

fn cpu_over_rate(summaries: &[Summary]) -> Vec<Series> {
    // If the rate was not reached, the point would stand at the wrong place.
    let reached = |it: &Summary| Some(it.calls_per_second?.median >= KEPT * f64::from(it.rate?));
    over_rate(summaries, |it| {
        it.busy
            .filter(|_| reached(it) == Some(true))
            .map(|busy| 100.0 * busy.median)
    })
}

fn p99_over_rate(summaries: &[Summary]) -> Vec<Series> {
    over_rate(summaries, |it| it.latency("p99").filter(|_| it.limited.is_none()))
}

/// Percentiles stand as far apart as they have nines; the slowest call stands one step further.
fn percentile_axes(title: String) -> Axes {
    let ticks = PERCENTILES.map(|(name, percentile)| (nines(percentile), name.to_owned()));
    let max = (nines(PERCENTILES[PERCENTILES.len() - 1].1) + 1.0, MAX.to_owned());
    Axes {
        title,
        x: "percentile of the calls".to_owned(),
        y: "latency in µs".to_owned(),
        ticks: ticks.into_iter().chain([max]).collect(),
        logarithmic: true,
    }
}

fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

fn over_percentiles(summaries: &[Summary], many_rates: bool) -> Vec<Series> {
    let axes = percentile_axes(String::new());
    let good = summaries
        .iter()
        .filter(|it| it.absent.is_none() && it.limited.is_none());
    good.map(|it| {
        let points = axes
            .ticks
            .iter()
            .filter_map(|(x, name)| Some((*x, it.latency(name)?)));
        Series {
            name: match it.rate.filter(|_| many_rates) {
                Some(rate) => format!("{} at {rate}", it.gateway),
                None => it.gateway.clone(),
            },
            points: points.collect(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{AbsentResult, tests::round};

    #[test]
    fn a_report_is_complete_in_itself() {
        let directory = tempfile::tempdir().unwrap();
        let mut at_rate = round("G1", "weir-kong", 1, 9.0);
        at_rate.rate = Some(10_000);
        let rows = [
            Line::Round(Box::new(round("A1", "nginx", 1, 10.0))),
            Line::Round(Box::new(round("A1", "weir-kong", 1, 8.0))),
            Line::Round(Box::new(at_rate)),
            Line::Absent(AbsentResult {
                experiment: "A1".to_owned(),
                gateway: "kong".to_owned(),
                reason: "not found: kong (<install it>)".to_owned(),
            }),
        ];
        write(&rows, directory.path()).unwrap();
        let page = fs::read_to_string(directory.path().join("index.html")).unwrap();
        for part in [
            "weir-kong",
            "not found: kong (&lt;install it&gt;)",
            "<svg",
            "0.80",
            "render",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(
            !page.contains("src=") && !page.contains("href=\"http"),
            "nothing is loaded"
        );
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}"));
        assert!(
            at("<svg") < at("<h2>Machine") && at("NGINX's (plain)") < at("<h2>Procedure"),
            "one picture of all experiments comes first"
        );
        for name in ["overview.png", "a1-cpu.png", "a1-calls.png", "g1-latency.png"] {
            assert!(directory.path().join(name).is_file(), "{name}");
        }
    }
}
