//! Reports in Weir's own API: reading and writing them, looking at one, and sending one now.

use super::Api;
use super::alerts::{check_id, id_of};
use super::analytics::{failed, read, wrong};
use super::is_dry_run;
use super::problem::Problem;
use super::shapes::List;
use super::writing::tried;
use crate::access::NoAudit;
use crate::analytics::reporting::{REPORTS, ReportError};
use crate::analytics::{Kept, now};
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use data_encoding::BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::SystemTime;
use weir_analytics::StoreError;
use weir_analytics::query::QueryError;
use weir_analytics::reports::{Period, Report, check_receivers};

/// Reports that there may be.
const MAX_REPORTS: usize = 200;
/// Fields that answers have beside those of a report.
const BESIDE: [&str; 1] = ["next"];
/// What the preview may do: show its own pictures and styles, and nothing else.
const PREVIEW_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox";

/// A report, and what is known of it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ReportState {
    /// The report.
    #[serde(flatten)]
    pub report: Report,
    /// When it is sent next, in seconds since the Unix epoch; `null`: it is not enabled.
    pub next: Option<u64>,
}

impl ReportState {
    fn of(report: Report) -> Self {
        let next = report.schedule.next_due(now()).ok().filter(|_| report.enabled);
        Self { report, next }
    }
}

/// Of which time a report is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Which {
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
    /// Of which time the report is.
    pub period: Which,
}

/// What is sent now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SendNow {
    /// The addresses that get it; left out: those of the report.
    pub to: Vec<String>,
    /// Of which time the report is.
    pub period: Which,
}

/// What was handed to the outbox.
#[derive(Serialize, JsonSchema)]
pub struct SentNow {
    /// The time that the report is of.
    pub period: Period,
    /// The addresses.
    pub to: Vec<String>,
}

fn period(report: &Report, which: Which) -> Result<Period, Problem> {
    let period = match which {
        Which::Last => report.schedule.last(now()),
        Which::Current => report.schedule.current(now()),
    };
    period.map_err(|error| wrong(&error))
}

impl Api {
    async fn report(&self, id: &str) -> Result<Report, Problem> {
        let wanted = id.to_owned();
        let found = self.analytics()?.with(move |kept| {
            let mut reports = kept.reports()?.into_iter();
            Ok(reports.find(|it| it.id == wanted))
        });
        let found = found.await.map_err(failed)?;
        found.ok_or_else(|| Problem::not_found(format_args!("the report '{id}'")))
    }
}

pub async fn list(State(api): State<Arc<Api>>) -> Result<Json<List<ReportState>>, Problem> {
    let reports = api.analytics()?.with(Kept::reports).await.map_err(failed)?;
    let items = reports.into_iter().map(ReportState::of).collect();
    Ok(Json(List { items }))
}

pub async fn show(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Json<ReportState>, Problem> {
    Ok(Json(ReportState::of(api.report(&id).await?)))
}

/// The report in a body. What answers have beside it may stand in there and is passed over.
fn report_of(body: &[u8]) -> Result<Report, Problem> {
    let mut report: Value = read(body)?;
    if let Some(fields) = report.as_object_mut() {
        BESIDE.iter().for_each(|it| drop(fields.remove(*it)));
    }
    serde_json::from_value(report)
        .map_err(|error| Problem::bad(format!("the report is not understood: {error}")))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let mut report = report_of(&body)?;
    if report.id.is_empty() {
        report.id = id_of(&report.title);
    }
    write(&api, (report, true), is_dry_run(&headers)).await
}

pub async fn replace(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let report = Report {
        id,
        ..report_of(&body)?
    };
    write(&api, (report, false), is_dry_run(&headers)).await
}

async fn write(api: &Api, (report, is_new): (Report, bool), is_dry: bool) -> Result<Response, Problem> {
    check_id(&report.id)?;
    report.check(now()).map_err(|error| wrong(&error))?;
    let written = api.analytics()?.with(move |kept| {
        if let Some(board) = &report.board
            && kept.board(board)?.is_none()
        {
            let message = format!("there is no board '{board}'; GET /api/v1/boards lists them");
            return Err(StoreError::Query(QueryError::new("board", message)));
        }
        let known = kept.reports()?;
        let is_known = known.iter().any(|it| it.id == report.id);
        if is_known && is_new {
            return Ok(Err(format!("there is a report '{}' already; use PUT", report.id)));
        }
        if !is_known && known.len() >= MAX_REPORTS {
            return Ok(Err(format!("there are {MAX_REPORTS} reports already")));
        }
        if !is_dry {
            let text =
                serde_json::to_string(&report).map_err(|error| StoreError::Engine(error.to_string()))?;
            kept.documents.put_document(REPORTS, &report.id, &text)?;
        }
        let status = if is_known {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        Ok(Ok((status, ReportState::of(report))))
    });
    match written.await.map_err(failed)? {
        Err(conflict) => Err(Problem::new(StatusCode::CONFLICT, conflict)),
        Ok((status, report)) if is_dry => Ok(tried((status, Json(report)))),
        Ok((status, report)) => Ok((status, Json(report)).into_response()),
    }
}

pub async fn remove(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let wanted = id.clone();
    let analytics = api.analytics()?;
    let removed = analytics.with(move |kept| kept.documents.remove_document(REPORTS, &wanted));
    match removed.await.map_err(failed)? {
        true => {
            analytics.forget_report(&id, SystemTime::now()).await;
            Ok(StatusCode::NO_CONTENT)
        }
        false => Err(Problem::not_found(format_args!("the report '{id}'"))),
    }
}

pub async fn preview(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(query): Query<PreviewQuery>,
) -> Result<Response, Problem> {
    let report = api.report(&id).await?;
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
    let asked: SendNow = match body.is_empty() {
        true => SendNow::default(),
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
    let sent = Json(SentNow {
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
