//! What the console asks of the API, other than single resources: several in one commit, the originals' Admin APIs
//! under its own address, and a refusal if nothing would keep a change.

use crate::support::{Call, Weir, status_of, until, upstream};
use serde_json::{Value, json};

const FLAGS: [&str; 4] = ["--data", "data", "--console", "127.0.0.1:0"];

fn change(weir: &Weir, body: &Value) -> Call {
    Call::new("POST", &weir.console(), "/api/v1/changes").body(&body.to_string())
}

fn commits(weir: &Weir) -> usize {
    let history = Call::get(&weir.console(), "/api/v1/history").make().json();
    history["items"].as_array().map_or(0, Vec::len)
}

fn route(number: usize, is_disabled: bool) -> Value {
    json!({
        "kind": "routes", "name": format!("r{number}"),
        "value": {"service": "s", "paths": [format!("/p{number}")], "disabled": is_disabled}
    })
}

#[test]
fn several_resources_change_in_one_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let weir = Weir::start(folder.path(), &FLAGS);
    let mut all: Vec<Value> = (0..50).map(|number| route(number, false)).collect();
    all.push(
        json!({"kind": "services", "name": "s", "value": {"name": "s", "url": format!("http://{server}")}}),
    );
    let made = change(&weir, &json!({ "changes": all }))
        .make()
        .expect(200)
        .json();
    assert_eq!(made["changes"].as_array().map(Vec::len), Some(51));
    assert_eq!(commits(&weir), 1);
    until("they are served", || {
        status_of(&weir.proxy(), "/p49") == Some(200)
    });
    // Disabled and enabled again: one commit each.
    let tag = made["tag"].as_str().expect("a tag").to_owned();
    let off: Vec<Value> = (0..50)
        .map(|number| {
            let mut one = route(number, true);
            one["if_match"] = tag.as_str().into();
            one
        })
        .collect();
    let off = json!({ "changes": off });
    let dry = change(&weir, &off)
        .header("Weir-Dry-Run", "true")
        .make()
        .expect(200);
    assert_eq!(dry.header("weir-dry-run").as_deref(), Some("true"));
    assert_eq!(dry.json()["revision"], Value::Null);
    assert_eq!(commits(&weir), 1);
    let done = change(&weir, &off)
        .header("Weir-Note", "all%20off")
        .make()
        .expect(200)
        .json();
    assert_eq!(done["changes"][0]["before"]["disabled"], false);
    assert_eq!(commits(&weir), 2);
    until("they are gone", || status_of(&weir.proxy(), "/p49") == Some(404));
    let listed = Call::get(&weir.console(), "/api/v1/view/routes?q=status:disabled&limit=1")
        .make()
        .json();
    assert_eq!(listed["total"], 50);
    // A value may say its name, but no other one.
    for (name, status) in [("r0", 200), ("r1", 422)] {
        let value = json!({"name": name, "service": "s", "paths": ["/p0"], "disabled": true});
        let changes = json!({"changes": [{"kind": "routes", "name": "r0", "value": value}]});
        let answer = change(&weir, &changes)
            .header("Weir-Dry-Run", "true")
            .make()
            .expect(status);
        assert!(
            status == 200 || answer.body.contains("expected 'r0'"),
            "{answer:?}"
        );
    }
    // The versions are others now.
    change(&weir, &off).make().expect(412);
    // All of them, or none.
    let half =
        json!({"changes": [route(0, false), {"kind": "services", "name": "t", "value": {"urll": ""}}]});
    change(&weir, &half).make().expect(422);
    let gone = json!({"changes": [route(0, false), {"kind": "routes", "name": "none", "value": null}]});
    change(&weir, &gone).make().expect(404);
    // What is removed together with what needs it goes.
    change(&weir, &json!({"changes": [route(0, false)]}))
        .make()
        .expect(200);
    let first = json!({"changes": [{"kind": "services", "name": "s", "value": null}]});
    change(&weir, &first).make().expect(422);
    assert_eq!(commits(&weir), 3);
    let mut removed: Vec<Value> = (0..50)
        .map(|number| json!({"kind": "routes", "name": format!("r{number}"), "value": null}))
        .collect();
    removed.push(json!({"kind": "services", "name": "s", "value": null}));
    change(&weir, &json!({ "changes": removed })).make().expect(200);
    assert_eq!(commits(&weir), 4);
}

#[test]
fn files_without_a_store_are_not_changed_here() {
    for (name, text) in [
        (
            "weir.yaml",
            "weir: 1\nservices: [{name: s, url: 'http://127.0.0.1:1', routes: [{name: r, paths: [/a]}]}]\n",
        ),
        (
            "kong.yml",
            "_format_version: '3.0'\nservices: [{name: s, url: 'http://127.0.0.1:1', routes: [{name: r, paths: [/a]}]}]\n",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), text).expect("written");
        let weir = Weir::start(folder.path(), &["-c", name, "--console", "127.0.0.1:0"]);
        let call = |method: &str, path: &str| Call::new(method, &weir.console(), path);
        let put = call("PUT", "/api/v1/resources/services/t").body("{\"url\": \"http://h\"}");
        let refused = put.make().expect(409);
        assert_eq!(refused.json()["type"], "urn:weir:problem:read-only");
        assert!(
            refused.body.contains("--data") && refused.body.contains("--store"),
            "{refused:?}"
        );
        for (method, path, body) in [
            ("POST", "/api/v1/changes", "{\"changes\": []}"),
            (
                "POST",
                "/api/v1/users/alice",
                "{\"rights\": [{\"role\": \"admin\", \"workspace\": \"*\"}]}",
            ),
            ("PUT", "/api/v1/apis/pets", "{}"),
            (
                "POST",
                "/api/v1/dialects/kong/services",
                "{\"url\": \"http://h\"}",
            ),
            ("PUT", "/api/v1/dialects/apisix/apisix/admin/routes/1", "{}"),
            ("DELETE", "/api/v1/alerts/canary:pets%2F1%2Fdefault", ""),
        ] {
            let answer = call(method, path).body(body).make().expect(409);
            assert_eq!(
                answer.json()["type"],
                "urn:weir:problem:read-only",
                "{method} {path}"
            );
        }
        // What only asks is answered.
        let dry = call("PUT", "/api/v1/resources/services/t").body("{\"url\": \"http://h\"}");
        dry.header("Weir-Dry-Run", "true").make().expect(201);
        let state = call("GET", "/api/v1/state").make().expect(200).json();
        assert_eq!(state["read_only"], true);
        let routes = call("GET", "/api/v1/view/routes").make().expect(200).json();
        assert_eq!(routes["items"][0]["name"], "r");
        call("GET", "/ui/").make().expect(200);
        if name == "kong.yml" {
            let kong = call("GET", "/api/v1/dialects/kong/services/s")
                .make()
                .expect(200)
                .json();
            assert_eq!(kong["name"], "s");
        }
    }
}

#[test]
fn the_originals_admin_apis_are_below_the_consoles_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let listeners = [
        "--data",
        "data",
        "--console",
        "127.0.0.1:0",
        "--kong-admin",
        "127.0.0.1:0",
    ];
    let weir = Weir::start(folder.path(), &listeners);
    let console = weir.console();
    let call = |method: &str, path: &str| Call::new(method, &console, &format!("/api/v1/dialects/{path}"));
    // Kong's has a listener, APISIX's has none.
    let made = Call::new("PUT", &weir.kong(), "/services/s")
        .body(&json!({"url": format!("http://{server}/")}).to_string())
        .make()
        .expect(200)
        .json();
    let read = call("GET", "kong/services/s").make().expect(200);
    assert_eq!(read.json(), made);
    call("PUT", "kong/services/s/routes/r")
        .body("{\"paths\": [\"/k\"]}")
        .make()
        .expect(200);
    call("GET", "kong/schemas/routes").make().expect(200);
    until("Kong's route is served", || {
        status_of(&weir.proxy(), "/k") == Some(200)
    });
    let upstream = json!({"type": "roundrobin", "nodes": {server.to_string(): 1}});
    let body = json!({"uri": "/x", "upstream": upstream}).to_string();
    call("PUT", "apisix/apisix/admin/routes/1")
        .body(&body)
        .make()
        .expect(201);
    until("APISIX's route is served", || {
        status_of(&weir.proxy(), "/x") == Some(200)
    });
    // A dry run stores nothing.
    let dry = call("DELETE", "kong/services/s/routes/r")
        .header("Weir-Dry-Run", "true")
        .make();
    assert!(dry.status < 300, "{dry:?}");
    call("GET", "kong/routes/r").make().expect(200);
    // Who may only read, reads.
    let token = |role: &str| {
        let output = weir.ask(None, &["user", "add", role, "--role", role]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    let admin = token("admin");
    let rights = "{\"rights\": [{\"role\": \"read\", \"workspace\": \"*\"}]}";
    let reader = Call::new("POST", &console, "/api/v1/users/reader")
        .header("Authorization", &format!("Bearer {admin}"))
        .body(rights)
        .make()
        .json()["token"]
        .as_str()
        .expect("a token")
        .to_owned();
    let reader = format!("Bearer {reader}");
    call("GET", "kong/services/s").make().expect(401);
    call("GET", "kong/services/s")
        .header("Authorization", &reader)
        .make()
        .expect(200);
    // Each in its original's words.
    for (method, path, status) in [
        ("PATCH", "kong/services/s", 403),
        ("DELETE", "kong/services/s", 403),
        ("PUT", "apisix/apisix/admin/routes/1", 401),
        ("DELETE", "apisix/apisix/admin/routes/1", 401),
    ] {
        let write = call(method, path)
            .header("Authorization", &reader)
            .body("{\"uri\": \"/y\"}");
        write.make().expect(status);
    }
}

#[test]
fn documents_of_versions_are_read_as_they_were_uploaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &FLAGS);
    let call = |method: &str, path: &str| Call::new(method, &weir.console(), path);
    let text = "# ours\nopenapi: 3.1.0\ninfo: {title: Pets, version: 1.0.0}\npaths:\n  /pets:\n    get: {operationId: list, responses: {'200': {description: ok}}}\n";
    call("PUT", "/api/v1/apis/pets").body("{}").make().expect(201);
    call("POST", "/api/v1/apis/pets/versions")
        .body(text)
        .make()
        .expect(201);
    call("POST", "/api/v1/apis/pets/versions/1.0.0/revisions")
        .make()
        .expect(201);
    let newer = text.replace("ours", "newer");
    call("PUT", "/api/v1/apis/pets/versions/1.0.0")
        .body(&newer)
        .make()
        .expect(200);
    let read = |query: &str| {
        call("GET", &format!("/api/v1/apis/pets/versions/1.0.0/spec{query}"))
            .make()
            .expect(200)
            .body
    };
    assert_eq!(read(""), newer);
    assert_eq!(read("?revision=1"), text);
    let all = call("GET", "/api/v1/versions").make().expect(200).json();
    assert_eq!(all["items"][0]["api"], "pets");
    assert_eq!(all["items"][0]["last_revision"], 1);
    assert_eq!(all["items"][0]["draft"]["state"], "changed");
    assert_eq!(all["items"][0]["draft"]["hash"].as_str().map(str::len), Some(64));
}
