//! What happens to a publication and its version later: deprecation, switching off, other ids of operations, canaries,
//! removal.

use crate::support::{Answer, Call, until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};
use std::net::SocketAddr;

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";

/// 13
#[test]
fn deprecation_reaches_every_answer_and_the_end_is_410() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    let late = plane
        .put(
            &format!("{PUBLICATION}/deprecation"),
            json!({"since": 200, "sunset": 100}),
        )
        .expect(422);
    assert!(late.body.contains("sunset"));
    let wanted = json!({"since": 1_750_000_000, "sunset": 4_000_000_000_u64, "successor": "https://api.test/v2", "enforce": true});
    plane
        .put(&format!("{PUBLICATION}/deprecation"), wanted)
        .expect(200);
    let header = |name: &str| plane.through("/v1/pets", None).and_then(|it| it.header(name));
    until("a refusal tells it", || {
        header("deprecation").as_deref() == Some("@1750000000")
    });
    assert_eq!(plane.status("/v1/pets", None), Some(401));
    assert_eq!(header("sunset").as_deref(), Some("Tue, 02 Oct 2096 07:06:40 GMT"));
    // So do unknown paths and wrong methods below the base path, and nothing beside it.
    let headers_of = |method: &str, path: &str| {
        let answer = Call::new(method, &plane.weir.proxy(), path).make();
        (answer.status, answer.header("deprecation").is_some())
    };
    for (method, path, expected) in [
        ("GET", "/v1/cats", (404, true)),
        ("DELETE", "/v1/pets", (404, true)),
        ("GET", "/v1", (404, true)),
        ("GET", "/v10", (404, false)),
        ("GET", "/cats", (404, false)),
    ] {
        assert_eq!(headers_of(method, path), expected, "{method} {path}");
        // Tools get the same word as where nothing is deprecated.
        let refused = Call::new(method, &plane.weir.proxy(), path).make().json();
        assert_eq!(refused["type"], "urn:weir:problem:no-route", "{method} {path}");
    }
    // A route of somebody else for these paths goes before it.
    let own =
        json!({"url": format!("http://{}", upstream("rest")), "routes": [{"name": "rest", "paths": ["/*"]}]});
    plane.put("/api/v1/resources/services/rest", own).expect(201);
    until("it takes the rest", || {
        headers_of("GET", "/v1/cats") == (200, false) && headers_of("GET", "/cats") == (200, false)
    });
    assert_eq!(headers_of("GET", "/v1/pets"), (401, true));
    plane
        .call("DELETE", "/api/v1/resources/services/rest", &Value::Null)
        .make()
        .expect(204);
    let over = json!({"since": 1_700_000_000, "sunset": 1_750_000_000, "successor": "https://api.test/v2", "enforce": true});
    plane.put(&format!("{PUBLICATION}/deprecation"), over).expect(200);
    until("it is over", || plane.status("/v1/pets", None) == Some(410));
    let answer = plane.through("/v1/pets", None).expect("an answer");
    assert!(answer.body.contains("https://api.test/v2"), "{answer:?}");
    assert!(
        answer
            .header("link")
            .is_some_and(|it| it.contains("successor-version")),
        "{answer:?}"
    );
    plane
        .post(&format!("{PUBLICATION}/undeprecate"), json!({}))
        .expect(200);
    until("it is served again", || {
        plane.status("/v1/pets", None) == Some(401)
    });
}

/// The defect: who retired a version in one environment kept everybody from changing it in the others.
#[test]
fn a_version_goes_on_as_long_as_it_is_published_somewhere() {
    const PROD: &str = "/api/v1/publications/pets/1.0.0/prod";
    const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("test"));
    plane.publish("prod", upstream("prod"));
    plane
        .put(&format!("{PUBLICATION}/deprecation"), json!({}))
        .expect(200);
    let retire = |of: &str| plane.post(&format!("{of}/retire"), json!({}));
    retire(PUBLICATION).expect(200);
    until("it is over there", || plane.status("/v1/pets", None) == Some(410));
    plane.post(PUBLICATION, json!({})).expect(409);
    plane
        .post(&format!("{PUBLICATION}/undeprecate"), json!({}))
        .expect(409);
    assert_eq!(plane.get(VERSION).json()["line"], "deprecated");
    plane.put(VERSION, json!({"display_name": "Pets"})).expect(200);
    plane.put(&format!("{PROD}/deprecation"), json!({})).expect(200);
    plane.post(&format!("{PROD}/undeprecate"), json!({})).expect(200);
    plane.put(&format!("{PROD}/deprecation"), json!({})).expect(200);
    retire(PROD).expect(200);
    assert_eq!(plane.get(VERSION).json()["line"], "retired");
}

/// A version goes when nothing of it is published and no one subscribes to it; its API goes after it.
#[test]
fn versions_and_apis_are_removed_when_nothing_needs_them() {
    const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    plane
        .put(&format!("{VERSION}/plans/gold"), json!({"state": "published"}))
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let subscription = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let delete = |path: &str| plane.call("DELETE", path, &json!({})).make();
    let refused = delete("/api/v1/apis/pets").expect(409);
    assert!(refused.body.contains("versions/pets/1.0.0"), "{refused:?}");
    let refused = delete(VERSION).expect(409);
    assert!(refused.body.contains("pets/1.0.0/test"), "{refused:?}");
    let force = json!({"force": true});
    plane.call("DELETE", PUBLICATION, &force).make().expect(204);
    let refused = delete(VERSION).expect(409);
    assert!(refused.body.contains("1 subscriptions"), "{refused:?}");
    let id = subscription["id"].as_str().expect("an id");
    plane
        .post(
            &format!("/api/v1/subscriptions/{id}/state"),
            json!({"state": "closed"}),
        )
        .expect(200);
    delete(VERSION).expect(204);
    delete(VERSION).expect(404);
    plane.get(&format!("{VERSION}/plans/gold")).expect(404);
    delete("/api/v1/apis/pets").expect(204);
}

/// What was switched off stays off through a publish, which says so.
#[test]
fn a_publish_does_not_switch_on_what_is_disabled() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let is = |status| plane.status("/v1/pets", None) == Some(status);
    until("it is served", || is(200));
    plane
        .post(&format!("{PUBLICATION}/disable"), json!({}))
        .expect(200);
    until("it is switched off", || is(404));
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0",
            json!({"chain": [{"cors": {}}]}),
        )
        .expect(200);
    let published = plane.post(PUBLICATION, json!({})).expect(200).json();
    assert_eq!(
        (&published["state"], &published["revision"]),
        (&json!("disabled"), &json!(2))
    );
    assert!(
        published["text"]
            .as_str()
            .is_some_and(|it| it.contains("disabled")),
        "{published:#}"
    );
    assert!(is(404));
    plane
        .post(&format!("{PUBLICATION}/enable"), json!({}))
        .expect(200);
    until("it is served again", || is(200));
}

/// APIs of one version with these paths.
struct Apis {
    plane: Plane,
    server: SocketAddr,
}

impl Apis {
    fn start() -> Self {
        Self {
            plane: Plane::start(),
            server: upstream("pets"),
        }
    }

    fn spec(paths: &[&str]) -> Value {
        let of = |path: &&str| {
            let operation = json!({"get": {"responses": {"200": {"description": "ok"}}}});
            ((*path).to_owned(), operation)
        };
        let paths: serde_json::Map<String, Value> = paths.iter().map(of).collect();
        json!({"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": paths})
    }

    fn make(&self, api: &str, paths: &[&str]) {
        self.plane
            .put(&format!("/api/v1/apis/{api}"), json!({}))
            .expect(201);
        let versions = format!("/api/v1/apis/{api}/versions?version=1");
        let spec = json!({"spec": Self::spec(paths)});
        self.plane.post(&versions, spec).expect(201);
    }

    /// Gives an API other paths in a revision of its own.
    fn revise(&self, api: &str, paths: &[&str]) {
        let version = format!("/api/v1/apis/{api}/versions/1");
        let spec = json!({"spec": Self::spec(paths).to_string()});
        self.plane.put(&version, spec).expect(200);
        self.plane
            .post(&format!("{version}/revisions"), json!({}))
            .expect(201);
    }

    fn publish(&self, api: &str) -> Answer {
        let wanted = json!({"runtime": runtime(self.server)});
        self.plane
            .post(&format!("/api/v1/publications/{api}/1/test"), wanted)
    }
}

/// The step is refused for calls of another publication, unless it is forced, and then notes them.
fn expect_conflict(step: impl Fn(Value) -> Answer, of: &str) {
    let tells = |it: &Value| it.to_string().contains(of);
    let refused = step(json!({})).expect(409).json();
    assert_eq!(refused["type"], "urn:weir:problem:conflicts", "{refused:#}");
    assert!(tells(&refused["detail"]), "{refused:#}");
    let done = step(json!({"force": true})).expect(200).json();
    let last = done["history"].as_array().and_then(|it| it.last()).cloned();
    assert!(tells(&last.unwrap_or_default()["forced"]), "{done:#}");
}

/// A step that brings routes back takes no calls that another publication has taken meanwhile.
#[test]
fn enabling_takes_no_calls_of_others() {
    let apis = Apis::start();
    apis.make("old", &["/x"]);
    apis.publish("old").expect(200);
    let step = |name: &str, body: Value| {
        apis.plane
            .post(&format!("/api/v1/publications/old/1/test/{name}"), body)
    };
    step("disable", json!({})).expect(200);
    apis.make("new", &["/x"]);
    apis.publish("new").expect(200);
    expect_conflict(|body| step("enable", body), "new/1/test");
    // What it was forced for does not refuse it again.
    step("disable", json!({})).expect(200);
    step("enable", json!({})).expect(200);
}

/// The routes of a canary have a condition, and were not looked at.
#[test]
fn a_canary_takes_no_calls_of_others_and_others_take_none_of_it() {
    let apis = Apis::start();
    apis.make("shop", &["/shop/{item}"]);
    apis.publish("shop").expect(200);
    apis.make("toys", &["/toys/{item}"]);
    apis.publish("toys").expect(200);
    apis.revise("shop", &["/shop/{item}", "/toys/{name}"]);
    let canary = |more: Value| {
        let mut body = json!({"revision": 2, "share": 10, "by": "address"});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        apis.plane.put("/api/v1/publications/shop/1/test/canary", body)
    };
    expect_conflict(canary, "toys/1/test");
    // A publish sees the canary that runs, and calls of which only some are common.
    apis.make("cars", &["/shop/cars"]);
    let refused = apis.publish("cars").expect(409).json();
    assert!(
        refused["detail"].to_string().contains("GET /v1/shop/cars"),
        "{refused:#}"
    );
    apis.revise("shop", &["/shop/{item}", "/bikes"]);
    canary(json!({"revision": 3})).expect(200);
    apis.make("bikes", &["/bikes"]);
    let refused = apis.publish("bikes").expect(409).json();
    assert!(
        refused["detail"].to_string().contains("shop/1/test"),
        "{refused:#}"
    );
}

/// A document that is uploaded again may give an operation another id. Plans and products open it where it is published
/// under the former one, where it is published under the new one, and after a rollback.
#[test]
fn operations_with_other_ids_stay_open() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let plan = json!({"state": "published", "operations": ["listPets"]});
    plane
        .put("/api/v1/apis/pets/versions/1.0.0/plans/gold", plan)
        .expect(201);
    let product = json!({"state": "published", "publications": {"pets/1.0.0/test": ["listPets"]}});
    plane.put("/api/v1/products/bundle", product).expect(201);
    plane
        .put("/api/v1/products/bundle/plans/all", json!({"state": "published"}))
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    let subscribed = |wanted: Value| {
        let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
        made["credential"]["key"].as_str().expect("a key").to_owned()
    };
    let keys = [
        subscribed(json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"})),
        subscribed(json!({"application": "shop", "product": "bundle", "plan": "all"})),
    ];
    let are = |expected: u16, path: &str| {
        keys.iter()
            .all(|key| plane.status(path, Some(key)) == Some(expected))
    };
    until("both keys open the list", || {
        are(200, "/v1/pets") && are(403, "/v1/pets/7")
    });
    let mut document = petstore();
    document["paths"]["/pets"]["get"]["operationId"] = "everyPet".into();
    plane
        .put("/api/v1/apis/pets/versions/1.0.0", json!({"spec": document}))
        .expect(200);
    let plan = plane
        .get("/api/v1/apis/pets/versions/1.0.0/plans/gold")
        .expect(200)
        .json();
    assert_eq!(plan["operations"], json!(["everyPet"]));
    // Anything that renders the publication again, and what is published stays as it is.
    let rendered = |mark: &str| {
        let chain = json!([{"response-rewrite": {"headers": [{"set": {"X-Mark": mark}}]}}]);
        plane
            .put("/api/v1/environments/test", json!({"chain": chain}))
            .expect(200);
        until("it is rendered", || {
            let answer = plane.through("/v1/pets", Some(&keys[0]));
            answer.and_then(|it| it.header("x-mark")).as_deref() == Some(mark)
        });
        assert!(are(200, "/v1/pets") && are(403, "/v1/pets/7"), "{mark}");
    };
    rendered("draft");
    let published = plane.post(PUBLICATION, json!({})).expect(200).json();
    assert_eq!(published["diff"]["plans"], json!([]), "{published:#}");
    rendered("published");
    plane
        .post(&format!("{PUBLICATION}/rollback"), json!({}))
        .expect(200);
    rendered("back");
}

/// 14
#[test]
fn a_canary_takes_its_share_and_keeps_callers_on_their_side() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let edit = json!({"chain": [{"response-rewrite": {"headers": [{"set": {"X-Side": "new"}}]}}]});
    plane.put("/api/v1/apis/pets/versions/1.0.0", edit).expect(200);
    plane
        .post("/api/v1/apis/pets/versions/1.0.0/revisions", json!({}))
        .expect(201);
    plane
        .put(
            &format!("{PUBLICATION}/canary"),
            json!({"revision": 2, "share": 1000, "by": {"cookie": "sid"}}),
        )
        .expect(200);
    until("it is served", || plane.status("/v1/pets", None) == Some(200));
    let side = |cookie: &str| {
        let call = Call::get(&plane.weir.proxy(), "/v1/pets").header("Cookie", &format!("sid={cookie}"));
        call.make().expect(200).header("x-side").is_some()
    };
    let some = |count: u32| (0..count).filter(|it| side(&format!("caller-{it}"))).count();
    until("some are on the new side", || some(100) > 0);
    let share = some(1000);
    assert!((70..=130).contains(&share), "{share} of 1000");
    let one = (0..100)
        .find(|it| side(&format!("caller-{it}")))
        .expect("one on the new side");
    assert!((0..20).all(|_| side(&format!("caller-{one}"))));
    // Analytics tell the two revisions apart, and name operations as the document does.
    let counted = |dimension: &str| {
        let asked = json!({"metrics": ["calls"], "group_by": [dimension], "filter": {"api": "pets"}});
        let answer = plane.post("/api/v1/analytics/query", asked).expect(200).json();
        let frames = answer["frames"].as_array().cloned().unwrap_or_default();
        let of = |it: &Value| {
            let name = it["group"][dimension].as_str().unwrap_or_default().to_owned();
            Some((name, it["total"]["calls"].as_f64()?))
        };
        frames
            .iter()
            .filter_map(of)
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    until("the calls are counted", || {
        counted("revision")
            .get("2")
            .is_some_and(|new| *new >= share as f64 + 20.0)
    });
    let (revisions, operations) = (counted("revision"), counted("operation"));
    assert_eq!(
        revisions.keys().map(String::as_str).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert!(revisions["1"] > revisions["2"], "{revisions:?}");
    assert_eq!(
        operations.keys().map(String::as_str).collect::<Vec<_>>(),
        ["listPets"]
    );
    plane
        .post(&format!("{PUBLICATION}/canary/abort"), json!({}))
        .expect(200);
    until("all are on the old side", || some(100) == 0);
}

#[test]
fn a_canary_of_a_backend_takes_its_share_of_the_same_revision() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("old"));
    let canary = |body: &Value| plane.put(&format!("{PUBLICATION}/canary"), body.clone());
    let next = json!({"main": {"url": format!("http://{}", upstream("next"))}});
    let by = json!({"cookie": "sid"});
    for (body, status, message) in [
        (json!({"share": 1000, "by": by}), 422, "revision"),
        (
            json!({"backends": {"other": {"url": "http://a"}}, "share": 1000, "by": by}),
            422,
            "no component has a backend 'other'",
        ),
        (
            json!({"backends": next, "share": 1000, "by": by}),
            200,
            "\"revision\":1",
        ),
    ] {
        let answer = canary(&body).expect(status);
        assert!(answer.body.contains(message), "{answer:?}");
    }
    until("it is served", || plane.status("/v1/pets", None) == Some(200));
    let is_next = |number: u32| {
        let call =
            Call::get(&plane.weir.proxy(), "/v1/pets").header("Cookie", &format!("sid=caller-{number}"));
        call.make().expect(200).body == "next"
    };
    let some = |count: u32| (0..count).filter(|it| is_next(*it)).count();
    until("some are on the new side", || some(100) > 0);
    let share = some(1000);
    assert!((70..=130).contains(&share), "{share} of 1000");
    plane
        .post(&format!("{PUBLICATION}/canary/abort"), json!({}))
        .expect(200);
    until("all are on the old side", || some(100) == 0);
}

/// A deprecation that is written again, with a link more, keeps the day that callers have been told.
#[test]
fn a_deprecation_written_again_keeps_its_day() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let path = format!("{PUBLICATION}/deprecation");
    plane.put(&path, json!({"since": 1_700_000_000})).expect(200);
    let again = plane.put(&path, json!({"link": "/news"})).expect(200).json();
    assert_eq!(again["deprecation"]["since"], 1_700_000_000, "{again:#}");
    let named = plane
        .put(&path, json!({"since": 1_700_000_009}))
        .expect(200)
        .json();
    assert_eq!(named["deprecation"]["since"], 1_700_000_009, "{named:#}");
}
