//! Environments, APIs and applications as documents: read, written, removed.

use super::access::affected_by;
use super::entity_snapshot;
use super::entity_snapshot::{EntitySnapshot, PREFIX};
use super::environment_check;
use super::secrecy;
use super::visible::{VisibilityFilter, permit_application};
use super::write_effects::WriteEffects;
use crate::access::Caller;
use crate::api::json_body;
use crate::api::json_body::Json;
use crate::api::precondition::tagged;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{self, Api as ApiEntity, Application, Environment, KeyMode, Subscription};
use weir_apis::naming;

/// Reads the body of a call as an entity.
pub fn parse<T: DeserializeOwned>(body: &Value) -> Result<T, Problem> {
    // What has such a name for people could not be told from others, nor be clicked.
    let is_blank = |it: &str| !it.is_empty() && it.trim().is_empty();
    if body["display_name"].as_str().is_some_and(is_blank) {
        let message = "it has only spaces: write a name for people, or leave it out".to_owned();
        return Err(Problem::step("read", vec![("display_name".to_owned(), message)]));
    }
    entities::parse(body).map_err(|(place, message)| Problem::step("read", vec![(place, message)]))
}

/// Reads a body that may be empty, as an object.
pub fn body_of(text: &str) -> Result<Value, Problem> {
    json_body::object(text)
}

pub fn check_name(name: &str) -> Result<(), Problem> {
    match naming::is_name(name) {
        true => Ok(()),
        false => Err(Problem::bad(format!(
            "'{name}' is not a valid name: expected {}",
            naming::EXPECTED_NAME
        ))),
    }
}

/// Lists the entities below a prefix that the caller sees.
pub async fn listed(api: &Api, caller: &Caller, kind: &str) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let items: Vec<Value> = snapshot.list(&format!("{PREFIX}{kind}/"))?;
    let mut items = VisibilityFilter::new(&snapshot, caller).of_list(kind, items)?;
    for item in &mut items {
        secrecy::hide(caller, kind, item);
    }
    Ok(Json(json!({ "items": items })))
}

/// Reads one that the caller sees, with its version.
pub async fn read_entity(api: &Api, caller: &Caller, key: &str) -> Result<Response, Problem> {
    let snapshot = api.snapshot().await?;
    ensure_visible(&snapshot, caller, key)?;
    let mut entity: Value = snapshot.get(key)?;
    secrecy::hide(caller, kind_of(key), &mut entity);
    Ok(tagged(Json(entity).into_response(), snapshot.version_of(key)))
}

/// Refuses a caller who does not see what stands under a key.
pub fn ensure_visible(snapshot: &EntitySnapshot, caller: &Caller, key: &str) -> Result<(), Problem> {
    VisibilityFilter::new(snapshot, caller).demand(kind_of(key), &snapshot.get(key)?)
}

/// The kind of entity that stands under a key.
fn kind_of(key: &str) -> &str {
    let kind = key.strip_prefix(PREFIX).and_then(|it| it.split('/').next());
    kind.unwrap_or_default()
}

/// The answer to a write: 201 if there was none before, otherwise 200.
pub fn answered(is_new: bool, entity: &impl Serialize) -> Response {
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    (status, Json(json!(entity))).into_response()
}

macro_rules! documents {
    ($module:ident, $kind:literal, $entity:ty, $ready:path, $permit:expr, $check:expr, $gone:expr, $below:expr) => {
        pub mod $module {
            use super::*;

            pub async fn list(
                State(api): State<Arc<Api>>,
                Extension(caller): Extension<Caller>,
            ) -> Result<Json<Value>, Problem> {
                listed(&api, &caller, $kind).await
            }

            pub async fn read(
                State(api): State<Arc<Api>>,
                Extension(caller): Extension<Caller>,
                Path(name): Path<String>,
            ) -> Result<Response, Problem> {
                read_entity(&api, &caller, &format!("{PREFIX}{}/{name}", $kind)).await
            }

            pub async fn put(
                State(api): State<Arc<Api>>,
                Extension(caller): Extension<Caller>,
                Path(name): Path<String>,
                headers: HeaderMap,
                body: String,
            ) -> Result<Response, Problem> {
                write(&api, &caller, &headers, &name, body_of(&body)?).await
            }

            pub async fn create(
                State(api): State<Arc<Api>>,
                Extension(caller): Extension<Caller>,
                headers: HeaderMap,
                body: String,
            ) -> Result<Response, Problem> {
                let body = body_of(&body)?;
                let name = body["name"]
                    .as_str()
                    .ok_or_else(|| Problem::bad("expected a text in 'name'"))?
                    .to_owned();
                let key = format!("{PREFIX}{}/{name}", $kind);
                if api.snapshot().await?.bytes(&key).is_some() {
                    return Err(Problem::new(
                        StatusCode::CONFLICT,
                        format!("{} '{name}' exists", $kind),
                    ));
                }
                write(&api, &caller, &headers, &name, body).await
            }

            async fn write(
                api: &Arc<Api>,
                caller: &Caller,
                headers: &HeaderMap,
                name: &str,
                mut body: Value,
            ) -> Result<Response, Problem> {
                check_name(name)?;
                body["name"] = name.into();
                let entity: $entity = parse(&body)?;
                let key = format!("{PREFIX}{}/{name}", $kind);
                $ready(api, caller, &entity).await?;
                let stored = api
                    .manage_document(caller, headers, &key, |snapshot| {
                        let before: Option<$entity> = snapshot.find(&key)?;
                        let permit: fn(&EntitySnapshot, &Caller, &$entity) -> Result<(), Problem> = $permit;
                        for it in before.iter().chain([&entity]) {
                            permit(snapshot, caller, it)?;
                        }
                        let is_new = before.is_none();
                        snapshot.put(&key, &entity)?;
                        let check: fn(&EntitySnapshot, &$entity) -> Result<BTreeSet<String>, Problem> =
                            $check;
                        Ok(WriteEffects {
                            note: format!("PUT {} {name}", $kind),
                            publications: check(snapshot, &entity)?,
                            answer: is_new,
                        })
                    })
                    .await?;
                Ok(stored.tagged(answered(stored.answer, &entity)))
            }

            pub async fn delete(
                State(api): State<Arc<Api>>,
                Extension(caller): Extension<Caller>,
                Path(name): Path<String>,
                headers: HeaderMap,
            ) -> Result<StatusCode, Problem> {
                let key = format!("{PREFIX}{}/{name}", $kind);
                api.manage_document(&caller, &headers, &key, |snapshot| {
                    let there: $entity = snapshot.get(&key)?;
                    let permit: fn(&EntitySnapshot, &Caller, &$entity) -> Result<(), Problem> = $permit;
                    permit(snapshot, &caller, &there)?;
                    let gone: fn(&EntitySnapshot, &str) -> Option<String> = $gone;
                    if let Some(user) = gone(snapshot, &name) {
                        let detail = format!("{} '{name}' is used by {user}", $kind);
                        return Err(Problem::new(StatusCode::CONFLICT, detail));
                    }
                    snapshot.remove(&key);
                    for below in snapshot.keys(&$below(&name)) {
                        snapshot.remove(below.as_str());
                    }
                    Ok(WriteEffects::quiet(format!("DELETE {} {name}", $kind), ()))
                })
                .await?;
                Ok(StatusCode::NO_CONTENT)
            }
        }
    };
}

fn first_below(snapshot: &EntitySnapshot, prefix: &str, holds: impl Fn(&str) -> bool) -> Option<String> {
    let keys = snapshot.keys(prefix);
    keys.into_iter()
        .map(|key| key.as_str()[PREFIX.len()..].to_owned())
        .find(|key| holds(key))
}

/// What needs no check before its write.
fn ready<T>(_api: &Arc<Api>, _caller: &Caller, _entity: &T) -> std::future::Ready<Result<(), Problem>> {
    std::future::ready(Ok(()))
}

/// Paths name where these are: the call was permitted there.
fn permitted<T>(_snapshot: &EntitySnapshot, _caller: &Caller, _entity: &T) -> Result<(), Problem> {
    Ok(())
}

/// The prefix below which nothing is removed: no key begins so.
fn nothing_below(_name: &str) -> String {
    format!("{PREFIX}-/")
}

documents!(
    environments,
    "environments",
    Environment,
    environment_check::check,
    permitted,
    |snapshot, entity| {
        crate::api::apis::specs::ruleset(entity.lint_rules.as_deref())
            .map_err(|it| it.within("lint_rules"))?;
        snapshot.publications(|it| it.environment == entity.name)
    },
    |snapshot, name| first_below(snapshot, &format!("{PREFIX}publications/"), |it| it
        .ends_with(&format!("/{name}"))),
    nothing_below
);
documents!(
    definitions,
    "apis",
    ApiEntity,
    ready,
    permitted,
    |_, entity| match weir_apis::logo::fault(&entity.logo) {
        None => Ok(BTreeSet::new()),
        Some(message) => Err(Problem::step("check", vec![("logo".to_owned(), message)])),
    },
    |snapshot, name| first_below(snapshot, &format!("{PREFIX}versions/{name}/"), |_| true),
    nothing_below
);
/// The most certificates of an application, and the most characters of one.
const MAX_CERTIFICATES: usize = 10;
const MAX_CERTIFICATE: usize = 16 << 10;

/// Checks an application. Returns the publications and products that know it by its credentials.
fn applications_of(snapshot: &EntitySnapshot, entity: &Application) -> Result<BTreeSet<String>, Problem> {
    let mut wrong = Vec::new();
    let mut add = |place: &str, message: &str| wrong.push((place.to_owned(), message.to_owned()));
    if entity.key_mode == KeyMode::Shared {
        let message =
            "an application has one key for each subscription; use a product to get one key for several APIs";
        add("key_mode", message);
    }
    if entity.client_id.len() > 256 || entity.client_id.contains(char::is_control) {
        add("client_id", "expected at most 256 characters");
    }
    if entity.certificates.len() > MAX_CERTIFICATES {
        add(
            "certificates",
            &format!("expected at most {MAX_CERTIFICATES} certificates"),
        );
    }
    let all: Vec<Application> = snapshot.list(&entity_snapshot::application_key(""))?;
    let others = || all.iter().filter(|it| it.name != entity.name);
    if !entity.client_id.is_empty() && others().any(|it| it.client_id == entity.client_id) {
        add("client_id", "another application has it: expected a unique one");
    }
    let mut known: BTreeSet<String> = others()
        .flat_map(|it| &it.certificates)
        .filter_map(|it| entities::fingerprint(it))
        .collect();
    for (index, pem) in entity.certificates.iter().enumerate() {
        let place = format!("certificates[{index}]");
        let print = entities::fingerprint(pem);
        let print = print.filter(|_| pem.len() <= MAX_CERTIFICATE && !pem.contains("PRIVATE KEY"));
        match print.map(|it| known.insert(it)) {
            None => add(&place, "expected one certificate in PEM, and no private key"),
            Some(false) => add(&place, "it is already in use, here or in another application"),
            Some(true) => {}
        }
    }
    if !wrong.is_empty() {
        return Err(Problem::step("check", wrong));
    }
    let subscriptions: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
    let own = subscriptions.iter().filter(|it| it.application == entity.name);
    affected_by(snapshot, own)
}

documents!(
    applications,
    "applications",
    Application,
    ready,
    permit_application,
    applications_of,
    |snapshot, name| {
        let subscriptions: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/")).ok()?;
        subscriptions
            .into_iter()
            .find(|it| it.application == name)
            .map(|it| format!("subscriptions/{}", it.id))
    },
    entity_snapshot::webhooks_of
);
