//! Hooks, which get events, and deliveries: what became of mails and webhooks.

use super::entities::{answered, body_of, check_name, parse};
use super::entity_snapshot::{EntitySnapshot, PREFIX};
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use crate::api::precondition::tagged;
use crate::api::shapes::List;
use crate::api::{Api, Problem};
use crate::outbox::{Attempt, Delivery, DeliveryState, SECRET_PREFIX};
use crate::webhook_addresses::without_path;
use aws_lc_rs::rand;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::Hook;
use weir_apis::events::kinds;

/// Deliveries that are listed, unless more are asked for.
const PAGE: usize = 100;

fn hook_key(name: &str) -> String {
    format!("{PREFIX}hooks/{name}")
}

/// A hook as it is shown: without its secret.
pub fn redacted(hook: &Hook) -> Value {
    let mut value = json!(hook);
    value["secret"] = (!hook.secret.is_empty()).into();
    value
}

/// Hides the URL from callers that may not change it: a caller that knows it can write to the server behind it.
fn for_caller(mut hook: Hook, caller: &Caller) -> Hook {
    if !caller.can(Action::AlertsWrite, &Scope::Everything) {
        hook.url = without_path(&hook.url);
    }
    hook
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let hooks: Vec<Hook> = api.snapshot().await?.list(&hook_key(""))?;
    let hooks = hooks.into_iter().map(|it| for_caller(it, &caller));
    let items: Vec<Value> = hooks.map(|it| redacted(&it)).collect();
    Ok(Json(json!({ "items": items })))
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let (key, snapshot) = (hook_key(&name), api.snapshot().await?);
    let hook: Hook = snapshot.get(&key)?;
    let answer = Json(redacted(&for_caller(hook, &caller))).into_response();
    Ok(tagged(answer, snapshot.version_of(&key)))
}

/// Makes or changes a hook. A new one gets a secret, which is in the answer, and nowhere else.
pub async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    check_name(&name)?;
    let wanted = wanted(&body, &[("name", &name)])?;
    let (key, secret) = (hook_key(&name), secret()?);
    let stored = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            let answer = keep(snapshot, &key, &wanted, &secret)?;
            Ok(WriteEffects::quiet(format!("PUT hooks {name}"), answer))
        })
        .await?;
    Ok(stored.tagged(answered(stored.answer.0, &stored.answer.1)))
}

pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = hook_key(&name);
    api.manage_document(&caller, &headers, &key, |snapshot| {
        let _there: Hook = snapshot.get(&key)?;
        snapshot.remove(&key);
        Ok(WriteEffects::quiet(format!("DELETE hooks {name}"), ()))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The hook that a body describes. These fields are as they are here, and its secret is not the caller's to choose.
pub fn wanted(body: &str, fields: &[(&str, &str)]) -> Result<Hook, Problem> {
    let mut body = body_of(body)?;
    for (name, value) in fields {
        body[*name] = (*value).into();
    }
    if let Some(fields) = body.as_object_mut() {
        fields.remove("secret");
    }
    let wanted: Hook = parse(&body)?;
    let mut errors = Vec::new();
    if let Err(error) = crate::http::host_of(&wanted.url) {
        errors.push(("url".to_owned(), error.to_string()));
    }
    for (index, event) in wanted.events.iter().enumerate() {
        if let Err(message) = kinds::check(event) {
            errors.push((format!("events[{index}]"), message));
        }
    }
    match errors.is_empty() {
        true => Ok(wanted),
        false => Err(Problem::step("read", errors)),
    }
}

/// Writes a hook. One that is known keeps its secret; a new one gets this one, which is in the answer, and nowhere else. Says
/// whether it is new, and what is answered.
pub fn keep(
    snapshot: &mut EntitySnapshot,
    key: &str,
    wanted: &Hook,
    secret: &str,
) -> Result<(bool, Value), Problem> {
    let known: Option<Hook> = snapshot.find(key)?;
    let is_new = known.is_none();
    let hook = Hook {
        secret: known.map_or_else(|| secret.to_owned(), |it| it.secret),
        ..wanted.clone()
    };
    snapshot.put(key, &hook)?;
    let mut answer = redacted(&hook);
    if is_new {
        answer["secret"] = hook.secret.into();
    }
    Ok((is_new, answer))
}

pub fn secret() -> Result<String, Problem> {
    let mut bits = [0; 24];
    rand::fill(&mut bits).map_err(|_| Problem::unreadable("the system yields no random bits"))?;
    Ok(format!("{SECRET_PREFIX}{}", BASE64.encode(&bits)))
}

/// Which deliveries.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryQuery {
    /// Only those in this state: `waiting`, `delivered` or `failed`.
    state: Option<DeliveryState>,
    /// At most so many; 100 if left out.
    limit: Option<usize>,
}

/// A mail or a webhook and its delivery state. Its content is not shown.
#[derive(Serialize, JsonSchema)]
pub struct DeliveryResponse {
    /// Its id.
    id: String,
    /// The kind of the event, such as `subscription.accepted`.
    kind: String,
    /// `mail` or `webhook`.
    channel: &'static str,
    /// The address, or the host of the URL.
    to: String,
    /// The portal that sends it, if it is about developers of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    portal: Option<String>,
    /// The application that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<String>,
    /// How far it has come.
    state: DeliveryState,
    /// Since when, in seconds since 1970.
    created: u64,
    /// When it is tried next, if it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// The attempts.
    attempts: Vec<Attempt>,
}

impl From<Delivery> for DeliveryResponse {
    fn from(delivery: Delivery) -> Self {
        Self {
            channel: delivery.message.channel(),
            to: delivery.message.receiver(),
            portal: delivery.origin.portal().map(str::to_owned),
            application: delivery.origin.application().map(str::to_owned),
            next: (delivery.state == DeliveryState::Waiting).then_some(delivery.due),
            id: delivery.id,
            kind: delivery.kind,
            state: delivery.state,
            created: delivery.created,
            attempts: delivery.attempts,
        }
    }
}

pub async fn deliveries(
    State(api): State<Arc<Api>>,
    Query(wanted): Query<DeliveryQuery>,
) -> Result<Json<List<DeliveryResponse>>, Problem> {
    let all = api.options.outbox.list(SystemTime::now()).await?;
    let items = all
        .into_iter()
        .filter(|it| wanted.state.is_none_or(|state| it.state == state))
        .take(wanted.limit.unwrap_or(PAGE))
        .map(DeliveryResponse::from);
    Ok(Json(List {
        items: items.collect(),
    }))
}

/// Tries a delivery again at once.
pub async fn retry(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    match api.options.outbox.retry(&id, SystemTime::now()).await? {
        true => Ok(StatusCode::ACCEPTED),
        false => Err(Problem::not_found(format_args!(
            "the delivery {id}, waiting or failed,"
        ))),
    }
}
