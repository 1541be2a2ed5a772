//! Workspaces of Kong's Admin API: a writer of one gets nowhere in another.

use crate::support::{ALL_APIS, Call, Weir, server, until};
use std::net::SocketAddr;

/// An id that the documents of both workspaces take.
const ID: &str = "5f3e1c80-0000-4000-8000-000000000001";

/// A workspace with routes `/NAME/key`, `/NAME/basic` and `/NAME/acl`, and a consumer `alice`, all under the same ids.
fn fill(weir: &Weir, workspace: &str, server: SocketAddr) {
    let put = |path: &str, body: &str| {
        let call = Call::new("PUT", &weir.kong(), &format!("/{workspace}{path}")).body(body);
        let answer = call.make();
        assert!([200, 201].contains(&answer.status), "{path}: {answer:?}");
    };
    put("/services/s", &format!("{{\"url\": \"http://{server}\"}}"));
    for (at, name) in ["key", "basic", "acl"].into_iter().enumerate() {
        let id = format!("5f3e1c80-0000-4000-8000-00000000001{at}");
        let body = format!(
            "{{\"name\": \"{name}\", \"paths\": [\"/{workspace}/{name}\"], \"service\": {{\"name\": \"s\"}}}}"
        );
        put(&format!("/routes/{id}"), &body);
    }
    let plugin = |at: usize, route: &str, body: &str| {
        let route = format!("5f3e1c80-0000-4000-8000-00000000001{route}");
        let body = format!("{{{body}, \"route\": {{\"id\": \"{route}\"}}}}");
        put(
            &format!("/plugins/5f3e1c80-0000-4000-8000-00000000002{at}"),
            &body,
        );
    };
    plugin(0, "0", "\"name\": \"key-auth\"");
    plugin(1, "1", "\"name\": \"basic-auth\"");
    plugin(2, "2", "\"name\": \"key-auth\"");
    plugin(3, "2", "\"name\": \"acl\", \"config\": {\"allow\": [\"admins\"]}");
    // One for all routes of the workspace.
    let origin =
        format!("{{\"name\": \"cors\", \"config\": {{\"origins\": [\"http://{workspace}.test\"]}}}}");
    put(&format!("/plugins/{ID}"), &origin);
    put(&format!("/consumers/{ID}"), "{\"username\": \"alice\"}");
    put(
        &format!("/consumers/{ID}/key-auth/{ID}"),
        &format!("{{\"key\": \"key of {workspace}\"}}"),
    );
    put(
        &format!("/consumers/{ID}/basic-auth/{ID}"),
        &format!("{{\"username\": \"alice\", \"password\": \"{workspace}\"}}"),
    );
    put(&format!("/consumers/{ID}/acls/{ID}"), "{\"group\": \"admins\"}");
}

#[test]
fn a_key_whose_time_is_over_does_not_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    let post = |path: &str, body: &str| {
        let call = Call::new("POST", &weir.kong(), path).body(body);
        call.make().expect(201);
    };
    post("/consumers", "{\"username\": \"c\"}");
    post("/consumers/c/key-auth", "{\"key\": \"short\", \"ttl\": 1}");
    post("/consumers/c/key-auth", "{\"key\": \"long\", \"ttl\": 1000}");
    let history = Call::get(&weir.console(), "/api/v1/history").make().json();
    let revision = history["items"][0]["revision"].to_string();
    let keys = || {
        let listed = Call::get(&weir.kong(), "/key-auths").make().json();
        let keys = listed["data"].as_array().expect("a list").iter();
        let keys = keys.map(|it| it["key"].as_str().expect("a key").to_owned());
        keys.collect::<Vec<_>>()
    };
    until("one has gone", || keys() == ["long"]);
    Call::new("DELETE", &weir.kong(), "/consumers/c")
        .make()
        .expect(204);
    assert!(weir.ask(None, &["rollback", &revision]).status.success());
    until("it is as it was", || !keys().is_empty());
    assert_eq!(keys(), ["long"]);
}

#[test]
fn credentials_and_plugins_are_those_of_their_workspace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, weir) = (
        server(|head| (200, head.to_ascii_lowercase())),
        Weir::start(folder.path(), &ALL_APIS),
    );
    let made = Call::new("POST", &weir.kong(), "/workspaces").body("{\"name\": \"alpha\"}");
    made.make().expect(201);
    // The one that could take something over comes first, and again last.
    for workspace in ["alpha", "default", "alpha"] {
        fill(&weir, workspace, server);
    }
    let call =
        |path: &str, name: &str, value: &str| Call::get(&weir.proxy(), path).header(name, value).make();
    let last = Call::new("PUT", &weir.kong(), "/routes/last").body("{\"paths\": [\"/last\"]}");
    last.make().expect(200);
    until("all is served", || {
        Call::get(&weir.proxy(), "/last").make().status == 503
    });
    let basic = |password: &str| match password {
        "alpha" => "Basic YWxpY2U6YWxwaGE=",
        _ => "Basic YWxpY2U6ZGVmYXVsdA==",
    };
    for own in ["default", "alpha"] {
        for owner in ["default", "alpha"] {
            let expected = if own == owner { 200 } else { 401 };
            let key = format!("key of {owner}");
            for (way, header, value) in [
                ("key", "apikey", key.as_str()),
                ("acl", "apikey", key.as_str()),
                ("basic", "Authorization", basic(owner)),
            ] {
                let answer = call(&format!("/{own}/{way}"), header, value);
                assert_eq!(
                    answer.status, expected,
                    "{own} {way}, credential of {owner}: {answer:?}"
                );
                let allowed = answer.header("access-control-allow-origin");
                assert_eq!(allowed, Some(format!("http://{own}.test")), "{own} {way}");
                if expected == 200 {
                    let consumer_header = format!("x-consumer-id: {ID}");
                    assert!(
                        answer.body.lines().any(|line| line == consumer_header),
                        "{answer:?}"
                    );
                }
            }
        }
    }
    let status = Call::get(&weir.status(), "/status").make().json();
    assert_eq!(status["store"]["skipped"], serde_json::json!([]), "{status}");
}
