//! All calls of `/api/v1`. To add one, write what answers it and add its line to the list of its group; the router, the
//! check of rights and the OpenAPI document follow.

use super::operation::{Operation, WRITES};
use super::shapes::{
    AuditEntry, Commit, DocumentChange, GatewayList, ImportResult, List, ListedUser, NewUser,
    PermittedOperation, Resource, ResourcePage, RollbackResult,
};
use super::{
    Api, access, accounts, alerts, analytics, apis, boards, changes, current_user, describe, developers,
    draining, explain, gateways, health, history, import, people, plugins, reports, resources, roles,
    rollback, schema, secrets, sending, sync, view,
};
use crate::access::{Action, Caller};
use crate::catalogue::CataloguePlugin;
use crate::shared_limits::{LimitReport, LimitReportResponse};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

const CREATES: &[&str] = &["Weir-Dry-Run", "Weir-Note"];
const DRY_RUN: &[&str] = &["Weir-Dry-Run"];

/// The description, made once: it is the same for all.
static DESCRIPTION: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(describe::document(&all())));

/// Every call.
pub fn all() -> Vec<Operation> {
    let groups = [
        of_resources(),
        of_views(),
        of_tries(),
        of_history(),
        of_gateways(),
        of_access(),
        people::operations(),
        of_analytics(),
        of_boards(),
        of_reports(),
        apis::operations(),
        developers::operations(),
        of_itself(),
    ];
    groups.into_iter().flatten().collect()
}

fn of_resources() -> Vec<Operation> {
    const ALL: &str = "/api/v1/resources/{kind}";
    const ONE: &str = "/api/v1/resources/{kind}/{name}";
    let (read, write) = (Action::ConfigurationRead, Action::ConfigurationWrite);
    let operations = [
        Operation::get(ALL, "listResources", read, resources::list)
            .about("Resources", "Lists native resources of a kind")
            .query::<resources::Page>()
            .answers::<ResourcePage>(),
        Operation::post(ALL, "createResource", write, resources::create)
            .about("Resources", "Makes a native resource that must not exist")
            .headers(CREATES)
            .body::<Resource>()
            .status(StatusCode::CREATED)
            .answers::<Resource>(),
        Operation::get(ONE, "getResource", read, resources::read)
            .about("Resources", "Reads a native resource; its version is the ETag")
            .answers::<Resource>(),
        Operation::put(ONE, "putResource", write, resources::put)
            .about("Resources", "Makes or replaces a native resource")
            .description("201 if it did not exist, else 200. The version is the ETag.")
            .headers(WRITES)
            .body::<Resource>()
            .answers::<Resource>(),
        Operation::delete(ONE, "deleteResource", write, resources::delete)
            .about("Resources", "Removes a native resource")
            .headers(WRITES),
        Operation::post("/api/v1/changes", "changeResources", write, changes::change)
            .about(
                "Resources",
                "Changes several native resources in one commit: all of them, or none",
            )
            .headers(CREATES)
            .body::<changes::ChangesRequest>()
            .answers::<changes::ChangesResponse>(),
        Operation::get("/api/v1/schema", "getSchema", read, schema::read)
            .about("Resources", "Reads the JSON Schema of native resources")
            .answers_of("application/schema+json", None),
        Operation::post("/api/v1/import/openapi", "importOpenapi", write, import::import)
            .about(
                "Resources",
                "Makes a service with its routes of an OpenAPI document",
            )
            .description("The document may be JSON or YAML. A second import changes what has changed.")
            .headers(WRITES)
            .query::<import::ImportOptions>()
            .body_of("text/plain", None)
            .answers::<ImportResult>(),
    ];
    operations.into()
}

fn of_views() -> Vec<Operation> {
    let operations = [
        Operation::get(
            "/api/v1/view/{list}",
            "viewList",
            Action::ConfigurationRead,
            view::list,
        )
        .about(
            "Views",
            "Lists routes, services, upstreams, consumers, certificates or plugins of all dialects",
        )
        .description("Rows are in the words of Weir's model; each names its own document. Over files, too.")
        .partial()
        .query::<view::ViewQuery>()
        .answers::<view::ViewPage>(),
        Operation::get(
            "/api/v1/workspaces",
            "listWorkspaces",
            Action::ConfigurationRead,
            view::workspaces::list,
        )
        .about(
            "Views",
            "Lists workspaces: which dialects' resources lie in each, and how many",
        )
        .partial()
        .answers::<List<view::workspaces::Workspace>>(),
        Operation::post(
            "/api/v1/explain",
            "explainCall",
            Action::ConfigurationRead,
            explain::explain,
        )
        .about(
            "Views",
            "Tells what would happen to a call: the route, every plugin's verdict, the target",
        )
        .description(
            "By what is served now, an earlier revision, a draft, or documents that are not stored. Nothing is sent.",
        )
        .body::<explain::ExplainRequest>()
        .answers::<explain::ExplainResponse>(),
        Operation::get(
            "/api/v1/health/upstreams",
            "listUpstreamHealth",
            Action::GatewaysRead,
            health::list,
        )
        .about(
            "Views",
            "Lists the health of upstreams and their targets, as the gateway of this process sees it",
        )
        .answers::<List<health::UpstreamHealth>>(),
        Operation::get(
            "/api/v1/plugins",
            "listPlugins",
            Action::ConfigurationRead,
            plugins::list,
        )
        .about(
            "Views",
            "Lists the plugins of the catalogue with their names in each dialect",
        )
        .partial()
        .answers::<List<CataloguePlugin>>(),
        Operation::get(
            "/api/v1/plugins/{name}",
            "getPlugin",
            Action::ConfigurationRead,
            plugins::read,
        )
        .about(
            "Views",
            "Reads a plugin of the catalogue with the JSON Schemas of its configuration",
        )
        .partial()
        .answers::<plugins::DescribedPlugin>(),
        Operation::get(
            "/api/v1/state",
            "getState",
            Action::ConfigurationRead,
            plugins::state,
        )
        .about(
            "Views",
            "Reads how the configuration stands that this process serves or checks",
        )
        .answers::<Resource>(),
    ];
    operations.into()
}

fn of_tries() -> Vec<Operation> {
    vec![
        Operation::post("/api/v1/try", "sendCall", Action::CallsSend, sending::send)
            .about("Views", "Sends a call to the gateway of this process, and answers what came back")
            .description(
                "It goes to the gateway's own listener and nowhere else; the host of the address becomes the `Host` header. 30 \
                 calls a minute, 1 MiB each way, 30 seconds.",
            )
            .body::<sending::TryCallRequest>()
            .answers::<crate::try_it::TryItResponse>(),
        Operation::get(
            "/api/v1/secrets",
            "listSecrets",
            Action::ConfigurationRead,
            secrets::list,
        )
        .about(
            "Views",
            "Lists stores of secrets, what refers to them, and whether each secret can be had",
        )
        .description("As the process that answers sees it. No answer holds a value.")
        .partial()
        .answers::<secrets::SecretList>(),
        Operation::post(
            "/api/v1/secrets/test",
            "testSecret",
            Action::ConfigurationWrite,
            secrets::test,
        )
        .about("Views", "Asks for a secret now, and tells whether it can be had")
        .description(
            "The answer does not hold the value, and does not say why a vault gives none: the log does. For a secret that \
             nothing served refers to, only public addresses and those of `--webhook-allow` are called. 30 a minute.",
        )
        .body::<secrets::SecretTestRequest>()
        .answers::<secrets::SecretStatus>(),
    ]
}

fn of_history() -> Vec<Operation> {
    let read = Action::HistoryRead;
    let operations = [
        Operation::get("/api/v1/history", "listCommits", read, history::history)
            .about("History", "Lists commits, the latest first")
            .query::<history::HistoryQuery>()
            .answers::<List<Commit>>(),
        Operation::get("/api/v1/diff", "getDiff", read, history::diff)
            .about("History", "Compares the documents of two revisions")
            .query::<history::DiffQuery>()
            .answers::<List<DocumentChange>>(),
        Operation::post(
            "/api/v1/rollback",
            "rollback",
            Action::ConfigurationRollback,
            rollback::rollback,
        )
        .about(
            "History",
            "Makes the configuration what it was at a revision, in one commit",
        )
        .headers(DRY_RUN)
        .body::<rollback::RollbackTarget>()
        .answers::<RollbackResult>(),
    ];
    operations.into()
}

fn of_gateways() -> Vec<Operation> {
    let follow = Action::ConfigurationFollow;
    let operations = [
        Operation::get(
            "/api/v1/gateways",
            "listGateways",
            Action::GatewaysRead,
            gateways::list,
        )
        .about(
            "Gateways",
            "Lists gateways: what each serves, and how far it is behind",
        )
        .answers::<GatewayList>()
        .also("/gateways"),
        Operation::post(
            "/api/v1/gateways/{name}",
            "reportGateway",
            follow,
            gateways::report,
        )
        .about("Gateways", "Takes a gateway's report")
        .partial()
        .headers(DRY_RUN)
        .body::<gateways::GatewayReport>()
        .answers::<gateways::ReportResponse>(),
        Operation::put(
            "/api/v1/gateways/{name}/drain",
            "drainGateway",
            Action::EnvironmentsWrite,
            draining::drain,
        )
        .about("Gateways", "Takes a gateway out: it is not ready, and says that it drains")
        .description("It hears so with its next report, in 10 seconds at most, and goes on answering the calls that come.")
        .headers(DRY_RUN)
        .status(StatusCode::NO_CONTENT),
        Operation::delete(
            "/api/v1/gateways/{name}/drain",
            "takeGatewayBack",
            Action::EnvironmentsWrite,
            draining::take_back,
        )
        .about("Gateways", "Takes a gateway back that was taken out")
        .headers(DRY_RUN),
        Operation::delete(
            "/api/v1/gateways/{name}",
            "forgetGateway",
            Action::EnvironmentsWrite,
            gateways::forget,
        )
        .about("Gateways", "Forgets a gateway that is away")
        .description("One that is heard of is refused with 409: its next report would bring it back.")
        .headers(DRY_RUN),
        Operation::post(
            "/api/v1/gateways/{name}/limits",
            "settleLimits",
            follow,
            gateways::limits,
        )
        .about(
            "Gateways",
            "Takes what a gateway has counted for limits over all gateways, and tells what the others have",
        )
        .description("A caller with the right in environments only names these, and settles with no others.")
        .partial()
        .query::<gateways::LimitQuery>()
        .body::<LimitReport>()
        .answers::<LimitReportResponse>(),
        Operation::get("/api/v1/sync", "followConfiguration", follow, sync::sync)
            .about(
                "Gateways",
                "Streams the configuration to a gateway, a line of JSON at a time",
            )
            .description("A caller with the right in environments only names these, and follows no others.")
            .partial()
            .query::<sync::SyncQuery>()
            .answers_of("application/x-ndjson", None),
    ];
    operations.into()
}

fn of_access() -> Vec<Operation> {
    const USER: &str = "/api/v1/users/{name}";
    let manage = Action::UsersManage;
    let operations = [
        Operation::get("/api/v1/users", "listUsers", manage, accounts::list)
            .about("Access", "Lists users with their rights")
            .answers::<List<ListedUser>>(),
        Operation::post(USER, "addUser", manage, access::add_user)
            .about(
                "Access",
                "Makes a user, or gives one another token and other rights",
            )
            .description("The sessions and personal tokens of the one before end.")
            .headers(DRY_RUN)
            .body::<access::UserRequest>()
            .status(StatusCode::CREATED)
            .answers::<NewUser>(),
        Operation::delete(USER, "removeUser", manage, access::remove_user)
            .about("Access", "Removes a user, with all sessions and personal tokens")
            .headers(DRY_RUN),
        Operation::put(
            "/api/v1/users/{name}/rights",
            "setUserRights",
            manage,
            accounts::set_rights,
        )
        .about("Access", "Changes what a user may do")
        .headers(DRY_RUN)
        .body::<accounts::RightsRequest>()
        .answers::<ListedUser>(),
        Operation::put(
            "/api/v1/users/{name}/password",
            "setUserPassword",
            manage,
            accounts::set_password,
        )
        .about(
            "Access",
            "Gives a user another password, and ends all sessions of the user",
        )
        .headers(DRY_RUN)
        .body::<accounts::NewPassword>()
        .status(StatusCode::NO_CONTENT),
        Operation::delete(
            "/api/v1/users/{name}/sessions",
            "endUserSessions",
            manage,
            accounts::end_sessions,
        )
        .about("Access", "Ends all sessions of a user")
        .headers(DRY_RUN),
        Operation::get("/api/v1/roles", "listRoles", Action::Own, roles::list)
            .about("Access", "Lists roles, and what each allows")
            .answers::<roles::RoleTable>(),
        Operation::get("/api/v1/users/{name}/can", "askPermission", manage, roles::can)
            .about(
                "Access",
                "Tells whether a user may do something somewhere: by which right, or what is missing",
            )
            .query::<roles::PermissionQuery>()
            .answers::<roles::Verdict>(),
        Operation::get("/api/v1/audit", "listAudit", Action::AuditRead, access::audit)
            .about("Access", "Reads the audit log, the latest entry first")
            .query::<access::AuditLogQuery>()
            .answers::<List<AuditEntry>>()
            .also("/audit"),
    ];
    operations.into()
}

fn of_analytics() -> Vec<Operation> {
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
            "Reads which metrics and dimensions there are, and what is kept together",
        )
        .answers::<Resource>(),
        Operation::post(
            "/api/v1/analytics/query",
            "queryAnalytics",
            read,
            analytics::query,
        )
        .about("Analytics", "Answers a query about calls")
        .description(
            "With `Accept: text/csv` the answer is CSV; this asks for the right to export. `workspace` in the filter stands \
             for the services of a workspace; a caller with the right in workspaces only names one of these.",
        )
        .partial()
        .headers(&["Accept"])
        .body::<weir_analytics::query::Query>()
        .answers::<weir_analytics::query::QueryResponse>(),
        Operation::get("/api/v1/analytics/calls", "searchCalls", read, analytics::calls)
            .about("Analytics", "Searches the request log, the latest call first")
            .query::<analytics::CallsQuery>()
            .answers::<weir_analytics::calls::CallSearchResponse>(),
        Operation::get("/api/v1/analytics/live", "followCalls", read, analytics::live)
            .about(
                "Analytics",
                "Streams sampled calls as they end, as server-sent events",
            )
            .query::<analytics::CallsQuery>()
            .answers_of("text/event-stream", None),
        Operation::post(
            "/api/v1/gateways/{name}/analytics",
            "deliverAnalytics",
            Action::ConfigurationFollow,
            analytics::deliver,
        )
        .about("Gateways", "Takes a gateway's counts of calls")
        .partial()
        .body_of("application/octet-stream", None)
        .answers::<Resource>(),
        Operation::get(RULES, "listAlertRules", read, alerts::list)
            .about("Alerts", "Lists alert rules, and how they stand")
            .answers::<List<alerts::RuleState>>(),
        Operation::post(RULES, "createAlertRule", write, alerts::create)
            .about(
                "Alerts",
                "Makes an alert rule; without an id, it gets one of its name",
            )
            .headers(DRY_RUN)
            .body::<weir_analytics::alerts::Rule>()
            .status(StatusCode::CREATED)
            .answers::<alerts::RuleState>(),
        Operation::get(RULE, "getAlertRule", read, alerts::show)
            .about("Alerts", "Reads an alert rule, and how it stands")
            .answers::<alerts::RuleState>(),
        Operation::put(RULE, "putAlertRule", write, alerts::replace)
            .about(
                "Alerts",
                "Makes or replaces an alert rule; its alerts end if it watches something else",
            )
            .headers(DRY_RUN)
            .body::<weir_analytics::alerts::Rule>()
            .answers::<alerts::RuleState>(),
        Operation::delete(RULE, "removeAlertRule", write, alerts::remove)
            .about("Alerts", "Removes an alert rule"),
    ];
    operations.into()
}

fn of_boards() -> Vec<Operation> {
    const BOARDS: &str = "/api/v1/boards";
    const BOARD: &str = "/api/v1/boards/{id}";
    let (read, write) = (Action::AnalyticsRead, Action::BoardsWrite);
    let operations = [
        Operation::get(BOARDS, "listBoards", read, boards::list)
            .about("Boards", "Lists boards: first those that Weir comes with")
            .answers::<List<boards::SavedBoard>>(),
        Operation::post(BOARDS, "createBoard", write, boards::create)
            .about("Boards", "Saves a board; without an id, it gets one of its title")
            .headers(DRY_RUN)
            .body::<weir_analytics::boards::Board>()
            .status(StatusCode::CREATED)
            .answers::<boards::SavedBoard>(),
        Operation::get(BOARD, "getBoard", read, boards::show)
            .about("Boards", "Reads a board")
            .answers::<boards::SavedBoard>(),
        Operation::put(BOARD, "putBoard", write, boards::replace)
            .about(
                "Boards",
                "Saves or replaces a board; not one that Weir comes with",
            )
            .headers(DRY_RUN)
            .body::<weir_analytics::boards::Board>()
            .answers::<boards::SavedBoard>(),
        Operation::delete(BOARD, "removeBoard", write, boards::remove)
            .about("Boards", "Removes a saved board"),
    ];
    operations.into()
}

fn of_reports() -> Vec<Operation> {
    const REPORTS: &str = "/api/v1/reports";
    const REPORT: &str = "/api/v1/reports/{id}";
    let (read, write) = (Action::AnalyticsRead, Action::AlertsWrite);
    let operations = [
        Operation::get(REPORTS, "listReports", read, reports::list)
            .about("Reports", "Lists reports, and when each is sent next")
            .answers::<List<reports::ReportState>>(),
        Operation::post(REPORTS, "createReport", write, reports::create)
            .about(
                "Reports",
                "Makes a report; without an id, it gets one of its title",
            )
            .headers(DRY_RUN)
            .body::<weir_analytics::reports::ScheduledReport>()
            .status(StatusCode::CREATED)
            .answers::<reports::ReportState>(),
        Operation::get(REPORT, "getReport", read, reports::show)
            .about("Reports", "Reads a report, and when it is sent next")
            .answers::<reports::ReportState>(),
        Operation::put(REPORT, "putReport", write, reports::replace)
            .about("Reports", "Makes or replaces a report")
            .headers(DRY_RUN)
            .body::<weir_analytics::reports::ScheduledReport>()
            .answers::<reports::ReportState>(),
        Operation::delete(REPORT, "removeReport", write, reports::remove)
            .about("Reports", "Removes a report"),
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

fn of_itself() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/me/can", "getMyPermissions", Action::Own, permissions)
            .about(
                "Me",
                "Lists every call of this API, whether the caller may make it, and where",
            )
            .answers::<List<PermittedOperation>>(),
        Operation::get("/api/v1/openapi.json", "getOpenapi", Action::Own, openapi)
            .about("API", "This document")
            .answers::<Resource>(),
    ]
}

/// Every call with the right that it asks for, and whether a right in a part is enough; made once.
static PERMISSIONS: LazyLock<Vec<(&'static str, Action, bool)>> = LazyLock::new(|| {
    let all = all();
    let one = |it: &Operation| (it.id, it.action, it.is_partial || it.path.contains('{'));
    all.iter().map(one).collect()
});

async fn permissions(Extension(caller): Extension<Caller>) -> Json<List<PermittedOperation>> {
    let all = PERMISSIONS.iter();
    let items = all.map(|(id, action, has_parts)| current_user::permitted(&caller, id, *action, *has_parts));
    Json(List {
        items: items.collect(),
    })
}

async fn openapi() -> Json<Arc<Value>> {
    Json(Arc::clone(&DESCRIPTION))
}

/// Joins all calls into a router.
pub(super) fn router() -> axum::Router<Arc<Api>> {
    let routes = all().into_iter().flat_map(Operation::into_routes);
    routes.fold(axum::Router::new(), |router, (path, handler)| {
        router.route(path, handler)
    })
}

#[cfg(test)]
mod tests;
