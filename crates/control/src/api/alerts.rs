//! Alert rules in Weir's own API: reading and writing them, and how they stand.

use super::Api;
use super::analytics::{failed, wrong};
use super::analytics_documents::{DocumentWrite, Kind, id_of};
use super::apis::{acknowledge_canary, alerts_of_canaries, publication_of_alert};
use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::shapes::List;
use super::writing::tried;
use super::{is_dry_run, statistics};
use crate::access::{Action, Caller, Scope};
use crate::analytics::AnalyticsStorage;
use crate::analytics::alerting::RULES;
use crate::api::json_body::Json;
use crate::webhook_addresses::without_path;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_analytics::alerts::{Alert, Channel, Rule};

const KIND: Kind = Kind {
    name: "alert rule",
    stored: RULES,
    most: 1_000,
    beside: &["alerts", "etag"],
};

/// The state of a group of a rule.
#[derive(Serialize, JsonSchema)]
pub struct GroupState {
    /// The values of the dimensions that the rule groups by.
    pub group: BTreeMap<String, String>,
    /// State.
    #[serde(flatten)]
    pub alert: Alert,
}

/// A rule and its state.
#[derive(Serialize, JsonSchema)]
pub struct RuleState {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Its groups with a known state.
    pub alerts: Vec<GroupState>,
    /// Its version, as `If-Match` names it; bounds of canaries have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl RuleState {
    fn of(kept: &AnalyticsStorage, rule: Rule) -> Self {
        let alerts = kept.alerts_of(&rule.id).into_iter();
        let alerts = alerts.map(|(group, alert)| GroupState { group, alert }).collect();
        let etag = Some(tag_of_content(&rule));
        Self { rule, alerts, etag }
    }

    /// As a caller may see it: URLs of channels are secrets of those who may change rules, and so are addresses of mail.
    fn shown_to(mut self, caller: &Caller) -> Self {
        if !caller.can(Action::AlertsWrite, &Scope::Everything) {
            for channel in &mut self.rule.channels {
                match channel {
                    Channel::Webhook { url } => *url = without_path(url),
                    Channel::Mail { to } => "(hidden)".clone_into(to),
                    Channel::Log => {}
                }
            }
        }
        self
    }
}

/// Whether the caller may see the numbers that a rule is about.
pub fn is_seen(rule: &Rule, caller: &Caller) -> bool {
    statistics::permit(caller, Action::AnalyticsRead, &rule.filter).is_ok()
}

/// The alerts of canaries that were taken back, as rules that fire.
async fn of_canaries(api: &Api) -> Result<impl Iterator<Item = RuleState> + use<>, Problem> {
    let alerts = alerts_of_canaries(&api.snapshot().await?)?.into_iter();
    Ok(alerts.map(|(rule, alert)| RuleState {
        rule,
        alerts: vec![GroupState {
            group: BTreeMap::new(),
            alert,
        }],
        etag: None,
    }))
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<List<RuleState>>, Problem> {
    let listed = api.analytics()?.with(|kept| {
        let rules = kept.rules()?.into_iter();
        Ok(rules.map(|rule| RuleState::of(kept, rule)).collect::<Vec<_>>())
    });
    let listed = listed.await.map_err(failed)?.into_iter();
    let mut items: Vec<RuleState> = listed.collect();
    items.extend(of_canaries(&api).await?);
    let seen = items.into_iter().filter(|it| is_seen(&it.rule, &caller));
    Ok(Json(List {
        items: seen.map(|it| it.shown_to(&caller)).collect(),
    }))
}

pub async fn show(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let found = match publication_of_alert(&id) {
        Some(_) => of_canaries(&api).await?.find(|it| it.rule.id == id),
        None => {
            let wanted = id.clone();
            let found = api.analytics()?.with(move |kept| {
                let rule = kept.rules()?.into_iter().find(|rule| rule.id == wanted);
                Ok(rule.map(|rule| RuleState::of(kept, rule)))
            });
            found.await.map_err(failed)?
        }
    };
    let found = found.filter(|it| is_seen(&it.rule, &caller));
    let found = found.ok_or_else(|| KIND.missing(&id))?;
    let tag = found.etag.clone();
    let answer = Json(found.shown_to(&caller)).into_response();
    Ok(with_tag(answer, tag.as_deref()))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut rule: Rule = KIND.read(&body)?;
    if rule.id.is_empty() {
        rule.id = id_of(&rule.name);
    }
    write(&api, (rule, true), &headers).await
}

pub async fn replace(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let rule = Rule {
        id,
        ..KIND.read(&body)?
    };
    write(&api, (rule, false), &headers).await
}

async fn write(api: &Api, (rule, is_new): (Rule, bool), headers: &HeaderMap) -> Result<Response, Problem> {
    rule.check().map_err(|error| wrong(&error))?;
    let written = DocumentWrite {
        id: rule.id.clone(),
        document: rule,
        is_new,
        is_dry: is_dry_run(headers),
        precondition: Precondition::of(headers),
    };
    KIND.write(api.analytics()?, written, |_, _| Ok(()), RuleState::of)
        .await
}

pub async fn remove(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(publication) = publication_of_alert(&id) {
        let is_dry = is_dry_run(&headers);
        // It is kept with the publication, and not with the analytics, as rules are.
        if api.options.is_read_only && !is_dry {
            return Err(Problem::read_only());
        }
        return match acknowledge_canary(&api, &caller, &headers, publication).await? {
            true if is_dry => Ok(tried(StatusCode::NO_CONTENT)),
            true => Ok(StatusCode::NO_CONTENT.into_response()),
            false => Err(KIND.missing(&id)),
        };
    }
    KIND.remove::<Rule>(api.analytics()?, &id, &headers).await
}
