//! Paths of the Admin API that answer as a Kong does whose plugin, filters or kind of database are other than Weir's.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;
use weir_kong::admin::{Admin, AdminOptions};
use weir_store::memory::MemoryStore;

struct Client(axum::Router);

impl Client {
    async fn open(options: AdminOptions) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self(Admin::open(store, options).await.expect("opens").router())
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .expect("a request");
        let response = self.0.clone().oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// Each plugin that keeps responses has paths of its own. What stands in a Redis is not reached, and calls for it say so.
#[tokio::test]
async fn caches_of_the_paid_edition_have_paths() {
    let client = Client::open(AdminOptions::default()).await;
    for (name, strategy, id) in [
        (
            "proxy-cache-advanced",
            "memory",
            "7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b01",
        ),
        (
            "graphql-proxy-cache-advanced",
            "redis",
            "7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b02",
        ),
    ] {
        let config = json!({"strategy": strategy, "redis": {"host": "r"}});
        let plugin = json!({"name": name, "config": config});
        assert_eq!(client.call("PUT", &format!("/plugins/{id}"), plugin).await.0, 200);
    }
    let key = "0".repeat(64);
    let not_reached = "the Admin API does not reach responses of the strategy 'redis'";
    for (method, path, status, words) in [
        ("DELETE", "/proxy-cache-advanced".to_owned(), 204, ""),
        (
            "GET",
            "/proxy-cache-advanced".to_owned(),
            405,
            "Method not allowed",
        ),
        ("GET", format!("/proxy-cache-advanced/{key}"), 404, "Not found"),
        (
            "GET",
            format!("/proxy-cache-advanced/7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b01/caches/{key}"),
            404,
            "Not found",
        ),
        (
            "DELETE",
            "/graphql-proxy-cache-advanced".to_owned(),
            400,
            not_reached,
        ),
        (
            "GET",
            format!("/graphql-proxy-cache-advanced/{key}"),
            400,
            not_reached,
        ),
        (
            "DELETE",
            format!("/graphql-proxy-cache-advanced/7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b02/caches/{key}"),
            400,
            not_reached,
        ),
    ] {
        let (found, answer) = client.call(method, &path, Value::Null).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(
            found == status && message.contains(words),
            "{method} {path}: {found} {answer}"
        );
    }
}

#[tokio::test]
async fn paths_of_plugins_answer_as_the_originals() {
    let client = Client::open(AdminOptions::default()).await;
    let no_wasm = "this endpoint is only available when wasm is enabled";
    for (method, path, status, pointer, expected) in [
        ("GET", "/sessions", 200, "/data", json!([])),
        (
            "POST",
            "/sessions",
            400,
            "/fields/session_id",
            json!("required field missing"),
        ),
        ("GET", "/oauth2_tokens", 200, "/data", json!([])),
        (
            "POST",
            "/oauth2_tokens",
            400,
            "/fields/expires_in",
            json!("required field missing"),
        ),
        ("GET", "/acme_storage", 200, "/data", json!([])),
        ("GET", "/acme/certificates", 404, "/message", json!("Not found")),
        ("POST", "/acme", 404, "/message", json!("Not found")),
        ("DELETE", "/acme", 405, "/message", json!("Method not allowed")),
        ("GET", "/filter-chains", 400, "/message", json!(no_wasm)),
        ("POST", "/routes/r/filter-chains", 400, "/message", json!(no_wasm)),
        (
            "GET",
            "/routes/r/filters/enabled",
            400,
            "/message",
            json!(no_wasm),
        ),
    ] {
        let (found, body) = client.call(method, path, json!({})).await;
        assert_eq!(found, status, "{method} {path} {body}");
        assert_eq!(body.pointer(pointer), Some(&expected), "{method} {path} {body}");
    }
    let session = json!({"session_id": "s", "data": "d", "ttl": 60});
    assert_eq!(client.call("POST", "/sessions", session).await.0, 201);
    assert_eq!(
        client.call("GET", "/sessions/s", Value::Null).await.1["data"],
        "d"
    );
}

/// Entities of the paid edition's GraphQL plugins, at the paths at which its clients look for them.
#[tokio::test]
async fn graphql_of_services_has_paths_of_two_segments() {
    let client = Client::open(AdminOptions::default()).await;
    let service = json!({"name": "gql", "url": "http://127.0.0.1:1/graphql"});
    let (status, service) = client.call("POST", "/services", service).await;
    assert_eq!(status, 201, "{service}");
    let id = service["id"].as_str().expect("an id");
    for (list, top, given, defaults, change) in [
        (
            "/services/gql/graphql-rate-limiting-advanced/costs",
            "/graphql-rate-limiting-advanced/costs",
            json!({"type_path": "Query.users", "mul_arguments": ["first"]}),
            json!({"add_constant": 1, "mul_constant": 1, "add_arguments": null, "mul_arguments": ["first"]}),
            json!({"type_path": "Person.name"}),
        ),
        (
            "/services/gql/degraphql/routes",
            "/degraphql_routes",
            json!({"uri": "/front", "query": "query { viewer { login } }"}),
            json!({"methods": ["GET"], "query": "query { viewer { login } }"}),
            json!({"uri": "/v2/front", "methods": ["GET", "POST"]}),
        ),
    ] {
        let (status, made) = client.call("POST", list, given).await;
        assert_eq!(
            (status, &made["service"]["id"]),
            (201, &json!(id)),
            "{list} {made}"
        );
        for (field, value) in defaults.as_object().expect("an object") {
            assert_eq!(&made[field], value, "{field} of {made}");
        }
        let own = made["id"].as_str().expect("an id");
        for path in [format!("{list}/{own}"), format!("{top}/{own}")] {
            assert_eq!(
                client.call("GET", &path, Value::Null).await,
                (200, made.clone()),
                "{path}"
            );
        }
        let by_id = list.replace("gql", id);
        for path in [list, &by_id, top] {
            let (status, found) = client.call("GET", path, Value::Null).await;
            assert_eq!((status, &found["data"]), (200, &json!([made])), "{path}");
        }
        let (status, changed) = client
            .call("PATCH", &format!("{list}/{own}"), change.clone())
            .await;
        assert_eq!(status, 200, "{changed}");
        for (field, value) in change.as_object().expect("an object") {
            assert_eq!(&changed[field], value, "{field} of {changed}");
        }
        assert_eq!(
            client
                .call("DELETE", &format!("{list}/{own}"), Value::Null)
                .await
                .0,
            204
        );
        assert_eq!(
            client.call("GET", &format!("{top}/{own}"), Value::Null).await.0,
            404
        );
        let (status, again) = client.call("POST", list, changed).await;
        assert_eq!(status, 201, "{again}");
    }
    for (method, path, status) in [
        ("POST", "/services", 201),
        // A service may be called so.
        ("GET", "/services/degraphql/routes", 200),
        ("GET", "/services/none/degraphql/routes", 404),
        ("GET", "/degraphql/routes", 404),
        ("GET", "/services/gql/degraphql", 404),
        ("GET", "/graphql-rate-limiting-advanced", 404),
        // What belongs to a service goes with it.
        ("DELETE", "/services/gql", 204),
    ] {
        let given = json!({"name": "degraphql", "host": "a.example"});
        assert_eq!(
            client.call(method, path, given).await.0,
            status,
            "{method} {path}"
        );
    }
    let (_, left) = client.call("GET", "/degraphql_routes", Value::Null).await;
    assert_eq!(left["data"], json!([]));
}

#[tokio::test]
async fn config_is_for_nodes_without_a_database() {
    let options = AdminOptions {
        has_no_config: true,
        ..AdminOptions::default()
    };
    let client = Client::open(options).await;
    let reason = json!({
        "message": "this endpoint is only available when Kong is configured to not use a database"
    });
    for method in ["GET", "POST"] {
        let given = json!({"_format_version": "3.0"});
        assert_eq!(client.call(method, "/config", given).await, (400, reason.clone()));
    }
}

#[tokio::test]
async fn vaults_have_the_fields_of_their_kind() {
    let client = Client::open(AdminOptions::default()).await;
    let given =
        |prefix: &str, kind: &str, config: Value| json!({"prefix": prefix, "name": kind, "config": config});
    let table = [
        (
            given("one", "hcv", json!({"host": "v.test", "kv": "v2", "token": "t"})),
            201,
            "/config/kv",
            json!("v2"),
        ),
        (
            given("two", "env", json!({"prefix": "A_"})),
            201,
            "/config",
            json!({"prefix": "A_"}),
        ),
        (
            given("three", "env", json!({"host": "h"})),
            400,
            "/fields/config/host",
            json!("unknown field"),
        ),
        (
            given("four", "hcv", json!({"prefix": "A_"})),
            400,
            "/fields/config/prefix",
            json!("unknown field"),
        ),
        (
            given("five", "hcv", json!({"kv": "v3"})),
            400,
            "/fields/config/kv",
            json!("expected one of: v1, v2"),
        ),
        (
            given("six", "aws", json!({})),
            400,
            "/fields/name",
            json!("vault 'aws' is not installed"),
        ),
    ];
    for (vault, status, pointer, expected) in table {
        let (found, body) = client.call("POST", "/vaults", vault.clone()).await;
        assert_eq!(
            (found, body.pointer(pointer)),
            (status, Some(&expected)),
            "{vault} {body}"
        );
    }
    assert_eq!(
        client.call("GET", "/schemas/vaults/hcv", Value::Null).await.0,
        200
    );
    assert_eq!(
        client.call("GET", "/schemas/vaults/aws", Value::Null).await.0,
        404
    );
}
