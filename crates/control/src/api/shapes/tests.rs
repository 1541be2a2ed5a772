//! Real answers, read as the types that the OpenAPI document is made of.

use super::lifecycle::*;
use super::*;
use crate::access::Caller;
use crate::api::roles::{RoleTable, Verdict};
use crate::api::view::workspaces::Workspace;
use crate::api::{Api, ApiOptions, GatewayReport};
use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tower::ServiceExt;
use weir_apis::entities;
use weir_store::memory::MemoryStore;

async fn ask(api: &Arc<Api>, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = request.body(Body::from(body.to_owned())).expect("a call");
    let router = api.router().layer(Extension(Caller::LocalAnonymous));
    let answer = router.oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    (status, body.to_vec())
}

/// An answer, read as its type. Nothing is in the answer that the type does not have.
fn read<T: DeserializeOwned + Serialize>((_, body): &(u16, Vec<u8>)) -> T {
    let was: Value = serde_json::from_slice(body).expect("JSON");
    let read: T = serde_json::from_value(was.clone()).unwrap_or_else(|error| panic!("{error}: {was:#}"));
    let is = serde_json::to_value(&read).expect("JSON");
    assert!(holds(&is, &was), "{was:#} is not {is:#}");
    read
}

/// Whether all that was answered is in what was read.
fn holds(is: &Value, was: &Value) -> bool {
    match (is, was) {
        (Value::Object(is), Value::Object(was)) => was
            .iter()
            .all(|(name, it)| it.is_null() || is.get(name).is_some_and(|known| holds(known, it))),
        (Value::Array(is), Value::Array(was)) => {
            is.len() == was.len() && is.iter().zip(was).all(|(is, was)| holds(is, was))
        }
        (is, was) => is == was,
    }
}

#[tokio::test]
async fn answers_are_as_their_types_say() {
    let options = ApiOptions {
        dialects: crate::sample::all(),
        ..ApiOptions::default()
    };
    let known = options.gateways.clone();
    let api = Api::open(Arc::new(MemoryStore::new()), options)
        .await
        .expect("opened");
    let report = GatewayReport {
        state: "serving".to_owned(),
        environments: vec!["test".to_owned()],
        ..GatewayReport::default()
    };
    known.note("edge-1", report, SystemTime::now());
    let service = r#"{"url": "http://127.0.0.1:1", "routes": [{"name": "r", "paths": ["/r"]}]}"#;
    let made = ask(&api, "PUT", "/api/v1/resources/services/s", service).await;
    assert_eq!(made.0, 201, "{}", String::from_utf8_lossy(&made.1));
    let gateways = ask(&api, "GET", "/api/v1/gateways", "").await;
    assert_eq!(read::<GatewayList>(&gateways).items[0].environments, ["test"]);
    for (name, silent, expected) in [("edge-1", 0, 409), ("edge-2", 60, 204), ("edge-2", 0, 404)] {
        if silent > 0 {
            let seen = SystemTime::now() - Duration::from_secs(silent);
            known.note(name, GatewayReport::default(), seen);
        }
        let path = format!("/api/v1/gateways/{name}");
        let forgotten = ask(&api, "DELETE", &path, "").await;
        assert_eq!(forgotten.0, expected, "{}", String::from_utf8_lossy(&forgotten.1));
    }
    let history = ask(&api, "GET", "/api/v1/history", "").await;
    assert_eq!(read::<List<Commit>>(&history).items.len(), 1);
    let differences = ask(&api, "GET", "/api/v1/diff?from=0", "").await;
    assert_eq!(read::<List<DocumentChange>>(&differences).items.len(), 1);
    let page = ask(&api, "GET", "/api/v1/resources/services", "").await;
    read::<ResourcePage>(&page);
    let audit = ask(&api, "GET", "/api/v1/audit", "").await;
    read::<List<AuditEntry>>(&audit);
    let refused = ask(&api, "GET", "/api/v1/resources/services/none", "").await;
    assert_eq!((refused.0, read::<ProblemShape>(&refused).status), (404, 404));
    let user = ask(
        &api,
        "POST",
        "/api/v1/users/ann",
        r#"{"rights": [{"role": "admin"}]}"#,
    )
    .await;
    assert_eq!((user.0, read::<NewUser>(&user).name.as_str()), (201, "ann"));
    let listed = ask(&api, "GET", "/api/v1/users", "").await;
    read::<List<ListedUser>>(&listed);
    let roles = ask(&api, "GET", "/api/v1/roles", "").await;
    read::<RoleTable>(&roles);
    let workspaces = ask(&api, "GET", "/api/v1/workspaces", "").await;
    read::<List<Workspace>>(&workspaces);
    for (query, expected) in [
        ("action=audit:read", 200),
        ("action=apis:write&scope=api:orders", 200),
        ("action=apis:write&scope=", 200),
        ("action=none", 400),
        ("action=audit:read&scope=king", 400),
        ("scope=everything", 400),
    ] {
        let path = format!("/api/v1/users/ann/can?{query}");
        let verdict = ask(&api, "GET", &path, "").await;
        assert_eq!(
            verdict.0,
            expected,
            "{query}: {}",
            String::from_utf8_lossy(&verdict.1)
        );
        if expected == 200 {
            assert!(read::<Verdict>(&verdict).allowed, "{query}");
        }
    }
    let unknown = ask(&api, "GET", "/api/v1/users/none/can?action=audit:read", "").await;
    assert_eq!(unknown.0, 404);
}

/// Documents are answered as they are stored; answers that hold more or less have a type of their own.
#[tokio::test]
async fn answers_of_api_management_are_as_their_types_say() {
    let options = ApiOptions {
        dialects: crate::sample::all(),
        ..ApiOptions::default()
    };
    let api = Api::open(Arc::new(MemoryStore::new()), options)
        .await
        .expect("opened");
    let call = async |method: &str, path: &str, body: Value| {
        let answer = ask(&api, method, &format!("/api/v1/{path}"), &body.to_string()).await;
        assert!(
            (200..300).contains(&answer.0),
            "{method} {path}: {} {}",
            answer.0,
            String::from_utf8_lossy(&answer.1)
        );
        answer
    };
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Pets", "version": "1"},
        "paths": {"/pets": {"get": {"operationId": "listPets", "responses": {"200": {"description": "Pets"}}}}},
    });
    let environment = json!({"kind": "production", "base_urls": ["http://pets.test"]});
    read::<entities::Environment>(&call("PUT", "environments/test", environment).await);
    read::<entities::Api>(&call("PUT", "apis/pets", json!({"display_name": "Pets"})).await);
    read::<VersionResponse>(&call("POST", "apis/pets/versions", document.clone()).await);
    read::<DraftResponse>(&call("PUT", "apis/pets/versions/1", json!({"spec": document})).await);
    read::<VersionResponse>(&call("GET", "apis/pets/versions/1", Value::Null).await);
    read::<List<entities::Version>>(&call("GET", "apis/pets/versions", Value::Null).await);
    read::<List<VersionSummary>>(&call("GET", "versions", Value::Null).await);
    read::<LintResponse>(&call("POST", "apis/pets/versions/1/lint", json!({})).await);
    read::<ReviewResponse>(&call("POST", "apis/pets/versions/1/review", json!({"reason": "first"})).await);
    read::<entities::Revision>(&call("POST", "apis/pets/versions/1/revisions", json!({})).await);
    read::<DiffResponse>(&call("GET", "apis/pets/versions/1/diff?from=1", Value::Null).await);
    let plan = json!({"state": "published", "security": "key"});
    read::<entities::Plan>(&call("PUT", "apis/pets/versions/1/plans/gold", plan).await);
    let runtime = json!({"base_path": "/pets", "backends": {"main": {"url": "http://127.0.0.1:1"}}});
    let published = call("POST", "publications/pets/1/test", json!({"runtime": runtime})).await;
    assert_eq!(read::<PublishResponse>(&published).publication, "pets/1/test");
    let publication = call("GET", "publications/pets/1/test", Value::Null).await;
    assert!(!read::<PublicationResponse>(&publication).differs_from_draft);
    read::<List<entities::Publication>>(&call("GET", "publications", Value::Null).await);
    read::<entities::Application>(&call("PUT", "applications/shop", json!({})).await);
    let subscription = json!({"application": "shop", "publication": "pets/1/test", "plan": "gold"});
    let subscribed = read::<SubscriptionResponse>(&call("POST", "subscriptions", subscription).await);
    assert!(subscribed.credential.is_some_and(|it| it.key.is_some()));
    let subscription = format!("subscriptions/{}", subscribed.subscription.id);
    read::<entities::Subscription>(&call("GET", &subscription, Value::Null).await);
    let credentials = format!("{subscription}/credentials");
    read::<CredentialResponse>(&call("POST", &credentials, json!({})).await);
    assert_eq!(
        read::<List<CredentialResponse>>(&call("GET", &credentials, Value::Null).await)
            .items
            .len(),
        2
    );
    let hook = json!({"url": "https://hooks.example.com/", "events": ["publication.*"]});
    let made = read::<HookResponse>(&call("PUT", "hooks/all", hook).await);
    assert!(matches!(made.secret, HookSecret::Shown(_)));
    let listed = read::<List<HookResponse>>(&call("GET", "hooks", Value::Null).await);
    assert!(matches!(listed.items[0].secret, HookSecret::IsSet(true)));
    let deprecation = json!({"since": 1, "note": "there is a new one"});
    let deprecated = call("PUT", "publications/pets/1/test/deprecation", deprecation).await;
    assert!(read::<entities::Publication>(&deprecated).deprecation.is_some());
    let portal = json!({"display_name": "Pets", "hosts": ["portal.test"]});
    read::<entities::Portal>(&call("PUT", "portals/main", portal).await);
    let page = json!({"title": "Welcome", "body": "# Hello"});
    read::<entities::Page>(&call("PUT", "portals/main/pages/welcome", page).await);
}
