//! Dry runs of publishes that would be refused, and steps that find all as it should be: what they tell, and that nothing is
//! committed.

use crate::support::{Answer, Call, until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";
const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";

impl Plane {
    fn try_publish(&self, publication: &str, body: &Value) -> Answer {
        let call = self.call("POST", &format!("/api/v1/publications/{publication}"), body);
        call.header("Weir-Dry-Run", "true").make()
    }

    fn commits(&self) -> usize {
        let history = self.get("/api/v1/history?limit=1000").json();
        history["items"].as_array().expect("a list").len()
    }
}

/// The types of all that refuses a publish, without what is the same of all.
fn refused(answer: &Value) -> Vec<&str> {
    let all = answer["refused"].as_array().expect("a list");
    all.iter()
        .map(|it| {
            it["type"]
                .as_str()
                .expect("a type")
                .rsplit(':')
                .next()
                .unwrap_or_default()
        })
        .collect()
}

/// The document without an operation that callers may use.
fn without_post() -> Value {
    let mut document = petstore();
    let pets = document["paths"]["/pets"].as_object_mut().expect("operations");
    pets.remove("post");
    document
}

#[test]
fn a_dry_run_that_is_refused_tells_everything_that_refuses_it_and_what_would_change() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    plane.put("/api/v1/apis/cats", json!({})).expect(201);
    let cats = json!({"openapi": "3.1.0", "info": {"title": "Cats", "version": "1"},
        "paths": {"/v1/pets": {"get": {"operationId": "steal", "responses": {"200": {"description": "ok"}}}}}});
    plane
        .post("/api/v1/apis/cats/versions?version=1", cats)
        .expect(201);
    let other = json!({"runtime": {"base_path": "/", "backends": {"main": {"url": "http://127.0.0.1:9"}}}, "force": true});
    plane.post("/api/v1/publications/cats/1/test", other).expect(200);
    plane
        .put(VERSION, json!({"spec": without_post().to_string()}))
        .expect(200);
    let before = plane.commits();
    let answer = plane.try_publish("pets/1.0.0/test", &json!({}));
    assert_eq!(answer.header("weir-dry-run").as_deref(), Some("true"));
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("application/problem+json")
    );
    let problem = answer.expect(409).json();
    assert_eq!(problem["type"], "urn:weir:problem:breaking");
    assert_eq!(refused(&problem), ["breaking", "conflicts"]);
    assert_eq!(
        (&problem["refused"][0]["detail"], &problem["refused"][0]["status"]),
        (&problem["detail"], &json!(409))
    );
    let text = problem["text"].as_str().expect("a text");
    assert!(
        text.starts_with("pets/1.0.0/test r2\n") && text.contains("/pets") && text.contains("! "),
        "{text}"
    );
    assert_eq!(problem["diff"]["operations"][0]["method"], "POST");
    assert!(
        problem["diff"]["documents"]
            .as_array()
            .is_some_and(|it| !it.is_empty()),
        "{problem}"
    );
    assert_eq!(
        (&problem["commit"], &problem["forced"], &problem["breaking"]),
        (&Value::Null, &json!([]), &json!(true))
    );
    // The command line shows the same, and fails.
    let (code, stdout, stderr) = plane.api(&["publish", "pets", "1.0.0", "test", "--dry-run"]);
    assert_eq!((code, stdout.as_str()), (Some(1), text), "{stderr}");
    assert!(
        stderr.contains("breaking: ") && stderr.contains("conflicts: "),
        "{stderr}"
    );
    // Forced, it is what it was.
    let forced = plane
        .try_publish("pets/1.0.0/test", &json!({"force": true}))
        .expect(200)
        .json();
    assert_eq!((&forced["text"], forced.get("refused")), (&problem["text"], None));
    // One that is no dry run is refused by the first, and tells no more.
    let plain = plane.post(PUBLICATION, json!({})).expect(409).json();
    assert_eq!(
        (plain.get("refused"), plain.get("diff"), &plain["type"]),
        (None, None, &problem["type"])
    );
    assert_eq!(plane.commits(), before);
}

/// What cannot be rendered has no documents; what refused it before, and the operations, are told.
#[test]
fn a_dry_run_that_cannot_be_rendered_tells_its_operations() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane
        .put("/api/v1/environments/test", json!({"lint_blocks": "hint"}))
        .expect(200);
    let problem = plane
        .try_publish("pets/1.0.0/test", &json!({}))
        .expect(422)
        .json();
    let errors = problem["refused"][0]["errors"].as_array().expect("a list");
    assert!(
        !errors.is_empty() && problem["errors"] == problem["refused"][0]["errors"],
        "{problem}"
    );
    let details: Vec<&str> = problem["refused"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["detail"].as_str())
        .collect();
    assert!(
        details.len() == 2 && details[0].starts_with("lint: ") && details[1].starts_with("render: "),
        "{details:?}"
    );
    assert_eq!(problem["diff"]["documents"], json!([]));
    assert_eq!(problem["diff"]["operations"].as_array().map(Vec::len), Some(3));
    // Who asks for what is not there is told only that.
    let missing = plane
        .try_publish("pets/1.0.0/nowhere", &json!({}))
        .expect(404)
        .json();
    assert_eq!(missing.get("refused"), None);
}

#[test]
fn steps_that_change_nothing_are_no_commits_and_say_so() {
    let plane = Plane::start();
    plane.version(&petstore());
    let server = upstream("pets");
    plane.publish("test", server);
    let step = |name: &str, body: Value| {
        plane
            .post(&format!("{PUBLICATION}/{name}"), body)
            .expect(200)
            .json()
    };
    let before = plane.commits();
    let enabled = step("enable", json!({"note": "again"}));
    assert_eq!(
        (&enabled["unchanged"], &enabled["state"]),
        (&json!(true), &json!("live"))
    );
    let back = step("rollback", json!({"revision": 1}));
    assert_eq!(
        (&back["unchanged"], &back["commit"], &back["revision"]),
        (&json!(true), &Value::Null, &json!(1))
    );
    assert!(
        back["text"]
            .as_str()
            .is_some_and(|it| it.contains("nothing changes")),
        "{back}"
    );
    for body in [json!({"note": "again"}), json!({"runtime": runtime(server)})] {
        let again = plane.post(PUBLICATION, body).expect(200).json();
        assert_eq!(
            (&again["unchanged"], &again["commit"]),
            (&json!(true), &Value::Null),
            "{again}"
        );
    }
    plane
        .post(&format!("{PUBLICATION}/canary/abort"), json!({}))
        .expect(409);
    assert_eq!(plane.commits(), before);
    assert_eq!(
        plane.get(PUBLICATION).json()["history"].as_array().map(Vec::len),
        Some(1)
    );
    let disabled = step("disable", json!({}));
    assert_eq!(
        (disabled.get("unchanged"), &disabled["state"]),
        (None, &json!("disabled"))
    );
    assert_eq!(plane.commits(), before + 1);
    // A rollback to the same revision that ends a canary changes something.
    step("enable", json!({}));
    let canary = json!({"revision": 1, "backends": {"main": {"url": "http://127.0.0.1:9"}}, "share": 100, "by": {"cookie": "sid"}});
    plane.put(&format!("{PUBLICATION}/canary"), canary).expect(200);
    let back = step("rollback", json!({"revision": 1}));
    assert!(
        back.get("unchanged").is_none() && back["commit"].is_u64(),
        "{back}"
    );
    let to_prod = json!({"to": "prod", "runtime": runtime(server)});
    assert_eq!(step("promote", to_prod.clone()).get("unchanged"), None);
    let before = plane.commits();
    assert_eq!(step("promote", to_prod)["unchanged"], true);
    assert_eq!(plane.commits(), before);
    // Tests that came since are run, though nothing would change.
    plane
        .put(
            &format!("{VERSION}/tests/closed"),
            json!({"request": {"path": "/pets"}, "expected": {"status": 401}}),
        )
        .expect(201);
    let failing = plane.post(PUBLICATION, json!({})).expect(409).json();
    assert_eq!(failing["type"], "urn:weir:problem:tests");
}

/// The gateway answers TRACE by itself: a finding says so, and no route is made.
#[test]
fn operations_that_no_gateway_serves_are_findings_and_no_routes() {
    let plane = Plane::start();
    let mut document = petstore();
    document["paths"]["/pets"]["trace"] =
        json!({"operationId": "tracePets", "responses": {"200": {"description": "ok"}}});
    let version = plane.version(&document);
    let findings = version["findings"].as_array().expect("a list");
    let found = findings
        .iter()
        .find(|it| it["rule"] == "weir-method-not-served")
        .expect("a finding");
    assert!(found["level"] == "warn" && found["line"].is_u64(), "{found}");
    let published = plane.publish("test", upstream("pets"));
    assert!(
        !published["diff"]["documents"].to_string().contains("TRACE"),
        "{published}"
    );
    until("it is served", || plane.status("/v1/pets", None) == Some(200));
    plane
        .put(&format!("{PUBLICATION}/deprecation"), json!({"since": 1}))
        .expect(200);
    let call = |method: &str| Call::new(method, &plane.weir.proxy(), "/v1/pets").make();
    until("it says that it ends", || {
        call("GET").header("deprecation").is_some()
    });
    // Before a route is looked for: what a route would say is not there.
    let answer = call("TRACE").expect(405);
    assert_eq!(answer.header("deprecation"), None, "{answer:?}");
}

/// What stands twice in a document is not lost without a word.
#[test]
fn names_that_stand_twice_in_a_document_are_findings_with_their_place() {
    let plane = Plane::start();
    let (json, yaml) = (
        "{\"openapi\": \"3.1.0\", \"info\": {\"title\": \"Pets\", \"version\": \"1\"},\n \"paths\": {\n  \"/a\": {}, \"/a\": {}}}",
        "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\npaths:\n  /a: {}\n  /b: {}\n  /a: {}\n",
    );
    for (version, text, place) in [("1", json, (3, 13)), ("2", yaml, (6, 3))] {
        let path = format!("/api/v1/apis/pets/versions?version={version}");
        let call = Call::new("POST", &plane.weir.console(), &path);
        let made = call.body(text).make().expect(201).json();
        let findings = made["findings"].as_array().expect("a list");
        let found: Vec<&Value> = findings.iter().filter(|it| it["rule"] == "parser").collect();
        assert_eq!(found.len(), 1, "{findings:?}");
        assert_eq!(
            (&found[0]["level"], &found[0]["line"], &found[0]["column"]),
            (&json!("error"), &json!(place.0), &json!(place.1))
        );
    }
    // It refuses a publish where errors do.
    plane
        .put("/api/v1/environments/test", json!({"lint_blocks": "error"}))
        .expect(200);
    let body = json!({"runtime": runtime(upstream("pets"))});
    let refused = plane.post("/api/v1/publications/pets/1/test", body).expect(422);
    assert!(refused.body.contains("(parser)"), "{refused:?}");
}
