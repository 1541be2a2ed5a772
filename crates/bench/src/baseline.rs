//! The guard of the project: CPU per call relative to NGINX, against figures that are checked in. It fails where every
//! round is worse than the baseline by more than is lost in the noise.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::gateway::BAR;
use crate::results::Line;
use crate::summary;
use crate::table::{Spread, Table};
use crate::terminal;

/// The checked-in figures: experiment, gateway, ratio to NGINX.
const CHECKED_IN: &str = include_str!("../baseline.json");
/// A round that is worse by less than this says nothing.
const TOLERANCE: f64 = 0.05;
/// The experiments of the guard.
pub const EXPERIMENTS: [&str; 5] = ["A1", "A2", "A3", "A4", "N4"];
/// Its gateways.
pub const GATEWAYS: &str = "nginx,weir";
/// Its rounds, and the seconds of each.
pub const ROUNDS: (u32, u32) = (3, 2);

type Ratios = BTreeMap<String, BTreeMap<String, f64>>;

/// Compares with the baseline in `file`, or the checked-in one, and prints the table; `false` when something got worse.
///
/// # Errors
/// The baseline cannot be read.
pub fn check(lines: &[Line], file: Option<&Path>) -> Result<bool> {
    let text = match file {
        Some(file) => fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?,
        None => CHECKED_IN.to_owned(),
    };
    let baseline: Ratios = serde_json::from_str(&text)
        .context("the baseline is not of the form {experiment: {gateway: ratio}}")?;
    if baseline.is_empty() {
        bail!("the baseline is empty: write one with --record-baseline");
    }
    let mut table = Table::new(
        format!(
            "CPU per call to nginx's, against the baseline (worse: every round by more than {:.0} %)",
            TOLERANCE * 100.0
        ),
        &["experiment", "baseline", "now", "verdict"],
    );
    let mut good = true;
    for (experiment, gateways) in &baseline {
        let summaries = summary::of(lines, experiment);
        for (gateway, expected) in gateways {
            let ratio = summaries
                .iter()
                .find(|it| it.gateway == *gateway)
                .and_then(|it| it.ratio);
            let cells = match ratio {
                None => Err("not measured".to_owned()),
                Some(ratio) => {
                    let worse = is_worse(ratio, *expected);
                    good &= !worse;
                    let verdict = if worse { "WORSE" } else { "good" };
                    Ok(vec![format!("{expected:.2}"), ratio.text(2), verdict.to_owned()])
                }
            };
            good &= cells.is_ok();
            table.row(&format!("{experiment} {gateway}"), cells);
        }
    }
    terminal::table(&table)?;
    Ok(good)
}

fn is_worse(ratio: Spread, expected: f64) -> bool {
    ratio.min > expected * (1.0 + TOLERANCE)
}

/// Writes the ratios that were measured as the new baseline.
///
/// # Errors
/// The file cannot be written.
pub fn record(lines: &[Line], file: &Path) -> Result<()> {
    let mut ratios = Ratios::new();
    for experiment in EXPERIMENTS {
        for summary in summary::of(lines, experiment) {
            if let Some(ratio) = summary.ratio.filter(|_| summary.gateway != BAR) {
                let rounded = (ratio.median * 1000.0).round() / 1000.0;
                ratios
                    .entry(experiment.to_owned())
                    .or_default()
                    .insert(summary.gateway, rounded);
            }
        }
    }
    let text = serde_json::to_string_pretty(&ratios).context("the baseline as JSON")?;
    fs::write(file, format!("{text}\n")).with_context(|| format!("writing {}", file.display()))?;
    terminal::note(&format!("the baseline is in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::round;

    #[test]
    fn every_round_must_be_worse() {
        let spread = |min, median, max| Spread { median, min, max };
        for (ratio, expected, worse) in [
            (spread(0.8, 0.9, 1.0), 0.8, false),
            (spread(0.83, 0.9, 1.0), 0.8, false),
            (spread(0.85, 0.9, 1.0), 0.8, true),
            (spread(0.5, 0.6, 0.7), 0.8, false),
        ] {
            assert_eq!(is_worse(ratio, expected), worse, "{ratio:?}");
        }
    }

    #[test]
    fn a_recorded_baseline_holds_and_a_missing_gateway_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("baseline.json");
        let line = |gateway, cpu| Line::Round(Box::new(round("A1", gateway, 1, cpu)));
        let lines = [line("nginx", 10.0), line("weir-kong", 8.0)];
        record(&lines, &file).unwrap();
        for (lines, good) in [
            (vec![line("nginx", 10.0), line("weir-kong", 8.2)], true),
            (vec![line("nginx", 10.0), line("weir-kong", 9.0)], false),
            (vec![line("nginx", 10.0)], false),
        ] {
            assert_eq!(check(&lines, Some(&file)).unwrap(), good);
        }
    }

    #[test]
    fn the_checked_in_baseline_is_readable() {
        let baseline: Ratios = serde_json::from_str(CHECKED_IN).unwrap();
        assert!(
            baseline.keys().all(|name| EXPERIMENTS.contains(&name.as_str())),
            "{baseline:?}"
        );
    }
}
