//! What rights are worth at the Admin APIs of all dialects: who may only read sees no secret, wherever documents are
//! shown; who may write in one workspace takes nothing of another.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use tower::ServiceExt as _;
use weir_control::access::{
    Audit, Door, EVERYWHERE, Guard, Right, Role, TokenHash, User, Users, key_of, protect,
};
use weir_control::api::{Api, ApiOptions, Gateways};
use weir_control::follow::{DoorOptions, Followed};
use weir_store::Store;
use weir_store::memory::MemoryStore;

/// Stands in every secret.
const SECRET: &str = "s3cr3t";

/// The doors over one store.
struct Plane {
    kong: Router,
    apisix: Router,
    native: Router,
    users: Users,
}

impl Plane {
    async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let users = Users::default();
        let guarded = |door, router| {
            let guard = Guard {
                door,
                users: users.clone(),
                audit: Audit::default(),
                keys: Vec::new(),
            };
            protect(router, guard)
        };
        let kong =
            weir_kong::admin::Admin::open(Arc::clone(&store), weir_kong::admin::AdminOptions::default());
        let mut options = weir_apisix::AdminOptions::new(SystemTime::now);
        options.keys.clear();
        let apisix = weir_apisix::Admin::open(Arc::clone(&store), options);
        let options = ApiOptions {
            users: users.clone(),
            followed: Followed::default(),
            doors: DoorOptions::default(),
            registry: weir_plugins::registry,
            gateways: Gateways::default(),
        };
        let native = Api::open(Arc::clone(&store), options).await.expect("opened");
        let apisix = apisix.await.expect("opened");
        let by_path = apisix.router().nest_service(
            "/v1",
            Router::new().fallback_service(OverV1(apisix.control_router())),
        );
        Self {
            kong: guarded(Door::Kong, kong.await.expect("opened").router()),
            apisix: guarded(Door::Apisix, by_path),
            native: guarded(Door::Native, native.router()),
            users,
        }
    }

    /// A user whose token is the name.
    fn add(&self, name: &str, rights: &[(&str, Role)]) {
        let right = |(workspace, role): &(&str, Role)| Right {
            workspace: (*workspace).to_owned(),
            role: *role,
        };
        let user = User {
            name: name.to_owned(),
            token_hash: TokenHash::of(name),
            rights: rights.iter().map(right).collect(),
            created: 0,
        };
        let value = serde_json::to_vec(&user).expect("JSON");
        self.users.apply(&key_of(name).expect("a key"), Some(&value));
    }

    /// Status, the header `Warning` and the body of an answer.
    async fn call(&self, who: &str, method: &str, path: &str, body: &Value) -> (u16, String, String) {
        let router = match path {
            path if path.starts_with("/apisix/") || path.starts_with("/v1/") => &self.apisix,
            path if path.starts_with("/api/") => &self.native,
            _ => &self.kong,
        };
        let peer: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {who}"))
            .header("x-api-key", who)
            .extension(ConnectInfo(peer))
            .body(Body::from(body))
            .expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let warning = answer
            .headers()
            .get("warning")
            .map(|it| it.to_str().expect("text").to_owned());
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        (
            status,
            warning.unwrap_or_default(),
            String::from_utf8_lossy(&body).into_owned(),
        )
    }

    #[track_caller]
    fn expect<'p>(
        &'p self,
        who: &'p str,
        method: &'p str,
        path: &'p str,
        body: &'p Value,
    ) -> impl Future<Output = String> + 'p {
        async move {
            let (status, _, answer) = self.call(who, method, path, body).await;
            assert!(status < 300, "{who} {method} {path} {body}: {status} {answer}");
            answer
        }
    }
}

/// A service that sees whole paths.
#[derive(Clone)]
struct OverV1(Router);

impl tower::Service<Request<Body>> for OverV1 {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let whole = format!("/v1{}", request.uri().path());
        *request.uri_mut() = whole.parse().expect("a path");
        Box::pin(self.0.clone().oneshot(request))
    }
}

/// A certificate with its key.
fn certificate() -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(["a.test".to_owned()]).expect("a name");
    (
        params.self_signed(&key).expect("signed").pem(),
        key.serialize_pem(),
    )
}

/// What is written, each with a secret: where to, and what.
fn secrets() -> Vec<(&'static str, Value)> {
    let (certificate, key) = certificate();
    let of = |name: &str| format!("{SECRET}-{name}");
    let tls = json!({"client_cert": certificate, "client_key": key});
    let nodes = json!({"127.0.0.1:1": 1});
    let redis = json!({"count": 1, "time_window": 60, "policy": "redis", "redis_host": "redis.test", "redis_password": of("redis")});
    let limits = json!({"limit-count": redis});
    let logged = json!({"http-logger": {"uri": "http://h", "auth_header": of("header")}});
    let hex = "ab".repeat(16);
    vec![
        ("/consumers/c", json!({"username": "c"})),
        (
            "/consumers/c/key-auth/5f3e1c80-0000-4000-8000-000000000001",
            json!({"key": of("key")}),
        ),
        ("/consumers/c/basic-auth/u", json!({"password": of("password")})),
        ("/consumers/c/hmac-auth/u", json!({"secret": of("hmac")})),
        ("/consumers/c/jwt/j", json!({"secret": of("jwt")})),
        (
            "/consumers/c/oauth2/o",
            json!({"name": "o", "client_secret": of("oauth2"), "redirect_uris": ["http://h/"]}),
        ),
        (
            "/certificates/5f3e1c80-0000-4000-8000-000000000002",
            json!({"cert": certificate, "key": key}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000003",
            json!({"name": "http-log", "config": {"http_endpoint": format!("http://u:{SECRET}@h/"), "headers": {"Authorization": of("log")}}}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000004",
            json!({"name": "rate-limiting", "config": {"minute": 1, "policy": "redis", "redis": {"host": "h", "password": of("redis")}}}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000005",
            json!({"name": "session", "config": {"secret": of("session")}}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000006",
            json!({"name": "request-transformer", "config": {"add": {"headers": [format!("Authorization:Basic {SECRET}")]}}}),
        ),
        (
            "/apisix/admin/consumers/c",
            json!({"username": "c", "plugins": {"key-auth": {"key": of("key")}}}),
        ),
        (
            "/apisix/admin/consumers/c/credentials/d",
            json!({"plugins": {"basic-auth": {"username": "u", "password": of("password")}}}),
        ),
        (
            "/apisix/admin/secrets/vault/1",
            json!({"uri": "http://h", "prefix": "p", "token": of("vault")}),
        ),
        (
            "/apisix/admin/upstreams/1",
            json!({"type": "roundrobin", "nodes": nodes, "tls": tls}),
        ),
        (
            "/apisix/admin/routes/1",
            json!({"uri": "/", "plugins": limits, "upstream": {"type": "roundrobin", "nodes": nodes, "tls": tls}}),
        ),
        (
            "/apisix/admin/services/1",
            json!({"plugins": limits, "upstream": {"type": "roundrobin", "nodes": nodes}}),
        ),
        ("/apisix/admin/global_rules/1", json!({"plugins": logged})),
        (
            "/apisix/admin/plugin_configs/1",
            json!({"plugins": {"csrf": {"key": of("csrf")}}}),
        ),
        ("/apisix/admin/consumer_groups/1", json!({"plugins": limits})),
        (
            "/apisix/admin/ssls/1",
            json!({"snis": ["a.test"], "cert": certificate, "key": key}),
        ),
        (
            "/api/v1/resources/consumers/c",
            json!({"name": "c", "credentials": [
                {"key-auth": {"key": of("key")}},
                {"basic-auth": {"username": "u", "password": of("password")}},
                {"hmac-auth": {"key": "h", "secret": of("hmac")}},
                {"jwt": {"key": "j", "algorithm": "HS256", "secret": of("jwt")}},
                {"jwe-decrypt": {"key": "e", "secret": hex}},
            ]}),
        ),
        (
            "/api/v1/resources/certificates/b",
            json!({"key_pairs": [{"certificate": certificate, "key": key}], "names": ["b.test"]}),
        ),
    ]
}

#[tokio::test]
async fn readers_see_no_secret_in_any_dialect() {
    let plane = Plane::new().await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane.add("writer", &[(EVERYWHERE, Role::Write)]);
    plane.add("reader", &[(EVERYWHERE, Role::Read)]);
    plane.add("guest", &[("default", Role::Read)]);
    let written = secrets();
    let mut paths: Vec<String> = Vec::new();
    for (path, body) in &written {
        plane.expect("writer", "PUT", path, body).await;
        let (list, _) = path.rsplit_once('/').expect("a list");
        paths.extend([(*path).to_owned(), list.to_owned()]);
    }
    paths.retain(|path| path != "/apisix/admin/secrets/vault");
    let more = [
        "/key-auths",
        "/basic-auths",
        "/hmac-auths",
        "/jwts",
        "/oauth2",
        "/config",
        "/apisix/admin/secrets",
        "/apisix/admin/configs",
        "/v1/routes",
        "/v1/route/1",
        "/v1/services",
        "/v1/service/1",
        "/v1/upstreams",
        "/v1/upstream/1",
        "/api/v1/diff?from=0",
        "/api/v1/history",
    ];
    paths.extend(more.map(str::to_owned));
    let is_telling =
        |body: &str| body.contains(SECRET) || body.contains("PRIVATE KEY") || body.contains("abababab");
    let mut shown = 0;
    for path in &paths {
        for who in ["reader", "guest"] {
            let (status, _, body) = plane.call(who, "GET", path, &Value::Null).await;
            let is_elsewhere = who == "guest" && (path.starts_with("/api/") || path == "/config");
            assert_eq!(
                status,
                if is_elsewhere { 403 } else { 200 },
                "{who} {path}: {body}"
            );
            assert!(!is_telling(&body), "{who} {path}: {body}");
        }
        shown += usize::from(is_telling(
            &plane.expect("writer", "GET", path, &Value::Null).await,
        ));
    }
    // Clients of the originals compare what they read with what they are about to write.
    assert!(shown > paths.len() / 2, "{shown} of {}", paths.len());
    for path in [
        "/consumers/c/key-auth",
        "/config",
        "/apisix/admin/consumers/c",
        "/apisix/admin/upstreams/1",
        "/api/v1/resources/consumers/c",
    ] {
        let body = plane.expect("writer", "GET", path, &Value::Null).await;
        assert!(is_telling(&body), "{path}: {body}");
    }
    // Keys can stand in paths; those are recorded without them.
    let named = format!("/consumers/c/key-auth/{SECRET}-named");
    plane.expect("writer", "PUT", &named, &json!({})).await;
    let history = plane
        .expect("reader", "GET", "/api/v1/history", &Value::Null)
        .await;
    assert!(!history.contains(SECRET), "{history}");
}

#[tokio::test]
async fn a_writer_takes_nothing_of_another_workspace() {
    let plane = Plane::new().await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane.add("mallory", &[("team-a", Role::Write)]);
    plane.add("both", &[("team-a", Role::Write), ("default", Role::Write)]);
    plane.add("peeping", &[("team-a", Role::Write), ("default", Role::Read)]);
    for name in ["team-a", "team-b"] {
        plane
            .expect("admin", "POST", "/workspaces", &json!({"name": name}))
            .await;
    }
    let (certificate, key) = certificate();
    for (path, body) in [
        ("/routes/pay", json!({"paths": ["/pay"]})),
        (
            "/team-b/routes/shop",
            json!({"hosts": ["*.shop.test"], "paths": ["/"]}),
        ),
        (
            "/routes/tcp",
            json!({"protocols": ["tcp"], "destinations": [{"port": 9000}]}),
        ),
        ("/vaults/v", json!({"name": "env", "prefix": "v"})),
        (
            "/certificates/5f3e1c80-0000-4000-8000-000000000002",
            json!({"cert": certificate, "key": key, "snis": ["*.bank.test"]}),
        ),
    ] {
        plane.expect("admin", "PUT", path, &body).await;
    }
    let pay = json!({"paths": ["/pay"], "hosts": ["pay.test"], "methods": ["GET"], "headers": {"x": ["y"]}});
    let own = json!({"name": "own", "paths": ["/own"]});
    plane.expect("mallory", "POST", "/team-a/routes", &own).await;
    let certificates = |name: &str| json!({"cert": certificate, "key": key, "snis": [name]});
    for (method, path, body, status) in [
        ("POST", "/team-a/routes", pay.clone(), 409),
        ("PUT", "/team-a/routes/x", pay.clone(), 409),
        ("PATCH", "/team-a/routes/own", json!({"paths": ["/pay"]}), 409),
        (
            "PATCH",
            "/team-a/routes/own",
            json!({"hosts": ["a.shop.test"], "methods": ["GET"]}),
            409,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/"], "hosts": ["pay.test"], "methods": ["GET"]}),
            409,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"protocols": ["tcp"], "sources": [{"ip": "10.0.0.0/8"}]}),
            409,
        ),
        (
            "POST",
            "/team-a/vaults",
            json!({"name": "env", "prefix": "v"}),
            409,
        ),
        ("POST", "/team-a/certificates", certificates("a.bank.test"), 409),
        ("POST", "/team-a/certificates", certificates("*.bank.test"), 409),
        // What is nobody else's.
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/"], "hosts": ["own.test"], "methods": ["PUT"], "protocols": ["https"], "headers": {"a": ["b"]}, "name": "wide"}),
            409,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/other"], "hosts": ["own.test"], "name": "narrow"}),
            201,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/"], "name": "rest"}),
            201,
        ),
        ("PATCH", "/team-a/routes/own", json!({"tags": ["t"]}), 200),
        ("POST", "/team-a/certificates", certificates("a.own.test"), 201),
    ] {
        let (found, _, answer) = plane.call("mallory", method, path, &body).await;
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
        if status == 409 {
            let told: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(told["name"], "unique constraint violation", "{answer}");
            assert!(
                !answer.contains("default") && !answer.contains("team-b"),
                "{answer}"
            );
        }
    }
    for (who, status) in [("peeping", 409), ("both", 200), ("admin", 200)] {
        let (found, _, answer) = plane.call(who, "PUT", "/team-a/routes/x", &pay).await;
        assert_eq!(found, status, "{who}: {answer}");
    }
    // What is there stays as it is; it is not made to take more.
    plane
        .expect("mallory", "PATCH", "/team-a/routes/x", &json!({"tags": ["t"]}))
        .await;
    let (found, ..) = plane
        .call(
            "mallory",
            "PATCH",
            "/team-a/routes/x",
            &json!({"methods": ["PUT"]}),
        )
        .await;
    assert_eq!(found, 409);
}

#[tokio::test]
async fn a_write_says_that_a_plugin_is_not_served() {
    let plane = Plane::new().await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane
        .expect("admin", "POST", "/workspaces", &json!({"name": "team-a"}))
        .await;
    for (path, body, expected) in [
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000001",
            json!({"name": "session", "config": {"secret": "s"}}),
            "'session'",
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000001",
            json!({"name": "session", "enabled": false, "config": {"secret": "s"}}),
            "",
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000001",
            json!({"name": "cors"}),
            "",
        ),
        (
            "/apisix/admin/routes/1",
            json!({"uri": "/", "plugins": {"node-status": {}}}),
            "'node-status'",
        ),
        (
            "/apisix/admin/routes/1",
            json!({"uri": "/", "plugins": {"cors": {}}}),
            "",
        ),
    ] {
        let (status, warning, answer) = plane.call("admin", "PUT", path, &body).await;
        assert!(status < 300, "{path}: {answer}");
        assert_eq!(warning.is_empty(), expected.is_empty(), "{body}: {warning}");
        assert!(
            warning.contains(expected) && !warning.contains("s3"),
            "{body}: {warning}"
        );
    }
    // What stands at `/` is asked for so below a workspace.
    for (path, status) in [
        ("/", 200),
        ("/team-a/kong", 200),
        ("/default/kong", 200),
        ("/none/kong", 404),
    ] {
        let (found, _, answer) = plane.call("admin", "GET", path, &Value::Null).await;
        assert_eq!(found, status, "{path}");
        assert_eq!(answer.contains("\"version\""), status == 200, "{path}: {answer}");
    }
}
