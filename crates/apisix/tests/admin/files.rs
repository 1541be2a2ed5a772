//! Over an `apisix.yaml`: what is put is served before it is known, and is not served if the caller may not write it.

use crate::api::clock;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tower::ServiceExt;
use weir_apisix::{Admin, AdminOptions};
use weir_dialect::{AddressHealth, CheckCounts, HealthSource, HealthState, TargetHealth, UpstreamHealth};
use weir_store::{DeclaredConfig, WorkspaceScoped};

#[tokio::test]
async fn files_are_not_for_callers_of_one_workspace_over_a_file_either() {
    let (declared, mut replacements) = DeclaredConfig::new("routes: []\n".into());
    let (serving, replaced) = (Arc::clone(&declared), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&replaced);
    tokio::spawn(async move {
        while let Some(replacement) = replacements.recv().await {
            count.fetch_add(1, Ordering::Relaxed);
            serving.served(Arc::clone(&replacement.text));
            replacement.answer(Ok(()));
        }
    });
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    let admin = Admin::over_file(declared, options).await.expect("opens");
    let put = async |digest: usize, is_confined: bool, plugin: Value| {
        let route = json!({
            "id": "r",
            "uri": "/x",
            "plugins": {"file-logger": plugin},
            "upstream": {"nodes": {"127.0.0.1:1": 1}},
        });
        let mut request = Request::builder()
            .method("PUT")
            .uri("/apisix/admin/configs")
            .header("x-digest", digest.to_string());
        if is_confined {
            request = request.extension(WorkspaceScoped);
        }
        let body = json!({"routes": [route]}).to_string();
        let request = request.body(Body::from(body)).expect("a request");
        let answer = admin.router().oneshot(request).await.expect("an answer");
        answer.status().as_u16()
    };
    let (file, stream) = (json!({"path": "calls.log"}), json!({"path": "/dev/stdout"}));
    assert_eq!(put(1, true, file.clone()).await, 403);
    assert_eq!(replaced.load(Ordering::Relaxed), 0, "it is not served either");
    assert_eq!(put(2, true, stream).await, 202);
    assert_eq!(put(3, false, file).await, 202);
    assert_eq!(replaced.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_control_api_shows_items_of_a_file_as_the_original_does() {
    let text = json!({
        "services": [{"id": 5, "plugins": {"limit-count": {"count": 2, "time_window": 60}}}],
        "upstreams": [{
            "id": 7, "nodes": {"a:1": 1, "b:2": 1},
            "checks": {"active": {"type": "http", "port": 9}},
        }],
    });
    let (declared, _replacements) = DeclaredConfig::new(text.to_string().into());
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    let settings = "{apisix: {enable_server_tokens: false}, deployment: {admin: {enable_admin_cors: false}}}";
    let (settings, _) = weir_apisix::read_settings(settings, &|_| None).expect("good");
    options.settings = Box::leak(Box::new(settings));
    options.health = Some(Arc::new(FixedHealth));
    let admin = Admin::over_file(declared, options).await.expect("opens");
    let get = async |path: &str| {
        let request = Request::builder()
            .uri(path)
            .body(Body::empty())
            .expect("a request");
        let answer = admin.router().oneshot(request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|it| it.to_str().ok());
        assert_eq!(
            (header("server"), header("access-control-allow-origin")),
            (Some("APISIX"), None)
        );
        let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
        serde_json::from_slice::<Value>(&body).expect("JSON")
    };
    let service = get("/v1/service/5").await;
    assert_eq!(
        (&service["key"], &service["value"]["id"]),
        (&json!("/services/5"), &json!("5"))
    );
    let limit = &service["value"]["plugins"]["limit-count"];
    assert_eq!(
        (&limit["_meta"], &limit["policy"], &limit["rejected_code"]),
        (&json!({}), &json!("local"), &json!(503))
    );
    // Both nodes are checked at one port: those of one address are one.
    let health = get("/v1/healthcheck/upstreams/7").await;
    let nodes = health["nodes"].as_array().expect("nodes").iter();
    let addresses: Vec<_> = nodes.map(|node| (&node["hostname"], &node["port"])).collect();
    assert_eq!(health["name"], "/upstreams/7");
    assert_eq!(addresses, [(&json!("a"), &json!(9)), (&json!("b"), &json!(9))]);
}

/// Two nodes, the first of which has two ports.
struct FixedHealth;

impl HealthSource for FixedHealth {
    fn upstream(&self, _: &str) -> Option<UpstreamHealth> {
        let targets = [("a", 1), ("a", 3), ("b", 2)].map(|(host, port)| TargetHealth {
            host: host.to_owned(),
            port,
            is_resolved: true,
            addresses: vec![AddressHealth {
                ip: "127.0.0.1".to_owned(),
                port,
                weight: 1,
                state: HealthState::Healthy,
                checks: "healthy",
                counts: CheckCounts::default(),
            }],
        });
        Some(UpstreamHealth {
            state: HealthState::Healthy,
            targets: targets.into(),
        })
    }

    fn mark(&self, _: &str, _: &str, _: Option<&str>, _: bool) -> Result<(), String> {
        Ok(())
    }
}
