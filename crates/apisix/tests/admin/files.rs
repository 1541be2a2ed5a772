//! Over an `apisix.yaml`: what is put is served before it is known, and is not served if the caller may not write it.

use crate::api::clock;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tower::ServiceExt;
use weir_apisix::{Admin, AdminOptions};
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
