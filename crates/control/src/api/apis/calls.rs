//! The calls of API management, for the table of all calls.

use super::{
    adopting, approvals, call_tests, credentials, entities, fetching, hooks, lifecycle, plans, products,
    publish, reading, reviews, subscriptions, versions,
};
use crate::access::Action;
use crate::api::operation::{Operation, WRITES};
use crate::api::shapes::List;
use crate::api::shapes::lifecycle::{
    AdoptionResponse, ApprovalResponse, CredentialResponse, DiffResponse, DraftResponse, HookResponse,
    LintResponse, PublicationResponse, PublishRefusal, PublishResponse, ReviewResponse, StepResponse,
    SubscriptionResponse, VersionResponse, VersionSummary,
};
use axum::http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use weir_apis::call_tests::TestReport;
use weir_apis::entities::{
    Api, Application, Approval, CallTest, Canary, Deprecation, Environment, Hook, Plan, Product, Publication,
    Revision, Subscription, Version,
};

const JSON: &str = "application/json";
/// What a note is.
const NOTE: &str = "Why, for the history.";
/// What refuses a publish, of which a dry run says more.
const REFUSED: &[StatusCode] = &[StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];
const DRY_RUN: &[&str] = &["Weir-Dry-Run"];
const MATCHES: &[&str] = &["If-Match", "If-None-Match", "Weir-Dry-Run"];
const ENVIRONMENT: &str = "/api/v1/environments/{environment}";
const API: &str = "/api/v1/apis/{api}";
const VERSIONS: &str = "/api/v1/apis/{api}/versions";
const VERSION: &str = "/api/v1/apis/{api}/versions/{version}";
const PLAN: &str = "/api/v1/apis/{api}/versions/{version}/plans/{plan}";
const PUBLICATION: &str = "/api/v1/publications/{api}/{version}/{environment}";
const APPLICATION: &str = "/api/v1/applications/{name}";
const SUBSCRIPTION: &str = "/api/v1/subscriptions/{id}";

/// All of them.
pub fn operations() -> Vec<Operation> {
    let groups = [
        of_environments(),
        of_apis(),
        of_documents(),
        of_versions(),
        of_revisions(),
        of_reviews(),
        of_tests(),
        of_adoption(),
        of_plans(),
        of_publications(),
        of_products(),
        of_subscribers(),
        of_credentials(),
        of_approvals(),
        of_hooks(),
        super::webhooks::operations(),
        super::portals::operations(),
        super::portal_files::operations(),
    ];
    groups.into_iter().flatten().collect()
}

/// A write of a document: dry runs are possible, and what goes in comes out.
fn written<T: JsonSchema>(operation: Operation) -> Operation {
    operation.headers(DRY_RUN).body::<T>().answers::<T>()
}

/// A write of a document whose version a call may name.
fn versioned<T: JsonSchema>(operation: Operation) -> Operation {
    written::<T>(operation).headers(WRITES)
}

/// A write of a draft: of the version's fields, or of its document alone.
fn drafted(operation: Operation) -> Operation {
    operation.headers(DRY_RUN).body::<versions::Edit>()
}

/// The body of a step that needs none: why it is made.
fn only_note(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": { "note": { "type": "string", "description": NOTE } },
    })
}

/// The body of a step: a value, and beside its fields why it is made.
fn with_note<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    add_field(
        &mut schema,
        ("note", json!({ "type": "string", "description": NOTE })),
    );
    schema
}

/// The same of a step that is refused if it takes calls of others.
fn with_force<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let force = json!({
        "type": "boolean",
        "default": false,
        "description": "Does it although others take these calls.",
    });
    let mut schema = with_note::<T>(generator);
    add_field(&mut schema, ("force", force));
    schema
}

fn add_field(schema: &mut Schema, (name, of): (&str, Value)) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().for_each(|it| {
        it.insert(name.to_owned(), of.clone());
    });
}

fn of_environments() -> Vec<Operation> {
    use entities::environments::{create, delete, list, put, read};
    const ALL: &str = "/api/v1/environments";
    let (see, write) = (Action::EnvironmentsRead, Action::EnvironmentsWrite);
    vec![
        Operation::get(ALL, "listEnvironments", see, list)
            .about(
                "Environments",
                "Lists environments; with a right in an API only, without their plugins and variables",
            )
            .partial()
            .answers::<List<Environment>>(),
        written::<Environment>(Operation::post(ALL, "createEnvironment", write, create))
            .about("Environments", "Creates an environment")
            .status(StatusCode::CREATED),
        Operation::get(ENVIRONMENT, "getEnvironment", see, read)
            .about("Environments", "Reads an environment")
            .answers::<Environment>(),
        versioned::<Environment>(Operation::put(ENVIRONMENT, "putEnvironment", write, put)).about(
            "Environments",
            "Creates or changes an environment, and renders its publications again",
        ),
        Operation::delete(ENVIRONMENT, "deleteEnvironment", write, delete)
            .about("Environments", "Removes an environment without publications")
            .headers(WRITES),
    ]
}

fn of_apis() -> Vec<Operation> {
    use entities::definitions::{create, delete, list, put, read};
    const ALL: &str = "/api/v1/apis";
    let (see, write) = (Action::ApisRead, Action::ApisWrite);
    vec![
        Operation::get(ALL, "listApis", see, list)
            .about("APIs", "Lists the APIs that the caller may read")
            .partial()
            .answers::<List<Api>>(),
        written::<Api>(Operation::post(ALL, "createApi", write, create))
            .about("APIs", "Creates an API")
            .status(StatusCode::CREATED),
        Operation::get(API, "getApi", see, read)
            .about("APIs", "Reads an API")
            .answers::<Api>(),
        versioned::<Api>(Operation::put(API, "putApi", write, put))
            .about("APIs", "Creates or changes an API"),
        Operation::delete(API, "deleteApi", write, delete)
            .about("APIs", "Removes an API without versions")
            .headers(WRITES),
    ]
}

fn of_documents() -> Vec<Operation> {
    vec![
        Operation::post(
            "/api/v1/documents/fetch",
            "fetchDocument",
            Action::ApisWrite,
            fetching::fetch,
        )
        .about("APIs", "Fetches a document from an address, for a new API or version")
        .description(
            "Public addresses, and networks that `--document-allow` names; at most 8 MiB; redirections are not followed. \
             Nothing is stored.",
        )
        .body::<fetching::FetchDocumentRequest>()
        .answers::<fetching::FetchDocumentResponse>(),
    ]
}

fn of_versions() -> Vec<Operation> {
    let (see, write) = (Action::ApisRead, Action::ApisWrite);
    vec![
        Operation::get(VERSIONS, "listVersions", see, versions::list)
            .about("APIs", "Lists the versions of an API")
            .answers::<List<Version>>(),
        drafted(Operation::post(
            VERSIONS,
            "createVersion",
            write,
            versions::create,
        ))
        .answers::<VersionResponse>()
        .about(
            "APIs",
            "Creates a version from an OpenAPI document or a Postman collection",
        )
        .description("The body is the document in JSON or YAML, or a map with it in `spec`.")
        .query::<versions::NewVersion>()
        .status(StatusCode::CREATED),
        Operation::get("/api/v1/versions", "listAllVersions", see, reading::versions)
            .about(
                "APIs",
                "Lists the versions of all APIs that the caller may read, without their drafts",
            )
            .partial()
            .answers::<List<VersionSummary>>(),
        Operation::get(
            "/api/v1/apis/{api}/versions/{version}/spec",
            "getSpec",
            see,
            reading::spec,
        )
        .about("APIs", "Reads the document of a version as it was uploaded")
        .query::<reading::SpecQuery>()
        .answers_of("text/plain", None),
        Operation::get(VERSION, "getVersion", see, versions::read)
            .about("APIs", "Reads a version: its draft, operations and lint findings")
            .answers::<VersionResponse>(),
        drafted(Operation::put(VERSION, "putDraft", write, versions::put))
            .headers(WRITES)
            .answers::<DraftResponse>()
            .about("APIs", "Changes the draft of a version")
            .description(
                "If a document is uploaded again, it is merged: additions to its operations are kept.",
            ),
        Operation::delete(VERSION, "deleteVersion", write, versions::delete)
            .about(
                "APIs",
                "Removes a version that is published nowhere, with its revisions, plans and tests",
            )
            .headers(WRITES),
        Operation::post(
            "/api/v1/apis/{api}/versions/{version}/lint",
            "lintVersion",
            see,
            versions::lint,
        )
        .about(
            "APIs",
            "Lints the draft, with another severities file if one is given",
        )
        .body::<versions::LintRequest>()
        .answers::<LintResponse>(),
    ]
}

fn of_revisions() -> Vec<Operation> {
    const REVISIONS: &str = "/api/v1/apis/{api}/versions/{version}/revisions";
    let (see, write) = (Action::ApisRead, Action::ApisWrite);
    vec![
        Operation::get(REVISIONS, "listRevisions", see, versions::revisions)
            .about("APIs", "Lists revisions")
            .answers::<List<Revision>>(),
        Operation::post(REVISIONS, "createRevision", write, versions::revise)
            .about("APIs", "Creates a revision of the draft")
            .headers(DRY_RUN)
            .body::<versions::RevisionRequest>()
            .status(StatusCode::CREATED)
            .answers::<Revision>(),
        Operation::get(
            "/api/v1/apis/{api}/versions/{version}/diff",
            "compareRevisions",
            see,
            versions::compare,
        )
        .about(
            "APIs",
            "Compares two revisions: what changed, and what breaks callers",
        )
        .query::<versions::RevisionDiffQuery>()
        .answers::<DiffResponse>(),
        Operation::get(
            "/api/v1/apis/{api}/versions/{version}/openapi",
            "exportVersion",
            see,
            versions::export,
        )
        .about(
            "APIs",
            "Exports a version as OpenAPI, with the gateway's servers and security",
        )
        .query::<versions::ExportQuery>()
        .answers::<Value>(),
    ]
}

fn of_reviews() -> Vec<Operation> {
    const REVIEW: &str = "/api/v1/apis/{api}/versions/{version}/review";
    vec![
        Operation::get(REVIEW, "getReview", Action::ApisRead, reviews::read)
            .about("APIs", "Reads the review state of a draft")
            .answers::<ReviewResponse>(),
        Operation::post(REVIEW, "requestReview", Action::ApisWrite, reviews::ask)
            .about("APIs", "Requests a review of a draft")
            .headers(DRY_RUN)
            .body::<reviews::ReviewRequest>()
            .answers::<ReviewResponse>(),
        Operation::delete(REVIEW, "withdrawReview", Action::ApisWrite, reviews::withdraw)
            .about("APIs", "Withdraws the caller's request for a review")
            .headers(DRY_RUN),
        Operation::post(
            "/api/v1/apis/{api}/versions/{version}/review/decision",
            "decideReview",
            Action::ApprovalsDecide,
            reviews::decide,
        )
        .about("APIs", "Approves a draft, or requests changes with a reason")
        .description(
            "The authors of the draft and the person who requested the review cannot approve it. A later \
            edit discards the review.",
        )
        .headers(DRY_RUN)
        .body::<reviews::ReviewDecision>()
        .answers::<ReviewResponse>(),
    ]
}

fn of_tests() -> Vec<Operation> {
    const ALL: &str = "/api/v1/apis/{api}/versions/{version}/tests";
    const TEST: &str = "/api/v1/apis/{api}/versions/{version}/tests/{test}";
    let (see, write) = (Action::ApisRead, Action::ApisWrite);
    vec![
        Operation::get(ALL, "listTests", see, call_tests::list)
            .about("APIs", "Lists the tests of a version")
            .answers::<List<CallTest>>(),
        Operation::get(TEST, "getTest", see, call_tests::read)
            .about("APIs", "Reads a test")
            .answers::<CallTest>(),
        Operation::put(TEST, "putTest", write, call_tests::put)
            .about(
                "APIs",
                "Creates or changes a test: a call and its expected result",
            )
            .description("Every publish and promotion of the version runs it, and is refused if it fails.")
            .headers(DRY_RUN)
            .body::<CallTest>()
            .answers::<CallTest>(),
        Operation::delete(TEST, "deleteTest", write, call_tests::delete)
            .about("APIs", "Removes a test")
            .headers(DRY_RUN),
        Operation::post(
            "/api/v1/apis/{api}/versions/{version}/tests/run",
            "runTests",
            see,
            call_tests::run,
        )
        .about(
            "APIs",
            "Runs tests against the draft, a revision, or a publication",
        )
        .description("Calls are explained, not sent.")
        .body::<call_tests::TestRun>()
        .answers::<TestReport>(),
    ]
}

fn of_adoption() -> Vec<Operation> {
    let write = Action::ApisWrite;
    vec![
        Operation::post("/api/v1/apis/{api}/adopt", "adoptService", write, adopting::adopt)
            .about(
                "APIs",
                "Creates a version from existing routes of any dialect and does not change them",
            )
            .description(
                "Their service is named as it is in explanations. A publish with `take_over` removes them.",
            )
            .headers(DRY_RUN)
            .body::<adopting::AdoptRequest>()
            .status(StatusCode::CREATED)
            .answers::<AdoptionResponse>(),
    ]
}

fn of_plans() -> Vec<Operation> {
    use plans::{NewState, list, put, read, state};
    let (see, write) = (Action::ApisRead, Action::ApisWrite);
    vec![
        Operation::get(
            "/api/v1/apis/{api}/versions/{version}/plans",
            "listPlans",
            see,
            list,
        )
        .about("Plans", "Lists the plans of a version")
        .answers::<List<Plan>>(),
        Operation::get(PLAN, "getPlan", see, read)
            .about("Plans", "Reads a plan")
            .answers::<Plan>(),
        versioned::<Plan>(Operation::put(PLAN, "putPlan", write, put))
            .about("Plans", "Creates or changes a plan"),
        Operation::delete(PLAN, "deletePlan", write, plans::delete)
            .about("Plans", "Removes a plan without subscribers")
            .headers(WRITES),
        Operation::post(
            "/api/v1/apis/{api}/versions/{version}/plans/{plan}/state",
            "setPlanState",
            write,
            state,
        )
        .about(
            "Plans",
            "Publishes, deprecates or closes a plan, and sets what happens to its subscriptions",
        )
        .headers(DRY_RUN)
        .body::<NewState>()
        .answers::<Plan>(),
    ]
}

/// What a publish answers, whichever call asks for it.
fn published(operation: Operation) -> Operation {
    operation
        .headers(MATCHES)
        .answers::<PublishResponse>()
        .refuses::<PublishRefusal>(REFUSED)
}

fn of_publications() -> Vec<Operation> {
    let (see, act) = (Action::ApisRead, Action::ApisPublish);
    let step = |path, id, summary, operation: fn(&'static str, &'static str, Action) -> Operation| {
        operation(path, id, act)
            .about("Publications", summary)
            .headers(DRY_RUN)
            .body_of(JSON, Some(only_note))
            .answers::<StepResponse>()
    };
    vec![
        Operation::get("/api/v1/publications", "listPublications", see, publish::list)
            .about(
                "Publications",
                "Lists the publications of the APIs and environments that the caller may read",
            )
            .partial()
            .answers::<List<Publication>>(),
        Operation::get(PUBLICATION, "getPublication", see, publish::read)
            .about("Publications", "Reads a publication with its history")
            .answers::<PublicationResponse>(),
        published(step(
            PUBLICATION,
            "publish",
            "Publishes a revision; a dry run lists the changes",
            |path, id, action| Operation::post(path, id, action, publish::publish),
        ))
        .body::<publish::PublishRequest>()
        .description("A concurrent publish gets 412 with the name of the winner."),
        Operation::delete(PUBLICATION, "removePublication", act, lifecycle::remove)
            .about("Publications", "Removes a publication with all its routes")
            .headers(DRY_RUN)
            .body::<lifecycle::Removal>()
            .description("With subscriptions it needs `force`, and their applications are notified."),
        published(step(
            "/api/v1/publications/{api}/{version}/{environment}/rollback",
            "rollbackPublication",
            "Publishes an older revision; the runtime stays",
            |path, id, action| Operation::post(path, id, action, publish::rollback),
        ))
        .body::<publish::PublishRequest>(),
        published(step(
            "/api/v1/publications/{api}/{version}/{environment}/promote",
            "promotePublication",
            "Publishes the same revision in another environment",
            |path, id, action| Operation::post(path, id, action, publish::promote),
        ))
        .body::<publish::PromoteRequest>(),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/deprecation",
            "deprecatePublication",
            "Deprecates a publication: callers get its end in headers",
            |path, id, action| Operation::put(path, id, action, lifecycle::deprecate),
        )
        .body_of(JSON, Some(with_note::<Deprecation>)),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/undeprecate",
            "undeprecatePublication",
            "Takes a deprecation back",
            |path, id, action| Operation::post(path, id, action, lifecycle::undeprecate),
        ),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/retire",
            "retirePublication",
            "Answers all calls with 410",
            |path, id, action| Operation::post(path, id, action, lifecycle::retire),
        ),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/canary",
            "startCanary",
            "Serves a share of the calls by another revision",
            |path, id, action| Operation::put(path, id, action, lifecycle::canary),
        )
        .body_of(JSON, Some(with_force::<Canary>))
        .description("It is refused if the candidate takes calls of other routes, unless `force` is true."),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/canary/abort",
            "abortCanary",
            "Serves all calls by the stable revision again",
            |path, id, action| Operation::post(path, id, action, lifecycle::abort_canary),
        ),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/disable",
            "disablePublication",
            "Disables a publication: its routes are removed until it is enabled",
            |path, id, action| Operation::post(path, id, action, lifecycle::disable),
        ),
        step(
            "/api/v1/publications/{api}/{version}/{environment}/enable",
            "enablePublication",
            "Serves its routes again",
            |path, id, action| Operation::post(path, id, action, lifecycle::enable),
        )
        .description("It is refused if other routes now match some of its calls, unless `force` is true."),
    ]
}

fn of_subscribers() -> Vec<Operation> {
    use entities::applications::{create, delete, list, put, read};
    const APPLICATIONS: &str = "/api/v1/applications";
    const ALL: &str = "/api/v1/subscriptions";
    let (see, write) = (Action::SubscriptionsRead, Action::SubscriptionsWrite);
    vec![
        Operation::get(APPLICATIONS, "listApplications", see, list)
            .about("Subscriptions", "Lists applications: all, or those that subscribe to what the caller may read")
            .partial()
            .answers::<List<Application>>(),
        written::<Application>(Operation::post(APPLICATIONS, "createApplication", write, create))
            .about("Subscriptions", "Creates an application")
            .partial()
            .status(StatusCode::CREATED),
        Operation::get(APPLICATION, "getApplication", see, read)
            .about("Subscriptions", "Reads an application")
            .partial()
            .answers::<Application>(),
        versioned::<Application>(Operation::put(APPLICATION, "putApplication", write, put))
            .about("Subscriptions", "Creates or changes an application")
            .description(
                "A right in an API is enough for an application that is no developer's and that subscribes to \
                 nothing else.",
            )
            .partial(),
        Operation::delete(APPLICATION, "deleteApplication", write, delete)
            .about("Subscriptions", "Removes an application without subscriptions")
            .partial()
            .headers(WRITES),
        Operation::get(ALL, "listSubscriptions", see, subscriptions::list)
            .about("Subscriptions", "Lists the subscriptions to what the caller may read")
            .partial()
            .answers::<List<Subscription>>(),
        Operation::post(ALL, "subscribe", write, subscriptions::create)
            .headers(DRY_RUN)
            .body::<subscriptions::NewSubscription>()
            .answers::<SubscriptionResponse>()
            .about("Subscriptions", "Subscribes an application to a plan")
            .partial()
            .description(
                "If the subscription is accepted immediately, its key, password or secret is in the answer and \
                 nowhere else.",
            )
            .status(StatusCode::CREATED),
        Operation::get(SUBSCRIPTION, "getSubscription", see, subscriptions::read)
            .about("Subscriptions", "Reads a subscription")
            .partial()
            .answers::<Subscription>(),
        Operation::post(
            "/api/v1/subscriptions/{id}/state",
            "setSubscriptionState",
            write,
            subscriptions::state,
        )
        .about(
            "Subscriptions",
            "Accepts, rejects, pauses, resumes, stops or closes a subscription",
        )
        .partial()
        .headers(DRY_RUN)
        .body::<subscriptions::NewState>()
        .answers::<Subscription>(),
        Operation::put(
            "/api/v1/subscriptions/{id}/ends",
            "setSubscriptionEnd",
            write,
            subscriptions::set_end,
        )
        .about("Subscriptions", "Changes when a subscription ends, or that it does not")
        .description("One that has ended already is opened again by its state, with a new end.")
        .partial()
        .headers(DRY_RUN)
        .body::<subscriptions::NewEnd>()
        .answers::<Subscription>(),
    ]
}

fn of_credentials() -> Vec<Operation> {
    const CREDENTIALS: &str = "/api/v1/subscriptions/{id}/credentials";
    let (see, write) = (Action::SubscriptionsRead, Action::SubscriptionsWrite);
    vec![
        Operation::get(CREDENTIALS, "listCredentials", see, credentials::list)
            .about(
                "Subscriptions",
                "Lists the credentials of a subscription, without secrets",
            )
            .partial()
            .answers::<List<CredentialResponse>>(),
        Operation::post(CREDENTIALS, "addCredential", write, credentials::add)
            .about(
                "Subscriptions",
                "Creates a credential, or replaces one; its secret is shown once, as `key`",
            )
            .partial()
            .headers(DRY_RUN)
            .body::<credentials::NewCredential>()
            .status(StatusCode::CREATED)
            .answers::<CredentialResponse>(),
        Operation::delete(
            "/api/v1/subscriptions/{id}/credentials/{credential}",
            "revokeCredential",
            write,
            credentials::revoke,
        )
        .about("Subscriptions", "Revokes a key immediately")
        .partial()
        .headers(DRY_RUN),
    ]
}

fn of_products() -> Vec<Operation> {
    const PRODUCT: &str = "/api/v1/products/{product}";
    const PLAN: &str = "/api/v1/products/{product}/plans/{plan}";
    let (see, write) = (Action::ApisRead, Action::ApisWrite);
    vec![
        Operation::get("/api/v1/products", "listProducts", see, products::list)
            .about(
                "Products",
                "Lists the products whose publications the caller may all read",
            )
            .partial()
            .answers::<List<Product>>(),
        Operation::get(PRODUCT, "getProduct", see, products::read)
            .about("Products", "Reads a product")
            .partial()
            .answers::<Product>(),
        versioned::<Product>(Operation::put(PRODUCT, "putProduct", write, products::put)).about(
            "Products",
            "Creates or changes a product: selected operations of several publications",
        ),
        Operation::delete(PRODUCT, "deleteProduct", write, products::delete)
            .about("Products", "Removes a product without subscriptions")
            .headers(WRITES),
        Operation::get(
            "/api/v1/products/{product}/plans",
            "listProductPlans",
            see,
            products::list_plans,
        )
        .about("Products", "Lists the plans of a product")
        .partial()
        .answers::<List<Plan>>(),
        Operation::get(PLAN, "getProductPlan", see, products::read_plan)
            .about("Products", "Reads a plan of a product")
            .partial()
            .answers::<Plan>(),
        versioned::<Plan>(Operation::put(PLAN, "putProductPlan", write, products::put_plan)).about(
            "Products",
            "Creates or changes a plan of a product; closing it closes its subscriptions",
        ),
        Operation::delete(PLAN, "deleteProductPlan", write, products::delete_plan)
            .about("Products", "Removes a plan without subscribers from a product")
            .headers(WRITES),
        Operation::post(
            "/api/v1/products/{product}/plans/{plan}/state",
            "setProductPlanState",
            write,
            products::plan_state,
        )
        .about(
            "Products",
            "Publishes, deprecates or closes a plan of a product, and sets what happens to its subscriptions",
        )
        .headers(DRY_RUN)
        .body::<plans::NewState>()
        .answers::<Plan>(),
    ]
}

fn of_hooks() -> Vec<Operation> {
    const HOOK: &str = "/api/v1/hooks/{hook}";
    let (see, write) = (Action::DeliveriesRead, Action::AlertsWrite);
    vec![
        Operation::get("/api/v1/hooks", "listHooks", see, hooks::list)
            .about("Deliveries", "Lists the servers that get events")
            .answers::<List<HookResponse>>(),
        Operation::get(HOOK, "getHook", see, hooks::read)
            .about("Deliveries", "Reads a hook, without its secret")
            .answers::<HookResponse>(),
        versioned::<Hook>(Operation::put(HOOK, "putHook", write, hooks::put))
            .answers::<HookResponse>()
            .about("Deliveries", "Creates or changes a hook")
            .description("The secret of a new one is in the answer, and nowhere else."),
        Operation::delete(HOOK, "deleteHook", write, hooks::delete)
            .about("Deliveries", "Removes a hook")
            .headers(WRITES),
        Operation::get("/api/v1/deliveries", "listDeliveries", see, hooks::deliveries)
            .about(
                "Deliveries",
                "Lists mails and webhooks with their attempts, the newest first",
            )
            .query::<hooks::DeliveryQuery>()
            .answers::<List<hooks::DeliveryResponse>>(),
        Operation::post(
            "/api/v1/deliveries/{id}/retry",
            "retryDelivery",
            write,
            hooks::retry,
        )
        .about("Deliveries", "Retries a mail or a webhook immediately")
        .status(StatusCode::ACCEPTED),
    ]
}

fn of_approvals() -> Vec<Operation> {
    const ALL: &str = "/api/v1/approvals";
    vec![
        Operation::get(ALL, "listApprovals", Action::ApprovalsRead, approvals::list)
            .about("Approvals", "Lists approvals of the APIs and environments that the caller may read")
            .partial()
            .answers::<List<ApprovalResponse>>(),
        Operation::post(ALL, "requestApproval", Action::ApisWrite, approvals::ask)
            .about("Approvals", "Requests an approval of one exact revision")
            .partial()
            .headers(DRY_RUN)
            .body::<approvals::NewApproval>()
            .status(StatusCode::CREATED)
            .answers::<Approval>(),
        Operation::post(
            "/api/v1/approvals/{id}/decision",
            "decideApproval",
            Action::ApprovalsDecide,
            approvals::decide,
        )
        .about(
            "Approvals",
            "Grants, refuses or withdraws an approval; the person who requested it cannot grant it",
        )
        .description(
            "The right in the API or in the environment of the publication is enough. The authors of the revision \
             cannot grant it either.",
        )
        .partial()
        .headers(DRY_RUN)
        .body::<approvals::Decision>()
        .answers::<Approval>(),
        Operation::delete(
            "/api/v1/approvals/{id}",
            "withdrawApproval",
            Action::ApisWrite,
            approvals::withdraw,
        )
        .about("Approvals", "Withdraws the caller's own request")
        .partial()
        .headers(DRY_RUN),
    ]
}
