//! Bad input to Weir's own API: what is refused says why, nothing of it is stored, and no body ends the process.

use crate::support::{Answer, Call, until, upstream};
use crate::{Plane, petstore};
use serde_json::{Value, json};

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";

/// Bodies that are no objects, and one that has a field twice.
const BODIES: [&str; 5] = ["[]", "5", "\"x\"", "null", r#"{"name": "a", "name": "b"}"#];

/// A call without its parameters: names of what is there, and any others.
fn filled(path: &str) -> String {
    let known = [
        ("{kind}", "services"),
        ("{list}", "routes"),
        ("{api}", "pets"),
        ("{version}", "1.0.0"),
        ("{environment}", "test"),
    ];
    let path = known
        .iter()
        .fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    let segments = path
        .split('/')
        .map(|it| if it.starts_with('{') { "x" } else { it });
    segments.collect::<Vec<&str>>().join("/")
}

#[test]
fn no_body_of_any_call_ends_the_process() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let description = plane.get("/api/v1/openapi.json").expect(200).json();
    let paths = description["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        for method in ["post", "put"] {
            if operations.get(method).is_none() {
                continue;
            }
            for body in BODIES {
                let call = Call::new(&method.to_uppercase(), &plane.weir.console(), &filled(path));
                let answer = call.body(body).attempt();
                assert!(
                    answer.as_ref().is_some_and(|it| it.status < 500),
                    "{method} {path} {body}: {answer:?}"
                );
            }
        }
    }
    plane.get("/api/v1/state").expect(200);
}

/// What it was to narrow would be answered whole. A browser that an identity provider sends back has what that one
/// likes.
#[test]
fn parameters_that_a_call_does_not_know_are_refused_by_name() {
    const BY_OTHERS: [&str; 3] = ["finishOpenidLogin", "followConfiguration", "syncLimits"];
    let plane = Plane::start();
    let description = plane.get("/api/v1/openapi.json").expect(200).json();
    let paths = description["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        let operations = operations.as_object().expect("operations");
        for (method, operation) in operations {
            if BY_OTHERS.iter().any(|it| operation["operationId"] == *it) {
                continue;
            }
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let known = parameters.filter(|it| it["in"] == "query");
            let known = known.filter_map(|it| it["name"].as_str()).min();
            let (name, hint) = match known {
                Some(known) => (format!("{known}z"), format!("did you mean '{known}'?")),
                None => ("limit".to_owned(), "this call takes none".to_owned()),
            };
            let path = format!("{}?{name}=prod", filled(path));
            let call = Call::new(&method.to_uppercase(), &plane.weir.console(), &path);
            let refused = call.make().expect(400);
            assert_eq!(refused.json()["type"], "urn:weir:problem:unknown-parameter");
            assert!(
                refused
                    .body
                    .contains(&format!("unknown query parameter '{name}'")),
                "{method} {path}: {}",
                refused.body
            );
            assert!(refused.body.contains(&hint), "{method} {path}: {}", refused.body);
        }
    }
    plane.get("/api/v1/audit?limit=5").expect(200);
}

#[test]
fn fields_that_are_there_twice_are_refused_with_their_line() {
    let plane = Plane::start();
    for (path, body, message) in [
        (
            "/api/v1/environments/other",
            "{\"kind\": \"production\",\n \"kind\": \"non-production\"}",
            "the field 'kind' is here a second time at line 2",
        ),
        ("/api/v1/environments/other", "[]", "expected an object"),
        (
            "/api/v1/resources/services/other",
            "url: http://127.0.0.1:1\nurl: http://127.0.0.1:2\n",
            "line 2: the key 'url' is here a second time",
        ),
    ] {
        let call = Call::new("PUT", &plane.weir.console(), path);
        let answer = call.body(body).make().expect(400);
        assert!(answer.body.contains(message), "{path}: {}", answer.body);
        plane.get(path).expect(404);
    }
}

/// A fault has its place in the document that was sent, not in the configuration of all documents.
#[test]
fn faults_are_reported_at_their_place_in_the_document() {
    let plane = Plane::start();
    let service = |plugins: Value| {
        json!({"url": "http://127.0.0.1:1", "routes": [
            {"name": "first", "paths": ["/first"]}, {"name": "second", "paths": ["/second"], "plugins": plugins}]})
    };
    let path = |name: &str| format!("/api/v1/resources/services/{name}");
    plane
        .put(&path("a"), json!({"url": "http://127.0.0.1:1"}))
        .expect(201);
    let wrong = json!([{"cors": {}}, {"rate-limit": {"limits": "x"}}]);
    let refused = plane.put(&path("b"), service(wrong)).expect(422).json();
    assert_eq!(
        refused["errors"][0]["path"], "routes[1].plugins[1].rate-limit.limits",
        "{refused}"
    );
}

fn published(plane: &Plane, base_path: &str) -> Answer {
    let runtime = json!({"base_path": base_path, "backends": {"main": {"url": format!("http://{}", upstream("pets"))}}});
    plane.post(PUBLICATION, json!({ "runtime": runtime }))
}

/// A document may have characters in its paths that calls have only encoded.
#[test]
fn paths_with_any_characters_are_served_and_base_paths_are_such_that_calls_can_have_them() {
    let plane = Plane::start();
    let answers = json!({"responses": {"200": {"description": "ok"}}});
    let mut document = petstore();
    for path in ["/old files/größe", "/a|b/c"] {
        document["paths"][path] = json!({ "get": answers });
    }
    document["paths"]["/%c3%bc/{id}"] = json!({"get": {"responses": {"200": {"description": "ok"}},
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}});
    plane.version(&document);
    for base_path in ["v1", "/v1?x=1", "/a/../b", "/a//b", "/a%2Fb"] {
        let refused = published(&plane, base_path).expect(422);
        assert!(
            refused
                .body
                .contains("render: runtime.base_path: expected a path"),
            "{base_path}: {}",
            refused.body
        );
    }
    published(&plane, "/shop ü").expect(200);
    for path in ["/old%20files/gr%C3%B6%C3%9Fe", "/a%7Cb/c", "/%C3%BC/7", "/pets"] {
        let whole = format!("/shop%20%C3%BC{path}");
        until("it is served", || plane.status(&whole, None) == Some(200));
    }
}

/// Links stand in a header of every answer, and in the portal; a canary by what no call has would get no calls.
#[test]
fn what_would_have_no_effect_or_a_bad_one_is_refused() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    for (step, body, message) in [
        (
            "deprecation",
            json!({"since": 1, "link": "javascript:alert(1)"}),
            "link: ",
        ),
        ("deprecation", json!({"since": 1, "link": "not a link"}), "link: "),
        (
            "deprecation",
            json!({"since": 1, "successor": "https://a.test/>; rel=\"x"}),
            "successor: ",
        ),
        (
            "canary",
            json!({"revision": 1, "share": 100, "by": {"header": "two words"}}),
            "by: ",
        ),
        (
            "canary",
            json!({"revision": 1, "share": 100, "by": {"cookie": ""}}),
            "by: ",
        ),
    ] {
        let refused = plane
            .put(&format!("{PUBLICATION}/{step}"), body.clone())
            .expect(422);
        assert!(
            refused.body.contains(&format!("read: {message}")),
            "{body}: {}",
            refused.body
        );
    }
    let link = json!({"since": 1, "link": "/news#end", "successor": "https://a.test/v2"});
    plane.put(&format!("{PUBLICATION}/deprecation"), link).expect(200);
    let rules = plane.put("/api/v1/environments/other", json!({"lint_rules": ": : x"}));
    assert!(rules.expect(422).body.contains("lint_rules"));
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    let subscription = plane.post(
        "/api/v1/subscriptions",
        json!({"application": "shop", "plan": "b"}),
    );
    assert!(
        subscription
            .expect(400)
            .body
            .contains("either 'publication' or 'product'"),
        "it names neither"
    );
    let asked = json!({"publication": "pets/1.0.0/prod", "revision": 1});
    let approval = plane.post("/api/v1/approvals", asked).expect(201).json();
    let decision = format!(
        "/api/v1/approvals/{}/decision",
        approval["id"].as_str().expect("an id")
    );
    for state in ["outdated", "open", "maybe"] {
        let refused = plane.post(&decision, json!({ "state": state })).expect(422);
        assert!(
            refused.body.contains("expected granted, refused or withdrawn"),
            "{state}"
        );
    }
}

/// A commit that the history lists has a difference.
#[test]
fn the_difference_of_two_revisions_has_what_the_history_says() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let history = plane.get("/api/v1/history?limit=1").expect(200).json();
    let revision = history["items"][0]["revision"].as_u64().expect("a number");
    let listed = history["items"][0]["changes"].as_array().expect("changes").len();
    let path = |from: u64, to: u64| format!("/api/v1/diff?from={from}&to={to}");
    let diff = plane.get(&path(revision - 1, revision)).expect(200).json();
    assert_eq!(
        diff["items"].as_array().map(Vec::len),
        Some(listed),
        "{history} {diff}"
    );
    let back = plane.get(&path(revision, revision - 1)).expect(200).json();
    for (there, back) in diff["items"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(back["items"].as_array().expect("items"))
    {
        assert_eq!(
            (&there["before"], &there["after"]),
            (&back["after"], &back["before"])
        );
    }
    assert_eq!(
        diff["items"].as_array().map(Vec::len),
        back["items"].as_array().map(Vec::len)
    );
    plane.get(&path(revision + 1000, revision)).expect(404);
    let ahead = plane.get(&path(revision, revision + 1000)).expect(404);
    assert!(ahead.body.contains("does not exist"), "{ahead:?}");
}

/// What cannot be served, or could not be told from others, is refused at its field.
#[test]
fn wrong_fields_of_apis_are_refused_at_their_place() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let plan = "/api/v1/apis/pets/versions/1.0.0/plans/gold";
    let with_url = |url: &str| json!({"runtime": {"base_path": "/v1", "backends": {"main": {"url": url}}}});
    let targets = json!([{"host": " ", "port": 1}]);
    let with_host = json!({"runtime": {"base_path": "/v1", "backends": {"main": {"targets": targets}}}});
    for (method, path, body, place) in [
        (
            "PUT",
            "/api/v1/environments/other",
            json!({"display_name": "  "}),
            "display_name",
        ),
        (
            "PUT",
            "/api/v1/apis/other",
            json!({"display_name": "\t"}),
            "display_name",
        ),
        ("PUT", plan, json!({"display_name": " "}), "display_name"),
        (
            "PUT",
            "/api/v1/environments/other",
            json!({"lint_rules": "rules: ["}),
            "lint_rules",
        ),
        (
            "PUT",
            plan,
            json!({"limits": [{"count": 0, "per": "day"}]}),
            "limits[0].count",
        ),
        (
            "PUT",
            plan,
            json!({"limits": [{"count": 1_000_000_000_001_u64, "per": "day"}]}),
            "limits[0].count",
        ),
        (
            "PUT",
            plan,
            json!({"operation_limits": {"listPets": [{"count": u64::MAX, "per": "day"}]}}),
            "operation_limits.listPets[0].count",
        ),
        ("POST", PUBLICATION, with_url("nope"), "runtime.backends.main.url"),
        (
            "POST",
            PUBLICATION,
            with_url("ftp://a"),
            "runtime.backends.main.url",
        ),
        (
            "POST",
            PUBLICATION,
            with_url("http://a:99999"),
            "runtime.backends.main.url",
        ),
        (
            "POST",
            PUBLICATION,
            with_url("http://a b"),
            "runtime.backends.main.url",
        ),
        ("POST", PUBLICATION, with_host, "runtime.backends.main.targets"),
    ] {
        let refused = plane.call(method, path, &body).make().expect(422);
        assert_eq!(
            refused.json()["errors"][0]["path"],
            place,
            "{body}: {}",
            refused.body
        );
    }
}

/// A canary that does not grow would end in the middle.
#[test]
fn steps_of_a_canary_that_do_not_grow_are_refused_at_their_place() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let canary = format!("{PUBLICATION}/canary");
    let growing = |steps: Value| {
        let backends = json!({"main": {"url": "http://127.0.0.1:1"}});
        json!({"revision": 1, "backends": backends, "share": 1000, "by": "address", "steps": steps})
    };
    for (steps, place) in [
        (json!([{"after": 60, "share": 1000}]), "steps[0].share"),
        (
            json!([{"after": 60, "share": 5000}, {"after": 120, "share": 2000}]),
            "steps[1].share",
        ),
        (
            json!([{"after": 60, "share": 5000}, {"after": 60, "share": 6000}]),
            "steps[1].after",
        ),
        (json!([{"after": 60, "share": 10_001}]), "steps[0].share"),
    ] {
        let refused = plane.put(&canary, growing(steps)).expect(422);
        assert_eq!(refused.json()["errors"][0]["path"], place, "{}", refused.body);
    }
    let good = growing(json!([{"after": 60, "share": 5000}, {"after": 120, "share": 10_000}]));
    plane.put(&canary, good).expect(200);
}

/// Calls are compared with one slash in place of several, and without dots.
#[test]
fn paths_that_no_call_can_have_are_findings() {
    let plane = Plane::start();
    let mut document = petstore();
    for path in ["/a//b", "/a/.b", "/c/.."] {
        document["paths"][path] = json!({"get": {"responses": {"200": {"description": "ok"}}}});
    }
    let version = plane.version(&document);
    let findings = version["findings"].as_array().expect("findings");
    let found = findings
        .iter()
        .filter(|it| it["rule"] == "weir-path-empty-segment");
    let found: Vec<_> = found.map(|it| (&it["level"], &it["path"])).collect();
    let expected = ["paths./a//b.get", "paths./c/...get"].map(|it| json!(it));
    let error = json!("error");
    assert_eq!(found, expected.each_ref().map(|it| (&error, it)), "{findings:?}");
}

/// A typing error in a right would be found when somebody is refused. Without users, everything is tried only.
#[test]
fn rights_in_parts_that_there_are_not_are_refused_at_their_place() {
    let plane = Plane::start();
    let tried = |method: &str, path: &str, body: Value| {
        plane
            .call(method, path, &body)
            .header("Weir-Dry-Run", "true")
            .make()
    };
    let user = |right: Value| json!({"rights": [{"role": "admin"}, right]});
    for (right, field) in [
        (json!({"role": "operator", "environment": "tset"}), "environment"),
        (json!({"role": "portal-admin", "portal": "main"}), "portal"),
    ] {
        let refused = tried("POST", "/api/v1/users/ann", user(right.clone())).expect(422);
        let place = format!("rights[1].{field}");
        assert_eq!(refused.json()["errors"][0]["path"], place, "{}", refused.body);
        let provider = json!({"issuer": "https://id.test", "client_id": "a", "mappings": [
            {"group": "*", "rights": [{"role": "admin"}]}, {"group": "b", "rights": [right]}]});
        let refused = tried("PUT", "/api/v1/identity-providers/corp", provider).expect(422);
        let place = format!("mappings[1].rights[0].{field}");
        assert_eq!(refused.json()["errors"][0]["path"], place, "{}", refused.body);
    }
    for right in [
        json!({"role": "api-owner", "api": "pets"}),
        json!({"role": "operator", "environment": "default"}),
    ] {
        let taken = tried("POST", "/api/v1/users/ann", user(right)).expect(201);
        assert!(taken.header("warning").is_none());
    }
    // A right in an API may be there before the API, for the user who makes it, and a workspace is known by what lies in it.
    for (right, message) in [
        (
            json!({"role": "api-owner", "api": "pest"}),
            "the API 'pest' does not exist yet",
        ),
        (
            json!({"role": "write", "workspace": "team-a"}),
            "the workspace 'team-a' is empty",
        ),
    ] {
        let taken = tried("POST", "/api/v1/users/ann", user(right)).expect(201);
        let warning = taken.header("warning").expect("a warning");
        assert!(warning.contains(message), "{warning}");
    }
}
