//! How a version does where it is published: now, and on each of the last 30 days. It is made of the calls that gateways have
//! counted; how many there were is not told, since everybody who sees the API may ask.
//!
//! **What it is not**: a probe. Where nobody calls, nothing is known, and that is what is said.

use super::operation::{Operation, Shared};
use super::usage::ask;
use super::versions::find_version;
use crate::people::seconds;
use crate::state::{Portals, Visit};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;
use weir_analytics::query::{Length, OneOrMany, Query, QueryResponse};
use weir_control::api::Problem;

/// The call.
pub fn operations() -> Vec<Operation> {
    let about = (
        "getVersionStatus",
        "Reads how a version does now, and on each of the last 30 days",
    );
    let path = "/portal/v1/apis/{api}/versions/{version}/status";
    let operations = vec![Operation::get(path, about, status).answers::<VersionStatus>()];
    Operation::tagged("Catalogue", operations)
}

const DAY: u64 = 86_400;
/// Days that are shown, today included.
const DAYS: u64 = 30;
/// What is now: seconds.
const NOW: u64 = 900;
/// For how long an answer is good for others, in seconds: strangers must not have analytics asked at will.
const FRESH: u64 = 60;
/// Answers that are kept.
const MAX_KEPT: usize = 1_000;
/// From which share of failed calls on there is trouble, and from which nearly nothing works.
const TROUBLE: f64 = 0.05;
const DOWN: f64 = 0.5;
/// Environments that are told apart.
const MAX_PLACES: usize = 50;

/// How a version does.
#[derive(Serialize, JsonSchema)]
pub struct VersionStatus {
    /// Where it is published; empty if analytics are off.
    items: Vec<PlaceStatus>,
}

/// How a version does in an environment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaceStatus {
    /// The environment.
    environment: String,
    /// What the last 15 minutes tell.
    state: LiveState,
    /// The share of calls of the last 30 days that were answered without a server error; `null`: there were none.
    answered: Option<f64>,
    /// The same for each day in UTC, the oldest first, today last; `null`: no calls.
    days: Vec<Option<f64>>,
}

/// What the last minutes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// Nearly all calls are answered.
    Up,
    /// More than 5 of 100 calls fail.
    Trouble,
    /// More than half of the calls fail.
    Down,
    /// Nobody calls.
    Quiet,
}

/// Calls, and those of them that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    calls: f64,
    failed: f64,
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

/// What is known of a version in an environment.
#[derive(Debug, Clone, Default)]
struct Record {
    now: Counts,
    days: Vec<Counts>,
}

impl Record {
    fn shown(&self, environment: &str) -> PlaceStatus {
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

type ByEnvironment = BTreeMap<String, Record>;

/// Answers of the last minute, of all environments. One is asked for at a time.
#[derive(Default)]
pub struct StatusCache(tokio::sync::Mutex<HashMap<String, (u64, Arc<ByEnvironment>)>>);

async fn status(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<VersionStatus>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, &visit, (&name, &version))?;
    if portals.analytics.is_none() {
        // Nothing is known, and the page says nothing.
        return Ok(Json(VersionStatus { items: Vec::new() }));
    }
    let known = known(&portals, (&name, &version), seconds(SystemTime::now())).await?;
    let none = Record::default();
    let items = found.places.iter().map(|it| {
        let environment = &it.environment.name;
        known.get(environment).unwrap_or(&none).shown(environment)
    });
    Ok(Json(VersionStatus {
        items: items.collect(),
    }))
}

async fn known(
    portals: &Portals,
    (name, version): (&str, &str),
    now: u64,
) -> Result<Arc<ByEnvironment>, Problem> {
    let key = format!("{name}/{version}");
    let mut kept = portals.statuses.0.lock().await;
    if let Some((_, known)) = kept.get(&key).filter(|(at, _)| now < at + FRESH) {
        return Ok(Arc::clone(known));
    }
    let of = |from: u64, step: Option<Length>| Query {
        metrics: vec!["calls".to_owned(), "errors_5xx".to_owned()],
        group_by: vec!["environment".to_owned()],
        filter: BTreeMap::from([
            ("api".to_owned(), OneOrMany::One(name.to_owned())),
            ("version".to_owned(), OneOrMany::One(version.to_owned())),
        ]),
        limit: Some(MAX_PLACES),
        step,
        marks: Some(false),
        ..Query::of("calls", from, now)
    };
    let first = now / DAY * DAY - (DAYS - 1) * DAY;
    let by_day = ask(portals, of(first, Some(Length::Seconds(DAY))), now).await?;
    let lately = ask(portals, of(now - NOW, None), now).await?;
    let made = Arc::new(read(&by_day, &lately));
    if kept.len() >= MAX_KEPT {
        kept.retain(|_, (at, _)| now < *at + FRESH);
    }
    if kept.len() < MAX_KEPT {
        kept.insert(key, (now, Arc::clone(&made)));
    }
    Ok(made)
}

/// What two answers of analytics tell.
fn read(by_day: &QueryResponse, lately: &QueryResponse) -> ByEnvironment {
    let mut found = ByEnvironment::new();
    for frame in &by_day.frames {
        let values = |metric: &str| frame.values.get(metric).cloned().unwrap_or_default();
        let pairs = values("calls").into_iter().zip(values("errors_5xx"));
        let days = pairs.map(|(calls, failed)| Counts {
            calls: calls.unwrap_or(0.0),
            failed: failed.unwrap_or(0.0),
        });
        let environment = frame.group.get("environment").cloned().unwrap_or_default();
        found.entry(environment).or_default().days = days.collect();
    }
    for frame in &lately.frames {
        let total = |metric: &str| frame.total.get(metric).copied().flatten().unwrap_or(0.0);
        let environment = frame.group.get("environment").cloned().unwrap_or_default();
        found.entry(environment).or_default().now = Counts {
            calls: total("calls"),
            failed: total("errors_5xx"),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_tell_the_state() {
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
