//! The usage of an application: counts and times from analytics, what is left of each plan's limits, and the calls
//! that were refused, with the reason in words.

use super::authenticated_developer::AuthenticatedDeveloper;
use super::keys::{plan_of, subscriptions};
use super::operation::{Operation, Shared};
use crate::people::TeamRole;
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;
use weir_analytics::StoreError;
use weir_analytics::calls::{CallLine, Search};
use weir_analytics::query::{Length, OneOrMany, Query as Analysis, QueryResponse};
use weir_apis::entities::{Period, Product, SubscriptionState};
use weir_apis::quota::places;
use weir_control::api::Json;
use weir_control::api::Problem;

const DAY: u64 = 86_400;
/// The longest time that is shown, in days.
const MAX_DAYS: u64 = 90;
/// Calls that are listed.
const MAX_CALLS: usize = 200;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/apps/{app}/usage",
            (
                "getUsage",
                "Reads the usage of an application and the rest of its limits",
            ),
            usage,
        )
        .personal()
        .query::<UsageQuery>()
        .answers::<Usage>(),
        Operation::get(
            "/portal/v1/apps/{app}/calls",
            (
                "listCalls",
                "Lists the latest calls of an application, refused ones with the reason",
            ),
            calls,
        )
        .personal()
        .query::<CallFilter>()
        .answers::<CallList>(),
    ];
    Operation::tagged("Usage", operations)
}

/// How far back.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
pub struct UsageQuery {
    /// Days, 1 to 90.
    days: u64,
}

impl Default for UsageQuery {
    fn default() -> Self {
        Self { days: 1 }
    }
}

/// Which calls.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct CallFilter {
    /// `refused`: those that the gateway refused; left out: all that are kept.
    only: String,
}

/// The usage of an application.
#[derive(Serialize, JsonSchema)]
pub struct Usage {
    /// Calls.
    calls: u64,
    /// Calls that the gateway refused.
    refused: u64,
    /// Answers with a status from 500.
    errors: u64,
    /// The median time, in microseconds.
    p50_us: Option<f64>,
    /// The time that 95 of 100 calls do not exceed, in microseconds.
    p95_us: Option<f64>,
    /// By API.
    apis: Vec<ApiUsage>,
    /// The beginnings of the steps, in seconds since 1970.
    times: Vec<u64>,
    /// Calls in each step.
    series: Vec<f64>,
    /// The rest of each limit.
    quotas: Vec<Quota>,
    /// The number of limits whose remaining calls are not known yet.
    unknown_quotas: usize,
}

/// Calls of an API.
#[derive(Serialize, JsonSchema)]
pub struct ApiUsage {
    /// `API VERSION`.
    api: String,
    /// Calls.
    calls: u64,
    /// Calls that were refused.
    refused: u64,
}

/// The rest of a limit.
#[derive(Serialize, JsonSchema)]
pub struct Quota {
    /// The subscription.
    subscription: String,
    /// The publication; empty: it is to a product.
    publication: String,
    /// The product; empty: it is to a publication.
    product: String,
    /// The environment.
    environment: String,
    /// The plan.
    plan: String,
    /// Calls that the plan allows in a window.
    limit: u64,
    /// The window: `minute`, `hour`, `day`, `week` or `month`.
    per: String,
    /// Calls in this window.
    used: u64,
    /// Calls that are left.
    left: u64,
    /// When the next window begins, in seconds since 1970.
    resets: u64,
    /// Whether the number is the limiter's own. `false`: it is made of the calls that gateways have reported.
    is_exact: bool,
    /// Whether the environment's gateways count together. `false`: each counts by itself.
    is_shared: bool,
}

/// Calls.
#[derive(Serialize, JsonSchema)]
pub struct CallList {
    /// The latest first.
    items: Vec<CallRow>,
}

/// A call.
#[derive(Serialize, JsonSchema)]
pub struct CallRow {
    /// When, in milliseconds since 1970.
    time: u64,
    /// Method and path.
    operation: String,
    /// The status.
    status: u16,
    /// The time, in microseconds.
    total_us: u32,
    /// The id that the provider knows it by.
    request_id: String,
    /// Why it was refused; empty: it was not.
    reason: String,
}

fn failed(error: &StoreError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

fn off() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "calls are not counted here: analytics are off",
    )
    .of_type("analytics-off")
}

/// An answer of analytics.
pub async fn ask(portals: &Portals, query: Analysis, now: u64) -> Result<QueryResponse, Problem> {
    let analytics = portals.analytics.as_ref().ok_or_else(off)?;
    let asked = analytics.with(move |kept| kept.store.query(&query, now));
    asked.await.map_err(|error| failed(&error))
}

fn of_consumer(app: &str, metrics: &[&str], (from, to): (u64, u64)) -> Analysis {
    Analysis {
        metrics: metrics.iter().map(|it| (*it).to_owned()).collect(),
        filter: BTreeMap::from([("consumer".to_owned(), OneOrMany::One(app.to_owned()))]),
        ..Analysis::of("calls", from, to)
    }
}

fn total(answer: &QueryResponse, metric: &str) -> Option<f64> {
    answer.frames.first()?.total.get(metric).copied().flatten()
}

fn count(answer: &QueryResponse, metric: &str) -> u64 {
    // Counts are whole.
    total(answer, metric).unwrap_or(0.0) as u64
}

async fn usage(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
    Query(span): Query<UsageQuery>,
) -> Result<Json<Usage>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Viewer)?;
    let now = weir_model::unix_time::seconds(SystemTime::now());
    let from = now.saturating_sub(span.days.clamp(1, MAX_DAYS) * DAY);
    let whole = of_consumer(
        &name,
        &["calls", "refused", "errors_5xx", "latency_p50", "latency_p95"],
        (from, now),
    );
    let whole = ask(&portals, whole, now).await?;
    let series = Analysis {
        step: Some(Length::Text("auto".to_owned())),
        ..of_consumer(&name, &["calls"], (from, now))
    };
    let series = ask(&portals, series, now).await?;
    let by_service = Analysis {
        group_by: vec!["service".to_owned()],
        ..of_consumer(&name, &["calls", "refused"], (from, now))
    };
    let by_service = ask(&portals, by_service, now).await?;
    let (quotas, unknown_quotas) = quotas(&portals, &name, now).await?;
    let values = series.frames.first().and_then(|it| it.values.get("calls"));
    Ok(Json(Usage {
        calls: count(&whole, "calls"),
        refused: count(&whole, "refused"),
        errors: count(&whole, "errors_5xx"),
        p50_us: total(&whole, "latency_p50"),
        p95_us: total(&whole, "latency_p95"),
        apis: by_api(&by_service),
        series: values.map_or_else(Vec::new, |it| it.iter().map(|it| it.unwrap_or(0.0)).collect()),
        times: series.times,
        quotas,
        unknown_quotas,
    }))
}

/// Services are `ENV.API.VERSION.COMPONENT`; a version may have dots.
fn api_of(service: &str) -> String {
    let mut parts = service.splitn(3, '.');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(api), Some(rest)) => {
            let version = rest.rsplit_once('.').map_or(rest, |(version, _)| version);
            format!("{api} {version}")
        }
        _ => service.to_owned(),
    }
}

fn by_api(answer: &QueryResponse) -> Vec<ApiUsage> {
    let mut found: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for frame in &answer.frames {
        let service = frame.group.get("service").map_or("", String::as_str);
        let value = |metric: &str| frame.total.get(metric).copied().flatten().unwrap_or(0.0);
        let known = found.entry(api_of(service)).or_default();
        *known = (known.0 + value("calls"), known.1 + value("refused"));
    }
    let one = |(api, (calls, refused)): (String, (f64, f64))| ApiUsage {
        api,
        calls: calls as u64,
        refused: refused as u64,
    };
    found.into_iter().map(one).collect()
}

/// The rests of the limits of all subscriptions that are good, for each environment in which they count, and the number
/// of limits whose rest is unknown.
async fn quotas(portals: &Portals, app: &str, now: u64) -> Result<(Vec<Quota>, usize), Problem> {
    let (mut quotas, mut unknown) = (Vec::new(), 0);
    for subscription in subscriptions(portals, app) {
        if subscription.state != SubscriptionState::Accepted {
            continue;
        }
        let plan = plan_of(portals, &subscription).unwrap_or_default();
        let is_shared = plan.is_shared();
        let limits = plan.limits;
        let product: Option<Product> = portals
            .documents
            .get(&format!("apis/products/{}", subscription.product));
        for place in places(&subscription, product.as_ref()) {
            // A second is over before it is shown.
            for limit in limits.iter().filter(|it| it.per != Period::Second) {
                let asked = portals.meter.used(&place, (&subscription, limit.per), now).await;
                let Some(used) = asked.map_err(|error| failed(&error))? else {
                    unknown += 1;
                    continue;
                };
                quotas.push(Quota {
                    is_exact: used.is_exact,
                    is_shared,
                    subscription: subscription.id.clone(),
                    publication: subscription.publication.clone(),
                    product: subscription.product.clone(),
                    environment: place.environment.clone(),
                    plan: subscription.plan.clone(),
                    limit: limit.count,
                    per: super::catalogue_entries::word(&limit.per),
                    used: used.calls,
                    left: limit.count.saturating_sub(used.calls),
                    resets: used.resets,
                });
            }
        }
    }
    Ok((quotas, unknown))
}

/// Why a call was refused, for the one who called.
fn reason(line: &CallLine) -> String {
    match (&*line.refusal, line.status) {
        ("", 0..400) => "",
        ("", 400..500) => "The API answered that something is wrong with the call.",
        ("", _) => "The API failed.",
        ("unauthenticated", _) => "The key is missing, unknown, expired or revoked.",
        ("no_subscription", _) => "The application has no subscription to this API with this key.",
        ("subscription_paused", _) => "The provider has paused the subscription.",
        ("subscription_stopped", _) => "The subscription is stopped. You can start it again.",
        ("subscription_ended", _) => "The subscription has ended.",
        ("subscription_not_begun", _) => "The subscription has not begun yet.",
        ("not_in_plan", _) => "The plan of the subscription does not contain this operation.",
        ("retired", _) => "This version of the API is retired.",
        ("forbidden" | "plugin", 403) => "A rule of the API refuses this call.",
        ("rate_limited", _) => "The limit of the plan is used up for now.",
        ("plugin", 410) => "This version of the API is retired.",
        ("no_route", _) => "There is no such operation.",
        ("protocol", _) => "The request itself is broken or too large.",
        ("wrong_protocol", _) => "The API wants another protocol, such as HTTPS.",
        ("no_target" | "upstream_connect", _) => "The API's servers cannot be reached.",
        ("upstream_timeout", _) => "The API's servers took too long.",
        ("upstream_invalid", _) => "The API's servers broke off their answer.",
        ("unavailable", _) => "The gateway is overloaded or restarts.",
        ("internal", _) => "The gateway failed.",
        _ => "The gateway refused the call.",
    }
    .to_owned()
}

async fn calls(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
    Query(filter): Query<CallFilter>,
) -> Result<Json<CallList>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Viewer)?;
    let analytics = portals.analytics.as_ref().ok_or_else(off)?;
    let only_refused = filter.only == "refused";
    let search = Search {
        application: Some(name),
        limit: if only_refused { 1_000 } else { MAX_CALLS },
        ..Search::default()
    };
    let found = analytics.with(move |kept| {
        let found = kept.log.search(&search);
        found.map_err(|error| StoreError::Engine(format!("the request log: {error}")))
    });
    let found = found.await.map_err(|error| failed(&error))?;
    let rows = found
        .calls
        .iter()
        .filter(|it| !only_refused || !it.refusal.is_empty());
    let row = |it: &std::sync::Arc<CallLine>| CallRow {
        time: it.time,
        operation: format!("{} {}", it.method, it.path),
        status: it.status,
        total_us: it.total_us,
        request_id: it.request_id.to_string(),
        reason: reason(it),
    };
    Ok(Json(CallList {
        items: rows.take(MAX_CALLS).map(row).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_one_reason() {
        let reason_of = |refusal: &str, status: u16| {
            let line = CallLine {
                refusal: refusal.into(),
                status,
                ..CallLine::default()
            };
            reason(&line)
        };
        let closed = [
            "no_subscription",
            "subscription_paused",
            "subscription_stopped",
            "subscription_ended",
            "subscription_not_begun",
            "not_in_plan",
        ];
        let mut reasons: Vec<String> = closed.iter().map(|it| reason_of(it, 403)).collect();
        reasons.push(reason_of("retired", 410));
        reasons.push(reason_of("forbidden", 403));
        assert!(reasons.iter().all(|it| !it.contains(" or ")), "{reasons:?}");
        reasons.sort();
        reasons.dedup();
        assert_eq!(reasons.len(), closed.len() + 2, "{reasons:?}");
    }

    #[test]
    fn services_name_their_api() {
        for (service, expected) in [
            ("prod.orders.1.2.0.main", "orders 1.2.0"),
            ("prod.orders.1.main", "orders 1"),
            ("_other", "_other"),
        ] {
            assert_eq!(api_of(service), expected);
        }
    }
}
