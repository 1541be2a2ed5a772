//! Conflicts of a publish with routes that were written in the words of Kong and APISIX, in a store or in a file.

use crate::support::{Call, STOCK_KEY, until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

const FLAGS: [&str; 6] = [
    "--environment",
    "test",
    "--kong-admin",
    "127.0.0.1:0",
    "--apisix-admin",
    "127.0.0.1:0",
];

fn post_kong(plane: &Plane, path: &str, body: Value) {
    let call = Call::new("POST", &plane.weir.kong(), path).body(&body.to_string());
    call.make().expect(201);
}

fn put_apisix(plane: &Plane, path: &str, body: Value) {
    let call = Call::new("PUT", &plane.weir.apisix(), &format!("/apisix/admin{path}"));
    let answer = call.header("X-API-KEY", STOCK_KEY).body(&body.to_string()).make();
    assert!(answer.status < 300, "{answer:?}");
}

/// What a publish would meet: whose route, which, a call, and what becomes of it.
fn conflicts(plane: &Plane, force: bool) -> (u16, Vec<[String; 4]>, String) {
    let body = json!({"force": force, "runtime": runtime(upstream("pets"))});
    let call = plane.call("POST", "/api/v1/publications/pets/1.0.0/test", &body);
    let answer = call.header("Weir-Dry-Run", "true").make();
    if answer.status != 200 {
        return (answer.status, Vec::new(), answer.body);
    }
    let body = answer.json();
    let of = |it: &Value| {
        ["with", "route", "example", "effect"].map(|field| it[field].as_str().unwrap_or_default().to_owned())
    };
    let found = body["conflicts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(of)
        .collect();
    (200, found, body["text"].as_str().unwrap_or_default().to_owned())
}

/// 5, for the routes of other dialects.
#[test]
fn routes_of_kong_and_apisix_are_conflicts_with_a_call_that_both_take() {
    let plane = Plane::with(&FLAGS);
    plane.version(&petstore());
    assert_eq!(conflicts(&plane, false).1, Vec::<[String; 4]>::new());
    let there = upstream("kong").to_string();
    let (host, port) = there.split_once(':').expect("an address");
    post_kong(
        &plane,
        "/services",
        json!({"name": "old", "host": host, "port": port.parse::<u16>().expect("a port")}),
    );
    let route = |name: &str, fields: Value| {
        let mut fields = fields;
        fields["name"] = name.into();
        post_kong(&plane, "/services/old/routes", fields);
    };
    // None of these has a call in common with the publication.
    route("elsewhere", json!({"paths": ["/v2"]}));
    route(
        "other-method",
        json!({"paths": ["/v1/pets"], "methods": ["PATCH"]}),
    );
    route("other-pattern", json!({"paths": ["~/v1/cats/\\d+$"]}));
    assert_eq!(
        conflicts(&plane, false),
        (200, Vec::new(), conflicts(&plane, false).2)
    );
    route(
        "by-pattern",
        json!({"paths": ["~/v1/pets/\\d+$"], "methods": ["GET"]}),
    );
    route(
        "by-header",
        json!({"paths": ["/v1/pets"], "headers": {"x-tenant": ["blue"]}, "hosts": ["a.test"]}),
    );
    put_apisix(
        &plane,
        "/routes/all",
        json!({"uri": "/v1/*", "methods": ["POST"], "upstream": {"nodes": {(there.as_str()): 1}}}),
    );
    let (status, _, texts) = conflicts(&plane, false);
    assert_eq!(status, 409, "{texts}");
    assert!(!texts.contains("blue"), "a value of a header: {texts}");
    for part in [
        "conflicts",
        "by-pattern",
        "by-header",
        "GET /v1/pets/1",
        "a.test/v1/pets with x-tenant",
        "POST /v1/pets",
    ] {
        assert!(texts.contains(part), "{part}: {texts}");
    }
    let (_, found, text) = conflicts(&plane, true);
    let names: Vec<(&str, &str)> = found.iter().map(|it| (it[0].as_str(), it[2].as_str())).collect();
    assert_eq!(names.len(), 3, "{found:?}");
    for expected in [
        ("kong", "GET /v1/pets/1"),
        ("kong", "a.test/v1/pets with x-tenant"),
        ("apisix", "POST /v1/pets"),
    ] {
        let is_it = |it: &(&str, &str)| it.0 == expected.0 && it.1.ends_with(expected.1);
        assert!(names.iter().any(is_it), "{expected:?} {found:?}");
    }
    // What is said of a call is what becomes of it.
    let published = json!({"force": true, "runtime": runtime(upstream("pets"))});
    plane
        .post("/api/v1/publications/pets/1.0.0/test", published)
        .expect(200);
    let forced = plane.get("/api/v1/publications/pets/1.0.0/test").json()["history"][0]["forced"].to_string();
    assert!(forced.contains("by-pattern"), "{forced}");
    let effect = found
        .iter()
        .find(|it| it[2] == "GET /v1/pets/1")
        .map(|it| it[3].clone());
    let by = match effect.as_deref() {
        Some("takes") => "kong",
        Some("loses") => "pets",
        other => panic!("{other:?} {text}"),
    };
    until("the call goes where it was said to", || {
        let answer = Call::get(&plane.weir.proxy(), "/v1/pets/1").attempt();
        answer.is_some_and(|it| it.status == 200 && it.body == by)
    });
}

#[test]
fn routes_in_a_file_are_conflicts_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kong.yml");
    let text = "_format_version: '3.0'\nservices:\n- name: s\n  url: http://127.0.0.1:9\n  routes:\n  - name: of-a-file\n    paths: [/v1/pets]\n    methods: [GET]\n";
    std::fs::write(&file, text).expect("written");
    let plane = Plane::with(&["--environment", "test", "-c", file.to_str().expect("a text")]);
    plane.version(&petstore());
    let (status, _, texts) = conflicts(&plane, false);
    assert!(
        status == 409 && texts.contains("of-a-file") && texts.contains("GET /v1/pets"),
        "{status} {texts}"
    );
}

/// The defect: as many routes as overlap were compiled, one by one, and what was not looked at was not told.
#[test]
fn of_many_conflicts_the_first_are_told_with_how_many_more_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kong.yml");
    let mut text =
        "_format_version: '3.0'\nservices:\n- name: s\n  url: http://127.0.0.1:9\n  routes:\n".to_owned();
    for number in 0..150 {
        text.push_str(&format!(
            "  - name: r{number:03}\n    hosts: [h{number}.test]\n    paths: [/v1/pets]\n    methods: [GET]\n"
        ));
    }
    std::fs::write(&file, text).expect("written");
    let plane = Plane::with(&["--environment", "test", "-c", file.to_str().expect("a text")]);
    plane.version(&petstore());
    let (status, _, texts) = conflicts(&plane, false);
    assert!(
        status == 409 && texts.contains("r099") && !texts.contains("r100"),
        "{status} {texts}"
    );
    assert!(texts.contains("and 50 more routes"), "{texts}");
    let (_, found, text) = conflicts(&plane, true);
    assert_eq!(found.len(), 100);
    assert!(text.contains("! and 50 more routes"), "{text}");
    for it in &found {
        let number: usize = it[1][1..].parse().expect("a number");
        assert_eq!(it[2], format!("GET http://h{number}.test/v1/pets"));
    }
}

/// The answer for unknown paths below the base path of a version that ends stands behind the routes of all dialects.
#[test]
fn a_version_that_ends_takes_no_calls_of_other_routes_below_its_base_path() {
    let plane = Plane::with(&FLAGS);
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    plane.put("/api/v1/apis/cats", json!({})).expect(201);
    let versions = "/api/v1/apis/cats/versions?version=1";
    plane.post(versions, petstore()).expect(201);
    let mut below = runtime(upstream("cats"));
    below["base_path"] = json!("/v1/cats");
    let cats = "/api/v1/publications/cats/1/test";
    plane.post(cats, json!({ "runtime": below })).expect(200);
    let there = upstream("kong").to_string();
    let (host, port) = there.split_once(':').expect("an address");
    let port = port.parse::<u16>().expect("a port");
    post_kong(
        &plane,
        "/services",
        json!({"name": "old", "host": host, "port": port}),
    );
    post_kong(
        &plane,
        "/services/old/routes",
        json!({"name": "old", "paths": ["/v1/old"]}),
    );
    let apisix = json!({"uri": "/v1/older", "upstream": {"type": "roundrobin", "nodes": {upstream("apisix").to_string(): 1}}});
    put_apisix(&plane, "/routes/1", apisix);
    let deprecation = format!("{}/deprecation", "/api/v1/publications/pets/1.0.0/test");
    plane.put(&deprecation, json!({})).expect(200);
    let headers_of = |path: &str| {
        let answer = plane.through(path, None).expect("an answer");
        (answer.status, answer.header("deprecation").is_some())
    };
    until("it says that it ends", || {
        headers_of("/v1/unknown") == (404, true)
    });
    for (path, expected) in [
        ("/v1/pets", (200, true)),
        ("/v1/old", (200, false)),
        ("/v1/older", (200, false)),
        ("/v1/cats/pets", (200, false)),
    ] {
        until(path, || headers_of(path) == expected);
    }
    // One for all paths goes before it, too.
    let all =
        json!({"url": format!("http://{}", upstream("all")), "routes": [{"name": "all", "paths": ["*"]}]});
    plane.put("/api/v1/resources/services/all", all).expect(201);
    until("it takes the rest", || headers_of("/v1/unknown") == (200, false));
    assert_eq!(headers_of("/v1/pets"), (200, true));
}

/// A writer of one workspace takes nothing of what is published, whichever process serves it: this one serves `test` only.
#[test]
fn a_writer_of_a_workspace_takes_no_calls_of_publications_of_any_environment() {
    let plane = Plane::with(&FLAGS);
    plane.version(&petstore());
    post_kong(&plane, "/workspaces", json!({"name": "lager"}));
    let user = |name: &str, rights: Value, token: &str| {
        let call = plane.call(
            "POST",
            &format!("/api/v1/users/{name}"),
            &json!({ "rights": [rights] }),
        );
        let answer = call.header("Authorization", &format!("Bearer {token}")).make();
        answer.expect(201).json()["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    let root = user("root", json!({"role": "admin"}), "");
    let lars = user("lars", json!({"role": "write", "workspace": "lager"}), &root);
    let write = |path: &str| {
        let body = json!({"paths": [path]}).to_string();
        let call = Call::new("PUT", &plane.weir.kong(), "/lager/routes/r").body(&body);
        call.header("Kong-Admin-Token", &lars).make()
    };
    for environment in ["prod", "test"] {
        write("/v1").expect(200);
        let path = format!("/api/v1/publications/pets/1.0.0/{environment}");
        let publish = plane.call(
            "POST",
            &path,
            &json!({"force": true, "runtime": runtime(upstream("pets"))}),
        );
        let publish = publish.header("Authorization", &format!("Bearer {root}"));
        publish.make().expect(200);
        write("/own").expect(200);
        for taken in ["/v1/pets", "/v1", "/", "~/v1/.*"] {
            until("the publication is known", || {
                // What a route takes already, it goes on taking.
                write("/own").expect(200);
                write(taken).status == 409
            });
        }
        write("/v2").expect(200);
        let delete = plane.call("DELETE", &path, &json!({}));
        let delete = delete.header("Authorization", &format!("Bearer {root}"));
        assert!(delete.make().status < 300);
        until("it is gone", || write("/v1").status == 200);
    }
}
