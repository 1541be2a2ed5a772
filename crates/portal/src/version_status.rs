//! The status of a version by its calls: whether it answers now, and which share it has answered on each day. And the
//! answers of the last minute, kept for others who ask.
//!
//! **What it is not**: it asks nothing; `api::status` does.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Days that are shown, today included.
pub(crate) const DAYS: u64 = 30;
/// From which share of failed calls on there is trouble, and from which nearly nothing works.
const TROUBLE: f64 = 0.05;
const DOWN: f64 = 0.5;

/// How a version does in an environment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaceStatus {
    /// The environment.
    environment: String,
    /// The state by the last 15 minutes.
    state: LiveState,
    /// The share of calls of the last 30 days that were answered without a server error; `null`: there were none.
    answered: Option<f64>,
    /// The same for each day in UTC, the oldest first, today last; `null`: no calls.
    days: Vec<Option<f64>>,
}

/// The state by the last minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// Nearly all calls are answered.
    Up,
    /// More than 5 of 100 calls fail.
    Trouble,
    /// More than half of the calls fail.
    Down,
    /// There are no calls.
    Quiet,
}

/// Calls, and those of them that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) calls: f64,
    pub(crate) failed: f64,
}

impl Counts {
    /// The share that was answered, to a hundredth of a percent.
    fn answered(self) -> Option<f64> {
        let share = (self.calls - self.failed.min(self.calls)) / self.calls;
        (self.calls > 0.0).then(|| (share * 10_000.0).floor() / 10_000.0)
    }

    fn state(self) -> LiveState {
        if self.calls <= 0.0 {
            return LiveState::Quiet;
        }
        match self.failed / self.calls {
            failed if failed > DOWN => LiveState::Down,
            failed if failed > TROUBLE => LiveState::Trouble,
            _ => LiveState::Up,
        }
    }
}

/// The status of a version in an environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) now: Counts,
    pub(crate) days: Vec<Counts>,
}

impl Record {
    pub(crate) fn shown(&self, environment: &str) -> PlaceStatus {
        let add = |sum: Counts, it: &Counts| Counts {
            calls: sum.calls + it.calls,
            failed: sum.failed + it.failed,
        };
        let mut days: Vec<Option<f64>> = self.days.iter().map(|it| it.answered()).collect();
        days.resize(DAYS as usize, None);
        PlaceStatus {
            environment: environment.to_owned(),
            state: self.now.state(),
            answered: self.days.iter().fold(Counts::default(), add).answered(),
            days,
        }
    }
}

pub(crate) type ByEnvironment = BTreeMap<String, Record>;

/// Answers of the last minute, of all environments. One is asked for at a time.
#[derive(Default)]
pub(crate) struct StatusCache(pub(crate) tokio::sync::Mutex<HashMap<String, (u64, Arc<ByEnvironment>)>>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_decide_the_state() {
        for (calls, failed, answered, state) in [
            (0.0, 0.0, None, LiveState::Quiet),
            (1.0, 0.0, Some(1.0), LiveState::Up),
            (100.0, 5.0, Some(0.95), LiveState::Up),
            (100.0, 6.0, Some(0.94), LiveState::Trouble),
            (100.0, 50.0, Some(0.5), LiveState::Trouble),
            (100.0, 51.0, Some(0.49), LiveState::Down),
            (1.0, 1.0, Some(0.0), LiveState::Down),
            // It is never said that all were answered if one was not.
            (1_000_000.0, 1.0, Some(0.9999), LiveState::Up),
        ] {
            let counts = Counts { calls, failed };
            let (found, of) = (counts.answered(), counts.state());
            let is_it = match (found, answered) {
                (Some(one), Some(other)) => (one - other).abs() < 1e-9,
                (one, other) => one == other,
            };
            assert!(is_it, "{calls} {failed}: {found:?}");
            assert_eq!(of, state, "{calls} {failed}");
        }
    }

    #[test]
    fn a_place_has_thirty_days_and_their_sum() {
        let none = Record::default().shown("prod");
        assert_eq!(
            (none.days.len(), none.answered, none.state),
            (30, None, LiveState::Quiet)
        );
        let day = |calls, failed| Counts { calls, failed };
        let record = Record {
            now: day(2.0, 2.0),
            days: vec![day(0.0, 0.0), day(100.0, 0.0), day(100.0, 50.0)],
        };
        let shown = record.shown("prod");
        assert_eq!(shown.days[..4], [None, Some(1.0), Some(0.5), None]);
        assert_eq!((shown.answered, shown.state), (Some(0.75), LiveState::Down));
    }
}
