//! Kong's `/proxy-cache`: lists and purges what gateways keep, at the gateway itself and through a control plane.

use crate::support::{Answer, Call, Weir, status_of, until, upstream};
use serde_json::json;

const CACHE: &str = "{\"name\": \"proxy-cache\", \"config\": {\"strategy\": \"memory\", \"content_type\": [\"text/plain\"], \
                     \"cache_ttl\": 300}}";

/// A route `/a` whose responses are kept.
fn configure(kong: &str) {
    let server = upstream("kept");
    let service = json!({"url": format!("http://{server}")}).to_string();
    for (method, path, body, status) in [
        ("PUT", "/services/s", service.as_str(), 200),
        ("PUT", "/services/s/routes/r", "{\"paths\": [\"/a\"]}", 200),
        ("PUT", "/plugins/7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b4d", CACHE, 200),
    ] {
        Call::new(method, kong, path).body(body).make().expect(status);
    }
}

fn call(proxy: &str) -> Answer {
    Call::get(proxy, "/a").make().expect(200)
}

fn is(answer: &Answer, word: &str) -> bool {
    answer.header("X-Cache-Status").as_deref() == Some(word)
}

#[test]
fn responses_are_listed_and_purged() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &["--kong-admin", "127.0.0.1:0"]);
    let (kong, proxy) = (weir.kong(), weir.proxy());
    configure(&kong);
    until("a response is kept", || {
        status_of(&proxy, "/a") == Some(200) && is(&call(&proxy), "Hit")
    });
    let key = call(&proxy).header("X-Cache-Key").expect("a key");
    let plugin = "/proxy-cache/7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b4d/caches";
    let other = "/proxy-cache/00000000-1b1c-4a6e-9a44-3a9b8f6e6b4d/caches";
    for path in [format!("/proxy-cache/{key}"), format!("{plugin}/{key}")] {
        let entry = Call::get(&kong, &path).make().expect(200).json();
        assert_eq!(entry["status"], 200, "{path}");
        assert_eq!(
            (&entry["body"], &entry["body_len"], &entry["ttl"]),
            (&json!("kept"), &json!(4), &json!(300)),
            "{path}"
        );
        assert_eq!(entry["headers"]["X-Cache-Key"], *key, "{path}");
    }
    for (method, path, status) in [
        ("GET", format!("/proxy-cache/{}", "0".repeat(64)), 404),
        ("GET", "/proxy-cache/123".to_owned(), 404),
        ("DELETE", "/proxy-cache/123".to_owned(), 404),
        ("GET", format!("{other}/{key}"), 404),
        ("DELETE", format!("{other}/{key}"), 404),
        ("GET", "/proxy-cache".to_owned(), 405),
        ("POST", format!("/proxy-cache/{key}"), 405),
        ("GET", "/proxy-cache/a/b".to_owned(), 404),
    ] {
        Call::new(method, &kong, &path).make().expect(status);
    }
    assert!(is(&call(&proxy), "Hit"), "nothing was forgotten by all that");
    let heard = || Call::get(&weir.status(), "/status").make().json()["store"]["revision"].as_u64();
    for path in [
        format!("/proxy-cache/{key}"),
        format!("{plugin}/{key}"),
        "/proxy-cache".to_owned(),
    ] {
        let before = heard();
        Call::new("DELETE", &kong, &path)
            .header("Weir-Dry-Run", "true")
            .make()
            .expect(204);
        assert!(is(&call(&proxy), "Hit"), "{path} was only tried");
        Call::new("DELETE", &kong, &path).make().expect(204);
        assert!(is(&call(&proxy), "Miss"), "{path}");
        // The order through the store arrives here too, a little later.
        until("it is heard", || heard() > before);
        until("it is kept again", || is(&call(&proxy), "Hit"));
    }
}

/// Each workspace lists, forgets and counts what is its own.
#[test]
fn a_workspace_reaches_no_other_ones_responses_and_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &["--kong-admin", "127.0.0.1:0"]);
    let (kong, proxy) = (weir.kong(), weir.proxy());
    let server = upstream("kept");
    let service = json!({"url": format!("http://{server}")}).to_string();
    let limits = json!({"name": "rate-limiting-advanced", "config": {"limit": [1], "window_size": [3600],
        "namespace": "shared", "strategy": "local", "sync_rate": -1, "identifier": "ip"}});
    let put = |path: &str, body: &str| {
        let answer = Call::new("PUT", &kong, path).body(body).make();
        assert!([200, 201].contains(&answer.status), "{path}: {answer:?}");
    };
    let mut last: u64 = 0;
    for workspace in ["default", "a", "b"] {
        if workspace != "default" {
            put(
                &format!("/workspaces/{workspace}"),
                &json!({"name": workspace}).to_string(),
            );
        }
        put(&format!("/{workspace}/services/s"), &service);
        for (name, plugin) in [("kept", CACHE), ("limited", &limits.to_string())] {
            let route = json!({"paths": [format!("/{workspace}/{name}")]}).to_string();
            put(&format!("/{workspace}/services/s/routes/{name}"), &route);
            Call::new("POST", &kong, &format!("/{workspace}/routes/{name}/plugins"))
                .body(plugin)
                .make()
                .expect(201);
        }
        let metrics = json!({"name": "prometheus", "config": {"status_code_metrics": true}}).to_string();
        let answer = Call::new("POST", &kong, &format!("/{workspace}/plugins"))
            .body(&metrics)
            .make()
            .expect(201);
        let revision = answer.header("ETag").expect("a revision");
        last = revision.trim_matches('"').parse().expect("a number");
    }
    until("all of it is served", || {
        let status = Call::get(&weir.status(), "/status").make().json();
        status["store"]["revision"].as_u64() >= Some(last)
    });
    let mut keys = Vec::new();
    for workspace in ["default", "a", "b"] {
        let path = format!("/{workspace}/kept");
        let get = || Call::get(&proxy, &path).make();
        until("a response is kept", || {
            let answer = get();
            answer.status == 200 && is(&answer, "Hit")
        });
        keys.push(get().header("X-Cache-Key").expect("a key"));
        let limited = format!("/{workspace}/limited");
        assert_eq!(status_of(&proxy, &limited), Some(200), "{workspace}");
        assert_eq!(status_of(&proxy, &limited), Some(429), "{workspace}");
    }
    for (at, workspace) in ["default", "a", "b"].into_iter().enumerate() {
        for (other, key) in keys.iter().enumerate() {
            let path = format!("/{workspace}/proxy-cache/{key}");
            let status = if at == other { 200 } else { 404 };
            Call::get(&kong, &path).make().expect(status);
            if at != other {
                Call::new("DELETE", &kong, &path).make().expect(404);
            }
        }
    }
    Call::new("DELETE", &kong, "/a/proxy-cache").make().expect(204);
    for (path, word) in [("/default/kept", "Hit"), ("/b/kept", "Hit"), ("/a/kept", "Miss")] {
        let answer = Call::get(&proxy, path).make();
        assert!(is(&answer, word), "{path}: {answer:?}");
    }
    let exposition = Call::get(&kong, "/a/metrics").make().expect(200).body;
    let samples: Vec<&str> = exposition.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!samples.is_empty(), "{exposition}");
    assert!(
        samples.iter().all(|it| it.contains("workspace=\"a\"")),
        "{exposition}"
    );
}

#[test]
fn a_control_plane_passes_on_what_is_to_be_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let any = "127.0.0.1:0";
    let plane = Weir::start(
        folder.path(),
        &[
            "--role",
            "control",
            "--data",
            "control",
            "--console",
            any,
            "--kong-admin",
            any,
        ],
    );
    configure(&plane.kong());
    let url = format!("http://{}", plane.console());
    let gateway = Weir::start(folder.path(), &["--role", "gateway", "--control", &url]);
    let proxy = gateway.proxy();
    let is_kept = || status_of(&proxy, "/a") == Some(200) && is(&call(&proxy), "Hit");
    until("a response is kept", is_kept);
    let key = call(&proxy).header("X-Cache-Key").expect("a key");
    let path = format!("/proxy-cache/{key}");
    Call::get(&plane.kong(), &path).make().expect(404);
    for path in [path.as_str(), "/proxy-cache"] {
        until("a response is kept", is_kept);
        Call::new("DELETE", &plane.kong(), path).make().expect(204);
        until("it is forgotten", || is(&call(&proxy), "Miss"));
    }
}
