//! Logging in to Weir's own API: passwords, cookies, sessions, personal tokens.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower::ServiceExt as _;
use weir_control::access::password::{Cost, Passwords};
use weir_control::access::{Audit, Guard, Users, protect};
use weir_control::api::{Api, ApiOptions};
use weir_control::listen::OverTls;
use weir_control::operational::OperationalStore;
use weir_store::Store;
use weir_store::memory::MemoryStore;

const PASSWORD: &str = "correct horse";
const HOST: &str = "weir.test:8002";
const ORIGIN: &str = "https://weir.test:8002";

/// A control plane, with users of a store.
pub struct Plane(Router);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

/// A browser's side: what it shows.
#[derive(Clone, Default)]
pub struct Browser {
    cookie: Option<String>,
    token: Option<String>,
    origin: Option<&'static str>,
    is_cleartext: bool,
    address: Option<&'static str>,
}

impl Browser {
    pub fn with_cookie(cookie: &str) -> Self {
        Self {
            cookie: Some(cookie.to_owned()),
            origin: Some(ORIGIN),
            ..Self::default()
        }
    }

    pub fn with_token(token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..Self::default()
        }
    }
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// The cookie that it sets.
    pub fn cookie(&self) -> &str {
        let set = self.headers.get("set-cookie").expect("a cookie");
        set.to_str().expect("text").split(';').next().expect("a pair")
    }

    pub fn header(&self, name: &str) -> String {
        let value = self
            .headers
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {self:?}"));
        value.to_str().expect("text").to_owned()
    }

    pub fn text<'a>(&'a self, field: &str) -> &'a str {
        self.body[field]
            .as_str()
            .unwrap_or_else(|| panic!("{field}: {self:?}"))
    }
}

impl Plane {
    pub async fn over(store: &Arc<dyn Store>, operational: &OperationalStore) -> Self {
        let users = Users::open(Arc::clone(store), operational).await.expect("opened");
        let options = ApiOptions {
            users: users.clone(),
            operational: operational.clone(),
            passwords: Passwords::new(Cost {
                memory: 64,
                passes: 1,
            }),
            ..ApiOptions::default()
        };
        let api = Api::open(Arc::clone(store), options).await.expect("opened");
        let guard = Guard::new(Arc::new(weir_native::NativeDialect), users, Audit::default());
        Self(protect(api.router(), guard))
    }

    pub async fn call(&self, browser: &Browser, method: &str, path: &str, body: Value) -> Answer {
        let peer: SocketAddr = browser
            .address
            .unwrap_or("192.0.2.7:1")
            .parse()
            .expect("an address");
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", HOST)
            .header("content-type", "application/json")
            .extension(ConnectInfo(peer))
            .extension(OverTls(!browser.is_cleartext));
        if let Some(cookie) = &browser.cookie {
            request = request.header("cookie", cookie);
        }
        if let Some(token) = &browser.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(origin) = browser.origin {
            request = request.header("origin", origin);
        }
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = request.body(Body::from(body)).expect("a request");
        self.answer(request).await
    }

    /// A call from this machine, as it is let in while there are no users.
    pub async fn call_from_here(&self, method: &str, path: &str, body: Value) -> Answer {
        let here: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1:8002")
            .header("content-type", "application/json")
            .extension(ConnectInfo(here))
            .body(Body::from(body.to_string()))
            .expect("a request");
        self.answer(request).await
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let answer = self.0.clone().oneshot(request).await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        Answer {
            status,
            headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        }
    }

    pub async fn get(&self, browser: &Browser, path: &str) -> Answer {
        self.call(browser, "GET", path, Value::Null).await
    }

    /// The status of a call, whose answer may have no end.
    async fn status(&self, browser: &Browser, path: &str) -> u16 {
        let peer: SocketAddr = "192.0.2.7:1".parse().expect("an address");
        let mut request = Request::builder().uri(path).extension(ConnectInfo(peer));
        if let Some(token) = &browser.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.0.clone().oneshot(request).await.expect("an answer");
        answer.status().as_u16()
    }

    async fn log_in(&self, name: &str, password: &str) -> Answer {
        let body = json!({ "name": name, "password": password });
        self.call(&Browser::default(), "POST", "/api/v1/session", body)
            .await
    }

    async fn browser_of(&self, name: &str) -> Browser {
        Browser::with_cookie(self.log_in(name, PASSWORD).await.expect(201).cookie())
    }
}

/// A control plane with `root`, an admin with a password, and a token of the user `edge`, who is a gateway.
async fn with_root() -> (Plane, Arc<dyn Store>, OperationalStore, String) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let operational = OperationalStore::in_memory();
    let plane = Plane::over(&store, &operational).await;
    let body = json!({ "rights": [{ "role": "admin" }], "password": PASSWORD, "without_token": true });
    plane
        .call_from_here("POST", "/api/v1/users/root", body)
        .await
        .expect(201);
    let root = plane.browser_of("root").await;
    let edge = json!({ "rights": [{ "role": "gateway" }] });
    let made = plane
        .call(&root, "POST", "/api/v1/users/edge", edge)
        .await
        .expect(201);
    let token = made.text("token").to_owned();
    (plane, store, operational, token)
}

#[tokio::test]
async fn a_login_gives_a_cookie_that_lets_in() {
    let (plane, ..) = with_root().await;
    let options = plane
        .get(&Browser::default(), "/api/v1/session/options")
        .await
        .expect(200);
    assert_eq!(
        options.body,
        json!({ "has_users": true, "password": true, "providers": [] })
    );
    let answer = plane.log_in("root", PASSWORD).await.expect(201);
    let set = answer.headers["set-cookie"].to_str().expect("text").to_owned();
    assert!(set.starts_with("__Host-weir=weir_"), "{set}");
    for part in [
        "; Path=/",
        "; HttpOnly",
        "; Secure",
        "; SameSite=Lax",
        "; Max-Age=43200",
    ] {
        assert!(set.contains(part), "{set}");
    }
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.text("name"), "root");
    let browser = Browser::with_cookie(answer.cookie());
    let me = plane.get(&browser, "/api/v1/me").await.expect(200);
    assert_eq!((me.text("name"), me.text("method")), ("root", "password"));
    assert_eq!(me.body["session"]["is_own"], true);
    plane.get(&browser, "/api/v1/users").await.expect(200);
    // The other name of the cookie is for cleartext, and an unknown cookie opens no session.
    for cookie in [
        answer.cookie().replace("__Host-weir", "weir"),
        "__Host-weir=x".to_owned(),
    ] {
        let refused = plane
            .get(&Browser::with_cookie(&cookie), "/api/v1/me")
            .await
            .expect(401);
        assert_eq!(refused.text("type"), "urn:weir:problem:login-required");
    }
}

#[tokio::test]
async fn without_tls_only_this_machine_logs_in() {
    let (plane, ..) = with_root().await;
    let body = json!({ "name": "root", "password": PASSWORD });
    let call = async |address| {
        let browser = Browser {
            is_cleartext: true,
            address: Some(address),
            ..Browser::default()
        };
        plane
            .call(&browser, "POST", "/api/v1/session", body.clone())
            .await
    };
    let refused = call("192.0.2.7:1").await.expect(403);
    assert_eq!(refused.text("type"), "urn:weir:problem:tls-required");
    let answer = call("127.0.0.1:1").await.expect(201);
    let set = answer.headers["set-cookie"].to_str().expect("text");
    assert!(set.starts_with("weir=") && !set.contains("Secure"), "{set}");
}

#[tokio::test]
async fn another_site_can_neither_write_nor_log_in() {
    let (plane, ..) = with_root().await;
    let own = plane.browser_of("root").await;
    let new = json!({ "rights": [{ "role": "read" }] });
    for (origin, expected) in [(None, 403), (Some("https://evil.test"), 403), (Some(ORIGIN), 201)] {
        let browser = Browser {
            origin,
            ..own.clone()
        };
        let made = plane.call(&browser, "POST", "/api/v1/users/x", new.clone()).await;
        assert_eq!(made.status, expected, "{origin:?}");
        // Reading is no harm: another site is not shown the answer.
        plane.get(&browser, "/api/v1/me").await.expect(200);
    }
    let evil = Browser {
        origin: Some("https://evil.test"),
        ..Browser::default()
    };
    let body = json!({ "name": "root", "password": PASSWORD });
    plane
        .call(&evil, "POST", "/api/v1/session", body)
        .await
        .expect(403);
}

#[tokio::test]
async fn answers_do_not_reveal_whether_a_user_exists_and_wrong_passwords_slow_down() {
    let (plane, ..) = with_root().await;
    // Users without a password, and those that do not exist, are refused as those with another password are.
    for name in ["root", "edge", "unknown", ""] {
        let mut seen = Vec::new();
        for _ in 0..6 {
            let refused = plane.log_in(name, "wrong password").await;
            seen.push((refused.status, refused.body.clone(), refused.headers.len()));
        }
        let (first, last) = (&seen[0], &seen[5]);
        assert!(seen[..5].iter().all(|it| it == first), "{name}: {seen:?}");
        assert_eq!(
            (first.0, &first.1["detail"]),
            (401, &json!("name or password is wrong"))
        );
        assert_eq!(last.0, 429, "{name}");
        assert_eq!(last.1["type"], "urn:weir:problem:too-many-attempts");
    }
    // Also the right one has to wait, and the answer says for how long.
    let refused = plane.log_in("root", PASSWORD).await.expect(429);
    let wait: u64 = refused.headers["retry-after"]
        .to_str()
        .expect("text")
        .parse()
        .expect("a number");
    assert!((1..=3).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_login_ends_the_session_before_and_takes_none_that_was_given() {
    let (plane, ..) = with_root().await;
    let before = plane.browser_of("root").await;
    let body = json!({ "name": "root", "password": PASSWORD });
    let login = plane
        .call(&before, "POST", "/api/v1/session", body.clone())
        .await
        .expect(201);
    assert_ne!(Some(login.cookie()), before.cookie.as_deref());
    plane.get(&before, "/api/v1/me").await.expect(401);
    plane
        .get(&Browser::with_cookie(login.cookie()), "/api/v1/me")
        .await
        .expect(200);
    let planted = Browser::with_cookie("__Host-weir=weir_00");
    let login = plane
        .call(&planted, "POST", "/api/v1/session", body)
        .await
        .expect(201);
    assert_ne!(login.cookie(), "__Host-weir=weir_00");
    plane.get(&planted, "/api/v1/me").await.expect(401);
}

#[tokio::test]
async fn a_logout_ends_the_session_on_every_control_plane() {
    let (plane, store, operational, _) = with_root().await;
    let other = Plane::over(&store, &operational).await;
    let browser = plane.browser_of("root").await;
    let soon = async |status| {
        let begun = Instant::now();
        while other.get(&browser, "/api/v1/me").await.status != status {
            assert!(begun.elapsed() < Duration::from_secs(20), "{status}: not in time");
            tokio::task::yield_now().await;
        }
    };
    soon(200).await;
    let out = plane
        .call(&browser, "DELETE", "/api/v1/session", Value::Null)
        .await
        .expect(200);
    assert!(
        out.headers["set-cookie"]
            .to_str()
            .expect("text")
            .contains("Max-Age=0")
    );
    plane.get(&browser, "/api/v1/me").await.expect(401);
    soon(401).await;
}

#[tokio::test]
async fn sessions_end_with_the_password_the_rights_and_the_user() {
    let (plane, ..) = with_root().await;
    let root = plane.browser_of("root").await;
    let ada = json!({ "rights": [{ "role": "admin" }], "password": PASSWORD });
    let made = plane
        .call(&root, "POST", "/api/v1/users/ada", ada)
        .await
        .expect(201);
    assert!(made.body["token"].is_string());
    let (one, two) = (plane.browser_of("ada").await, plane.browser_of("ada").await);
    let sessions = plane.get(&one, "/api/v1/me/sessions").await.expect(200);
    assert_eq!(sessions.body["items"].as_array().expect("a list").len(), 2);
    // Rights are those of this moment.
    let rights = json!({ "rights": [{ "role": "viewer", "api": "orders" }] });
    plane
        .call(&root, "PUT", "/api/v1/users/ada/rights", rights)
        .await
        .expect(200);
    plane.get(&one, "/api/v1/users").await.expect(403);
    for (body, status, kind) in [
        (json!({ "new": "another horse" }), 403, "wrong-password"),
        (
            json!({ "current": "wrong", "new": "another horse" }),
            403,
            "wrong-password",
        ),
        (
            json!({ "current": PASSWORD, "new": "short" }),
            422,
            "weak-password",
        ),
    ] {
        let refused = plane
            .call(&one, "PUT", "/api/v1/me/password", body)
            .await
            .expect(status);
        assert_eq!(refused.text("type"), format!("urn:weir:problem:{kind}"));
    }
    let change = json!({ "current": PASSWORD, "new": "another horse" });
    plane
        .call(&one, "PUT", "/api/v1/me/password", change)
        .await
        .expect(204);
    plane.get(&one, "/api/v1/me").await.expect(200);
    plane.get(&two, "/api/v1/me").await.expect(401);
    plane.log_in("ada", PASSWORD).await.expect(401);
    plane.log_in("ada", "another horse").await.expect(201);
    plane
        .call(
            &root,
            "PUT",
            "/api/v1/users/ada/password",
            json!({ "password": PASSWORD }),
        )
        .await
        .expect(204);
    plane.get(&one, "/api/v1/me").await.expect(401);
    let again = plane.browser_of("ada").await;
    // A name that no user has is a mistake.
    plane
        .call(&root, "DELETE", "/api/v1/users/nosuch/sessions", Value::Null)
        .await
        .expect(404);
    plane
        .call(&root, "DELETE", "/api/v1/users/ada", Value::Null)
        .await
        .expect(204);
    plane.get(&again, "/api/v1/me").await.expect(401);
}

#[tokio::test]
async fn personal_tokens_act_as_their_user_and_no_more() {
    let (plane, ..) = with_root().await;
    let root = plane.browser_of("root").await;
    let reader = json!({ "name": "ci", "days": 2, "rights": [{ "role": "viewer" }], "password": PASSWORD });
    let made = plane
        .call(&root, "POST", "/api/v1/me/tokens", reader)
        .await
        .expect(201);
    let ci = Browser::with_token(made.text("token"));
    let me = plane.get(&ci, "/api/v1/me").await.expect(200);
    assert_eq!((me.text("name"), me.text("method")), ("root", "personal-token"));
    plane.get(&ci, "/api/v1/resources/services").await.expect(200);
    plane.get(&ci, "/api/v1/users").await.expect(403);
    // It makes neither passwords nor other tokens.
    let refused = json!({ "name": "x" });
    plane
        .call(&ci, "POST", "/api/v1/me/tokens", refused)
        .await
        .expect(403);
    plane
        .call(
            &ci,
            "PUT",
            "/api/v1/me/password",
            json!({ "new": "another horse" }),
        )
        .await
        .expect(403);
    for (body, part) in [
        (json!({ "name": "x", "days": 0 }), "days"),
        (json!({ "name": "x", "days": 367 }), "days"),
        (json!({ "name": " " }), "name"),
        // A browser that was left open makes none.
        (json!({ "name": "x" }), "password"),
    ] {
        let refused = plane
            .call(&root, "POST", "/api/v1/me/tokens", body)
            .await
            .expect(400);
        assert!(refused.text("detail").contains(part), "{refused:?}");
    }
    let wrong = json!({ "name": "x", "password": "another horse" });
    let wrong = plane.call(&root, "POST", "/api/v1/me/tokens", wrong).await;
    assert_eq!(wrong.expect(403).text("type"), "urn:weir:problem:wrong-password");
    let listed = plane.get(&root, "/api/v1/me/tokens").await.expect(200);
    let id = listed.body["items"][0]["id"].as_str().expect("an id").to_owned();
    assert!(!listed.body.to_string().contains(made.text("token")));
    plane
        .call(&root, "DELETE", &format!("/api/v1/me/tokens/{id}"), Value::Null)
        .await
        .expect(204);
    plane.get(&ci, "/api/v1/me").await.expect(401);
    plane
        .call(&root, "DELETE", &format!("/api/v1/me/tokens/{id}"), Value::Null)
        .await
        .expect(404);
}

#[tokio::test]
async fn callers_see_what_they_may_do() {
    let (plane, _, _, edge) = with_root().await;
    let root = plane.browser_of("root").await;
    let owner = json!({ "rights": [{ "role": "api-owner", "api": "orders" }] });
    let made = plane
        .call(&root, "POST", "/api/v1/users/ada", owner)
        .await
        .expect(201);
    let can = async |browser: &Browser, operation: &str| {
        let all = plane.get(browser, "/api/v1/me/can").await.expect(200);
        let items = all.body["items"].as_array().expect("a list").clone();
        items
            .into_iter()
            .find(|it| it["operation"] == operation)
            .expect("the call")
    };
    let ada = Browser::with_token(made.text("token"));
    for (browser, operation, expected) in [
        (&root, "addUser", json!(["everything"])),
        (&ada, "addUser", json!([])),
        (&ada, "putDraft", json!(["api:orders"])),
        (&Browser::with_token(&edge), "putDraft", json!([])),
    ] {
        let found = can(browser, operation).await;
        assert_eq!(found["scopes"], expected, "{operation}");
        assert_eq!(found["allowed"], json!(expected != json!([])));
        assert_eq!(found["reason"].is_string(), expected == json!([]), "{found}");
    }
}

/// Neither store holds a password, a token or a cookie.
#[tokio::test]
async fn only_hashes_are_kept() {
    let (plane, store, operational, edge) = with_root().await;
    let root = plane.browser_of("root").await;
    let made = plane
        .call(
            &root,
            "POST",
            "/api/v1/me/tokens",
            json!({ "name": "ci", "password": PASSWORD }),
        )
        .await
        .expect(201);
    let (_, cookie) = root
        .cookie
        .as_deref()
        .expect("one")
        .split_once('=')
        .expect("a pair");
    let mut held = String::new();
    for store in [&store, operational.store()] {
        for document in store.read("").await.expect("read").0 {
            held.push_str(document.key.as_str());
            held.push_str(&String::from_utf8_lossy(&document.value));
        }
    }
    assert!(
        held.contains("sessions/root/") && held.contains("$argon2id$"),
        "{held}"
    );
    for secret in [PASSWORD, cookie, &edge, made.text("token")] {
        assert!(!held.contains(secret), "{secret}");
    }
    // Nor does the difference of two revisions show a hash.
    let diff = plane.get(&root, "/api/v1/diff?from=0").await.expect(200);
    assert!(!diff.body.to_string().contains("$argon2id$"), "{:?}", diff.body);
}

/// 16, for rights: a user with the right in an environment follows it, and no other.
#[tokio::test]
async fn a_gateway_follows_the_environments_of_its_right() {
    let (plane, _, _, edge) = with_root().await;
    let root = plane.browser_of("root").await;
    plane
        .call(&root, "PUT", "/api/v1/environments/test", json!({}))
        .await
        .expect(201);
    let rights = json!({ "rights": [{ "role": "gateway", "environment": "test" }] });
    let made = plane
        .call(&root, "POST", "/api/v1/users/test-1", rights)
        .await
        .expect(201);
    let (everywhere, test) = (
        Browser::with_token(&edge),
        Browser::with_token(made.text("token")),
    );
    for (browser, name, environments, expected) in [
        (&everywhere, "edge", "prod", 200),
        (&everywhere, "edge", "test,prod", 200),
        (&test, "edge-test", "test", 200),
        (&test, "edge-test", "prod", 403),
        (&test, "edge-test", "test,prod", 403),
        (&test, "edge-test", "default", 403),
    ] {
        let path = format!("/api/v1/sync?environment={environments}");
        assert_eq!(plane.status(browser, &path).await, expected, "{environments}");
        // It settles limits with no others, either.
        let path = format!("/api/v1/gateways/{name}/limits?environment={environments}");
        let report = json!({ "run": 1, "counts": [] });
        plane.call(browser, "POST", &path, report).await.expect(expected);
        // Nor does it report for them.
        let environments: Vec<&str> = environments.split(',').collect();
        let report = json!({ "state": "serving", "environments": environments });
        let path = format!("/api/v1/gateways/{name}");
        plane.call(browser, "POST", &path, report).await.expect(expected);
    }
    let (path, report) = ("/api/v1/gateways/a%0Ab", json!({ "environments": ["test"] }));
    plane.call(&test, "POST", path, report).await.expect(400);
    // Nor does it speak for the gateway of another user.
    for (path, body) in [
        (
            "/api/v1/gateways/edge/limits?environment=test",
            json!({ "run": 2, "counts": [] }),
        ),
        ("/api/v1/gateways/edge", json!({ "state": "serving" })),
        ("/api/v1/gateways/edge/analytics", json!({})),
    ] {
        let refused = plane.call(&test, "POST", path, body).await.expect(403);
        let detail = refused.text("detail");
        assert!(
            detail.contains("another user is named 'edge'"),
            "{path}: {detail}"
        );
    }
    assert_eq!(plane.status(&test, "/api/v1/sync").await, 403);
    assert_eq!(plane.status(&test, "/api/v1/events").await, 200);
    assert_eq!(plane.status(&Browser::default(), "/api/v1/events").await, 401);
}
