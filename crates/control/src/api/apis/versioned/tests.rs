//! Each kind of document that has a version: read, written, and refused if another version is there.

use crate::access::Caller;
use crate::api::{Api, ApiOptions};
use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use tower::ServiceExt;
use weir_store::memory::MemoryStore;

const SPEC: &str = "openapi: 3.1.0
info: {title: Pets, version: 1.0.0}
paths: {/pets: {get: {operationId: listPets, responses: {'200': {description: Pets}}}}}
";

struct TestResponse {
    status: u16,
    tag: Option<String>,
    body: Value,
}

async fn ask(
    api: &Arc<Api>,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> TestResponse {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("/api/v1/{path}"))
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_string())).expect("a call");
    let router = api.router().layer(Extension(Caller::LocalAnonymous));
    let answer = router.oneshot(request).await.expect("an answer");
    let tag = answer.headers().get(header::ETAG);
    let (status, tag) = (
        answer.status().as_u16(),
        tag.map(|it| it.to_str().expect("a tag").to_owned()),
    );
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    TestResponse {
        status,
        tag,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }
}

async fn opened() -> Arc<Api> {
    let options = ApiOptions::default();
    let api = Api::open(Arc::new(MemoryStore::new()), options)
        .await
        .expect("opened");
    for (path, body) in [
        ("apis/pets", json!({})),
        ("products/set", json!({"publications": {}})),
        ("portals/main", json!({"display_name": "Main"})),
    ] {
        let made = ask(&api, "PUT", path, &[], &body).await;
        assert_eq!(made.status, 201, "{path}: {}", made.body);
    }
    let made = ask(&api, "POST", "apis/pets/versions", &[], &json!({"spec": SPEC})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    api
}

/// Each kind of document, and two bodies of it.
fn documents() -> Vec<(&'static str, Value, Value)> {
    let described = |text: &str| json!({ "description": text });
    let plan = |per| json!({"state": "published", "limits": [{"count": 10, "per": per}]});
    vec![
        ("environments/test", described("one"), described("two")),
        ("apis/orders", described("one"), described("two")),
        ("apis/pets/versions/1.0.0/plans/gold", plan("day"), plan("hour")),
        ("applications/shop", described("one"), described("two")),
        (
            "products/bundle",
            json!({"publications": {}}),
            json!({"publications": {}, "description": "two"}),
        ),
        ("products/set/plans/partner", plan("day"), plan("hour")),
        (
            "hooks/ci",
            json!({"url": "https://ci.example.com/a"}),
            json!({"url": "https://ci.example.com/b"}),
        ),
        (
            "portals/other",
            json!({"hosts": ["other.example.com"]}),
            json!({"hosts": ["other.example.com"], "description": "two"}),
        ),
        (
            "portals/main/pages/terms",
            json!({"title": "One", "body": "", "published": true}),
            json!({"title": "Two", "body": "", "published": true}),
        ),
        (
            "resources/services/s",
            json!({"url": "http://127.0.0.1:1"}),
            json!({"url": "http://127.0.0.1:2"}),
        ),
    ]
}

#[tokio::test]
async fn a_write_names_the_version_that_it_changes() {
    let api = opened().await;
    for (path, one, two) in documents() {
        let made = ask(&api, "PUT", path, &[("if-none-match", "*")], &one).await;
        assert_eq!(made.status, 201, "{path}: {}", made.body);
        let first = made.tag.unwrap_or_else(|| panic!("{path} has no version"));
        let again = ask(&api, "PUT", path, &[("if-none-match", "*")], &two).await;
        assert_eq!(again.status, 412, "{path}: {}", again.body);
        let read = ask(&api, "GET", path, &[], &json!({})).await;
        assert_eq!((read.status, read.tag.as_deref()), (200, Some(&*first)), "{path}");

        let note = [("if-match", &*first), ("weir-note", "why%20not")];
        let changed = ask(&api, "PUT", path, &note, &two).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.body);
        let second = changed.tag.unwrap_or_else(|| panic!("{path} has no version"));
        assert_ne!(first, second, "{path}");
        let stored = ask(&api, "GET", path, &[], &json!({})).await;
        assert_eq!(stored.tag.as_deref(), Some(&*second), "{path}");
        let history = ask(&api, "GET", "history?limit=1", &[], &json!({})).await;
        let commit = &history.body["items"][0];
        assert_eq!(commit["note"], "why not", "{path}");

        for dry_run in ["true", "false"] {
            let headers = [("if-match", &*first), ("weir-dry-run", dry_run)];
            let refused = ask(&api, "PUT", path, &headers, &one).await;
            assert_eq!(refused.status, 412, "{path}: {}", refused.body);
            let who = &refused.body["changed"];
            assert_eq!(who["author"], Caller::LocalAnonymous.name(), "{path}");
            assert_eq!(who["revision"], commit["revision"], "{path}");
            assert_eq!(who["time"], commit["time"], "{path}");
        }
        let after = ask(&api, "GET", path, &[], &json!({})).await;
        assert_eq!((after.tag, after.body), (stored.tag, stored.body), "{path}");
    }
}

#[tokio::test]
async fn what_is_written_as_it_stands_keeps_its_version() {
    let api = opened().await;
    for (path, one, _) in documents() {
        // A native resource is written again, and gets another version.
        if path.starts_with("resources/") {
            continue;
        }
        let first = ask(&api, "PUT", path, &[], &one).await.tag;
        let again = ask(&api, "PUT", path, &[], &one).await;
        assert_eq!((again.status, &again.tag), (200, &first), "{path}");
        let dry = ask(&api, "PUT", path, &[("weir-dry-run", "true")], &one).await;
        assert_eq!((dry.status, dry.tag), (200, None), "{path}");
    }
}

#[tokio::test]
async fn what_was_changed_meanwhile_is_not_removed_by_its_old_version() {
    let api = opened().await;
    for (path, one, two) in documents() {
        let first = ask(&api, "PUT", path, &[], &one).await.tag.expect("a version");
        let second = ask(&api, "PUT", path, &[], &two).await.tag.expect("a version");
        for (tag, expected) in [first, second].iter().zip([412, 204]) {
            let removed = ask(&api, "DELETE", path, &[("if-match", tag)], &json!({})).await;
            assert_eq!(removed.status, expected, "{path}: {}", removed.body);
        }
    }
}

#[tokio::test]
async fn a_draft_that_was_changed_meanwhile_is_neither_changed_nor_removed() {
    const DRAFT: &str = "apis/pets/versions/1.0.0";
    let api = opened().await;
    let described = |text: &str| json!({ "description": text });
    let first = ask(&api, "GET", DRAFT, &[], &json!({})).await.tag;
    let first = first.expect("a version");
    let made = ask(&api, "PUT", DRAFT, &[("if-match", &first)], &described("one")).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let second = made.tag.expect("a version");
    let read = ask(&api, "GET", DRAFT, &[], &json!({})).await;
    assert_eq!(read.tag.as_deref(), Some(&*second));
    for (method, body) in [("PUT", described("two")), ("DELETE", json!({}))] {
        let refused = ask(&api, method, DRAFT, &[("if-match", &first)], &body).await;
        assert_eq!(refused.status, 412, "{method}: {}", refused.body);
        assert_eq!(refused.body["changed"]["author"], Caller::LocalAnonymous.name());
    }
    let kept = ask(&api, "GET", DRAFT, &[], &json!({})).await;
    assert_eq!(kept.body["description"], "one");
    let removed = ask(&api, "DELETE", DRAFT, &[("if-match", &second)], &json!({})).await;
    assert_eq!(removed.status, 204, "{}", removed.body);
}

/// A document that takes lint a while.
fn large() -> Value {
    let operation = json!({"responses": {"200": {"description": "ok"}}});
    let paths: serde_json::Map<String, Value> = (0..2_000)
        .map(|it| {
            (
                format!("/a{it}/{{id}}"),
                json!({"get": operation, "put": operation}),
            )
        })
        .collect();
    json!({"openapi": "3.1.0", "info": {"title": "Large", "version": "2.0.0"}, "paths": paths})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_calls_go_on_while_a_large_document_is_read_and_linted() {
    const VERSION: &str = "apis/pets/versions/2.0.0";
    let api = opened().await;
    let spec = json!({ "spec": large() });
    let calls = [
        ("POST", "apis/pets/versions".to_owned(), spec),
        ("GET", VERSION.to_owned(), json!({})),
        ("POST", format!("{VERSION}/lint"), json!({})),
        ("POST", format!("{VERSION}/revisions"), json!({})),
    ];
    for (method, path, body) in calls {
        let (api, asking) = (Arc::clone(&api), Arc::clone(&api));
        let what = format!("{method} {path}");
        let long = tokio::spawn(async move {
            let answer = ask(&asking, method, &path, &[], &body).await;
            (answer, Instant::now())
        });
        let short = tokio::spawn(async move {
            let answer = ask(&api, "GET", "apis/pets", &[], &json!({})).await;
            (answer.status, Instant::now())
        });
        let (long, ended) = long.await.expect("an answer");
        assert!(long.status < 300, "{what}: {}", long.body);
        let (status, answered) = short.await.expect("an answer");
        assert!(
            status == 200 && answered < ended,
            "{what} kept another call waiting"
        );
    }
}
