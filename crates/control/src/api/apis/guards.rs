//! Guards of canaries: what analytics have counted of the candidate's calls, against the bounds of the canary.

use super::clock::now;
use super::entity_snapshot::{self, EntitySnapshot};
use super::write_effects::WriteEffects;
use crate::access::Caller;
use crate::analytics::Analytics;
use crate::api::{Api, Problem};
use axum::http::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_analytics::alerts::{Alert, AlertState, Channel, NoData, Operator, Rule, Severity, messages};
use weir_analytics::query::{Length, OneOrMany};
use weir_apis::entities::{Guard, HistoryItem, Publication};
use weir_apis::render;

/// How ids of alerts of canaries begin. No alert rule can have such an id.
const ID: &str = "canary:";

/// The alert rule that a guard is.
pub fn rule(publication: &Publication, services: Vec<String>, guard: &Guard) -> Rule {
    Rule {
        id: format!("{ID}{}", publication.id()),
        name: format!("canary of {}", publication.id()),
        metric: guard.metric.clone(),
        over: None,
        operator: Operator::Above,
        threshold: guard.above,
        period: Length::Seconds(guard.period),
        filter: BTreeMap::from([("service".to_owned(), OneOrMany::Many(services))]),
        group_by: Vec::new(),
        compare: None,
        burn_rate: None,
        min_calls: guard.min_calls,
        no_data: NoData::NoData,
        severity: Severity::Critical,
        channels: vec![Channel::Log],
        muted_until: None,
        enabled: true,
    }
}

/// Guards that are to be judged at a time: by publication, with their rules.
pub fn rules(
    snapshot: &EntitySnapshot,
    publications: &[Publication],
    now: u64,
) -> Result<Vec<(String, Rule)>, Problem> {
    let mut rules = Vec::new();
    for publication in publications {
        let Some(canary) = &publication.canary else {
            continue;
        };
        // Earlier minutes may hold calls of an earlier candidate.
        let judged = canary
            .guards
            .iter()
            .filter(|it| canary.started + it.period <= now);
        let judged: Vec<&Guard> = judged.collect();
        if judged.is_empty() {
            continue;
        }
        let candidate = snapshot.revision(&publication.api, &publication.version, canary.revision)?;
        let services = render::candidate_services(publication, &candidate);
        for guard in judged {
            rules.push((publication.id(), rule(publication, services.clone(), guard)));
        }
    }
    Ok(rules)
}

/// A guard that a candidate is beyond.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardViolation {
    /// The guard.
    pub guard: Guard,
    /// The value.
    pub value: f64,
}

impl GuardViolation {
    /// Why a canary is taken back.
    pub fn reason(&self) -> String {
        let Guard {
            metric,
            above,
            period,
            ..
        } = &self.guard;
        format!(
            "{} was {} in the last {}, above {}",
            messages::title(metric),
            messages::amount(metric, self.value),
            messages::length(&Length::Seconds(*period)),
            messages::amount(metric, *above)
        )
    }
}

/// The publications whose canaries are beyond a guard, each with the first such guard.
pub async fn beyond(
    analytics: &Analytics,
    rules: Vec<(String, Rule)>,
    now: u64,
) -> Result<BTreeMap<String, GuardViolation>, weir_analytics::StoreError> {
    analytics
        .with(move |kept| {
            let mut found = BTreeMap::new();
            for (publication, rule) in rules {
                let answers: Result<Vec<_>, _> = rule
                    .queries(now)
                    .iter()
                    .map(|query| kept.store.query(query, now))
                    .collect();
                let values = rule.values(&answers?);
                let Some(value) = values.into_values().flatten().find(|value| rule.fires(*value)) else {
                    continue;
                };
                let Length::Seconds(period) = rule.period else {
                    continue;
                };
                let guard = Guard {
                    metric: rule.metric,
                    above: rule.threshold,
                    period,
                    min_calls: rule.min_calls,
                };
                found
                    .entry(publication)
                    .or_insert(GuardViolation { guard, value });
            }
            Ok(found)
        })
        .await
}

/// The alerts of canaries that were taken back, until something is published or another canary begins.
pub fn alerts(snapshot: &EntitySnapshot) -> Result<Vec<(Rule, Alert)>, Problem> {
    let publications: Vec<Publication> = snapshot.list(&entity_snapshot::publication_key(""))?;
    let alerts = publications.iter().filter_map(|it| {
        let canary_rollback = it.canary_rollback.as_ref()?;
        let mut rule = rule(it, Vec::new(), &canary_rollback.guard);
        rule.name = format!(
            "canary of {}, revision {}, taken back",
            it.id(),
            canary_rollback.revision
        );
        // Who may see it is decided by what it is about.
        let only = |value: &str| OneOrMany::Many(vec![value.to_owned()]);
        rule.filter = BTreeMap::from([
            ("api".to_owned(), only(&it.api)),
            ("environment".to_owned(), only(&it.environment)),
        ]);
        let alert = Alert {
            state: AlertState::Ongoing,
            since: canary_rollback.at,
            start_value: Some(canary_rollback.value),
            last_value: Some(canary_rollback.value),
        };
        Some((rule, alert))
    });
    Ok(alerts.collect())
}

/// The publication whose canary an alert is about, by the alert's id.
pub fn publication_of_alert(id: &str) -> Option<&str> {
    id.strip_prefix(ID)
}

/// Ends the alert of a canary that was taken back. Returns whether there was one.
pub async fn acknowledge(
    api: &Arc<Api>,
    caller: &Caller,
    headers: &HeaderMap,
    publication: &str,
) -> Result<bool, Problem> {
    let written = api.manage(caller, headers, |snapshot| {
        let key = entity_snapshot::publication_key(publication);
        let Some(mut entity) = snapshot.find::<Publication>(&key)? else {
            return Ok(WriteEffects::quiet("", false));
        };
        if entity.canary_rollback.take().is_none() {
            return Ok(WriteEffects::quiet("", false));
        }
        entity.note(HistoryItem {
            action: "alert acknowledged".to_owned(),
            revision: entity.revision,
            hash: entity.hash.clone(),
            by: caller.name(),
            at: now(),
            ..HistoryItem::default()
        });
        snapshot.put(&key, &entity)?;
        let note = format!("the alert of the canary of {publication} is acknowledged");
        Ok(WriteEffects::quiet(note, true))
    });
    Ok(written.await?.answer)
}
