//! A portal in this process, for tests of what developers may do: its store, its mails, and calls as a browser makes
//! them.

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

/// Where browsers find the portal.
pub const URL: &str = "https://dev.test";

pub struct Portal {
    router: Router,
    pub admin: Delegate,
    pub store: Arc<dyn Store>,
    pub operational: OperationalStore,
    pub mails: Arc<Mutex<Vec<Mail>>>,
}

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    pub text: String,
}

impl Answer {
    pub fn location(&self) -> String {
        let location = self.headers.get("location").and_then(|it| it.to_str().ok());
        location.unwrap_or_default().to_owned()
    }

    /// The cookies that it sets, without attributes.
    pub fn cookies(&self) -> Vec<String> {
        let set = self.headers.get_all("set-cookie").iter();
        let pairs = set.filter_map(|it| it.to_str().ok()?.split(';').next().map(str::to_owned));
        pairs.collect()
    }
}

impl Portal {
    pub async fn start() -> Self {
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
            store: Arc::clone(&store),
            delegate: Delegate::new(&api, vec![everywhere(Role::PortalAdmin)]),
            analytics: None,
            assets: weir_console::assets().expect("assets"),
            counted: Arc::new(|_, _| None),
            gateway: Arc::new(|_| None),
            is_tls: false,
            operational: operational.clone(),
            post: Some(Arc::new(move |mail| {
                caught.lock().expect("whole").push(mail);
                Box::pin(async { Ok(()) })
            })),
            outbox: Outbox::without_mail(operational.clone()),
            audit: Audit::default(),
            providers: users.providers().clone(),
        };
        let portals = Portals::open(options).await.expect("portals");
        Self {
            router: weir_portal::router(&portals),
            admin: Delegate::new(&api, vec![everywhere(Role::Admin)]),
            store,
            operational,
            mails,
        }
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        let done = self.admin.call("root", Method::PUT, path, Some(&body)).await;
        done.unwrap_or_else(|problem| panic!("{path}: {problem:?}"))
    }

    /// Writes the document of the portal, and waits until the portal knows it.
    pub async fn configure(&self, title: &str, sign_up: Value) {
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

    pub async fn call(&self, method: &str, path: &str, cookie: &str) -> Answer {
        self.send(method, path, cookie, Value::Null).await
    }

    pub async fn send(&self, method: &str, path: &str, cookie: &str, body: Value) -> Answer {
        self.send_from(("192.0.2.7", URL), (method, path), cookie, body)
            .await
    }

    /// A call from an address, which a page of an origin makes.
    pub async fn send_from(
        &self,
        (address, origin): (&str, &str),
        (method, path): (&str, &str),
        cookie: &str,
        body: Value,
    ) -> Answer {
        let peer = SocketAddr::new(address.parse().expect("an address"), 1);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "dev.test")
            .header("origin", origin)
            .header("cookie", cookie)
            .header("content-type", "application/json")
            .extension(ConnectInfo(peer))
            .body(Body::from(body.to_string()))
            .expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, 4 << 20).await.expect("a body");
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    /// The secret of the last link that was mailed to an address and leads to a page of the portal.
    pub async fn link(&self, to: &str, page: &str) -> String {
        let begin = format!("{URL}/{page}#");
        for _ in 0..1_500 {
            {
                let mails = self.mails.lock().expect("whole");
                let texts = mails.iter().rev().filter(|it| it.to == to);
                let found = texts.filter_map(|it| it.text.split_once(begin.as_str())).next();
                if let Some((_, rest)) = found {
                    return rest.split_whitespace().next().unwrap_or_default().to_owned();
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no mail with a link to /{page} for {to} after 30 s");
    }

    /// Makes an account and signs in. Gives the cookie.
    pub async fn join(&self, name: &str) -> String {
        let mail = format!("{name}@example.test");
        let body = json!({ "mail": mail, "name": name, "password": PASSWORD });
        let done = self.send("POST", "/portal/v1/sign-up", "", body).await;
        assert_eq!(done.status, 202, "{}", done.text);
        let token = self.link(&mail, "confirm").await;
        let done = self
            .send("POST", "/portal/v1/confirm", "", json!({ "token": token }))
            .await;
        assert_eq!(done.status, 200, "{}", done.text);
        self.log_in(name, PASSWORD).await.expect("signed in")
    }

    /// Signs in. Gives the cookie; `None`: the password is wrong.
    pub async fn log_in(&self, name: &str, password: &str) -> Option<String> {
        let body = json!({ "mail": format!("{name}@example.test"), "password": password });
        let done = self.send("POST", "/portal/v1/session", "", body).await;
        let cookies = done.cookies();
        cookies
            .into_iter()
            .find(|it| it.starts_with("__Host-weir-portal="))
    }
}

/// Of all developers of the tests.
pub const PASSWORD: &str = "correct horse battery";
