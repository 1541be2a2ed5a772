//! What strangers try with the accounts of others: poisoned links, passwords under an address that is not theirs, and changes
//! that undo what an administrator has decided meanwhile.

use super::{ORIGIN, Portal};
use axum::http::Method;
use serde_json::{Value, json};

const DEVELOPERS: &str = "/api/v1/portals/main/developers";

fn wanted(password: &str) -> Value {
    json!({ "mail": "ann@example.com", "name": "Ann", "password": password })
}

impl Portal {
    async fn sign_in_with(&self, password: &str) -> u16 {
        let given = json!({ "mail": "ann@example.com", "password": password });
        self.post("/session", "", given).await.status.as_u16()
    }

    /// The last mail.
    fn last(&self) -> String {
        let mails = self.mails.lock().expect("whole");
        mails.last().expect("a mail").text.clone()
    }
}

/// The host of a call is in no link, whichever call sends the mail.
#[tokio::test]
async fn mails_lead_to_no_host_that_a_call_names() {
    let address = json!({ "mail": "ann@example.com" });
    let invitation = json!({ "mail": "bob@example.com", "role": "member" });
    for (url, status) in [(Some(ORIGIN), 202), (None, 409)] {
        let portal = Portal::start().await;
        let ann = portal.join("ann").await;
        let team = json!({ "name": "Shop" });
        let team = portal.post("/teams", &ann, team).await.expect(201).text("id");
        let title = if url.is_some() { "Plain" } else { "Bare" };
        let document = json!({ "display_name": title, "url": url.unwrap_or_default() });
        portal.configure(title, document).await;
        let invite = format!("/teams/{team}/invitations");
        let eve = json!({ "mail": "eve@example.com", "name": "Eve", "password": "correct horse" });
        for (path, body) in [
            ("/reset", &address),
            ("/sign-up", &eve),
            (invite.as_str(), &invitation),
        ] {
            let before = portal.count();
            let call = (Method::POST, path);
            let response = portal.call_at("evil.test", call, &ann, body.clone()).await;
            let response = response.expect(status);
            match url {
                Some(url) => assert!(portal.last().contains(&format!("{url}/")), "{}", portal.last()),
                None => {
                    assert_eq!(portal.count(), before, "{path}");
                    assert!(response.text("detail").contains("set 'url'"), "{}", response.body);
                }
            }
            assert!(!portal.last().contains("evil"), "{}", portal.last());
        }
    }
    // As on the first day, and no answer shows whether the address is known.
    let portal = Portal::without_document().await;
    portal.post("/reset", "", address).await.expect(409);
}

/// A link vouches for the password that there was when it was sent.
#[tokio::test]
async fn a_confirmed_address_vouches_for_no_password_of_a_stranger() {
    let portal = Portal::start().await;
    portal
        .post("/sign-up", "", wanted("the one of ann"))
        .await
        .expect(202);
    let of_ann = json!({ "token": portal.secret("ann@example.com") });
    portal
        .post("/sign-up", "", wanted("one of a thief"))
        .await
        .expect(202);
    portal.post("/confirm", "", of_ann).await.expect(410);
    assert_eq!(portal.sign_in_with("one of a thief").await, 403);
    portal
        .post("/sign-up", "", wanted("the one of ann"))
        .await
        .expect(202);
    let of_ann = json!({ "token": portal.secret("ann@example.com") });
    portal.post("/confirm", "", of_ann).await.expect(200);
    assert_eq!(portal.sign_in_with("one of a thief").await, 401);
    assert_eq!(portal.sign_in_with("the one of ann").await, 200);
}

/// A sign-up does not replace an account that an administrator has made.
#[tokio::test]
async fn an_account_that_an_administrator_made_is_welcomed_again() {
    let portal = Portal::start().await;
    let new = json!({ "mail": "ann@example.com", "name": "Ann", "groups": ["partners"] });
    portal.provide(Method::POST, DEVELOPERS, new).await;
    portal
        .post("/sign-up", "", wanted("one of a thief"))
        .await
        .expect(202);
    assert!(portal.last().contains("/reset#"), "{}", portal.last());
    assert_eq!(portal.sign_in_with("one of a thief").await, 401);
    let token = portal.secret("ann@example.com");
    portal
        .post("/confirm", "", json!({ "token": token }))
        .await
        .expect(410);
    let set = json!({ "token": token, "password": "the one of ann" });
    portal.post("/reset/password", "", set).await.expect(200);
    assert_eq!(portal.sign_in_with("the one of ann").await, 200);
}

/// Passwords take long to hash. What was decided meanwhile holds.
#[tokio::test]
async fn a_suspension_is_not_undone_by_a_change_that_was_under_way() {
    let change = json!({ "name": "Anna", "old_password": "correct horse", "new_password": "another horse" });
    for is_reset in [false, true] {
        let portal = Portal::start().await;
        let ann = portal.join("ann").await;
        let id = portal.get("/me", &ann).await.text("id");
        let address = json!({ "mail": "ann@example.com" });
        let before = portal.count();
        portal.post("/reset", "", address).await.expect(202);
        portal.until_mailed(before + 1).await;
        let reset = json!({ "token": portal.secret("ann@example.com"), "password": "another horse" });
        let call = async {
            match is_reset {
                true => portal.post("/reset/password", "", reset).await,
                false => portal.call(Method::PUT, "/account", &ann, change.clone()).await,
            }
        };
        let reason = json!({ "reason": "key in public code" });
        let path = format!("{DEVELOPERS}/{id}/suspend");
        // Polled in this order: the record is read before it is suspended, and written afterwards.
        let (done, _) = tokio::join!(call, portal.provide(Method::POST, &path, reason));
        done.expect(200);
        let one = portal
            .provide(Method::GET, &format!("{DEVELOPERS}/{id}"), json!({}))
            .await;
        assert_eq!(one["state"], "suspended", "{is_reset}");
        assert_eq!(portal.sign_in_with("another horse").await, 403);
    }
}

/// Who signs up under the address of another takes no link for a new password from them.
#[tokio::test]
async fn sign_ups_of_a_stranger_silence_no_reset() {
    let portal = Portal::start().await;
    portal.join("ann").await;
    for _ in 0..4 {
        let thief = wanted("one of a thief");
        portal.post("/sign-up", "", thief).await.expect(202);
    }
    let before = portal.count();
    let ann = json!({ "mail": "ann@example.com" });
    portal.post("/reset", "", ann).await.expect(202);
    portal.until_mailed(before + 1).await;
    let mail = portal.last();
    assert!(
        mail.contains("/reset#") && mail.contains("new password"),
        "{mail}"
    );
}

/// Whom strangers sign up or invite reads nothing that they have typed.
#[tokio::test]
async fn what_a_stranger_has_typed_is_in_no_mail() {
    let portal = Portal::start().await;
    let eve = portal.join("eve").await;
    for name in ["Win at evil.com", "win@evil", "evil。com", "<b>Win</b>"] {
        let new = json!({ "mail": "ann@example.com", "name": name, "password": "correct horse" });
        let refused = portal.post("/sign-up", "", new).await.expect(422);
        assert!(
            refused.text("detail").contains("turn into links"),
            "{}",
            refused.body
        );
        portal
            .post("/teams", &eve, json!({ "name": name }))
            .await
            .expect(422);
        let change = json!({ "name": name });
        portal
            .call(Method::PUT, "/account", &eve, change)
            .await
            .expect(422);
        let new = json!({ "mail": "ann@example.com", "name": name });
        let made = portal
            .provider
            .call("provider", Method::POST, DEVELOPERS, Some(&new))
            .await;
        assert!(made.is_err(), "{name}");
    }
    // A good name is one, too, that a stranger has chosen.
    let prize = json!({ "mail": "ann@example.com", "name": "You Win", "password": "correct horse" });
    portal.post("/sign-up", "", prize).await.expect(202);
    assert!(portal.last().starts_with("Hello,\n"), "{}", portal.last());
    assert!(!portal.last().contains("Win"), "{}", portal.last());
    let before = portal.count();
    let ann = json!({ "mail": "ann@example.com" });
    portal.post("/reset", "", ann).await.expect(202);
    portal.until_mailed(before + 1).await;
    assert!(!portal.last().contains("Win"), "{}", portal.last());
    let team = portal.post("/teams", &eve, json!({ "name": "You Win" })).await;
    let team = team.expect(201).text("id");
    let rename = json!({ "name": "Prize Giver" });
    portal
        .call(Method::PUT, "/account", &eve, rename)
        .await
        .expect(200);
    let bob = json!({ "mail": "bob@example.com", "role": "member" });
    let invite = format!("/teams/{team}/invitations");
    portal.post(&invite, &eve, bob).await.expect(202);
    let mail = portal.last();
    assert!(mail.contains("eve@example.com invites you"), "{mail}");
    assert!(!mail.contains("Win") && !mail.contains("Prize"), "{mail}");
}

/// A mail of each portal says whose it is.
#[tokio::test]
async fn mails_go_in_the_name_of_their_portal() {
    let portal = Portal::start().await;
    portal.join("ann").await;
    let mails = portal.mails.lock().expect("whole").clone();
    assert!(
        !mails.is_empty() && mails.iter().all(|it| it.portal == "main"),
        "{mails:?}"
    );
}
