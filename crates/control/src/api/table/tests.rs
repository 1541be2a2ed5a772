//! The table of calls: its OpenAPI document, and who may call what.

use super::*;
use crate::access::{Caller, Right, Role, Scope, TokenHash, User};
use std::collections::BTreeSet;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/api.openapi.json");

#[test]
fn the_openapi_document_is_that_of_the_table() {
    let made = format!("{:#}\n", *DESCRIPTION);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(DOCUMENT, &made).expect("written");
    }
    let known = std::fs::read_to_string(DOCUMENT).expect("docs/schema/api.openapi.json");
    assert!(
        known == made,
        "docs/schema/api.openapi.json is out of date: run UPDATE_GOLDEN=1 cargo test -p weir-control --lib openapi"
    );
}

#[test]
fn operations_are_named_and_described() {
    let mut names = BTreeSet::new();
    for operation in all() {
        let what = format!("{} {}", operation.method, operation.path);
        assert!(names.insert(operation.id), "{what}: {} twice", operation.id);
        assert!(
            !operation.tag.is_empty() && !operation.summary.is_empty(),
            "{what}"
        );
        assert!(operation.path.starts_with("/api/v1/"), "{what}");
    }
}

/// The guard lets in without a token exactly the calls that the table says.
#[test]
fn public_calls_are_those_that_the_guard_lets_in() {
    let access = weir_dialect::Dialect::admin_access(&weir_native::NativeDialect);
    for operation in all() {
        let path = operation.path.replace(['{', '}'], "");
        let is_let_in = access.is_public(operation.method.as_str(), &path);
        assert_eq!(is_let_in, operation.is_public, "{} {path}", operation.method);
        assert!(!operation.is_public || operation.action == Action::Own, "{path}");
    }
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn walk(value: &Value, root: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let pointer = reference
                        .strip_prefix('#')
                        .expect("a reference into the document");
                    assert!(root.pointer(pointer).is_some(), "{reference}");
                }
                fields.values().for_each(|it| walk(it, root));
            }
            Value::Array(items) => items.iter().for_each(|it| walk(it, root)),
            _ => {}
        }
    }
    walk(&DESCRIPTION, &DESCRIPTION);
}

/// Which roles may make each call, with their rights everywhere. A call that is not here fails the test.
const ALLOWED: &[(&str, &[&str])] = &[
    ("listResources", READERS),
    ("createResource", &["write", "admin", "operator"]),
    ("getResource", READERS),
    ("getSchema", READERS),
    ("putResource", &["write", "admin", "operator"]),
    ("deleteResource", &["write", "admin", "operator"]),
    ("changeResources", &["write", "admin", "operator"]),
    ("importOpenapi", &["write", "admin", "operator"]),
    ("viewList", READERS),
    ("listWorkspaces", READERS),
    ("explainCall", READERS),
    ("explainChanges", READERS),
    ("listDependents", READERS),
    ("listRoutesOfConsumer", READERS),
    ("sendCall", &["write", "admin", "operator"]),
    ("listUpstreamHealth", READERS),
    ("listSecrets", READERS),
    ("testSecret", &["write", "admin", "operator"]),
    ("listPlugins", READERS),
    ("getPlugin", READERS),
    ("getState", READERS),
    ("listCommits", HISTORIANS),
    ("getDiff", HISTORIANS),
    ("rollback", ADMIN),
    ("listGateways", READERS),
    ("forgetGateway", OPERATORS),
    ("drainGateway", OPERATORS),
    ("undrainGateway", OPERATORS),
    ("reportGateway", &["gateway", "admin"]),
    ("syncLimits", &["gateway", "admin"]),
    ("followConfiguration", &["gateway", "admin"]),
    ("listUsers", ADMIN),
    ("addUser", ADMIN),
    ("removeUser", ADMIN),
    ("setUserRights", ADMIN),
    ("setUserPassword", ADMIN),
    ("endUserSessions", ADMIN),
    ("startOpenidLogin", EVERYBODY),
    ("finishOpenidLogin", EVERYBODY),
    ("listIdentityProviders", ADMIN),
    ("putIdentityProvider", ADMIN),
    ("removeIdentityProvider", ADMIN),
    ("followEvents", EVERYBODY),
    ("getLoginOptions", EVERYBODY),
    ("logIn", EVERYBODY),
    ("logOut", EVERYBODY),
    ("getMe", EVERYBODY),
    ("getMyPermissions", EVERYBODY),
    ("setMyPassword", EVERYBODY),
    ("listMySessions", EVERYBODY),
    ("endMySession", EVERYBODY),
    ("listMyTokens", EVERYBODY),
    ("createMyToken", EVERYBODY),
    ("removeMyToken", EVERYBODY),
    ("listRoles", EVERYBODY),
    ("checkPermission", ADMIN),
    ("listAudit", &["admin", "auditor"]),
    ("getAnalyticsDefinition", ANALYSTS),
    ("queryAnalytics", ANALYSTS),
    ("searchCalls", ANALYSTS),
    ("followCalls", ANALYSTS),
    ("deliverAnalytics", &["gateway", "admin"]),
    ("deliverCalls", &["gateway", "admin"]),
    ("listAlertRules", ANALYSTS),
    ("createAlertRule", &["write", "admin", "operator"]),
    ("getAlertRule", ANALYSTS),
    ("putAlertRule", &["write", "admin", "operator"]),
    ("removeAlertRule", &["write", "admin", "operator"]),
    ("listReports", ANALYSTS),
    ("getReport", ANALYSTS),
    ("previewReport", ANALYSTS),
    ("createReport", &["write", "admin", "operator"]),
    ("putReport", &["write", "admin", "operator"]),
    ("removeReport", &["write", "admin", "operator"]),
    ("sendReport", &["write", "admin", "operator"]),
    ("listBoards", ANALYSTS),
    ("getBoard", ANALYSTS),
    ("createBoard", BOARD_WRITERS),
    ("putBoard", BOARD_WRITERS),
    ("removeBoard", BOARD_WRITERS),
    ("listEnvironments", APPROVING_READERS),
    ("createEnvironment", OPERATORS),
    ("getEnvironment", APPROVING_READERS),
    ("putEnvironment", OPERATORS),
    ("deleteEnvironment", OPERATORS),
    ("listApis", API_READERS),
    ("createApi", API_OWNERS),
    ("getApi", API_READERS),
    ("putApi", API_OWNERS),
    ("deleteApi", API_OWNERS),
    ("listVersions", API_READERS),
    ("listAllVersions", API_READERS),
    ("getSpec", API_READERS),
    ("adoptService", API_OWNERS),
    ("createVersion", API_OWNERS),
    ("fetchDocument", API_OWNERS),
    ("getVersion", API_READERS),
    ("putDraft", API_OWNERS),
    ("deleteVersion", API_OWNERS),
    ("getReview", API_READERS),
    ("requestReview", API_OWNERS),
    ("withdrawReview", API_OWNERS),
    ("decideReview", APPROVERS),
    ("lintVersion", API_READERS),
    ("listRevisions", API_READERS),
    ("createRevision", API_OWNERS),
    ("compareRevisions", API_READERS),
    ("exportVersion", API_READERS),
    ("listTests", API_READERS),
    ("getTest", API_READERS),
    ("putTest", API_OWNERS),
    ("deleteTest", API_OWNERS),
    ("runTests", API_READERS),
    ("listPlans", API_READERS),
    ("getPlan", API_READERS),
    ("putPlan", API_OWNERS),
    ("deletePlan", API_OWNERS),
    ("setPlanState", API_OWNERS),
    ("listPublications", API_READERS),
    ("getPublication", API_READERS),
    ("removePublication", PUBLISHERS),
    ("publish", PUBLISHERS),
    ("rollbackPublication", PUBLISHERS),
    ("promotePublication", PUBLISHERS),
    ("deprecatePublication", PUBLISHERS),
    ("undeprecatePublication", PUBLISHERS),
    ("retirePublication", PUBLISHERS),
    ("startCanary", PUBLISHERS),
    ("abortCanary", PUBLISHERS),
    ("disablePublication", PUBLISHERS),
    ("enablePublication", PUBLISHERS),
    ("listApplications", API_READERS),
    ("createApplication", SUBSCRIBERS),
    ("getApplication", API_READERS),
    ("putApplication", SUBSCRIBERS),
    ("deleteApplication", SUBSCRIBERS),
    ("listSubscriptions", API_READERS),
    ("subscribe", SUBSCRIBERS),
    ("getSubscription", API_READERS),
    ("setSubscriptionState", SUBSCRIBERS),
    ("setSubscriptionEnd", SUBSCRIBERS),
    ("listCredentials", API_READERS),
    ("addCredential", SUBSCRIBERS),
    ("revokeCredential", SUBSCRIBERS),
    ("listApprovals", APPROVING_READERS),
    ("requestApproval", API_OWNERS),
    ("decideApproval", APPROVERS),
    ("withdrawApproval", API_OWNERS),
    ("listProducts", API_READERS),
    ("getProduct", API_READERS),
    ("putProduct", API_OWNERS),
    ("deleteProduct", API_OWNERS),
    ("getProductPlan", API_READERS),
    ("listProductPlans", API_READERS),
    ("putProductPlan", API_OWNERS),
    ("deleteProductPlan", API_OWNERS),
    ("setProductPlanState", API_OWNERS),
    ("listHooks", DELIVERY_READERS),
    ("getHook", DELIVERY_READERS),
    ("putHook", &["write", "admin", "operator"]),
    ("deleteHook", &["write", "admin", "operator"]),
    ("listDeliveries", DELIVERY_READERS),
    ("retryDelivery", &["write", "admin", "operator"]),
    ("listWebhooks", API_READERS),
    ("putWebhook", SUBSCRIBERS),
    ("deleteWebhook", SUBSCRIBERS),
    ("exportPortal", PORTAL_READERS),
    ("applyPortal", PORTAL_ADMINS),
    ("listPortals", PORTAL_READERS),
    ("getPortal", PORTAL_READERS),
    ("putPortal", PORTAL_ADMINS),
    ("deletePortal", PORTAL_ADMINS),
    ("listPages", PORTAL_READERS),
    ("getPage", PORTAL_READERS),
    ("putPage", PORTAL_ADMINS),
    ("deletePage", PORTAL_ADMINS),
    ("listDevelopers", DEVELOPER_ADMINS),
    ("createDeveloper", DEVELOPER_ADMINS),
    ("getDeveloper", DEVELOPER_ADMINS),
    ("changeDeveloper", DEVELOPER_ADMINS),
    ("deleteDeveloper", DEVELOPER_ADMINS),
    ("eraseDeveloper", DEVELOPER_ADMINS),
    ("removeDeveloperSecondFactor", DEVELOPER_ADMINS),
    ("approveDeveloper", DEVELOPER_ADMINS),
    ("refuseDeveloper", DEVELOPER_ADMINS),
    ("suspendDeveloper", DEVELOPER_ADMINS),
    ("resumeDeveloper", DEVELOPER_ADMINS),
    ("getOpenapi", EVERYBODY),
];
const DEVELOPER_ADMINS: &[&str] = &["write", "admin", "approver", "portal-admin"];
const PORTAL_ADMINS: &[&str] = &["write", "admin", "portal-admin"];
const PORTAL_READERS: &[&str] = &[
    "read",
    "write",
    "admin",
    "viewer",
    "api-owner",
    "operator",
    "portal-admin",
];
const BOARD_WRITERS: &[&str] = &["write", "admin", "api-owner", "operator", "analyst"];
const ADMIN: &[&str] = &["admin"];
const OPERATORS: &[&str] = &["admin", "operator"];
const APPROVERS: &[&str] = &["admin", "approver"];
const API_OWNERS: &[&str] = &["write", "admin", "api-owner"];
const PUBLISHERS: &[&str] = &["write", "admin", "api-owner", "operator"];
const SUBSCRIBERS: &[&str] = &["write", "admin", "api-owner", "portal-admin"];
const APPROVING_READERS: &[&str] = &[
    "read",
    "write",
    "admin",
    "viewer",
    "api-owner",
    "approver",
    "operator",
];
const API_READERS: &[&str] = &[
    "read",
    "write",
    "admin",
    "viewer",
    "api-owner",
    "approver",
    "operator",
    "portal-admin",
];
const DELIVERY_READERS: &[&str] = &["admin", "operator", "portal-admin"];
const READERS: &[&str] = &["read", "write", "admin", "viewer", "api-owner", "operator"];
const ANALYSTS: &[&str] = &[
    "read",
    "write",
    "admin",
    "viewer",
    "api-owner",
    "operator",
    "auditor",
    "analyst",
];
const HISTORIANS: &[&str] = &[
    "read",
    "write",
    "admin",
    "viewer",
    "api-owner",
    "operator",
    "auditor",
];
const EVERYBODY: &[&str] = &[
    "gateway",
    "read",
    "write",
    "admin",
    "viewer",
    "api-owner",
    "approver",
    "operator",
    "portal-admin",
    "auditor",
    "analyst",
];

#[test]
fn each_role_may_call_what_the_table_says() {
    let operations = all();
    for operation in &operations {
        let found = ALLOWED.iter().find(|(id, _)| *id == operation.id);
        let (_, allowed) = found.unwrap_or_else(|| panic!("{}: who may call it?", operation.id));
        for role in Role::all() {
            let (caller, path) = (
                caller(role, Scope::Everything),
                operation.path.replace(['{', '}'], ""),
            );
            let may = operation.refusal(&caller, &path).is_none();
            assert_eq!(
                may,
                allowed.contains(&role.as_str()),
                "{} as {}",
                operation.id,
                role.as_str()
            );
        }
    }
    for (id, _) in ALLOWED {
        assert!(
            operations.iter().any(|it| it.id == *id),
            "{id}: there is no such call"
        );
    }
}

fn caller(role: Role, scope: Scope) -> Caller {
    Caller::User(Arc::new(User {
        name: "x".to_owned(),
        token_hash: Some(TokenHash::of("x")),
        password_hash: None,
        rights: vec![Right { role, scope }],
        created: 0,
    }))
}
