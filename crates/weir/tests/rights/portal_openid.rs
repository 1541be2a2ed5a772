//! Developers who sign in to a portal through a real OpenID provider.

use crate::openid::Provider;
use crate::portal::{Portal, URL};
use axum::http::Method;
use serde_json::{Value, json};

const CALLBACK: &str = "https://dev.test/portal/v1/session/openid/corp/callback";

/// Signs a developer in. Returns the address that the browser ends at, and its cookie.
async fn sign_in(portal: &Portal, provider: &Provider, who: &str) -> (String, String) {
    sign_in_with(portal, provider, who, "").await
}

/// The same, with more in the query of its start.
async fn sign_in_with(portal: &Portal, provider: &Provider, who: &str, more: &str) -> (String, String) {
    let path = format!("/portal/v1/session/openid/corp?login_hint={who}&to=/apis{more}");
    let start = portal.call("GET", &path, "").await;
    assert_eq!(start.status, 303, "{}", start.body);
    let kept = start.cookies().remove(0);
    let back = provider.follow(&start.location()).await;
    let path = back.strip_prefix(URL).expect("the callback").to_owned();
    let stranger = portal.call("GET", &path, "").await;
    assert_eq!(stranger.location(), "/login?error=not-begun-here");
    let done = portal.call("GET", &path, &kept).await;
    assert_eq!(done.status, 303, "{}", done.body);
    let again = portal.call("GET", &path, &kept).await.location();
    assert!(again.starts_with("/login?error="), "{again}");
    let cookie = done
        .cookies()
        .into_iter()
        .find(|it| it.starts_with("__Host-weir-portal="));
    (done.location(), cookie.unwrap_or_default())
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
    let (location, ada) = sign_in(&portal, &provider, "ada").await;
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
    let (_, again) = sign_in(&portal, &provider, "ada").await;
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
    let (location, cookie) = sign_in(&portal, &provider, "bob").await;
    assert_eq!((location.as_str(), cookie.as_str()), ("/login?error=waiting", ""));
    portal.configure("Closed", json!({ "mode": "closed" })).await;
    for (who, error) in [("eve", "not-welcome"), ("refuse", "refused")] {
        let (location, cookie) = sign_in(&portal, &provider, who).await;
        assert_eq!(
            (location, cookie),
            (format!("/login?error={error}"), String::new())
        );
    }
    let (location, _) = sign_in(&portal, &provider, "ada").await;
    assert_eq!(location, "/apis", "who has an account may go on");
    // A provider that the portal does not name is unknown.
    let other = portal.call("GET", "/portal/v1/session/openid/other", "").await;
    assert_eq!(other.status, 404);
}

/// Who has no password makes a personal token only after the provider has asked again, which its token has to say.
#[tokio::test]
async fn a_token_is_made_after_the_provider_has_asked_again() {
    let (provider, portal) = with_provider().await;
    let wanted = || json!({ "name": "ci", "days": 30, "password": null });
    for (more, status) in [("", 403), ("&fresh=true", 201)] {
        let (location, ada) = sign_in_with(&portal, &provider, "ada", more).await;
        assert_eq!(location, "/apis");
        let made = portal
            .send("POST", "/portal/v1/account/tokens", &ada, wanted())
            .await;
        assert_eq!(made.status, status, "{more} {}", made.body);
    }
}

/// `mallory` and `liar` have Ann's address at the provider, which says that it is Ann's of `ann` only.
#[tokio::test]
async fn an_address_that_the_provider_does_not_confirm_is_no_account() {
    let (provider, portal) = with_provider().await;
    let at = |error: &str| (format!("/login?error={error}"), String::new());
    assert_eq!(sign_in(&portal, &provider, "liar").await, at("no-mail"));
    let domains = json!({ "domains": ["example.test"] });
    portal.configure("Domains", domains).await;
    assert_eq!(sign_in(&portal, &provider, "mallory").await, at("no-mail"));
    portal.configure("All", json!({})).await;
    for _ in 0..2 {
        assert_eq!(sign_in(&portal, &provider, "mallory").await, at("not-confirmed"));
    }
    let mails = portal.mails.lock().expect("whole").clone();
    assert_eq!(mails.len(), 2);
    assert!(
        mails[0].to == "ann@example.test" && mails[0].text.contains("an account of Corp"),
        "{mails:?}"
    );
    let (location, ann) = sign_in(&portal, &provider, "ann").await;
    assert_eq!(location, "/apis");
    assert_eq!(
        portal.call("GET", "/portal/v1/me", &ann).await.body["mail"],
        "ann@example.test"
    );
    // What came before the address was confirmed leads nowhere, nor does the link that asked about it.
    assert_eq!(sign_in(&portal, &provider, "mallory").await, at("other-account"));
    let (_, token) = mails[1].text.split_once('#').expect("a link");
    let token = json!({ "token": token.split_whitespace().next() });
    let late = portal.send("POST", "/portal/v1/confirm", "", token).await;
    assert_eq!(late.status, 410, "{}", late.body);
    assert_eq!(sign_in(&portal, &provider, "mallory").await, at("other-account"));
}

#[tokio::test]
async fn the_owner_of_the_address_confirms_an_account_by_mail_and_a_new_password_ends_it() {
    let (provider, portal) = with_provider().await;
    sign_in(&portal, &provider, "zoe").await;
    let token = portal.link("zoe@example.test", "confirm").await;
    let body = json!({ "token": token });
    let done = portal.send("POST", "/portal/v1/confirm", "", body).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(sign_in(&portal, &provider, "zoe").await.0, "/apis");
    let body = json!({ "mail": "zoe@example.test" });
    portal.send("POST", "/portal/v1/reset", "", body).await;
    let token = portal.link("zoe@example.test", "reset").await;
    let body = json!({ "token": token, "password": "a new sentence" });
    let set = portal.send("POST", "/portal/v1/reset/password", "", body).await;
    assert_eq!(set.status, 200, "{}", set.body);
    assert_eq!(
        sign_in(&portal, &provider, "zoe").await.0,
        "/login?error=other-account"
    );
}
