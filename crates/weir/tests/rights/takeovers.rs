//! A route takes no calls of another workspace's route, whatever dialect either is of: all pairs of them.

use crate::plane::Plane;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use weir_control::access::{EVERYWHERE, Role};
use weir_control::acme::AcmeConfigs;
use weir_control::follow::{self, Engine, EngineEvent, SourceEvent, StateHandle};
use weir_control::secrets::{Cache, Secrets};
use weir_dialect::{Dialect, DialectSet};
use weir_snapshot::PersistentState;
use weir_store::Store;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Serves what a store holds, and notes what other dialects may ask for.
async fn serve(store: &dyn Store, followed: &StateHandle) {
    let dialects: Vec<Arc<dyn Dialect>> = vec![
        Arc::new(weir_kong::KongDialect::default()),
        Arc::new(weir_apisix::ApisixDialect::default()),
        Arc::new(weir_native::NativeDialect),
    ];
    let dialects = DialectSet::new(dialects);
    let engine = Engine {
        registry: weir_plugins::registry(),
        persistent: PersistentState::default(),
        duty_factor: 1,
        acme: AcmeConfigs::default(),
        secrets: Secrets::new(&dialects, Cache::default()),
        followed: followed.clone(),
        serve: Box::new(|_| {}),
        purge: Box::new(|_| {}),
    };
    let inputs = follow::start(engine, dialects, None).expect("threads");
    let (documents, revision) = store.read("").await.expect("documents");
    let documents = documents.into_iter().map(|it| (it.key, it.value)).collect();
    inputs
        .send(EngineEvent::Source(SourceEvent::Whole { documents, revision }))
        .await;
    tokio::time::timeout(TIMEOUT, followed.first_result())
        .await
        .expect("served");
}

/// A route of each dialect for calls below a path, as its Admin API takes it.
fn write(dialect: &str, workspace: &str, path: &str) -> (&'static str, String, Value) {
    let target = json!({"nodes": {"127.0.0.1:1": 1}});
    match dialect {
        "kong" => ("POST", format!("/{workspace}/routes"), json!({"paths": [path]})),
        "apisix" => (
            "POST",
            "/apisix/admin/routes".to_owned(),
            json!({"uri": format!("{path}*"), "upstream": target}),
        ),
        _ => (
            "PUT",
            format!(
                "/api/v1/resources/routes/{}",
                path.trim_start_matches('/').replace('/', "-")
            ),
            json!({"match": [{"path": path}], "to": {"respond": {"status": 200}}}),
        ),
    }
}

#[tokio::test]
async fn no_dialect_takes_calls_of_another_workspace() {
    let followed = StateHandle::default();
    let plane = Plane::beside(Arc::new(followed.clone())).await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane.add("of-team-a", &[("team-a", Role::Write)]);
    plane.add("of-default", &[("default", Role::Write)]);
    for name in ["team-a", "team-b"] {
        plane
            .expect("admin", "POST", "/workspaces", &json!({"name": name}))
            .await;
    }
    for dialect in ["kong", "apisix", "native"] {
        let (method, path, route) = write(dialect, "team-b", &format!("/of-{dialect}"));
        plane.expect("admin", method, &path, &route).await;
    }
    // APISIX's services change which calls their routes take.
    let hosts = json!({"hosts": ["own.test"], "upstream": {"nodes": {"127.0.0.1:1": 1}}});
    plane
        .expect("admin", "PUT", "/apisix/admin/services/s", &hosts)
        .await;
    serve(&*plane.store, &followed).await;
    for (who, dialect, victim, status) in [
        ("of-team-a", "kong", "kong", 409),
        ("of-team-a", "kong", "apisix", 409),
        ("of-team-a", "kong", "native", 409),
        // Its routes are looked through behind Kong's.
        ("of-default", "apisix", "kong", 201),
        // They are of one workspace.
        ("of-default", "apisix", "apisix", 201),
        ("of-default", "apisix", "native", 409),
        // They are for those who may write in all workspaces.
        ("of-default", "native", "kong", 403),
        ("of-default", "native", "apisix", 403),
        ("of-default", "native", "native", 403),
    ] {
        let below = format!("/of-{victim}/{dialect}");
        let (method, path, route) = write(dialect, "team-a", &below);
        let (found, _, answer) = plane.call(who, method, &path, &route).await;
        assert_eq!(found, status, "{dialect} takes of {victim}: {answer}");
        let (found, _, answer) = plane.call("admin", method, &path, &route).await;
        assert!(found < 300, "{dialect} takes of {victim}: {found} {answer}");
        let (method, path, route) = write(dialect, "team-a", &format!("/free/{dialect}/{victim}"));
        let (found, _, answer) = plane.call(who, method, &path, &route).await;
        let expected = if status == 403 { 403 } else { 201 };
        assert_eq!(found, expected, "{dialect} beside {victim}: {answer}");
    }
    let route = json!({"uri": "/of-native/*", "service_id": "s"});
    for (method, path, body, status) in [
        ("PUT", "/apisix/admin/routes/r", route.clone(), 409),
        (
            "PUT",
            "/apisix/admin/routes/r",
            json!({"uri": "/of-native/*", "service_id": "s", "host": "own.test"}),
            409,
        ),
        (
            "PUT",
            "/apisix/admin/routes/r",
            json!({"uri": "/own/*", "service_id": "s"}),
            201,
        ),
        ("PATCH", "/apisix/admin/routes/r", json!({"uri": "/*"}), 409),
        ("PATCH", "/apisix/admin/routes/r", json!({"desc": "d"}), 200),
    ] {
        let (found, _, answer) = plane.call("of-default", method, path, &body).await;
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
    }
    // What it takes already can be changed in other ways, and come to take less, but not more.
    plane
        .expect("admin", "PUT", "/apisix/admin/routes/r", &route)
        .await;
    for (method, path, body, status) in [
        ("PATCH", "/apisix/admin/routes/r", json!({"desc": "d"}), 200),
        (
            "PATCH",
            "/apisix/admin/routes/r",
            json!({"methods": ["GET"]}),
            200,
        ),
        (
            "PATCH",
            "/apisix/admin/routes/r",
            json!({"methods": ["GET", "PUT"]}),
            409,
        ),
        ("PATCH", "/apisix/admin/services/s", json!({"desc": "d"}), 200),
        (
            "PATCH",
            "/apisix/admin/services/s",
            json!({"hosts": ["own.test", "more.test"]}),
            409,
        ),
        ("DELETE", "/apisix/admin/routes/r", Value::Null, 200),
    ] {
        let (found, _, answer) = plane.call("of-default", method, path, &body).await;
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
    }
}
