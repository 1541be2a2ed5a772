//! The credentials of subscriptions. A key, a password or a secret is shown once, in the answer that made it. Of keys and
//! passwords the store holds hashes; secrets that calls are signed with have to be kept, in a store that is sealed.

use super::access::affected;
use super::clock::now;
use super::entities::{body_of, parse};
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use super::subscriptions::plan_of;
use super::trial_keys;
use super::visible::EntityScopes;
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller};
use crate::api::json_body::Json;
use crate::api::{Api, Problem};
use crate::last_use::last_uses;
use aws_lc_rs::rand;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::{
    Application, Credential, CredentialKind, Plan, PlanSecurity, Subscription, SubscriptionState, TokenKey,
};
use weir_apis::hash;

/// How long the old key stays good after a rotation, in seconds, if a plan says nothing.
const OVERLAP: u64 = 2 * 3600;
/// Characters of a key by which people recognise it.
const SHOWN: usize = 8;

pub fn random(bytes: usize) -> Result<String, Problem> {
    let mut bits = vec![0; bytes];
    rand::fill(&mut bits).map_err(|_| Problem::unreadable("the system yields no random bits"))?;
    Ok(HEXLOWER.encode(&bits))
}

/// Whether subscribers of a plan have credentials that are made here.
pub fn are_made(plan: &Plan) -> bool {
    matches!(
        plan.security,
        PlanSecurity::Key | PlanSecurity::Basic | PlanSecurity::Hmac
    )
}

fn blank(subscription: &str, plan: &Plan) -> Result<Credential, Problem> {
    Ok(Credential {
        id: random(8)?,
        subscription: subscription.to_owned(),
        expires: plan.key_lifetime.map(|it| now() + it),
        created: now(),
        ..Credential::default()
    })
}

/// A key, a password or a secret, and what is kept of it.
pub fn new_credential(
    subscription: &str,
    plan: &Plan,
    is_sealed: bool,
) -> Result<(String, Credential), Problem> {
    let key = random(32)?;
    let mut credential = blank(subscription, plan)?;
    credential.prefix = key.chars().take(SHOWN).collect();
    match plan.security {
        PlanSecurity::Hmac if !is_sealed => {
            let detail = "signatures need secrets, which this store would keep in plain text: start Weir with \
                --store-key";
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        PlanSecurity::Hmac => {
            (credential.kind, credential.name) = (CredentialKind::Hmac, credential.id.clone());
            credential.secret.clone_from(&key);
        }
        PlanSecurity::Basic => {
            (credential.kind, credential.name) = (CredentialKind::Basic, credential.id.clone());
            credential.hash = hash::of_bytes(key.as_bytes());
        }
        _ => credential.hash = hash::of_bytes(key.as_bytes()),
    }
    Ok((key, credential))
}

/// A credential as it is shown: without its hash and its secret.
pub fn redacted(credential: &Credential) -> Value {
    let mut value = json!(credential);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("hash");
        fields.remove("secret");
    }
    value
}

fn of_subscription(snapshot: &EntitySnapshot, id: &str) -> Result<Vec<Credential>, Problem> {
    let mut all: Vec<Credential> = snapshot.list(&format!("{PREFIX}credentials/"))?;
    all.retain(|it| it.subscription == id);
    Ok(all)
}

/// The credentials of an application for the plan of its subscription.
fn of_application(
    snapshot: &EntitySnapshot,
    subscription: &Subscription,
) -> Result<Vec<Credential>, Problem> {
    let application: Option<Application> =
        snapshot.find(&entity_snapshot::application_key(&subscription.application))?;
    // With a version go its plans; subscriptions that were closed before stay.
    let Ok(plan) = plan_of(snapshot, subscription) else {
        return Ok(Vec::new());
    };
    Ok(application.map_or_else(Vec::new, |it| {
        Credential::of_application(subscription, &plan, &it)
    }))
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let subscription: Subscription = snapshot.get(&entity_snapshot::subscription_key(&id))?;
    EntityScopes::of_subscription(&snapshot, &subscription)?.permit(&caller, Action::SubscriptionsRead)?;
    let mut known = of_subscription(&snapshot, &id)?;
    known.extend(of_application(&snapshot, &subscription)?);
    let ids: Vec<String> = known.iter().map(|it| it.id.clone()).collect();
    let used = last_uses(&api.options.operational, &ids, SystemTime::now()).await?;
    let one = |it: &Credential| {
        let mut item = redacted(it);
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
    /// For how many seconds the replaced one stays valid; left out: the plan's setting.
    overlap: Option<u64>,
    /// The public key to check tokens with: only for plans with `jwt`.
    jwt: Option<TokenKey>,
    /// Whether it is a trial key, which expires after 15 minutes.
    trial: bool,
}

/// A credential, and the key that is shown once if it has one.
fn made_for(
    snapshot: &EntitySnapshot,
    (subscription, plan): (&str, &Plan),
    jwt: Option<&TokenKey>,
    is_sealed: bool,
) -> Result<(Option<String>, Credential), Problem> {
    let refuse = |message: &str| {
        Err(Problem::step(
            "read",
            vec![("jwt".to_owned(), message.to_owned())],
        ))
    };
    if plan.is_of_application() {
        let what = match plan.security {
            PlanSecurity::Mtls => "'certificates'",
            _ => "'client_id'",
        };
        let detail = format!(
            "the plan '{}' identifies the application by its {what}: it has no other credentials",
            plan.name
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let Some(jwt) = jwt else {
        return match plan.security {
            PlanSecurity::Jwt => refuse("expected the public key that tokens are checked with"),
            _ => {
                new_credential(subscription, plan, is_sealed).map(|(key, credential)| (Some(key), credential))
            }
        };
    };
    if plan.security != PlanSecurity::Jwt {
        return refuse("the plan does not use tokens that the subscriber signs");
    }
    of_tokens(snapshot, subscription, plan, jwt).map(|it| (None, it))
}

/// The credential of a caller who signs tokens.
fn of_tokens(
    snapshot: &EntitySnapshot,
    subscription: &str,
    plan: &Plan,
    jwt: &TokenKey,
) -> Result<Credential, Problem> {
    // A shared secret would have to be kept.
    if jwt.algorithm.starts_with("HS") {
        let message = "expected an algorithm with a public key, such as RS256, ES256 or EdDSA";
        return Err(Problem::step(
            "read",
            vec![("jwt".to_owned(), message.to_owned())],
        ));
    }
    let mut credential = blank(subscription, plan)?;
    let mut jwt = jwt.clone();
    if jwt.issuer.is_empty() {
        jwt.issuer.clone_from(&credential.id);
    }
    let others: Vec<Credential> = snapshot.list(&format!("{PREFIX}credentials/"))?;
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
    credential.kind = CredentialKind::Jwt;
    credential.jwt = Some(jwt);
    Ok(credential)
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
        let message = "a trial key cannot replace another key or be a public key";
        return Err(Problem::step(
            "read",
            vec![("trial".to_owned(), message.to_owned())],
        ));
    }
    let is_sealed = api.store.is_sealed();
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let subscription: Subscription = snapshot.get(&entity_snapshot::subscription_key(&id))?;
            EntityScopes::of_subscription(snapshot, &subscription)?
                .permit(&caller, Action::SubscriptionsWrite)?;
            if matches!(
                subscription.state,
                SubscriptionState::Pending | SubscriptionState::Rejected | SubscriptionState::Closed
            ) {
                let detail = "there are keys for a subscription that is accepted only";
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            let plan = plan_of(snapshot, &subscription)?;
            let (key, mut credential) = made_for(snapshot, (&id, &plan), wanted.jwt.as_ref(), is_sealed)?;
            if wanted.trial {
                trial_keys::shorten(snapshot, (&subscription, &plan), &mut credential)?;
            }
            if let Some(old) = &wanted.replaces {
                let mut old: Credential = snapshot.get(&entity_snapshot::credential_key(old))?;
                if old.subscription != id || !old.is_good(now()) {
                    return Err(Problem::new(
                        StatusCode::CONFLICT,
                        format!("{} is not a good key of this subscription", old.id),
                    ));
                }
                let end = now() + wanted.overlap.or(plan.overlap).unwrap_or(OVERLAP);
                old.expires = Some(old.expires.map_or(end, |known| known.min(end)));
                snapshot.put(&entity_snapshot::credential_key(&old.id), &old)?;
                credential.replaces = Some(old.id);
            }
            snapshot.put(&entity_snapshot::credential_key(&credential.id), &credential)?;
            let mut answer = redacted(&credential);
            if let Some(key) = key {
                answer["key"] = key.into();
            }
            Ok(WriteEffects {
                note: match wanted.trial {
                    true => format!("a trial key of subscription {id}"),
                    false => format!("a key of subscription {id}"),
                },
                publications: affected(snapshot, &subscription.target())?,
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
    api.manage(&caller, &headers, |snapshot| {
        let subscription: Subscription = snapshot.get(&entity_snapshot::subscription_key(&id))?;
        EntityScopes::of_subscription(snapshot, &subscription)?
            .permit(&caller, Action::SubscriptionsWrite)?;
        let mut known: Credential = snapshot.get(&entity_snapshot::credential_key(&credential))?;
        if known.subscription != id {
            return Err(Problem::not_found(format_args!(
                "the credential {credential} of this subscription"
            )));
        }
        known.revoked.get_or_insert(now());
        snapshot.put(&entity_snapshot::credential_key(&credential), &known)?;
        Ok(WriteEffects {
            note: format!("revoke a key of subscription {id}"),
            publications: affected(snapshot, &subscription.target())?,
            answer: (),
        })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
