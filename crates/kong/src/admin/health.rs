//! `/upstreams/{…}/health` and the marks that clients set on targets. What is known of the health of targets comes
//! from elsewhere, through a [`HealthSource`](weir_dialect::HealthSource).

use super::call::ApiCall;
use super::failure::Failure;
use super::node::Node;
use super::page::{PageRequest, escape};
use super::path::{EntitySelector, uuid};
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use super::table::TableRow;
use crate::document::entity_type::{EntityType, entity_type};
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_dialect::{HealthState, TargetHealth, UpstreamHealth};

fn word(state: HealthState) -> &'static str {
    match state {
        HealthState::Healthy => "HEALTHY",
        HealthState::Unhealthy => "UNHEALTHY",
        HealthState::Unchecked => "HEALTHCHECKS_OFF",
    }
}

/// Answers a call about health; `None`: the path is about something else.
pub(super) fn answer(
    call: &ApiCall,
    view: WorkspaceView<'_>,
    node: &Node,
) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    Some(match path.as_slice() {
        ["upstreams", upstream, "health"] if call.is_read() => upstream_health(call, view, node, upstream),
        [
            "upstreams",
            upstream,
            "targets",
            target,
            rest @ ..,
            mark @ ("healthy" | "unhealthy"),
        ] if rest.len() <= 1 && call.method == Method::PUT => set(
            call,
            view,
            node,
            upstream,
            (target, rest.first().copied()),
            *mark == "healthy",
        ),
        ["upstreams", _, "health"] | ["upstreams", _, "targets", _, .., "healthy" | "unhealthy"] => {
            Err(Failure(ApiResponse::method_not_allowed()))
        }
        _ => return None,
    })
}

/// An entity type that there always is.
fn known(name: &str) -> &'static EntityType {
    entity_type(name).expect("invariant: upstreams and targets are entity types")
}

fn find(view: WorkspaceView<'_>, upstream: &str) -> Result<Arc<TableRow>, Failure> {
    let upstreams = known("upstreams");
    let found = EntitySelector::of(upstreams, upstream).find(upstreams, view.workspace)?;
    found.ok_or_else(Failure::not_found)
}

/// The name of an upstream in the model.
fn name_in_model(view: WorkspaceView<'_>, upstream: &TableRow) -> String {
    let name = match upstream.fields().remove("name") {
        Some(Value::String(name)) => name,
        _ => upstream.id.to_string(),
    };
    crate::incremental::name_in(view.name, &name)
}

fn upstream_health(
    call: &ApiCall,
    view: WorkspaceView<'_>,
    node: &Node,
    upstream: &str,
) -> Result<ApiResponse, Failure> {
    let found = find(view, upstream)?;
    let name = name_in_model(view, &found);
    let health = node.health.as_ref().and_then(|source| source.upstream(&name));
    if call.argument("balancer_health") == Some("1") {
        let details = json!({
            "health": word(health.map_or(HealthState::Unchecked, |it| it.state)),
            "id": found.id,
        });
        return Ok(ApiResponse::ok(
            &json!({ "data": details, "next": null, "node_id": node.id }),
        ));
    }
    let targets = view.workspace.table(known("targets"));
    let none = BTreeSet::new();
    let among = targets.referring("upstream", found.id).unwrap_or(&none);
    let page = PageRequest::read(call)?.page(targets, Some(among));
    let data: Vec<Value> = page
        .members
        .iter()
        .map(|target| target_json(target.answer_fields(), health.as_ref()))
        .collect();
    let mut body = json!({ "data": data, "next": null, "node_id": node.id });
    if let Some(offset) = &page.offset {
        body["next"] = format!("/upstreams/{upstream}/health?offset={}", escape(offset)).into();
        body["offset"] = offset.as_str().into();
    }
    Ok(ApiResponse::ok(&body))
}

/// A target with its health.
fn target_json(mut target: Map<String, Value>, health: Option<&UpstreamHealth>) -> Value {
    let name = target.get("target").and_then(Value::as_str).unwrap_or_default();
    let weight = target.get("weight").and_then(Value::as_u64).unwrap_or_default();
    let known = health.and_then(|health| health.targets.iter().find(|it| it.text() == name));
    let (word, data) = match known {
        Some(known) => (state_of(known), data_of(known, weight)),
        None if health.is_some() => ("DNS_ERROR", Value::Null),
        None => (word(HealthState::Unchecked), Value::Null),
    };
    target.insert("health".to_owned(), word.into());
    if !data.is_null() {
        target.insert("data".to_owned(), data);
    }
    target.into()
}

/// One healthy address makes a target healthy.
fn state_of(target: &TargetHealth) -> &'static str {
    let has = |state: HealthState| target.addresses.iter().any(|address| address.state == state);
    if !target.is_resolved || target.addresses.is_empty() {
        "DNS_ERROR"
    } else if has(HealthState::Healthy) {
        word(HealthState::Healthy)
    } else if has(HealthState::Unhealthy) {
        word(HealthState::Unhealthy)
    } else {
        word(HealthState::Unchecked)
    }
}

fn data_of(target: &TargetHealth, node_weight: u64) -> Value {
    let text = target.text();
    let (host, port) = text.rsplit_once(':').unwrap_or((&text, ""));
    // A target without an address is one whose name leads nowhere.
    let known = || target.addresses.iter().filter(|_| target.is_resolved);
    let weight = |is_wanted: fn(HealthState) -> bool| -> u32 {
        known().filter(|it| is_wanted(it.state)).map(|it| it.weight).sum()
    };
    let addresses: Vec<Value> = known()
        .map(|it| json!({ "ip": it.ip, "port": it.port, "weight": it.weight, "health": word(it.state) }))
        .collect();
    json!({
        "host": host,
        "port": port.parse::<u16>().ok(),
        "nodeWeight": node_weight,
        "weight": {
            "total": weight(|_| true),
            "available": weight(|state| state != HealthState::Unhealthy),
            "unavailable": weight(|state| state == HealthState::Unhealthy),
        },
        "addresses": addresses,
    })
}

/// Marks a target, named by its id or its text.
fn set(
    call: &ApiCall,
    view: WorkspaceView<'_>,
    node: &Node,
    upstream: &str,
    (target, address): (&str, Option<&str>),
    is_healthy: bool,
) -> Result<ApiResponse, Failure> {
    let upstream = find(view, upstream)?;
    let targets = view.workspace.table(known("targets"));
    let of_upstream = targets.referring("upstream", upstream.id).into_iter().flatten();
    let name = of_upstream
        .filter_map(|id| targets.get(*id))
        .filter_map(|kept| match kept.fields().remove("target") {
            Some(Value::String(name)) => Some((kept.id, name)),
            _ => None,
        })
        .find(|(id, name)| uuid(target) == Some(*id) || name == target)
        .map(|(_, name)| name)
        .ok_or_else(Failure::not_found)?;
    let mut fields = upstream.fields();
    if !fields.get("healthchecks").is_some_and(is_checked) {
        let name = match fields.remove("name") {
            Some(Value::String(name)) => name,
            _ => upstream.id.to_string(),
        };
        let message = format!("no healthchecker found for {name}");
        return Err(Failure::message(StatusCode::BAD_REQUEST, &message));
    }
    if call.dry_run {
        return Ok(ApiResponse::no_content().tried());
    }
    // Without a source no calls go anywhere from here.
    if let Some(source) = &node.health {
        source
            .mark(&name_in_model(view, &upstream), &name, address, is_healthy)
            .map_err(|reason| Failure::message(StatusCode::BAD_REQUEST, &reason))?;
    }
    Ok(ApiResponse::no_content())
}

/// Whether an upstream's targets are checked at all, actively or by their calls.
fn is_checked(checks: &Value) -> bool {
    const SWITCHES: [&str; 5] = [
        "/active/healthy/interval",
        "/active/unhealthy/interval",
        "/passive/unhealthy/tcp_failures",
        "/passive/unhealthy/timeouts",
        "/passive/unhealthy/http_failures",
    ];
    let is_on = |path: &str| {
        let value = checks.pointer(path).and_then(Value::as_f64);
        value.is_some_and(|value| value != 0.0)
    };
    SWITCHES.iter().any(|path| is_on(path))
}
