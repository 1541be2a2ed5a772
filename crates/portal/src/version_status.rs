//! The status of a version by its calls: whether it answers now, and which share it has answered on each day. And the
//! answers of the last minute, kept for others who ask. Who asks for one version never waits for another one.
//!
//! **What it is not**: it asks nothing; `api::status` does.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Days that are shown, today included.
pub(crate) const DAYS: u64 = 30;
/// From which share of failed calls on there is trouble, and from which nearly nothing works.
const TROUBLE: f64 = 0.05;
const DOWN: f64 = 0.5;

/// How a version does in an environment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PlaceStatus")]
pub struct EnvironmentStatus {
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
    pub(crate) fn status_in(&self, environment: &str) -> EnvironmentStatus {
        let add = |sum: Counts, it: &Counts| Counts {
            calls: sum.calls + it.calls,
            failed: sum.failed + it.failed,
        };
        let mut days: Vec<Option<f64>> = self.days.iter().map(|it| it.answered()).collect();
        days.resize(DAYS as usize, None);
        EnvironmentStatus {
            environment: environment.to_owned(),
            state: self.now.state(),
            answered: self.days.iter().fold(Counts::default(), add).answered(),
            days,
        }
    }
}

pub(crate) type ByEnvironment = BTreeMap<String, Record>;

/// For how long an answer is good for others, in seconds: strangers must not have analytics asked at will.
const FRESH: u64 = 60;
/// Versions whose answers are kept.
const MAX_KEPT: usize = 1_000;

/// The answer about one version, and when it was given; who holds `turn` asks for the next one.
#[derive(Default)]
struct Slot {
    known: Mutex<Option<(u64, Arc<ByEnvironment>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Slot {
    fn known(&self) -> Option<(u64, Arc<ByEnvironment>)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fresh(&self, now: u64) -> Option<Arc<ByEnvironment>> {
        let known = self.known().filter(|(at, _)| now < at + FRESH);
        known.map(|(_, answer)| answer)
    }
}

/// Answers of the last minute, of all environments, by version.
#[derive(Default)]
pub(crate) struct StatusCache(Mutex<HashMap<String, Arc<Slot>>>);

impl StatusCache {
    /// The answer about a version. One asks at a time; meanwhile the others get what was known before, or wait if that is nothing.
    pub(crate) async fn get<E>(
        &self,
        version: String,
        now: u64,
        ask: impl AsyncFnOnce() -> Result<ByEnvironment, E>,
    ) -> Result<Arc<ByEnvironment>, E> {
        let slot = self.slot(version, now);
        if let Some(answer) = slot.fresh(now) {
            return Ok(answer);
        }
        let _turn = match (slot.turn.try_lock(), slot.known()) {
            (Ok(turn), _) => turn,
            (Err(_), Some((_, old))) => return Ok(old),
            (Err(_), None) => slot.turn.lock().await,
        };
        if let Some(answer) = slot.fresh(now) {
            return Ok(answer);
        }
        let made = Arc::new(ask().await?);
        *slot.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&made)));
        Ok(made)
    }

    /// The place of a version's answer. If there are too many, old ones go; one too many is not kept.
    fn slot(&self, version: String, now: u64) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_KEPT && !slots.contains_key(&version) {
            slots.retain(|_, it| Arc::strong_count(it) > 1 || it.fresh(now).is_some());
            if slots.len() >= MAX_KEPT {
                return Arc::default();
            }
        }
        Arc::clone(slots.entry(version).or_default())
    }
}

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

    /// An answer that can be told from others.
    fn answer(calls: f64) -> ByEnvironment {
        let now = Counts { calls, failed: 0.0 };
        BTreeMap::from([(
            "prod".to_owned(),
            Record {
                now,
                days: Vec::new(),
            },
        )])
    }

    fn calls(answer: &ByEnvironment) -> f64 {
        answer["prod"].now.calls
    }

    #[tokio::test]
    async fn an_answer_waits_for_no_other_version_and_for_no_newer_one() {
        let cache = StatusCache::default();
        let good = |it: f64| async move || Ok::<_, ()>(answer(it));
        let get = |version: &str, now, it| cache.get(version.to_owned(), now, good(it));
        get("a/1", 0, 1.0).await.expect("the first answer");
        // Analytics do not answer about one version.
        let (asked, was_asked) = tokio::sync::oneshot::channel();
        let (go_on, goes_on) = tokio::sync::oneshot::channel();
        let slow = cache.get("a/1".to_owned(), FRESH, async || {
            asked.send(()).expect("somebody waits");
            goes_on.await.expect("it goes on");
            Ok::<_, ()>(answer(2.0))
        });
        let meanwhile = async {
            was_asked.await.expect("it is asked");
            let other = get("b/1", FRESH, 3.0).await.expect("another version");
            let old = get("a/1", FRESH, 9.0).await.expect("what was known");
            go_on.send(()).expect("somebody waits");
            (calls(&other), calls(&old))
        };
        let (made, meanwhile) = tokio::join!(slow, meanwhile);
        assert_eq!(made.map(|it| calls(&it)), Ok(2.0));
        assert_eq!(meanwhile, (3.0, 1.0));
        let kept = get("a/1", FRESH + FRESH - 1, 9.0).await;
        assert_eq!(kept.map(|it| calls(&it)), Ok(2.0), "it is asked once a minute");
    }

    #[tokio::test]
    async fn a_question_that_fails_is_asked_again_and_places_are_bounded() {
        let cache = StatusCache::default();
        let failed = cache.get("a/1".to_owned(), 0, async || Err("away")).await;
        assert_eq!(failed.map(|it| calls(&it)), Err("away"));
        let good = async || Ok::<_, ()>(answer(1.0));
        let made = cache.get("a/1".to_owned(), 0, good).await;
        assert_eq!(made.map(|it| calls(&it)), Ok(1.0));
        for index in 0..MAX_KEPT + 10 {
            cache
                .get(format!("b/{index}"), 1, good)
                .await
                .expect("an answer without a place");
        }
        assert_eq!(cache.0.lock().expect("whole").len(), MAX_KEPT);
        cache
            .get("c/1".to_owned(), FRESH + 1, good)
            .await
            .expect("an answer");
        assert_eq!(cache.0.lock().expect("whole").len(), 1, "old answers make room");
    }

    #[test]
    fn a_place_has_thirty_days_and_their_sum() {
        let none = Record::default().status_in("prod");
        assert_eq!(
            (none.days.len(), none.answered, none.state),
            (30, None, LiveState::Quiet)
        );
        let day = |calls, failed| Counts { calls, failed };
        let record = Record {
            now: day(2.0, 2.0),
            days: vec![day(0.0, 0.0), day(100.0, 0.0), day(100.0, 50.0)],
        };
        let status = record.status_in("prod");
        assert_eq!(status.days[..4], [None, Some(1.0), Some(0.5), None]);
        assert_eq!((status.answered, status.state), (Some(0.75), LiveState::Down));
    }
}
