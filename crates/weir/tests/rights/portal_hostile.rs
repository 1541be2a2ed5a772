//! What a hostile developer, a hostile page and a stranger try at a portal. Each test says what must not happen.

use crate::portal::{PASSWORD, Portal, URL};
use axum::http::Method;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_store::Store;

const SPEC: &str = r##"{"openapi": "3.1.0", "info": {"title": "Pets", "version": "1.0.0"},
  "servers": [{"url": "http://169.254.169.254/latest"}],
  "paths": {"/pets/{id}": {"get": {"operationId": "getPet", "servers": [{"url": "http://10.0.0.1"}],
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
    "responses": {"200": {"description": "ok"}}}}}}"##;

/// A portal with the API `pets`, which calls at `base`, and its plan `free`.
async fn with_pets(base: &str) -> Portal {
    let portal = Portal::start().await;
    let environment = json!({ "base_urls": [base] });
    portal.put("/api/v1/environments/default", environment).await;
    portal.put("/api/v1/apis/pets", json!({})).await;
    let post = async |path: &str, body: Value| {
        let done = portal.admin.call("root", Method::POST, path, Some(&body)).await;
        done.unwrap_or_else(|problem| panic!("{path}: {problem:?}"))
    };
    post("/api/v1/apis/pets/versions", json!({ "spec": SPEC })).await;
    let plan = json!({ "state": "published", "limits": [{ "count": 9, "per": "hour" }] });
    portal
        .put("/api/v1/apis/pets/versions/1.0.0/plans/free", plan)
        .await;
    let runtime = json!({ "runtime": { "base_path": "/pets", "backends": { "main": { "url": "http://127.0.0.1:9" } } } });
    post("/api/v1/publications/pets/1.0.0/default", runtime).await;
    portal
        .put(
            "/api/v1/portals/main",
            json!({ "display_name": "Main", "url": URL }),
        )
        .await;
    until_shown(&portal).await;
    for _ in 0..1_500 {
        if portal.call("GET", "/portal/v1/apis/pets", "").await.status == 200 {
            return portal;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the portal does not show its API after 30 s");
}

/// Waits until the portal knows its document.
async fn until_shown(portal: &Portal) {
    for _ in 0..1_500 {
        if portal.call("GET", "/portal/v1/portal", "").await.body["title"] == "Main" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the portal does not know its document after 30 s");
}

/// The possessions of one developer at a portal.
struct Work {
    cookie: String,
    app: String,
    team: String,
    session: String,
    member: String,
    subscription: String,
    key_id: String,
    key: String,
    webhook: String,
    secret: String,
}

async fn work(portal: &Portal, name: &str) -> Work {
    let cookie = portal.join(name).await;
    let send = async |method: &str, path: &str, body: Value| {
        let done = portal.send(method, path, &cookie, body).await;
        assert!((200..300).contains(&done.status), "{path}: {}", done.text);
        done.body
    };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let team = send("POST", "/portal/v1/teams", json!({ "name": "Retail" })).await;
    let app = send(
        "POST",
        "/portal/v1/apps",
        json!({ "title": "Till", "team": team["id"] }),
    )
    .await;
    let app = text(&app["name"]);
    let path = format!("/portal/v1/apps/{app}/subscriptions");
    let wanted = json!({ "publication": "pets/1.0.0/default", "plan": "free" });
    let subscribed = send("POST", &path, wanted).await;
    let hook = json!({ "url": "https://example.com/hook" });
    let hook = send("POST", &format!("/portal/v1/apps/{app}/webhooks"), hook).await;
    let sessions = send("GET", "/portal/v1/account/sessions", Value::Null).await;
    let me = send("GET", "/portal/v1/me", Value::Null).await;
    Work {
        team: text(&team["id"]),
        session: text(&sessions["items"][0]["id"]),
        member: text(&me["id"]),
        subscription: text(&subscribed["id"]),
        key_id: text(&subscribed["key"]["id"]),
        key: text(&subscribed["key"]["key"]),
        webhook: text(&hook["name"]),
        secret: text(&hook["secret"]),
        app,
        cookie,
    }
}

/// Every call about something that a developer owns.
fn calls_about(of: &Work) -> Vec<(&'static str, String, Value)> {
    let Work {
        app,
        team,
        member,
        subscription,
        key_id,
        webhook,
        ..
    } = of;
    let app = format!("/portal/v1/apps/{app}");
    let subscription = format!("{app}/subscriptions/{subscription}");
    let hook = format!("{app}/webhooks/{webhook}");
    let team = format!("/portal/v1/teams/{team}");
    let wanted = json!({ "publication": "pets/1.0.0/default", "plan": "free" });
    let url = json!({ "url": "https://evil.test" });
    vec![
        ("GET", app.clone(), Value::Null),
        ("PUT", app.clone(), json!({ "title": "Mine" })),
        ("DELETE", app.clone(), Value::Null),
        ("GET", format!("{app}/usage"), Value::Null),
        ("GET", format!("{app}/calls"), Value::Null),
        ("POST", format!("{app}/subscriptions"), wanted),
        (
            "POST",
            format!("{subscription}/state"),
            json!({ "state": "closed" }),
        ),
        ("POST", format!("{subscription}/keys"), json!({})),
        (
            "POST",
            format!("{subscription}/keys"),
            json!({ "replaces": key_id }),
        ),
        ("DELETE", format!("{subscription}/keys/{key_id}"), Value::Null),
        ("GET", format!("{app}/webhooks"), Value::Null),
        ("POST", format!("{app}/webhooks"), url.clone()),
        ("PUT", hook.clone(), url),
        ("DELETE", hook.clone(), Value::Null),
        ("POST", format!("{hook}/test"), Value::Null),
        ("GET", format!("{hook}/deliveries"), Value::Null),
        ("POST", format!("{hook}/deliveries/x/retry"), Value::Null),
        (
            "POST",
            format!("{team}/invitations"),
            json!({ "mail": "eve@example.test", "role": "owner" }),
        ),
        (
            "PUT",
            format!("{team}/members/{member}"),
            json!({ "role": "viewer" }),
        ),
        ("DELETE", format!("{team}/members/{member}"), Value::Null),
    ]
}

/// What developers see of their own.
async fn visible_items(portal: &Portal, of: &Work) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        format!("/portal/v1/apps/{}", of.app),
        format!("/portal/v1/apps/{}/webhooks", of.app),
        "/portal/v1/teams".to_owned(),
    ] {
        all.push(portal.call("GET", &path, &of.cookie).await.body);
    }
    all
}

#[tokio::test]
async fn a_developer_reaches_nothing_of_another() {
    let portal = with_pets("https://api.test").await;
    let ann = work(&portal, "ann").await;
    let before = visible_items(&portal, &ann).await;
    let bob = work(&portal, "bob").await;
    for (method, path, body) in calls_about(&ann) {
        for (cookie, who, expected) in [(bob.cookie.as_str(), "bob", 404), ("", "a stranger", 401)] {
            let done = portal.send(method, &path, cookie, body.clone()).await;
            assert_eq!(done.status, expected, "{who}: {method} {path}: {}", done.text);
            assert!(
                !done.text.contains("Till"),
                "{who}: {method} {path}: {}",
                done.text
            );
        }
    }
    // What is another's below what is one's own.
    let own = format!("/portal/v1/apps/{}", bob.app);
    for (method, path, body) in [
        (
            "POST",
            format!("{own}/subscriptions/{}/state", ann.subscription),
            json!({ "state": "closed" }),
        ),
        (
            "POST",
            format!("{own}/subscriptions/{}/keys", ann.subscription),
            json!({}),
        ),
        (
            "DELETE",
            format!("{own}/subscriptions/{}/keys/{}", bob.subscription, ann.key_id),
            Value::Null,
        ),
        ("DELETE", format!("{own}/webhooks/{}", ann.webhook), Value::Null),
        (
            "GET",
            format!("{own}/webhooks/..%2F{}%2F{}/deliveries", ann.app, ann.webhook),
            Value::Null,
        ),
        ("PUT", own.clone(), json!({ "title": "Till", "team": ann.team })),
        (
            "POST",
            "/portal/v1/apps".to_owned(),
            json!({ "title": "Till", "team": ann.team }),
        ),
    ] {
        let done = portal.send(method, &path, &bob.cookie, body).await;
        assert_eq!(done.status, 404, "{method} {path}: {}", done.text);
    }
    let path = format!("{own}/subscriptions/{}/keys", bob.subscription);
    let done = portal
        .send("POST", &path, &bob.cookie, json!({ "replaces": ann.key_id }))
        .await;
    assert!(
        (400..500).contains(&done.status),
        "another's key is replaced: {}",
        done.text
    );
    // Ending another's session does nothing; lists have one's own only.
    let path = format!("/portal/v1/account/sessions/{}", ann.session);
    portal.call("DELETE", &path, &bob.cookie).await;
    assert_eq!(
        visible_items(&portal, &ann).await,
        before,
        "something of ann's has changed"
    );
    for path in [
        "/portal/v1/apps",
        "/portal/v1/teams",
        "/portal/v1/notices",
        "/portal/v1/account/data",
    ] {
        let text = portal.call("GET", path, &bob.cookie).await.text;
        assert!(
            !text.contains(&ann.app) && !text.contains(&ann.team),
            "{path}: {text}"
        );
    }
}

/// Everything that a store holds, as text.
async fn whole(store: &Arc<dyn Store>) -> String {
    let (documents, _) = store.read("").await.expect("documents");
    let texts = documents
        .iter()
        .map(|it| String::from_utf8_lossy(&it.value).into_owned());
    texts.collect()
}

/// 20: a key is in the answer that makes it, and nowhere else.
#[tokio::test]
async fn keys_are_shown_once() {
    let portal = with_pets("https://api.test").await;
    let ann = work(&portal, "ann").await;
    let app = format!("/portal/v1/apps/{}", ann.app);
    for path in [
        app.clone(),
        format!("{app}/usage"),
        format!("{app}/webhooks"),
        "/portal/v1/apps".to_owned(),
        "/portal/v1/notices".to_owned(),
        "/portal/v1/account/data".to_owned(),
    ] {
        let text = portal.call("GET", &path, &ann.cookie).await.text;
        assert!(!text.contains(&ann.key), "{path} has the key: {text}");
        assert!(
            !text.contains(&ann.secret),
            "{path} has the webhook's secret: {text}"
        );
    }
    let changed = json!({ "url": "https://example.com/other" });
    let hook = format!("{app}/webhooks/{}", ann.webhook);
    let done = portal.send("PUT", &hook, &ann.cookie, changed).await;
    assert_eq!((done.status, &done.body["secret"]), (200, &Value::Null));
    for (name, store) in [
        ("the configuration", &portal.store),
        ("the rest", portal.operational.store()),
    ] {
        let text = whole(store).await;
        assert!(!text.contains(&ann.key), "{name} holds the key");
        assert!(!text.contains(PASSWORD), "{name} holds the password");
    }
}

/// 29: no answer shows whether a mail address has an account.
#[tokio::test]
async fn answers_do_not_reveal_who_has_an_account() {
    let portal = with_pets("https://api.test").await;
    portal.join("ann").await;
    let mails = |to: &str| {
        portal
            .mails
            .lock()
            .expect("whole")
            .iter()
            .filter(|it| it.to == to)
            .count()
    };
    let of = |name: &str| json!({ "mail": format!("{name}@example.test"), "name": "X", "password": "another long password" });
    for (path, body) in [
        ("/portal/v1/sign-up", of as fn(&str) -> Value),
        (
            "/portal/v1/reset",
            |name| json!({ "mail": format!("{name}@example.test") }),
        ),
        (
            "/portal/v1/session",
            |name| json!({ "mail": format!("{name}@example.test"), "password": "wrong" }),
        ),
    ] {
        let known = portal.send("POST", path, "", body("ann")).await;
        let unknown = portal
            .send("POST", path, "", body(&format!("new-{}", path.len())))
            .await;
        assert_eq!(
            (known.status, &known.text),
            (unknown.status, &unknown.text),
            "{path}"
        );
    }
    // The mail of a reset goes to accounts only. The one to ann proves that sending is over.
    portal.link("ann@example.test", "reset").await;
    assert_eq!(mails("new-16@example.test"), 0, "a stranger got a mail");
}

/// A cookie planted in a browser is not the session after signing in; sessions end with the password.
#[tokio::test]
async fn sessions_are_made_by_signing_in() {
    let portal = with_pets("https://api.test").await;
    let first = portal.join("ann").await;
    let planted = "__Host-weir-portal=planted";
    let body = json!({ "mail": "ann@example.test", "password": PASSWORD });
    let done = portal
        .send("POST", "/portal/v1/session", planted, body.clone())
        .await;
    let set = done.headers["set-cookie"].to_str().expect("text").to_owned();
    for part in [
        "__Host-weir-portal=",
        "Path=/",
        "HttpOnly",
        "SameSite=Lax",
        "Secure",
    ] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("planted"), "{set}");
    let second = done.cookies().remove(0);
    assert_ne!(second, first, "each login has a session of its own");
    let me = async |cookie: &str| portal.call("GET", "/portal/v1/me", cookie).await.body["id"].clone();
    assert_eq!(me(planted).await, Value::Null);
    assert_ne!(me(&second).await, Value::Null);
    let done = portal.send("POST", "/portal/v1/session", &second, body).await;
    let third = done.cookies().remove(0);
    assert_eq!(
        me(&second).await,
        Value::Null,
        "the browser's former session ends"
    );
    assert_ne!(me(&first).await, Value::Null, "those of other browsers stay");
    portal.call("DELETE", "/portal/v1/session", &third).await;
    assert_eq!(me(&third).await, Value::Null, "signed out");
    portal
        .send(
            "POST",
            "/portal/v1/reset",
            "",
            json!({ "mail": "ann@example.test" }),
        )
        .await;
    let token = portal.link("ann@example.test", "reset").await;
    let new = json!({ "token": token, "password": "another long password" });
    let done = portal
        .send("POST", "/portal/v1/reset/password", "", new.clone())
        .await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(me(&first).await, Value::Null, "sessions end with the password");
    let again = portal.send("POST", "/portal/v1/reset/password", "", new).await;
    assert_ne!(again.status, 200, "a link is good once");
    assert_eq!(portal.log_in("ann", PASSWORD).await, None);
}

/// Pages of other sites make a browser write nothing, whatever its cookies.
#[tokio::test]
async fn writes_of_other_sites_do_nothing() {
    let portal = with_pets("https://api.test").await;
    let ann = work(&portal, "ann").await;
    let before = visible_items(&portal, &ann).await;
    let mut calls = calls_about(&ann);
    calls.retain(|(method, ..)| *method != "GET");
    for (path, body) in [
        (
            "/portal/v1/session",
            json!({ "mail": "ann@example.test", "password": PASSWORD }),
        ),
        ("/portal/v1/apps", json!({ "title": "Theirs" })),
        ("/portal/v1/notices/read", Value::Null),
        (
            "/portal/v1/try/pets/1.0.0/default/getPet",
            json!({ "path": "/pets/1" }),
        ),
    ] {
        calls.push(("POST", path.to_owned(), body));
    }
    for (method, path, body) in calls {
        for origin in [
            "https://evil.test",
            "null",
            "https://dev.test.evil.test",
            "http://dev.test:81",
        ] {
            let from = ("192.0.2.7", origin);
            let done = portal
                .send_from(from, (method, &path), &ann.cookie, body.clone())
                .await;
            assert_eq!(done.status, 403, "{origin}: {method} {path}: {}", done.text);
        }
    }
    assert_eq!(
        visible_items(&portal, &ann).await,
        before,
        "something was written"
    );
}

/// 29: sign-ups, resets and wrong passwords are few, and one client with many addresses of IPv6 is one client.
#[tokio::test]
async fn strangers_have_few_turns() {
    let portal = with_pets("https://api.test").await;
    for (path, network) in [("/portal/v1/sign-up", 1), ("/portal/v1/reset", 2)] {
        let mut refused = 0;
        for number in 0..25 {
            let body = match path {
                "/portal/v1/sign-up" => {
                    json!({ "mail": format!("m{number}@example.test"), "name": "X", "password": PASSWORD })
                }
                _ => json!({ "mail": format!("m{number}@example.test") }),
            };
            let address = format!("2001:db8:0:{network}::{number:x}");
            let done = portal.send_from((&address, URL), ("POST", path), "", body).await;
            refused += usize::from(done.status == 429);
        }
        // A minute may begin in between.
        assert!(
            (5..=15).contains(&refused),
            "{path}: {refused} of 25 were refused"
        );
    }
    // Many addresses write to one mailbox: few mails arrive there.
    for number in 0..12 {
        let body = json!({ "mail": "victim@example.test", "name": "X", "password": PASSWORD });
        let address = format!("198.51.100.{number}");
        let done = portal
            .send_from((&address, URL), ("POST", "/portal/v1/sign-up"), "", body)
            .await;
        assert_eq!(done.status, 202, "{}", done.text);
    }
    let sent = portal
        .mails
        .lock()
        .expect("whole")
        .iter()
        .filter(|it| it.to == "victim@example.test")
        .count();
    assert!((1..=6).contains(&sent), "{sent} mails");
    portal.join("ann").await;
    let wrong = json!({ "mail": "ann@example.test", "password": "wrong" });
    let mut answers = Vec::new();
    for _ in 0..12 {
        let done = portal.send("POST", "/portal/v1/session", "", wrong.clone()).await;
        answers.push(done.status);
        if done.status == 429 {
            assert!(done.headers.contains_key("retry-after"));
        }
    }
    assert!(answers.contains(&429), "{answers:?}");
    for name in ["Win at https://evil.test", "www.evil.test", "<b>x</b>", "a\nb"] {
        let body = json!({ "mail": "eve@example.test", "name": name, "password": PASSWORD });
        let from = ("203.0.113.9", URL);
        let done = portal
            .send_from(from, ("POST", "/portal/v1/sign-up"), "", body)
            .await;
        assert_eq!(done.status, 422, "{name:?} would stand in a mail: {}", done.text);
    }
}

/// A server that answers everything with a text and counts its calls.
fn server(answer: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 8_192];
            let _read = stream.read(&mut request);
            let _written = stream.write_all(answer.as_bytes());
        }
    });
    (url, calls)
}

/// 30: trying a call is no way into the operator's network: neither the visitor, nor the document, nor an answer says
/// where it goes.
#[tokio::test]
async fn tried_calls_go_to_publications_only() {
    let (inside, inner) = server("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret".to_owned());
    let (base, _) = server(format!(
        "HTTP/1.1 302 Found\r\nlocation: {inside}/admin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    ));
    let portal = with_pets(&base).await;
    let path = "/portal/v1/try/pets/1.0.0/default/getPet";
    let done = portal.send("POST", path, "", json!({ "path": "/pets/7" })).await;
    assert_eq!(
        (done.status, &done.body["status"]),
        (200, &json!(302)),
        "{}",
        done.text
    );
    let host = inside.trim_start_matches("http://");
    for body in [
        json!({ "path": "/pets/7", "url": inside }),
        json!({ "path": "/pets/7", "base": inside }),
        json!({ "path": format!("{inside}/7") }),
        json!({ "path": format!("//{host}/7") }),
        json!({ "path": format!("@{host}/7") }),
        json!({ "path": "/pets/../admin" }),
        json!({ "path": "/pets/%2e%2e%2fadmin" }),
        json!({ "path": "/pets/7", "headers": [["Host", host]] }),
        json!({ "path": "/pets/7", "headers": [["X-Forwarded-Host", host]] }),
        json!({ "path": "/pets/7", "headers": [["Weir-Portal-Try", "no"]] }),
        json!({ "path": "/pets/7", "headers": [["X", format!("a\r\nHost: {host}")]] }),
    ] {
        let done = portal.send("POST", path, "", body.clone()).await;
        assert!((400..500).contains(&done.status), "{body}: {}", done.text);
    }
    for path in [
        "/portal/v1/try/pets/1.0.0/other/getPet",
        "/portal/v1/try/..%2Fadmin/1.0.0/default/getPet",
    ] {
        let done = portal.send("POST", path, "", json!({ "path": "/pets/7" })).await;
        assert_eq!(done.status, 404, "{path}");
    }
    assert_eq!(inner.load(Ordering::SeqCst), 0, "the inner server was called");
}

/// 36: logos are inert, as they are written and as they are served.
#[tokio::test]
async fn logos_run_nothing() {
    let portal = with_pets("https://api.test").await;
    let put = async |path: &str, logo: &str| {
        let body = json!({ "display_name": "Main", "url": URL, "logo": logo });
        let body = if path.contains("/apis/") {
            json!({ "logo": logo })
        } else {
            body
        };
        portal.admin.call("root", Method::PUT, path, Some(&body)).await
    };
    for path in ["/api/v1/portals/main", "/api/v1/apis/pets"] {
        for logo in [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"x()\"></svg>",
            "<svg><script>x()</script></svg>",
            "<html><body></body></html>",
            "https://evil.test/logo.svg",
        ] {
            assert!(put(path, logo).await.is_err(), "{path}: {logo}");
        }
        let good = "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0h8v8z\"/></svg>";
        put(path, good).await.expect("an inert logo");
    }
    for (of, known) in [
        ("/portal/v1/portal", "/logos/portal"),
        ("/portal/v1/apis/pets", "/logos/apis/pets"),
    ] {
        let mut logo = String::new();
        for _ in 0..1_500 {
            logo = portal.call("GET", of, "").await.body["logo"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if !logo.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(logo.starts_with(known), "{of}: {logo}");
        let served = portal.call("GET", &logo, "").await;
        let header = |name: &str| served.headers[name].to_str().expect("text").to_owned();
        assert_eq!(
            (served.status, header("content-type")),
            (200, "image/svg+xml".to_owned())
        );
        assert!(
            header("content-security-policy").contains("default-src 'none'"),
            "{of}"
        );
        assert!(header("content-security-policy").contains("sandbox"), "{of}");
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
    assert_eq!(portal.call("GET", "/logos/apis/none", "").await.status, 404);
}

/// Until a portal is made there is `default`. Who signed up there is not lost by making one under another name.
#[tokio::test]
async fn first_developers_belong_to_default() {
    let portal = Portal::start().await;
    let document = json!({ "display_name": "Main", "url": URL });
    portal.put("/api/v1/portals/default", document.clone()).await;
    until_shown(&portal).await;
    portal.join("ann").await;
    let path = "/api/v1/portals/default";
    let gone = portal.admin.call("root", Method::DELETE, path, None).await;
    gone.expect("as on the first day: there is no document");
    let path = "/api/v1/portals/default/developers";
    let put = async |name: &str| {
        let path = format!("/api/v1/portals/{name}");
        portal
            .admin
            .call("root", Method::PUT, &path, Some(&document))
            .await
    };
    let refused = format!("{:?}", put("main").await.expect_err("refused"));
    assert!(
        refused.contains("create 'default' before other portals"),
        "{refused}"
    );
    put("default").await.expect("the same portal, with a document");
    let found = portal
        .admin
        .call("root", Method::GET, path, None)
        .await
        .expect("developers");
    assert_eq!(found["total"], json!(1));
    let partners = json!({ "hosts": ["partners.test"] });
    let done = portal
        .admin
        .call("root", Method::PUT, "/api/v1/portals/partners", Some(&partners))
        .await;
    done.expect("others beside it");
}

/// What a parameter was to narrow would be answered whole. An identity provider may send more than is known.
#[tokio::test]
async fn parameters_that_a_call_does_not_know_are_refused_by_name() {
    let portal = Portal::start().await;
    let description = portal.call("GET", "/portal/v1/openapi.json", "").await.body;
    let paths = description["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let is_personal = operation.get("security").is_some();
            if is_personal || operation["operationId"] == "finishOpenidSignIn" {
                continue;
            }
            let call = format!("{}?limitz=1", path.replace(['{', '}'], ""));
            let refused = portal.call(&method.to_uppercase(), &call, "").await;
            assert_eq!(
                (refused.status, &refused.body["type"]),
                (400, &json!("urn:weir:problem:unknown-parameter")),
                "{method} {call}: {}",
                refused.text
            );
        }
    }
    let back = "/portal/v1/session/openid/corp/callback?state=a&code=b&session_state=c";
    let answer = portal.call("GET", back, "").await;
    assert!(!answer.text.contains("unknown-parameter"), "{}", answer.text);
}
