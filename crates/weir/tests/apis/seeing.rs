//! What people see who have a role in one part only: lists hold what they may read, reads of the rest are refused, and
//! who has no such right anywhere gets no list.

use crate::approving::Users;
use crate::support::upstream;
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Three APIs: `pets` in test and prod, `cats` in test, `dogs` nowhere. `shop` subscribes to pets, `store` to cats; the
/// product `zoo` has both, `aquarium` pets only.
fn zoo() -> Plane {
    let plane = Plane::start();
    for (name, base) in [("pets", "/v1"), ("cats", "/cats"), ("dogs", "/dogs")] {
        plane.put(&format!("/api/v1/apis/{name}"), json!({}));
        let path = format!("/api/v1/apis/{name}/versions?version=1.0.0");
        plane.post(&path, petstore()).expect(201);
        let path = format!("/api/v1/apis/{name}/versions/1.0.0/plans/gold");
        plane.put(&path, json!({"state": "published"})).expect(201);
        if name == "dogs" {
            continue;
        }
        let mut there = runtime(upstream(name));
        there["base_path"] = base.into();
        let path = format!("/api/v1/publications/{name}/1.0.0/test");
        plane.post(&path, json!({"runtime": there})).expect(200);
    }
    plane.publish("prod", upstream("pets"));
    for (application, api) in [("shop", "pets"), ("store", "cats")] {
        let path = format!("/api/v1/applications/{application}");
        plane.put(&path, json!({})).expect(201);
        let publication = format!("{api}/1.0.0/test");
        let wanted = json!({"application": application, "publication": publication, "plan": "gold"});
        plane.post("/api/v1/subscriptions", wanted).expect(201);
    }
    for (product, publications) in [
        ("zoo", json!({"pets/1.0.0/test": [], "cats/1.0.0/test": []})),
        ("aquarium", json!({"pets/1.0.0/test": []})),
    ] {
        let path = format!("/api/v1/products/{product}");
        plane
            .put(&path, json!({"publications": publications}))
            .expect(201);
    }
    let portal = json!({"hosts": ["developers.example.com"]});
    plane.put("/api/v1/portals/main", portal).expect(201);
    plane
}

/// What a person sees of the lists, each as one text; `None`: the list is refused.
const LISTS: [&str; 8] = [
    "apis",
    "versions",
    "publications",
    "products",
    "applications",
    "subscriptions",
    "environments",
    "portals",
];

fn visible_names(people: &Users<'_>, token: &str, list: &str) -> Option<String> {
    let answer = people.ask(token, "GET", &format!("/api/v1/{list}"), Value::Null);
    if answer.status == 403 {
        return None;
    }
    let listed = answer.expect(200).json();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| match list {
            "versions" => text(it, "api"),
            "publications" => format!("{}@{}", text(it, "api"), text(it, "environment")),
            "subscriptions" => text(it, "application"),
            _ => text(it, "name"),
        })
        .collect();
    names.sort();
    Some(names.join(" "))
}

#[test]
fn lists_hold_what_somebody_may_read() {
    const NO: Option<&str> = None;
    const NONE: Option<&str> = Some("");
    const ALL: [Option<&str>; 8] = [
        Some("cats dogs pets"),
        Some("cats dogs pets"),
        Some("cats@test pets@prod pets@test"),
        Some("aquarium zoo"),
        Some("shop store"),
        Some("shop store"),
        Some("prod test"),
        Some("main"),
    ];
    const OF_PETS: [Option<&str>; 8] = [
        Some("pets"),
        Some("pets"),
        Some("pets@prod pets@test"),
        Some("aquarium"),
        Some("shop"),
        Some("shop"),
        // Where an API can be published to is known to all who have a right in one.
        Some("prod test"),
        NONE,
    ];
    const IN_TEST: [Option<&str>; 8] = [
        NONE,
        NONE,
        Some("cats@test pets@test"),
        Some("aquarium zoo"),
        Some("shop store"),
        Some("shop store"),
        Some("test"),
        NONE,
    ];
    let plane = zoo();
    let people = Users::of(&plane);
    let with = |list: &str, shown: Option<&'static str>, mut row: [Option<&'static str>; 8]| {
        row[LISTS.iter().position(|it| *it == list).expect("a list")] = shown;
        row
    };
    let own_portal = with(
        "portals",
        Some("main"),
        [NONE, NONE, NONE, NONE, NONE, NONE, NO, NO],
    );
    let rows = [
        (json!([{"role": "admin"}]), ALL),
        (json!([{"role": "viewer"}]), ALL),
        (json!([{"role": "api-owner"}]), ALL),
        (json!([{"role": "api-owner", "api": "pets"}]), OF_PETS),
        (json!([{"role": "viewer", "api": "pets"}]), OF_PETS),
        (
            json!([{"role": "approver", "api": "pets"}]),
            with("portals", NO, OF_PETS),
        ),
        (
            json!([{"role": "api-owner", "api": "pets"}, {"role": "viewer", "api": "cats"}]),
            [
                Some("cats pets"),
                Some("cats pets"),
                Some("cats@test pets@prod pets@test"),
                Some("aquarium zoo"),
                Some("shop store"),
                Some("shop store"),
                Some("prod test"),
                NONE,
            ],
        ),
        (
            json!([{"role": "api-owner", "api": "new"}]),
            with("environments", Some("prod test"), [NONE; 8]),
        ),
        (json!([{"role": "operator", "environment": "test"}]), IN_TEST),
        (json!([{"role": "write", "workspace": "shop"}]), [NONE; 8]),
        (json!([{"role": "portal-admin", "portal": "main"}]), own_portal),
        (json!([{"role": "auditor"}]), [NO; 8]),
        (json!([{"role": "analyst", "api": "pets"}]), [NO; 8]),
        (json!([{"role": "gateway"}]), [NO; 8]),
    ];
    for (index, (rights, expected)) in rows.into_iter().enumerate() {
        let token = people.add(&format!("u{index}"), rights.clone());
        let found = LISTS.map(|list| visible_names(&people, &token, list));
        for ((list, found), expected) in LISTS.iter().zip(found).zip(expected) {
            assert_eq!(found.as_deref(), expected, "{rights} {list}");
        }
    }
}

#[test]
fn the_owner_of_one_api_reads_and_decides_what_concerns_it_and_nothing_else() {
    let plane = zoo();
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let vic = people.add("vic", json!([{"role": "viewer", "api": "pets"}]));
    let all = plane_subscriptions(&people);
    let (own, other) = (&all["shop"], &all["store"]);
    let get = |token: &str, path: &str| people.ask(token, "GET", path, Value::Null).status;
    for (path, expected) in [
        ("/api/v1/apis/pets".to_owned(), 200),
        ("/api/v1/apis/cats".to_owned(), 403),
        ("/api/v1/products/aquarium".to_owned(), 200),
        ("/api/v1/products/aquarium/plans".to_owned(), 200),
        ("/api/v1/products/zoo".to_owned(), 403),
        ("/api/v1/products/zoo/plans".to_owned(), 403),
        ("/api/v1/applications/shop".to_owned(), 200),
        ("/api/v1/applications/shop/webhooks".to_owned(), 200),
        ("/api/v1/applications/store".to_owned(), 403),
        ("/api/v1/applications/store/webhooks".to_owned(), 403),
        ("/api/v1/environments/test".to_owned(), 403),
        (format!("/api/v1/subscriptions/{own}"), 200),
        (format!("/api/v1/subscriptions/{own}/credentials"), 200),
        (format!("/api/v1/subscriptions/{other}"), 403),
        (format!("/api/v1/subscriptions/{other}/credentials"), 403),
        ("/api/v1/subscriptions/none".to_owned(), 404),
    ] {
        assert_eq!(get(&ann, &path), expected, "{path}");
        assert_eq!(get(&vic, &path), expected, "{path}");
    }
    let state = |token: &str, id: &str, state: &str| {
        let path = format!("/api/v1/subscriptions/{id}/state");
        people.ask(token, "POST", &path, json!({"state": state})).status
    };
    assert_eq!(state(&vic, own, "paused"), 403);
    assert_eq!(state(&ann, other, "paused"), 403);
    assert_eq!(state(&ann, own, "paused"), 200);
    assert_eq!(state(&ann, own, "accepted"), 200);
    let add = |token: &str, id: &str| {
        let path = format!("/api/v1/subscriptions/{id}/credentials");
        people.ask(token, "POST", &path, json!({}))
    };
    assert_eq!(add(&vic, own).status, 403);
    assert_eq!(add(&ann, other).status, 403);
    let made = add(&ann, own).expect(201).json();
    let key = made["id"].as_str().expect("an id");
    let path = format!("/api/v1/subscriptions/{own}/credentials/{key}");
    people.ask(&vic, "DELETE", &path, Value::Null).expect(403);
    people.ask(&ann, "DELETE", &path, Value::Null).expect(204);
}

#[test]
fn the_owner_of_one_api_has_applications_of_its_own() {
    let plane = zoo();
    let developers = json!({"owner": "developer:dev1"});
    plane
        .put("/api/v1/applications/devs", developers.clone())
        .expect(201);
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let vic = people.add("vic", json!([{"role": "viewer", "api": "pets"}]));
    let wes = people.add("wes", json!([{"role": "write", "workspace": "shop"}]));
    let path = |name: &str| format!("/api/v1/applications/{name}");
    let subscribe = |token: &str, name: &str, api: &str| {
        let wanted = json!({"application": name, "publication": format!("{api}/1.0.0/test"), "plan": "gold"});
        people.ask(token, "POST", "/api/v1/subscriptions", wanted).status
    };
    let put = |token: &str, name: &str, body: Value| people.ask(token, "PUT", &path(name), body).status;
    for (token, expected) in [(&vic, 403), (&wes, 403), (&ann, 201)] {
        assert_eq!(put(token, "till", json!({})), expected);
    }
    people.ask(&ann, "GET", &path("till"), Value::Null).expect(200);
    assert_eq!(subscribe(&ann, "till", "cats"), 403);
    assert_eq!(subscribe(&ann, "till", "pets"), 201);
    assert_eq!(put(&ann, "till", json!({"display_name": "Till"})), 200);
    // A developer's, and those that call other APIs, are none of hers.
    assert_eq!(put(&ann, "mine", developers), 403);
    for name in ["devs", "store"] {
        assert_eq!(put(&ann, name, json!({})), 403, "{name}");
        assert_eq!(subscribe(&ann, name, "pets"), 403, "{name}");
        people.ask(&ann, "DELETE", &path(name), Value::Null).expect(403);
    }
    let made = people.ask(&ann, "POST", "/api/v1/applications", json!({"name": "spare"}));
    made.expect(201);
    people
        .ask(&ann, "DELETE", &path("spare"), Value::Null)
        .expect(204);
}

/// The subscriptions by their applications.
fn plane_subscriptions(people: &Users<'_>) -> std::collections::BTreeMap<String, String> {
    let root = people.add("reader", json!([{"role": "viewer"}]));
    let listed = people.ask(&root, "GET", "/api/v1/subscriptions", Value::Null);
    let listed = listed.expect(200).json();
    let text = |it: &Value, field: &str| it[field].as_str().expect("a text").to_owned();
    let items = listed["items"].as_array().expect("a list").iter();
    items
        .map(|it| (text(it, "application"), text(it, "id")))
        .collect()
}

#[test]
fn environments_show_their_variables_to_those_who_may_read_them() {
    let plane = Plane::start();
    let secret = json!({"order": 3, "protected": true, "variables": {"HOST": "10.0.0.7"}, "base_urls": ["https://api.example.com"]});
    plane.put("/api/v1/environments/test", secret).expect(200);
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let olga = people.add("olga", json!([{"role": "operator", "environment": "test"}]));
    let of = |token: &str| {
        let listed = people.ask(token, "GET", "/api/v1/environments", Value::Null);
        let listed = listed.expect(200).json();
        let items = listed["items"].as_array().expect("a list").clone();
        items
            .into_iter()
            .find(|it| it["name"] == "test")
            .expect("the environment")
    };
    let expected = json!({"name": "test", "kind": "non-production", "order": 3, "protected": true, "base_urls": ["https://api.example.com"]});
    assert_eq!(of(&ann), expected);
    assert_eq!(of(&olga)["variables"], json!({"HOST": "10.0.0.7"}));
}

/// The defect: who may read an API saw the secrets of its plugins and backends.
#[test]
fn secrets_of_apis_are_for_those_who_may_write_them() {
    const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
    let plane = Plane::start();
    plane.version(&petstore());
    let headers = json!({"Authorization": "hush-1"});
    let chain = json!([{"logger": {"target": {"http": {"url": "http://127.0.0.1:1", "headers": headers}}}}]);
    plane.put(VERSION, json!({"chain": chain})).expect(200);
    let mut runtime = runtime("127.0.0.1:1".parse().expect("an address"));
    runtime["variables"] = json!({"PASSWORD": "hush-2"});
    plane
        .post(
            "/api/v1/publications/pets/1.0.0/test",
            json!({"runtime": runtime}),
        )
        .expect(200);
    let variables = json!({"variables": {"PASSWORD": "hush-3"}});
    plane.put("/api/v1/environments/test", variables).expect(200);
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let ron = people.add("ron", json!([{"role": "read"}]));
    for (path, is_anns) in [
        (VERSION, true),
        ("/api/v1/apis/pets/versions", true),
        ("/api/v1/apis/pets/versions/1.0.0/revisions", true),
        ("/api/v1/publications", true),
        ("/api/v1/publications/pets/1.0.0/test", true),
        ("/api/v1/environments", false),
    ] {
        let read = |token: &str| people.ask(token, "GET", path, Value::Null).expect(200).body;
        let seen = read(&ron);
        assert!(!seen.contains("hush") && seen.contains("***"), "{path}: {seen}");
        assert_eq!(read(&ann).contains("hush"), is_anns, "{path}");
    }
}

/// The defect: of a gateway of one environment, calls whose routes are in none were missing, as those of other dialects are.
#[test]
fn calls_without_an_environment_are_in_that_of_their_gateway() {
    let plane = Plane::start();
    let people = Users::of(&plane);
    let edge = people.add("edge", json!([{"role": "gateway", "environment": "test"}]));
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let time = seconds.as_secs() * 1_000;
    for (environment, expected) in [("", 1), ("test", 1), ("prod", 0)] {
        let call = json!({"time": time, "weight": 1, "status": 200, "environment": environment});
        let path = "/api/v1/gateways/edge-1/calls";
        let delivered = people.ask(&edge, "POST", path, json!({"calls": [call]}));
        assert_eq!(delivered.expect(200).json()["taken"], expected, "'{environment}'");
    }
}

#[test]
fn numbers_of_one_api_are_for_those_who_may_read_them() {
    let plane = Plane::start();
    let people = Users::of(&plane);
    let of_pets = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let of_test = people.add("olga", json!([{"role": "operator", "environment": "test"}]));
    for (token, filter, expected) in [
        (&of_pets, json!({"api": "pets"}), 200),
        (&of_pets, json!({"api": ["pets"], "environment": "prod"}), 200),
        (&of_pets, json!({"api": "cats"}), 403),
        (&of_pets, json!({"api": ["pets", "cats"]}), 403),
        (&of_pets, json!({"api": []}), 403),
        (&of_pets, json!({"environment": "test"}), 403),
        (&of_pets, json!({}), 403),
        (&of_test, json!({"environment": "test"}), 200),
        (&of_test, json!({"environment": "prod"}), 403),
        (&of_test, json!({"api": "pets"}), 403),
    ] {
        let query = json!({"metrics": ["calls"], "from": "-1h", "filter": filter});
        let answer = people.ask(token, "POST", "/api/v1/analytics/query", query);
        assert_eq!(answer.status, expected, "{filter} {}", answer.body);
    }
    people
        .ask(&of_pets, "GET", "/api/v1/analytics/definition", Value::Null)
        .expect(200);
}

/// The request log and the boards show the owner of one API what is about that one.
#[test]
fn calls_and_boards_of_one_api_are_for_those_who_may_read_them() {
    let plane = zoo();
    for api in ["pets", "cats"] {
        let panel = json!({"title": "Calls", "kind": "stat", "query": {"metrics": ["calls"]}});
        let board = json!({"title": api, "filter": {"api": api}, "panels": [panel]});
        plane.post("/api/v1/boards", board).expect(201);
    }
    let people = Users::of(&plane);
    let of_pets = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let all = people.add("vic", json!([{"role": "viewer"}]));
    for path in ["/v1/pets", "/cats/pets", "/nowhere"] {
        crate::support::until("it is served", || {
            plane
                .status(path, None)
                .is_some_and(|it| it == 401 || path == "/nowhere")
        });
    }
    let services = |token: &str| -> std::collections::BTreeSet<String> {
        let found = people.ask(
            token,
            "GET",
            "/api/v1/analytics/calls?from=-5m&limit=1000",
            Value::Null,
        );
        let calls = found.expect(200).json()["calls"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        calls
            .iter()
            .map(|it| it["service"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    crate::support::until("all are logged", || services(&all).len() == 3);
    assert_eq!(
        services(&of_pets).into_iter().collect::<Vec<_>>(),
        ["test.pets.1.0.0.main"]
    );
    let boards = |token: &str| -> Vec<String> {
        let listed = people
            .ask(token, "GET", "/api/v1/boards", Value::Null)
            .expect(200)
            .json();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let saved = items.iter().filter(|it| it["given"] == false);
        saved
            .map(|it| it["title"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        (boards(&of_pets), boards(&all)),
        (
            vec!["pets".to_owned()],
            vec!["cats".to_owned(), "pets".to_owned()]
        )
    );
    people
        .ask(&of_pets, "GET", "/api/v1/boards/overview", Value::Null)
        .expect(200);
    people
        .ask(&of_pets, "GET", "/api/v1/boards/cats", Value::Null)
        .expect(404);
    people
        .ask(&of_pets, "GET", "/api/v1/alerts", Value::Null)
        .expect(200);
    people
        .ask(&of_pets, "POST", "/api/v1/alerts", json!({}))
        .expect(403);
}
