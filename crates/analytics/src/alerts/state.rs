//! The states of rules: what fires, since when, and which events are due. Time and values are arguments.

use super::rule::{NoData, Rule, Severity, Values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often rules that still fire are reported again, in seconds.
const DIGEST: u64 = 3_600;

/// The state of a group of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// All is well.
    Ok,
    /// The value is beyond the threshold.
    Ongoing,
    /// There is no value.
    NoData,
}

/// A group of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// State.
    pub state: AlertState,
    /// Since when, in seconds since the Unix epoch.
    pub since: u64,
    /// The value when the state began.
    pub start_value: Option<f64>,
    /// The latest value.
    pub last_value: Option<f64>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It fires.
    Started,
    /// It fires no more.
    Ended,
    /// There is no data any more.
    NoData,
    /// It still fires: reported every hour.
    Digest,
}

/// A change to be notified.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// The rule's id.
    pub rule: String,
    /// The rule's name.
    pub name: String,
    /// How much it matters.
    pub severity: Severity,
    /// The group.
    pub group: BTreeMap<String, String>,
    /// The metric.
    pub metric: String,
    /// The threshold.
    pub threshold: f64,
    /// The value when the state began.
    pub start_value: Option<f64>,
    /// The latest value.
    pub value: Option<f64>,
    /// Since when.
    pub since: u64,
    /// When this was found out.
    pub at: u64,
    /// The value and the threshold, in words.
    pub text: String,
}

/// A rule's groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RuleGroups {
    rule: Rule,
    #[serde(with = "pairs")]
    alerts: BTreeMap<BTreeMap<String, String>, Alert>,
    /// When the rules that still fire were last reported.
    digested: u64,
}

/// Groups are maps, which are no keys in JSON.
mod pairs {
    use super::{Alert, BTreeMap};
    use serde::{Deserialize, Deserializer, Serializer};

    type Alerts = BTreeMap<BTreeMap<String, String>, Alert>;

    pub fn serialize<S: Serializer>(alerts: &Alerts, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(alerts)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Alerts, D::Error> {
        let pairs: Vec<(BTreeMap<String, String>, Alert)> = Vec::deserialize(from)?;
        Ok(pairs.into_iter().collect())
    }
}

/// The states of all rules. They can be kept, and read again after a start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct States(BTreeMap<String, RuleGroups>);

impl States {
    /// Forgets rules that are not among these any more; of those that were edited, all alerts end.
    pub fn keep(&mut self, rules: &[Rule], now: u64) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.retain(|id, watched| {
            let known = rules.iter().find(|rule| rule.id == *id && rule.enabled);
            if known.is_some_and(|rule| is_same(rule, &watched.rule)) {
                return true;
            }
            for (group, alert) in &watched.alerts {
                if alert.state == AlertState::Ongoing {
                    events.push(event(&watched.rule, EventKind::Ended, group, alert, now));
                }
            }
            false
        });
        events
    }

    /// Takes the values of a rule. Returns the events that are due.
    pub fn evaluate(&mut self, rule: &Rule, values: &Values, now: u64) -> Vec<Event> {
        let watched = self.0.entry(rule.id.clone()).or_insert_with(|| RuleGroups {
            rule: rule.clone(),
            alerts: BTreeMap::new(),
            digested: now,
        });
        // Other channels do not reset what is known.
        watched.rule = rule.clone();
        let mut events = Vec::new();
        let gone: Vec<_> = watched
            .alerts
            .keys()
            .filter(|group| !values.contains_key(*group))
            .cloned()
            .collect();
        let of_gone = gone.iter().map(|group| (group, &None));
        for (group, value) in values.iter().chain(of_gone) {
            let found = step(rule, watched.alerts.get(group), *value, now);
            let Some((alert, kind)) = found else {
                continue;
            };
            if let Some(kind) = kind {
                events.push(event(rule, kind, group, &alert, now));
            }
            // A group that is well and of which nothing is heard is forgotten.
            match alert.state == AlertState::Ok && value.is_none() {
                true => drop(watched.alerts.remove(group)),
                false => drop(watched.alerts.insert(group.clone(), alert)),
            }
        }
        if now.saturating_sub(watched.digested) >= DIGEST {
            watched.digested = now;
            for (group, alert) in &watched.alerts {
                if alert.state == AlertState::Ongoing && now.saturating_sub(alert.since) >= DIGEST {
                    events.push(event(rule, EventKind::Digest, group, alert, now));
                }
            }
        }
        match rule.muted_until.is_some_and(|until| now < until) {
            true => Vec::new(),
            false => events,
        }
    }

    /// The groups of a rule.
    pub fn of(&self, rule: &str) -> Vec<(BTreeMap<String, String>, Alert)> {
        let watched = self.0.get(rule);
        let alerts = watched.into_iter().flat_map(|watched| &watched.alerts);
        alerts
            .map(|(group, alert)| (group.clone(), alert.clone()))
            .collect()
    }
}

/// Whether two rules watch the same. Their channels do not matter.
fn is_same(a: &Rule, b: &Rule) -> bool {
    let plain = |rule: &Rule| Rule {
        channels: Vec::new(),
        muted_until: None,
        name: String::new(),
        ..rule.clone()
    };
    plain(a) == plain(b)
}

/// The next state of a group, and its event; `None`: nothing is known and nothing is new.
fn step(
    rule: &Rule,
    known: Option<&Alert>,
    value: Option<f64>,
    now: u64,
) -> Option<(Alert, Option<EventKind>)> {
    let before = known.map_or(AlertState::Ok, |alert| alert.state);
    let value = value.or((rule.no_data == NoData::Zero).then_some(0.0));
    let state = match value {
        Some(value) if rule.fires(value) => AlertState::Ongoing,
        Some(_) => AlertState::Ok,
        None if rule.no_data == NoData::Keep => before,
        None => AlertState::NoData,
    };
    let alert = match known {
        Some(alert) if alert.state == state => Alert {
            last_value: value.or(alert.last_value),
            ..alert.clone()
        },
        _ => Alert {
            state,
            since: now,
            start_value: value,
            last_value: value,
        },
    };
    let kind = match (before, state) {
        (before, state) if before == state => None,
        (_, AlertState::Ongoing) => Some(EventKind::Started),
        (_, AlertState::NoData) => Some(EventKind::NoData),
        (_, AlertState::Ok) => Some(EventKind::Ended),
    };
    // Missing data is reported only after a first value.
    let kind = kind.filter(|kind| !(*kind == EventKind::NoData && known.is_none()));
    Some((alert, kind))
}

fn event(rule: &Rule, kind: EventKind, group: &BTreeMap<String, String>, alert: &Alert, now: u64) -> Event {
    Event {
        kind,
        rule: rule.id.clone(),
        name: rule.name.clone(),
        severity: rule.severity,
        group: group.clone(),
        metric: rule.metric.clone(),
        threshold: rule.threshold,
        start_value: alert.start_value,
        value: alert.last_value,
        since: alert.since,
        at: now,
        text: rule.sentence(alert.last_value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Columns, ComparisonValues, Frame, QueryResponse};
    use crate::store::Gap;
    use serde_json::json;

    fn rule(fields: serde_json::Value) -> Rule {
        let mut rule = json!({
            "id": "r", "name": "errors", "metric": "share_5xx", "operator": ">", "threshold": 0.05, "period": "2m",
        });
        for (name, value) in fields.as_object().expect("fields") {
            rule[name] = value.clone();
        }
        let rule: Rule = serde_json::from_value(rule).expect("a rule");
        rule.check().expect("good");
        rule
    }

    fn values(value: Option<f64>) -> Values {
        [(BTreeMap::new(), value)].into_iter().collect()
    }

    #[test]
    fn states_follow_the_values() {
        use EventKind as K;
        for (no_data, steps) in [
            (
                "no_data",
                &[
                    (Some(0.01), None),
                    (Some(0.2), Some(K::Started)),
                    (Some(0.3), None),
                    (None, Some(K::NoData)),
                    (None, None),
                    (Some(0.0), Some(K::Ended)),
                    (None, Some(K::NoData)),
                    (Some(0.9), Some(K::Started)),
                ][..],
            ),
            (
                "no_data",
                &[(None, None), (None, None), (Some(0.9), Some(K::Started))],
            ),
            (
                "keep",
                &[
                    (Some(0.2), Some(K::Started)),
                    (None, None),
                    (Some(0.05), Some(K::Ended)),
                    (None, None),
                ],
            ),
            (
                "zero",
                &[
                    (Some(0.2), Some(K::Started)),
                    (None, Some(K::Ended)),
                    (None, None),
                ],
            ),
        ] {
            let rule = rule(json!({ "no_data": no_data }));
            let mut states = States::default();
            for (place, (value, expected)) in steps.iter().enumerate() {
                let events = states.evaluate(&rule, &values(*value), 1_000 + 30 * place as u64);
                let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
                assert_eq!(
                    kinds,
                    expected.iter().copied().collect::<Vec<_>>(),
                    "{no_data}, step {place}"
                );
            }
        }
    }

    #[test]
    fn states_that_are_kept_go_on() {
        let rule = rule(json!({}));
        let mut states = States::default();
        let started = states.evaluate(&rule, &values(Some(1.0)), 100);
        assert_eq!(started.len(), 1);
        let text = serde_json::to_string(&states).expect("kept");
        let mut states: States = serde_json::from_str(&text).expect("read again");
        assert!(states.evaluate(&rule, &values(Some(1.0)), 200).is_empty());
        let (_, alert) = states.of(&rule.id).remove(0);
        assert_eq!((alert.state, alert.since), (AlertState::Ongoing, 100));
    }

    #[test]
    fn alerts_carry_the_first_and_the_last_value_and_a_digest_each_hour() {
        let rule = rule(json!({}));
        let mut states = States::default();
        let mut events = Vec::new();
        for step in 0..=300_u64 {
            let value = 0.1 + step as f64 / 1_000.0;
            events.extend(states.evaluate(&rule, &values(Some(value)), step * 30));
        }
        let kinds: Vec<(EventKind, u64)> = events.iter().map(|it| (it.kind, it.at)).collect();
        assert_eq!(
            kinds,
            [
                (EventKind::Started, 0),
                (EventKind::Digest, 3_600),
                (EventKind::Digest, 7_200)
            ]
        );
        let (_, alert) = states.of("r").remove(0);
        assert_eq!(
            (alert.since, alert.start_value, alert.last_value),
            (0, Some(0.1), Some(0.4))
        );
    }

    #[test]
    fn an_edited_rule_ends_its_alerts_and_a_muted_one_is_silent() {
        let first = rule(json!({ "group_by": ["service"] }));
        let mut states = States::default();
        let group = |name: &str| {
            [("service".to_owned(), name.to_owned())]
                .into_iter()
                .collect::<BTreeMap<_, _>>()
        };
        let both: Values = [(group("a"), Some(0.5)), (group("b"), Some(0.0))]
            .into_iter()
            .collect();
        assert_eq!(states.evaluate(&first, &both, 10).len(), 1);
        let renamed = Rule {
            name: "other".to_owned(),
            ..first.clone()
        };
        assert_eq!(states.keep(&[renamed], 20), []);
        let edited = Rule {
            threshold: 0.9,
            ..first.clone()
        };
        let events = states.keep(&[edited], 20);
        assert_eq!(
            (events.len(), events[0].kind, &events[0].group),
            (1, EventKind::Ended, &group("a"))
        );
        assert!(states.of("r").is_empty());
        let muted = Rule {
            muted_until: Some(100),
            ..first
        };
        assert_eq!(states.evaluate(&muted, &both, 30), []);
        assert_eq!(states.of("r").len(), 2, "it is evaluated all the same");
    }

    fn answer(frames: &[(f64, Option<f64>, Option<f64>)]) -> QueryResponse {
        let frame = |(calls, value, before): &(f64, Option<f64>, Option<f64>)| Frame {
            group: BTreeMap::new(),
            total: [
                ("calls", Some(*calls)),
                ("share_5xx", *value),
                ("errors_4xx", *value),
            ]
            .into_iter()
            .collect(),
            values: BTreeMap::new(),
            compare: before.map(|before| {
                Box::new(ComparisonValues {
                    total: [("share_5xx", Some(before))].into_iter().collect(),
                    values: BTreeMap::new(),
                })
            }),
        };
        QueryResponse {
            from: 0,
            to: 120,
            step: None,
            resolution: 60,
            partial: false,
            gaps: Vec::new(),
            sampled: false,
            notes: Vec::new(),
            units: BTreeMap::new(),
            times: Vec::new(),
            marks: Vec::new(),
            columns: Columns::default(),
            frames: frames.iter().map(frame).collect(),
        }
    }

    #[test]
    fn values_may_be_ratios_comparisons_and_burn_rates() {
        let one =
            |rule: &Rule, answers: &[QueryResponse]| rule.values(answers).into_values().next().flatten();
        let plain = [answer(&[(100.0, Some(0.2), None)])];
        assert_eq!(one(&rule(json!({})), &plain), Some(0.2));
        assert_eq!(one(&rule(json!({ "min_calls": 101 })), &plain), None);
        let ratio = rule(json!({ "metric": "errors_4xx", "over": "calls" }));
        assert_eq!(one(&ratio, &[answer(&[(100.0, Some(20.0), None)])]), Some(0.2));
        let week = rule(json!({ "compare": "1w" }));
        assert_eq!(one(&week, &[answer(&[(100.0, Some(0.2), Some(0.1))])]), Some(2.0));
        assert_eq!(one(&week, &plain), None);
        let burn = rule(json!({ "period": "1h", "burn_rate": { "objective": 0.75, "short": "5m" } }));
        assert_eq!(burn.queries(10_000).len(), 2);
        let quiet = answer(&[(0.0, None, None)]);
        assert_eq!(
            one(&burn, &[plain[0].clone(), answer(&[(9.0, Some(0.5), None)])]),
            Some(0.8)
        );
        assert_eq!(one(&burn, &[plain[0].clone(), quiet]), Some(0.0));
        // A gateway of which nothing was heard all the time has no value, not the value 0.
        let mut silent = answer(&[(0.0, Some(0.0), None)]);
        silent.gaps.push(Gap {
            gateway: String::new(),
            from: 0,
            to: 130,
            reason: String::new(),
        });
        assert_eq!(one(&rule(json!({})), &[silent]), None);
    }

    #[test]
    fn a_rule_may_be_about_workspaces() {
        for (filter, expected) in [
            (json!({ "workspace": ["a", "b"] }), None),
            (json!({ "workspace": "a", "service": "a/x" }), None),
            (json!({ "workspaces": "a" }), Some("filter")),
        ] {
            let found = Rule {
                filter: serde_json::from_value(filter.clone()).expect("a filter"),
                ..rule(json!({}))
            };
            let error = found.check().err().map(|it| it.field);
            assert_eq!(error.as_deref(), expected, "{filter}");
        }
    }

    #[test]
    fn wrong_rules_are_refused_with_the_field() {
        for (fields, field) in [
            (json!({ "metric": "hits" }), "metric"),
            (json!({ "period": "1m" }), "period"),
            (json!({ "period": "2d" }), "period"),
            (json!({ "name": " " }), "name"),
            (json!({ "group_by": ["colour"] }), "group_by"),
            (json!({ "group_by": ["consumer", "target"] }), "group_by"),
            (json!({ "over": "calls", "compare": "1d" }), "over"),
            (
                json!({ "metric": "calls", "burn_rate": { "objective": 0.9, "short": "1m" } }),
                "metric",
            ),
            (
                json!({ "burn_rate": { "objective": 2.0, "short": "1m" } }),
                "burn_rate.objective",
            ),
            (
                json!({ "burn_rate": { "objective": 0.9, "short": "5m" } }),
                "burn_rate.short",
            ),
            (
                json!({ "channels": [{ "kind": "webhook", "url": "ftp://h" }] }),
                "channels",
            ),
        ] {
            let mut wrong = serde_json::to_value(rule(json!({}))).expect("JSON");
            for (name, value) in fields.as_object().expect("fields") {
                wrong[name] = value.clone();
            }
            let rule: Rule = serde_json::from_value(wrong).expect("a rule");
            assert_eq!(
                rule.check().map_err(|error| error.field),
                Err(field.to_owned()),
                "{fields}"
            );
        }
    }
}
