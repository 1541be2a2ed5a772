//! Compares two results files: what changed since, and whether it is more than the noise.

use anyhow::Result;

use crate::experiment::{EXPERIMENTS, Load};
use crate::results::Line;
use crate::summary::{self, Summary};
use crate::table::{Spread, Table};
use crate::terminal;

/// Prints what changed from `old` to `new`.
///
/// # Errors
/// The reader has gone.
pub fn print(old: &[Line], new: &[Line]) -> Result<()> {
    for experiment in &EXPERIMENTS {
        let (before, after) = (summary::of(old, experiment.id), summary::of(new, experiment.id));
        let figure = figure_of(experiment.load);
        let title = format!(
            "{experiment} · {}: {}, before and now",
            experiment.title, figure.0
        );
        let mut table = Table::new(title, &["gateway", "before", "now", "change", "verdict"]);
        let mut count = 0;
        for now in &after {
            let was = before
                .iter()
                .find(|it| it.gateway == now.gateway && it.rate == now.rate);
            let (Some(old), Some(new)) = (was.and_then(figure.1), figure.1(now)) else {
                continue;
            };
            count += 1;
            let name = now.rate.map_or_else(
                || now.gateway.clone(),
                |rate| format!("{} at {rate}", now.gateway),
            );
            let change = format!("{:+.1} %", 100.0 * (new.median / old.median - 1.0));
            let rounds = was.map_or(0, |it| it.rounds).min(now.rounds);
            let verdict = verdict(old, new, rounds).to_owned();
            let cells = vec![old.text(2), new.text(2), change, verdict];
            table.row(&name, Ok(cells));
        }
        if count > 0 {
            terminal::table(&table)?;
        }
    }
    Ok(())
}

/// The figure that is compared: the one that the noise of the machine changes least.
fn figure_of(load: Load) -> (&'static str, fn(&Summary) -> Option<Spread>) {
    match load {
        Load::Closed | Load::Handshakes => ("CPU per call to nginx's", |it| it.ratio),
        Load::Rates(_) => ("CPU µs per call", |it| it.cpu_us),
        Load::Single => ("µs added to a call", |it| it.added_us),
    }
}

/// A change counts only if the rounds of both do not overlap.
fn verdict(old: Spread, new: Spread, rounds: usize) -> &'static str {
    if rounds < 3 {
        "too few rounds to tell"
    } else if new.min > old.max {
        "more"
    } else if new.max < old.min {
        "less"
    } else {
        "within the noise"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_within_the_spread_are_noise() {
        let spread = |min, median, max| Spread { median, min, max };
        let cases = [
            (
                spread(0.8, 0.82, 0.85),
                spread(0.84, 0.86, 0.9),
                3,
                "within the noise",
            ),
            (spread(0.8, 0.82, 0.85), spread(0.86, 0.88, 0.9), 3, "more"),
            (
                spread(0.8, 0.82, 0.85),
                spread(0.86, 0.88, 0.9),
                2,
                "too few rounds to tell",
            ),
            (spread(0.8, 0.82, 0.85), spread(0.7, 0.72, 0.79), 3, "less"),
        ];
        for (old, new, rounds, expected) in cases {
            assert_eq!(verdict(old, new, rounds), expected, "{old:?} {new:?}");
        }
    }
}
