//! Trial keys: for those who try a call and whose own key is kept as a hash. With one click they get a key of one of their
//! subscriptions that ends by itself after a quarter of an hour.

use super::app_shapes::{TrialKey, TrialSubscription, TrialSubscriptions};
use super::apps::title;
use super::authenticated_developer::AuthenticatedDeveloper;
use super::keys::{find, plan_of, plan_title, subscriptions};
use super::operation::{Operation, Shared};
use crate::people::TeamRole;
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::SystemTime;
use weir_apis::entities::{Application, PlanSecurity, Product, Subscription, SubscriptionState};
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/trial-subscriptions",
            (
                "listTrialSubscriptions",
                "Lists your subscriptions that can have a trial key for a publication",
            ),
            list,
        )
        .personal()
        .query::<TrialQuery>()
        .answers::<TrialSubscriptions>(),
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/trial-keys",
            (
                "createTrialKey",
                "Creates a trial key; it is shown only once and expires after 15 minutes",
            ),
            make,
        )
        .personal()
        .status(StatusCode::CREATED)
        .answers::<TrialKey>(),
    ];
    Operation::tagged("Try", operations)
}

/// Trial keys that a developer may make in a minute.
const MOST: u32 = 10;

/// A trial.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct TrialQuery {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    publication: String,
}

/// The publications that a subscription opens.
fn publications(portals: &Portals, subscription: &Subscription) -> Vec<String> {
    if subscription.product.is_empty() {
        return vec![subscription.publication.clone()];
    }
    let product: Option<Product> = portals
        .documents
        .get(&format!("apis/products/{}", subscription.product));
    product.map_or_else(Vec::new, |it| it.publications.into_keys().collect())
}

/// The applications with which a developer may do something, each with its subscriptions.
fn subscribed(
    portals: &Portals,
    authenticated: &AuthenticatedDeveloper,
    least: TeamRole,
) -> Vec<(Application, Vec<Subscription>)> {
    let mut all: Vec<Application> = portals.documents.list("apis/applications/");
    all.retain(|it| authenticated.role(it).is_some_and(|role| role >= least));
    let with_subscriptions = all.into_iter().map(|it| {
        let subscriptions = subscriptions(portals, &it.name);
        (it, subscriptions)
    });
    with_subscriptions.collect()
}

/// The APIs that a developer's applications are subscribed to.
pub fn own_apis(portals: &Portals, authenticated: &AuthenticatedDeveloper) -> BTreeSet<String> {
    let is_over =
        |it: &Subscription| matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected);
    let own = subscribed(portals, authenticated, TeamRole::Viewer);
    let live = own.iter().flat_map(|(_, all)| all).filter(|it| !is_over(it));
    let opened = live.flat_map(|it| publications(portals, it));
    opened
        .filter_map(|it| Some(it.split_once('/')?.0.to_owned()))
        .collect()
}

async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Query(wanted): Query<TrialQuery>,
) -> Result<Json<TrialSubscriptions>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    let mut items = Vec::new();
    for (application, all) in subscribed(&portals, &authenticated, TeamRole::Member) {
        for it in all {
            let plan = plan_of(&portals, &it);
            let is_by_key = plan.as_ref().is_some_and(|it| it.security == PlanSecurity::Key);
            let is_accepted = it.state == SubscriptionState::Accepted;
            if is_by_key && is_accepted && publications(&portals, &it).contains(&wanted.publication) {
                items.push(TrialSubscription {
                    app: application.name.clone(),
                    app_title: title(&application).to_owned(),
                    plan_title: plan_title(plan, &it),
                    subscription: it.id,
                });
            }
        }
    }
    items.sort_by_cached_key(|it| it.app_title.to_lowercase());
    Ok(Json(TrialSubscriptions { items }))
}

async fn make(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, id)): Path<(String, String)>,
) -> Result<(StatusCode, Json<TrialKey>), Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Member)?;
    find(&portals, &name, &id)?;
    let now = seconds(SystemTime::now());
    let turn = format!("trial keys of {}", authenticated.developer.id);
    if let Err(wait) = portals.tries.take(&turn, MOST, now) {
        let detail =
            format!("at most {MOST} trial keys can be created per minute; try again in {wait} seconds");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let wanted = json!({ "trial": true });
    let made = authenticated
        .write(&portals, (Method::POST, &path), Some(&wanted))
        .await?;
    let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
    let trial_key = TrialKey {
        id: text("id"),
        key: text("key"),
        expires: made["expires"].as_u64().unwrap_or(now),
    };
    Ok((StatusCode::CREATED, Json(trial_key)))
}
