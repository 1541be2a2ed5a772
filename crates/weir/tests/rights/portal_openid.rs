//! Developers who sign in to a portal through a real OpenID provider.

use crate::openid::Provider;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt as _;
use weir_control::access::{Audit, Right, Role, Scope, Users};
use weir_control::api::{Api, ApiOptions, Delegate};
use weir_control::operational::OperationalStore;
use weir_control::outbox::Outbox;
use weir_portal::{Mail, Options, Portals};
use weir_store::Store;
use weir_store::memory::MemoryStore;

const URL: &str = "https://dev.test";
const CALLBACK: &str = "https://dev.test/portal/v1/session/openid/corp/callback";

struct Portal {
    router: Router,
    admin: Delegate,
    mails: Arc<Mutex<Vec<Mail>>>,
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
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let caught = Arc::clone(&mails);
        let options = Options {
            store,
            delegate: Delegate::new(&api, vec![everywhere(Role::PortalAdmin)]),
            analytics: None,
            assets: weir_console::assets().expect("assets"),
            gateway: Arc::new(|_| None),
            is_tls: false,
            operational: operational.clone(),
            post: Some(Arc::new(move |mail| {
                caught.lock().expect("whole").push(mail);
                Box::pin(async { Ok(()) })
            })),
            outbox: Outbox::without_mail(operational),
            audit: Audit::default(),
            providers: users.providers().clone(),
        };
        let portals = Portals::open(options).await.expect("portals");
        Self {
            router: weir_portal::router(&portals),
            admin: Delegate::new(&api, vec![everywhere(Role::Admin)]),
            mails,
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
        self.send(method, path, cookie, Value::Null).await
    }

    async fn send(&self, method: &str, path: &str, cookie: &str, body: Value) -> Answer {
        let peer: SocketAddr = "192.0.2.7:1".parse().expect("an address");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "dev.test")
            .header("origin", URL)
            .header("cookie", cookie)
            .header("content-type", "application/json")
            .extension(ConnectInfo(peer))
            .body(Body::from(body.to_string()))
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

/// An open portal with the provider `corp`.
async fn with_provider() -> (Provider, Portal) {
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
    (provider, portal)
}

/// 39: groups give teams, changed groups take effect with the next login, signing out ends the session.
#[tokio::test]
async fn developers_sign_in_through_a_real_provider() {
    let (provider, portal) = with_provider().await;
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

/// `mallory` and `liar` have Ann's address at the provider, which says that it is Ann's of `ann` only.
#[tokio::test]
async fn an_address_that_the_provider_does_not_confirm_is_no_account() {
    let (provider, portal) = with_provider().await;
    let at = |error: &str| (format!("/login?error={error}"), String::new());
    assert_eq!(portal.sign_in(&provider, "liar").await, at("no-mail"));
    let domains = json!({ "domains": ["example.test"] });
    portal.configure("Domains", domains).await;
    assert_eq!(portal.sign_in(&provider, "mallory").await, at("no-mail"));
    portal.configure("All", json!({})).await;
    for _ in 0..2 {
        assert_eq!(portal.sign_in(&provider, "mallory").await, at("not-confirmed"));
    }
    let mails = portal.mails.lock().expect("whole").clone();
    assert_eq!(mails.len(), 2);
    assert!(
        mails[0].to == "ann@example.test" && mails[0].text.contains("an account of Corp"),
        "{mails:?}"
    );
    let (location, ann) = portal.sign_in(&provider, "ann").await;
    assert_eq!(location, "/apis");
    assert_eq!(
        portal.call("GET", "/portal/v1/me", &ann).await.body["mail"],
        "ann@example.test"
    );
    // What came before the address was confirmed leads nowhere, nor does the link that asked about it.
    assert_eq!(portal.sign_in(&provider, "mallory").await, at("other-account"));
    let (_, token) = mails[1].text.split_once('#').expect("a link");
    let token = json!({ "token": token.split_whitespace().next() });
    let late = portal.send("POST", "/portal/v1/confirm", "", token).await;
    assert_eq!(late.status, 410, "{}", late.body);
    assert_eq!(portal.sign_in(&provider, "mallory").await, at("other-account"));
}

#[tokio::test]
async fn the_owner_of_the_address_confirms_an_account_by_mail_and_a_new_password_ends_it() {
    let (provider, portal) = with_provider().await;
    portal.sign_in(&provider, "zoe").await;
    let token = |portal: &Portal| {
        let mails = portal.mails.lock().expect("whole");
        let (_, rest) = mails
            .last()
            .expect("a mail")
            .text
            .split_once('#')
            .expect("a link");
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    };
    let body = json!({ "token": token(&portal) });
    let done = portal.send("POST", "/portal/v1/confirm", "", body).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(portal.sign_in(&provider, "zoe").await.0, "/apis");
    let body = json!({ "mail": "zoe@example.test" });
    portal.send("POST", "/portal/v1/reset", "", body).await;
    let body = json!({ "token": token(&portal), "password": "a new sentence" });
    let set = portal.send("POST", "/portal/v1/reset/password", "", body).await;
    assert_eq!(set.status, 200, "{}", set.body);
    assert_eq!(
        portal.sign_in(&provider, "zoe").await.0,
        "/login?error=other-account"
    );
}
