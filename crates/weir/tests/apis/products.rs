//! Products: one key for chosen operations of several publications.

use crate::support::{until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

#[test]
fn a_product_opens_chosen_operations_of_two_apis_with_one_key_and_one_limit() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    plane.put("/api/v1/apis/cats", json!({})).expect(201);
    plane
        .post("/api/v1/apis/cats/versions?version=1", petstore())
        .expect(201);
    let mut there = runtime(upstream("cats"));
    there["base_path"] = "/cats".into();
    plane
        .post("/api/v1/publications/cats/1/test", json!({"runtime": there}))
        .expect(200);
    let wrong = json!({"publications": {"pets/1.0.0/test": ["none"], "dogs/1/test": []}});
    let refused = plane.put("/api/v1/products/bundle", wrong).expect(422);
    assert!(
        refused.body.contains("no operation 'none'") && refused.body.contains("no such publication"),
        "{refused:?}"
    );
    let product = |state: &str| json!({"state": state, "publications": {"pets/1.0.0/test": ["listPets"], "cats/1/test": []}});
    plane
        .put("/api/v1/products/bundle", product("unpublished"))
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    let plan = json!({"state": "published", "limits": [{"count": 4, "per": "month"}]});
    plane.put("/api/v1/products/bundle/plans/gold", plan).expect(201);
    let wanted = json!({"application": "shop", "product": "bundle", "plan": "gold"});
    plane.post("/api/v1/subscriptions", wanted.clone()).expect(409);
    plane
        .put("/api/v1/products/bundle", product("published"))
        .expect(200);
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let key = made["credential"]["key"].as_str().expect("a key").to_owned();
    let id = made["id"].as_str().expect("an id").to_owned();
    until("the key opens both", || {
        plane.status("/cats/pets", None) == Some(401) && plane.status("/v1/pets", None) == Some(401)
    });
    until("the key is known", || {
        plane.status("/v1/pets/7", Some(&key)) == Some(403)
    });
    let statuses: Vec<Option<u16>> = [
        "/v1/pets",
        "/cats/pets",
        "/v1/pets",
        "/cats/pets/7",
        "/v1/pets",
        "/cats/pets",
    ]
    .iter()
    .map(|path| plane.status(path, Some(&key)))
    .collect();
    assert_eq!(
        statuses,
        [200, 200, 200, 200, 429, 429].map(Some),
        "one limit for all"
    );
    let explained = plane
        .post(
            "/api/v1/explain",
            json!({"url": "http://localhost/v1/pets", "headers": {"X-API-Key": key}}),
        )
        .expect(200)
        .json();
    assert_eq!(
        (&explained["plans"][0]["plan"], &explained["plans"][0]["verdict"]),
        (&json!("bundle.gold"), &json!("good")),
        "{explained:#}"
    );
    plane
        .call("DELETE", "/api/v1/products/bundle", &Value::Null)
        .make()
        .expect(409);
    plane
        .post(
            &format!("/api/v1/subscriptions/{id}/state"),
            json!({"state": "closed"}),
        )
        .expect(200);
    until("the key is gone", || {
        plane.status("/v1/pets", Some(&key)) == Some(401)
    });
    plane
        .call("DELETE", "/api/v1/products/bundle", &Value::Null)
        .make()
        .expect(204);
    until("nothing asks for a key", || {
        plane.status("/v1/pets", None) == Some(200)
    });
}
