//! Developers who sign in to a portal through a real OpenID provider.

use crate::openid::Provider;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt as _;
use weir_control::access::{Audit, Right, Role, Scope, Users};
use weir_control::api::{Api, ApiOptions, Delegate};
use weir_control::operational::OperationalStore;
use weir_control::outbox::Outbox;
use weir_portal::{Options, Portals};
use weir_store::Store;
use weir_store::memory::MemoryStore;

const URL: &str = "https://dev.test";
const CALLBACK: &str = "https://dev.test/portal/v1/session/openid/corp/callback";

struct Portal {
    router: Router,
    admin: Delegate,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    fn location(&self) -> String {
        let location = self.headers.get("location").and_then(|it| it.to_str().ok());
        location.unwrap_or_default().to_owned()
    }

    /// The cookies that it sets, without attributes.
    fn cookies(&self) -> Vec<String> {
        let set = self.headers.get_all("set-cookie").iter();
        let pairs = set.filter_map(|it| it.to_str().ok()?.split(';').next().map(str::to_owned));
        pairs.collect()
    }
}

impl Portal {
    async fn start() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let operational = OperationalStore::in_memory();
        let users = Users::open(Arc::clone(&store), &operational)
            .await
            .expect("users");
        let of_api = ApiOptions {
            users: users.clone(),
            operational: operational.clone(),
            ..ApiOptions::default()
        };
        let api = Api::open(Arc::clone(&store), of_api).await.expect("an API");
        let everywhere = |role| Right {
            role,
            scope: Scope::Everything,
        };
        let options = Options {
            store,
            delegate: Delegate::new(&api, vec![everywhere(Role::PortalAdmin)]),
            analytics: None,
            assets: weir_console::assets().expect("assets"),
            gateway: Arc::new(|_| None),
            is_tls: false,
            operational: operational.clone(),
            post: None,
            outbox: Outbox::without_mail(operational),
            audit: Audit::default(),
            providers: users.providers().clone(),
        };
        let portals = Portals::open(options).await.expect("portals");
        Self {
            router: weir_portal::router(&portals),
            admin: Delegate::new(&api, vec![everywhere(Role::Admin)]),
        }
    }

    async fn put(&self, path: &str, body: Value) -> Value {
        let done = self.admin.call("root", Method::PUT, path, Some(&body)).await;
        done.unwrap_or_else(|problem| panic!("{path}: {problem:?}"))
    }

    /// Writes the document of the portal, and waits until the portal knows it.
    async fn configure(&self, title: &str, sign_up: Value) {
        let teams = json!([{ "group": "shop", "team": "Shop", "role": "member" }]);
        let document = json!({
            "display_name": title, "url": URL, "sign_up": sign_up,
            "providers": [{ "name": "corp", "teams": teams }],
        });
        self.put("/api/v1/portals/main", document).await;
        for _ in 0..1_500 {
            if self.call("GET", "/portal/v1/portal", "").await.body["title"] == title {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the portal does not know its document after 30 s");
    }

    async fn call(&self, method: &str, path: &str, cookie: &str) -> Answer {
        let peer: SocketAddr = "192.0.2.7:1".parse().expect("an address");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "dev.test")
            .header("origin", URL)
            .header("cookie", cookie)
            .extension(ConnectInfo(peer))
            .body(Body::empty())
            .expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, 1 << 20).await.expect("a body");
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    /// Signs somebody in. Gives where the browser is sent in the end, and its cookie.
    async fn sign_in(&self, provider: &Provider, who: &str) -> (String, String) {
        let path = format!("/portal/v1/session/openid/corp?login_hint={who}&to=/apis");
        let start = self.call("GET", &path, "").await;
        assert_eq!(start.status, 303, "{}", start.body);
        let kept = start.cookies().remove(0);
        let back = provider.follow(&start.location()).await;
        let path = back.strip_prefix(URL).expect("the callback").to_owned();
        let stranger = self.call("GET", &path, "").await;
        assert_eq!(stranger.location(), "/login?error=not-begun-here");
        let done = self.call("GET", &path, &kept).await;
        assert_eq!(done.status, 303, "{}", done.body);
        let again = self.call("GET", &path, &kept).await.location();
        assert!(again.starts_with("/login?error="), "{again}");
        let cookie = done
            .cookies()
            .into_iter()
            .find(|it| it.starts_with("__Host-weir-portal="));
        (done.location(), cookie.unwrap_or_default())
    }
}

/// 39: groups give teams, changed groups take effect with the next login, signing out ends the session.
#[tokio::test]
async fn developers_sign_in_through_a_real_provider() {
    let provider = Provider::start(CALLBACK);
    let portal = Portal::start().await;
    // A provider without mappings lets in no users: there has to be one who may manage the others.
    let root = json!({ "rights": [{ "role": "admin" }] });
    let made = portal
        .admin
        .call("root", Method::POST, "/api/v1/users/root", Some(&root))
        .await;
    made.expect("a user");
    let body = json!({
        "issuer": provider.issuer, "client_id": "weir", "client_secret": "s+/e", "display_name": "Corp", "mappings": [],
    });
    portal.put("/api/v1/identity-providers/corp", body).await;
    portal.configure("Open", json!({})).await;
    let shown = portal.call("GET", "/portal/v1/portal", "").await;
    assert_eq!(
        shown.body["providers"],
        json!([{ "name": "corp", "title": "Corp" }])
    );
    provider.set_groups("ada", &["shop"]).await;
    let (location, ada) = portal.sign_in(&provider, "ada").await;
    assert_eq!(location, "/apis");
    let me = portal.call("GET", "/portal/v1/me", &ada).await;
    assert_eq!(
        (&me.body["mail"], &me.body["name"], &me.body["has_password"]),
        (&json!("ada@example.test"), &json!("The ada"), &json!(false))
    );
    let teams = portal.call("GET", "/portal/v1/teams", &ada).await;
    assert_eq!(
        (&teams.body["items"][0]["name"], &teams.body["items"][0]["role"]),
        (&json!("Shop"), &json!("member"))
    );
    // What has changed there is known with the next login, and it is the same person.
    provider.set_groups("ada", &["other"]).await;
    let (_, again) = portal.sign_in(&provider, "ada").await;
    let teams = portal.call("GET", "/portal/v1/teams", &again).await;
    assert_eq!(teams.body["items"], json!([]));
    let path = "/api/v1/portals/main/developers";
    let listed = portal.admin.call("root", Method::GET, path, None).await;
    let listed = listed.expect("developers");
    assert_eq!(
        (&listed["total"], &listed["items"][0]["provided"]),
        (&json!(1), &json!(["other"]))
    );
    portal.call("DELETE", "/portal/v1/session", &again).await;
    let me = portal.call("GET", "/portal/v1/me", &again).await;
    assert_eq!(me.body["id"], Value::Null);
    // The rules of signing up hold for those who come through a provider, too.
    portal.configure("Approval", json!({ "approval": true })).await;
    let (location, cookie) = portal.sign_in(&provider, "bob").await;
    assert_eq!((location.as_str(), cookie.as_str()), ("/login?error=waiting", ""));
    portal.configure("Closed", json!({ "mode": "closed" })).await;
    for (who, error) in [("eve", "not-welcome"), ("refuse", "refused")] {
        let (location, cookie) = portal.sign_in(&provider, who).await;
        assert_eq!(
            (location, cookie),
            (format!("/login?error={error}"), String::new())
        );
    }
    let (location, _) = portal.sign_in(&provider, "ada").await;
    assert_eq!(location, "/apis", "who has an account may go on");
    // A provider that the portal does not name is none.
    let other = portal.call("GET", "/portal/v1/session/openid/other", "").await;
    assert_eq!(other.status, 404);
}
