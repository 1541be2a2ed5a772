//! The calls about gateways: the list of them, the reports that they make, and the counts that they share. What is known of
//! them is in [`super::fleet`].

use super::fleet::{GatewayReport, MAX_TEXT, OFFLINE_AFTER, ReportResponse};
use super::problem::Problem;
use super::sync::environments_of;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::{Caller, NoAudit};
use crate::api::json_body::Json;
use crate::shared_limits::{LimitReport, MAX_COUNTS, MAX_EXCHANGES};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;

/// Answers `GET /api/v1/gateways`.
pub async fn list(State(api): State<Arc<Api>>) -> Json<Value> {
    let state = api.options.followed.state();
    let items = api.options.gateways.to_json(SystemTime::now());
    Json(json!({ "revision": state.revision.0, "hash": state.hash, "items": items }))
}

/// Answers `POST /api/v1/gateways/{name}`.
pub async fn report(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(report): Json<GatewayReport>,
) -> Result<Response, Problem> {
    if name.len() > MAX_TEXT || !report.is_short() {
        let detail = format!("the name or a text of the report is longer than {MAX_TEXT} bytes");
        return Err(Problem::bad(detail));
    }
    let (gateways, now, is_dry) = (&api.options.gateways, SystemTime::now(), is_dry_run(&headers));
    if !is_dry {
        gateways.claim_name(&name, &caller, now)?;
    }
    // What it says counts in their rollouts, and for their credentials.
    let named = report.environments.join(",");
    environments_of(&caller, Some(named.as_str()).filter(|it| !it.is_empty()))?;
    if is_dry {
        return Ok(tried(Json(ReportResponse::default())));
    }
    gateways.note(&name, report, now);
    // Each report in the record would be a revision that gateways report in turn.
    let answer = ReportResponse {
        drain: gateways.is_drained(&name),
    };
    Ok((Extension(NoAudit), Json(answer)).into_response())
}

/// Forgets a gateway that is away. One that is still running would be back with its next report. What it has left in the
/// store goes by itself.
pub async fn forget(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let gateways = &api.options.gateways;
    let silence = gateways.silence(&name, SystemTime::now());
    let silence = silence.ok_or_else(|| Problem::not_found(format_args!("the gateway '{name}'")))?;
    if silence <= OFFLINE_AFTER {
        let detail = format!(
            "the gateway '{name}' reported {} s ago: stop it first, and wait until it is offline",
            silence.as_secs()
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    if is_dry_run(&headers) {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    gateways.forget(&name);
    // Another one of this name is not taken out.
    if gateways.is_drained(&name) {
        super::draining::write(&*api.store, &caller, (&name, false)).await?;
        gateways.note_drained(&name, false);
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// With whom a gateway settles its counts.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct LimitQuery {
    /// The environments that the gateway serves, with commas between them; left out: `default`.
    environment: Option<String>,
}

/// Takes what a gateway has counted, and returns what the others of its environments have.
pub async fn limits(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<LimitQuery>,
    Json(report): Json<LimitReport>,
) -> Result<Response, Problem> {
    let environments = environments_of(&caller, query.environment.as_deref())?;
    let gateways = &api.options.gateways;
    gateways.claim_name(&name, &caller, SystemTime::now())?;
    let exchange = gateways.limits(environments).ok_or_else(|| {
        Problem::bad(format!(
            "gateways of {MAX_EXCHANGES} other sets of environments share limits: that is the most"
        ))
    })?;
    let answer = exchange.merge_report(&name, &report, weir_plugin::system_clock());
    let answer = answer.ok_or_else(|| {
        Problem::bad(format!(
            "expected at most {MAX_COUNTS} counts with names of hexadecimal digits"
        ))
    })?;
    // Each report in the record would be a line four times in a second.
    Ok((Extension(NoAudit), Json(answer)).into_response())
}
