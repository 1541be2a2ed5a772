//! Products and their plans, as calls: chosen operations of several publications, offered together.

use super::access::affected;
use super::entities::{answered, body_of, check_name, ensure_visible, listed, parse, read_entity};
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use super::plans::{self, ProtectedServing};
use super::write_effects::WriteEffects;
use super::{chains, specs};
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::{Json, JsonBody};
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{Plan, PlanState, Product, Subscription, SubscriptionState};
use weir_apis::{renames, states};

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    listed(&api, &caller, "products").await
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    read_entity(&api, &caller, &entity_snapshot::product_key(&name)).await
}

/// Checks that what a product names exists, and gives operations the ids that the draft has, as in plans.
fn check(snapshot: &EntitySnapshot, product: &mut Product) -> Result<(), Problem> {
    let mut wrong = Vec::new();
    for (id, chosen) in &mut product.publications {
        let place = format!("publications.{id}");
        let Ok(publication) = snapshot.publication(id) else {
            wrong.push((place, "there is no such publication".to_owned()));
            continue;
        };
        let revision = snapshot.revision(&publication.api, &publication.version, publication.revision)?;
        let description = specs::description(snapshot, &revision.spec)?;
        let version = snapshot.version(&publication.api, &publication.version)?;
        for operation in chosen {
            let ids = description.operations.iter().map(|it| {
                let latest = renames::latest(&it.id, &version.renames, revision.number);
                (it.id.as_str(), latest)
            });
            // An id of the draft means that operation, also if it is another one's where it is published.
            let found = ids.clone().find(|(_, latest)| operation == latest);
            match found.or_else(|| ids.clone().find(|(id, _)| operation == id)) {
                Some((_, latest)) => latest.clone_into(operation),
                None => wrong.push((place.clone(), format!("it has no operation '{operation}'"))),
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Problem::step("read", wrong)),
    }
}

/// The publications of a product, and the product: what changes with it.
fn targets(product: &Product) -> BTreeSet<String> {
    let mut targets: BTreeSet<String> = product.publications.keys().cloned().collect();
    targets.insert(product.id());
    targets
}

pub async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    check_name(&name)?;
    let mut body = body_of(&body)?;
    body["name"] = name.as_str().into();
    let product: Product = parse(&body)?;
    let key = entity_snapshot::product_key(&name);
    let stored = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            let mut product = product.clone();
            check(snapshot, &mut product)?;
            let before: Option<Product> = snapshot.find(&key)?;
            let mut changed = targets(&product);
            if let Some(before) = &before {
                states::product(before.state, product.state)?;
                changed.extend(targets(before));
            }
            let serving = ProtectedServing::before(snapshot, &caller, changed.clone());
            snapshot.put(&key, &product)?;
            serving.demand(snapshot)?;
            Ok(WriteEffects {
                note: format!("PUT products {name}"),
                publications: changed,
                answer: (before.is_none(), product),
            })
        })
        .await?;
    let (is_new, product) = &stored.answer;
    Ok(stored.tagged(answered(*is_new, product)))
}

pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = entity_snapshot::product_key(&name);
    api.manage_document(&caller, &headers, &key, |snapshot| {
        let product: Product = snapshot.get(&key)?;
        let subscriptions: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
        let is_over =
            |it: &Subscription| matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected);
        if let Some(user) = subscriptions.iter().find(|it| it.product == name && !is_over(it)) {
            let detail = format!("products '{name}' is used by subscriptions/{}", user.id);
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        let changed = targets(&product);
        let serving = ProtectedServing::before(snapshot, &caller, changed.clone());
        for plan in snapshot.keys(&entity_snapshot::product_plan_key(&name, "")) {
            snapshot.remove(plan.as_str());
        }
        snapshot.remove(&key);
        serving.demand(snapshot)?;
        Ok(WriteEffects {
            note: format!("DELETE products {name}"),
            publications: changed,
            answer: (),
        })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn list_plans(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    demand_sight(&api, &caller, &name).await?;
    plans::listed(&api, &entity_snapshot::product_plan_key(&name, "")).await
}

/// Refuses a caller who does not see a product.
async fn demand_sight(api: &Api, caller: &Caller, name: &str) -> Result<(), Problem> {
    if caller.can(Action::ApisRead, &Scope::Everything) {
        return Ok(());
    }
    ensure_visible(
        &api.snapshot().await?,
        caller,
        &entity_snapshot::product_key(name),
    )
}

pub async fn read_plan(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, plan)): Path<(String, String)>,
) -> Result<Response, Problem> {
    demand_sight(&api, &caller, &name).await?;
    plans::one(&api, &entity_snapshot::product_plan_key(&name, &plan)).await
}

/// Makes or changes a plan of a product. A plan that is closed closes its subscriptions.
pub async fn put_plan(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, plan)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    check_name(&plan)?;
    let mut body = body_of(&body)?;
    for (field, value) in [("product", &name), ("name", &plan)] {
        body[field] = value.as_str().into();
    }
    let entity: Plan = parse(&body)?;
    let is_sealed = api.store.is_sealed();
    let key = entity_snapshot::product_plan_key(&name, &plan);
    let stored = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            let product: Product = snapshot.get(&entity_snapshot::product_key(&name))?;
            let changed = affected(snapshot, &product.id())?;
            let serving = ProtectedServing::before(snapshot, &caller, changed.clone());
            let before: Option<Plan> = snapshot.find(&key)?;
            chains::permit_plan(&api, &caller, before.as_ref(), &entity)?;
            let mut entity = plans::ready(snapshot, before.as_ref(), entity.clone(), is_sealed)?;
            match entity.state {
                PlanState::Closed => plans::close_now(snapshot, &key, &mut entity)?,
                _ => snapshot.put(&key, &entity)?,
            }
            serving.demand(snapshot)?;
            Ok(WriteEffects {
                note: format!("PUT plan {plan} of the product {name}"),
                publications: changed,
                answer: (before.is_none(), entity),
            })
        })
        .await?;
    let (is_new, entity) = &stored.answer;
    let answer = answered(*is_new, &plans::redacted(json!(entity)));
    Ok(plans::advised(stored.tagged(answer), entity))
}

pub async fn delete_plan(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, plan)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let prefix = entity_snapshot::product_plan_key(&name, "");
    plans::remove(&api, (&caller, &headers), &prefix, &plan).await
}

/// Publishes, deprecates or closes a plan of a product.
pub async fn plan_state(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, plan)): Path<(String, String)>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<plans::NewState>,
) -> Result<Json<Value>, Problem> {
    let key = entity_snapshot::product_plan_key(&name, &plan);
    plans::set_state(&api, (&caller, &headers), &key, &wanted).await
}
