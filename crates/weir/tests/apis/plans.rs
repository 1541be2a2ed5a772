//! Plans: what they ask of subscribers, and their end: at once, at a date, or by handing their subscriptions to another.

use crate::support::{Call, until, upstream};
use crate::{Plane, petstore};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const PLANS: &str = "/api/v1/apis/pets/versions/1.0.0/plans";

fn offered(plans: &[(&str, Value)]) -> Plane {
    let plane = Plane::start();
    plane.version(&petstore());
    for (name, plan) in plans {
        let mut plan = plan.clone();
        plan["state"] = "published".into();
        plane.put(&format!("{PLANS}/{name}"), plan).expect(201);
    }
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    plane
}

fn wish(plan: &str) -> Value {
    json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": plan})
}

fn key(made: &Value) -> String {
    made["credential"]["key"].as_str().expect("a key").to_owned()
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

#[test]
fn a_plan_asks_its_questions_and_the_approver_reads_the_answers() {
    let form = json!({"type": "object", "required": ["team"], "properties": {
        "team": {"type": "string", "title": "Which team?"}, "calls": {"type": "integer", "minimum": 1}}});
    let plan = json!({"validation": "manual", "comment": "required", "form": form});
    let plane = offered(&[("gold", plan), ("quiet", json!({"comment": "none"}))]);
    let ask = |plan: &str, request: &str, answers: Value| {
        let mut wanted = wish(plan);
        (wanted["request"], wanted["answers"]) = (request.into(), answers);
        plane.post("/api/v1/subscriptions", wanted)
    };
    for (plan, request, answers, expected) in [
        ("gold", "", json!({"team": "blue"}), "reason in 'request'"),
        ("gold", "for the shop", json!({}), "team"),
        (
            "gold",
            "for the shop",
            json!({"team": "blue", "calls": 0}),
            "answers",
        ),
        (
            "gold",
            "for the shop",
            json!({"team": "blue", "size": 3}),
            "answers.size",
        ),
        ("quiet", "hello", json!({}), "accepts no reason"),
        ("quiet", "", json!({"team": "blue"}), "has no questions"),
    ] {
        let refused = ask(plan, request, answers).expect(409);
        assert!(refused.body.contains(expected), "{expected}: {refused:?}");
    }
    let made = ask("gold", "for the shop", json!({"team": "blue", "calls": 5}))
        .expect(201)
        .json();
    let id = made["id"].as_str().expect("an id");
    let read = plane
        .get(&format!("/api/v1/subscriptions/{id}"))
        .expect(200)
        .json();
    assert_eq!(
        (&read["state"], &read["request"], &read["answers"]),
        (
            &json!("pending"),
            &json!("for the shop"),
            &json!({"team": "blue", "calls": 5})
        )
    );
    let bad = json!({"form": {"type": "object", "properties": {"team": {"type": "array"}}}});
    let refused = plane.put(&format!("{PLANS}/bad"), bad).expect(422);
    assert!(refused.body.contains("form.properties.team.type"), "{refused:?}");
}

/// 24, at a date.
#[test]
fn a_plan_is_closed_at_its_date_and_serves_until_then() {
    let plane = offered(&[
        ("gold", json!({})),
        ("silver", json!({})),
        ("token", json!({"security": "jwt"})),
    ]);
    let made = plane
        .post("/api/v1/subscriptions", wish("gold"))
        .expect(201)
        .json();
    let old = key(&made);
    until("the key is good", || {
        plane.status("/v1/pets", Some(&old)) == Some(200)
    });
    let close = |plan: &str, body: Value| plane.post(&format!("{PLANS}/{plan}/state"), body);
    for (body, status, expected) in [
        (json!({"state": "closed", "at": 5}), 422, "lies ahead"),
        (
            json!({"state": "deprecated", "at": now() + 99}),
            422,
            "'closed' only",
        ),
        (
            json!({"state": "closed", "at": now() + 99, "move_to": "gold"}),
            409,
            "another plan",
        ),
        (
            json!({"state": "closed", "at": now() + 99, "move_to": "token"}),
            409,
            "by something else",
        ),
        (
            json!({"state": "closed", "move_to": "token"}),
            409,
            "by something else",
        ),
    ] {
        let refused = close("gold", body).expect(status);
        assert!(refused.body.contains(expected), "{expected}: {refused:?}");
    }
    let far = close("gold", json!({"state": "closed", "at": now() + 9_999}))
        .expect(200)
        .json();
    assert_eq!(far["state"], "deprecated");
    plane.post("/api/v1/subscriptions", wish("gold")).expect(409);
    // A plan that is published again is not closed any more.
    let again = close("gold", json!({"state": "published"})).expect(200).json();
    assert_eq!(again.get("closes"), None, "{again}");
    let at = now() + 3;
    close("gold", json!({"state": "closed", "at": at, "move_to": "silver"})).expect(200);
    let kept = plane
        .put(
            &format!("{PLANS}/gold"),
            json!({"state": "deprecated", "display_name": "Gold"}),
        )
        .expect(200)
        .json();
    assert_eq!(
        kept["closes"],
        json!({"at": at, "move_to": "silver"}),
        "an edit keeps it"
    );
    until("it is closed", || {
        assert_eq!(
            plane.status("/v1/pets", Some(&old)),
            Some(200),
            "no call is refused meanwhile"
        );
        plane.get(&format!("{PLANS}/gold")).json()["state"] == "closed"
    });
    assert!(now() >= at, "not before its time");
    let id = made["id"].as_str().expect("an id");
    let moved = plane.get(&format!("/api/v1/subscriptions/{id}")).json();
    assert_eq!(
        (&moved["plan"], &moved["state"]),
        (&json!("silver"), &json!("accepted"))
    );

    close("silver", json!({"state": "closed", "at": now() + 2})).expect(200);
    until("its subscriptions are closed with it", || {
        plane.status("/v1/pets", Some(&old)) == Some(401)
    });
    let over = plane.get(&format!("/api/v1/subscriptions/{id}")).json();
    assert_eq!(
        (&over["state"], &over["reason"]),
        (&json!("closed"), &json!("the plan 'silver' was closed"))
    );
}

/// A plan whose subscribers have credentials of one kind does not ask for another kind.
#[test]
fn a_plan_with_subscribers_keeps_its_kind() {
    let plane = offered(&[("gold", json!({}))]);
    let made = plane
        .post("/api/v1/subscriptions", wish("gold"))
        .expect(201)
        .json();
    let other = json!({"state": "published", "security": "basic"});
    let refused = plane.put(&format!("{PLANS}/gold"), other.clone()).expect(409);
    assert!(refused.body.contains("1 subscriptions"), "{refused:?}");
    let path = format!(
        "/api/v1/subscriptions/{}/state",
        made["id"].as_str().expect("an id")
    );
    plane.post(&path, json!({"state": "closed"})).expect(200);
    plane.put(&format!("{PLANS}/gold"), other).expect(200);
}

/// Plans of products end in the same ways.
#[test]
fn a_plan_of_a_product_hands_its_subscriptions_over() {
    let plane = offered(&[("gold", json!({}))]);
    let product = json!({"state": "published", "publications": {"pets/1.0.0/test": []}});
    plane.put("/api/v1/products/bundle", product).expect(201);
    for name in ["old", "new"] {
        plane
            .put(
                &format!("/api/v1/products/bundle/plans/{name}"),
                json!({"state": "published"}),
            )
            .expect(201);
    }
    let wanted = json!({"application": "shop", "product": "bundle", "plan": "old"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let key = key(&made);
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    let state = json!({"state": "closed", "move_to": "new"});
    plane
        .post("/api/v1/products/bundle/plans/old/state", state)
        .expect(200);
    let id = made["id"].as_str().expect("an id");
    assert_eq!(
        plane.get(&format!("/api/v1/subscriptions/{id}")).json()["plan"],
        "new"
    );
    assert_eq!(plane.status("/v1/pets", Some(&key)), Some(200));
}

/// A plan that was made by mistake goes again, unless somebody subscribes to it.
#[test]
fn a_plan_without_subscriptions_can_be_deleted() {
    let plane = offered(&[("gold", json!({})), ("mistake", json!({}))]);
    let made = plane
        .post("/api/v1/subscriptions", wish("gold"))
        .expect(201)
        .json();
    let delete = |path: &str| plane.call("DELETE", path, &Value::Null).make();
    delete(&format!("{PLANS}/mistake")).expect(204);
    plane.get(&format!("{PLANS}/mistake")).expect(404);
    delete(&format!("{PLANS}/mistake")).expect(404);
    let id = made["id"].as_str().expect("an id");
    let refused = delete(&format!("{PLANS}/gold")).expect(409);
    assert!(
        refused
            .body
            .contains(&format!("1 in all, such as subscriptions/{id}")),
        "{refused:?}"
    );
    let closes = json!({"state": "closed", "at": now() + 3_600, "move_to": "next"});
    let published = json!({"state": "published"});
    plane.put(&format!("{PLANS}/next"), published.clone()).expect(201);
    plane.post(&format!("{PLANS}/gold/state"), closes).expect(200);
    let refused = delete(&format!("{PLANS}/next")).expect(409);
    assert!(
        refused.body.contains("gets the subscriptions of 'gold'"),
        "{refused:?}"
    );
    let state = format!("/api/v1/subscriptions/{id}/state");
    plane.post(&state, json!({"state": "closed"})).expect(200);
    delete(&format!("{PLANS}/gold")).expect(204);
    let product = json!({"state": "published", "publications": {"pets/1.0.0/test": []}});
    plane.put("/api/v1/products/bundle", product).expect(201);
    let plan = "/api/v1/products/bundle/plans/all";
    plane.put(plan, published).expect(201);
    delete(plan).expect(204);
    plane.get(plan).expect(404);
}

/// The defect: with its last plan, the key that an API asked for was gone.
#[test]
fn an_api_that_has_lost_its_plans_is_closed() {
    let plane = offered(&[("gold", json!({}))]);
    let is_closed = || plane.status("/v1/pets", None) == Some(401);
    until("a key is asked for", is_closed);
    let key = key(&plane
        .post("/api/v1/subscriptions", wish("gold"))
        .expect(201)
        .json());
    until("the key is known", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    plane
        .post(&format!("{PLANS}/gold/state"), json!({"state": "closed"}))
        .expect(200);
    until("the key is good for nothing", || {
        plane.status("/v1/pets", Some(&key)) == Some(401)
    });
    assert!(is_closed(), "nor is a call without one");
    // A plan for everybody opens it, as far as that goes.
    let free = json!({"state": "published", "security": "keyless", "operations": ["listPets"]});
    plane.put(&format!("{PLANS}/free"), free).expect(201);
    until("it is open", || plane.status("/v1/pets", None) == Some(200));
    let refused = plane.through("/v1/pets/1", None).expect("an answer");
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.json()["type"],
        "urn:weir:problem:not-in-plan",
        "{refused:?}"
    );
    let call = json!({"url": "http://localhost/v1/pets/1"});
    let explained = plane.post("/api/v1/explain", call).expect(200).json();
    assert_eq!(explained["plans"][0]["verdict"], "not-in-plan", "{explained:#}");
    // Beside it, a plan with keys is explained as if it stood alone.
    let silver = json!({"state": "published", "order": 1});
    plane.put(&format!("{PLANS}/silver"), silver).expect(201);
    for (headers, expected) in [
        (json!({}), "no-token"),
        (json!({"X-API-Key": "x"}), "invalid-token"),
    ] {
        let call = json!({"url": "http://localhost/v1/pets", "headers": headers});
        let explained = plane.post("/api/v1/explain", call).expect(200).json();
        assert_eq!(explained["plans"][1]["verdict"], expected, "{explained:#}");
    }
}

/// The defect: of many who subscribed at once, some were refused as others wrote too.
#[test]
fn many_subscribe_at_once() {
    const MANY: usize = 16;
    let plane = offered(&[("gold", json!({}))]);
    for number in 0..MANY {
        let path = format!("/api/v1/applications/app-{number}");
        plane.put(&path, json!({})).expect(201);
    }
    let console = plane.weir.console();
    let subscribe = |number: usize| {
        let mut wanted = wish("gold");
        wanted["application"] = format!("app-{number}").into();
        let call = Call::new("POST", &console, "/api/v1/subscriptions");
        call.body(&wanted.to_string()).make()
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..MANY)
            .map(|it| {
                let subscribe = &subscribe;
                scope.spawn(move || subscribe(it))
            })
            .collect();
        for one in all {
            one.join().expect("an answer").expect(201);
        }
    });
}

/// The defect: what had only a product's plans was open once it left the product.
#[test]
fn a_publication_that_leaves_its_product_is_closed() {
    let plane = offered(&[]);
    let product = |publications: Value| {
        let product = json!({"state": "published", "publications": publications});
        plane.put("/api/v1/products/bundle", product)
    };
    until("it is open", || plane.status("/v1/pets", None) == Some(200));
    product(json!({"pets/1.0.0/test": []})).expect(201);
    plane
        .put("/api/v1/products/bundle/plans/all", json!({"state": "published"}))
        .expect(201);
    until("a key is asked for", || {
        plane.status("/v1/pets", None) == Some(401)
    });
    product(json!({})).expect(200);
    let known = plane.get("/api/v1/publications/pets/1.0.0/test").json();
    let revision = known["rollout"]["revision"].clone();
    until("gateways know it", || {
        let known = plane.get("/api/v1/publications/pets/1.0.0/test").json();
        known["rollout"]["served"] == true && known["rollout"]["revision"] == revision
    });
    assert_eq!(plane.status("/v1/pets", None), Some(401));
}

/// When a subscription ends can be changed as long as it lasts.
#[test]
fn the_end_of_a_subscription_can_be_changed() {
    let plane = offered(&[("gold", json!({}))]);
    let mut wanted = wish("gold");
    wanted["ends"] = (now() + 3_600).into();
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let path = format!("/api/v1/subscriptions/{}", made["id"].as_str().expect("an id"));
    let end = |ends: Value| plane.put(&format!("{path}/ends"), json!({ "ends": ends }));
    let later = now() + 7_200;
    assert_eq!(end(later.into()).expect(200).json()["ends"], later);
    assert_eq!(plane.get(&path).json()["ends"], later);
    end((now() - 1).into()).expect(422);
    assert_eq!(end(Value::Null).expect(200).json()["ends"], Value::Null);
    plane.put(&format!("{path}/ends"), json!({})).expect(422);
    plane
        .post(&format!("{path}/state"), json!({"state": "closed"}))
        .expect(200);
    end(later.into()).expect(409);
}
