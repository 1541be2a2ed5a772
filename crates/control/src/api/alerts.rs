//! Alert rules in Weir's own API: reading and writing them, and how they stand.

use super::Api;
use super::analytics::{failed, read, wrong};
use super::apis::{Library, PREFIX, alerts_of_canaries};
use super::is_dry_run;
use super::problem::Problem;
use super::shapes::List;
use super::writing::tried;
use crate::analytics::Kept;
use crate::analytics::alerting::RULES;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_analytics::StoreError;
use weir_analytics::alerts::{Alert, Rule};
use weir_analytics::query::QueryError;

/// Rules that there may be.
const MAX_RULES: usize = 1_000;
/// The longest id, in bytes.
const MAX_ID: usize = 100;

/// How a group of a rule stands.
#[derive(Serialize, JsonSchema)]
pub struct GroupState {
    /// The values of the dimensions that the rule groups by.
    pub group: BTreeMap<String, String>,
    /// How it stands.
    #[serde(flatten)]
    pub alert: Alert,
}

/// A rule, and how it stands.
#[derive(Serialize, JsonSchema)]
pub struct RuleState {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Its groups of which something is known.
    pub alerts: Vec<GroupState>,
}

impl RuleState {
    fn of(kept: &Kept, rule: Rule) -> Self {
        let alerts = kept.alerts_of(&rule.id).into_iter();
        let alerts = alerts.map(|(group, alert)| GroupState { group, alert }).collect();
        Self { rule, alerts }
    }
}

pub async fn list(State(api): State<Arc<Api>>) -> Result<Json<List<RuleState>>, Problem> {
    let listed = api.analytics()?.with(|kept| {
        let rules = kept.rules()?.into_iter();
        Ok(rules.map(|rule| RuleState::of(kept, rule)).collect())
    });
    let mut items: Vec<RuleState> = listed.await.map_err(failed)?;
    let (documents, _) = api.store.read(PREFIX).await?;
    let of_canaries = alerts_of_canaries(&Library::new(documents))?;
    items.extend(of_canaries.into_iter().map(|(rule, alert)| RuleState {
        rule,
        alerts: vec![GroupState {
            group: BTreeMap::new(),
            alert,
        }],
    }));
    Ok(Json(List { items }))
}

pub async fn show(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Json<RuleState>, Problem> {
    let wanted = id.clone();
    let found = api.analytics()?.with(move |kept| {
        let rule = kept.rules()?.into_iter().find(|rule| rule.id == wanted);
        Ok(rule.map(|rule| RuleState::of(kept, rule)))
    });
    let found = found.await.map_err(failed)?;
    found
        .map(Json)
        .ok_or_else(|| Problem::not_found(format_args!("the alert rule '{id}'")))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut rule = rule_of(&body)?;
    if rule.id.is_empty() {
        rule.id = id_of(&rule.name);
    }
    write(&api, rule, true, &headers).await
}

pub async fn replace(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let rule = Rule {
        id,
        ..rule_of(&body)?
    };
    write(&api, rule, false, &headers).await
}

/// The rule in a body. How it stands, which answers have beside it, may stand in there and is passed over.
fn rule_of(body: &[u8]) -> Result<Rule, Problem> {
    let mut rule: serde_json::Value = read(body)?;
    if let Some(fields) = rule.as_object_mut() {
        fields.remove("alerts");
    }
    serde_json::from_value(rule)
        .map_err(|error| Problem::bad(format!("the alert rule is not understood: {error}")))
}

/// An id of a name: small letters, digits and dashes.
pub(super) fn id_of(name: &str) -> String {
    let mut id = String::new();
    for character in name.chars().take(MAX_ID) {
        match character.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => id.push(letter),
            _ if id.ends_with('-') || id.is_empty() => {}
            _ => id.push('-'),
        }
    }
    id.trim_end_matches('-').to_owned()
}

/// Checks the id of a document.
pub(super) fn check_id(id: &str) -> Result<(), Problem> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    match !id.is_empty() && id.len() <= MAX_ID && id.chars().all(is_good) {
        true => Ok(()),
        false => {
            let message = format!("'{id}' is no id: write letters, digits, '-', '_' or '.'");
            Err(wrong(&QueryError::new("id", message)))
        }
    }
}

async fn write(api: &Api, rule: Rule, is_new: bool, headers: &HeaderMap) -> Result<Response, Problem> {
    rule.check().map_err(|error| wrong(&error))?;
    check_id(&rule.id)?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let is_dry = is_dry_run(headers);
    let written = api.analytics()?.with(move |kept| {
        let rules = kept.rules()?;
        let is_known = rules.iter().any(|known| known.id == rule.id);
        if is_known && is_new {
            return Ok(Err(format!(
                "there is an alert rule '{}' already; use PUT",
                rule.id
            )));
        }
        if !is_known && rules.len() >= MAX_RULES {
            return Ok(Err(format!("there are {MAX_RULES} alert rules already")));
        }
        if !is_dry {
            let text = serde_json::to_string(&rule).map_err(|error| StoreError::Engine(error.to_string()))?;
            kept.documents.put_document(RULES, &rule.id, &text)?;
        }
        Ok(Ok(RuleState::of(kept, rule)))
    });
    match written.await.map_err(failed)? {
        Err(conflict) => Err(Problem::new(StatusCode::CONFLICT, conflict)),
        Ok(state) if is_dry => Ok(tried((status, Json(state)))),
        Ok(state) => Ok((status, Json(state)).into_response()),
    }
}

pub async fn remove(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let wanted = id.clone();
    let removed = api
        .analytics()?
        .with(move |kept| kept.documents.remove_document(RULES, &wanted));
    match removed.await.map_err(failed)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(format_args!("the alert rule '{id}'"))),
    }
}
