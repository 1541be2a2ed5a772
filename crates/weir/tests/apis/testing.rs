//! Tests of an API: kept with a version, run on demand, and run by every publish.

use crate::support::{Answer, until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};
use std::net::SocketAddr;

const TESTS: &str = "/api/v1/apis/pets/versions/1.0.0/tests";

fn keep(plane: &Plane, name: &str, test: Value) -> Answer {
    plane.put(&format!("{TESTS}/{name}"), test)
}

fn run(plane: &Plane, body: Value) -> Value {
    plane.post(&format!("{TESTS}/run"), body).expect(200).json()
}

/// The tests that fail, by name, with what differs.
fn failures(report: &Value) -> Vec<(String, Vec<String>)> {
    let results = report["results"].as_array().expect("a list").iter();
    let fields_of = |it: &Value| {
        let differences = it["differences"].as_array().expect("a list").iter();
        let fields = differences.map(|it| it["field"].as_str().unwrap_or_default().to_owned());
        (
            it["name"].as_str().unwrap_or_default().to_owned(),
            fields.collect(),
        )
    };
    results
        .filter(|it| it["passed"] == false)
        .map(fields_of)
        .collect()
}

/// Pets with a plan and a subscriber, not yet published.
fn with_plan() -> Plane {
    let plane = Plane::start();
    plane.version(&petstore());
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane
}

#[test]
fn tests_are_kept_and_run_against_a_draft_a_revision_and_what_is_published() {
    let plane = with_plan();
    let server = upstream("pets");
    let anonymous = json!({"request": {"path": "/pets"}, "expected": {"operation": "listPets", "consumer": "", "end": "answered", "status": 401, "plugin": "key-auth", "verdicts": {"key-auth": "refuses"}}});
    keep(&plane, "asks-for-a-key", anonymous.clone()).expect(201);
    keep(&plane, "asks-for-a-key", anonymous.clone()).expect(200);
    keep(&plane, "lost", json!({"request": {"method": "DELETE", "path": "/pets"}, "expected": {"operation": "", "status": 404}})).expect(201);
    keep(
        &plane,
        "subscribers",
        json!({"environments": ["test"], "request": {"path": "/pets/7?x=1", "application": "shop"},
            "expected": {"operation": "getPet", "application": "shop", "end": "forwarded", "target": server.to_string()}}),
    )
    .expect(201);
    let listed = plane.get(TESTS).expect(200).json();
    let names: Vec<&str> = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, ["asks-for-a-key", "lost", "subscribers"]);
    assert_eq!(
        plane.get(&format!("{TESTS}/lost")).expect(200).json()["expected"],
        json!({"operation": "", "status": 404})
    );

    // The draft, with the addresses that it would have. There is no subscriber yet.
    let draft = run(&plane, json!({"environment": "test", "runtime": runtime(server)}));
    assert_eq!(
        failures(&draft),
        [("subscribers".to_owned(), vec!["request.application".to_owned()])],
        "{draft:#}"
    );
    assert_eq!((&draft["passed"], &draft["failed"]), (&json!(2), &json!(1)));
    let only = run(
        &plane,
        json!({"environment": "test", "runtime": runtime(server), "names": ["lost"]}),
    );
    assert_eq!(only["results"].as_array().map(Vec::len), Some(1));
    // Another environment has no test that is for this one only.
    let prod = run(&plane, json!({"environment": "prod", "runtime": runtime(server)}));
    assert_eq!(
        (&prod["passed"], &prod["failed"]),
        (&json!(2), &json!(0)),
        "{prod:#}"
    );

    let path = "/api/v1/publications/pets/1.0.0/test";
    plane
        .post(
            path,
            json!({"runtime": runtime(server), "override_tests": "there is no subscriber yet"}),
        )
        .expect(200);
    let subscribed = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", subscribed).expect(201).json();
    let published = run(&plane, json!({"environment": "test", "published": true}));
    assert_eq!(
        (&published["passed"], &published["failed"]),
        (&json!(3), &json!(0)),
        "{published:#}"
    );
    let revision = run(&plane, json!({"environment": "test", "revision": 1}));
    assert_eq!(revision["passed"], 3);

    what_is_no_test_is_refused(&plane, made["credential"]["key"].as_str().expect("a key"));
    plane
        .call("DELETE", &format!("{TESTS}/lost"), &Value::Null)
        .make()
        .expect(204);
    plane.get(&format!("{TESTS}/lost")).expect(404);
}

fn what_is_no_test_is_refused(plane: &Plane, key: &str) {
    // A key is no part of a test, for it would stand in the store as plain text.
    let with_key = json!({"request": {"path": "/pets", "headers": {"X-API-Key": key}}, "expected": {"end": "forwarded"}});
    let refused = keep(plane, "with-a-key", with_key).expect(422);
    assert!(
        refused.body.contains("request.headers.X-API-Key") && !refused.body.contains(key),
        "{refused:?}"
    );
    for (name, request, place) in [
        (
            "in-a-form",
            json!({"path": "/pets", "method": "POST", "body": format!("a=1&key={key}")}),
            "request.body",
        ),
        (
            "in-json",
            json!({"path": "/pets", "body": format!("{{\"key\": \"{key}\"}}")}),
            "request.body",
        ),
        (
            "behind-a-word",
            json!({"path": "/pets", "headers": {"X-Auth": format!("Bearer {key}")}}),
            "request.headers.X-Auth",
        ),
        (
            "in-the-path",
            json!({"path": format!("/pets/{key}/x")}),
            "request.path",
        ),
    ] {
        let test = json!({"request": request, "expected": {"end": "forwarded"}});
        let refused = keep(plane, name, test).expect(422);
        assert!(
            refused.body.contains(place) && !refused.body.contains(key),
            "{name}: {refused:?}"
        );
    }
    for (name, test, place) in [
        (
            "too-large",
            json!({"request": {"path": "/pets", "body": "x".repeat(70_000)}, "expected": {"status": 200}}),
            "request.body",
        ),
        (
            "no-environment",
            json!({"environments": ["nowhere"], "request": {"path": "/pets"}, "expected": {"status": 200}}),
            "environments.0",
        ),
        ("no-path", json!({"expected": {"status": 200}}), "request.path"),
        (
            "no-expectation",
            json!({"request": {"path": "/pets"}}),
            "expected",
        ),
        (
            "lower",
            json!({"request": {"method": "get", "path": "/pets"}, "expected": {"status": 200}}),
            "request",
        ),
        (
            "unknown",
            json!({"request": {"path": "/pets"}, "expects": {}}),
            "expects",
        ),
    ] {
        let refused = keep(plane, name, test).expect(422);
        assert!(refused.body.contains(place), "{name}: {refused:?}");
    }
    plane
        .post(
            &format!("{TESTS}/run"),
            json!({"environment": "test", "published": true, "revision": 1}),
        )
        .expect(400);
    plane
        .post(
            &format!("{TESTS}/run"),
            json!({"environment": "test", "names": ["none"]}),
        )
        .expect(404);
}

#[test]
fn a_publish_runs_the_tests_and_is_stopped_by_one_that_fails() {
    let plane = with_plan();
    let server = upstream("pets");
    keep(
        &plane,
        "open",
        json!({"request": {"path": "/pets"}, "expected": {"operation": "listPets", "end": "forwarded"}}),
    )
    .expect(201);
    let path = "/api/v1/publications/pets/1.0.0/test";
    let before = plane.get("/api/v1/history?limit=1").json()["items"][0]["revision"].clone();
    let refused = plane
        .post(path, json!({"runtime": runtime(server), "force": true}))
        .expect(409)
        .json();
    assert_eq!(refused["type"], "urn:weir:problem:tests", "{refused:#}");
    assert_eq!(refused["errors"][0]["path"], "open");
    let detail = refused["detail"].as_str().expect("a text");
    assert!(
        detail.contains("open: end: expected 'forwarded', found 'answered' (the call carries no credential)"),
        "{detail}"
    );
    plane.get(path).expect(404);
    assert_eq!(
        plane.get("/api/v1/history?limit=1").json()["items"][0]["revision"],
        before,
        "nothing is committed"
    );
    let dry = plane
        .call("POST", path, &json!({"runtime": runtime(server)}))
        .header("Weir-Dry-Run", "true")
        .make();
    assert_eq!(dry.status, 409, "{dry:?}");

    let empty = plane
        .post(path, json!({"runtime": runtime(server), "override_tests": " "}))
        .expect(422);
    assert!(empty.body.contains("override_tests"), "{empty:?}");
    let done = plane
        .post(
            path,
            json!({"runtime": runtime(server), "override_tests": "the plan comes tomorrow"}),
        )
        .expect(200)
        .json();
    assert_eq!(
        (&done["tests"]["failed"], &done["forced"]),
        (
            &json!(1),
            &json!(["tests were overridden: the plan comes tomorrow"])
        ),
        "{done:#}"
    );
    let history = plane.get(path).json()["history"].clone();
    assert_eq!(
        history[0]["forced"],
        json!(["tests were overridden: the plan comes tomorrow"])
    );
    until("it is served", || plane.status("/v1/pets", None) == Some(401));
    of_promotions_and_rollbacks(&plane, server);
}

/// A promotion is stopped, and so is a draft that would break what a test keeps. A rollback is not.
fn of_promotions_and_rollbacks(plane: &Plane, server: SocketAddr) {
    let path = "/api/v1/publications/pets/1.0.0/test";
    let promote = plane
        .post(
            &format!("{path}/promote"),
            json!({"to": "prod", "runtime": runtime(server)}),
        )
        .expect(409)
        .json();
    assert_eq!(promote["type"], "urn:weir:problem:tests");
    keep(
        plane,
        "open",
        json!({"request": {"path": "/pets"}, "expected": {"operation": "listPets", "status": 401}}),
    )
    .expect(200);
    let mut changed = petstore();
    changed["paths"]["/pets"]["get"]["operationId"] = "allPets".into();
    plane.put("/api/v1/apis/pets/versions/1.0.0", changed).expect(200);
    let renamed = plane.post(path, json!({"force": true})).expect(409).json();
    assert!(
        renamed["detail"]
            .as_str()
            .is_some_and(|it| it.contains("operation: expected 'listPets', found 'allPets'")),
        "{renamed:#}"
    );
    plane
        .post(path, json!({"force": true, "override_tests": "renamed"}))
        .expect(200);
    // A rollback is not stopped.
    keep(
        plane,
        "renamed",
        json!({"request": {"path": "/pets"}, "expected": {"operation": "allPets"}}),
    )
    .expect(201);
    let back = plane
        .post(&format!("{path}/rollback"), json!({}))
        .expect(200)
        .json();
    assert_eq!(
        (&back["revision"], &back["tests"]["failed"]),
        (&json!(1), &json!(1)),
        "{back:#}"
    );
}

#[test]
fn tests_run_from_a_build_server() {
    let plane = with_plan();
    let server = upstream("pets");
    keep(
        &plane,
        "asks",
        json!({"request": {"path": "/pets"}, "expected": {"status": 401}}),
    )
    .expect(201);
    keep(
        &plane,
        "opens",
        json!({"request": {"path": "/pets"}, "expected": {"end": "forwarded"}}),
    )
    .expect(201);
    let file = plane.file("runtime.json", &runtime(server));
    let file = file.to_str().expect("a text");
    let test =
        |more: &[&str]| plane.api(&[&["test", "pets", "1.0.0", "test", "--runtime", file], more].concat());
    let (code, stdout, stderr) = test(&[]);
    assert_eq!(code, Some(1), "{stdout} {stderr}");
    assert_eq!(
        stdout,
        "ok   asks: GET http://localhost/v1/pets\n\
         FAIL opens: GET http://localhost/v1/pets\n\
         \x20    end: expected 'forwarded', found 'answered' (the call carries no credential)\n\
         1 passed, 1 failed in pets/1.0.0/test\n"
    );
    let (code, stdout, _) = test(&["--only", "asks", "--output", "json"]);
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &report["passed"]), (Some(0), &json!(1)));
    let (code, stdout, _) = test(&["--output", "junit"]);
    assert!(
        code == Some(1) && stdout.contains("<testsuite name=\"pets/1.0.0/test\" tests=\"2\" failures=\"1\""),
        "{stdout}"
    );
    assert_eq!(plane.api(&["test", "pets", "1.0.0", "none"]).0, Some(1));
    let publish = ["publish", "pets", "1.0.0", "test", "--runtime", file];
    let (code, _, stderr) = plane.api(&publish);
    assert!(
        code == Some(1) && stderr.contains("opens: end: expected 'forwarded'"),
        "{code:?} {stderr}"
    );
    let (code, _, stderr) = plane.api(&[&publish[..], &["--override-tests", "on purpose"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(
        plane
            .api(&["test", "pets", "1.0.0", "test", "--published", "--only", "asks"])
            .0,
        Some(0)
    );
}
