//! Reports in Weir's own API: reading and writing them, looking at one, and sending one now.

use super::Api;
use super::analytics::{failed, read, wrong};
use super::analytics_documents::{DocumentWrite, Kind, id_of};
use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::shapes::List;
use super::writing::tried;
use super::{boards, is_dry_run, statistics};
use crate::access::{Action, Caller, NoAudit, Scope};
use crate::analytics::reporting::{REPORTS, ReportError};
use crate::analytics::{AnalyticsStorage, now};
use crate::api::json_body::Json;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::SystemTime;
use weir_analytics::StoreError;
use weir_analytics::query::QueryError;
use weir_analytics::reports::{Period, ScheduledReport, check_receivers};

const KIND: Kind = Kind {
    name: "report",
    stored: REPORTS,
    most: 200,
    beside: &["next", "etag"],
};
/// The rights of the preview: to show its own pictures and styles, and nothing else.
const PREVIEW_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox";

/// A report with its metadata.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ReportState {
    /// The report.
    #[serde(flatten)]
    pub report: ScheduledReport,
    /// When it is sent next, in seconds since the Unix epoch; `null`: it is not enabled.
    pub next: Option<u64>,
    /// Its version, as `If-Match` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl ReportState {
    fn of(report: ScheduledReport) -> Self {
        let next = report.schedule.next_due(now()).ok().filter(|_| report.enabled);
        let etag = Some(tag_of_content(&report));
        Self { report, next, etag }
    }

    /// As a caller may see it: addresses are for those who may change reports.
    fn shown_to(mut self, caller: &Caller) -> Self {
        if !caller.can(Action::AlertsWrite, &Scope::Everything) {
            self.report.to.clear();
        }
        self
    }
}

/// The period of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportPeriod {
    /// The last whole week or month.
    #[default]
    Last,
    /// The present one, up to now.
    Current,
}

/// Which time is shown.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PreviewQuery {
    /// The period of the report.
    pub period: ReportPeriod,
}

/// A report to send now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SendReportRequest {
    /// The addresses that get it; left out: those of the report.
    pub to: Vec<String>,
    /// The period of the report.
    pub period: ReportPeriod,
}

/// The report that was handed to the outbox.
#[derive(Serialize, JsonSchema)]
pub struct SendReportResponse {
    /// The time that the report is of.
    pub period: Period,
    /// The addresses.
    pub to: Vec<String>,
}

fn period(report: &ScheduledReport, which: ReportPeriod) -> Result<Period, Problem> {
    let period = match which {
        ReportPeriod::Last => report.schedule.last(now()),
        ReportPeriod::Current => report.schedule.current(now()),
    };
    period.map_err(|error| wrong(&error))
}

/// Whether the caller may see all numbers of a report.
pub fn is_seen(
    kept: &AnalyticsStorage,
    report: &ScheduledReport,
    caller: &Caller,
) -> Result<bool, StoreError> {
    if caller.can(Action::AnalyticsRead, &Scope::Everything) {
        return Ok(true);
    }
    Ok(match &report.board {
        Some(id) => kept.board(id)?.is_some_and(|it| boards::is_seen(&it, caller)),
        None => report
            .panels
            .iter()
            .all(|it| statistics::permit(caller, Action::AnalyticsRead, &it.query.filter).is_ok()),
    })
}

impl Api {
    /// A report that the caller may see.
    async fn seen_report(&self, id: &str, caller: Caller) -> Result<ScheduledReport, Problem> {
        let report = self.report(id).await?;
        let found = self.analytics()?.with(move |kept| {
            let seen = is_seen(kept, &report, &caller)?;
            Ok(seen.then_some(report))
        });
        let found = found.await.map_err(failed)?;
        found.ok_or_else(|| KIND.missing(id))
    }

    async fn report(&self, id: &str) -> Result<ScheduledReport, Problem> {
        let wanted = id.to_owned();
        let found = self.analytics()?.with(move |kept| {
            let mut reports = kept.reports()?.into_iter();
            Ok(reports.find(|it| it.id == wanted))
        });
        let found = found.await.map_err(failed)?;
        found.ok_or_else(|| KIND.missing(id))
    }
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<List<ReportState>>, Problem> {
    let seen = api.analytics()?.with(move |kept| {
        let mut seen = Vec::new();
        for report in kept.reports()? {
            if is_seen(kept, &report, &caller)? {
                seen.push(ReportState::of(report).shown_to(&caller));
            }
        }
        Ok(seen)
    });
    let items = seen.await.map_err(failed)?;
    Ok(Json(List { items }))
}

pub async fn show(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let report = ReportState::of(api.seen_report(&id, caller.clone()).await?);
    let tag = report.etag.clone();
    let answer = Json(report.shown_to(&caller)).into_response();
    Ok(with_tag(answer, tag.as_deref()))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut report: ScheduledReport = KIND.read(&body)?;
    if report.id.is_empty() {
        report.id = id_of(&report.title);
    }
    write(&api, (report, true), &headers).await
}

pub async fn replace(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let report = ScheduledReport {
        id,
        ..KIND.read(&body)?
    };
    write(&api, (report, false), &headers).await
}

async fn write(
    api: &Api,
    (report, is_new): (ScheduledReport, bool),
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    report.check(now()).map_err(|error| wrong(&error))?;
    let written = DocumentWrite {
        id: report.id.clone(),
        document: report,
        is_new,
        is_dry: is_dry_run(headers),
        precondition: Precondition::of(headers),
    };
    KIND.write(api.analytics()?, written, has_board, |_, report| {
        ReportState::of(report)
    })
    .await
}

/// Whether there is the board that a report shows.
fn has_board(kept: &AnalyticsStorage, report: &ScheduledReport) -> Result<(), StoreError> {
    match &report.board {
        Some(board) if kept.board(board)?.is_none() => {
            let message = format!("there is no board '{board}'; GET /api/v1/boards lists them");
            Err(StoreError::Query(QueryError::new("board", message)))
        }
        _ => Ok(()),
    }
}

pub async fn remove(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let analytics = api.analytics()?;
    let removed = KIND.remove::<ScheduledReport>(analytics, &id, &headers).await?;
    if !is_dry_run(&headers) {
        analytics.forget_report(&id, SystemTime::now()).await;
    }
    Ok(removed)
}

pub async fn preview(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<PreviewQuery>,
) -> Result<Response, Problem> {
    let report = api.seen_report(&id, caller).await?;
    let period = period(&report, query.period)?;
    let rendered = api
        .analytics()?
        .with(move |kept| kept.rendered(&report, period, now()));
    let rendered = rendered.await.map_err(failed)?;
    let mut html = rendered.html;
    for (name, png) in rendered.pictures {
        let data = format!("data:image/png;base64,{}", BASE64.encode(&png));
        html = html.replace(&format!("\"cid:{name}\""), &format!("\"{data}\""));
    }
    let head = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PREVIEW_POLICY),
    ];
    Ok((head, html).into_response())
}

pub async fn send(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let asked: SendReportRequest = match body.is_empty() {
        true => SendReportRequest::default(),
        false => read(&body)?,
    };
    let report = api.report(&id).await?;
    let to = match asked.to.is_empty() {
        true => report.to.clone(),
        false => {
            check_receivers("to", &asked.to).map_err(|error| wrong(&error))?;
            asked.to
        }
    };
    let period = period(&report, asked.period)?;
    let sent = Json(SendReportResponse {
        period,
        to: to.clone(),
    });
    if is_dry_run(&headers) {
        return Ok((Extension(NoAudit), tried((StatusCode::ACCEPTED, sent))).into_response());
    }
    let sending = api.analytics()?.send_report(
        &api.options.outbox,
        (&report, &to),
        (period, None),
        SystemTime::now(),
    );
    match sending.await {
        Ok(()) => Ok((StatusCode::ACCEPTED, sent).into_response()),
        Err(ReportError::NoMail) => {
            let problem = Problem::new(StatusCode::CONFLICT, ReportError::NoMail.to_string());
            Err(problem.of_type("no-mail"))
        }
        Err(ReportError::Numbers(error)) => Err(failed(error)),
        Err(ReportError::Schedule(error)) => Err(wrong(&error)),
        Err(ReportError::Outbox(error)) => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
        }
    }
}
