//! The calls for analytics, alerts, boards and reports.

use super::DRY_RUN;
use crate::access::Action;
use crate::api::operation::Operation;
use crate::api::shapes::List;
use crate::api::{alerts, analytics, boards, reports};
use axum::http::StatusCode;
use serde_json::{Map, Value};

/// Headers of a write, and of a removal, of a document that has a version.
const VERSIONED: &[&str] = &["If-Match", "If-None-Match", "Weir-Dry-Run"];
const MATCHES: &[&str] = &["If-Match"];

pub(super) fn of_analytics() -> Vec<Operation> {
    const RULES: &str = "/api/v1/alerts";
    const RULE: &str = "/api/v1/alerts/{id}";
    let (read, write) = (Action::AnalyticsRead, Action::AlertsWrite);
    let operations = [
        Operation::get(
            "/api/v1/analytics/definition",
            "getAnalyticsDefinition",
            read,
            analytics::definition,
        )
        .about(
            "Analytics",
            "Lists metrics and dimensions, and possible combinations",
        )
        .partial()
        .answers::<Map<String, Value>>(),
        Operation::post(
            "/api/v1/analytics/query",
            "queryAnalytics",
            read,
            analytics::query,
        )
        .about("Analytics", "Answers a query about calls")
        .description(
            "With `Accept: text/csv` the answer is CSV; this asks for the right to export, everywhere or in the parts that the filter names. `workspace` in the filter stands \
             for the services of a workspace, and `api` for those of an API where calls are not counted by APIs. A caller with the right in parts only names some of these in the filter: \
             workspaces, APIs (`api`) or environments (`environment`).",
        )
        .partial()
        .headers(&["Accept"])
        .body::<weir_analytics::query::Query>()
        .answers::<weir_analytics::query::QueryResponse>(),
        Operation::get("/api/v1/analytics/calls", "searchCalls", read, analytics::calls)
            .about("Analytics", "Searches the request log, the latest call first")
            .description("A caller with the right in parts only finds the calls of these.")
            .partial()
            .query::<analytics::CallsQuery>()
            .answers::<weir_analytics::calls::CallSearchResponse>(),
        Operation::get("/api/v1/analytics/live", "followCalls", read, analytics::live)
            .about(
                "Analytics",
                "Streams sampled calls as they end, as server-sent events",
            )
            .description("A caller with the right in parts only gets the calls of these.")
            .partial()
            .query::<analytics::CallsQuery>()
            .answers_of("text/event-stream", None),
        Operation::get(RULES, "listAlertRules", read, alerts::list)
            .about("Alerts", "Lists alert rules and their state")
            .description("A caller with the right in parts only sees those whose filters name such parts.")
            .partial()
            .answers::<List<alerts::RuleState>>(),
        Operation::post(RULES, "createAlertRule", write, alerts::create)
            .about(
                "Alerts",
                "Creates an alert rule; without an id, it gets one from its name",
            )
            .headers(DRY_RUN)
            .body::<weir_analytics::alerts::Rule>()
            .status(StatusCode::CREATED)
            .answers::<alerts::RuleState>(),
        Operation::get(RULE, "getAlertRule", read, alerts::show)
            .about("Alerts", "Reads an alert rule and its state")
            .partial()
            .answers::<alerts::RuleState>(),
        Operation::put(RULE, "putAlertRule", write, alerts::replace)
            .about(
                "Alerts",
                "Creates or replaces an alert rule; its alerts end if it watches something else",
            )
            .headers(VERSIONED)
            .body::<weir_analytics::alerts::Rule>()
            .answers::<alerts::RuleState>(),
        Operation::delete(RULE, "removeAlertRule", write, alerts::remove)
            .about("Alerts", "Removes an alert rule")
            .headers(MATCHES),
    ];
    operations.into()
}

/// What gateways deliver.
pub(super) fn of_deliveries() -> Vec<Operation> {
    let operations = [
        Operation::post(
            "/api/v1/gateways/{name}/analytics",
            "deliverAnalytics",
            Action::ConfigurationFollow,
            analytics::deliver,
        )
        .about("Gateways", "Takes a gateway's counts of calls")
        .partial()
        .body_of("application/octet-stream", None)
        .answers::<Map<String, Value>>(),
        Operation::post(
            "/api/v1/gateways/{name}/calls",
            "deliverCalls",
            Action::ConfigurationFollow,
            analytics::deliver_calls,
        )
        .about("Gateways", "Takes lines of a gateway's request log")
        .description(
            "At most 500. Those of environments that the gateway may not follow are left out; lines without one are of the \
             environment 'default'.",
        )
        .partial()
        .body::<analytics::DeliveredCalls>()
        .answers::<Map<String, Value>>(),
    ];
    operations.into()
}

pub(super) fn of_boards() -> Vec<Operation> {
    const BOARDS: &str = "/api/v1/boards";
    const BOARD: &str = "/api/v1/boards/{id}";
    let (read, write) = (Action::AnalyticsRead, Action::BoardsWrite);
    let operations = [
        Operation::get(BOARDS, "listBoards", read, boards::list)
            .about("Boards", "Lists boards: first those that Weir comes with")
            .description(
                "A caller with the right in parts only sees those that Weir comes with, and those whose filter \
                 names such parts.",
            )
            .partial()
            .answers::<List<boards::SavedBoard>>(),
        Operation::post(BOARDS, "createBoard", write, boards::create)
            .about("Boards", "Saves a board; without an id, it gets one of its title")
            .headers(DRY_RUN)
            .body::<weir_analytics::boards::Board>()
            .status(StatusCode::CREATED)
            .answers::<boards::SavedBoard>(),
        Operation::get(BOARD, "getBoard", read, boards::show)
            .about("Boards", "Reads a board")
            .partial()
            .answers::<boards::SavedBoard>(),
        Operation::put(BOARD, "putBoard", write, boards::replace)
            .about(
                "Boards",
                "Saves or replaces a board; not one that Weir comes with",
            )
            .headers(VERSIONED)
            .body::<weir_analytics::boards::Board>()
            .answers::<boards::SavedBoard>(),
        Operation::delete(BOARD, "removeBoard", write, boards::remove)
            .about("Boards", "Removes a saved board")
            .headers(MATCHES),
    ];
    operations.into()
}

pub(super) fn of_reports() -> Vec<Operation> {
    const REPORTS: &str = "/api/v1/reports";
    const REPORT: &str = "/api/v1/reports/{id}";
    let (read, write) = (Action::AnalyticsRead, Action::AlertsWrite);
    let operations = [
        Operation::get(REPORTS, "listReports", read, reports::list)
            .about("Reports", "Lists reports, and when each is sent next")
            .description("A caller with the right in parts only sees those whose filters name such parts.")
            .partial()
            .answers::<List<reports::ReportState>>(),
        Operation::post(REPORTS, "createReport", write, reports::create)
            .about(
                "Reports",
                "Creates a report; without an id, it gets one from its title",
            )
            .headers(DRY_RUN)
            .body::<weir_analytics::reports::ScheduledReport>()
            .status(StatusCode::CREATED)
            .answers::<reports::ReportState>(),
        Operation::get(REPORT, "getReport", read, reports::show)
            .about("Reports", "Reads a report, and when it is sent next")
            .partial()
            .answers::<reports::ReportState>(),
        Operation::put(REPORT, "putReport", write, reports::replace)
            .about("Reports", "Creates or replaces a report")
            .headers(VERSIONED)
            .body::<weir_analytics::reports::ScheduledReport>()
            .answers::<reports::ReportState>(),
        Operation::delete(REPORT, "removeReport", write, reports::remove)
            .about("Reports", "Removes a report")
            .headers(MATCHES),
        Operation::get(
            "/api/v1/reports/{id}/preview",
            "previewReport",
            read,
            reports::preview,
        )
        .about(
            "Reports",
            "Shows a report as its mail does, with its pictures in the page",
        )
        .partial()
        .query::<reports::PreviewQuery>()
        .answers_of("text/html", None),
        Operation::post("/api/v1/reports/{id}/send", "sendReport", write, reports::send)
            .about(
                "Reports",
                "Sends a report now: the last whole week or month, or the present one",
            )
            .headers(DRY_RUN)
            .body::<reports::SendReportRequest>()
            .status(StatusCode::ACCEPTED)
            .answers::<reports::SendReportResponse>(),
    ];
    operations.into()
}
