//! Personal tokens of developers: what a program may do with one, and what only a developer who is signed in may.

use super::{Portal, PortalResponse};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::SystemTime;
use tower::ServiceExt;
use weir_control::developers::Developer;

const TOKENS: &str = "/account/tokens";

impl Portal {
    /// A call as a program makes it: with a token, and without an `Origin`.
    async fn call_by(&self, token: &str, (method, path): (Method, &str), body: Value) -> PortalResponse {
        let peer: SocketAddr = "192.0.2.1:1000".parse().expect("an address");
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/portal/v1{path}"))
            .header(header::HOST, "portal.test")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))
            .expect("a request");
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

    async fn token_of(&self, cookie: &str) -> String {
        self.token_with(cookie, "correct horse").await
    }

    async fn token_with(&self, cookie: &str, password: &str) -> String {
        let wanted = json!({ "name": "ci", "days": 30, "password": password });
        self.post(TOKENS, cookie, wanted).await.expect(201).text("token")
    }
}

#[tokio::test]
async fn a_program_does_what_its_developer_may_and_nothing_to_the_account() {
    let portal = Portal::start().await;
    portal.publish().await;
    let (ann, eve) = (portal.join("ann").await, portal.join("eve").await);
    let token = portal.token_of(&ann).await;
    let by = |method: Method, path: &'static str, body| portal.call_by(&token, (method, path), body);
    let me = by(Method::GET, "/me", Value::Null).await.expect(200);
    assert_eq!(me.text("mail"), "ann@example.com");
    by(Method::GET, "/apis/pets", Value::Null).await.expect(200);
    let app = by(Method::POST, "/apps", json!({ "title": "Till" }))
        .await
        .expect(201);
    let app = app.text("name");
    let wanted = json!({ "publication": "pets/1/default", "plan": "gold", "conditions_revision": 1 });
    let path = format!("/apps/{app}/subscriptions");
    let made = portal.call_by(&token, (Method::POST, &path), wanted).await;
    assert_eq!(
        made.expect(201).body["key"]["key"].as_str().map(str::len),
        Some(64)
    );
    let other = portal.token_of(&eve).await;
    let path = format!("/apps/{app}");
    portal
        .call_by(&other, (Method::GET, &path), Value::Null)
        .await
        .expect(404);

    let factor = "/account/second-factor";
    let proof = json!({ "password": "correct horse", "code": "123456" });
    let id = portal.get(TOKENS, &ann).await.body["items"][0]["id"].clone();
    let one = format!("{TOKENS}/{}", id.as_str().expect("an id"));
    for (method, path, body) in [
        (Method::PUT, "/account", json!({ "name": "Anna" })),
        (
            Method::PUT,
            "/account",
            json!({ "old_password": "correct horse", "new_password": "a new sentence" }),
        ),
        (Method::DELETE, "/account", Value::Null),
        (Method::GET, "/account/sessions", Value::Null),
        (Method::DELETE, "/account/sessions/x", Value::Null),
        (Method::GET, factor, Value::Null),
        (Method::POST, factor, json!({ "password": "correct horse" })),
        (
            Method::POST,
            "/account/second-factor/confirm",
            json!({ "code": "123456" }),
        ),
        (
            Method::POST,
            "/account/second-factor/recovery-codes",
            proof.clone(),
        ),
        (Method::POST, "/account/second-factor/remove", proof),
        (Method::GET, TOKENS, Value::Null),
        (Method::POST, TOKENS, json!({ "name": "more", "days": 1 })),
        (Method::DELETE, one.as_str(), Value::Null),
    ] {
        let what = format!("{method} {path}");
        let response = portal.call_by(&token, (method, path), body).await.expect(403);
        assert!(
            response.text("detail").contains("sign in"),
            "{what}: {}",
            response.body
        );
    }
    assert_eq!(portal.get("/me", &ann).await.text("name"), "ann");
}

#[tokio::test]
async fn a_token_is_shown_once_and_ends_with_its_account() {
    let portal = Portal::start().await;
    let (ann, eve) = (portal.join("ann").await, portal.join("eve").await);
    for (wanted, field) in [
        (json!({ "name": "", "days": 30 }), "name"),
        (json!({ "name": "see evil.com", "days": 30 }), "name"),
        (json!({ "name": "ci", "days": 0 }), "days"),
        (json!({ "name": "ci", "days": 367 }), "days"),
    ] {
        let refused = portal.post(TOKENS, &ann, wanted).await.expect(422);
        assert_eq!(refused.body["errors"][0]["path"], field);
    }
    portal
        .post(TOKENS, "", json!({ "name": "ci", "days": 1 }))
        .await
        .expect(401);
    let mails = portal.count();
    let token = portal.token_of(&ann).await;
    assert_eq!(portal.count(), mails + 1, "the developer is told");
    let unused = portal.get(TOKENS, &ann).await;
    assert_eq!(unused.body["items"][0]["last_used"], Value::Null);
    portal
        .call_by(&token, (Method::GET, "/apps"), Value::Null)
        .await
        .expect(200);
    let listed = portal.get(TOKENS, &ann).await.expect(200);
    let line = &listed.body["items"][0];
    assert!(line["last_used"].is_u64() && line["token"].is_null(), "{line}");
    assert!(!listed.body.to_string().contains(&token));
    let data = portal.get("/account/data", &ann).await;
    assert_eq!(data.body["tokens"][0]["name"], "ci");
    // Others do not see it, and cannot revoke it.
    let one = format!("{TOKENS}/{}", line["id"].as_str().expect("an id"));
    assert_eq!(portal.get(TOKENS, &eve).await.body["items"], json!([]));
    portal
        .call(Method::DELETE, &one, &eve, Value::Null)
        .await
        .expect(404);
    // A wrong token is refused as such, and no cookie stands in for it.
    for wrong in ["", "weir_x", &token[..token.len() - 1]] {
        let response = portal
            .call_by(wrong, (Method::GET, "/me"), Value::Null)
            .await
            .expect(401);
        assert!(
            response.text("type").ends_with("wrong-token"),
            "{}",
            response.body
        );
    }
    portal
        .call(Method::DELETE, &one, &ann, Value::Null)
        .await
        .expect(204);
    portal
        .call_by(&token, (Method::GET, "/apps"), Value::Null)
        .await
        .expect(401);
    // A new password by a mail ends the tokens, since another person may have made them; so does the end of the
    // account.
    let token = portal.token_of(&ann).await;
    let count = portal.count();
    portal
        .post("/reset", "", json!({ "mail": "ann@example.com" }))
        .await
        .expect(202);
    portal.until_mailed(count + 1).await;
    let fresh = json!({ "token": portal.secret("ann@example.com"), "password": "a new sentence" });
    portal.post("/reset/password", "", fresh).await.expect(200);
    portal
        .call_by(&token, (Method::GET, "/apps"), Value::Null)
        .await
        .expect(401);
    let token = portal.token_of(&eve).await;
    portal
        .call(Method::DELETE, "/account", &eve, Value::Null)
        .await
        .expect(204);
    portal
        .call_by(&token, (Method::GET, "/apps"), Value::Null)
        .await
        .expect(401);
}

/// Who has taken over a session leaves no token behind: the password is asked for, and its guesses are counted.
#[tokio::test]
async fn making_a_token_asks_for_the_password() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let mut statuses = Vec::new();
    for password in [json!(null), json!(""), json!("wrong password")] {
        let wanted = json!({ "name": "ci", "days": 30, "password": password });
        let refused = portal.post(TOKENS, &ann, wanted).await.expect(422);
        assert_eq!(refused.body["errors"][0]["path"], "password");
    }
    let without = portal
        .post(TOKENS, &ann, json!({ "name": "ci", "days": 30 }))
        .await;
    assert_eq!(without.expect(422).body["errors"][0]["path"], "password");
    assert_eq!(portal.get(TOKENS, &ann).await.body["items"], json!([]));
    for _ in 0..4 {
        let wanted = json!({ "name": "ci", "days": 30, "password": "wrong password" });
        statuses.push(portal.post(TOKENS, &ann, wanted).await.status.as_u16());
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
}

#[tokio::test]
async fn a_new_password_ends_the_tokens_made_before_unless_it_is_not_wanted() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let token = portal.token_of(&ann).await;
    let status = async || {
        let response = portal.call_by(&token, (Method::GET, "/apps"), Value::Null).await;
        response.status.as_u16()
    };
    let change = |wanted| portal.call(Method::PUT, "/account", &ann, wanted);
    let kept =
        json!({ "old_password": "correct horse", "new_password": "a second sentence", "end_tokens": false });
    change(kept).await.expect(200);
    assert_eq!(status().await, 200);
    change(json!({ "name": "Anna" })).await.expect(200);
    assert_eq!(status().await, 200, "another name ends nothing");
    let wrong = json!({ "old_password": "correct horse", "new_password": "a third sentence" });
    change(wrong).await.expect(422);
    assert_eq!(status().await, 200, "a password that is not changed ends nothing");
    let ended = json!({ "old_password": "a second sentence", "new_password": "a third sentence" });
    change(ended).await.expect(200);
    assert_eq!(status().await, 401);
    let token = portal.token_with(&ann, "a third sentence").await;
    let response = portal.call_by(&token, (Method::GET, "/apps"), Value::Null).await;
    response.expect(200);
}

/// Who comes from an identity provider has no password here: the provider has to have asked a moment ago. A session
/// that has just begun says nothing of that: the provider may know the browser.
#[tokio::test]
async fn who_has_no_password_makes_a_token_right_after_a_sign_in() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let id = portal.get("/me", &ann).await.text("id");
    let now = SystemTime::now();
    let without = |it: &mut Developer| {
        it.password = None;
        Ok(Vec::new())
    };
    let changed = portal.people.change("main", &id, now, without).await;
    assert!(changed.expect("a change").password.is_none());
    let begin = async |asked: Option<u64>| {
        let from = ("192.0.2.1".to_owned(), "a browser".to_owned());
        let asked = asked.map(|before| weir_model::unix_time::seconds(now) - before);
        let value = portal.people.begin("main", (&id, asked), from, now).await;
        format!("weir-portal={}", value.expect("a session"))
    };
    let wanted = || json!({ "name": "ci", "days": 30, "password": "" });
    for (asked, status) in [(None, 403), (Some(601), 403), (Some(500), 201)] {
        let session = begin(asked).await;
        let response = portal.post(TOKENS, &session, wanted()).await.expect(status);
        let is_explained = response.body["type"]
            .as_str()
            .is_some_and(|it| it.ends_with("fresh-sign-in-needed"));
        assert_eq!(is_explained, status == 403, "{asked:?} {}", response.body);
    }
}
