//! The calls for documents, and for what they come to: resources, lists, tries, history.

use super::{CREATES, DRY_RUN};
use crate::access::Action;
use crate::api::operation::{Operation, WRITES};
use crate::api::shapes::{
    Commit, DocumentChange, ImportResult, List, Resource, ResourcePage, RollbackResult,
};
use crate::api::{
    changes, checking, explain, health, history, import, plugins, resources, rollback, schema, secrets,
    sending, view,
};
use crate::catalogue::CataloguePlugin;
use axum::http::StatusCode;
use serde_json::{Map, Value};

pub(super) fn of_resources() -> Vec<Operation> {
    const ALL: &str = "/api/v1/resources/{kind}";
    const ONE: &str = "/api/v1/resources/{kind}/{name}";
    let (read, write) = (Action::ConfigurationRead, Action::ConfigurationWrite);
    let operations = [
        Operation::get(ALL, "listResources", read, resources::list)
            .about("Resources", "Lists native resources of a kind")
            .query::<resources::Page>()
            .answers::<ResourcePage>(),
        Operation::post(ALL, "createResource", write, resources::create)
            .about("Resources", "Creates a native resource that must not exist")
            .headers(CREATES)
            .body::<Resource>()
            .status(StatusCode::CREATED)
            .answers::<Resource>(),
        Operation::get(ONE, "getResource", read, resources::read)
            .about("Resources", "Reads a native resource; its version is the ETag")
            .answers::<Resource>(),
        Operation::put(ONE, "putResource", write, resources::put)
            .about("Resources", "Creates or replaces a native resource")
            .description("201 if it did not exist, else 200. The version is the ETag.")
            .headers(WRITES)
            .body::<Resource>()
            .answers::<Resource>(),
        Operation::delete(ONE, "deleteResource", write, resources::delete)
            .about("Resources", "Removes a native resource")
            .headers(WRITES),
        Operation::get(
            "/api/v1/resources/{kind}/{name}/dependents",
            "listDependents",
            read,
            resources::dependents,
        )
        .about(
            "Resources",
            "Lists the native resources that could not be served without one",
        )
        .description("As long as there are any, it cannot be removed by itself.")
        .answers::<List<checking::Dependent>>(),
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
                "Creates a service with its routes from an OpenAPI document",
            )
            .description("The document may be JSON or YAML. A second import applies only the differences.")
            .headers(WRITES)
            .query::<import::ImportOptions>()
            .body_of("text/plain", None)
            .answers::<ImportResult>(),
    ];
    operations.into()
}

pub(super) fn of_views() -> Vec<Operation> {
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
            "Lists workspaces with the number of resources of each dialect",
        )
        .partial()
        .answers::<List<view::workspaces::Workspace>>(),
    ];
    operations.into()
}

/// The explanations of calls.
pub(super) fn of_explanations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/api/v1/explain",
            "explainCall",
            Action::ConfigurationRead,
            explain::explain,
        )
        .about(
            "Views",
            "Explains what would happen to a call: the route, every plugin's verdict, the target",
        )
        .description(
            "It uses the served configuration, an earlier revision, a draft, or documents that are not stored. \
             Nothing is sent.",
        )
        .body::<explain::ExplainRequest>()
        .answers::<explain::ExplainResponse>(),
        Operation::post(
            "/api/v1/explain/changes",
            "explainChanges",
            Action::ConfigurationRead,
            explain::effects::effects,
        )
        .about(
            "Views",
            "Lists the calls that go to other routes once documents are changed",
        )
        .description(
            "Calls that the routes would take are looked up before and after the change. Nothing is sent or stored.",
        )
        .body::<explain::effects::EffectsRequest>()
        .answers::<explain::effects::EffectsResponse>(),
        Operation::get(
            "/api/v1/consumers/{consumer}/routes",
            "listRoutesOfConsumer",
            Action::ConfigurationRead,
            explain::route_access::list,
        )
        .about("Views", "Lists the routes that a consumer may call, and why not the others")
        .description(
            "A plain call of each route is checked, with the credentials of the consumer. Counters of limits are \
             not checked.",
        )
        .query::<explain::route_access::RouteAccessQuery>()
        .answers::<explain::route_access::RouteAccessResponse>(),
    ]
}

/// The state of this process: health, plugins, state.
pub(super) fn of_state() -> Vec<Operation> {
    let operations = [
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
            "Reads the state of the configuration that this process serves or checks",
        )
        .answers::<Map<String, Value>>(),
    ];
    operations.into()
}

pub(super) fn of_tries() -> Vec<Operation> {
    vec![
        Operation::post("/api/v1/try", "sendCall", Action::CallsSend, sending::send)
            .about("Views", "Sends a call to the gateway of this process and returns the response")
            .description(
                "It goes only to the gateway's own listener; the host of the address becomes the `Host` header. At \
                 most 30 calls a minute, 1 MiB each way, 30 seconds.",
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
            "Lists secret stores, references to them, and whether each secret is available",
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
        .about("Views", "Reads a secret now, and says whether it is available")
        .description(
            "The answer does not hold the value, and does not say why a vault gives none: the log does. For a secret that \
             nothing served refers to, only public addresses and those of `--webhook-allow` are called. 30 a minute.",
        )
        .body::<secrets::SecretTestRequest>()
        .answers::<secrets::SecretStatus>(),
    ]
}

pub(super) fn of_history() -> Vec<Operation> {
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
            "Restores the configuration of a revision in one commit",
        )
        .headers(DRY_RUN)
        .body::<rollback::RollbackTarget>()
        .answers::<RollbackResult>(),
    ];
    operations.into()
}
