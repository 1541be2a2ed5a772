//! What the Admin API says about itself, schemas, tags and health.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tower::ServiceExt as _;
use weir_dialect::{
    AddressHealth, CheckCounts, HealthSource, HealthState, Listener, TargetHealth, UpstreamHealth,
};
use weir_kong::admin::{Admin, AdminOptions};
use weir_store::memory::MemoryStore;

/// Knows of every upstream the same, and keeps the marks.
#[derive(Default)]
struct PluginSupport {
    marks: Mutex<Vec<String>>,
}

impl HealthSource for PluginSupport {
    fn upstream(&self, _: &str) -> Option<UpstreamHealth> {
        let address = |ip: &str, state| AddressHealth {
            ip: ip.to_owned(),
            port: 80,
            weight: 50,
            state,
            checks: "healthy",
            counts: CheckCounts::default(),
        };
        Some(UpstreamHealth {
            state: HealthState::Healthy,
            targets: vec![TargetHealth {
                host: "a.test".to_owned(),
                port: 80,
                is_resolved: true,
                addresses: vec![
                    address("127.0.0.1", HealthState::Unhealthy),
                    address("127.0.0.2", HealthState::Healthy),
                ],
            }],
        })
    }

    fn mark(&self, _: &str, target: &str, address: Option<&str>, is_healthy: bool) -> Result<(), String> {
        if address == Some("9.9.9.9") {
            return Err("no such address".to_owned());
        }
        let mark = format!("{target} {address:?} {is_healthy}");
        self.marks.lock().expect("no thread panicked").push(mark);
        Ok(())
    }
}

struct Client(axum::Router);

impl Client {
    async fn open(known: Arc<PluginSupport>) -> Self {
        let mut options = AdminOptions::default();
        options.node.health = Some(known);
        options.node.listeners = vec![Listener {
            ip: "0.0.0.0".to_owned(),
            port: 8000,
            is_tls: false,
        }];
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

/// A call, the status and a part of the answer.
type Row = (&'static str, &'static str, u16, &'static str, Value);

async fn check(table: &[Row]) {
    let client = Client::open(Arc::default()).await;
    for (method, path, status, pointer, expected) in table {
        let (found, body) = client.call(method, path, json!({})).await;
        assert_eq!(found, *status, "{method} {path}");
        assert_eq!(body.pointer(pointer), Some(expected), "{method} {path} {pointer}");
    }
}

#[tokio::test]
async fn the_node_describes_itself() {
    let no_control_plane = "this endpoint is only available when Kong is configured to run as Control Plane for the \
                            cluster";
    let no_resolver = "not implemented with the legacy DNS client";
    check(&[
        ("GET", "/", 200, "/configuration/database", json!("postgres")),
        (
            "GET",
            "/",
            200,
            "/configuration/router_flavor",
            json!("traditional_compatible"),
        ),
        (
            "GET",
            "/",
            200,
            "/configuration/proxy_listeners/0/port",
            json!(8000),
        ),
        (
            "GET",
            "/",
            200,
            "/configuration/loaded_plugins/zipkin",
            json!(true),
        ),
        (
            "GET",
            "/",
            200,
            "/plugins/available_on_server/key-auth/priority",
            json!(1250),
        ),
        ("GET", "/", 200, "/plugins/enabled_in_cluster", json!([])),
        ("POST", "/", 405, "/message", json!("Method not allowed")),
        ("GET", "/status", 200, "/database/reachable", json!(true)),
        ("GET", "/status", 200, "/server/total_requests", json!(0)),
        ("GET", "/status/dns", 501, "/message", json!(no_resolver)),
        (
            "GET",
            "/clustering/status",
            400,
            "/message",
            json!(no_control_plane),
        ),
        ("GET", "/cache/x", 404, "/message", json!("Not found")),
        ("DELETE", "/cache", 204, "", Value::Null),
        ("GET", "/timers", 200, "/worker/count", json!(1)),
        ("GET", "/endpoints", 200, "/data/0", json!("/")),
    ])
    .await;
}

#[tokio::test]
async fn schemas_are_shown() {
    let no_entity = "No entity named 'consumer_groups'";
    check(&[
        (
            "GET",
            "/schemas/services",
            200,
            "/fields/4/retries/default",
            json!(5),
        ),
        (
            "GET",
            "/schemas/consumer_groups",
            404,
            "/message",
            json!(no_entity),
        ),
        (
            "GET",
            "/schemas/plugins/cors",
            200,
            "/fields/0/consumer/eq",
            Value::Null,
        ),
        (
            "GET",
            "/schemas/plugins/nope",
            404,
            "/message",
            json!("No plugin named 'nope'"),
        ),
        (
            "GET",
            "/schemas/vaults/env",
            200,
            "/fields/0/config/type",
            json!("record"),
        ),
        (
            "GET",
            "/schemas/filters/x",
            404,
            "/message",
            json!("Filter 'x' not found"),
        ),
        (
            "GET",
            "/plugins/schema/key-auth",
            200,
            "/fields/0/key_names/default",
            json!(["apikey"]),
        ),
    ])
    .await;
}

#[tokio::test]
async fn entities_are_validated_without_being_stored() {
    let client = Client::open(Arc::default()).await;
    let fine = "schema validation successful";
    // Longer labels than names have in the DNS are taken, as in the original.
    let host = format!("{}.test", "a".repeat(64));
    let table = [
        ("services", json!({ "host": host }), 200, fine),
        ("services", json!({"host": "x.test"}), 200, fine),
        (
            "services",
            json!({"host": "x.test", "port": 99999}),
            400,
            "schema violation (port: value should be between 0 and 65535)",
        ),
        ("plugins", json!({"name": "key-auth"}), 200, fine),
        (
            "plugins",
            json!({"name": "http-log"}),
            400,
            "schema violation (config.http_endpoint: required field missing)",
        ),
        (
            "routes",
            json!({"paths": ["/x"], "service": {"id": "d41d8cd9-8f00-4204-a980-0998ecf8427e"}}),
            200,
            fine,
        ),
        ("nothing", json!({}), 404, "No entity named 'nothing'"),
    ];
    for (entity, given, status, message) in table {
        let path = format!("/schemas/{entity}/validate");
        let (found, body) = client.call("POST", &path, given).await;
        assert_eq!(
            (found, body["message"].as_str()),
            (status, Some(message)),
            "{path}"
        );
    }
    assert_eq!(
        client.call("GET", "/services", Value::Null).await.1["data"],
        json!([])
    );
}

#[tokio::test]
async fn tags_are_listed_page_by_page() {
    let client = Client::open(Arc::default()).await;
    for (name, tags) in [("a", json!(["x", "y"])), ("b", json!(["x"])), ("c", Value::Null)] {
        let given = json!({"username": name, "tags": tags});
        assert_eq!(client.call("POST", "/consumers", given).await.0, 201);
    }
    let mut path = "/tags?size=2".to_owned();
    let mut found = Vec::new();
    loop {
        let (_, page) = client.call("GET", &path, Value::Null).await;
        found.extend(page["data"].as_array().expect("a list").clone());
        match page["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    let tags: Vec<&str> = found.iter().filter_map(|it| it["tag"].as_str()).collect();
    assert_eq!(tags, ["x", "x", "y"]);
    assert!(found.iter().all(|it| it["entity_name"] == "consumers"));
    let (_, of_y) = client.call("GET", "/tags/y", Value::Null).await;
    assert_eq!(of_y["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn health_is_shown_and_marked() {
    let known = Arc::new(PluginSupport::default());
    let client = Client::open(Arc::clone(&known)).await;
    let checks = json!({"passive": {"unhealthy": {"http_failures": 3}}});
    client
        .call("POST", "/upstreams", json!({"name": "u", "healthchecks": checks}))
        .await;
    client
        .call("POST", "/upstreams", json!({"name": "unchecked"}))
        .await;
    client
        .call(
            "POST",
            "/upstreams/unchecked/targets",
            json!({"target": "a.test:80"}),
        )
        .await;
    let (status, refused) = client
        .call("PUT", "/upstreams/unchecked/targets/a.test:80/healthy", json!({}))
        .await;
    let reason = json!({"message": "no healthchecker found for unchecked"});
    assert_eq!((status, refused), (400, reason));
    for target in ["a.test:80", "b.test:80"] {
        client
            .call("POST", "/upstreams/u/targets", json!({"target": target}))
            .await;
    }
    let (status, health) = client.call("GET", "/upstreams/u/health", Value::Null).await;
    assert_eq!(status, 200);
    let mut words: Vec<(&str, &str)> = health["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| {
            (
                it["target"].as_str().unwrap_or_default(),
                it["health"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    words.sort();
    assert_eq!(words, [("a.test:80", "HEALTHY"), ("b.test:80", "DNS_ERROR")]);
    let (_, whole) = client
        .call("GET", "/upstreams/u/health?balancer_health=1", Value::Null)
        .await;
    assert_eq!(whole["data"]["health"], "HEALTHY");
    for (path, status) in [
        ("/upstreams/u/targets/a.test:80/unhealthy", 204),
        ("/upstreams/u/targets/a.test:80/127.0.0.1:80/healthy", 204),
        ("/upstreams/u/targets/a.test:80/9.9.9.9/healthy", 400),
        ("/upstreams/u/targets/c.test:80/healthy", 404),
        ("/upstreams/none/targets/a.test:80/healthy", 404),
    ] {
        assert_eq!(client.call("PUT", path, json!({})).await.0, status, "{path}");
    }
    let marks = known.marks.lock().expect("no thread panicked").clone();
    assert_eq!(
        marks,
        ["a.test:80 None false", "a.test:80 Some(\"127.0.0.1:80\") true"]
    );
}

/// Of the original's paths, those that stand for what there is not here.
const WITHOUT: &[&str] = &["/targets"];
/// Paths that the free edition lacks.
const MORE: &[&str] = &[
    "/workspaces",
    "/vault-auth",
    "/jwt-signer",
    "/graphql-proxy-cache-advanced",
    "/proxy-cache-advanced",
    "/degraphql_routes",
    "/graphql-rate-limiting-advanced",
    "/services/{services}/degraphql",
    "/services/{services}/graphql-rate-limiting-advanced",
    "/key-auths-enc",
    "/consumers/{consumers}/key-auth-enc",
];

#[tokio::test]
async fn the_originals_paths_are_there() {
    let theirs: Value = serde_json::from_str(include_str!("original/described.json")).expect("JSON");
    let client = Client::open(Arc::default()).await;
    let (_, ours) = client.call("GET", "/endpoints", Value::Null).await;
    let list = |value: &Value| -> BTreeSet<String> {
        let paths = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        paths
            .filter(|it| !WITHOUT.iter().any(|part| it.starts_with(part)))
            .map(str::to_owned)
            .collect()
    };
    let (ours, theirs) = (list(&ours["data"]), list(&theirs["endpoints"]));
    let missing: Vec<&String> = theirs.difference(&ours).collect();
    let more: Vec<&String> = ours
        .difference(&theirs)
        .filter(|it| !MORE.iter().any(|part| it.starts_with(part)))
        .collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing {missing:?}, more {more:?}"
    );
}
