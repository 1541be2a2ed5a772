//! Publications: a revision of a version in an environment, with the addresses that hold there.

use super::{Labels, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Whether a publication is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PublicationState {
    /// It is.
    #[default]
    Live,
    /// Its routes are gone for the time being.
    Disabled,
}

/// The addresses of a backend.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Backend {
    /// `http://host:port/path`. Either this or `targets`.
    #[serde(skip_serializing_if = "is_default")]
    pub url: Option<String>,
    /// Servers that share the calls by their weights.
    #[serde(skip_serializing_if = "is_default")]
    pub targets: Vec<Target>,
    /// The protocol of targets; absent: `http`.
    #[serde(skip_serializing_if = "is_default")]
    pub scheme: Option<String>,
    /// The path before the call's own, with `targets`.
    #[serde(skip_serializing_if = "is_default")]
    pub path: Option<String>,
    /// TLS, as a service of a `weir.yaml` has it.
    #[serde(skip_serializing_if = "is_default")]
    pub tls: Option<Value>,
    /// Health checks, as an upstream of a `weir.yaml` has them.
    #[serde(skip_serializing_if = "is_default")]
    pub checks: Option<Value>,
}

/// A server of a backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// An address or a name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its share of the calls.
    #[serde(default = "standard_weight")]
    pub weight: u32,
}

fn standard_weight() -> u32 {
    100
}

/// The settings that hold in one environment only. They are no part of a revision: a promotion does not carry them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Runtime {
    /// Hosts that the API is served under; empty: every host.
    #[serde(skip_serializing_if = "is_default")]
    pub hosts: Vec<String>,
    /// The path before those of the operations.
    pub base_path: String,
    /// The backend does not see the base path.
    #[serde(skip_serializing_if = "is_default")]
    pub strip_base_path: bool,
    /// The backends, by the names that components use.
    pub backends: BTreeMap<String, Backend>,
    /// Values of `${NAME}` in backends; they override those of the environment.
    #[serde(skip_serializing_if = "is_default")]
    pub variables: BTreeMap<String, String>,
}

/// The announcement for callers of a version that is to go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Deprecation {
    /// Since when, in seconds since 1970; it may lie ahead.
    pub since: u64,
    /// When it ends; not before `since`.
    #[serde(skip_serializing_if = "is_default")]
    pub sunset: Option<u64>,
    /// A page about it.
    #[serde(skip_serializing_if = "is_default")]
    pub link: Option<String>,
    /// The address of the version that takes its place.
    #[serde(skip_serializing_if = "is_default")]
    pub successor: Option<String>,
    /// From `sunset` on callers get 410.
    #[serde(skip_serializing_if = "is_default")]
    pub enforce: bool,
}

/// The property that assigns a caller to one side of a canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryKey {
    /// A cookie.
    Cookie(String),
    /// A request header.
    Header(String),
    /// The client's address.
    Address,
}

/// Another revision than the live one, or other backends of the same one, for a share of the calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The candidate; 0, when a canary is to begin: the revision that is live.
    #[serde(default)]
    pub revision: u32,
    /// Backends for the candidate's calls; those that it does not name are the same as for all others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backends: BTreeMap<String, Backend>,
    /// Its share in hundredths of a percent, 0 to 10,000.
    pub share: u32,
    /// The fact that distinguishes callers.
    pub by: CanaryKey,
    /// A further condition, as a match of a `weir.yaml` has it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when: Option<Value>,
    /// Later shares.
    #[serde(default, skip_serializing_if = "is_default")]
    pub steps: Vec<CanaryStep>,
    /// Limits: a candidate that exceeds one of them is rolled back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub guards: Vec<Guard>,
    /// When it began, in seconds since 1970. Set by the control plane.
    #[serde(default, skip_serializing_if = "is_default")]
    pub started: u64,
}

/// A later share of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CanaryStep {
    /// Seconds after the canary's start.
    pub after: u64,
    /// The share from then on, in hundredths of a percent.
    pub share: u32,
}

/// A limit for a canary, measured by analytics on the candidate's calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// A metric of analytics, such as `share_5xx` or `latency_p95`.
    pub metric: String,
    /// The candidate is rolled back if the metric is above this.
    pub above: f64,
    /// For this long, in seconds, 120 to 86,400.
    pub period: u64,
    /// With fewer calls in that time, nothing is decided.
    #[serde(default = "enough_calls")]
    pub min_calls: u64,
}

/// A canary that was rolled back by a guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CanaryRollback {
    /// The candidate.
    pub revision: u32,
    /// The guard.
    pub guard: Guard,
    /// The value that was beyond it.
    pub value: f64,
    /// When, in seconds since 1970.
    pub at: u64,
}

fn enough_calls() -> u64 {
    20
}

/// A step in the life of a publication.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryItem {
    /// `publish`, `rollback`, `promote`, `deprecate`, `canary`, …
    pub action: String,
    /// The revision that was served afterwards.
    pub revision: u32,
    /// Its hash.
    pub hash: String,
    /// Who.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why.
    #[serde(skip_serializing_if = "is_default")]
    pub note: String,
    /// The refusals that were overruled.
    #[serde(skip_serializing_if = "is_default")]
    pub forced: Vec<String>,
    /// The approval.
    #[serde(skip_serializing_if = "is_default")]
    pub approval: Option<String>,
}

/// The most history items that a publication keeps.
pub const MAX_HISTORY: usize = 200;

/// A version in an environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Publication {
    /// The API.
    pub api: String,
    /// The version.
    pub version: String,
    /// The environment.
    pub environment: String,
    /// The revision that is served.
    pub revision: u32,
    /// Its hash.
    pub hash: String,
    /// The settings that hold in this environment only.
    pub runtime: Runtime,
    /// Whether it is served.
    pub state: PublicationState,
    /// A revision that gets a share of the calls.
    #[serde(skip_serializing_if = "is_default")]
    pub canary: Option<Canary>,
    /// The last canary, if a guard has taken it back and nothing was published since.
    #[serde(alias = "taken_back", skip_serializing_if = "is_default")]
    pub canary_rollback: Option<CanaryRollback>,
    /// The announcement for callers.
    #[serde(skip_serializing_if = "is_default")]
    pub deprecation: Option<Deprecation>,
    /// It is over: callers get 410.
    #[serde(skip_serializing_if = "is_default")]
    pub retired: bool,
    /// It has had a plan: calls need one from then on, although none may be left. Set by the control plane.
    #[serde(skip_serializing_if = "is_default")]
    pub needs_plan: bool,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Its history, the latest last.
    pub history: Vec<HistoryItem>,
}

impl Publication {
    /// Its name: `API/VERSION/ENVIRONMENT`.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.api, self.version, self.environment)
    }

    /// Whether a sunset has come, and is enforced.
    pub fn is_past_sunset(&self, now: u64) -> bool {
        let deprecation = self.deprecation.as_ref().filter(|it| it.enforce);
        deprecation.and_then(|it| it.sunset).is_some_and(|at| at <= now)
    }

    /// Whether it is over, and not because a sunset has come. The history says which of both it was: the sunset may have been put
    /// off since.
    pub fn is_retired_by_hand(&self, now: u64) -> bool {
        let mut actions = self.history.iter().rev().map(|it| it.action.as_str());
        let is_by_hand = match actions.find(|it| matches!(*it, "retire" | "sunset")) {
            Some(action) => action == "retire",
            // It was so long ago that the history has lost it.
            None => !self.is_past_sunset(now),
        };
        self.retired && is_by_hand
    }

    /// The revision before the one that is served, and before those that were rolled back since.
    pub fn revision_before(&self) -> Option<u32> {
        let mut way: Vec<u32> = Vec::new();
        let of_history = self.history.iter();
        for (action, revision) in of_history.map(|it| (it.action.as_str(), it.revision)) {
            match way.iter().rposition(|it| *it == revision) {
                Some(at) if action == "rollback" => way.truncate(at + 1),
                Some(at) if at + 1 == way.len() => {}
                _ => way.push(revision),
            }
        }
        way.into_iter().rev().find(|it| *it != self.revision)
    }

    /// Notes a step. The oldest go when there are too many.
    pub fn note(&mut self, item: HistoryItem) {
        self.history.push(item);
        let surplus = self.history.len().saturating_sub(MAX_HISTORY);
        self.history.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defect: a second rollback went forward again.
    #[test]
    fn rollbacks_go_back_step_by_step() {
        for (steps, expected) in [
            (&[][..], None),
            (&[("publish", 1)], None),
            (&[("publish", 1), ("publish", 2)], Some(1)),
            (&[("publish", 1), ("publish", 2), ("deprecate", 2)], Some(1)),
            (
                &[("publish", 1), ("publish", 2), ("publish", 3), ("rollback", 2)],
                Some(1),
            ),
            (
                &[("publish", 1), ("publish", 2), ("rollback", 1), ("publish", 3)],
                Some(1),
            ),
            (&[("publish", 1), ("publish", 2), ("rollback", 1)], None),
            (&[("publish", 1), ("publish", 2), ("publish", 1)], Some(2)),
            (&[("publish", 5), ("rollback", 3)], Some(5)),
        ] {
            let item = |(action, revision): &(&str, u32)| HistoryItem {
                action: (*action).to_owned(),
                revision: *revision,
                ..HistoryItem::default()
            };
            let publication = Publication {
                revision: steps.last().map_or(0, |it| it.1),
                history: steps.iter().map(item).collect(),
                ..Publication::default()
            };
            assert_eq!(publication.revision_before(), expected, "{steps:?}");
        }
    }

    /// The defect: a sunset that had come was taken for a retirement by hand as soon as it was put off.
    #[test]
    fn a_sunset_retires_otherwise_than_a_hand() {
        for (steps, retired, enforce, sunset, expected) in [
            (&[][..], true, true, Some(10), false),
            (&[], true, true, Some(11), true),
            (&[], true, false, Some(10), true),
            (&[], true, true, None, true),
            (&[], false, true, Some(11), false),
            (&["deprecate", "sunset"], true, true, Some(11), false),
            (&["sunset", "deprecate"], true, false, None, false),
            (&["retire", "deprecate"], true, true, Some(10), true),
            (&["sunset", "undeprecate", "retire"], true, true, Some(10), true),
            (&["sunset", "undeprecate"], false, true, Some(10), false),
        ] {
            let item = |action: &&str| HistoryItem {
                action: (*action).to_owned(),
                ..HistoryItem::default()
            };
            let publication = Publication {
                history: steps.iter().map(item).collect(),
                retired,
                deprecation: Some(Deprecation {
                    enforce,
                    sunset,
                    ..Deprecation::default()
                }),
                ..Publication::default()
            };
            assert_eq!(publication.is_retired_by_hand(10), expected, "{publication:?}");
        }
    }
}
