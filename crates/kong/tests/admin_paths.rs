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

#[tokio::test]
async fn config_is_for_nodes_without_a_database() {
    let options = AdminOptions {
        has_no_config: true,
        ..AdminOptions::default()
    };
    let client = Client::open(options).await;
    let why = json!({
        "message": "this endpoint is only available when Kong is configured to not use a database"
    });
    for method in ["GET", "POST"] {
        let given = json!({"_format_version": "3.0"});
        assert_eq!(client.call(method, "/config", given).await, (400, why.clone()));
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
