//! Plans of a version, as calls; and what writes of plans share, those of products too.

use super::access::affected;
use super::clock::now;
use super::entities::{answered, body_of, check_name, parse};
use super::entity_snapshot::{self, Changes, ENVIRONMENT_KEYS, EntitySnapshot, PREFIX};
use super::rendering;
use super::write_effects::WriteEffects;
use super::{chains, specs};
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::{Json, JsonBody};
use crate::api::precondition::tagged;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_apis::entities::{
    Environment, PRODUCTS, Plan, PlanSecurity, PlanState, PlannedClose, Product, Publication, Subscription,
    SubscriptionState,
};
use weir_apis::{plans, renames, states};

/// Refuses what would change what a protected environment serves, unless the caller may publish there. An approval is for a
/// revision and its runtime, not for who may call it.
pub struct ProtectedServing<'c> {
    caller: &'c Caller,
    publications: BTreeSet<String>,
    now: u64,
    /// What rendering would change without the write, as time has gone on; `None`: the caller may publish wherever something is
    /// protected.
    before: Option<Changes>,
}

impl<'c> ProtectedServing<'c> {
    /// What these publications and products are before the write.
    pub fn before(snapshot: &EntitySnapshot, caller: &'c Caller, publications: BTreeSet<String>) -> Self {
        let now = now();
        // What cannot be read is looked at.
        let environments = snapshot.list::<Environment>(ENVIRONMENT_KEYS);
        let is_asked = environments.map_or(true, |all| all.iter().any(|it| Self::is_refused(caller, it)));
        // What cannot be rendered before the write is not served.
        let render = || rendering::rendered(snapshot, &publications, now).unwrap_or_default();
        Self {
            before: is_asked.then(render),
            caller,
            publications,
            now,
        }
    }

    /// Whether the caller may change nothing of what an environment serves.
    fn is_refused(caller: &Caller, environment: &Environment) -> bool {
        let scope = Scope::Environment(environment.name.clone());
        environment.protected && !caller.can(Action::ApisPublishProtected, &scope)
    }

    /// Looks at what they are after it.
    pub fn demand(self, snapshot: &EntitySnapshot) -> Result<(), Problem> {
        let Some(before) = &self.before else {
            return Ok(());
        };
        let mut changes = rendering::rendered(snapshot, &self.publications, self.now)?;
        // What would have changed anyway, as time goes on, is not of this write.
        changes.retain(|key, value| before.get(key) != Some(value));
        self.demand_in(snapshot, rendering::environments(&changes))
    }

    /// Looks at where they are, for a write whose effects come later.
    pub fn demand_everywhere(self, snapshot: &EntitySnapshot) -> Result<(), Problem> {
        let mut environments = BTreeSet::new();
        for id in &self.publications {
            match id.strip_prefix(PRODUCTS) {
                Some(name) => {
                    let product: Product = snapshot.get(&entity_snapshot::product_key(name))?;
                    environments.extend(product.environments());
                }
                None => environments.extend(id.rsplit('/').next().map(str::to_owned)),
            }
        }
        self.demand_in(snapshot, environments)
    }

    fn demand_in(&self, snapshot: &EntitySnapshot, environments: BTreeSet<String>) -> Result<(), Problem> {
        let right = Action::ApisPublishProtected;
        for name in environments {
            if Self::is_refused(self.caller, &snapshot.environment(&name)?) {
                return Err(Problem::forbidden(format!(
                    "{name} is protected: this changes who may call its publications and requires '{}' there; a \
                     plan in the state 'staging' is not affected",
                    right.as_str()
                )));
            }
        }
        Ok(())
    }
}

/// The change of a plan's state, and what happens to the subscriptions of a closed plan.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PlanStateChange")]
pub struct NewState {
    /// `published`, `deprecated` or `closed`.
    state: String,
    /// The plan that gets the subscriptions, of the same security; left out: they are closed, too.
    move_to: Option<String>,
    /// When the plan is closed, in seconds since 1970: until then it serves its subscribers and takes no new ones. Left
    /// out: at once.
    at: Option<u64>,
}

/// A plan as it is shown: without the secret of its authorization server.
pub fn redacted(mut plan: Value) -> Value {
    if let Some(settings) = plan.get_mut("oauth2").and_then(Value::as_object_mut) {
        settings.remove("client_secret");
    }
    plan
}

/// An answer to a write of a plan, with what is to be said of it although it was stored.
pub fn advised(mut answer: Response, plan: &Plan) -> Response {
    let advice = plans::advice(plan).map(|(place, message)| format!("{place}: {message}"));
    if let Some(warning) = weir_dialect::warning(advice) {
        answer.headers_mut().insert(header::WARNING, warning);
    }
    answer
}

/// The plans below a key.
pub async fn listed(api: &Api, prefix: &str) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let plans: Vec<Value> = snapshot.list(prefix)?;
    let items: Vec<Value> = plans.into_iter().map(redacted).collect();
    Ok(Json(json!({ "items": items })))
}

/// The plan under a key, with its version.
pub async fn one(api: &Api, key: &str) -> Result<Response, Problem> {
    let snapshot = api.snapshot().await?;
    let plan: Value = snapshot.get(key)?;
    Ok(tagged(
        Json(redacted(plan)).into_response(),
        snapshot.version_of(key),
    ))
}

/// The open subscriptions to a plan.
fn open(snapshot: &EntitySnapshot, plan: &Plan) -> Result<Vec<Subscription>, Problem> {
    let mut all: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
    let of_version = format!("{}/{}/", plan.api, plan.version);
    all.retain(|it| {
        let is_of = match plan.product.as_str() {
            "" => it.publication.starts_with(&of_version),
            product => it.product == product,
        };
        let is_over = matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected);
        is_of && it.plan == plan.name && !is_over
    });
    Ok(all)
}

/// A plan as it is to be stored: fields that calls cannot set keep their values. Reports its faults.
pub fn ready(
    snapshot: &EntitySnapshot,
    before: Option<&Plan>,
    mut plan: Plan,
    is_sealed: bool,
) -> Result<Plan, Problem> {
    if let Some(before) = before.filter(|it| it.state != plan.state) {
        states::plan(before.state, plan.state)?;
    }
    plan.conditions_revision = states::conditions_revision(before, &plan);
    plan.closes = before
        .filter(|it| it.state == plan.state)
        .and_then(|it| it.closes.clone());
    let kept = before.and_then(|it| it.oauth2.clone());
    if let (Some(settings), Some(kept)) = (&mut plan.oauth2, kept)
        && settings.client_secret.is_empty()
        // A secret goes only to the server that it was given for.
        && (&settings.discovery, &settings.introspection_endpoint) == (&kept.discovery, &kept.introspection_endpoint)
    {
        settings.client_secret = kept.client_secret;
    }
    let mut wrong = plans::check(&plan);
    name_as_draft(snapshot, &mut plan)?;
    wrong.extend(unknown_operations(snapshot, &plan)?);
    // What is stored with a fault that was not known then stays, so that other fields of it can be changed.
    if let Some(before) = before {
        let known = [plans::check(before), unknown_operations(snapshot, before)?].concat();
        wrong.retain(|it| !known.contains(it));
    }
    if plan.security == PlanSecurity::Hmac && !is_sealed {
        let message =
            "signatures need secrets, which this store would keep in plain text: start Weir with --store-key";
        wrong.push(("security".to_owned(), message.to_owned()));
    }
    if !wrong.is_empty() {
        return Err(Problem::step("check", wrong));
    }
    if let Some(before) = before.filter(|it| it.security != plan.security) {
        let known = open(snapshot, before)?;
        if !known.is_empty() {
            let detail = format!(
                "the plan '{}' has {} subscriptions with credentials of another kind: create a separate plan for \
                 the new kind",
                plan.name,
                known.len()
            );
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
    }
    Ok(plan)
}

/// Gives operations that a plan names by an id of what is published the id of the draft, as stored plans have it.
fn name_as_draft(snapshot: &EntitySnapshot, plan: &mut Plan) -> Result<(), Problem> {
    if !plan.product.is_empty() || (plan.operations.is_empty() && plan.operation_limits.is_empty()) {
        return Ok(());
    }
    let version = snapshot.version(&plan.api, &plan.version)?;
    if version.renames.is_empty() {
        return Ok(());
    }
    let draft = specs::description(snapshot, &version.draft.spec)?;
    let published = snapshot.publications(|it| it.api == plan.api && it.version == plan.version)?;
    let mut names = BTreeMap::new();
    for id in published {
        let publication = snapshot.publication(&id)?;
        let revision = snapshot.revision(&plan.api, &plan.version, publication.revision)?;
        for operation in &specs::description(snapshot, &revision.spec)?.operations {
            let latest = renames::latest(&operation.id, &version.renames, revision.number);
            names.insert(operation.id.clone(), latest.to_owned());
        }
    }
    for operation in &draft.operations {
        names.remove(&operation.id);
    }
    let named = |id: String| names.get(&id).cloned().unwrap_or(id);
    plan.operations = std::mem::take(&mut plan.operations)
        .into_iter()
        .map(named)
        .collect();
    let limits = std::mem::take(&mut plan.operation_limits).into_iter();
    plan.operation_limits = limits.map(|(id, all)| (named(id), all)).collect();
    Ok(())
}

/// The operations that a plan names and that neither the draft nor anything published has.
fn unknown_operations(snapshot: &EntitySnapshot, plan: &Plan) -> Result<Vec<(String, String)>, Problem> {
    let opened = plan.operations.iter().enumerate();
    let opened = opened.map(|(index, id)| (format!("operations[{index}]"), id));
    let limited = plan.operation_limits.keys();
    let limited = limited.map(|id| (format!("operation_limits.{id}"), id));
    let mut named: Vec<(String, &String)> = opened.chain(limited).collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut specs = BTreeSet::new();
    let published: BTreeSet<String> = match plan.product.as_str() {
        "" => {
            specs.insert(snapshot.version(&plan.api, &plan.version)?.draft.spec);
            snapshot.publications(|it| it.api == plan.api && it.version == plan.version)?
        }
        name => {
            let product: Product = snapshot.get(&entity_snapshot::product_key(name))?;
            product.publications.into_keys().collect()
        }
    };
    for id in published {
        if let Some(it) = snapshot.find::<Publication>(&entity_snapshot::publication_key(&id))? {
            specs.insert(snapshot.revision(&it.api, &it.version, it.revision)?.spec);
        }
    }
    for spec in specs {
        let description = specs::description(snapshot, &spec)?;
        named.retain(|(_, id)| !description.operations.iter().any(|it| it.id == **id));
    }
    let unknown = named.into_iter();
    Ok(unknown
        .map(|(place, id)| (place, format!("there is no operation '{id}'")))
        .collect())
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    listed(&api, &entity_snapshot::plan_key(&name, &version, "")).await
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Path((name, version, plan)): Path<(String, String, String)>,
) -> Result<Response, Problem> {
    one(&api, &entity_snapshot::plan_key(&name, &version, &plan)).await
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
    let key = entity_snapshot::plan_key(&name, &version, &plan);
    let is_sealed = api.store.is_sealed();
    let stored = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            snapshot.version(&name, &version)?;
            let publications = snapshot.publications(|it| it.api == name && it.version == version)?;
            let serving = ProtectedServing::before(snapshot, &caller, publications.clone());
            let before: Option<Plan> = snapshot.find(&key)?;
            if before.as_ref().is_some_and(|it| it.state != PlanState::Closed)
                && entity.state == PlanState::Closed
            {
                return Err(Problem::bad(
                    "to close a plan, use POST …/state and set there what happens to its subscriptions",
                ));
            }
            chains::permit_plan(&api, &caller, before.as_ref(), &entity)?;
            let entity = ready(snapshot, before.as_ref(), entity.clone(), is_sealed)?;
            snapshot.put(&key, &entity)?;
            serving.demand(snapshot)?;
            Ok(WriteEffects {
                note: format!("PUT plan {plan} of {name} {version}"),
                publications,
                answer: (before.is_none(), entity),
            })
        })
        .await?;
    let (is_new, entity) = &stored.answer;
    let answer = answered(*is_new, &redacted(json!(entity)));
    Ok(advised(stored.tagged(answer), entity))
}

pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, plan)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let prefix = entity_snapshot::plan_key(&name, &version, "");
    remove(&api, (&caller, &headers), &prefix, &plan).await
}

/// Removes the plan of a name below a prefix, if it has no subscribers.
pub async fn remove(
    api: &Arc<Api>,
    (caller, headers): (&Caller, &HeaderMap),
    prefix: &str,
    name: &str,
) -> Result<StatusCode, Problem> {
    let key = format!("{prefix}{name}");
    api.manage_document(caller, headers, &key, |snapshot| {
        let plan: Plan = snapshot.get(&key)?;
        let refuse = |detail: String| Err(Problem::new(StatusCode::CONFLICT, detail));
        let open = open(snapshot, &plan)?;
        if let Some(first) = open.first() {
            return refuse(format!(
                "the plan '{name}' has subscriptions that are not closed, {} in all, such as subscriptions/{}: close them, or \
                 close the plan, which can move them to another one",
                open.len(),
                first.id
            ));
        }
        let others: Vec<Plan> = snapshot.list(prefix)?;
        let takes_from = |it: &&Plan| it.closes.as_ref().is_some_and(|it| it.move_to == name);
        if let Some(other) = others.iter().find(takes_from) {
            return refuse(format!(
                "the plan '{name}' gets the subscriptions of '{}' when that is closed: choose another one first",
                other.name
            ));
        }
        let publications = targets(snapshot, &plan)?;
        let serving = ProtectedServing::before(snapshot, caller, publications.clone());
        snapshot.remove(&key);
        serving.demand(snapshot)?;
        Ok(WriteEffects {
            note: format!("DELETE plan {name} of {}", of(&plan)),
            publications,
            answer: (),
        })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn state(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, plan)): Path<(String, String, String)>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<NewState>,
) -> Result<Json<Value>, Problem> {
    let key = entity_snapshot::plan_key(&name, &version, &plan);
    set_state(&api, (&caller, &headers), &key, &wanted).await
}

/// Changes the state of the plan under a key.
pub async fn set_state(
    api: &Arc<Api>,
    (caller, headers): (&Caller, &HeaderMap),
    key: &str,
    wanted: &NewState,
) -> Result<Json<Value>, Problem> {
    let to: PlanState = parse(&Value::from(wanted.state.as_str()))?;
    let written = api
        .manage(caller, headers, |snapshot| {
            let mut entity: Plan = snapshot.get(key)?;
            let publications = targets(snapshot, &entity)?;
            let serving = ProtectedServing::before(snapshot, caller, publications.clone());
            let next = states::plan(entity.state, to)?;
            match (to, wanted.at) {
                (PlanState::Closed, Some(at)) => {
                    plan_close(snapshot, &mut entity, at, wanted.move_to.as_deref())?;
                    snapshot.put(key, &entity)?;
                }
                (_, Some(_)) => {
                    let message = "expected it with the state 'closed' only".to_owned();
                    return Err(Problem::step("read", vec![("at".to_owned(), message)]));
                }
                (PlanState::Closed, None) => close(snapshot, key, &mut entity, wanted.move_to.as_deref())?,
                (_, None) => {
                    (entity.state, entity.closes) = (next, None);
                    snapshot.put(key, &entity)?;
                }
            }
            match wanted.at {
                Some(_) => serving.demand_everywhere(snapshot)?,
                None => serving.demand(snapshot)?,
            }
            let when = wanted.at.map(|at| format!(" at {at}")).unwrap_or_default();
            Ok(WriteEffects {
                note: format!("plan {} of {}: {}{when}", entity.name, of(&entity), wanted.state),
                publications,
                answer: entity,
            })
        })
        .await?;
    Ok(Json(redacted(json!(written.answer))))
}

/// Whose plan it is, in words.
pub fn of(plan: &Plan) -> String {
    match plan.product.as_str() {
        "" => format!("{} {}", plan.api, plan.version),
        product => format!("the product {product}"),
    }
}

/// The publications to render when a plan changes.
pub fn targets(snapshot: &EntitySnapshot, plan: &Plan) -> Result<BTreeSet<String>, Problem> {
    match plan.product.as_str() {
        "" => snapshot.publications(|it| it.api == plan.api && it.version == plan.version),
        product => affected(snapshot, &format!("{PRODUCTS}{product}")),
    }
}

/// Another plan of the same product that may get its subscriptions.
fn successor(snapshot: &EntitySnapshot, plan: &Plan, to: &str) -> Result<Plan, Problem> {
    let key = match plan.product.as_str() {
        "" => entity_snapshot::plan_key(&plan.api, &plan.version, to),
        product => entity_snapshot::product_plan_key(product, to),
    };
    let found: Plan = snapshot.get(&key)?;
    let refuse = |detail: String| Err(Problem::new(StatusCode::CONFLICT, detail));
    if found.name == plan.name {
        return refuse(format!("expected another plan than '{to}' in 'move_to'"));
    }
    if found.state != PlanState::Published {
        return refuse(format!("the plan '{to}' is not published"));
    }
    if found.security != plan.security {
        return refuse(format!(
            "the plan '{to}' knows its subscribers by something else: their credentials would no longer be good"
        ));
    }
    Ok(found)
}

/// Notes that a plan is closed at a time. Until then it takes no new subscriptions.
fn plan_close(snapshot: &EntitySnapshot, plan: &mut Plan, at: u64, to: Option<&str>) -> Result<(), Problem> {
    if at <= now() {
        let message = "expected a time that lies ahead".to_owned();
        return Err(Problem::step("read", vec![("at".to_owned(), message)]));
    }
    if plan.state == PlanState::Staging {
        let detail = format!(
            "the plan '{}' was never published: close it without a date",
            plan.name
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    if let Some(to) = to {
        successor(snapshot, plan, to)?;
    }
    plan.state = PlanState::Deprecated;
    plan.closes = Some(PlannedClose {
        at,
        move_to: to.unwrap_or_default().to_owned(),
    });
    Ok(())
}

/// Closes a plan, and closes its subscriptions or moves them to another.
fn close(snapshot: &mut EntitySnapshot, key: &str, plan: &mut Plan, to: Option<&str>) -> Result<(), Problem> {
    let to = to.map(|to| successor(snapshot, plan, to)).transpose()?;
    let taken: BTreeSet<(String, String)> = match &to {
        Some(to) => open(snapshot, to)?
            .iter()
            .map(|it| (it.application.clone(), it.target()))
            .collect(),
        None => BTreeSet::new(),
    };
    let moved = now();
    for mut subscription in open(snapshot, plan)? {
        let place = (subscription.application.clone(), subscription.target());
        match &to {
            // What an application has leads to one subscription of a plan: the one that is there goes on.
            Some(to) if !(to.is_of_application() && taken.contains(&place)) => {
                subscription.plan.clone_from(&to.name);
                subscription.moved = Some(moved);
            }
            _ => {
                subscription.state = SubscriptionState::Closed;
                subscription.reason = format!("the plan '{}' was closed", plan.name);
            }
        }
        snapshot.put(
            &entity_snapshot::subscription_key(&subscription.id),
            &subscription,
        )?;
    }
    (plan.state, plan.closes) = (PlanState::Closed, None);
    snapshot.put(key, &*plan)
}

/// Closes the plan under a key whose time has come. A plan that was to get the subscriptions and cannot any more gets none.
pub fn close_by_time(snapshot: &mut EntitySnapshot, key: &str) -> Result<String, Problem> {
    let mut plan: Plan = snapshot.get(key)?;
    let to = plan
        .closes
        .clone()
        .map(|it| it.move_to)
        .filter(|it| !it.is_empty());
    let to = to.filter(|to| successor(snapshot, &plan, to).is_ok());
    close(snapshot, key, &mut plan, to.as_deref())?;
    Ok(format!("the plan {} of {} is closed", plan.name, of(&plan)))
}

/// Closes a plan of a product with its subscriptions, at once.
pub fn close_now(snapshot: &mut EntitySnapshot, key: &str, plan: &mut Plan) -> Result<(), Problem> {
    close(snapshot, key, plan, None)
}
