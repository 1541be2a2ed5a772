//! What a caller who may write in one workspace only cannot take from others.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tower::ServiceExt as _;
use weir_dialect::{DialectName, ForeignRoutes, Rights, RouteOwner};
use weir_kong::admin::{Admin, AdminOptions, Node};
use weir_model::{RouteMatch, StreamRoute};
use weir_plugin::{Committed, SharedRecord, SharedRecords, SharedStore};
use weir_store::WorkspaceScoped;
use weir_store::memory::MemoryStore;

/// Makes a call as a user who may write in these workspaces; `None`: in all.
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
            .extension(WorkspaceScoped);
    }
    let request = request.body(Body::from(body.to_string())).expect("a request");
    let answer = admin.router().oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Whose what others serve is.
const NATIVE: RouteOwner<'_> = RouteOwner {
    workspace: "*",
    is_behind: true,
};

/// What another dialect serves: calls below `/other`, sessions on a port, a server name.
#[derive(Debug)]
struct FixedForeignRoutes {
    are_known: bool,
}

impl ForeignRoutes for FixedForeignRoutes {
    fn any(&self, _: DialectName, visit: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool {
        let taken: Vec<RouteMatch> = serde_json::from_value(json!([{"path": "/other"}])).expect("matches");
        visit(&taken, NATIVE)
    }

    fn any_stream(
        &self,
        _: DialectName,
        visit: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool,
    ) -> bool {
        let taken = json!({"name": "t", "protocols": ["tcp"], "destinations": [":9000"]});
        visit(&serde_json::from_value(taken).expect("a route"), NATIVE)
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

async fn with_others(others: Option<FixedForeignRoutes>) -> Arc<Admin> {
    let options = AdminOptions {
        others: others.map(|others| Arc::new(others) as Arc<dyn ForeignRoutes>),
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
async fn server_names_of_routes_of_another_workspace_are_refused() {
    let admin = filled().await;
    for (line, body) in [
        (
            "POST /routes",
            json!({"paths": ["/own"], "hosts": ["v.own.test", "*.wild.test"]}),
        ),
        (
            "POST /routes",
            json!({"protocols": ["https"], "snis": ["s.own.test"]}),
        ),
    ] {
        let (status, text) = call(&admin, None, line, &body).await;
        assert_eq!(status, 201, "{line}: {text}");
    }
    let golden = include_str!("golden/certificates.txt")
        .lines()
        .nth(1)
        .expect("a body");
    for (name, is_taken) in [
        ("v.own.test", true),
        ("V.Own.test", true),
        ("*.own.test", true),
        ("s.own.test", true),
        ("a.wild.test", true),
        ("free.test", false),
    ] {
        let mut shown: Value = serde_json::from_str(golden).expect("JSON");
        shown["snis"] = json!([name]);
        let (status, text) = call(&admin, Some("team"), "POST /team/certificates", &shown).await;
        let expected: &[u16] = if is_taken { &[400, 409] } else { &[201] };
        assert!(expected.contains(&status), "{name}: {status} {text}");
    }
}

#[tokio::test]
async fn authorities_are_called_for_those_who_may_write_everywhere() {
    let admin = filled().await;
    let config = json!({"account_email": "a@x.test", "api_uri": "https://127.0.0.1:1/", "domains": ["x.test"], "tos_accepted": true});
    let plugin = json!({"name": "acme", "config": config});
    for (own, line, expected) in [
        (Some("team"), "POST /team/plugins", 403),
        (Some("default"), "POST /plugins", 403),
        (None, "POST /team/plugins", 201),
    ] {
        let (status, text) = call(&admin, own, line, &plugin).await;
        assert_eq!(status, expected, "{own:?} {line}: {text}");
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
        let admin = with_others(Some(FixedForeignRoutes { are_known })).await;
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

/// The id of a client in each of two workspaces.
const CLIENT: &str = "10000000-0000-5000-8000-000000000000";

/// Tokens that calls have got: one of the client of each workspace.
#[derive(Default)]
struct FakeTokens {
    removed: Mutex<Vec<String>>,
}

impl FakeTokens {
    /// The name of the token of a workspace.
    fn name(workspace: Option<&str>) -> String {
        workspace.map_or("a", |_| "b").repeat(64)
    }
}

impl SharedRecords for FakeTokens {
    fn share(&self, _: Arc<dyn SharedStore>) {}

    fn apply(&self, _: u64, _: Vec<(String, Option<SharedRecord>)>) {}

    fn list(&self, _: u64) -> Vec<(String, Value)> {
        let record = |workspace: Option<&str>| {
            let token =
                json!({"dialect": "kong", "workspace": workspace, "client": CLIENT, "scope": workspace});
            (Self::name(workspace), token)
        };
        vec![record(None), record(Some("team"))]
    }

    fn name_of(&self, text: &str) -> String {
        text.to_owned()
    }

    fn remove(&self, name: &str, then: Committed) {
        self.removed.lock().expect("whole").push(name.to_owned());
        then(Ok(Some(1)));
    }
}

/// Who writes a client may choose its id, and choose that of a client of another workspace.
#[tokio::test]
async fn tokens_of_another_workspace_are_out_of_reach() {
    let issued = Arc::new(FakeTokens::default());
    let shared: Arc<dyn SharedRecords> = Arc::clone(&issued) as _;
    let options = AdminOptions {
        node: Node {
            shared: vec![("oauth2-server", shared)],
            ..Node::default()
        },
        ..AdminOptions::default()
    };
    let admin = Admin::open(Arc::new(MemoryStore::new()), options)
        .await
        .expect("opened");
    let client = |name: &str| json!({"name": name, "client_id": name, "client_secret": "s", "redirect_uris": ["http://a.test/"]});
    for (line, body) in [
        ("POST /workspaces".to_owned(), json!({"name": "team"})),
        ("PUT /consumers/ann".to_owned(), json!({})),
        (format!("PUT /consumers/ann/oauth2/{CLIENT}"), client("one")),
        ("PUT /team/consumers/bob".to_owned(), json!({})),
        (
            format!("PUT /team/consumers/bob/oauth2/{CLIENT}"),
            client("other"),
        ),
    ] {
        let (status, text) = call(&admin, None, &line, &body).await;
        assert!(status < 300, "{line}: {status} {text}");
    }
    let [first, second] = [None, Some("team")].map(FakeTokens::name);
    for (path, own, other, scope) in [
        ("/oauth2_tokens", &first, &second, Value::Null),
        ("/team/oauth2_tokens", &second, &first, json!("team")),
    ] {
        let (_, text) = call(&admin, None, &format!("GET {path}"), &json!({})).await;
        let list: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{list}");
        assert_eq!(list["data"][0]["scope"], scope, "{list}");
        for (name, expected) in [(own, 200), (other, 404)] {
            let (status, text) = call(&admin, None, &format!("GET {path}/{name}"), &json!({})).await;
            assert_eq!(status, expected, "{path}/{name}: {text}");
        }
        call(&admin, None, &format!("DELETE {path}/{other}"), &json!({})).await;
        assert!(issued.removed.lock().expect("whole").is_empty());
        call(&admin, None, &format!("DELETE {path}/{own}"), &json!({})).await;
        assert_eq!(
            std::mem::take(&mut *issued.removed.lock().expect("whole")),
            std::slice::from_ref(own)
        );
    }
}
