//! Logging in through a real OpenID provider: Node's `oidc-provider`, which `make deps FOR=test` installs.

use crate::login::{Browser, Plane};
use crate::provider;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_control::http::{ClientRequest, Method};
use weir_control::operational::OperationalStore;
use weir_store::Store;
use weir_store::memory::MemoryStore;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openid-provider");
const CALLBACK: &str = "https://weir.test:8002/api/v1/session/openid/corp/callback";

/// The provider with one client, until it is dropped.
pub struct Provider {
    _process: provider::Provider,
    pub issuer: String,
    /// The address to which it sends browsers back.
    callback: &'static str,
}

impl Provider {
    /// With one client, which is called back there.
    pub fn start(callback: &'static str) -> Self {
        let options = json!({
            "clients": [{ "client_id": "weir", "client_secret": "s+/e", "redirect_uris": [callback],
                          "post_logout_redirect_uris": ["https://weir.test:8002/ui/"] }],
            "groups": { "ada": ["admins"], "bob": [] },
            "email_verified": { "ada": true, "bob": true, "eve": true, "ann": "true", "liar": "false" },
            "emails": { "mallory": "ann@example.test", "liar": "ann@example.test" },
        });
        let process = provider::Provider::start(FOLDER, &options);
        Self {
            issuer: format!("http://{}", process.address),
            _process: process,
            callback,
        }
    }

    pub async fn set_groups(&self, who: &str, groups: &[&str]) {
        let url = format!("{}/groups/{who}", self.issuer);
        let (status, _) = ClientRequest::json(Method::PUT, url, &json!(groups))
            .make()
            .await
            .expect("set");
        assert!(status.is_success());
    }

    /// Follows a login from where Weir has sent the browser, until it is sent back. Gives where to.
    pub async fn follow(&self, first: &str) -> String {
        let (mut url, mut cookies) = (first.to_owned(), Vec::<String>::new());
        for _ in 0..10 {
            if url.starts_with(self.callback) {
                return url;
            }
            let call = ClientRequest::get(&url).header("cookie", cookies.join("; "));
            let answer = call.open().await.expect("an answer of the provider");
            let headers = answer.headers();
            for set in headers.get_all("set-cookie") {
                let pair = set
                    .to_str()
                    .expect("text")
                    .split(';')
                    .next()
                    .expect("a pair")
                    .to_owned();
                let (name, _) = pair.split_once('=').expect("a name");
                cookies.retain(|it| it.split('=').next() != Some(name));
                cookies.push(pair);
            }
            let location = headers
                .get("location")
                .unwrap_or_else(|| panic!("{url}: {answer:?}"));
            let location = location.to_str().expect("text");
            url = match location.starts_with('/') {
                true => format!("{}{location}", self.issuer),
                false => location.to_owned(),
            };
        }
        panic!("the provider sends on for ever: {url}");
    }
}

/// A control plane whose only users are those of the provider.
async fn plane(provider: &Provider) -> (Plane, Arc<dyn Store>, OperationalStore) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let operational = OperationalStore::in_memory();
    let plane = Plane::over(&store, &operational).await;
    let body = json!({
        "issuer": provider.issuer, "client_id": "weir", "client_secret": "s+/e",
        "base_url": "https://weir.test:8002", "display_name": "Corp",
        "mappings": [
            { "group": "admins", "rights": [{ "role": "admin" }] },
            { "group": "readers", "rights": [{ "role": "viewer" }] },
        ],
    });
    let put = plane
        .call_from_here("PUT", "/api/v1/identity-providers/corp", body)
        .await
        .expect(200);
    assert!(!put.body.to_string().contains("s+/e") && put.body["has_client_secret"] == true);
    (plane, store, operational)
}

/// The target of the last step of a login, with the cookies that it sets.
async fn log_in(plane: &Plane, provider: &Provider, who: &str) -> (String, Vec<String>) {
    let path = format!("/api/v1/session/openid/corp?login_hint={who}&return_to=/ui/routes");
    let start = plane.get(&Browser::default(), &path).await.expect(303);
    let kept = start.cookie().to_owned();
    let back = provider.follow(&start.header("location")).await;
    let path = back
        .strip_prefix("https://weir.test:8002")
        .expect("the callback")
        .to_owned();
    let done = plane.get(&Browser::with_cookie(&kept), &path).await.expect(303);
    let cookies = done.headers.get_all("set-cookie").iter();
    let cookies = cookies.map(|it| {
        it.to_str()
            .expect("text")
            .split(';')
            .next()
            .expect("a pair")
            .to_owned()
    });
    // Another browser gets nothing for the address of the callback, and the same one not twice.
    for browser in [Browser::default(), Browser::with_cookie(&kept)] {
        let again = plane.get(&browser, &path).await.expect(303);
        assert!(
            again.header("location").starts_with("/ui/?login_error="),
            "{again:?}"
        );
    }
    (done.header("location"), cookies.collect())
}

/// 39: groups give rights, changed groups take effect with the next login, a logout ends the session.
#[tokio::test]
async fn groups_of_a_real_provider_give_rights() {
    let provider = Provider::start(CALLBACK);
    let (plane, store, operational) = plane(&provider).await;
    let options = plane
        .get(&Browser::default(), "/api/v1/session/options")
        .await
        .expect(200);
    assert_eq!(
        options.body["providers"],
        json!([{ "name": "corp", "display_name": "Corp" }])
    );
    let (location, cookies) = log_in(&plane, &provider, "ada").await;
    assert_eq!(location, "/ui/routes");
    let ada = Browser::with_cookie(&cookies[0]);
    let me = plane.get(&ada, "/api/v1/me").await.expect(200);
    assert_eq!((me.text("name"), me.text("method")), ("corp/ada", "openid:corp"));
    assert_eq!(
        (&me.body["is_stored"], &me.body["has_password"]),
        (&json!(false), &json!(false))
    );
    plane.get(&ada, "/api/v1/users").await.expect(200);
    // Such a user has neither a password nor tokens here.
    plane
        .call(&ada, "POST", "/api/v1/me/tokens", json!({ "name": "x" }))
        .await
        .expect(403);
    provider.set_groups("ada", &["readers"]).await;
    plane.get(&ada, "/api/v1/users").await.expect(200);
    let (_, cookies) = log_in(&plane, &provider, "ada").await;
    let reader = Browser::with_cookie(&cookies[0]);
    plane.get(&reader, "/api/v1/users").await.expect(403);
    plane.get(&reader, "/api/v1/resources/services").await.expect(200);
    // What is on another control plane is the same.
    let other = Plane::over(&store, &operational).await;
    other.get(&reader, "/api/v1/me").await.expect(200);
    let out = plane
        .call(&reader, "DELETE", "/api/v1/session", Value::Null)
        .await
        .expect(200);
    let end = out.text("provider");
    assert!(
        end.starts_with(&format!("{}/session/end?client_id=weir", provider.issuer)),
        "{end}"
    );
    plane.get(&reader, "/api/v1/me").await.expect(401);
    // Without a group, and if the provider refuses, there is no session.
    for (who, error) in [("bob", "no-rights"), ("refuse", "refused")] {
        let (location, cookies) = log_in(&plane, &provider, who).await;
        assert_eq!(location, format!("/ui/?login_error={error}"));
        assert!(cookies.iter().all(|it| it.ends_with('=')), "{cookies:?}");
    }
    // Without the provider, its sessions are none, and there is no other user.
    plane
        .call(&ada, "DELETE", "/api/v1/identity-providers/corp", Value::Null)
        .await
        .expect(204);
    plane.get(&ada, "/api/v1/me").await.expect(403);
}
