//! What a developer sees of subscriptions of each kind: user names, client ids, certificates, public keys; and the
//! questions of a plan.

use super::Portal;
use axum::body::Body;
use axum::http::{Method, Request, header};
use serde_json::{Value, json};

const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

/// Of a client called `till`. It ends long after these tests.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIBdTCCARugAwIBAgIUell47Q7UY6Sz4WFNrNJHmohXoDEwCgYIKoZIzj0EAwIw\nDzENMAsGA1UEAwwEdGlsbDAgFw0yNjExMjUxMjUyMzFaGA8yMTI2MTEwMTEyNTIz\nMVowDzENMAsGA1UEAwwEdGlsbDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIPG\nbiFWWCiyXrLBhy1qpB2wfYcDSS0Lh9UKHc7VizZA4XDcJz9lEa4MjXCA3uHUWcqp\neu+IgJcSuwUL5xXF/q6jUzBRMB0GA1UdDgQWBBRf9FFgKjGqATnd7OX8QtSk0Znp\nADAfBgNVHSMEGDAWgBRf9FFgKjGqATnd7OX8QtSk0ZnpADAPBgNVHRMBAf8EBTAD\nAQH/MAoGCCqGSM49BAMCA0gAMEUCIQD+2ZryXNcYVm+DOqZ0jNvlaTiOgW7R148j\nYqgnlAs06wIgGEAXNVkhQC9b3b2M1K0X6LLfURIZ9aNFquK2ZXG8T/k=\n-----END CERTIFICATE-----\n";

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

    /// Changes an application.
    async fn put_app(&self, cookie: &str, app: &str, body: Value) -> super::PortalResponse {
        self.call(Method::PUT, &format!("/apps/{app}"), cookie, body)
            .await
    }

    /// The same, if it has not changed since a read that had this tag.
    async fn put_app_of(&self, cookie: &str, app: &str, (tag, body): (&str, Value)) -> super::PortalResponse {
        let request = Request::put(format!("/portal/v1/apps/{app}"))
            .header(header::HOST, "portal.test")
            .header(header::ORIGIN, "http://portal.test")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::COOKIE, cookie)
            .header(header::IF_MATCH, tag);
        self.ask(request.body(Body::from(body.to_string())).expect("a request"))
            .await
    }

    async fn subscribe(&self, cookie: &str, app: &str, plan: &str, more: Value) -> super::PortalResponse {
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
    for (more, message) in [
        (json!({ "request": "tills" }), "team"),
        (json!({ "answers": { "team": "blue" } }), "request"),
        (json!({ "request": "tills", "answers": { "team": "b" } }), "team"),
        (
            json!({ "request": "tills", "answers": { "team": "blue", "more": 1 } }),
            "more",
        ),
    ] {
        let refused = portal.subscribe(&ann, &app, "asking", more).await.expect(409);
        assert!(refused.text("detail").contains(message), "{}", refused.body);
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

#[tokio::test]
async fn developers_enter_what_plans_know_their_applications_by_and_take_nothing_of_others() {
    let portal = Portal::start().await;
    portal.publish().await;
    let oauth2 = json!({ "discovery": "https://id.example.com" });
    for (name, plan) in [
        (
            "partner",
            json!({ "state": "published", "security": "oauth2", "oauth2": oauth2 }),
        ),
        ("machines", json!({ "state": "published", "security": "mtls" })),
    ] {
        portal.plan(name, plan).await;
    }
    let (ann, bob) = (portal.join("ann").await, portal.join("bob").await);
    let (own, other) = (portal.app(&ann).await, portal.app(&bob).await);
    let known = json!({ "title": "Till", "client_id": " till-client ", "certificates": [CERTIFICATE] });
    portal.put_app(&ann, &own, known.clone()).await.expect(200);
    let shown = portal.get(&format!("/apps/{own}"), &ann).await.expect(200);
    assert_eq!(
        (&shown.body["client_id"], &shown.body["certificates"]),
        (&json!("till-client"), &json!([CERTIFICATE]))
    );
    let partner = portal
        .subscribe(&ann, &own, "partner", json!({}))
        .await
        .expect(201);
    assert_eq!(partner.body["known_by"], json!(["till-client"]));
    let machines = portal
        .subscribe(&ann, &own, "machines", json!({}))
        .await
        .expect(201);
    let print = machines.body["known_by"][0]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert_eq!(print.len(), 64, "{}", machines.body);

    // What a call leaves out stays; the developer's data have it.
    portal
        .put_app(&ann, &own, json!({ "title": "Tills" }))
        .await
        .expect(200);
    let data = portal.get("/account/data", &ann).await.expect(200);
    assert_eq!(
        data.body["applications"][0]["client_id"], "till-client",
        "{}",
        data.body
    );

    // Neither a change nor a new application takes what another one has, and the refusal says nothing about it.
    let takes = [
        (
            json!({ "title": "Thief", "client_id": "till-client" }),
            "client_id",
        ),
        (
            json!({ "title": "Thief", "certificates": [format!("{CERTIFICATE} ")] }),
            "certificates[0]",
        ),
    ];
    for (body, place) in takes {
        let changed = portal.put_app(&bob, &other, body.clone()).await.expect(422);
        let made = portal.post("/apps", &bob, body).await.expect(422);
        for refused in [changed, made] {
            assert_eq!(refused.body["errors"][0]["path"], place, "{}", refused.body);
            let text = refused.body.to_string();
            assert!(
                !text.contains("another") && !text.contains(&own) && !text.contains("taken"),
                "{text}"
            );
        }
    }
    let fine = json!({ "title": "Till", "client_id": "bobs-client", "certificates": [] });
    portal.put_app(&bob, &other, fine).await.expect(200);

    // What is given up is free again, and the plan knows no caller by it.
    let none = json!({ "title": "Till", "client_id": "", "certificates": [] });
    portal.put_app(&ann, &own, none).await.expect(200);
    let shown = portal.get(&format!("/apps/{own}"), &ann).await.expect(200);
    let lines = shown.body["subscriptions"].as_array().expect("subscriptions");
    assert!(
        lines.iter().all(|it| it["known_by"] == json!([])),
        "{}",
        shown.body
    );
    portal.put_app(&bob, &other, known).await.expect(200);
}

/// Two pages show one application, and each saves what it began with.
#[tokio::test]
async fn a_page_that_is_out_of_date_overwrites_no_application() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let app = portal.app(&ann).await;
    let read = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    let began = read.headers[header::ETAG].to_str().expect("a tag").to_owned();
    let body = |title: &str| json!({ "title": title });
    let saved = portal
        .put_app_of(&ann, &app, (&began, body("First")))
        .await
        .expect(200);
    let late = portal
        .put_app_of(&ann, &app, (&began, body("Second")))
        .await
        .expect(412);
    assert!(late.text("type").ends_with("changed-meanwhile"), "{}", late.body);
    let tag = saved.headers[header::ETAG].to_str().expect("a tag").to_owned();
    let read = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    assert_eq!(
        (
            read.headers[header::ETAG].to_str().ok(),
            &read.body["app"]["title"]
        ),
        (Some(tag.as_str()), &json!("First"))
    );
    portal
        .put_app_of(&ann, &app, (&tag, body("Second")))
        .await
        .expect(200);
    let turned = portal
        .put_app(&ann, &app, body("Till\u{202e}gnp.exe"))
        .await
        .expect(422);
    assert_eq!(turned.body["errors"][0]["path"], "title");
    // Who names no version is asked for none.
    portal.put_app(&ann, &app, body("Third")).await.expect(200);
}

/// Two saves at the same moment, of the same version: the second one is refused.
#[tokio::test]
async fn of_two_saves_at_once_one_wins() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let app = portal.app(&ann).await;
    for round in 0..10 {
        let read = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
        let began = read.headers[header::ETAG].to_str().expect("a tag").to_owned();
        let title = |side: &str| json!({ "title": format!("{side} {round}") });
        let (left, right) = tokio::join!(
            portal.put_app_of(&ann, &app, (&began, title("Left"))),
            portal.put_app_of(&ann, &app, (&began, title("Right"))),
        );
        let mut both = [left.status.as_u16(), right.status.as_u16()];
        both.sort_unstable();
        assert_eq!(both, [200, 412], "{} {}", left.body, right.body);
        let winner = if left.status == 200 { "Left" } else { "Right" };
        let read = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
        assert_eq!(read.body["app"]["title"], format!("{winner} {round}"));
    }
    // Who names no version overwrites nothing of what is left out, and is not told to try again.
    let body = |field: &str, value: Value| json!({ "title": "Both", field: value });
    let (left, right) = tokio::join!(
        portal.put_app(&ann, &app, body("client_id", json!("shop"))),
        portal.put_app(&ann, &app, body("description", json!("sells"))),
    );
    left.expect(200);
    right.expect(200);
    let read = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    assert_eq!(read.body["client_id"], "shop", "{}", read.body);
}

/// A proxy that compresses answers makes their tags weak.
#[tokio::test]
async fn a_weak_tag_names_the_version_too() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let app = portal.app(&ann).await;
    let read = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    let weak = format!("W/{}", read.headers[header::ETAG].to_str().expect("a tag"));
    let body = |title: &str| json!({ "title": title });
    let saved = portal.put_app_of(&ann, &app, (&weak, body("First"))).await;
    saved.expect(200);
    let late = portal.put_app_of(&ann, &app, (&weak, body("Second"))).await;
    late.expect(412);
}

/// Plans name operations as the draft does; what is published may know them by former ids.
#[tokio::test]
async fn plans_show_operations_as_the_published_document_names_them() {
    let portal = Portal::start().await;
    portal.publish().await;
    let open = json!({ "visibility": "public" });
    portal.provide(Method::PUT, "/api/v1/apis/pets", open).await;
    let plan = json!({ "state": "published", "operations": ["listPets"] });
    let path = "/api/v1/apis/pets/versions/1/plans/gold";
    portal.provide(Method::PUT, path, plan).await;
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "Pets", "version": "1" },
        "paths": { "/pets": { "get": {
            "operationId": "allPets", "summary": "Lists pets", "responses": { "200": { "description": "ok" } }
        } } },
    });
    let draft = json!({ "spec": document.to_string() });
    portal
        .provide(Method::PUT, "/api/v1/apis/pets/versions/1", draft)
        .await;
    let mut shown = Value::Null;
    for _ in 0..1_500 {
        shown = portal.get("/apis/pets/versions/1", "").await.body;
        if shown["plans"][0]["operations"] == json!(["listPets"]) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(shown["operations"][0]["id"], "listPets");
    assert_eq!(shown["plans"][0]["operations"], json!(["listPets"]), "{shown}");
}

/// A change that says nothing of the team leaves the application there; `null` takes it out.
#[tokio::test]
async fn an_application_leaves_its_team_only_if_that_is_said() {
    let portal = Portal::start().await;
    let ann = portal.join("ann").await;
    let team = portal.post("/teams", &ann, json!({ "name": "Shop" })).await;
    let team = team.expect(201).text("id");
    let wanted = json!({ "title": "Till", "team": team });
    let app = portal.post("/apps", &ann, wanted).await.expect(201).text("name");
    for (body, expected) in [
        (json!({ "title": "Renamed" }), json!(team)),
        (json!({ "title": "Renamed", "team": null }), Value::Null),
    ] {
        let saved = portal.put_app(&ann, &app, body.clone()).await.expect(200);
        assert_eq!(saved.body["team"], expected, "{body}");
    }
}
