//! What administrators decide about developers, over Weir's own API, and what developers notice of it.

use super::Portal;
use axum::http::Method;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::time::SystemTime;
use weir_control::access::totp::TotpSecret;
use weir_control::access::{Right, Role, Scope};
use weir_control::api::{Delegate, Problem};
use weir_control::outbox::Message;

const DEVELOPERS: &str = "/api/v1/portals/main/developers";

impl Portal {
    /// With a portal whose sign-ups need approval.
    async fn with_approval() -> Self {
        let portal = Self::start().await;
        let document = json!({
            "display_name": "Shop",
            "url": "http://portal.test",
            "sign_up": { "approval": true, "notify": ["ops@example.com"] },
        });
        portal.configure("Shop", document).await;
        portal
    }

    /// Signs a developer up, who then waits. Returns the id.
    async fn waiting(&self, name: &str) -> String {
        let mail = format!("{name}@example.com");
        let wanted = json!({ "mail": mail, "name": name, "password": "correct horse" });
        self.post("/sign-up", "", wanted).await.expect(202);
        let token = json!({ "token": self.secret(&mail) });
        self.post("/confirm", "", token).await.expect(200);
        let listed = self.developers(&format!("?q={name}")).await;
        listed["items"][0]["id"].as_str().expect("an id").to_owned()
    }

    async fn developers(&self, query: &str) -> Value {
        self.provide(Method::GET, &format!("{DEVELOPERS}{query}"), json!({}))
            .await
    }

    async fn sign_in(&self, name: &str) -> super::PortalResponse {
        let given = json!({ "mail": format!("{name}@example.com"), "password": "correct horse" });
        self.post("/session", "", given).await
    }

    /// Decides with a role in a scope: what is answered, or the status of the refusal.
    async fn decide(&self, (role, scope): (Role, Scope), path: &str, body: Value) -> Result<Value, u16> {
        let delegate = Delegate::new(&self.api, vec![Right { role, scope }]);
        let path = format!("{DEVELOPERS}/{path}");
        let done = delegate.call("root", Method::POST, &path, Some(&body)).await;
        done.map_err(status_of)
    }

    /// The mails and webhooks that wait, as kind and receiver.
    async fn messages(&self) -> Vec<(String, String)> {
        let all = self.outbox.list(SystemTime::now()).await.expect("messages");
        let mut found: Vec<(String, String)> = all
            .into_iter()
            .map(|it| (it.kind, it.message.receiver()))
            .collect();
        found.sort();
        found
    }

    /// The text of the last mail of a kind that waits.
    async fn mail(&self, kind: &str) -> String {
        let all = self.outbox.list(SystemTime::now()).await.expect("messages");
        let found = all.into_iter().find_map(|it| match it.message {
            Message::Mail(mail) if it.kind == kind => Some(mail.text),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no mail of {kind}"))
    }
}

fn status_of(problem: Problem) -> u16 {
    problem.into_response().status().as_u16()
}

fn everywhere(role: Role) -> (Role, Scope) {
    (role, Scope::Everything)
}

#[tokio::test]
async fn a_developer_who_waits_is_approved_and_notified() {
    let portal = Portal::with_approval().await;
    let hook = json!({ "url": "https://hooks.test/x", "events": ["developer.*"] });
    portal.provide(Method::PUT, "/api/v1/hooks/ci", hook).await;
    let ann = portal.waiting("ann").await;
    portal.waiting("bob").await;
    let refused = portal.sign_in("ann").await.expect(403);
    assert!(
        refused.text("detail").contains("waiting for approval"),
        "{}",
        refused.body
    );
    let all = portal.developers("").await;
    assert_eq!((&all["total"], &all["waiting"]), (&json!(2), &json!(2)));
    let done = portal
        .decide(everywhere(Role::Admin), &format!("{ann}/approve"), json!({}))
        .await
        .expect("approved");
    assert_eq!(
        (&done["state"], &done["decided"]["by"]),
        (&json!("active"), &json!("root"))
    );
    let cookie = portal.sign_in("ann").await.expect(200).cookie();
    let text = portal.mail("developer.approved").await;
    assert!(text.contains("http://portal.test/login"), "{text}");
    let messages = portal.messages().await;
    for expected in [
        ("developer.approved", "ann@example.com"),
        ("developer.approved", "hooks.test"),
        ("developer.confirmed", "ops@example.com"),
        ("developer.confirmed", "hooks.test"),
        ("developer.registered", "hooks.test"),
    ] {
        let is_there = messages
            .iter()
            .any(|(kind, to)| (kind.as_str(), to.as_str()) == expected);
        assert!(is_there, "{expected:?} in {messages:?}");
    }
    // Who waits comes first, and a second approval is refused.
    let all = portal.developers("").await;
    assert_eq!(all["items"][0]["name"], "bob");
    let twice = portal
        .decide(everywhere(Role::Admin), &format!("{ann}/approve"), json!({}))
        .await;
    assert_eq!(twice, Err(409));
    // A suspended developer loses the session at once, and reads why.
    let path = format!("{ann}/suspend");
    assert_eq!(
        portal.decide(everywhere(Role::Admin), &path, json!({})).await,
        Err(422)
    );
    let reason = json!({ "reason": "key in public code" });
    portal
        .decide(everywhere(Role::Admin), &path, reason)
        .await
        .expect("suspended");
    assert_eq!(
        portal.get("/me", &cookie).await.expect(200).body["id"],
        Value::Null
    );
    let refused = portal.sign_in("ann").await.expect(403);
    assert!(
        refused.text("detail").contains("key in public code"),
        "{}",
        refused.body
    );
    portal
        .decide(everywhere(Role::Admin), &format!("{ann}/resume"), json!({}))
        .await
        .expect("resumed");
    portal.sign_in("ann").await.expect(200);
}

#[tokio::test]
async fn a_developer_who_is_refused_reads_why_and_may_be_approved_later() {
    let portal = Portal::with_approval().await;
    let eve = portal.waiting("eve").await;
    let reason = json!({ "reason": "no contract" });
    portal
        .decide(everywhere(Role::Approver), &format!("{eve}/refuse"), reason)
        .await
        .expect("refused");
    let refused = portal.sign_in("eve").await.expect(403);
    assert!(refused.text("detail").contains("no contract"), "{}", refused.body);
    assert!(
        portal
            .mail("developer.refused")
            .await
            .contains("Reason: no contract")
    );
    // A new password changes nothing of it.
    let before = portal.count();
    portal
        .post("/reset", "", json!({ "mail": "eve@example.com" }))
        .await
        .expect(202);
    assert_eq!(portal.count(), before);
    portal
        .decide(everywhere(Role::Approver), &format!("{eve}/approve"), json!({}))
        .await
        .expect("approved");
    portal.sign_in("eve").await.expect(200);
}

#[tokio::test]
async fn rights_are_by_role_and_portal() {
    let portal = Portal::with_approval().await;
    let ann = portal.waiting("ann").await;
    let in_portal = |role, name: &str| (role, Scope::Portal(name.to_owned()));
    let path = format!("{ann}/approve");
    for right in [
        everywhere(Role::Viewer),
        everywhere(Role::Read),
        everywhere(Role::Operator),
        everywhere(Role::Auditor),
        in_portal(Role::PortalAdmin, "other"),
        (Role::PortalAdmin, Scope::Api("pets".to_owned())),
    ] {
        assert_eq!(
            portal.decide(right.clone(), &path, json!({})).await,
            Err(403),
            "{right:?}"
        );
    }
    portal
        .decide(in_portal(Role::PortalAdmin, "main"), &path, json!({}))
        .await
        .expect("approved");
    let absent = portal
        .decide(everywhere(Role::Admin), "0123456789abcdef/approve", json!({}))
        .await;
    assert_eq!(absent, Err(404));
}

#[tokio::test]
async fn administrators_make_change_and_remove_developers() {
    let portal = Portal::with_approval().await;
    let new = json!({ "mail": "Bob@example.com", "name": "Bob", "groups": ["partners"] });
    let bob = portal.provide(Method::POST, DEVELOPERS, new.clone()).await;
    assert_eq!(
        (&bob["state"], &bob["groups"]),
        (&json!("registered"), &json!(["partners"]))
    );
    let twice = portal
        .provider
        .call("root", Method::POST, DEVELOPERS, Some(&new))
        .await;
    assert_eq!(twice.err().map(status_of), Some(409));
    // The link in the mail sets the password. Who was made by an administrator does not wait.
    let text = portal.mail("developer.created").await;
    let (_, secret) = text.split_once("http://portal.test/reset#").expect("a link");
    let token = secret.split_whitespace().next().expect("a secret");
    let given = json!({ "token": token, "password": "correct horse" });
    portal
        .post("/reset/password", "", given.clone())
        .await
        .expect(200);
    portal.post("/reset/password", "", given).await.expect(410);
    let cookie = portal.sign_in("bob").await.expect(200).cookie();
    let one = format!("{DEVELOPERS}/{}", bob["id"].as_str().expect("an id"));
    let changed = portal
        .provide(Method::PUT, &one, json!({ "groups": ["staff"] }))
        .await;
    assert_eq!(
        (&changed["name"], &changed["groups"]),
        (&json!("Bob"), &json!(["staff"]))
    );
    // What belongs to a developer has to go before.
    let app = portal
        .post("/apps", &cookie, json!({ "title": "Till" }))
        .await
        .expect(201);
    let refused = portal.provider.call("root", Method::DELETE, &one, None).await;
    assert_eq!(refused.err().map(status_of), Some(409));
    assert_eq!(
        portal.provide(Method::GET, &one, json!({})).await["applications"],
        json!([app.text("name")])
    );
    let path = format!("/apps/{}", app.text("name"));
    portal
        .call(Method::DELETE, &path, &cookie, json!({}))
        .await
        .expect(204);
    portal.provide(Method::DELETE, &one, json!({})).await;
    assert_eq!(portal.get("/me", &cookie).await.body["id"], Value::Null);
    assert_eq!(portal.developers("").await["total"], 0);
}

/// Who has lost app and recovery codes asks an administrator.
#[tokio::test]
async fn administrators_turn_a_lost_second_factor_off() {
    let portal = Portal::with_approval().await;
    let ann = portal.waiting("ann").await;
    portal
        .decide(everywhere(Role::Admin), &format!("{ann}/approve"), json!({}))
        .await
        .expect("approved");
    let cookie = portal.sign_in("ann").await.expect(200).cookie();
    let begun = json!({ "password": "correct horse" });
    let begun = portal
        .post("/account/second-factor", &cookie, begun)
        .await
        .expect(200);
    let secret: TotpSecret = serde_json::from_value(begun.body["secret"].clone()).expect("a secret");
    let code = json!({ "code": secret.code(std::time::SystemTime::now()) });
    portal
        .post("/account/second-factor/confirm", &cookie, code)
        .await
        .expect(200);
    portal.sign_in("ann").await.expect(401);
    let one = format!("{DEVELOPERS}/{ann}");
    let shown = portal.provide(Method::GET, &one, json!({})).await;
    assert_eq!(shown["has_second_factor"], true);
    assert!(!shown.to_string().contains(&begun.text("secret")));
    let path = format!("{one}/second-factor");
    let viewer = Delegate::new(
        &portal.api,
        vec![Right {
            role: Role::Viewer,
            scope: Scope::Everything,
        }],
    );
    let refused = viewer.call("vic", Method::DELETE, &path, None).await;
    assert_eq!(refused.err().map(status_of), Some(403));
    portal.provide(Method::DELETE, &path, json!({})).await;
    let mail = portal.mail("developer.second_factor").await;
    assert!(mail.contains("your password alone"), "{mail}");
    portal.sign_in("ann").await.expect(200);
    let again = portal.provider.call("root", Method::DELETE, &path, None).await;
    assert_eq!(again.err().map(status_of), Some(409));
}
