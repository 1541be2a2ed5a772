//! Versions and publications: what is posted, published, changed, promoted, rolled back, deprecated.

use crate::support::{Answer, Call, status_of, until, upstream};
use crate::weir::Weir;
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";

/// 1
#[test]
fn a_document_that_is_posted_lists_operations_and_findings_and_serves_nothing() {
    let plane = Plane::start();
    let version = plane.version(&petstore());
    let ids: Vec<&str> = version["operations"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(ids, ["listPets", "addPet", "getPet"]);
    let findings = version["findings"].as_array().expect("a list");
    assert!(
        findings
            .iter()
            .any(|it| it["rule"] == "operation-tags" && it["line"] == 1 && it["column"].as_u64() > Some(1)),
        "{findings:?}"
    );
    assert_eq!(plane.status("/v1/pets", None), Some(404));
    let broken = plane
        .post("/api/v1/apis/pets/versions?version=2", json!("openapi: ["))
        .expect(422);
    assert!(broken.body.contains("1:1"), "{broken:?}");
}

/// A document or a call that cannot be used is answered with a problem that has its line and column.
#[test]
fn bad_documents_and_calls_are_answered_with_problems() {
    let plane = Plane::start();
    let versions = "/api/v1/apis/pets/versions";
    let form = "application/x-www-form-urlencoded";
    for (path, body, status, told) in [
        (
            versions,
            "{\"hello\": 1}",
            422,
            "1:1: error: expected an OpenAPI document",
        ),
        (versions, "a: [", 422, "not YAML"),
        (
            versions,
            "openapi: 3.1.0\npaths:\n  /a: {$ref: '#/paths/~1b'}\n  /b: {$ref: '#/paths/~1a'}\n",
            422,
            "3:8: error",
        ),
        ("/api/v1/explain", "{\"url\": ", 400, "not JSON"),
        ("/api/v1/explain", "{}", 422, "missing field `url`"),
        ("/api/v1/explain", "{\"url\": \"http://a/b\"}", 200, "\"end\""),
    ] {
        let call = Call::new("POST", &plane.weir.console(), path).header("Content-Type", form);
        let answer = call.body(body).make().expect(status);
        assert!(answer.body.contains(told), "{path}: {}", answer.body);
        let is_problem = answer
            .header("content-type")
            .is_some_and(|it| it == "application/problem+json");
        assert_eq!(is_problem, status != 200, "{path} {status}");
    }
    let answer = plane
        .get("/api/v1/apis/pets/versions/1.0.0/diff?from=no")
        .expect(400);
    assert!(
        answer.body.contains("\"type\":\"urn:weir:problem:bad-request\""),
        "{answer:?}"
    );
}

/// 2, 16
#[test]
fn gateways_serve_their_environment_and_receive_no_other() {
    let plane = Plane::start();
    let control = format!("http://{}", plane.weir.console());
    let folder = tempfile::tempdir().expect("a folder");
    let gateway = |name: &str| {
        Weir::start(
            folder.path(),
            &["--role", "gateway", "--control", &control, "--environment", name],
        )
    };
    let (test, prod) = (gateway("test"), gateway("prod"));
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    for weir in [&plane.weir, &test] {
        until("the test gateways serve it", || {
            status_of(&weir.proxy(), "/v1/pets") == Some(200)
        });
    }
    let rollout = || plane.get(PUBLICATION).json()["rollout"].clone();
    until("both gateways of the environment say so", || {
        let rollout = rollout();
        (&rollout["served"], &rollout["gateways"]) == (&json!(true), &json!(2))
    });
    assert_eq!(status_of(&prod.proxy(), "/v1/pets"), Some(404));
    assert_eq!(status_of(&test.proxy(), "/v1/pets/7"), Some(200));
    assert_eq!(status_of(&test.proxy(), "/v1/cats"), Some(404));
    plane.publish("prod", upstream("pets"));
    until("production serves it", || {
        status_of(&prod.proxy(), "/v1/pets") == Some(200)
    });
    let of_prod = keys_of_production(&plane);
    // The control plane's answer to a gateway of one environment.
    use std::io::{Read, Write};
    let console = plane.weir.console();
    let mut stream = std::net::TcpStream::connect(&console).expect("connected");
    let head = format!("GET /api/v1/sync?environment=test HTTP/1.1\r\nHost: {console}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut told = String::new();
    let mut buffer = [0; 65536];
    while !told.contains("\"revision\"") {
        let length = stream.read(&mut buffer).expect("a stream");
        told.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(
        told.contains("env/test/native/services/") && !told.contains("env/prod"),
        "{told}"
    );
    for secret in of_prod {
        assert!(!told.contains(&secret), "{secret}: {told}");
    }
}

/// Gives production a subscriber and a secret. Returns what others must not see of them: the hash of the key, the names
/// of the subscription, and the secret.
fn keys_of_production(plane: &Plane) -> Vec<String> {
    const SECRET: &str = "a-password-of-production";
    let mut runtime = runtime(upstream("pets"));
    runtime["backends"]["main"]["url"] = json!("http://127.0.0.1:9/${PASSWORD}");
    runtime["variables"] = json!({"PASSWORD": SECRET});
    plane.post(PROD, json!({"runtime": runtime})).expect(200);
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/prod", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let text = |pointer: &str| made.pointer(pointer).and_then(Value::as_str).expect("a text");
    let (id, key) = (text("/id"), text("/credential/key"));
    vec![
        weir_apis::hash::of_bytes(key.as_bytes()),
        format!("sub.{id}"),
        SECRET.to_owned(),
    ]
}

/// 3
#[test]
fn a_thousand_operations_are_one_commit() {
    let plane = Plane::start();
    let paths: serde_json::Map<String, Value> = (0..1000)
        .map(|it| (format!("/p{it}"), json!({"get": {"operationId": format!("op{it}"), "responses": {"200": {"description": "ok"}}}})))
        .collect();
    plane.version(&json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "paths": paths}));
    let commits = |plane: &Plane| {
        plane.get("/api/v1/history?limit=1000").json()["items"]
            .as_array()
            .expect("a list")
            .len()
    };
    let before = commits(&plane);
    plane.publish("test", upstream("pets"));
    assert_eq!(commits(&plane), before + 1);
    until("the last one is served", || {
        plane.status("/v1/p999", None) == Some(200)
    });
    assert_eq!(plane.status("/v1/p0", None), Some(200));
}

/// 5
#[test]
fn paths_of_others_are_refused_with_their_names() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    plane.put("/api/v1/apis/cats", json!({})).expect(201);
    plane
        .post("/api/v1/apis/cats/versions?version=1", petstore())
        .expect(201);
    let body = |force: bool| json!({"runtime": runtime(upstream("cats")), "force": force});
    let refused = plane
        .post("/api/v1/publications/cats/1/test", body(false))
        .expect(409);
    assert!(
        refused.body.contains("publications/pets/1.0.0/test") && refused.body.contains("GET /v1/pets"),
        "{refused:?}"
    );
    let forced = plane
        .post("/api/v1/publications/cats/1/test", body(true))
        .expect(200)
        .json();
    assert_ne!(forced["forced"], json!([]));
    let history = plane.get("/api/v1/publications/cats/1/test").json()["history"].clone();
    assert!(
        history[0]["forced"]
            .to_string()
            .contains("publications/pets/1.0.0/test"),
        "{history:#}"
    );
}

/// 6, 7
#[test]
fn a_document_that_is_uploaded_again_is_merged_and_compared() {
    let plane = Plane::start();
    plane.version(&petstore());
    let settings = json!({
        "components": [
            {"name": "main", "backend": "main"},
            {"name": "slow", "backend": "main", "retries": 2, "plugins": [{"key-auth": {}}]},
        ],
        "operations": {
            "addPet": {"component": "slow", "plugins": [{"cors": {}}]},
            "listPets": {"plugins": [{"request-id": {}}]},
        },
    });
    let before = plane
        .put("/api/v1/apis/pets/versions/1.0.0", settings)
        .expect(200)
        .json();
    let plan = "/api/v1/apis/pets/versions/1.0.0/plans/writers";
    let limits =
        json!({"state": "published", "operations": ["addPet"], "limits": [{"count": 7, "per": "day"}]});
    plane.put(plan, limits).expect(201);
    let planned = plane.get(plan).expect(200).json();
    let mut changed = petstore();
    changed["paths"]["/pets"]["get"]["parameters"][0]["required"] = true.into();
    let answer = plane
        .put("/api/v1/apis/pets/versions/1.0.0", changed.clone())
        .expect(200)
        .json();
    let operations = answer["diff"]["operations"].as_array().expect("a list");
    assert_eq!(operations.len(), 1, "{operations:?}");
    assert_eq!(operations[0]["changes"][0]["breaking"], true);
    for kept in ["components", "chain"] {
        assert_eq!(answer["draft"][kept], before["draft"][kept], "{kept}");
    }
    let (added, listed) = (
        &answer["draft"]["operations"]["addPet"],
        &answer["draft"]["operations"]["listPets"],
    );
    assert_eq!(
        (&added["component"], &added["plugins"], &listed["plugins"]),
        (
            &json!("slow"),
            &json!([{"cors": {}}]),
            &json!([{"request-id": {}}])
        )
    );
    assert_eq!(plane.get(plan).expect(200).json(), planned, "limits stay");
}

/// 7, 18
#[test]
fn changes_that_break_callers_need_force_and_a_dry_run_changes_nothing() {
    let plane = Plane::start();
    plane.version(&petstore());
    let server = upstream("pets");
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/free",
            json!({"state": "published"}),
        )
        .expect(201);
    plane.publish("test", server);
    let mut smaller = petstore();
    smaller["paths"]
        .as_object_mut()
        .expect("a map")
        .remove("/pets/{id}");
    plane.put("/api/v1/apis/pets/versions/1.0.0", smaller).expect(200);
    let refused = plane.post(PUBLICATION, json!({})).expect(409);
    assert!(refused.body.contains("GET /pets/{id}"), "{refused:?}");
    let dry = |_: u32| {
        let call = plane
            .call("POST", PUBLICATION, &json!({"force": true}))
            .header("Weir-Dry-Run", "true");
        call.make().expect(200).body
    };
    assert_eq!(dry(1), dry(2));
    // The third difference: what plans open and close.
    assert!(
        dry(3).contains("\"plans\":[{\"plan\":\"free\",\"is_new\":false"),
        "{}",
        dry(3)
    );
    assert!(
        dry(3).contains("~ plan free (key): closes getPet\\n"),
        "{}",
        dry(3)
    );
    assert_eq!(plane.get(PUBLICATION).json()["revision"], 1);
    let done = plane
        .post(PUBLICATION, json!({"force": true, "note": "no calls"}))
        .expect(200)
        .json();
    assert_eq!(
        (done["revision"].as_u64(), done["breaking"].as_bool()),
        (Some(2), Some(true))
    );
    until("it is gone", || plane.status("/v1/pets/7", None) == Some(404));
    until("the rest is there", || {
        plane.status("/v1/pets", None) == Some(401)
    });
}

/// Of two concurrent publishers, one wins, and the answer to the other names the winner. A publisher who has looked at
/// an earlier state gets the same answer.
#[test]
fn of_two_publishers_one_is_refused_with_the_name_of_the_other() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let read = plane.get(PUBLICATION);
    let seen = read.header("etag").expect("a version");
    let (mut wins, mut refusals) = (0, 0);
    while refusals == 0 {
        let bodies = ["one", "other"].map(|note| {
            let more = json!({"base_path": format!("/{note}{wins}"), "backends": runtime(upstream("pets"))["backends"]});
            json!({"runtime": more, "note": note})
        });
        let console = plane.weir.console();
        let both = bodies.map(|body| {
            let call = Call::new("POST", &console, PUBLICATION).body(&body.to_string());
            std::thread::spawn(move || call.make())
        });
        let answers = both.map(|it| it.join().expect("an answer"));
        let is_told = |it: &Answer| {
            let by = "\"author\":\"anonymous\"";
            it.status == 412 && it.body.contains("at the same time") && it.body.contains(by)
        };
        assert!(answers.iter().any(|it| it.status == 200), "{answers:?}");
        assert!(
            answers.iter().all(|it| it.status == 200 || is_told(it)),
            "{answers:?}"
        );
        wins += 1;
        refusals += answers.iter().filter(|it| it.status != 200).count();
        assert!(wins < 200, "they are never at once");
    }
    let late = plane
        .call("POST", PUBLICATION, &json!({"note": "late"}))
        .header("If-Match", &seen);
    let refused = late.make().expect(412);
    assert!(
        refused.body.contains("If-Match") && refused.body.contains("changed-meanwhile"),
        "{refused:?}"
    );
    let seen = plane.get(PUBLICATION).header("etag").expect("a version");
    let again = plane
        .call("POST", PUBLICATION, &json!({"note": "again"}))
        .header("If-Match", &seen);
    again.make().expect(200);
}

/// 10, 11
#[test]
fn promotion_and_rollback_keep_the_runtime_of_their_environment() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("test"));
    plane.publish("prod", upstream("prod"));
    let before = plane.get("/api/v1/publications/pets/1.0.0/prod").json();
    let mut larger = petstore();
    larger["paths"]["/dogs"] =
        json!({"get": {"operationId": "listDogs", "responses": {"200": {"description": "ok"}}}});
    plane.put("/api/v1/apis/pets/versions/1.0.0", larger).expect(200);
    plane.post(PUBLICATION, json!({})).expect(200);
    until("the new one is served", || {
        plane.status("/v1/dogs", None) == Some(200)
    });
    plane
        .post(&format!("{PUBLICATION}/promote"), json!({"to": "prod"}))
        .expect(200);
    let (test, prod) = (
        plane.get(PUBLICATION).json(),
        plane.get("/api/v1/publications/pets/1.0.0/prod").json(),
    );
    assert_eq!(test["hash"], prod["hash"]);
    assert_eq!(prod["runtime"], before["runtime"]);
    let back = plane
        .post(&format!("{PUBLICATION}/rollback"), json!({"note": "dogs bite"}))
        .expect(200)
        .json();
    assert_eq!(back["revision"], 1);
    until("calls are as before", || {
        plane.status("/v1/dogs", None) == Some(404)
    });
    assert_eq!(plane.through("/v1/pets", None).expect("an answer").body, "test");
    let after = plane.get(PUBLICATION).json();
    assert_eq!(after["runtime"], test["runtime"], "the runtime is kept");
    let history = after["history"].clone();
    let last = history.as_array().and_then(|it| it.last()).expect("a step");
    assert_eq!(
        (&last["action"], &last["note"], &last["by"]),
        (&json!("rollback"), &json!("dogs bite"), &json!("anonymous"))
    );
}

/// 11
#[test]
fn a_rollback_reaches_the_first_of_many_revisions() {
    const REVISIONS: u32 = 12;
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let publish = |number: u32| {
        let mut larger = petstore();
        larger["paths"][format!("/dogs{number}")] =
            json!({"get": {"operationId": "listDogs", "responses": {"200": {"description": "ok"}}}});
        plane.put("/api/v1/apis/pets/versions/1.0.0", larger).expect(200);
        plane.post(PUBLICATION, json!({"force": true})).expect(200).json()
    };
    for number in 2..=REVISIONS {
        assert_eq!(publish(number)["revision"], number);
    }
    let last = format!("/v1/dogs{REVISIONS}");
    until("the last one is served", || {
        plane.status(&last, None) == Some(200)
    });
    let rollback = |revision: u32| {
        let path = format!("{PUBLICATION}/rollback");
        let done = plane.post(&path, json!({"revision": revision})).expect(200);
        assert_eq!(done.json()["revision"], revision);
    };
    rollback(1);
    until("calls are as they were first", || {
        plane.status(&last, None) == Some(404)
    });
    assert_eq!(plane.status("/v1/pets", None), Some(200));
    // And forward again, to one in the middle.
    rollback(7);
    until("the one in the middle is served", || {
        plane.status("/v1/dogs7", None) == Some(200)
    });
}

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
    let told = |method: &str, path: &str| {
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
        assert_eq!(told(method, path), expected, "{method} {path}");
    }
    // A route of somebody else for these paths goes before it.
    let own =
        json!({"url": format!("http://{}", upstream("rest")), "routes": [{"name": "rest", "paths": ["/*"]}]});
    plane.put("/api/v1/resources/services/rest", own).expect(201);
    until("it takes the rest", || {
        told("GET", "/v1/cats") == (200, false) && told("GET", "/cats") == (200, false)
    });
    assert_eq!(told("GET", "/v1/pets"), (401, true));
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

/// A version goes when nothing of it is published and nobody subscribes to it; its API goes after it.
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
    let delete = |path: &str| plane.call("DELETE", path, &Value::Null).make();
    let refused = delete("/api/v1/apis/pets").expect(409);
    assert!(refused.body.contains("versions/pets/1.0.0"), "{refused:?}");
    let refused = delete(VERSION).expect(409);
    assert!(refused.body.contains("pets/1.0.0/test"), "{refused:?}");
    delete(PUBLICATION).expect(204);
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
    for (body, status, told) in [
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
        assert!(answer.body.contains(told), "{answer:?}");
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

/// 15
#[test]
fn a_document_that_a_publication_owns_is_not_written_by_hand() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    for (kind, name) in [
        ("services", "test.pets.1.0.0.main"),
        ("routes", "test.pets.1.0.0.main.listpets"),
    ] {
        let body = json!({"name": name, "url": "http://127.0.0.1:1"});
        let refused = plane
            .put(&format!("/api/v1/resources/{kind}/{name}"), body)
            .expect(409);
        assert!(
            refused.body.contains("publications/pets/1.0.0/test"),
            "{refused:?}"
        );
    }
}

/// 8, 9
#[test]
fn approvals_are_for_one_hash_and_not_for_ones_own() {
    let plane = Plane::start();
    plane
        .put("/api/v1/environments/prod", json!({"protected": true}))
        .expect(200);
    plane.version(&petstore());
    let user = |name: &str, role: &str| {
        let path = format!("/api/v1/users/{name}");
        let call = plane.call("POST", &path, &json!({"rights": [{"role": role}]}));
        call.header(
            "Authorization",
            &format!("Bearer {}", ROOT.with(|it| it.borrow().clone())),
        )
        .make()
        .expect(201)
        .json()["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    thread_local!(static ROOT: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) });
    let root = user("root", "admin");
    ROOT.with(|it| it.replace(root));
    let (owner, approver) = (user("ann", "api-owner"), user("bob", "approver"));
    let ask = |token: &str, method: &str, path: &str, body: Value| {
        plane
            .call(method, path, &body)
            .header("Authorization", &format!("Bearer {token}"))
            .make()
    };
    let with = |approval: &Value| json!({"runtime": runtime(upstream("pets")), "approval": approval});
    let refused = ask(
        &owner,
        "POST",
        PROD,
        json!({"runtime": runtime(upstream("pets"))}),
    )
    .expect(403);
    assert!(refused.body.contains("protected"), "{refused:?}");
    let approval = ask(
        &owner,
        "POST",
        "/api/v1/approvals",
        json!({"publication": "pets/1.0.0/prod"}),
    )
    .expect(201)
    .json();
    let decision = format!(
        "/api/v1/approvals/{}/decision",
        approval["id"].as_str().expect("an id")
    );
    ask(&owner, "POST", &decision, json!({"state": "granted"})).expect(403);
    ask(&approver, "POST", &decision, json!({"state": "granted"})).expect(200);
    ask(
        &owner,
        "PUT",
        "/api/v1/apis/pets/versions/1.0.0",
        json!({"chain": [{"cors": {}}]}),
    )
    .expect(200);
    let outdated = ask(&owner, "POST", PROD, with(&approval["id"])).expect(409);
    assert!(outdated.body.contains("outdated"), "{outdated:?}");
    ask(
        &owner,
        "PUT",
        "/api/v1/apis/pets/versions/1.0.0",
        json!({"chain": []}),
    )
    .expect(200);
    // The draft holds again what it held. It has no approval since.
    ask(&owner, "POST", PROD, with(&approval["id"])).expect(409);
    let approval = ask(
        &owner,
        "POST",
        "/api/v1/approvals",
        json!({"publication": "pets/1.0.0/prod"}),
    )
    .expect(201)
    .json();
    let decision = format!(
        "/api/v1/approvals/{}/decision",
        approval["id"].as_str().expect("an id")
    );
    ask(&approver, "POST", &decision, json!({"state": "granted"})).expect(200);
    ask(&owner, "POST", PROD, with(&approval["id"])).expect(200);
    only_what_was_approved(&ask, (&owner, &approver), &approval, with(&approval["id"]));
}

const PROD: &str = "/api/v1/publications/pets/1.0.0/prod";

/// Only what was approved may be published: not another runtime, not another revision, not its end.
fn only_what_was_approved(
    ask: &dyn Fn(&str, &str, &str, Value) -> Answer,
    (owner, approver): (&str, &str),
    approval: &Value,
    mut elsewhere: Value,
) {
    let operations = approval["diff"]["operations"].as_array().expect("a list");
    assert_eq!(
        operations.len(),
        3,
        "the approver sees what it changes: {approval:#}"
    );
    elsewhere["runtime"]["hosts"] = json!(["elsewhere.test"]);
    let other = ask(owner, "POST", PROD, elsewhere.clone()).expect(409);
    assert!(other.body.contains("runtime"), "{other:?}");
    let wanted = json!({"publication": "pets/1.0.0/prod", "revision": 1, "runtime": elsewhere["runtime"]});
    let second = ask(owner, "POST", "/api/v1/approvals", wanted).expect(201).json();
    elsewhere["approval"] = second["id"].clone();
    elsewhere["revision"] = 1.into();
    ask(owner, "POST", PROD, elsewhere.clone()).expect(409);
    let decision = format!(
        "/api/v1/approvals/{}/decision",
        second["id"].as_str().expect("an id")
    );
    ask(approver, "POST", &decision, json!({"state": "granted"})).expect(200);
    ask(owner, "POST", PROD, elsewhere).expect(200);
    let canary = json!({"revision": 2, "share": 10_000, "by": "address"});
    for (method, path, body) in [
        ("PUT", format!("{PROD}/canary"), canary),
        ("PUT", format!("{PROD}/deprecation"), json!({"since": 1})),
        ("POST", format!("{PROD}/disable"), json!({})),
        ("DELETE", PROD.to_owned(), json!({})),
    ] {
        let refused = ask(owner, method, &path, body).expect(403);
        assert!(refused.body.contains("protected"), "{refused:?}");
    }
}
