//! How a version does in each environment: now, and on each of the last 30 days. It is made of the calls that gateways
//! have counted; their number is not shown, since everybody who sees the API may ask.
//!
//! **What it is not**: a probe. If there are no calls, nothing is known, and the answer says so.

use super::operation::{Operation, Shared};
use super::usage::ask;
use super::versions::find_version;
use crate::state::{PortalContext, Portals};
use crate::version_status::{ByEnvironment, Counts, DAYS, EnvironmentStatus, Record};
use axum::Extension;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;
use weir_analytics::query::{Length, OneOrMany, Query, QueryResponse};
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// The call.
pub fn operations() -> Vec<Operation> {
    let about = (
        "getVersionStatus",
        "Reads how a version does now, and on each of the last 30 days",
    );
    let path = "/portal/v1/apis/{api}/versions/{version}/status";
    let operations = vec![Operation::get(path, about, status).answers::<VersionStatus>()];
    Operation::tagged("Catalogue", operations)
}

const DAY: u64 = 86_400;
/// The seconds that count as now.
const NOW: u64 = 900;
/// Environments that are counted separately.
const MAX_PLACES: usize = 50;

/// How a version does.
#[derive(Serialize, JsonSchema)]
pub struct VersionStatus {
    /// By environment; empty if analytics are off.
    items: Vec<EnvironmentStatus>,
}

async fn status(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<VersionStatus>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, &visit, (&name, &version))?;
    if portals.analytics.is_none() {
        // Nothing is known, and the page says nothing.
        return Ok(Json(VersionStatus { items: Vec::new() }));
    }
    let now = seconds(SystemTime::now());
    let key = format!("{name}/{version}");
    let ask = async || fetch_status(&portals, (&name, &version), now).await;
    let known = portals.statuses.get(key, now, ask).await?;
    let none = Record::default();
    let items = found.places.iter().map(|it| {
        let environment = &it.environment.name;
        known.get(environment).unwrap_or(&none).status_in(environment)
    });
    Ok(Json(VersionStatus {
        items: items.collect(),
    }))
}

/// What analytics say of a version.
async fn fetch_status(
    portals: &Portals,
    (name, version): (&str, &str),
    now: u64,
) -> Result<ByEnvironment, Problem> {
    let of = |from: u64, step: Option<Length>| Query {
        metrics: vec!["calls".to_owned(), "errors_5xx".to_owned()],
        group_by: vec!["environment".to_owned()],
        filter: BTreeMap::from([
            ("api".to_owned(), OneOrMany::One(name.to_owned())),
            ("version".to_owned(), OneOrMany::One(version.to_owned())),
        ]),
        limit: Some(MAX_PLACES),
        step,
        marks: Some(false),
        ..Query::of("calls", from, now)
    };
    let first = now / DAY * DAY - (DAYS - 1) * DAY;
    let by_day = ask(portals, of(first, Some(Length::Seconds(DAY))), now).await?;
    let lately = ask(portals, of(now - NOW, None), now).await?;
    Ok(read(&by_day, &lately))
}

/// The status in two answers of analytics.
fn read(by_day: &QueryResponse, lately: &QueryResponse) -> ByEnvironment {
    let mut found = ByEnvironment::new();
    for frame in &by_day.frames {
        let values = |metric: &str| frame.values.get(metric).cloned().unwrap_or_default();
        let pairs = values("calls").into_iter().zip(values("errors_5xx"));
        let days = pairs.map(|(calls, failed)| Counts {
            calls: calls.unwrap_or(0.0),
            failed: failed.unwrap_or(0.0),
        });
        let environment = frame.group.get("environment").cloned().unwrap_or_default();
        found.entry(environment).or_default().days = days.collect();
    }
    for frame in &lately.frames {
        let total = |metric: &str| frame.total.get(metric).copied().flatten().unwrap_or(0.0);
        let environment = frame.group.get("environment").cloned().unwrap_or_default();
        found.entry(environment).or_default().now = Counts {
            calls: total("calls"),
            failed: total("errors_5xx"),
        };
    }
    found
}
