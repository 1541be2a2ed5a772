//! Developers of a portal over its HTTP API, with stores in memory and mails that are caught: signing up and in, passwords,
//! teams, applications and subscriptions; and what administrators decide about them.

mod administration;
mod hostile;
mod second_factor;
mod subscribing;
mod tokens;
mod trials;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tower::ServiceExt;
use weir_control::access::password::Passwords;
use weir_control::access::{Audit, Right, Role, Scope};
use weir_control::analytics::{Analytics, AnalyticsPaths, Options as AnalyticsOptions};
use weir_control::api::{Api, ApiOptions, Delegate};
use weir_control::developers::DeveloperStore;
use weir_control::operational::OperationalStore;
use weir_control::outbox::{Failure, Message, Outbox, Transport};
use weir_control::quotas::{Limited, LocalUsage, WindowUsage};
use weir_portal::{Mail, Options, Portals};
use weir_store::Store;
use weir_store::memory::MemoryStore;

const ORIGIN: &str = "http://portal.test";

struct Portal {
    router: Router,
    provider: Delegate,
    api: Arc<Api>,
    people: DeveloperStore,
    outbox: Outbox,
    mails: Arc<Mutex<Vec<Mail>>>,
}

/// A mail server that takes everything.
struct AcceptingTransport;

#[async_trait]
impl Transport for AcceptingTransport {
    async fn send(&self, _: &str, _: &Message, _: SystemTime) -> Result<(), Failure> {
        Ok(())
    }

    fn can_mail(&self) -> bool {
        true
    }
}

/// An answer.
struct PortalResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl PortalResponse {
    fn cookie(&self) -> String {
        let set = self
            .headers
            .get(header::SET_COOKIE)
            .and_then(|it| it.to_str().ok());
        set.and_then(|it| it.split(';').next())
            .unwrap_or_default()
            .to_owned()
    }

    #[track_caller]
    fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }

    fn text(&self, field: &str) -> String {
        self.body[field].as_str().unwrap_or_default().to_owned()
    }
}

impl Portal {
    /// With a portal whose URL is known.
    async fn start() -> Self {
        let portal = Self::without_document().await;
        let document = json!({ "display_name": "Plain", "url": ORIGIN });
        portal.configure("Plain", document).await;
        portal
    }

    /// Writes the document of the portal, and waits until the portal knows it.
    async fn configure(&self, title: &str, document: Value) {
        self.provide(Method::PUT, "/api/v1/portals/main", document).await;
        for _ in 0..1_500 {
            if self.get("/portal", "").await.text("title") == title {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the portal does not know its document after 30 s");
    }

    /// As on the first day.
    async fn without_document() -> Self {
        Self::with(None, Arc::new(|_, _| None)).await
    }

    /// As on the first day, with analytics, and with what limits have counted.
    async fn with(analytics: Option<Analytics>, counted: LocalUsage) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let operational = OperationalStore::in_memory();
        let outbox = Outbox::new(operational.clone(), AcceptingTransport);
        let of_api = ApiOptions {
            operational: operational.clone(),
            outbox: outbox.clone(),
            ..ApiOptions::default()
        };
        let api = Api::open(Arc::clone(&store), of_api).await.expect("an API");
        let right = |role| Right {
            role,
            scope: Scope::Everything,
        };
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let caught = Arc::clone(&mails);
        let options = Options {
            store,
            delegate: Delegate::new(&api, vec![right(Role::PortalAdmin)]),
            analytics,
            assets: weir_console::assets().expect("assets"),
            gateway: Arc::new(|_| Some("http://gateway.test".to_owned())),
            counted,
            is_tls: false,
            operational,
            outbox: outbox.clone(),
            audit: Audit::default(),
            providers: Default::default(),
            post: Some(Arc::new(move |mail| {
                caught.lock().expect("whole").push(mail);
                Box::pin(async { Ok(()) })
            })),
        };
        let people = DeveloperStore::new(options.operational.clone(), Passwords::default());
        let portals = Portals::open(options).await.expect("portals");
        Self {
            router: weir_portal::router(&portals),
            provider: Delegate::new(&api, vec![right(Role::Admin)]),
            api,
            people,
            outbox,
            mails,
        }
    }

    /// A call of the portal's API, with a cookie.
    async fn call(&self, method: Method, path: &str, cookie: &str, body: Value) -> PortalResponse {
        self.call_at("portal.test", (method, path), cookie, body).await
    }

    /// A call with a `Host` of one's choice.
    async fn call_at(
        &self,
        host: &str,
        (method, path): (Method, &str),
        cookie: &str,
        body: Value,
    ) -> PortalResponse {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/portal/v1{path}"))
            .header(header::HOST, host)
            .header(header::ORIGIN, format!("http://{host}"))
            .header(header::CONTENT_TYPE, "application/json");
        if !cookie.is_empty() {
            request = request.header(header::COOKIE, cookie);
        }
        self.ask(request.body(Body::from(body.to_string())).expect("a request"))
            .await
    }

    async fn ask(&self, mut request: Request<Body>) -> PortalResponse {
        let peer: SocketAddr = "192.0.2.1:1000".parse().expect("an address");
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        PortalResponse {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    async fn post(&self, path: &str, cookie: &str, body: Value) -> PortalResponse {
        self.call(Method::POST, path, cookie, body).await
    }

    async fn get(&self, path: &str, cookie: &str) -> PortalResponse {
        self.call(Method::GET, path, cookie, json!({})).await
    }

    /// What the provider does.
    async fn provide(&self, method: Method, path: &str, body: Value) -> Value {
        let done = self.provider.call("provider", method, path, Some(&body)).await;
        done.unwrap_or_else(|problem| panic!("{path}: {problem:?}"))
    }

    /// The secret in the last mail to an address, and how many mails there are.
    fn secret(&self, to: &str) -> String {
        let mails = self.mails.lock().expect("whole");
        let mail = mails.iter().rev().find(|it| it.to == to).expect("a mail");
        let (_, rest) = mail
            .text
            .split_once('#')
            .unwrap_or_else(|| panic!("{}", mail.text));
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    }

    fn count(&self) -> usize {
        self.mails.lock().expect("whole").len()
    }

    /// Waits until so many mails were sent: a link for a new password is made after the answer.
    async fn until_mailed(&self, count: usize) {
        let all = async {
            while self.count() < count {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), all)
            .await
            .expect("mails");
    }

    /// Signs a developer up and in. Returns the cookie.
    async fn join(&self, name: &str) -> String {
        let mail = format!("{name}@example.com");
        let wanted = json!({ "mail": mail, "name": name, "password": "correct horse" });
        self.post("/sign-up", "", wanted).await.expect(202);
        self.post("/confirm", "", json!({ "token": self.secret(&mail) }))
            .await
            .expect(200);
        let given = json!({ "mail": mail, "password": "correct horse" });
        self.post("/session", "", given).await.expect(200).cookie()
    }

    /// An API with a plan.
    async fn publish(&self) {
        let put = |path: &'static str, body| self.provide(Method::PUT, path, body);
        put("/api/v1/environments/default", json!({})).await;
        put("/api/v1/apis/pets", json!({ "visibility": "signed-in" })).await;
        let document = json!({
            "openapi": "3.1.0", "info": { "title": "Pets", "version": "1" },
            "paths": { "/pets": { "get": { "operationId": "listPets", "summary": "Lists pets", "responses": { "200": { "description": "ok" } } },
                "trace": { "operationId": "tracePets", "responses": { "200": { "description": "ok" } } } } },
        });
        self.provide(Method::POST, "/api/v1/apis/pets/versions?version=1", document)
            .await;
        put(
            "/api/v1/apis/pets/versions/1/plans/gold",
            json!({ "state": "published", "conditions": "Be kind." }),
        )
        .await;
        put(
            "/api/v1/apis/pets/versions/1/plans/staff",
            json!({ "state": "published", "visible_to": ["staff"] }),
        )
        .await;
        let runtime = json!({ "runtime": { "base_path": "/pets", "backends": { "main": { "url": "http://127.0.0.1:9" } } } });
        self.provide(Method::POST, "/api/v1/publications/pets/1/default", runtime)
            .await;
    }
}

/// 29
#[tokio::test]
async fn signing_up_asks_for_the_mail_and_links_are_good_once() {
    let portal = Portal::start().await;
    let wanted = |password: &str| json!({ "mail": "Ann@Example.com", "name": "Ann", "password": password });
    portal.post("/sign-up", "", wanted("short")).await.expect(422);
    let first = portal
        .post("/sign-up", "", wanted("correct horse"))
        .await
        .expect(202);
    let given = json!({ "mail": "ann@example.com", "password": "correct horse" });
    portal.post("/session", "", given.clone()).await.expect(403);
    let token = json!({ "token": portal.secret("ann@example.com") });
    portal.post("/confirm", "", token.clone()).await.expect(200);
    portal.post("/confirm", "", token).await.expect(410);
    let signed_in = portal.post("/session", "", given).await.expect(200);
    let set = signed_in.headers[header::SET_COOKIE]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(
        set.starts_with("weir-portal=") && set.contains("HttpOnly") && set.contains("SameSite=Lax"),
        "{set}"
    );
    let me = portal.get("/me", &signed_in.cookie()).await.expect(200);
    assert_eq!(me.text("mail"), "ann@example.com");
    // The same is said of an address that is known, and of one that is not.
    let again = portal
        .post("/sign-up", "", wanted("another sentence"))
        .await
        .expect(202);
    assert_eq!(again.body, first.body);
    let before = portal.count();
    let unknown = portal
        .post("/reset", "", json!({ "mail": "bob@example.com" }))
        .await
        .expect(202);
    assert_eq!(portal.count(), before);
    let known = portal
        .post("/reset", "", json!({ "mail": "ann@example.com" }))
        .await
        .expect(202);
    assert_eq!(known.body, unknown.body);
    portal.until_mailed(before + 1).await;
    assert_eq!(portal.count(), before + 1);
    let fresh = json!({ "token": portal.secret("ann@example.com"), "password": "a new sentence" });
    portal
        .post("/reset/password", "", fresh.clone())
        .await
        .expect(200);
    portal.post("/reset/password", "", fresh).await.expect(410);
    assert_eq!(
        portal.get("/me", &signed_in.cookie()).await.body["id"],
        Value::Null,
        "all sessions are ended"
    );
    // Signed out is signed out.
    let given = json!({ "mail": "ann@example.com", "password": "a new sentence" });
    let cookie = portal.post("/session", "", given).await.expect(200).cookie();
    portal
        .call(Method::DELETE, "/session", &cookie, json!({}))
        .await
        .expect(204);
    assert_eq!(portal.get("/me", &cookie).await.body["id"], Value::Null);
}

/// 29
#[tokio::test]
async fn five_wrong_passwords_slow_down_and_reveal_nothing() {
    let portal = Portal::start().await;
    portal.join("ann").await;
    let mut lines = Vec::new();
    for mail in ["ann@example.com", "unknown@example.com"] {
        let mut statuses = Vec::new();
        for _ in 0..6 {
            let given = json!({ "mail": mail, "password": "wrong password" });
            let answer = portal.post("/session", "", given).await;
            statuses.push((answer.status.as_u16(), answer.text("type")));
        }
        assert_eq!(statuses.last().map(|it| it.0), Some(429), "{statuses:?}");
        lines.push(statuses);
    }
    assert_eq!(lines[0], lines[1]);
}

#[tokio::test]
async fn writes_come_from_the_portals_own_pages_and_cookies_of_others_mean_nothing() {
    let portal = Portal::start().await;
    portal.join("ann").await;
    for cookie in [
        "weir=0123456789abcdef.secret",
        "weir-portal=0123456789abcdef.secret",
        "weir-portal=x",
    ] {
        assert_eq!(
            portal.get("/me", cookie).await.expect(200).body["id"],
            Value::Null
        );
        portal.get("/apps", cookie).await.expect(401);
    }
}

/// 35
#[tokio::test]
async fn who_leaves_a_team_loses_its_applications_which_stay() {
    let portal = Portal::start().await;
    let (ann, bob) = (portal.join("ann").await, portal.join("bob").await);
    let team = portal
        .post("/teams", &ann, json!({ "name": "Shop" }))
        .await
        .expect(201)
        .text("id");
    let invite = format!("/teams/{team}/invitations");
    portal
        .post(
            &invite,
            &ann,
            json!({ "mail": "bob@example.com", "role": "member" }),
        )
        .await
        .expect(202);
    let token = json!({ "token": portal.secret("bob@example.com") });
    portal.post("/invitations", &ann, token.clone()).await.expect(403);
    portal.post("/invitations", &bob, token.clone()).await.expect(200);
    portal.post("/invitations", &bob, token).await.expect(410);
    portal
        .post(
            &invite,
            &bob,
            json!({ "mail": "eve@example.com", "role": "owner" }),
        )
        .await
        .expect(403);
    let app = portal
        .post("/apps", &bob, json!({ "title": "Till", "team": team }))
        .await
        .expect(201)
        .text("name");
    let path = format!("/apps/{app}");
    portal.get(&path, &ann).await.expect(200);
    let me = portal.get("/me", &bob).await.text("id");
    portal
        .call(
            Method::DELETE,
            &format!("/teams/{team}/members/{me}"),
            &bob,
            json!({}),
        )
        .await
        .expect(204);
    portal.get(&path, &bob).await.expect(404);
    portal.get(&path, &ann).await.expect(200);
    // The last owner stays as long as something belongs to the team.
    let me = portal.get("/me", &ann).await.text("id");
    portal
        .call(
            Method::DELETE,
            &format!("/teams/{team}/members/{me}"),
            &ann,
            json!({}),
        )
        .await
        .expect(409);
}

/// 20, 28
#[tokio::test]
async fn applications_subscribe_and_see_their_key_once() {
    let portal = Portal::start().await;
    portal.publish().await;
    let (ann, eve) = (portal.join("ann").await, portal.join("eve").await);
    portal.get("/apis/pets", "").await.expect(404);
    portal.get("/apis/pets", &ann).await.expect(200);
    // The path is told by itself, too; and nothing is listed that no gateway serves.
    let version = portal.get("/apis/pets/versions/1", &ann).await.expect(200).body;
    let place = &version["places"][0];
    assert_eq!(
        (&place["base_url"], &place["base_path"]),
        (&json!("http://gateway.test/pets"), &json!("/pets"))
    );
    let names: Vec<&Value> = version["operations"]
        .as_array()
        .expect("operations")
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(names, [&json!("listPets")]);
    let app = portal
        .post("/apps", &ann, json!({ "title": "My shop!" }))
        .await
        .expect(201)
        .text("name");
    let path = format!("/apps/{app}/subscriptions");
    let wanted = |plan: &str, revision: u32| json!({ "publication": "pets/1/default", "plan": plan, "conditions_revision": revision });
    portal.post(&path, &eve, wanted("gold", 1)).await.expect(404);
    portal.post(&path, &ann, wanted("staff", 0)).await.expect(403);
    let refused = portal.post(&path, &ann, wanted("gold", 0)).await.expect(409);
    assert!(refused.text("detail").contains("conditions"), "{}", refused.body);
    let made = portal.post(&path, &ann, wanted("gold", 1)).await.expect(201);
    let (key, id) = (
        made.body["key"]["key"].as_str().expect("a key").to_owned(),
        made.text("id"),
    );
    assert_eq!(key.len(), 64);
    let twice = portal.post(&path, &ann, wanted("gold", 1)).await.expect(409);
    assert!(twice.text("detail").contains("already"), "{}", twice.body);
    let shown = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    assert!(!shown.body.to_string().contains(&key) && shown.body.to_string().contains(&key[..8]));
    let old = shown.body["subscriptions"][0]["keys"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let keys = format!("{path}/{id}/keys");
    let fresh = portal
        .post(&keys, &ann, json!({ "replaces": old }))
        .await
        .expect(201);
    assert_ne!(fresh.text("key"), key);
    portal.post(&keys, &eve, json!({})).await.expect(404);
    portal
        .call(Method::DELETE, &format!("{keys}/{old}"), &ann, json!({}))
        .await
        .expect(204);
    let state = format!("{path}/{id}/state");
    assert_eq!(
        portal
            .post(&state, &ann, json!({ "state": "stopped" }))
            .await
            .expect(200)
            .text("state"),
        "stopped"
    );
    portal
        .post(&state, &ann, json!({ "state": "paused" }))
        .await
        .expect(403);
    assert_eq!(
        portal
            .post(&state, &ann, json!({ "state": "accepted" }))
            .await
            .expect(200)
            .text("state"),
        "accepted"
    );
    // The history has the developer's name.
    let history = portal
        .provide(Method::GET, "/api/v1/history?limit=1", json!({}))
        .await;
    assert_eq!(history["items"][0]["author"], "developer ann@example.com");
    portal.get(&format!("/apps/{app}/usage"), &ann).await.expect(404);
}

/// What is left of a product's quota is shown for each environment, by the limiter's count or by what gateways have reported.
#[tokio::test]
async fn quotas_of_products_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = AnalyticsPaths::of(folder.path());
    let analytics = Analytics::open(&place, AnalyticsOptions::default()).expect("analytics");
    let counted = |environment: &str, of: &Limited<'_>| {
        let is_it = of.limit == "products.bundle.plan.gold" && of.consumer.starts_with("sub.");
        (environment == "default" && is_it).then_some(WindowUsage {
            used: 30,
            reset_ms: 5_000,
        })
    };
    let portal = Portal::with(Some(analytics), Arc::new(counted)).await;
    portal
        .configure("Plain", json!({ "display_name": "Plain", "url": ORIGIN }))
        .await;
    portal.publish().await;
    let put = |path: &'static str, body| portal.provide(Method::PUT, path, body);
    put("/api/v1/environments/far", json!({})).await;
    let runtime = json!({ "runtime": { "base_path": "/pets", "backends": { "main": { "url": "http://127.0.0.1:9" } } } });
    portal
        .provide(Method::POST, "/api/v1/publications/pets/1/far", runtime)
        .await;
    let product = json!({ "state": "published", "publications": { "pets/1/default": [], "pets/1/far": [] } });
    put("/api/v1/products/bundle", product).await;
    let plan = json!({ "state": "published", "limits": [{ "count": 100, "per": "month" }] });
    put("/api/v1/products/bundle/plans/gold", plan).await;
    let ann = portal.join("ann").await;
    let app = portal.post("/apps", &ann, json!({ "title": "Shop" })).await;
    let app = app.expect(201).text("name");
    let wanted = json!({ "application": app, "product": "bundle", "plan": "gold" });
    portal
        .provide(Method::POST, "/api/v1/subscriptions", wanted)
        .await;
    let path = format!("/apps/{app}/usage");
    // The portal follows the store: what the provider writes is there a moment later.
    let mut quotas = Value::Null;
    for _ in 0..1_500 {
        quotas = portal.get(&path, &ann).await.expect(200).body["quotas"].clone();
        if quotas.as_array().is_some_and(|it| !it.is_empty()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let shown: Vec<Value> = quotas
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| {
            json!([
                it["product"],
                it["environment"],
                it["limit"],
                it["left"],
                it["is_exact"],
                it["per"],
                it["is_shared"]
            ])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["bundle", "default", 100, 70, true, "month", true]),
            json!(["bundle", "far", 100, 100, false, "month", true]),
        ]
    );
    let listed = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    assert_eq!(listed.body["subscriptions"][0]["product"], "bundle");
}
