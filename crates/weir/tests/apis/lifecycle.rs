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
    for (path, body, status, message) in [
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
        assert!(answer.body.contains(message), "{path}: {}", answer.body);
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
    let mut log = String::new();
    let mut buffer = [0; 65536];
    while !log.contains("\"revision\"") {
        let length = stream.read(&mut buffer).expect("a stream");
        log.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(
        log.contains("env/test/native/services/") && !log.contains("env/prod"),
        "{log}"
    );
    for secret in of_prod {
        assert!(!log.contains(&secret), "{secret}: {log}");
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
        let is_explained = |it: &Answer| {
            let by = "\"author\":\"anonymous\"";
            it.status == 412 && it.body.contains("at the same time") && it.body.contains(by)
        };
        assert!(answers.iter().any(|it| it.status == 200), "{answers:?}");
        assert!(
            answers.iter().all(|it| it.status == 200 || is_explained(it)),
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

thread_local!(static ROOT: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) });

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
    plans_are_for_who_may_publish(ask, owner);
}

/// Plans say who may call. What no caller gets yet, and words, are the owner's.
fn plans_are_for_who_may_publish(ask: &dyn Fn(&str, &str, &str, Value) -> Answer, owner: &str) {
    let path = |name: &str| format!("/api/v1/apis/pets/versions/1.0.0/plans/{name}");
    let plan = |security: &str, state: &str| json!({"security": security, "state": state});
    let as_root =
        |method: &str, path: &str, body: Value| ROOT.with(|it| ask(&it.borrow(), method, path, body));
    // The first one shuts out all who have no key, and another one opens all again.
    for (name, security) in [("gold", "key"), ("open", "keyless")] {
        let refused = ask(owner, "PUT", &path(name), plan(security, "published")).expect(403);
        assert!(
            refused.body.contains("protected") && refused.body.contains("staging"),
            "{refused:?}"
        );
        ask(owner, "PUT", &path(name), plan(security, "staging")).expect(201);
        let (state, published) = (format!("{}/state", path(name)), json!({"state": "published"}));
        ask(owner, "POST", &state, published.clone()).expect(403);
        as_root("POST", &state, published).expect(200);
        let mut described = plan(security, "published");
        described["description"] = "For everybody.".into();
        ask(owner, "PUT", &path(name), described).expect(200);
    }
    // The end of one is asked for as if it came at once.
    let state = format!("{}/state", path("gold"));
    let later = json!({"state": "closed", "at": 4_000_000_000_u64});
    ask(owner, "POST", &state, later.clone()).expect(403);
    as_root("POST", &state, later).expect(200);
}
