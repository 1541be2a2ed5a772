//! Subscriptions: applications ask for them, and their state changes. Their credentials are in a file of their own.

use super::access::affected;
use super::clock::now;
use super::credentials;
use super::entities::{body_of, parse};
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use super::visible::{EntityScopes, permit_application};
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller};
use crate::api::json_body::{Json, JsonBody};
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use weir_apis::entities::{
    Application, Plan, Product, ProductState, Subscription, SubscriptionState, Validation,
};
use weir_apis::plans;
use weir_apis::states::{self, SubscriptionParty};

/// A wish to subscribe.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSubscription {
    /// The application that subscribes.
    application: String,
    /// The publication, as `API/VERSION/ENVIRONMENT`; either this or `product`.
    #[serde(default)]
    publication: String,
    /// The product; either this or `publication`.
    #[serde(default)]
    product: String,
    /// The plan's name.
    plan: String,
    /// The subscriber's reason, for plans that require one.
    #[serde(default)]
    request: String,
    /// Answers to the plan's questions.
    #[serde(default)]
    answers: Map<String, Value>,
    /// The revision of the plan's conditions that the subscriber agrees to; 0 for a plan without conditions.
    #[serde(default)]
    conditions_revision: u32,
    /// When it begins, in seconds since 1970; left out: immediately.
    #[serde(default)]
    starts: Option<u64>,
    /// When it ends, in seconds since 1970; left out: never.
    #[serde(default)]
    ends: Option<u64>,
}

pub(super) fn plan_of(snapshot: &EntitySnapshot, subscription: &Subscription) -> Result<Plan, Problem> {
    if !subscription.product.is_empty() {
        return snapshot.get(&entity_snapshot::product_plan_key(
            &subscription.product,
            &subscription.plan,
        ));
    }
    let mut parts = subscription.publication.split('/');
    let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    snapshot.get(&entity_snapshot::plan_key(name, version, &subscription.plan))
}

/// Whether there is what an application wants to subscribe to, and it is offered.
fn check_target(snapshot: &EntitySnapshot, subscription: &Subscription) -> Result<(), Problem> {
    match (subscription.publication.as_str(), subscription.product.as_str()) {
        ("", "") => Err(Problem::bad("expected either 'publication' or 'product'")),
        (publication, "") => snapshot.publication(publication).map(|_| ()),
        ("", product) => {
            let known: Product = snapshot.get(&entity_snapshot::product_key(product))?;
            match known.state {
                ProductState::Published => Ok(()),
                ProductState::Unpublished => {
                    let detail = format!("the product '{product}' is not published");
                    Err(Problem::new(StatusCode::CONFLICT, detail))
                }
            }
        }
        _ => Err(Problem::bad("expected either 'publication' or 'product'")),
    }
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    super::entities::listed(&api, &caller, "subscriptions").await
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    super::entities::read_entity(&api, &caller, &entity_snapshot::subscription_key(&id)).await
}

/// Whether a subscription can begin and end at these times.
fn check_times(starts: Option<u64>, ends: Option<u64>) -> Result<(), Problem> {
    let refuse = |message: &str| Problem::step("read", vec![("ends".to_owned(), message.to_owned())]);
    match ends {
        Some(ends) if ends <= now() => Err(refuse("expected a time that lies ahead")),
        Some(ends) if starts.is_some_and(|starts| ends <= starts) => {
            Err(refuse("expected a time after 'starts'"))
        }
        _ => Ok(()),
    }
}

/// There is a subscription of the same application to the same plan.
fn again(same: &Subscription) -> Problem {
    let mut detail = format!(
        "{} has subscribed to this plan already: {}",
        same.application, same.id
    );
    if same.state == SubscriptionState::Expired {
        detail
            .push_str(", which has ended: a new end in 'ends' opens it again, with 'accepted' as its state");
    }
    Problem::new(StatusCode::CONFLICT, detail)
}

pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let wanted: NewSubscription = parse(&body_of(&body)?)?;
    check_times(wanted.starts, wanted.ends)?;
    let id = credentials::random(8)?;
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let application: Application =
                snapshot.get(&entity_snapshot::application_key(&wanted.application))?;
            let mut subscription = Subscription {
                id: id.clone(),
                application: wanted.application.clone(),
                publication: wanted.publication.clone(),
                product: wanted.product.clone(),
                plan: wanted.plan.clone(),
                starts: wanted.starts,
                ends: wanted.ends,
                request: wanted.request.clone(),
                answers: wanted.answers.clone(),
                conditions_revision: wanted.conditions_revision,
                created: now(),
                ..Subscription::default()
            };
            check_target(snapshot, &subscription)?;
            EntityScopes::of_subscription(snapshot, &subscription)?
                .permit(&caller, Action::SubscriptionsWrite)?;
            permit_application(snapshot, &caller, &application)?;
            let plan = plan_of(snapshot, &subscription)?;
            states::can_subscribe(&plan, &application, wanted.conditions_revision)?;
            plans::check_answers(&plan, &wanted.request, &wanted.answers)?;
            let known: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
            let is_over = |it: &Subscription| {
                matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected)
            };
            let same = known.iter().find(|it| {
                it.application == wanted.application
                    && it.target() == subscription.target()
                    && it.plan == wanted.plan
                    && !is_over(it)
            });
            if let Some(same) = same {
                return Err(again(same));
            }
            let mut answer = Value::Null;
            if plan.validation == Validation::Auto {
                subscription.state = SubscriptionState::Accepted;
            }
            if plan.validation == Validation::Auto && credentials::are_made(&plan) {
                let (key, credential) = credentials::new_credential(&id, &plan, api.store.is_sealed())?;
                snapshot.put(&entity_snapshot::credential_key(&credential.id), &credential)?;
                answer = credentials::redacted(&credential);
                answer["key"] = key.into();
            }
            snapshot.put(&entity_snapshot::subscription_key(&id), &subscription)?;
            let mut whole = json!(subscription);
            if !answer.is_null() {
                whole["credential"] = answer;
            }
            Ok(WriteEffects {
                note: format!(
                    "{} subscribes to {} of {}",
                    wanted.application,
                    wanted.plan,
                    subscription.target()
                ),
                publications: affected(snapshot, &subscription.target())?,
                answer: whole,
            })
        })
        .await?;
    Ok((StatusCode::CREATED, Json(written.answer)).into_response())
}

/// The change of a subscription's state.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SubscriptionStateChange")]
pub struct NewState {
    /// `accepted`, `rejected`, `paused`, `stopped` or `closed`.
    state: String,
    /// Why. A rejection needs it.
    #[serde(default)]
    reason: String,
    /// Whether the consumer asks: `consumer`; left out: the provider.
    #[serde(default)]
    side: Option<String>,
    /// A new end, in seconds since 1970; it opens a subscription again that has ended.
    #[serde(default)]
    ends: Option<u64>,
}

pub async fn state(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<NewState>,
) -> Result<Json<Value>, Problem> {
    let to: SubscriptionState = parse(&Value::from(wanted.state.as_str()))?;
    let side = match wanted.side.as_deref() {
        None | Some("provider") => SubscriptionParty::Provider,
        Some("consumer") => SubscriptionParty::Consumer,
        Some(other) => {
            return Err(Problem::bad(format!(
                "expected 'provider' or 'consumer' in 'side', found '{other}'"
            )));
        }
    };
    if to == SubscriptionState::Rejected && wanted.reason.trim().is_empty() {
        let message = "expected why: the applicant reads it".to_owned();
        return Err(Problem::step("read", vec![("reason".to_owned(), message)]));
    }
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let mut subscription: Subscription = snapshot.get(&entity_snapshot::subscription_key(&id))?;
            if wanted.ends.is_some() {
                check_times(subscription.starts, wanted.ends)?;
            }
            EntityScopes::of_subscription(snapshot, &subscription)?
                .permit(&caller, Action::SubscriptionsWrite)?;
            let before = subscription.state;
            states::change_subscription(&mut subscription, to, side)?;
            // What the provider has paused stays so, for the provider's reason, when the consumer starts it again.
            if subscription.state != before {
                subscription.reason.clone_from(&wanted.reason);
                subscription.processed_by = caller.name();
            }
            if wanted.ends.is_some() {
                subscription.ends = wanted.ends;
                subscription.noticed = None;
            }
            if before == SubscriptionState::Expired && to == SubscriptionState::Accepted {
                // Without another end, it would end again at once.
                check_times(None, subscription.ends)?;
            }
            snapshot.put(&entity_snapshot::subscription_key(&id), &subscription)?;
            Ok(WriteEffects {
                note: format!("subscription {id}: {}", wanted.state),
                publications: affected(snapshot, &subscription.target())?,
                answer: subscription,
            })
        })
        .await?;
    Ok(Json(json!(written.answer)))
}

/// The change of a subscription's end.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SubscriptionEndChange")]
pub struct NewEnd {
    /// When it ends, in seconds since 1970; `null`: never.
    #[serde(deserialize_with = "Option::deserialize")]
    ends: Option<u64>,
}

pub async fn set_end(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<NewEnd>,
) -> Result<Json<Value>, Problem> {
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let key = entity_snapshot::subscription_key(&id);
            let mut subscription: Subscription = snapshot.get(&key)?;
            EntityScopes::of_subscription(snapshot, &subscription)?
                .permit(&caller, Action::SubscriptionsWrite)?;
            let refuse = |detail: &str| Err(Problem::new(StatusCode::CONFLICT, detail));
            match subscription.state {
                SubscriptionState::Expired => {
                    return refuse(
                        "it has ended: a new end in 'ends' opens it again, with 'accepted' as its state",
                    );
                }
                SubscriptionState::Closed | SubscriptionState::Rejected => {
                    return refuse("it has ended: subscribe again");
                }
                _ => check_times(subscription.starts, wanted.ends)?,
            }
            if subscription.ends == wanted.ends {
                return Ok(WriteEffects::quiet("", subscription));
            }
            subscription.ends = wanted.ends;
            subscription.noticed = None;
            snapshot.put(&key, &subscription)?;
            Ok(WriteEffects {
                note: match wanted.ends {
                    Some(ends) => format!("subscription {id}: ends at {ends}"),
                    None => format!("subscription {id}: has no end"),
                },
                publications: affected(snapshot, &subscription.target())?,
                answer: subscription,
            })
        })
        .await?;
    Ok(Json(json!(written.answer)))
}
