//! Trial keys: made with one call, marked, bounded, and without notices.

use super::Portal;
use axum::http::Method;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const OFFERS: &str = "/trial-subscriptions?publication=pets/1/default";

/// An application that is subscribed: its name, and the path of its subscription.
async fn subscribed(portal: &Portal, cookie: &str) -> (String, String) {
    let app = portal.post("/apps", cookie, json!({ "title": "Till" })).await;
    let app = app.expect(201).text("name");
    let wanted = json!({ "publication": "pets/1/default", "plan": "gold", "conditions_revision": 1 });
    let path = format!("/apps/{app}/subscriptions");
    let made = portal.post(&path, cookie, wanted).await.expect(201);
    let path = format!("{path}/{}", made.text("id"));
    (app, path)
}

/// How many trial keys of a subscription are stored.
async fn kept_trials(portal: &Portal, id: &str) -> usize {
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let kept = portal.provide(Method::GET, &path, json!({})).await;
    let kept = kept["items"].as_array().expect("keys");
    kept.iter().filter(|it| it["trial"] == true).count()
}

#[tokio::test]
async fn a_trial_key_is_one_of_the_subscription_that_ends_soon() {
    let portal = Portal::start().await;
    portal.publish().await;
    let (ann, eve) = (portal.join("ann").await, portal.join("eve").await);
    portal.get(OFFERS, "").await.expect(401);
    assert_eq!(portal.get(OFFERS, &ann).await.body["items"], json!([]));
    let (app, path) = subscribed(&portal, &ann).await;
    let offered = portal.get(OFFERS, &ann).await.expect(200);
    let offer = &offered.body["items"][0];
    assert_eq!(
        (&offer["app"], &offer["app_title"]),
        (&json!(app), &json!("Till"))
    );
    assert_eq!(portal.get(OFFERS, &eve).await.body["items"], json!([]));
    let other = "/trial-subscriptions?publication=pets/1/far";
    assert_eq!(portal.get(other, &ann).await.body["items"], json!([]));

    let trial = format!("{path}/trial-keys");
    portal.post(&trial, "", Value::Null).await.expect(401);
    portal.post(&trial, &eve, Value::Null).await.expect(404);
    let revision = portal
        .provide(Method::GET, "/api/v1/history?limit=1", json!({}))
        .await;
    let before = revision["items"][0]["revision"].as_u64().expect("a revision");
    let made = portal.post(&trial, &ann, Value::Null).await.expect(201);
    assert_eq!(made.text("key").len(), 64);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time")
        .as_secs();
    let left = made.body["expires"].as_u64().expect("an end") - now;
    assert!((890..=900).contains(&left), "{left}");
    // It is marked, and the history shows it as what it is.
    let shown = portal.get(&format!("/apps/{app}"), &ann).await.expect(200);
    let keys = shown.body["subscriptions"][0]["keys"]
        .as_array()
        .expect("keys")
        .clone();
    let of_trial = |it: &&Value| it["is_trial"] == true;
    assert_eq!((keys.len(), keys.iter().filter(of_trial).count()), (2, 1));
    assert!(!shown.body.to_string().contains(&made.text("key")));
    let history = portal
        .provide(Method::GET, "/api/v1/history?limit=1", json!({}))
        .await;
    let last = &history["items"][0];
    assert!(last["revision"].as_u64() > Some(before));
    assert!(last["note"].to_string().starts_with("\"a trial key of"), "{last}");
    assert_eq!(last["author"], "developer ann@example.com");
    // The gateway knows it by its hash, as it does the other one.
    let id = path.rsplit('/').next().expect("an id");
    assert_eq!(kept_trials(&portal, id).await, 1);
    // Four more, and no other one; a usual key is made all the same.
    for _ in 0..4 {
        portal.post(&trial, &ann, Value::Null).await.expect(201);
    }
    let refused = portal.post(&trial, &ann, Value::Null).await.expect(409);
    assert!(
        refused.text("detail").contains("5 trial keys"),
        "{}",
        refused.body
    );
    portal
        .post(&format!("{path}/keys"), &ann, json!({}))
        .await
        .expect(201);
    // One that is revoked makes room.
    let one = format!("{path}/keys/{}", made.text("id"));
    portal
        .call(Method::DELETE, &one, &ann, json!({}))
        .await
        .expect(204);
    portal.post(&trial, &ann, Value::Null).await.expect(201);
    assert_eq!(kept_trials(&portal, id).await, 5, "the one that is over is gone");
    let notices = portal.get("/notices", &ann).await.body.to_string();
    assert!(!notices.contains(&made.text("key")[..8]), "{notices}");
}

#[tokio::test]
async fn a_subscription_that_is_stopped_gives_none() {
    let portal = Portal::start().await;
    portal.publish().await;
    let ann = portal.join("ann").await;
    let (_, path) = subscribed(&portal, &ann).await;
    let state = format!("{path}/state");
    portal
        .post(&state, &ann, json!({ "state": "stopped" }))
        .await
        .expect(200);
    assert_eq!(portal.get(OFFERS, &ann).await.body["items"], json!([]));
    portal
        .post(&format!("{path}/trial-keys"), &ann, Value::Null)
        .await
        .expect(409);
    // By Weir's own API neither, and it is no way to replace a key.
    let id = path.rsplit('/').next().expect("an id");
    let keys = format!("/api/v1/subscriptions/{id}/credentials");
    for (body, status) in [
        (json!({ "trial": true }), "409"),
        (json!({ "trial": true, "replaces": "x" }), "422"),
    ] {
        let done = portal
            .provider
            .call("root", Method::POST, &keys, Some(&body))
            .await;
        let problem = format!("{:?}", done.expect_err("refused"));
        assert!(problem.contains(status), "{problem}");
    }
}

#[tokio::test]
async fn the_catalogue_marks_the_developers_own_apis() {
    const MINE: &str = "/apis?mine=true";
    let portal = Portal::start().await;
    portal.publish().await;
    let (ann, eve) = (portal.join("ann").await, portal.join("eve").await);
    portal.get(MINE, "").await.expect(401);
    let (_, path) = subscribed(&portal, &ann).await;
    assert_eq!(portal.get(MINE, &ann).await.body["items"][0]["name"], "pets");
    assert_eq!(portal.get(MINE, &eve).await.body["items"], json!([]));
    assert_eq!(portal.get("/apis", &eve).await.body["items"][0]["name"], "pets");
    let closed = json!({ "state": "closed" });
    portal
        .post(&format!("{path}/state"), &ann, closed)
        .await
        .expect(200);
    assert_eq!(portal.get(MINE, &ann).await.body["items"], json!([]));
}

/// Eleven in a minute are one too many, whatever becomes of them.
#[tokio::test]
async fn trial_keys_are_made_a_few_times_a_minute() {
    let portal = Portal::start().await;
    portal.publish().await;
    let ann = portal.join("ann").await;
    let (_, path) = subscribed(&portal, &ann).await;
    let trial = format!("{path}/trial-keys");
    let mut statuses = Vec::new();
    // A minute may end in between.
    for _ in 0..21 {
        statuses.push(portal.post(&trial, &ann, Value::Null).await.status.as_u16());
    }
    assert_eq!(
        statuses.iter().filter(|it| **it == 201).count(),
        5,
        "{statuses:?}"
    );
    assert!(statuses.contains(&429), "{statuses:?}");
}
