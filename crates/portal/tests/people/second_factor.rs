//! The second factor of a developer: set up, asked for at the login, bounded in guesses, and turned off again.

use super::{Portal, PortalResponse};
use axum::http::{Method, header};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use weir_control::access::totp::TotpSecret;

const FACTOR: &str = "/account/second-factor";
const PASSWORD: &str = "correct horse";

/// A developer with a second factor.
struct Ann {
    cookie: String,
    secret: TotpSecret,
    /// The code that has turned it on.
    first: String,
    recovery: Vec<String>,
}

impl Ann {
    /// A code that is good after the first one, whatever the clock does meanwhile.
    fn next(&self) -> String {
        self.secret.code(SystemTime::now() + Duration::from_secs(30))
    }
}

impl Portal {
    async fn with_factor(&self) -> Ann {
        let cookie = self.join("ann").await;
        let begun = self.post(FACTOR, &cookie, json!({ "password": PASSWORD })).await;
        let secret = begun.expect(200).body["secret"].clone();
        let secret: TotpSecret = serde_json::from_value(secret).expect("a secret");
        let first = secret.code(SystemTime::now());
        let confirm = format!("{FACTOR}/confirm");
        let done = self.post(&confirm, &cookie, json!({ "code": first })).await;
        let recovery = serde_json::from_value(done.expect(200).body["codes"].clone()).expect("codes");
        Ann {
            cookie,
            secret,
            first,
            recovery,
        }
    }

    async fn sign_in_by(&self, password: &str, code: Option<&str>) -> PortalResponse {
        let given = json!({ "mail": "ann@example.com", "password": password, "code": code });
        self.post("/session", "", given).await
    }
}

fn kind(response: &PortalResponse) -> String {
    response
        .text("type")
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn it_is_set_up_asked_for_and_turned_off() {
    let portal = Portal::start().await;
    let cookie = portal.join("ann").await;
    let other = portal.sign_in_by(PASSWORD, None).await.expect(200).cookie();
    let off = json!({ "is_on": false, "recovery_codes_left": 0 });
    assert_eq!(portal.get(FACTOR, &cookie).await.body, off);
    let confirm = format!("{FACTOR}/confirm");
    // Nothing is confirmed that was not begun, and a session alone begins nothing.
    let none = json!({ "code": "123456" });
    portal.post(&confirm, &cookie, none).await.expect(409);
    let wrong = json!({ "password": "wrong password" });
    portal.post(FACTOR, &cookie, wrong).await.expect(422);
    let begun = portal
        .post(FACTOR, &cookie, json!({ "password": PASSWORD }))
        .await;
    let begun = begun.expect(200);
    let text = begun.text("secret");
    let uri = begun.text("uri");
    assert_eq!(
        uri,
        format!("otpauth://totp/Plain:ann%40example%2Ecom?secret={text}&issuer=Plain")
    );
    assert!(
        begun.body["qr"]["path"]
            .as_str()
            .is_some_and(|it| it.starts_with("M4 4h7v1h-7z"))
    );
    portal.sign_in_by(PASSWORD, None).await.expect(200);
    let secret: TotpSecret = serde_json::from_value(json!(text)).expect("a secret");
    let refused = portal.post(&confirm, &cookie, json!({ "code": "none" })).await;
    assert_eq!(refused.expect(422).body["errors"][0]["path"], "code");
    let mails = portal.count();
    let first = json!({ "code": secret.code(SystemTime::now()) });
    let done = portal.post(&confirm, &cookie, first.clone()).await.expect(200);
    let codes: Vec<String> = serde_json::from_value(done.body["codes"].clone()).expect("codes");
    assert_eq!(codes.len(), 10);
    portal.post(&confirm, &cookie, first).await.expect(409);
    portal
        .post(FACTOR, &cookie, json!({ "password": PASSWORD }))
        .await
        .expect(409);
    assert_eq!(portal.count(), mails + 1, "the developer is told");
    // Other sessions were begun without it.
    assert_eq!(portal.get("/me", &other).await.body["id"], Value::Null);
    let me = portal.get("/me", &cookie).await;
    assert_eq!(me.body["has_second_factor"], true, "{}", me.body);
    let data = portal.get("/account/data", &cookie).await.body.to_string();
    assert!(
        !data.contains(&text) && data.contains("\"has_second_factor\":true"),
        "{data}"
    );

    let renew = format!("{FACTOR}/recovery-codes");
    let proof = |password: &str, code: &str| json!({ "password": password, "code": code });
    for path in [renew.as_str(), "/account/second-factor/remove"] {
        let wrong_password = portal
            .post(path, &cookie, proof("wrong password", &codes[0]))
            .await;
        assert_eq!(
            wrong_password.expect(422).body["errors"][0]["path"],
            "password",
            "{path}"
        );
        let wrong_code = portal.post(path, &cookie, proof(PASSWORD, "none")).await;
        assert_eq!(wrong_code.expect(422).body["errors"][0]["path"], "code", "{path}");
        portal
            .post(path, "", proof(PASSWORD, &codes[0]))
            .await
            .expect(401);
    }
    let renewed = portal.post(&renew, &cookie, proof(PASSWORD, &codes[0])).await;
    let renewed: Vec<String> =
        serde_json::from_value(renewed.expect(200).body["codes"].clone()).expect("codes");
    let old = portal.sign_in_by(PASSWORD, Some(&codes[1])).await.expect(401);
    assert_eq!(kind(&old), "wrong-code");
    let remove = format!("{FACTOR}/remove");
    let done = portal.post(&remove, &cookie, proof(PASSWORD, &renewed[0])).await;
    assert_eq!(done.expect(200).body["has_second_factor"], false);
    assert_eq!(portal.get(FACTOR, &cookie).await.body, off);
    portal
        .post(&remove, &cookie, proof(PASSWORD, &renewed[1]))
        .await
        .expect(409);
    portal.sign_in_by(PASSWORD, None).await.expect(200);
}

#[tokio::test]
async fn a_login_needs_a_code_that_was_not_used() {
    let portal = Portal::start().await;
    let ann = portal.with_factor().await;
    for (password, code, status, expected) in [
        // Without the password, no answer shows that there is a factor.
        ("wrong password", None, 401, "wrong-password"),
        ("wrong password", Some(ann.next()), 401, "wrong-password"),
        (PASSWORD, None, 401, "code-needed"),
        (PASSWORD, Some(String::new()), 401, "code-needed"),
        (PASSWORD, Some("none".to_owned()), 401, "wrong-code"),
        (PASSWORD, Some(ann.first.clone()), 401, "wrong-code"),
        (PASSWORD, Some(ann.recovery[0].to_uppercase()), 200, ""),
        (PASSWORD, Some(ann.recovery[0].clone()), 401, "wrong-code"),
    ] {
        let response = portal.sign_in_by(password, code.as_deref()).await;
        assert_eq!(
            (response.status.as_u16(), kind(&response).as_str()),
            (status, expected),
            "{code:?}: {}",
            response.body
        );
        assert_eq!(response.cookie().is_empty(), status != 200, "{code:?}");
    }
    // Of two logins with one code at the same moment, one gets in.
    let code = ann.next();
    let (one, two) = tokio::join!(
        portal.sign_in_by(PASSWORD, Some(&code)),
        portal.sign_in_by(PASSWORD, Some(&code))
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    let left = portal.get(FACTOR, &ann.cookie).await;
    assert_eq!(left.body, json!({ "is_on": true, "recovery_codes_left": 9 }));
    // A new password by a mail does not get around it.
    let count = portal.count();
    let address = json!({ "mail": "ann@example.com" });
    portal.post("/reset", "", address).await.expect(202);
    portal.until_mailed(count + 1).await;
    let fresh = json!({ "token": portal.secret("ann@example.com"), "password": "a new sentence" });
    portal.post("/reset/password", "", fresh).await.expect(200);
    let response = portal.sign_in_by("a new sentence", None).await.expect(401);
    assert_eq!(kind(&response), "code-needed");
}

/// Right passwords between the guesses do not help, and neither does the account page. A machine that hashes slowly takes a few
/// guesses more: the first waits are over by the next one.
#[tokio::test]
async fn guesses_are_slowed_down() {
    const ENOUGH: usize = 14;
    let portal = Portal::start().await;
    let ann = portal.with_factor().await;
    let mut refused = None;
    for number in 0..ENOUGH {
        let response = portal.sign_in_by(PASSWORD, Some("none")).await;
        if response.status == 429 {
            assert!(number >= 5, "{number}");
            refused = Some(response);
            break;
        }
        assert_eq!(kind(&response), "wrong-code");
    }
    let refused = refused.expect("a refusal");
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    assert!(refused.text("detail").contains("codes"), "{}", refused.body);
    let remove = format!("{FACTOR}/remove");
    let proof = json!({ "password": PASSWORD, "code": "none" });
    let change = json!({ "old_password": "wrong password", "new_password": "another sentence" });
    for (method, path, body) in [
        (Method::POST, remove.as_str(), proof),
        (Method::PUT, "/account", change),
    ] {
        let mut statuses = Vec::new();
        while statuses.last() != Some(&429) && statuses.len() < ENOUGH {
            let response = portal.call(method.clone(), path, &ann.cookie, body.clone()).await;
            statuses.push(response.status.as_u16());
        }
        let (last, before) = statuses.split_last().expect("one at least");
        assert_eq!(*last, 429, "{path}: {statuses:?}");
        assert!(before.iter().all(|it| *it == 422), "{path}: {statuses:?}");
    }
}
