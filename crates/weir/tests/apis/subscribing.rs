//! Plans, subscriptions and their keys, through a gateway.

use crate::support::{Call, until, upstream};
use crate::weir::Weir;
use crate::{Plane, petstore};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const PLAN: &str = "/api/v1/apis/pets/versions/1.0.0/plans/gold";

/// Pets, published with a plan, and an application.
fn offered(plan: Value) -> Plane {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.put(PLAN, plan).expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    until("a key is asked for", || {
        plane.status("/v1/pets", None) == Some(401)
    });
    plane
}

fn subscribe(plane: &Plane, plan: &str) -> Value {
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": plan});
    plane.post("/api/v1/subscriptions", wanted).expect(201).json()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer}: {value}"))
}

fn set(plane: &Plane, id: &str, body: Value) -> u16 {
    plane
        .post(&format!("/api/v1/subscriptions/{id}/state"), body)
        .status
}

/// 19, 20
#[test]
fn automatic_subscriptions_are_good_at_once_and_their_keys_are_nowhere() {
    let plane = offered(json!({"state": "published"}));
    let begun = Instant::now();
    let made = subscribe(&plane, "gold");
    let key = text(&made, "/credential/key").to_owned();
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let listed = plane
        .get(&format!(
            "/api/v1/subscriptions/{}/credentials",
            text(&made, "/id")
        ))
        .expect(200);
    assert!(
        !listed.body.contains(&key) && listed.body.contains(&key[..8]) && !listed.body.contains("\"hash\""),
        "{listed:?}"
    );
    assert!(files_with(plane._folder.path(), made["id"].as_str().expect("an id")) > 0);
    assert_eq!(files_with(plane._folder.path(), &key), 0, "the key is in a file");
}

/// In how many files below a folder a text is.
fn files_with(folder: &Path, text: &str) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let has_it = |entry: std::fs::DirEntry| match entry.file_type().expect("a file").is_dir() {
        true => files_with(&entry.path(), text),
        false => {
            let bytes = std::fs::read(entry.path()).expect("readable");
            usize::from(bytes.windows(text.len()).any(|it| it == text.as_bytes()))
        }
    };
    entries.map(has_it).sum()
}

/// 19
#[test]
fn manual_plans_wait_for_approval() {
    let plane = offered(json!({"state": "published", "validation": "manual"}));
    let made = subscribe(&plane, "gold");
    let id = text(&made, "/id").to_owned();
    assert_eq!(made["state"], "pending");
    plane
        .post(&format!("/api/v1/subscriptions/{id}/credentials"), json!({}))
        .expect(409);
    assert_eq!(plane.status("/v1/pets", None), Some(401));
    assert_eq!(set(&plane, &id, json!({"state": "accepted"})), 200);
    let key = plane
        .post(&format!("/api/v1/subscriptions/{id}/credentials"), json!({}))
        .expect(201)
        .json();
    until("the key is good", || {
        plane.status("/v1/pets", Some(text(&key, "/key"))) == Some(200)
    });
}

/// Of two keys, the one that was used says when, also if a gateway of its own took the call.
#[test]
fn keys_show_the_day_of_their_last_use() {
    let plane = offered(json!({"state": "published"}));
    let made = subscribe(&plane, "gold");
    let path = format!("/api/v1/subscriptions/{}/credentials", text(&made, "/id"));
    plane.post(&path, json!({})).expect(201);
    let control = format!("http://{}", plane.weir.console());
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--role",
        "gateway",
        "--control",
        &control,
        "--environment",
        "test",
    ];
    let gateway = Weir::start(folder.path(), &flags);
    let key = text(&made, "/credential/key");
    until("the gateway knows the key", || {
        let call = Call::get(&gateway.proxy(), "/v1/pets").header("X-API-Key", key);
        call.attempt().is_some_and(|it| it.status == 200)
    });
    let uses = || -> Vec<(String, Option<u64>)> {
        let listed = plane.get(&path).expect(200).json();
        let items = listed["items"].as_array().expect("a list").iter();
        items
            .map(|it| (text(it, "/id").to_owned(), it["last_used"].as_u64()))
            .collect()
    };
    let used = text(&made, "/credential/id").to_owned();
    let day = |it: &(String, Option<u64>)| it.1.is_some();
    until("it is told", || uses().iter().any(day));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs();
    for (id, at) in uses() {
        match id == used {
            true => assert!(
                at.is_some_and(|at| at.is_multiple_of(86_400) && now - at < 2 * 86_400),
                "{at:?}"
            ),
            false => assert_eq!(at, None, "the other one was not used"),
        }
    }
}

#[test]
fn a_plan_limits_single_operations() {
    let plane = offered(json!({
        "state": "published", "limits": [{"count": 1000, "per": "day"}],
        "operation_limits": {"getPet": [{"count": 2, "per": "day"}]},
    }));
    let made = subscribe(&plane, "gold");
    let key = text(&made, "/credential/key");
    until("the key is good", || {
        plane.status("/v1/pets", Some(key)) == Some(200)
    });
    let status = |path| plane.status(path, Some(key)).expect("an answer");
    let found = ["/v1/pets/1", "/v1/pets/2", "/v1/pets/3", "/v1/pets"].map(status);
    assert_eq!(found, [200, 200, 429, 200]);
}

/// 21
#[test]
fn rotation_overlaps_and_revocation_is_at_once() {
    let plane = offered(json!({"state": "published"}));
    let made = subscribe(&plane, "gold");
    let (id, old) = (
        text(&made, "/id").to_owned(),
        text(&made, "/credential/key").to_owned(),
    );
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let fresh = plane
        .post(&path, json!({"replaces": text(&made, "/credential/id")}))
        .expect(201)
        .json();
    let new = text(&fresh, "/key").to_owned();
    until("the new key is good", || {
        plane.status("/v1/pets", Some(&new)) == Some(200)
    });
    assert_eq!(plane.status("/v1/pets", Some(&old)), Some(200));
    plane
        .call(
            "DELETE",
            &format!("{path}/{}", text(&made, "/credential/id")),
            &json!({}),
        )
        .make()
        .expect(204);
    until("the old key is refused", || {
        plane.status("/v1/pets", Some(&old)) == Some(401)
    });
    assert_eq!(plane.status("/v1/pets", Some(&new)), Some(200));
}

/// 22, 23
#[test]
fn keys_open_their_api_only_and_a_pause_says_so() {
    let plane = offered(json!({"state": "published"}));
    plane.put("/api/v1/apis/cats", json!({})).expect(201);
    plane
        .post("/api/v1/apis/cats/versions?version=1", petstore())
        .expect(201);
    plane
        .put(
            "/api/v1/apis/cats/versions/1/plans/free",
            json!({"state": "published"}),
        )
        .expect(201);
    let runtime =
        json!({"base_path": "/cats", "backends": {"main": {"url": format!("http://{}", upstream("cats"))}}});
    plane
        .post("/api/v1/publications/cats/1/test", json!({"runtime": runtime}))
        .expect(200);
    let made = subscribe(&plane, "gold");
    let (id, key) = (
        text(&made, "/id").to_owned(),
        text(&made, "/credential/key").to_owned(),
    );
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    let other = plane.through("/cats/pets", Some(&key)).expect("an answer");
    assert!(
        other.status == 403 && other.body.contains("no subscription"),
        "{other:?}"
    );
    assert_eq!(set(&plane, &id, json!({"state": "paused"})), 200);
    until("calls are refused", || {
        plane.status("/v1/pets", Some(&key)) == Some(403)
    });
    assert!(
        plane
            .through("/v1/pets", Some(&key))
            .expect("an answer")
            .body
            .contains("paused")
    );
    assert_eq!(
        set(&plane, &id, json!({"state": "accepted", "side": "consumer"})),
        403
    );
    assert_eq!(set(&plane, &id, json!({"state": "accepted"})), 200);
    until("calls pass again", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
}

/// Each refusal of a plan has a type and a title of its own, for programs; the request log says the same.
#[test]
fn refusals_of_plans_have_types_of_their_own() {
    let plane = offered(json!({"state": "published", "operations": ["listPets"],
        "limits": [{"count": 2, "per": "day"}, {"count": 1000, "per": "second"}]}));
    let made = subscribe(&plane, "gold");
    let (id, key) = (text(&made, "/id"), text(&made, "/credential/key"));
    let refused = |path: &str| {
        let answer = plane.through(path, Some(key)).filter(|it| it.status >= 400)?;
        let problem = answer.json();
        let kind = text(&problem, "/type")
            .strip_prefix("urn:weir:problem:")?
            .to_owned();
        Some((answer.status, kind, text(&problem, "/title").to_owned()))
    };
    let expect = |path: &str, status: u16, kind: &str, title: &str| {
        let expected = Some((status, kind.to_owned(), title.to_owned()));
        until(kind, || refused(path) == expected);
    };
    expect("/v1/pets/1", 403, "not-in-plan", "Operation not in the plan");
    expect("/v1/pets", 429, "quota-spent", "Quota spent");
    for (body, kind, title) in [
        (
            json!({"state": "paused", "reason": "unpaid"}),
            "subscription-paused",
            "Subscription paused",
        ),
        (json!({"state": "accepted"}), "quota-spent", "Quota spent"),
        (
            json!({"state": "stopped", "side": "consumer"}),
            "subscription-stopped",
            "Subscription stopped",
        ),
        (json!({"state": "closed"}), "unauthenticated", "Unauthenticated"),
    ] {
        assert_eq!(set(&plane, id, body), 200);
        let status = match kind {
            "quota-spent" => 429,
            "unauthenticated" => 401,
            _ => 403,
        };
        expect("/v1/pets", status, kind, title);
    }
    let logged = || {
        let found = plane
            .get("/api/v1/analytics/calls?from=-5m&limit=1000")
            .expect(200)
            .json();
        let calls = found["calls"].as_array().cloned().unwrap_or_default();
        [
            "not_in_plan",
            "rate_limited",
            "subscription_paused",
            "subscription_stopped",
        ]
        .iter()
        .all(|wanted| calls.iter().any(|it| it["refusal"] == **wanted))
    };
    until("the log says it", logged);
    let by_subscription = json!({"metrics": ["calls", "refused"], "group_by": ["subscription"], "filter": {"application": "shop"}});
    let counted = || {
        plane
            .post("/api/v1/analytics/query", by_subscription.clone())
            .expect(200)
            .json()
    };
    until("its calls are counted", || {
        counted()["frames"][0]["total"]["refused"].as_f64() > Some(3.0)
    });
    assert_eq!(counted()["frames"][0]["group"]["subscription"], id);
    let unauthorized =
        json!({"metrics": ["calls"], "filter": {"status": 401, "service": ["test.pets.1.0.0.main"]}});
    let found = plane
        .post("/api/v1/analytics/query", unauthorized)
        .expect(200)
        .json();
    assert!(
        found["frames"][0]["total"]["calls"].as_f64() >= Some(1.0),
        "{found}"
    );
    let publication = "/api/v1/publications/pets/1.0.0/test";
    plane
        .put(&format!("{publication}/deprecation"), json!({}))
        .expect(200);
    plane
        .post(&format!("{publication}/retire"), json!({}))
        .expect(200);
    expect("/v1/pets", 410, "retired", "Retired");
}

/// A provider can pause what its consumer has stopped: it serves when both have taken that back.
#[test]
fn a_stopped_subscription_can_be_paused() {
    let plane = offered(json!({"state": "published"}));
    let made = subscribe(&plane, "gold");
    let (id, key) = (text(&made, "/id"), text(&made, "/credential/key"));
    let step = |body: Value| {
        let path = format!("/api/v1/subscriptions/{id}/state");
        plane.post(&path, body).expect(200).json()["state"].clone()
    };
    assert_eq!(step(json!({"state": "stopped", "side": "consumer"})), "stopped");
    assert_eq!(step(json!({"state": "paused", "reason": "unpaid"})), "paused");
    assert_eq!(step(json!({"state": "accepted", "side": "consumer"})), "paused");
    let known = plane
        .get(&format!("/api/v1/subscriptions/{id}"))
        .expect(200)
        .json();
    assert_eq!(
        (&known["state"], &known["reason"]),
        (&json!("paused"), &json!("unpaid"))
    );
    until("the pause is told", || {
        let answer = plane.through("/v1/pets", Some(key));
        answer.is_some_and(|it| it.status == 403 && it.body.contains("subscription-paused"))
    });
    assert_eq!(step(json!({"state": "accepted"})), "accepted");
    until("calls pass", || plane.status("/v1/pets", Some(key)) == Some(200));
}

#[test]
fn a_rejection_says_why() {
    let plane = offered(json!({"state": "published", "validation": "manual"}));
    let id = text(&subscribe(&plane, "gold"), "/id").to_owned();
    let path = format!("/api/v1/subscriptions/{id}/state");
    for body in [
        json!({"state": "rejected"}),
        json!({"state": "rejected", "reason": " "}),
    ] {
        let refused = plane.post(&path, body).expect(422).json();
        assert_eq!(refused["errors"][0]["path"], "reason", "{refused}");
    }
    let known = plane
        .get(&format!("/api/v1/subscriptions/{id}"))
        .expect(200)
        .json();
    assert_eq!(known["state"], "pending");
    plane
        .post(&path, json!({"state": "rejected", "reason": "no contract"}))
        .expect(200);
}

/// 12
#[test]
fn a_rollback_of_the_configuration_leaves_subscriptions_and_keys_alone() {
    let plane = offered(json!({"state": "published"}));
    let before = plane.get("/api/v1/history?limit=1").json()["items"][0]["revision"].clone();
    let kept = subscribe(&plane, "gold");
    let key = text(&kept, "/credential/key").to_owned();
    let (id, lost) = (
        text(&kept, "/id").to_owned(),
        plane
            .post(
                &format!("/api/v1/subscriptions/{}/credentials", text(&kept, "/id")),
                json!({}),
            )
            .expect(201)
            .json(),
    );
    let revoked = text(&lost, "/key").to_owned();
    until("both keys are good", || {
        [&key, &revoked]
            .iter()
            .all(|it| plane.status("/v1/pets", Some(it)) == Some(200))
    });
    let path = format!("/api/v1/subscriptions/{id}/credentials/{}", text(&lost, "/id"));
    plane.call("DELETE", &path, &json!({})).make().expect(204);
    let service = json!({"url": "http://127.0.0.1:1", "routes": [{"name": "r", "paths": ["/hand"]}]});
    plane.put("/api/v1/resources/services/hand", service).expect(201);
    until("the key is revoked", || {
        plane.status("/v1/pets", Some(&revoked)) == Some(401)
    });
    plane
        .post("/api/v1/rollback", json!({"revision": before}))
        .expect(200);
    until("what was made by hand is gone", || {
        plane.status("/hand", None) == Some(404)
    });
    assert_eq!(plane.status("/v1/pets", Some(&key)), Some(200));
    assert_eq!(plane.status("/v1/pets", Some(&revoked)), Some(401));
}

/// 24
#[test]
fn a_plan_that_closes_moves_its_subscriptions_in_one_commit() {
    let plane = offered(json!({"state": "published"}));
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/silver",
            json!({"state": "published", "limits": [{"count": 100000, "per": "month"}]}),
        )
        .expect(201);
    let made = subscribe(&plane, "gold");
    let key = text(&made, "/credential/key").to_owned();
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    let commits = |plane: &Plane| {
        plane.get("/api/v1/history?limit=1000").json()["items"]
            .as_array()
            .expect("a list")
            .len()
    };
    let before = commits(&plane);
    plane
        .post(
            &format!("{PLAN}/state"),
            json!({"state": "closed", "move_to": "silver"}),
        )
        .expect(200);
    assert_eq!(commits(&plane), before + 1);
    let limit = || {
        plane
            .through("/v1/pets", Some(&key))
            .map(|it| (it.status, it.header("ratelimit-limit")))
    };
    until("the other plan counts", || {
        limit() == Some((200, Some("100000".to_owned())))
    });
}

/// 25
#[test]
fn conditions_are_accepted_in_their_current_revision() {
    let plane = offered(json!({"state": "published", "conditions": "be kind"}));
    let wish = |revision: u32| json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold", "conditions_revision": revision});
    plane.post("/api/v1/subscriptions", wish(0)).expect(409);
    let first = plane.post("/api/v1/subscriptions", wish(1)).expect(201).json();
    plane
        .put(PLAN, json!({"state": "published", "conditions": "be very kind"}))
        .expect(200);
    plane.put("/api/v1/applications/other", json!({})).expect(201);
    let other = |revision: u32| json!({"application": "other", "publication": "pets/1.0.0/test", "plan": "gold", "conditions_revision": revision});
    plane.post("/api/v1/subscriptions", other(1)).expect(409);
    plane.post("/api/v1/subscriptions", other(2)).expect(201);
    let listed = plane.get("/api/v1/subscriptions").expect(200).json();
    let mut listed: Vec<(&str, &str, u64)> = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| {
            let revision = it["conditions_revision"].as_u64().expect("a number");
            (text(it, "/application"), text(it, "/state"), revision)
        })
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, [("other", "accepted", 2), ("shop", "accepted", 1)]);
    let key = text(&first, "/credential/key");
    until("the old one is as good as before", || {
        plane.status("/v1/pets", Some(key)) == Some(200)
    });
}
