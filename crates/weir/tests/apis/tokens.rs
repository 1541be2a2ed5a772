//! Plans that ask for tokens, together with plans that ask for keys.

use crate::support::{Call, until, upstream};
use crate::{Plane, petstore};
use serde_json::{Value, json};

/// An EC key, and tokens that were signed with its private half: good until 2100, and over since 2001. Their `iss` is
/// `shop`.
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/mvilmDpZRpR1oS1qbsY+Bt/FgAZ\ntHnsLTK0C6E72fR/dTQRsnFeRGjFaF/lcAlw9w6LvAb0jZroA85JUG7d5g==\n-----END PUBLIC KEY-----\n";
const TOKEN: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaG9wIiwiZXhwIjo0MTAyNDQ0ODAwfQ.thfouXTo15AghThnoX-7Db2OG6cTTA3e8FdIg2ZAY3VkBt6C3K8pJhxv6xPoiskiMqtIMnXqMAndmvOdy_TlJg";
const OLD_TOKEN: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaG9wIiwiZXhwIjoxMDAwMDAwMDAwfQ.xVuhSMMU37jsMQy_efCQd8Z7FnULitrMmptqrdZQjOdiDfu_6LkubiFsER1ZKtigjUzbs_vP2L5f7l8QM4T05A";

/// The status and the limit of a call.
fn limit(plane: &Plane, key: Option<&str>, token: Option<&str>) -> (u16, String) {
    let mut call = Call::get(&plane.weir.proxy(), "/v1/pets");
    if let Some(key) = key {
        call = call.header("X-API-Key", key);
    }
    if let Some(token) = token {
        call = call.header("Authorization", &format!("Bearer {token}"));
    }
    let answer = call.make();
    (
        answer.status,
        answer.header("ratelimit-limit").unwrap_or_default(),
    )
}

/// Gives the public key to the subscription with tokens, after what is refused. The path of its credentials.
fn give_public_key(plane: &Plane, by_key: &Value, by_token: &Value) -> String {
    let path = format!(
        "/api/v1/subscriptions/{}/credentials",
        by_token["id"].as_str().expect("an id")
    );
    let jwt = |algorithm: &str, text: &str| json!({"jwt": {"issuer": "shop", "algorithm": algorithm, "public_key": text}});
    for (wrong, expected) in [
        (json!({}), "expected the public key"),
        (jwt("HS256", "secret"), "a public key"),
        (jwt("ES256", "no key"), "expected a public key in PEM"),
    ] {
        let refused = plane.post(&path, wrong).expect(422);
        assert!(refused.body.contains(expected), "{refused:?}");
    }
    let made = plane.post(&path, jwt("ES256", PUBLIC_KEY)).expect(201).json();
    assert_eq!(
        (&made["jwt"]["issuer"], made.get("key")),
        (&json!("shop"), None),
        "{made}"
    );
    plane.post(&path, jwt("ES256", PUBLIC_KEY)).expect(409);
    let of_key = format!(
        "/api/v1/subscriptions/{}/credentials",
        by_key["id"].as_str().expect("an id")
    );
    plane.post(&of_key, jwt("ES256", PUBLIC_KEY)).expect(422);
    path
}

/// What an explanation of a call with a key and the token says of the plans.
fn explained(plane: &Plane, key: &str) -> Vec<(String, String)> {
    let headers = json!({"X-API-Key": key, "Authorization": format!("Bearer {TOKEN}")});
    let call = json!({"url": "http://localhost/v1/pets", "headers": headers});
    let explained = plane.post("/api/v1/explain", call).expect(200).json();
    let plans = explained["plans"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    plans
        .map(|it| (text(&it["plan"]), text(&it["verdict"])))
        .collect()
}

fn owned((plan, verdict): (&str, &str)) -> (String, String) {
    (plan.to_owned(), verdict.to_owned())
}

/// 26
#[test]
fn keys_and_tokens_have_their_own_limits_and_the_first_plan_takes_a_call_with_both() {
    let plane = Plane::start();
    plane.version(&petstore());
    let plans = "/api/v1/apis/pets/versions/1.0.0/plans";
    let plan = |security: &str, order: u32, count: u64| json!({"security": security, "state": "published", "order": order, "limits": [{"count": count, "per": "month"}]});
    plane
        .put(&format!("{plans}/by-key"), plan("key", 1, 1000))
        .expect(201);
    plane
        .put(&format!("{plans}/by-token"), plan("jwt", 2, 2000))
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    let subscribe = |plan: &str| {
        let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": plan});
        plane.post("/api/v1/subscriptions", wanted).expect(201).json()
    };
    let (by_key, by_token) = (subscribe("by-key"), subscribe("by-token"));
    let key = by_key["credential"]["key"].as_str().expect("a key").to_owned();
    assert_eq!(
        (&by_token["state"], &by_token["credential"]),
        (&json!("accepted"), &json!(null))
    );
    let path = give_public_key(&plane, &by_key, &by_token);
    let limit = |key: Option<&str>, token: Option<&str>| limit(&plane, key, token);
    let good = |count: &str| (200, count.to_owned());
    until("the key is good", || limit(Some(&key), None) == good("1000"));
    until("the token is good", || limit(None, Some(TOKEN)) == good("2000"));
    assert_eq!(
        limit(Some(&key), Some(TOKEN)),
        good("1000"),
        "the first plan in order"
    );
    assert_eq!(
        explained(&plane, &key),
        [("by-key", "good"), ("by-token", "no-subscription")].map(owned)
    );
    assert_eq!(
        limit(Some("wrong"), Some(TOKEN)),
        good("2000"),
        "the second one knows the caller"
    );
    for (key, token) in [
        (None, None),
        (Some("wrong"), None),
        (None, Some(OLD_TOKEN)),
        (None, Some("x.y.z")),
    ] {
        assert_eq!(limit(key, token).0, 401, "{key:?} {token:?}");
    }
    let exported = plane
        .get("/api/v1/apis/pets/versions/1.0.0/openapi?environment=test")
        .json();
    assert_eq!(
        exported["security"],
        json!([{"weir_key": []}, {"weir_token": []}])
    );

    // The other order.
    plane
        .put(&format!("{plans}/by-token"), plan("jwt", 0, 2000))
        .expect(200);
    until("tokens go first", || {
        limit(Some(&key), Some(TOKEN)) == good("2000")
    });
    assert_eq!(
        explained(&plane, &key),
        [("by-token", "good"), ("by-key", "no-subscription")].map(owned)
    );
    plane
        .post(
            &format!("{}/state", path.trim_end_matches("/credentials")),
            json!({"state": "closed"}),
        )
        .expect(200);
    until("the token is no longer good", || {
        limit(None, Some(TOKEN)).0 == 401
    });
}
