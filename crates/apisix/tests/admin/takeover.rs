//! Server names of other workspaces, which who may write in `default` only does not get.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use tower::ServiceExt;
use weir_apisix::{Admin, AdminOptions};
use weir_dialect::{DialectName, ForeignRoutes, RouteOwner};
use weir_model::{RouteMatch, StreamRoute};
use weir_store::WorkspaceScoped;
use weir_store::memory::MemoryStore;

/// Whose what others serve is.
const NATIVE: RouteOwner<'_> = RouteOwner {
    workspace: "*",
    is_behind: true,
};

/// What other dialects serve: certificates, a route with hosts, and a stream with a server name.
#[derive(Debug)]
struct FixedForeignRoutes {
    are_known: bool,
}

impl ForeignRoutes for FixedForeignRoutes {
    fn any(&self, _: DialectName, visit: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool {
        let taken: Vec<RouteMatch> =
            serde_json::from_value(json!([{"path": "/", "hosts": ["route.test"]}, {"path": "/"}]))
                .expect("matches");
        visit(&taken, NATIVE)
    }

    fn any_stream(
        &self,
        _: DialectName,
        visit: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool,
    ) -> bool {
        let taken = json!({"name": "t", "protocols": ["tls"], "snis": ["stream.test"]});
        visit(&serde_json::from_value(taken).expect("a route"), NATIVE)
    }

    fn any_server_names(&self, _: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        visit(&names(&["own.test"]), "default") || visit(&names(&["*", "a.test", "*.wild.test"]), "*")
    }

    fn are_known(&self) -> bool {
        self.are_known
    }
}

async fn put(admin: &Arc<Admin>, is_confined: bool, line: &str, body: &Value) -> u16 {
    let (method, path) = line.split_once(' ').expect("a line");
    let body = body.to_string();
    // Another whole configuration has another digest.
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-digest", &body);
    if is_confined {
        request = request.extension(WorkspaceScoped);
    }
    let request = request.body(Body::from(body)).expect("a request");
    let answer = admin.router().oneshot(request).await.expect("an answer");
    answer.status().as_u16()
}

#[tokio::test]
async fn server_names_of_other_workspaces_are_refused() {
    for are_known in [true, false] {
        let mut options = AdminOptions::new(|| SystemTime::UNIX_EPOCH);
        options.keys.clear();
        options.others = Some(Arc::new(FixedForeignRoutes { are_known }));
        let admin = Admin::open(Arc::new(MemoryStore::new()), options)
            .await
            .expect("opened");
        for (names, is_taken) in [
            (json!({"snis": ["free.test"]}), false),
            (json!({"snis": ["own.test"]}), false),
            (json!({"snis": ["a.test"]}), true),
            (json!({"snis": ["free.test", "A.Test"]}), true),
            (json!({"sni": "a.test"}), true),
            (json!({"snis": ["x.wild.test"]}), true),
            (json!({"snis": ["*.test"]}), true),
            (json!({"snis": ["route.test"]}), true),
            (json!({"snis": ["stream.test"]}), true),
        ] {
            let mut ssl = json!({"cert": "$secret://vault/1/a/c", "key": "$secret://vault/1/a/k"});
            for (field, value) in names.as_object().expect("fields") {
                ssl[field] = value.clone();
            }
            let expected = match (are_known, is_taken) {
                (false, _) => 503,
                (true, true) => 409,
                (true, false) => 201,
            };
            assert_eq!(
                put(&admin, true, "POST /apisix/admin/ssls", &ssl).await,
                expected,
                "{names}"
            );
            ssl["id"] = "whole".into();
            let whole = json!({"ssls": [ssl]});
            let expected = if expected == 201 { 202 } else { expected };
            let put_whole = put(&admin, true, "PUT /apisix/admin/configs", &whole).await;
            assert_eq!(put_whole, expected, "{names}");
        }
        // Who may write everywhere needs no answer.
        let ssl =
            json!({"snis": ["a.test"], "cert": "$secret://vault/1/a/c", "key": "$secret://vault/1/a/k"});
        assert_eq!(put(&admin, false, "PUT /apisix/admin/ssls/1", &ssl).await, 201);
        // It is renewed with its names, and gets no others.
        assert_eq!(put(&admin, true, "PUT /apisix/admin/ssls/1", &ssl).await, 200);
        let more = json!({"snis": ["a.test", "route.test"]});
        let expected = if are_known { 409 } else { 503 };
        let patched = put(&admin, true, "PATCH /apisix/admin/ssls/1", &more).await;
        assert_eq!(patched, expected);
    }
}

/// A route that takes calls of others already is made to take less by who may not let it take more.
#[tokio::test]
async fn a_route_that_takes_foreign_calls_can_be_narrowed() {
    let mut options = AdminOptions::new(|| SystemTime::UNIX_EPOCH);
    options.keys.clear();
    options.others = Some(Arc::new(FixedForeignRoutes { are_known: true }));
    let admin = Admin::open(Arc::new(MemoryStore::new()), options)
        .await
        .expect("opened");
    let line = "PUT /apisix/admin/routes/1";
    let route = |fields: &Value| {
        let mut route = json!({"upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}}});
        for (name, value) in fields.as_object().expect("fields") {
            route[name] = value.clone();
        }
        route
    };
    let wide = route(&json!({"uri": "/a/*"}));
    assert_eq!(put(&admin, true, line, &wide).await, 409);
    assert_eq!(put(&admin, false, line, &wide).await, 201);
    for (fields, expected) in [
        (json!({"uri": "/a/*", "desc": "the same calls"}), 200),
        (json!({"uri": "/a/*", "methods": ["GET", "PUT"]}), 200),
        (json!({"uri": "/a/b/*", "methods": ["GET"]}), 200),
        (json!({"uri": "/a/b/*", "methods": ["GET", "POST"]}), 409),
        (json!({"uri": "/a/*", "methods": ["GET"]}), 409),
        (
            json!({"uri": "/a/b/c", "methods": ["GET"], "host": "x.test"}),
            200,
        ),
        (json!({"uri": "/a/b/c", "methods": ["GET"]}), 409),
    ] {
        assert_eq!(
            put(&admin, true, line, &route(&fields)).await,
            expected,
            "{fields}"
        );
    }
}
