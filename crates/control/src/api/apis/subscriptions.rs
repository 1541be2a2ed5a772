//! Subscriptions and their keys. A key is shown once, in the answer that made it; the store holds its hash.

use super::access::affected;
use super::commit::{WriteEffects, now};
use super::entities::{body_of, parse};
use super::library::{self, Library, PREFIX};
use super::trial_keys;
use crate::access::Caller;
use crate::api::json_body::JsonBody;
use crate::api::{Api, Problem};
use crate::last_use::last_uses;
use aws_lc_rs::rand;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::{
    Application, Credential, CredentialKind, Plan, PlanSecurity, Product, ProductState, Subscription,
    SubscriptionState, TokenKey, Validation,
};
use weir_apis::hash;
use weir_apis::states::{self, SubscriptionParty};

/// How long the old key stays good after a rotation, in seconds, where a plan says nothing.
const OVERLAP: u64 = 2 * 3600;
/// Characters of a key by which people recognise it.
const SHOWN: usize = 8;

/// A wish to subscribe.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSubscription {
    application: String,
    #[serde(default)]
    publication: String,
    #[serde(default)]
    product: String,
    plan: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    conditions_revision: u32,
    #[serde(default)]
    starts: Option<u64>,
    #[serde(default)]
    ends: Option<u64>,
}

fn random(bytes: usize) -> Result<String, Problem> {
    let mut bits = vec![0; bytes];
    rand::fill(&mut bits).map_err(|_| Problem::unreadable("the system yields no random bits"))?;
    Ok(HEXLOWER.encode(&bits))
}

/// A key, and what is kept of it.
fn made(subscription: &str, plan: &Plan) -> Result<(String, Credential), Problem> {
    let key = random(32)?;
    let credential = Credential {
        id: random(8)?,
        subscription: subscription.to_owned(),
        prefix: key.chars().take(SHOWN).collect(),
        hash: hash::of_bytes(key.as_bytes()),
        expires: plan.key_lifetime.map(|it| now() + it),
        created: now(),
        ..Credential::default()
    };
    Ok((key, credential))
}

/// A credential as it is shown: without its hash.
fn shown(credential: &Credential) -> Value {
    let mut value = json!(credential);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("hash");
    }
    value
}

fn plan_of(library: &Library, subscription: &Subscription) -> Result<Plan, Problem> {
    if !subscription.product.is_empty() {
        return library.get(&library::product_plan_key(
            &subscription.product,
            &subscription.plan,
        ));
    }
    let mut parts = subscription.publication.split('/');
    let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    library.get(&library::plan_key(name, version, &subscription.plan))
}

/// Whether there is what an application wants to subscribe to, and it is offered.
fn check_target(library: &Library, subscription: &Subscription) -> Result<(), Problem> {
    match (subscription.publication.as_str(), subscription.product.as_str()) {
        (publication, "") => library.publication(publication).map(|_| ()),
        ("", product) => {
            let known: Product = library.get(&library::product_key(product))?;
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

pub async fn list(State(api): State<Arc<Api>>) -> Result<Json<Value>, Problem> {
    super::entities::listed(&api, "subscriptions").await
}

pub async fn read(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Response, Problem> {
    super::entities::shown(&api, &library::subscription_key(&id)).await
}

pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let wanted: NewSubscription = parse(&body_of(&body)?)?;
    let id = random(8)?;
    let written = api
        .manage(&caller, &headers, |library| {
            let application: Application = library.get(&library::application_key(&wanted.application))?;
            let mut subscription = Subscription {
                id: id.clone(),
                application: wanted.application.clone(),
                publication: wanted.publication.clone(),
                product: wanted.product.clone(),
                plan: wanted.plan.clone(),
                starts: wanted.starts,
                ends: wanted.ends,
                request: wanted.request.clone(),
                conditions_revision: wanted.conditions_revision,
                created: now(),
                ..Subscription::default()
            };
            check_target(library, &subscription)?;
            let plan = plan_of(library, &subscription)?;
            states::can_subscribe(&plan, &application, wanted.conditions_revision)?;
            let known: Vec<Subscription> = library.list(&format!("{PREFIX}subscriptions/"))?;
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
                let detail = format!(
                    "{} has subscribed to this plan already: {}",
                    wanted.application, same.id
                );
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            let mut answer = Value::Null;
            if plan.validation == Validation::Auto {
                subscription.state = SubscriptionState::Accepted;
            }
            if plan.validation == Validation::Auto && plan.security == PlanSecurity::Key {
                let (key, credential) = made(&id, &plan)?;
                library.put(&library::credential_key(&credential.id), &credential)?;
                answer = shown(&credential);
                answer["key"] = key.into();
            }
            library.put(&library::subscription_key(&id), &subscription)?;
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
                publications: affected(library, &subscription.target())?,
                answer: whole,
            })
        })
        .await?;
    Ok((StatusCode::CREATED, Json(written.answer)).into_response())
}

/// The change of a subscription's state.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewState {
    /// `accepted`, `rejected`, `paused`, `stopped` or `closed`.
    state: String,
    /// Why.
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
    let written = api
        .manage(&caller, &headers, |library| {
            let mut subscription: Subscription = library.get(&library::subscription_key(&id))?;
            subscription.state = states::subscription(subscription.state, to, side)?;
            subscription.reason.clone_from(&wanted.reason);
            subscription.processed_by = caller.name();
            if wanted.ends.is_some() {
                subscription.ends = wanted.ends;
                subscription.noticed = None;
            }
            library.put(&library::subscription_key(&id), &subscription)?;
            Ok(WriteEffects {
                note: format!("subscription {id}: {}", wanted.state),
                publications: affected(library, &subscription.target())?,
                answer: subscription,
            })
        })
        .await?;
    Ok(Json(json!(written.answer)))
}

fn of_subscription(library: &Library, id: &str) -> Result<Vec<Credential>, Problem> {
    let mut all: Vec<Credential> = library.list(&format!("{PREFIX}credentials/"))?;
    all.retain(|it| it.subscription == id);
    Ok(all)
}

pub async fn credentials(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let library = api.library().await?;
    let _there: Subscription = library.get(&library::subscription_key(&id))?;
    let known = of_subscription(&library, &id)?;
    let ids: Vec<String> = known.iter().map(|it| it.id.clone()).collect();
    let used = last_uses(&api.options.operational, &ids, SystemTime::now()).await?;
    let one = |it: &Credential| {
        let mut item = shown(it);
        if let Some(day) = used.get(&it.id) {
            item["last_used"] = (*day).into();
        }
        item
    };
    let items: Vec<Value> = known.iter().map(one).collect();
    Ok(Json(json!({ "items": items })))
}

/// A further key, or one that takes the place of another.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewCredential {
    /// The credential that it replaces.
    replaces: Option<String>,
    /// For how many seconds the one that it replaces stays good; left out: as the plan says.
    overlap: Option<u64>,
    /// The public key with which tokens are checked: for plans with `jwt`, and for these only.
    jwt: Option<TokenKey>,
    /// Whether it is a key to try calls with, which ends by itself after 15 minutes.
    trial: bool,
}

/// A credential, and the key that is shown once if it has one.
fn made_for(
    library: &Library,
    (subscription, plan): (&str, &Plan),
    jwt: Option<&TokenKey>,
) -> Result<(Option<String>, Credential), Problem> {
    let refuse = |message: &str| {
        Err(Problem::step(
            "read",
            vec![("jwt".to_owned(), message.to_owned())],
        ))
    };
    let Some(jwt) = jwt else {
        return match plan.security {
            PlanSecurity::Jwt => refuse("expected the public key that tokens are checked with"),
            _ => made(subscription, plan).map(|(key, credential)| (Some(key), credential)),
        };
    };
    if plan.security != PlanSecurity::Jwt {
        return refuse("the plan asks for keys, not for tokens");
    }
    // A shared secret would have to be kept.
    if jwt.algorithm.starts_with("HS") {
        return refuse("expected an algorithm with a public key, such as RS256, ES256 or EdDSA");
    }
    let (_, mut credential) = made(subscription, plan)?;
    let mut jwt = jwt.clone();
    if jwt.issuer.is_empty() {
        jwt.issuer.clone_from(&credential.id);
    }
    let others: Vec<Credential> = library.list(&format!("{PREFIX}credentials/"))?;
    let has_it = |it: &&Credential| {
        it.is_good(now()) && it.jwt.as_ref().is_some_and(|known| known.issuer == jwt.issuer)
    };
    if others.iter().any(|it| has_it(&it)) {
        let detail = format!(
            "another credential has the issuer '{}': choose another one",
            jwt.issuer
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    (credential.kind, credential.prefix, credential.hash) =
        (CredentialKind::Jwt, String::new(), String::new());
    credential.jwt = Some(jwt);
    Ok((None, credential))
}

pub async fn add(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let wanted: NewCredential = parse(&body_of(&body)?)?;
    if wanted.trial && (wanted.replaces.is_some() || wanted.jwt.is_some()) {
        let message = "a trial key replaces none, and is no public key";
        return Err(Problem::step(
            "read",
            vec![("trial".to_owned(), message.to_owned())],
        ));
    }
    let written = api
        .manage(&caller, &headers, |library| {
            let subscription: Subscription = library.get(&library::subscription_key(&id))?;
            if matches!(
                subscription.state,
                SubscriptionState::Pending | SubscriptionState::Rejected | SubscriptionState::Closed
            ) {
                let detail = "there are keys for a subscription that is accepted only";
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            let plan = plan_of(library, &subscription)?;
            let (key, mut credential) = made_for(library, (&id, &plan), wanted.jwt.as_ref())?;
            if wanted.trial {
                trial_keys::shorten(library, (&subscription, &plan), &mut credential)?;
            }
            if let Some(old) = &wanted.replaces {
                let mut old: Credential = library.get(&library::credential_key(old))?;
                if old.subscription != id || !old.is_good(now()) {
                    return Err(Problem::new(
                        StatusCode::CONFLICT,
                        format!("{} is not a good key of this subscription", old.id),
                    ));
                }
                let end = now() + wanted.overlap.or(plan.overlap).unwrap_or(OVERLAP);
                old.expires = Some(old.expires.map_or(end, |known| known.min(end)));
                library.put(&library::credential_key(&old.id), &old)?;
                credential.replaces = Some(old.id);
            }
            library.put(&library::credential_key(&credential.id), &credential)?;
            let mut answer = shown(&credential);
            if let Some(key) = key {
                answer["key"] = key.into();
            }
            Ok(WriteEffects {
                note: match wanted.trial {
                    true => format!("a trial key of subscription {id}"),
                    false => format!("a key of subscription {id}"),
                },
                publications: affected(library, &subscription.target())?,
                answer,
            })
        })
        .await?;
    Ok((StatusCode::CREATED, Json(written.answer)).into_response())
}

pub async fn revoke(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((id, credential)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    api.manage(&caller, &headers, |library| {
        let subscription: Subscription = library.get(&library::subscription_key(&id))?;
        let mut known: Credential = library.get(&library::credential_key(&credential))?;
        if known.subscription != id {
            return Err(Problem::not_found(format_args!(
                "the credential {credential} of this subscription"
            )));
        }
        known.revoked.get_or_insert(now());
        library.put(&library::credential_key(&credential), &known)?;
        Ok(WriteEffects {
            note: format!("revoke a key of subscription {id}"),
            publications: affected(library, &subscription.target())?,
            answer: (),
        })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
