//! Writes that no publish could serve, or that mean something else than they say: they are refused at once, with the place.

use crate::approving::Users;
use crate::support::{Call, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";
const PLAN: &str = "/api/v1/apis/pets/versions/1.0.0/plans/gold";

/// The places of a refusal.
fn places(answer: &crate::support::Answer) -> Vec<String> {
    let errors = answer.json()["errors"].as_array().cloned().unwrap_or_default();
    let place = |it: &Value| it["path"].as_str().unwrap_or_default().to_owned();
    errors.iter().map(place).collect()
}

#[test]
fn environments_name_plugins_that_there_are_and_addresses() {
    let plane = Plane::start();
    for (body, expected) in [
        (
            json!({"base_urls": ["https://a.example.com", "not url"]}),
            "base_urls[1]",
        ),
        (json!({"base_urls": ["https://ü.de"]}), "base_urls[0]"),
        (
            json!({"chain": [{"cors": {}}, {"no-such-plugin": {}}]}),
            "chain[1]",
        ),
        (
            json!({"chain": [{"rate-limit": {"limits": 1}}]}),
            "chain[0].rate-limit",
        ),
        (
            json!({"chain": [{"cors": {"no_such_field": 1}}]}),
            "chain[0].cors",
        ),
        (json!({"chain": [{"use": "no-such-id"}]}), "chain[0]"),
        (json!({"chain": [7]}), "chain[0]"),
    ] {
        let refused = plane.put("/api/v1/environments/next", body.clone()).expect(422);
        let found = places(&refused);
        assert!(
            found.iter().any(|it| it.starts_with(expected)),
            "{body}: {refused:?}"
        );
        assert!(!refused.body.contains("weir.chains-that"), "{refused:?}");
    }
    let good = json!({"chain": [{"cors": {}}], "base_urls": ["https://api.example.com/shop", "http://127.0.0.1:8000"]});
    plane.put("/api/v1/environments/next", good.clone()).expect(201);
    plane.put("/api/v1/environments/next", good).expect(200);
    plane
        .get("/api/v1/resources/services/weir.chains-that-are-tried")
        .expect(404);
}

#[test]
fn drafts_name_plugins_that_there_are() {
    const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
    let plane = Plane::start();
    let bad = json!({"spec": petstore(), "chain": [{"nope": {}}]});
    let refused = plane
        .post("/api/v1/apis/pets/versions?version=1.0.0", bad)
        .expect(422);
    assert!(places(&refused)[0].starts_with("chain[0]"), "{refused:?}");
    plane.get(VERSION).expect(404);
    plane.version(&petstore());
    for (body, expected) in [
        (json!({"chain": [{"cors": {}}, {"nope": {}}]}), "chain[1]"),
        (
            json!({"chain": [{"rate-limit": {"limits": 1}}]}),
            "chain[0].rate-limit",
        ),
        (
            json!({"components": [{"name": "main", "backend": "main"},
                {"name": "more", "backend": "more", "plugins": [{"cors": {"no_such_field": 1}}]}]}),
            "components[1].plugins[0].cors",
        ),
        (
            json!({"operations": {"listPets": {"plugins": [{"cors": {}}, {"nope": {}}]}}}),
            "operations.listPets.plugins[1]",
        ),
    ] {
        let refused = plane.put(VERSION, body.clone()).expect(422);
        let found = places(&refused);
        assert!(
            found.iter().any(|it| it.starts_with(expected)),
            "{body}: {refused:?}"
        );
        assert!(!refused.body.contains("weir.chains-that"), "{refused:?}");
    }
    let draft = plane.get(VERSION).expect(200).json();
    assert_eq!(
        draft["draft"]["chain"],
        Value::Null,
        "nothing was stored: {draft:#}"
    );
    let good = json!({"chain": [{"cors": {}}], "operations": {"listPets": {"plugins": [{"cors": {}}]}}});
    plane.put(VERSION, good).expect(200);
    // Another environment may have this plugin: the publish says whether this one has it.
    let shared = json!({"chain": [{"use": "limits-of-production"}]});
    plane.put(VERSION, shared).expect(200);
}

/// The defect: who may write one API reached secrets, files and subscribers of others by its plugins.
#[test]
fn the_owner_of_one_api_uses_nothing_of_others() {
    const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
    let plane = Plane::start();
    plane.version(&petstore());
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let max = people.add(
        "max",
        json!([{"role": "api-owner", "api": "pets"}, {"role": "write"}]),
    );
    for (step, is_maxs) in [
        (json!({"use": "corp"}), true),
        (
            json!({"request-rewrite": {"headers": {"set": {"X-Home": "$env://HOME"}}}}),
            true,
        ),
        (json!({"proxy-cache": {"disk": {"path": "/tmp/x"}}}), true),
        (json!({"logger": {"target": {"file": {"path": "a.log"}}}}), true),
        (json!({"key-auth": {"identity": {"anonymous": "sub.s"}}}), false),
        (json!({"use": "test.b.1.plan.gold"}), false),
    ] {
        for body in [
            json!({"chain": [step]}),
            json!({"operations": {"listPets": {"plugins": [step]}}}),
            json!({"components": [{"name": "main", "backend": "main", "plugins": [step]}]}),
        ] {
            let refused = people.ask(&ann, "PUT", VERSION, body.clone()).expect(403);
            assert!(refused.body.contains("[0]."), "{refused:?}");
            let answer = people.ask(&max, "PUT", VERSION, body);
            assert_eq!(answer.status != 403, is_maxs, "{answer:?}");
        }
    }
    let plain = json!({"chain": ["request-id"]});
    people.ask(&max, "PUT", VERSION, plain).expect(422);
}

#[test]
fn a_runtime_means_what_it_says() {
    let plane = Plane::start();
    plane.version(&petstore());
    let server = upstream("pets");
    let with = |fields: Value| {
        let mut runtime = runtime(server);
        for (name, value) in fields.as_object().expect("fields") {
            runtime[name] = value.clone();
        }
        json!({"runtime": runtime})
    };
    let backend = json!({"url": format!("http://{server}")});
    for (fields, expected) in [
        (
            json!({"backends": {"main": backend, "mian": backend}}),
            "runtime.backends.mian",
        ),
        (json!({"base_path": "/x/{tenant}"}), "runtime.base_path"),
        (json!({"base_path": "/%2e%2E"}), "runtime.base_path"),
        (json!({"hosts": ["a.test", "*"]}), "runtime.hosts[1]"),
    ] {
        let refused = plane.post(PUBLICATION, with(fields.clone())).expect(422);
        assert_eq!(places(&refused), [expected], "{fields}: {refused:?}");
    }
    // A backend of the draft may have its address before the draft is published.
    let components = json!([{"name": "main", "backend": "main"}, {"name": "more", "backend": "more"}]);
    plane.publish("test", server);
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0",
            json!({"components": components}),
        )
        .expect(200);
    let both = with(json!({"backends": {"main": backend, "more": backend}}));
    let mut first = both.clone();
    first["revision"] = 1.into();
    plane.post(PUBLICATION, first).expect(200);
    plane.post(PUBLICATION, both).expect(200);
    // Going back to what has fewer needs no other runtime.
    plane
        .post(&format!("{PUBLICATION}/rollback"), json!({"revision": 1}))
        .expect(200);
}

/// The defect: such a draft was stored, and a publish said that its components had ''.
#[test]
fn a_draft_has_components_with_backends() {
    const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
    let plane = Plane::start();
    plane.version(&petstore());
    for (components, expected) in [
        (json!([]), "components"),
        (json!([{"name": "x"}]), "components[0].backend"),
        (
            json!([{"name": "x", "backend": "main"}, {"name": "y", "backend": " "}]),
            "components[1].backend",
        ),
    ] {
        let refused = plane.put(VERSION, json!({"components": components})).expect(422);
        assert_eq!(places(&refused), [expected], "{components}: {refused:?}");
        let new = json!({"version": "2", "components": components, "spec": petstore().to_string()});
        let refused = plane.post("/api/v1/apis/pets/versions", new).expect(422);
        assert_eq!(places(&refused), [expected], "{components}: {refused:?}");
    }
    let new = json!({"version": "9", "spec": petstore().to_string()});
    let refused = plane
        .post("/api/v1/apis/pets/versions?version=8", new.clone())
        .expect(422);
    assert_eq!(places(&refused), ["version"], "{refused:?}");
    plane
        .post("/api/v1/apis/pets/versions?version=9", new)
        .expect(201);
}

/// The defect: a document that was too long, or in another encoding, was refused without a place in it.
#[test]
fn documents_that_are_no_text_are_refused_with_line_and_column() {
    let plane = Plane::start();
    let console = plane.weir.console();
    let path = "/api/v1/apis/pets/versions?version=1.0.0";
    let too_long = "#".repeat((16 << 20) + 1);
    let refused = Call::new("POST", &console, path)
        .body(&too_long)
        .make()
        .expect(413);
    assert!(
        refused.body.contains("1:1: error: expected at most 16 MiB"),
        "{refused:?}"
    );
    let head = format!("POST {path} HTTP/1.1\r\nHost: {console}\r\nConnection: close\r\n");
    let body = b"openapi: 3.1.0\ninfo:\n  title: \xe4\xfc\xdf caf\xe9\n";
    let mut stream = std::net::TcpStream::connect(console).expect("connected");
    let call = [
        format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        body,
    ]
    .concat();
    std::io::Write::write_all(&mut stream, &call).expect("sent");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("3:10: error: expected UTF-8"), "{answer}");
}

#[test]
fn plans_name_operations_that_there_are_and_allow_a_call() {
    let plane = Plane::start();
    plane.version(&petstore());
    for (body, expected) in [
        (json!({"operations": ["listPets", "listCats"]}), "operations[1]"),
        (
            json!({"operation_limits": {"listCats": [{"count": 1, "per": "day"}]}}),
            "operation_limits.listCats",
        ),
        (
            json!({"limits": [{"count": 9, "per": "day"}, {"count": 0, "per": "minute"}]}),
            "limits[1].count",
        ),
        (
            json!({"operation_limits": {"addPet": [{"count": 0, "per": "day"}]}}),
            "operation_limits.addPet[0].count",
        ),
    ] {
        let refused = plane.put(PLAN, body.clone()).expect(422);
        assert_eq!(places(&refused), [expected], "{body}: {refused:?}");
    }
    let good =
        json!({"operations": ["getPet"], "operation_limits": {"addPet": [{"count": 1, "per": "day"}]}});
    plane.put(PLAN, good.clone()).expect(201);
    plane.publish("test", upstream("pets"));

    // A plan that names an operation which is gone from the draft and is still published stays good, and one that is
    // stored and names one that is nowhere can be changed in other fields.
    let mut fewer = petstore();
    fewer["paths"]
        .as_object_mut()
        .expect("paths")
        .remove("/pets/{id}");
    plane
        .put("/api/v1/apis/pets/versions/1.0.0", json!({"spec": fewer}))
        .expect(200);
    plane.put(PLAN, good.clone()).expect(200);
    plane
        .post(
            PUBLICATION,
            json!({"force": true, "runtime": runtime(upstream("pets"))}),
        )
        .expect(200);
    let mut changed = good;
    changed["display_name"] = "Gold".into();
    plane.put(PLAN, changed.clone()).expect(200);
    changed["operations"] = json!(["getPet", "listCats"]);
    let refused = plane.put(PLAN, changed).expect(422);
    assert_eq!(places(&refused), ["operations[1]"], "{refused:?}");
}

#[test]
fn steps_that_mean_nothing_are_refused() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let abort = || plane.post(&format!("{PUBLICATION}/canary/abort"), json!({}));
    let refused = abort().expect(409);
    assert!(refused.body.contains("there is no canary"), "{refused:?}");
    let canary = |more: Value| {
        let mut body = json!({"revision": 1, "share": 100, "by": {"cookie": "sid"}});
        body.as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        plane.put(&format!("{PUBLICATION}/canary"), body)
    };
    let refused = canary(json!({})).expect(422);
    assert!(
        refused.body.contains("is the revision that is live") && places(&refused) == ["revision"],
        "{refused:?}"
    );
    let elsewhere = format!("http://{}", upstream("next"));
    canary(json!({"backends": {"main": {"url": elsewhere}}})).expect(200);
    abort().expect(200);
    abort().expect(409);

    let mut there = runtime(upstream("pets"));
    there["hosts"] = json!(["api.test", "ü.de"]);
    let refused = plane.post(PUBLICATION, json!({"runtime": there})).expect(422);
    assert!(
        refused.body.contains("punycode") && places(&refused) == ["runtime.hosts[1]"],
        "{refused:?}"
    );
    for (host, expected) in [("a b", "host name"), ("http://api.test", "a host alone")] {
        there["hosts"] = json!([host]);
        let refused = plane.post(PUBLICATION, json!({"runtime": there})).expect(422);
        assert!(
            refused.body.contains(expected) && places(&refused) == ["runtime.hosts[0]"],
            "{refused:?}"
        );
    }
    let missing = plane
        .post(PUBLICATION, json!({"revision": 99}))
        .expect(404)
        .json();
    assert_eq!(missing["detail"], "revision 99 of pets 1.0.0 does not exist");
    there["hosts"] = json!(["xn--tda.de"]);
    plane.post(PUBLICATION, json!({"runtime": there})).expect(200);

    for name in ["%2E", "%2e%2e"] {
        let path = format!("/api/v1/users/{name}");
        let refused = plane
            .post(&path, json!({"rights": [{"role": "admin"}]}))
            .expect(400);
        assert!(refused.body.contains("is not a valid user name"), "{refused:?}");
    }
}

/// The defect: a deprecation without a time was one since 1970.
#[test]
fn a_deprecation_without_a_time_is_one_from_now_on() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |it| it.as_secs())
    };
    let before = now();
    let path = format!("{PUBLICATION}/deprecation");
    let made = plane.put(&path, json!({})).expect(200).json();
    let since = made["deprecation"]["since"].as_u64().expect("a time");
    assert!((before..=now()).contains(&since), "{made}");
    plane.put(&path, json!({"sunset": 100})).expect(422);
    let given = plane.put(&path, json!({"since": 0})).expect(200).json();
    assert_eq!(given["deprecation"]["since"], 0, "{given}");
}
