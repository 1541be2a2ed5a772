//! APIs, versions, places and plans as the catalogue shows them.

use super::shapes::{Card, DeploymentLine, DeprecationNotice, PlanCard, PlanLimit};
use crate::catalogue::{Deployment, PublishedApi, PublishedVersion};
use crate::markdown;
use crate::state::{PortalContext, Portals};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{LineState, Plan, PlanSecurity, PlanState, Version};
use weir_apis::renames;

/// Letters of a card's summary.
pub const SUMMARY: usize = 240;

/// Names of enumerations as they are written.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

pub fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn shortened(text: &str) -> String {
    match text.chars().count() > SUMMARY {
        true => format!("{}…", text.chars().take(SUMMARY).collect::<String>().trim_end()),
        false => text.to_owned(),
    }
}

/// The path of a logo. It changes with the logo, so that browsers may keep it.
pub fn logo_path(of: &str, logo: &str) -> Option<String> {
    let mark = &weir_apis::hash::of_bytes(logo.as_bytes())[..8];
    (!logo.is_empty()).then(|| format!("/logos/{of}?v={mark}"))
}

/// How callers of a version are recognised.
pub fn security(version: &PublishedVersion) -> Vec<String> {
    let offered = version.plans.iter().filter(|it| it.state == PlanState::Published);
    let kinds: BTreeSet<String> = offered.map(|it| word(&it.security)).collect();
    match kinds.is_empty() {
        true => vec![word(&PlanSecurity::Keyless)],
        false => kinds.into_iter().collect(),
    }
}

pub fn about(api: &PublishedApi) -> &str {
    let first = api.versions.first().and_then(|it| it.places.first());
    match (api.api.description.as_str(), first) {
        ("", Some(place)) => text_of(&place.description.info["description"]),
        (about, _) => about,
    }
}

pub fn card(api: &PublishedApi) -> Card {
    let newest = api.versions.first();
    let plain = markdown::plain(&markdown::read(about(api)));
    Card {
        name: api.api.name.clone(),
        title: api.title().to_owned(),
        summary: shortened(&plain),
        logo: logo_path(&format!("apis/{}", api.api.name), &api.api.logo),
        version: newest.map_or_else(String::new, |it| it.version.version.clone()),
        versions: api.versions.len(),
        category: api.api.category.clone(),
        labels: api.api.labels.clone(),
        security: newest.map_or_else(Vec::new, security),
        is_deprecated: newest.is_some_and(|it| it.version.line == LineState::Deprecated),
        operations: newest
            .and_then(|it| it.places.first())
            .map_or(0, |it| it.operations().count()),
    }
}

pub fn place_line(portals: &Arc<Portals>, place: &Deployment) -> DeploymentLine {
    let environment = &place.environment;
    DeploymentLine {
        publication: place.publication.id(),
        environment: environment.name.clone(),
        title: match environment.display_name.as_str() {
            "" => environment.name.clone(),
            title => title.to_owned(),
        },
        is_production: environment.kind == weir_apis::entities::EnvironmentKind::Production,
        base_url: place.base_url(&portals.gateway),
        base_path: place.base_path().to_owned(),
        deprecation: place
            .publication
            .deprecation
            .as_ref()
            .map(|it| DeprecationNotice {
                since: it.since,
                sunset: it.sunset,
                link: it.link.clone().filter(|it| it.starts_with("http")),
                successor: it.successor.clone(),
            }),
    }
}

/// Why a visitor cannot subscribe to a plan; `None`: it is possible.
pub fn refusal(plan: &Plan, visit: &PortalContext) -> Option<String> {
    let is_hidden = !plan.visible_to.is_empty() && !visit.viewer.is_in(&plan.visible_to);
    if plan.security == PlanSecurity::Keyless {
        Some("This plan needs no subscription: call without a key.".to_owned())
    } else if plan.state == PlanState::Deprecated {
        Some("This plan takes no new subscriptions.".to_owned())
    } else if is_hidden {
        Some(format!(
            "This plan is for members of {}.",
            plan.visible_to.join(", ")
        ))
    } else {
        None
    }
}

/// The operations of a plan as the revision that is published knows them: the plan names them as the draft does. Those
/// that only the draft has are left out, unless nothing would be left: a plan without any opens all.
fn operations_of(plan: &Plan, version: &Version, place: &Deployment) -> Vec<String> {
    let published = renames::as_of(plan, &version.renames, place.revision.number);
    let mut known = published.operations;
    known.retain(|it| place.operation(it).is_some());
    match known.is_empty() {
        true => plan.operations.clone(),
        false => known,
    }
}

pub fn plan_card(plan: &Plan, (version, place): (&Version, &Deployment), visit: &PortalContext) -> PlanCard {
    PlanCard {
        name: plan.name.clone(),
        title: match plan.display_name.as_str() {
            "" => plan.name.clone(),
            title => title.to_owned(),
        },
        description: markdown::read(&plan.description),
        security: word(&plan.security),
        limits: plan
            .limits
            .iter()
            .map(|it| PlanLimit {
                count: it.count,
                per: word(&it.per),
            })
            .collect(),
        operations: operations_of(plan, version, place),
        needs_approval: word(&plan.validation) == "manual",
        comment: word(&plan.comment),
        form: plan.form.clone(),
        conditions: markdown::read(&plan.conditions),
        conditions_revision: plan.conditions_revision,
        price: plan.price.clone(),
        refused: refusal(plan, visit),
    }
}
