//! What a developer sees of subscriptions of each kind: user names, client ids, public keys; and the questions of a plan.

use super::Portal;
use axum::http::Method;
use serde_json::{Value, json};

const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

impl Portal {
    async fn plan(&self, name: &str, plan: Value) {
        let path = format!("/api/v1/apis/pets/versions/1/plans/{name}");
        self.provide(Method::PUT, &path, plan).await;
    }

    /// A new application of somebody.
    async fn app(&self, cookie: &str) -> String {
        let made = self.post("/apps", cookie, json!({ "title": "Till" })).await;
        made.expect(201).text("name")
    }

    async fn subscribe(&self, cookie: &str, app: &str, plan: &str, more: Value) -> super::Said {
        let mut wanted = json!({ "publication": "pets/1/default", "plan": plan });
        for (name, value) in more.as_object().into_iter().flatten() {
            wanted[name] = value.clone();
        }
        self.post(&format!("/apps/{app}/subscriptions"), cookie, wanted)
            .await
    }
}

#[tokio::test]
async fn each_kind_of_plan_shows_what_its_caller_needs() {
    let portal = Portal::start().await;
    portal.publish().await;
    portal
        .plan("people", json!({ "state": "published", "security": "basic" }))
        .await;
    portal
        .plan("signed", json!({ "state": "published", "security": "jwt" }))
        .await;
    let oauth2 = json!({ "discovery": "https://id.example.com" });
    portal
        .plan(
            "partner",
            json!({ "state": "published", "security": "oauth2", "oauth2": oauth2 }),
        )
        .await;
    let ann = portal.join("ann").await;
    let app = portal.app(&ann).await;
    let basic = portal
        .subscribe(&ann, &app, "people", json!({}))
        .await
        .expect(201);
    assert_eq!(basic.text("security"), "basic");
    let user = basic.body["keys"][0]["name"]
        .as_str()
        .expect("a user name")
        .to_owned();
    assert!(!user.is_empty());
    assert_eq!(basic.body["key"]["name"], json!(user), "with the password");
    let keys = format!("/apps/{app}/subscriptions/{}/keys", basic.text("id"));
    let second = portal.post(&keys, &ann, json!({})).await.expect(201);
    assert!(!second.text("name").is_empty() && second.text("name") != user);

    // A public key is added, and its issuer is what tokens have to say.
    let signed = portal
        .subscribe(&ann, &app, "signed", json!({}))
        .await
        .expect(201);
    assert_eq!(
        (signed.text("security"), &signed.body["key"]),
        ("jwt".to_owned(), &Value::Null)
    );
    let keys = format!("/apps/{app}/subscriptions/{}/keys", signed.text("id"));
    portal.post(&keys, &ann, json!({})).await.expect(422);
    let jwt = json!({ "algorithm": "EdDSA", "public_key": PUBLIC_KEY, "issuer": "till" });
    let added = portal.post(&keys, &ann, json!({ "jwt": jwt })).await.expect(201);
    assert_eq!(
        (added.text("name"), added.text("key")),
        ("till".to_owned(), String::new())
    );

    // An application that the provider knows no client of has to be entered first.
    portal
        .subscribe(&ann, &app, "partner", json!({}))
        .await
        .expect(409);
    let path = format!("/api/v1/applications/{app}");
    let mut known = portal.provide(Method::GET, &path, json!({})).await;
    known["client_id"] = json!("till-client");
    portal.provide(Method::PUT, &path, known).await;
    let partner = portal
        .subscribe(&ann, &app, "partner", json!({}))
        .await
        .expect(201);
    assert_eq!(partner.body["known_by"], json!(["till-client"]));
    let keys = format!("/apps/{app}/subscriptions/{}/keys", partner.text("id"));
    portal.post(&keys, &ann, json!({})).await.expect(409);
}

#[tokio::test]
async fn the_questions_of_a_plan_are_shown_asked_and_shown_again() {
    let portal = Portal::start().await;
    portal.publish().await;
    let form = json!({ "type": "object", "required": ["team"], "properties": {
        "team": { "type": "string", "title": "Which team?", "minLength": 2 },
        "inside": { "type": "boolean", "title": "Only inside?" },
        "calls": { "type": "integer" },
    }});
    let plan = json!({ "state": "published", "comment": "required", "form": form });
    portal.plan("asking", plan).await;
    let ann = portal.join("ann").await;
    let shown = portal.get("/apis/pets/versions/1", &ann).await.expect(200);
    let plans = shown.body["plans"].as_array().expect("plans").clone();
    let card = plans.iter().find(|it| it["name"] == "asking").expect("the plan");
    assert_eq!((&card["form"], &card["comment"]), (&form, &json!("required")));
    let app = portal.app(&ann).await;
    for (more, said) in [
        (json!({ "request": "tills" }), "team"),
        (json!({ "answers": { "team": "blue" } }), "request"),
        (json!({ "request": "tills", "answers": { "team": "b" } }), "team"),
        (
            json!({ "request": "tills", "answers": { "team": "blue", "more": 1 } }),
            "more",
        ),
    ] {
        let refused = portal.subscribe(&ann, &app, "asking", more).await.expect(409);
        assert!(refused.text("detail").contains(said), "{}", refused.body);
    }
    let answers = json!({ "team": "blue", "inside": true, "calls": 7 });
    let made = portal.subscribe(
        &ann,
        &app,
        "asking",
        json!({ "request": "tills", "answers": answers }),
    );
    let made = made.await.expect(201);
    let lines = json!([
        { "question": "Which team?", "answer": "blue" },
        { "question": "Only inside?", "answer": "yes" },
        { "question": "calls", "answer": "7" },
    ]);
    assert_eq!(
        (&made.body["answers"], made.text("request")),
        (&lines, "tills".to_owned())
    );
    let stored = format!("/api/v1/subscriptions/{}", made.text("id"));
    let stored = portal.provide(Method::GET, &stored, json!({})).await;
    assert_eq!(stored["answers"], answers, "for the approver");
}
