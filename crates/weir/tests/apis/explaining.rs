//! What would happen to a call: `POST /api/v1/explain` and `weir explain --control`.

use crate::support::{until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

fn explain(plane: &Plane, body: Value) -> Value {
    plane.post("/api/v1/explain", body).expect(200).json()
}

fn verdicts(explained: &Value) -> Vec<(&str, &str)> {
    let plugins = explained["plugins"].as_array().expect("a list");
    plugins
        .iter()
        .map(|it| {
            (
                it["plugin"]["name"].as_str().unwrap_or("-"),
                it["verdict"]["verdict"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

/// Pets with a plan, and a subscriber: the subscription's id, and its key.
fn subscribed() -> (Plane, String, String) {
    let plane = Plane::start();
    let plans = "/api/v1/apis/pets/versions/1.0.0/plans/gold";
    plane.version(&petstore());
    plane
        .put(
            plans,
            json!({"state": "published", "limits": [{"count": 5, "per": "month"}]}),
        )
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    let subscribed = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", subscribed).expect(201).json();
    let key = made["credential"]["key"].as_str().expect("a key").to_owned();

    let id = made["id"].as_str().expect("an id").to_owned();
    (plane, id, key)
}

/// 50
#[test]
fn a_refused_call_is_explained_by_its_plan() {
    let (plane, id, key) = subscribed();
    let none = explain(&plane, json!({"url": "http://localhost/v1/pets"}));
    assert_eq!(
        (&none["end"]["status"], &none["plans"][0]["verdict"]),
        (&json!(401), &json!("no-token")),
        "{none:#}"
    );
    assert_eq!(none["publication"], "pets/1.0.0/test");
    assert_eq!(verdicts(&none)[0], ("key-auth", "refuses"));

    let wrong = explain(
        &plane,
        json!({"url": "http://localhost/v1/pets", "headers": {"X-API-Key": "wrong"}}),
    );
    assert_eq!(wrong["plans"][0]["verdict"], "invalid-token", "{wrong:#}");

    let good = explain(
        &plane,
        json!({"url": "http://localhost/v1/pets", "headers": {"X-API-Key": key}}),
    );
    assert_eq!(
        (&good["end"]["kind"], &good["plans"][0]["verdict"]),
        (&json!("forwarded"), &json!("good")),
        "{good:#}"
    );
    assert_eq!(good["consumer"], format!("sub.{id}"));
    assert!(good.to_string().contains("counters are not checked"), "{good:#}");
    // It has counted nothing and called nothing: the whole limit is left.
    until("it is served", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });

    // No route.
    let lost = explain(
        &plane,
        json!({"method": "DELETE", "url": "http://localhost/v1/pets"}),
    );
    assert_eq!(
        (&lost["route"], &lost["answer"]["status"]),
        (&Value::Null, &json!(404)),
        "{lost:#}"
    );
    assert!(
        lost["others"][0]["reason"][0]
            .as_str()
            .is_some_and(|it| it.contains("method")),
        "{lost:#}"
    );

    let by_command = plane.weir.ask(
        None,
        &[
            "explain",
            "--control",
            &format!("http://{}", plane.weir.console()),
            "--environment",
            "test",
            "http://localhost/v1/pets",
        ],
    );
    let stdout = String::from_utf8_lossy(&by_command.stdout).into_owned();
    assert!(
        stdout.contains("refuses this call with 401: the call carries no credential"),
        "{stdout} {by_command:?}"
    );
}

/// 22
#[test]
fn keys_of_others_and_paused_subscriptions_are_explained() {
    let (plane, id, key) = subscribed();
    plane.put("/api/v1/apis/cats", json!({})).expect(201);
    plane
        .post("/api/v1/apis/cats/versions?version=1", petstore())
        .expect(201);
    plane
        .put(
            "/api/v1/apis/cats/versions/1/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    let mut there = runtime(upstream("cats"));
    there["base_path"] = "/cats".into();
    plane
        .post("/api/v1/publications/cats/1/test", json!({"runtime": there}))
        .expect(200);
    until("cats are served", || {
        plane.status("/cats/pets", None) == Some(401)
    });
    let refused = plane.through("/cats/pets", Some(&key)).expect("an answer");
    assert!(
        refused.status == 403 && refused.body.contains("no subscription"),
        "{refused:?}"
    );
    let other = explain(
        &plane,
        json!({"url": "http://localhost/cats/pets", "headers": {"X-API-Key": key}}),
    );
    assert_eq!(
        (&other["end"]["status"], &other["plans"][0]["verdict"]),
        (&json!(403), &json!("no-subscription")),
        "{other:#}"
    );

    plane
        .post(
            &format!("/api/v1/subscriptions/{id}/state"),
            json!({"state": "paused", "reason": "unpaid"}),
        )
        .expect(200);
    let paused = explain(
        &plane,
        json!({"url": "http://localhost/v1/pets", "consumer": format!("sub.{id}")}),
    );
    assert_eq!(
        (&paused["end"]["status"], &paused["plans"][0]["verdict"]),
        (&json!(403), &json!("paused")),
        "{paused:#}"
    );
    assert!(
        paused["plans"][0]["reason"]
            .as_str()
            .is_some_and(|it| it.contains("unpaid"))
    );
}

#[test]
fn a_draft_documents_and_the_past_are_explained_without_being_served() {
    let plane = Plane::start();
    plane.version(&petstore());
    let call = json!({"url": "http://localhost/v1/pets"});
    let with = |more: Value| {
        let mut body = call.clone();
        body.as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        body
    };
    let revision = explain(&plane, call.clone())["revision"]
        .as_u64()
        .expect("a revision");
    assert_eq!(explain(&plane, call.clone())["answer"]["status"], 404);
    let draft = explain(
        &plane,
        with(
            json!({"environment": "test", "draft": {"api": "pets", "version": "1.0.0",
            "runtime": {"base_path": "/v1", "backends": {"main": {"url": "http://127.0.0.1:9"}}}}}),
        ),
    );
    assert_eq!(
        draft["route"]["name"], "test.pets.1.0.0.main.listpets",
        "{draft:#}"
    );
    assert_eq!(draft["revision"], revision, "nothing was written");
    let documents = explain(
        &plane,
        with(
            json!({"documents": {"native/services/s": {"name": "s", "url": "http://127.0.0.1:9",
            "routes": [{"name": "r", "paths": ["/v1"]}]}}}),
        ),
    );
    assert_eq!(documents["route"]["name"], "r", "{documents:#}");
    for path in ["explain", "explain/changes"] {
        let body = match path {
            "explain" => with(json!({"environment": "nowhere"})),
            _ => json!({"environment": "nowhere", "documents": {}}),
        };
        let missing = plane.post(&format!("/api/v1/{path}"), body).expect(404).json();
        assert_eq!(missing["detail"], "the environment 'nowhere' does not exist");
    }
    let file = explain(
        &plane,
        with(
            json!({"configuration": "_format_version: '3.0'\nservices:\n- name: s\n  url: http://127.0.0.1:9\n  routes:\n  - name: k\n    paths: [/v1]\n"}),
        ),
    );
    assert_eq!(
        (&file["route"]["name"], &file["route"]["dialect"]),
        (&json!("k"), &json!("kong")),
        "{file:#}"
    );
    plane.publish("test", upstream("pets"));
    assert_eq!(
        explain(&plane, call.clone())["route"]["name"],
        "test.pets.1.0.0.main.listpets"
    );
    assert_eq!(
        explain(&plane, with(json!({"revision": revision})))["answer"]["status"],
        404
    );
    plane
        .post("/api/v1/explain", json!({"url": "ftp://x/"}))
        .expect(422);
    plane
        .post("/api/v1/explain", with(json!({"revision": 999_999})))
        .expect(404);
    plane
        .post("/api/v1/explain", with(json!({"configuration": "a: ["})))
        .expect(422);
}

/// Who serves nothing that is published says so, and does not say 404 as if it had looked.
#[test]
fn environments_that_are_not_served_are_named() {
    let plane = Plane::with(&["--role", "control"]);
    plane.version(&petstore());
    plane.publish("prod", upstream("pets"));
    let call = json!({"url": "http://localhost/v1/pets"});
    let explained = explain(&plane, call.clone());
    let note = explained["note"].as_str().unwrap_or_default();
    assert!(
        note.contains("set 'environment' to one of: prod, test"),
        "{explained:#}"
    );
    let named = explain(
        &plane,
        json!({"url": "http://localhost/v1/pets", "environment": "prod"}),
    );
    assert_eq!(named["publication"], "pets/1.0.0/prod", "{named:#}");
    assert_eq!(named.get("note"), None, "{named:#}");

    let url = format!("http://{}", plane.weir.console());
    let ask = |more: &[&str]| {
        let call = ["explain", "--control", &url, "GET http://localhost/v1/pets"];
        let output = plane.weir.ask(None, &[&call[..], more].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = ask(&["--environment", "nope"]);
    assert!(
        code == Some(2) && stderr.contains("the environment 'nope' does not exist: there are prod, test"),
        "{code:?} {stdout} {stderr}"
    );
    let (code, stdout, stderr) = ask(&["--environment", "prod"]);
    assert!(
        code == Some(0) && stdout.contains("Route prod.pets.1.0.0.main.listpets"),
        "{code:?} {stdout} {stderr}"
    );
    let (code, _, errors) = ask(&[]);
    assert!(
        code == Some(0) && errors.contains("--environment: prod, test"),
        "{code:?} {errors}"
    );
}
