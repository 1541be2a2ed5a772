//! What the rounds of one gateway in one experiment say together: medians, their spread, the ratio to NGINX.

use std::collections::BTreeMap;

use crate::gateway::BAR;
use crate::results::{Conditions, DIRECT, Line, Round};
use crate::table::Spread;

/// The rounds of one gateway in one experiment at one rate.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The gateway.
    pub gateway: String,
    /// The constant rate, if there is one.
    pub rate: Option<u32>,
    /// Why there are no figures, if so.
    pub absent: Option<String>,
    /// How the last round was measured.
    pub conditions: Option<Conditions>,
    /// Number of rounds.
    pub rounds: usize,
    /// Good answers of all rounds.
    pub calls: u64,
    /// Calls without a good answer, of all rounds.
    pub errors: u64,
    /// Good answers per second.
    pub calls_per_second: Option<Spread>,
    /// CPU time per call in microseconds.
    pub cpu_us: Option<Spread>,
    /// The part of it outside the kernel.
    pub user_us: Option<Spread>,
    /// CPU time per call against that of NGINX in the same round.
    pub ratio: Option<Spread>,
    /// CPU time per call against that of each other gateway in the same round, by its name.
    pub ratios: BTreeMap<String, Spread>,
    /// The gateway's share of its core.
    pub busy: Option<Spread>,
    /// The load generator's share of its core.
    pub load_busy: Option<Spread>,
    /// Latency in microseconds, by percentile.
    pub latency_us: BTreeMap<String, Spread>,
    /// Latency added to that of the API itself in the same round, in microseconds (the median call).
    pub added_us: Option<Spread>,
    /// 99.9th percentile of the load generator's own lateness in microseconds.
    pub late_us: Option<Spread>,
    /// Why calls per second and latency are not the gateway's own, if so in half of the rounds or more.
    pub limited: Option<String>,
    /// The command that repeats a round's load by hand.
    pub command: String,
}

/// The summaries of one experiment, in the order in which the gateways appear, by rate.
pub fn of(lines: &[Line], experiment: &str) -> Vec<Summary> {
    let rounds: Vec<&Round> = latest(lines, experiment);
    let mut keys: Vec<(Option<u32>, &str)> = Vec::new();
    for line in lines {
        let key = match line {
            Line::Round(round) if round.experiment == experiment => (round.rate, round.gateway.as_str()),
            Line::Absent(it) if it.experiment == experiment => {
                // It belongs to no rate: it is shown if the gateway has no round at all.
                if rounds.iter().any(|round| round.gateway == it.gateway) {
                    continue;
                }
                (None, it.gateway.as_str())
            }
            _ => continue,
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|(rate, _)| *rate);
    let mut summaries: Vec<Summary> = keys
        .into_iter()
        .map(|(rate, gateway)| {
            let of = |name: &str| -> Vec<&Round> {
                let is_of = |round: &&&Round| round.gateway == name && round.rate == rate;
                rounds.iter().filter(is_of).copied().collect()
            };
            let mut summary = summarize(gateway, rate, &of(gateway), &of(BAR), &of(DIRECT));
            summary.absent = last_absence(lines, experiment, gateway);
            summary.ratios = ratios(&of(gateway), &rounds);
            summary
        })
        .collect();
    summaries.sort_by_key(|it| it.absent.is_some());
    summaries
}

/// The last measurement of each round: a repeated one, under other conditions, replaces the earlier one.
fn latest<'l>(lines: &'l [Line], experiment: &str) -> Vec<&'l Round> {
    let mut rounds: BTreeMap<(&str, Option<u32>, u32), &Round> = BTreeMap::new();
    for line in lines {
        if let Line::Round(round) = line
            && round.experiment == experiment
        {
            rounds.insert((&round.gateway, round.rate, round.round), round);
        }
    }
    // Rounds under the conditions of the last one only.
    let mut last: BTreeMap<&str, &Round> = BTreeMap::new();
    for round in rounds.values() {
        let newest = last.entry(&round.gateway).or_insert(round);
        if round.time > newest.time {
            *newest = round;
        }
    }
    let is_current = |round: &&&Round| {
        last.get(round.gateway.as_str())
            .is_some_and(|newest| newest.conditions == round.conditions)
    };
    rounds.values().filter(is_current).copied().collect()
}

/// Why the gateway failed last, unless it was measured after that.
fn last_absence(lines: &[Line], experiment: &str, gateway: &str) -> Option<String> {
    lines.iter().rev().find_map(|line| match line {
        Line::Round(round) if round.experiment == experiment && round.gateway == gateway => Some(None),
        Line::Absent(it) if it.experiment == experiment && it.gateway == gateway => {
            Some(Some(it.reason.clone()))
        }
        _ => None,
    })?
}

fn summarize(
    gateway: &str,
    rate: Option<u32>,
    mine: &[&Round],
    bar: &[&Round],
    direct: &[&Round],
) -> Summary {
    let spread = |figure: &dyn Fn(&Round) -> Option<f64>| Spread::of(mine.iter().filter_map(|it| figure(it)));
    // The median of the pairs, not the ratio of the medians: a virtual machine changes its speed by a fifth from one
    // minute to the next, which a pair shares.
    let paired = |others: &[&Round], figure: &dyn Fn(&Round, &Round) -> Option<f64>| {
        let pairs = mine.iter().filter_map(|round| {
            let other = others.iter().find(|other| other.round == round.round)?;
            figure(round, other)
        });
        Spread::of(pairs)
    };
    let limits: Vec<&String> = mine.iter().filter_map(|round| round.limited.as_ref()).collect();
    let is_limited = limits.len() * 2 >= mine.len();
    // Where most rounds are the gateway's own, the others do not count for what it can do.
    let paced = |figure: &dyn Fn(&Round) -> Option<f64>| {
        let own = mine.iter().filter(|round| is_limited || round.limited.is_none());
        Spread::of(own.filter_map(|it| figure(it)))
    };
    let p50 = |round: &Round| round.latency_us.get("p50").copied();
    let percentiles = mine.iter().flat_map(|round| round.latency_us.keys());
    let latency_us = percentiles
        .filter_map(|name| Some((name.clone(), paced(&|round| round.latency_us.get(name).copied())?)))
        .collect();
    let last = mine.iter().max_by_key(|round| round.time);
    Summary {
        gateway: gateway.to_owned(),
        rate,
        absent: None,
        conditions: last.map(|round| round.conditions.clone()),
        rounds: mine.len(),
        calls: mine.iter().map(|round| round.calls).sum(),
        errors: mine.iter().map(|round| round.errors).sum(),
        calls_per_second: paced(&|round| Some(round.calls_per_second)),
        cpu_us: spread(&|round| round.cpu_us),
        user_us: spread(&|round| round.user_us),
        ratios: BTreeMap::new(),
        ratio: paired(bar, &|round, bar| Some(round.cpu_us? / bar.cpu_us?)),
        busy: spread(&|round| round.busy),
        load_busy: spread(&|round| Some(round.load_busy)),
        latency_us,
        added_us: paired(direct, &|round, direct| Some(p50(round)? - p50(direct)?)),
        late_us: spread(&|round| round.late_us),
        limited: limits.first().filter(|_| is_limited).map(|it| (*it).clone()),
        command: last.map(|round| round.command.clone()).unwrap_or_default(),
    }
}

/// CPU time per call against that of each other gateway: the medians of pairs of the same round and rate.
fn ratios(mine: &[&Round], all: &[&Round]) -> BTreeMap<String, Spread> {
    let mut pairs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (round, other) in mine
        .iter()
        .flat_map(|round| all.iter().map(move |other| (round, other)))
    {
        let is_pair = (other.round, other.rate) == (round.round, round.rate);
        if is_pair && let (Some(cpu_us), Some(other_us)) = (round.cpu_us, other.cpu_us) {
            pairs.entry(&other.gateway).or_default().push(cpu_us / other_us);
        }
    }
    let spread = |(name, ratios): (&str, Vec<f64>)| Some((name.to_owned(), Spread::of(ratios)?));
    pairs.into_iter().filter_map(spread).collect()
}

impl Summary {
    /// The median of a percentile of the latency, in microseconds.
    pub fn latency(&self, name: &str) -> Option<f64> {
        self.latency_us.get(name).map(|spread| spread.median)
    }

    /// Calls per second if they are the gateway's own.
    pub fn quotable_calls_per_second(&self) -> Option<Spread> {
        self.calls_per_second.filter(|_| self.limited.is_none())
    }

    /// Errors among all calls, 0 to 1.
    pub fn error_share(&self) -> f64 {
        self.errors as f64 / (self.calls + self.errors).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::AbsentResult;
    use crate::results::tests::round;

    fn line(round: Round) -> Line {
        Line::Round(Box::new(round))
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        // The machine got slower by half in the second round; the ratio did not change.
        let lines = [
            line(round("A1", "nginx", 1, 10.0)),
            line(round("A1", "weir-kong", 1, 8.0)),
            line(round("A1", "nginx", 2, 15.0)),
            line(round("A1", "weir-kong", 2, 12.0)),
            line(round("A2", "nginx", 1, 99.0)),
        ];
        let found = of(&lines, "A1");
        let shown: Vec<(&str, f64, usize)> = found
            .iter()
            .map(|it| (it.gateway.as_str(), it.ratio.unwrap().median, it.rounds))
            .collect();
        assert_eq!(shown.len(), 2);
        assert_eq!((shown[0].0, shown[0].2), ("nginx", 2));
        assert!((shown[1].1 - 0.8).abs() < 1e-9, "{shown:?}");
        assert!((found[1].ratio.unwrap().max - 0.8).abs() < 1e-9);
    }

    #[test]
    fn limited_and_failed_rounds_are_not_quoted() {
        let limited = |number, is| Round {
            limited: if is { Some("slow".to_owned()) } else { None },
            ..round("A1", "weir-kong", number, 8.0)
        };
        for (rounds, quoted) in [
            ([false, false, false], true),
            ([true, false, false], true),
            ([true, true, false], false),
            ([true, true, true], false),
        ] {
            let lines: Vec<Line> = (1..)
                .zip(rounds)
                .map(|(number, is)| line(limited(number, is)))
                .collect();
            let found = of(&lines, "A1");
            assert_eq!(
                found[0].quotable_calls_per_second().is_some(),
                quoted,
                "{rounds:?}"
            );
        }
        let failed = Line::Absent(AbsentResult {
            experiment: "A1".to_owned(),
            gateway: "kong".to_owned(),
            reason: "not found".to_owned(),
        });
        let found = of(std::slice::from_ref(&failed), "A1");
        assert_eq!(found[0].absent.as_deref(), Some("not found"));
        let found = of(&[failed, line(round("A1", "kong", 1, 30.0))], "A1");
        assert_eq!((found.len(), found[0].absent.as_deref()), (1, None));
    }

    #[test]
    fn rounds_under_other_conditions_are_left_out() {
        let mut newer = round("A1", "weir-kong", 1, 7.0);
        newer.conditions.version = "2".to_owned();
        newer.time = 5;
        let lines = [
            line(round("A1", "weir-kong", 1, 8.0)),
            line(round("A1", "weir-kong", 2, 8.0)),
            line(newer),
        ];
        let found = of(&lines, "A1");
        assert_eq!((found[0].rounds, found[0].cpu_us.unwrap().median), (1, 7.0));
    }
}
