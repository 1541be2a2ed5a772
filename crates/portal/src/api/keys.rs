//! Subscriptions of applications and their keys. What changes is a call of Weir's own API, made for the developer from
//! inside. A key is in the answer that makes it, and nowhere else.

use super::app_shapes::{
    AnswerLine, IssuedKey, KeyLine, NewKey, NewState, NewSubscription, SubscriptionLine,
};
use super::authenticated_developer::AuthenticatedDeveloper;
use super::catalogue_entries::{refusal, word};
use super::operation::{Operation, Shared};
use super::versions::find_version;
use crate::people::TeamRole;
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::SystemTime;
use weir_apis::entities::{Application, Credential, Plan, Subscription, SubscriptionState};
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_control::last_use::last_uses;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions",
            (
                "subscribe",
                "Subscribes an application to a plan; a key is in the answer, and nowhere else",
            ),
            subscribe,
        )
        .personal()
        .body::<NewSubscription>()
        .status(StatusCode::CREATED)
        .answers::<SubscriptionLine>(),
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/state",
            ("setSubscriptionState", "Stops, starts or closes a subscription"),
            set_state,
        )
        .personal()
        .body::<NewState>()
        .answers::<SubscriptionLine>(),
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/keys",
            ("addKey", "Creates a key, or replaces one; it is shown only once"),
            add_key,
        )
        .personal()
        .body::<NewKey>()
        .status(StatusCode::CREATED)
        .answers::<IssuedKey>(),
        Operation::delete(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/keys/{key}",
            ("revokeKey", "Revokes a key immediately"),
            revoke_key,
        )
        .personal(),
    ];
    Operation::tagged("Applications", operations)
}

const MAX_SUBSCRIPTIONS: usize = 100;

/// Keys of a subscription that are good.
const MAX_KEYS: usize = 20;

/// The longest overlap of a rotation, in seconds.
const MAX_OVERLAP: u64 = 30 * 86_400;

/// The subscriptions of an application, the latest first.
pub fn subscriptions(portals: &Portals, application: &str) -> Vec<Subscription> {
    let mut all: Vec<Subscription> = portals.documents.list("apis/subscriptions/");
    all.retain(|it| it.application == application);
    all.sort_by_key(|it| std::cmp::Reverse(it.created));
    all
}

/// The plan of a subscription.
pub fn plan_of(portals: &Portals, subscription: &Subscription) -> Option<Plan> {
    let plan = &subscription.plan;
    let key = match subscription.product.as_str() {
        "" => format!(
            "apis/plans/{}/{plan}",
            subscription.publication.rsplit_once('/')?.0
        ),
        product => format!("apis/product-plans/{product}/{plan}"),
    };
    portals.documents.get(&key)
}

/// The title of a subscription's plan.
pub fn plan_title(plan: Option<Plan>, subscription: &Subscription) -> String {
    let title = plan.map(|it| it.display_name).filter(|it| !it.is_empty());
    title.unwrap_or_else(|| subscription.plan.clone())
}

pub fn subscription_line(portals: &Portals, subscription: &Subscription) -> SubscriptionLine {
    let mut keys: Vec<Credential> = portals.documents.list("apis/credentials/");
    let now = weir_model::unix_time::seconds(SystemTime::now());
    keys.retain(|it| it.subscription == subscription.id && (!it.trial || it.is_good(now)));
    keys.sort_by_key(|it| std::cmp::Reverse(it.created));
    let plan = plan_of(portals, subscription);
    let credentials = plan.as_ref().map_or_else(Vec::new, |plan| {
        application_credentials(portals, subscription, plan)
    });
    SubscriptionLine {
        security: plan.as_ref().map_or_else(String::new, |it| word(&it.security)),
        known_by: credentials,
        request: subscription.request.clone(),
        answers: answers(plan.as_ref(), subscription),
        id: subscription.id.clone(),
        publication: subscription.publication.clone(),
        product: subscription.product.clone(),
        plan: subscription.plan.clone(),
        plan_title: plan_title(plan, subscription),
        state: word(&subscription.state),
        stopped: subscription.stopped || subscription.state == SubscriptionState::Stopped,
        reason: subscription.reason.clone(),
        created: subscription.created,
        ends: subscription.ends,
        keys: keys
            .into_iter()
            .map(|it| KeyLine {
                name: it.jwt.map_or(it.name, |jwt| jwt.issuer),
                id: it.id,
                prefix: it.prefix,
                created: it.created,
                expires: it.expires,
                is_trial: it.trial,
                revoked: it.revoked,
                last_used: None,
            })
            .collect(),
        key: None,
    }
}

/// What the application brings to a plan that knows it by that.
fn application_credentials(portals: &Portals, subscription: &Subscription, plan: &Plan) -> Vec<String> {
    let application: Option<Application> = portals
        .documents
        .get(&format!("apis/applications/{}", subscription.application));
    let brought = application.map_or_else(Vec::new, |it| Credential::of_application(subscription, plan, &it));
    brought.into_iter().map(|it| it.name).collect()
}

/// What was answered to the questions of a plan. An answer to a question that is asked no longer goes by the question's name.
fn answers(plan: Option<&Plan>, subscription: &Subscription) -> Vec<AnswerLine> {
    let form = plan.and_then(|it| it.form.as_ref());
    let line = |(name, answer): (&String, &Value)| AnswerLine {
        question: form
            .and_then(|it| it["properties"][name]["title"].as_str())
            .unwrap_or(name)
            .to_owned(),
        answer: match answer {
            Value::String(text) => text.clone(),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            other => other.to_string(),
        },
    };
    subscription.answers.iter().map(line).collect()
}

/// Adds when the keys of subscriptions were used last.
pub async fn add_last_uses(portals: &Portals, lines: &mut [SubscriptionLine]) -> Result<(), Problem> {
    let keys = lines.iter().flat_map(|it| &it.keys);
    let ids: Vec<String> = keys.map(|it| it.id.clone()).collect();
    let used = last_uses(&portals.people.store, &ids, SystemTime::now()).await?;
    for key in lines.iter_mut().flat_map(|it| &mut it.keys) {
        key.last_used = used.get(&key.id).copied();
    }
    Ok(())
}

async fn subscribe(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
    Json(wanted): Json<NewSubscription>,
) -> Result<(StatusCode, Json<SubscriptionLine>), Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Member)?;
    let parts: Vec<&str> = wanted.publication.split('/').collect();
    let [api, version, environment] = parts[..] else {
        return Err(Problem::bad("expected a publication as API/VERSION/ENVIRONMENT"));
    };
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, &visit, (api, version))?;
    let is_shown = found.places.iter().any(|it| it.environment.name == environment);
    let plan = found.plans.iter().find(|it| it.name == wanted.plan);
    let plan = plan
        .filter(|_| is_shown)
        .ok_or_else(|| Problem::not_found(format_args!("the plan '{}'", wanted.plan)))?;
    if let Some(reason) = refusal(plan, &visit) {
        return Err(Problem::forbidden(reason));
    }
    if subscriptions(&portals, &name).len() >= MAX_SUBSCRIPTIONS {
        let detail = format!("the application has {MAX_SUBSCRIPTIONS} subscriptions, the maximum");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let body = json!({
        "application": name,
        "publication": wanted.publication,
        "plan": wanted.plan,
        "request": wanted.request.chars().take(2_000).collect::<String>(),
        "answers": wanted.answers,
        "conditions_revision": wanted.conditions_revision,
    });
    let made = authenticated
        .write(&portals, (Method::POST, "/api/v1/subscriptions"), Some(&body))
        .await?;
    let id = made["id"].as_str().unwrap_or_default();
    let known = find(&portals, &name, id)?;
    let mut line = subscription_line(&portals, &known);
    let text = |pointer: &str| made.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    line.key = text("/credential/id")
        .zip(text("/credential/key"))
        .map(|(id, key)| IssuedKey {
            id,
            key,
            name: text("/credential/name").unwrap_or_default(),
        });
    Ok((StatusCode::CREATED, Json(line)))
}

/// A subscription of an application.
pub fn find(portals: &Portals, application: &str, id: &str) -> Result<Subscription, Problem> {
    let found: Option<Subscription> = portals.documents.get(&format!("apis/subscriptions/{id}"));
    let found = found.filter(|it| it.application == application);
    found.ok_or_else(|| Problem::not_found("this subscription"))
}

async fn set_state(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, id)): Path<(String, String)>,
    Json(wanted): Json<NewState>,
) -> Result<Json<SubscriptionLine>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Member)?;
    find(&portals, &name, &id)?;
    let body = json!({ "state": wanted.state, "side": "consumer" });
    let path = format!("/api/v1/subscriptions/{id}/state");
    authenticated
        .write(&portals, (Method::POST, &path), Some(&body))
        .await?;
    Ok(Json(subscription_line(&portals, &find(&portals, &name, &id)?)))
}

async fn add_key(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, id)): Path<(String, String)>,
    Json(wanted): Json<NewKey>,
) -> Result<(StatusCode, Json<IssuedKey>), Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Member)?;
    let known = find(&portals, &name, &id)?;
    if wanted.overlap.is_some_and(|it| it > MAX_OVERLAP) {
        let message = format!("expected at most {MAX_OVERLAP} seconds (30 days)");
        return Err(Problem::step("check", vec![("overlap".to_owned(), message)]));
    }
    let now = weir_model::unix_time::seconds(SystemTime::now());
    let is_good =
        |it: &&KeyLine| !it.is_trial && it.revoked.is_none() && it.expires.is_none_or(|end| now < end);
    let good = subscription_line(&portals, &known)
        .keys
        .iter()
        .filter(is_good)
        .count();
    if good >= MAX_KEYS {
        let detail = format!("there are already {MAX_KEYS} valid keys, the maximum: revoke one first");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let body = json!({ "replaces": wanted.replaces, "overlap": wanted.overlap, "jwt": wanted.jwt });
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let made = authenticated
        .write(&portals, (Method::POST, &path), Some(&body))
        .await?;
    let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
    let issuer = made["jwt"]["issuer"].as_str();
    let issued = IssuedKey {
        id: text("id"),
        key: text("key"),
        name: issuer.map_or_else(|| text("name"), str::to_owned),
    };
    Ok((StatusCode::CREATED, Json(issued)))
}

async fn revoke_key(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, id, key)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Member)?;
    let known = find(&portals, &name, &id)?;
    if !subscription_line(&portals, &known)
        .keys
        .iter()
        .any(|it| it.id == key)
    {
        return Err(Problem::not_found("this key"));
    }
    let path = format!("/api/v1/subscriptions/{id}/credentials/{key}");
    authenticated
        .write(&portals, (Method::DELETE, &path), None)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
