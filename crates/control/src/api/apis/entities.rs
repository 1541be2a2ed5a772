//! Environments, APIs, plans, applications and products as documents: read, written, removed.

use super::commit::WriteEffects;
use super::library;
use super::library::{Library, PREFIX};
use crate::access::Caller;
use crate::api::json_body::JsonBody;
use crate::api::precondition::tagged;
use crate::api::{Api, Problem};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{
    self, Api as ApiEntity, Application, Environment, KeyMode, Plan, PlanState, Subscription,
};
use weir_apis::naming;
use weir_apis::states;

/// Reads the body of a call as an entity.
pub fn parse<T: DeserializeOwned>(body: &Value) -> Result<T, Problem> {
    entities::parse(body).map_err(|(place, message)| Problem::step("read", vec![(place, message)]))
}

/// Reads a body that may be empty, as JSON.
pub fn body_of(text: &str) -> Result<Value, Problem> {
    match text.trim() {
        "" => Ok(json!({})),
        text => serde_json::from_str(text).map_err(|error| Problem::bad(format!("not JSON: {error}"))),
    }
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

/// Lists what is below a prefix.
pub async fn listed(api: &Api, kind: &str) -> Result<Json<Value>, Problem> {
    let library = api.library().await?;
    let items: Vec<Value> = library.list(&format!("{PREFIX}{kind}/"))?;
    Ok(Json(json!({ "items": items })))
}

/// Reads one, with its version.
pub async fn shown(api: &Api, key: &str) -> Result<Response, Problem> {
    let library = api.library().await?;
    let entity: Value = library.get(key)?;
    Ok(tagged(Json(entity).into_response(), library.version_of(key)))
}

/// What a write answers: 201 if there was none before, else 200.
pub fn answered(is_new: bool, entity: &impl Serialize) -> Response {
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    (status, Json(json!(entity))).into_response()
}

macro_rules! documents {
    ($module:ident, $kind:literal, $entity:ty, $check:expr, $gone:expr, $below:expr) => {
        pub mod $module {
            use super::*;

            pub async fn list(State(api): State<Arc<Api>>) -> Result<Json<Value>, Problem> {
                listed(&api, $kind).await
            }

            pub async fn read(
                State(api): State<Arc<Api>>,
                Path(name): Path<String>,
            ) -> Result<Response, Problem> {
                shown(&api, &format!("{PREFIX}{}/{name}", $kind)).await
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
                if api.library().await?.bytes(&key).is_some() {
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
                let stored = api
                    .manage_document(caller, headers, &key, |library| {
                        let is_new = library.bytes(&key).is_none();
                        library.put(&key, &entity)?;
                        let check: fn(&Library, &$entity) -> Result<BTreeSet<String>, Problem> = $check;
                        Ok(WriteEffects {
                            note: format!("PUT {} {name}", $kind),
                            publications: check(library, &entity)?,
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
                api.manage_document(&caller, &headers, &key, |library| {
                    let _there: $entity = library.get(&key)?;
                    let gone: fn(&Library, &str) -> Option<String> = $gone;
                    if let Some(user) = gone(library, &name) {
                        let detail = format!("{} '{name}' is used by {user}", $kind);
                        return Err(Problem::new(StatusCode::CONFLICT, detail));
                    }
                    library.remove(&key);
                    for below in library.keys(&$below(&name)) {
                        library.remove(below.as_str());
                    }
                    Ok(WriteEffects::quiet(format!("DELETE {} {name}", $kind), ()))
                })
                .await?;
                Ok(StatusCode::NO_CONTENT)
            }
        }
    };
}

fn first_below(library: &Library, prefix: &str, holds: impl Fn(&str) -> bool) -> Option<String> {
    let keys = library.keys(prefix);
    keys.into_iter()
        .map(|key| key.as_str()[PREFIX.len()..].to_owned())
        .find(|key| holds(key))
}

/// Where nothing is removed with something: no key begins so.
fn nothing_below(_name: &str) -> String {
    format!("{PREFIX}-/")
}

documents!(
    environments,
    "environments",
    Environment,
    |library, entity| library.publications(|it| it.environment == entity.name),
    |library, name| first_below(library, &format!("{PREFIX}publications/"), |it| it
        .ends_with(&format!("/{name}"))),
    nothing_below
);
documents!(
    definitions,
    "apis",
    ApiEntity,
    |_, entity| match weir_apis::logo::fault(&entity.logo) {
        None => Ok(BTreeSet::new()),
        Some(message) => Err(Problem::step("check", vec![("logo".to_owned(), message)])),
    },
    |library, name| first_below(library, &format!("{PREFIX}versions/{name}/"), |_| true),
    nothing_below
);
documents!(
    applications,
    "applications",
    Application,
    |_, entity| match entity.key_mode {
        KeyMode::PerSubscription => Ok(BTreeSet::new()),
        KeyMode::Shared => {
            let message = "an application has a key for each subscription; one key for several APIs is what a product gives";
            Err(Problem::step(
                "check",
                vec![("key_mode".to_owned(), message.to_owned())],
            ))
        }
    },
    |library, name| {
        let subscriptions: Vec<Subscription> = library.list(&format!("{PREFIX}subscriptions/")).ok()?;
        subscriptions
            .into_iter()
            .find(|it| it.application == name)
            .map(|it| format!("subscriptions/{}", it.id))
    },
    library::webhooks_of
);

/// Plans of a version.
pub mod plans {
    use super::*;
    use serde::Deserialize;
    use weir_apis::entities::SubscriptionState;

    /// The change of a plan's state, and what becomes of the subscriptions to a plan that is closed.
    #[derive(Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct NewState {
        /// `published`, `deprecated` or `closed`.
        state: String,
        /// The plan that gets the subscriptions; left out: they are closed, too.
        move_to: Option<String>,
    }

    pub async fn list(
        State(api): State<Arc<Api>>,
        Path((name, version)): Path<(String, String)>,
    ) -> Result<Json<Value>, Problem> {
        listed(&api, &format!("plans/{name}/{version}")).await
    }

    pub async fn read(
        State(api): State<Arc<Api>>,
        Path((name, version, plan)): Path<(String, String, String)>,
    ) -> Result<Response, Problem> {
        shown(&api, &library::plan_key(&name, &version, &plan)).await
    }

    pub async fn put(
        State(api): State<Arc<Api>>,
        Extension(caller): Extension<Caller>,
        Path((name, version, plan)): Path<(String, String, String)>,
        headers: HeaderMap,
        body: String,
    ) -> Result<Response, Problem> {
        check_name(&plan)?;
        let mut body = body_of(&body)?;
        for (field, value) in [("api", &name), ("version", &version), ("name", &plan)] {
            body[field] = value.as_str().into();
        }
        let entity: Plan = parse(&body)?;
        let key = library::plan_key(&name, &version, &plan);
        let stored = api
            .manage_document(&caller, &headers, &key, |library| {
                library.version(&name, &version)?;
                let mut entity = entity.clone();
                let before: Option<Plan> = library.find(&key)?;
                if let Some(before) = before.as_ref().filter(|it| it.state != entity.state) {
                    states::plan(before.state, entity.state)?;
                }
                entity.conditions_revision = states::conditions_revision(before.as_ref(), &entity);
                if before.as_ref().is_some_and(|it| it.state != PlanState::Closed)
                    && entity.state == PlanState::Closed
                {
                    return Err(Problem::bad(
                        "to close a plan, say what becomes of its subscriptions: POST …/state",
                    ));
                }
                library.put(&key, &entity)?;
                Ok(WriteEffects {
                    note: format!("PUT plan {plan} of {name} {version}"),
                    publications: library.publications(|it| it.api == name && it.version == version)?,
                    answer: (before.is_none(), entity),
                })
            })
            .await?;
        Ok(stored.tagged(answered(stored.answer.0, &stored.answer.1)))
    }

    pub async fn state(
        State(api): State<Arc<Api>>,
        Extension(caller): Extension<Caller>,
        Path((name, version, plan)): Path<(String, String, String)>,
        headers: HeaderMap,
        JsonBody(wanted): JsonBody<NewState>,
    ) -> Result<Json<Value>, Problem> {
        let to: PlanState = parse(&Value::from(wanted.state.as_str()))?;
        let written = api
            .manage(&caller, &headers, |library| {
                let key = library::plan_key(&name, &version, &plan);
                let mut entity: Plan = library.get(&key)?;
                entity.state = states::plan(entity.state, to)?;
                library.put(&key, &entity)?;
                let publications = library.publications(|it| it.api == name && it.version == version)?;
                if to == PlanState::Closed {
                    resettle(library, &publications, &plan, wanted.move_to.as_deref())?;
                }
                Ok(WriteEffects {
                    note: format!("plan {plan} of {name} {version}: {}", wanted.state),
                    publications,
                    answer: entity,
                })
            })
            .await?;
        Ok(Json(json!(written.answer)))
    }

    /// Closes the subscriptions to a plan, or moves them to another.
    fn resettle(
        library: &mut Library,
        publications: &BTreeSet<String>,
        plan: &str,
        to: Option<&str>,
    ) -> Result<(), Problem> {
        let mut subscriptions: Vec<Subscription> = library.list(&format!("{PREFIX}subscriptions/"))?;
        subscriptions.retain(|it| it.plan == plan && publications.contains(&it.publication));
        for mut subscription in subscriptions {
            match to {
                Some(to) => {
                    let mut parts = subscription.publication.split('/');
                    let (name, version) =
                        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                    let target: Plan = library.get(&library::plan_key(name, version, to))?;
                    if target.state != PlanState::Published {
                        return Err(Problem::new(
                            StatusCode::CONFLICT,
                            format!("the plan '{to}' is not published"),
                        ));
                    }
                    to.clone_into(&mut subscription.plan);
                }
                None if matches!(
                    subscription.state,
                    SubscriptionState::Rejected | SubscriptionState::Closed
                ) =>
                {
                    continue;
                }
                None => {
                    subscription.state = SubscriptionState::Closed;
                    subscription.reason = format!("the plan '{plan}' was closed");
                }
            }
            library.put(&library::subscription_key(&subscription.id), &subscription)?;
        }
        Ok(())
    }
}
