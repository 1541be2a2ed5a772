//! What a caller who may write in one workspace only cannot take from others.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt as _;
use weir_dialect::{DialectName, OtherRoutes, Rights};
use weir_kong::admin::{Admin, AdminOptions};
use weir_model::{RouteMatch, StreamRoute};
use weir_store::Confined;
use weir_store::memory::MemoryStore;

/// Makes a call as somebody who may write in these workspaces; `None`: in all.
async fn call(
    admin: &Arc<Admin>,
    workspace: Option<&'static str>,
    line: &str,
    body: &Value,
) -> (u16, String) {
    let (method, path) = line.split_once(' ').expect("a line");
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", "application/json");
    if let Some(own) = workspace {
        request = request
            .extension(Rights::new(move |workspace| workspace == own))
            .extension(Confined);
    }
    let request = request.body(Body::from(body.to_string())).expect("a request");
    let answer = admin.router().oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// What another dialect serves: calls below `/other`, sessions on a port, a server name.
#[derive(Debug)]
struct Others {
    are_known: bool,
}

impl OtherRoutes for Others {
    fn any(&self, _: DialectName, visit: &mut dyn FnMut(&[RouteMatch], &str) -> bool) -> bool {
        let taken: Vec<RouteMatch> = serde_json::from_value(json!([{"path": "/other"}])).expect("matches");
        visit(&taken, "*")
    }

    fn any_stream(&self, _: DialectName, visit: &mut dyn FnMut(&StreamRoute, &str) -> bool) -> bool {
        let taken = json!({"name": "t", "protocols": ["tcp"], "destinations": [":9000"]});
        visit(&serde_json::from_value(taken).expect("a route"), "*")
    }

    fn any_server_names(&self, _: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool {
        visit(&["other.test".to_owned()], "*")
    }

    fn are_known(&self) -> bool {
        self.are_known
    }
}

async fn filled() -> Arc<Admin> {
    with_others(None).await
}

async fn with_others(others: Option<Others>) -> Arc<Admin> {
    let options = AdminOptions {
        others: others.map(|others| Arc::new(others) as Arc<dyn OtherRoutes>),
        ..AdminOptions::default()
    };
    let store = Arc::new(MemoryStore::new());
    let admin = Admin::open(store, options).await.expect("opened");
    // A certificate for `b.test`.
    let golden = include_str!("golden/certificates.txt")
        .lines()
        .nth(1)
        .expect("a body");
    let mut shown: Value = serde_json::from_str(golden).expect("JSON");
    shown["snis"] = json!(["b.test"]);
    for (line, body) in [
        ("POST /workspaces", json!({"name": "team"})),
        ("PUT /services/s", json!({"url": "http://h"})),
        (
            "PUT /routes/r",
            json!({"paths": ["/pay"], "service": {"name": "s"}}),
        ),
        ("POST /certificates", shown),
    ] {
        let (status, text) = call(&admin, None, line, &body).await;
        assert!(status < 300, "{line}: {status} {text}");
    }
    admin
}

#[tokio::test]
async fn server_names_of_another_workspace_are_refused_in_other_letters_too() {
    let admin = filled().await;
    let golden = include_str!("golden/certificates.txt")
        .lines()
        .nth(1)
        .expect("a body");
    for (name, expected) in [("b.test", 409), ("B.Test", 409), ("*.TEST", 409), ("c.test", 201)] {
        let mut shown: Value = serde_json::from_str(golden).expect("JSON");
        shown["snis"] = json!([name]);
        let (status, text) = call(&admin, Some("team"), "POST /team/certificates", &shown).await;
        let expected = if expected == 409 { [409, 400] } else { [201, 201] };
        assert!(expected.contains(&status), "{name}: {status} {text}");
    }
}

#[tokio::test]
async fn a_whole_configuration_takes_nothing_of_another_workspace() {
    let admin = filled().await;
    let config = |path: &str, plugin: Value| {
        json!({
            "_format_version": "3.0",
            "services": [{"name": "own", "url": "http://h", "routes": [{"name": "own", "paths": [path], "plugins": [plugin]}]}],
        })
    };
    let (key_auth, file) = (
        json!({"name": "key-auth"}),
        json!({"name": "file-log", "config": {"path": "calls.log"}}),
    );
    for (own, line, path, plugin, expected) in [
        (Some("team"), "POST /team/config", "/pay/more", &key_auth, 409),
        (Some("team"), "POST /team/config", "/own", &file, 400),
        (Some("default"), "POST /config", "/own", &file, 403),
        (Some("team"), "POST /team/config", "/own", &key_auth, 201),
        (None, "POST /team/config", "/pay/more", &key_auth, 201),
        (None, "POST /config", "/own/too", &file, 201),
    ] {
        let body = json!({"config": config(path, plugin.clone()).to_string()});
        let (status, text) = call(&admin, own, line, &body).await;
        assert_eq!(status, expected, "{own:?} {line} {path} {plugin}: {text}");
    }
}

#[tokio::test]
async fn what_other_dialects_serve_is_not_taken_either() {
    let golden = include_str!("golden/certificates.txt")
        .lines()
        .nth(1)
        .expect("a body");
    let shown = |name: &str| {
        let mut shown: Value = serde_json::from_str(golden).expect("JSON");
        shown["snis"] = json!([name]);
        shown
    };
    let stream = |port: u16| json!({"protocols": ["tcp"], "destinations": [{"port": port}]});
    for are_known in [true, false] {
        let admin = with_others(Some(Others { are_known })).await;
        for (line, body, is_taken) in [
            ("POST /team/routes", json!({"paths": ["/other/more"]}), true),
            ("POST /team/routes", stream(9000), true),
            ("POST /team/certificates", shown("*.test"), true),
            ("POST /team/certificates", shown("Other.Test"), true),
            ("POST /team/routes", json!({"paths": ["/own"]}), false),
            ("POST /team/routes", stream(9001), false),
            ("POST /team/certificates", shown("own.test"), false),
        ] {
            let (status, text) = call(&admin, Some("team"), line, &body).await;
            let expected: &[u16] = match (are_known, is_taken) {
                (false, _) => &[503],
                (true, true) => &[400, 409],
                (true, false) => &[201],
            };
            assert!(
                expected.contains(&status),
                "{are_known} {line} {body}: {status} {text}"
            );
        }
        // Who may write everywhere needs no answer.
        let body = json!({"paths": ["/other/more"]});
        assert_eq!(call(&admin, None, "POST /team/routes", &body).await.0, 201);
    }
}
