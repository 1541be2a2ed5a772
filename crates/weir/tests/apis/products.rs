//! Products: one key for chosen operations of several publications.

use crate::support::{Call, until, upstream};
use crate::weir::Weir;
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
    // What has asked for keys does not open by itself.
    let free = json!({"state": "published", "security": "keyless"});
    assert_eq!(plane.status("/v1/pets", None), Some(401));
    plane
        .put("/api/v1/apis/pets/versions/1.0.0/plans/free", free)
        .expect(201);
    until("nothing asks for a key", || {
        plane.status("/v1/pets", None) == Some(200)
    });
}

/// The defect: what a product gives to both of its environments was there twice for a process that serves both. It
/// reported the consumers and the limits of one of them as left out, and refused the calls of the other one.
#[test]
fn a_product_of_two_environments_is_served_whole_by_a_process_that_serves_both() {
    let plane = Plane::with(&["--environment", "test", "--environment", "prod"]);
    plane.version(&petstore());
    for (environment, base_path) in [("test", "/test"), ("prod", "/prod")] {
        let mut there = runtime(upstream("pets"));
        there["base_path"] = base_path.into();
        plane
            .post(
                &format!("/api/v1/publications/pets/1.0.0/{environment}"),
                json!({"runtime": there}),
            )
            .expect(200);
    }
    let product =
        json!({"state": "published", "publications": {"pets/1.0.0/test": [], "pets/1.0.0/prod": []}});
    plane.put("/api/v1/products/bundle", product).expect(201);
    let plan = json!({"state": "published", "limits": [{"count": 1000, "per": "month"}]});
    plane.put("/api/v1/products/bundle/plans/gold", plan).expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    let wanted = json!({"application": "shop", "product": "bundle", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let key = made["credential"]["key"].as_str().expect("a key").to_owned();
    for path in ["/test/pets", "/prod/pets"] {
        until("a key is asked for", || plane.status(path, None) == Some(401));
        until("the key opens it", || plane.status(path, Some(&key)) == Some(200));
    }
    // Nor does a gateway of one of them hear of the other one.
    let control = format!("http://{}", plane.weir.console());
    let folder = tempfile::tempdir().expect("a folder");
    let role = ["--role", "gateway", "--control", &control];
    let gateway = Weir::start(folder.path(), &[&role[..], &["--environment", "test"]].concat());
    until("the gateway knows the key", || {
        let call = Call::get(&gateway.proxy(), "/test/pets").header("X-API-Key", &key);
        call.attempt().is_some_and(|it| it.status == 200)
    });
    for weir in [&plane.weir, &gateway] {
        let status = Call::get(&weir.status(), "/status").make().json();
        assert_eq!(status["store"]["skipped"], json!([]), "{status:#}");
    }
    // The limit is one for both.
    let left = |path: &str| {
        let answer = plane.through(path, Some(&key)).expect("an answer");
        let left = answer.header("ratelimit-remaining").expect("a limit");
        left.parse::<u64>().expect("a number")
    };
    assert_eq!(left("/test/pets"), left("/prod/pets") + 1);
}
