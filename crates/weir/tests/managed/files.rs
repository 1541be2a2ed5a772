//! Admin APIs over files: they read, and replace what is served as a whole until the file changes.

use crate::support::{Call, STOCK_KEY, Weir, status_of, until, upstream};
use std::path::Path;

fn kong_yml(server: std::net::SocketAddr, path: &str) -> String {
    format!(
        "_format_version: '3.0'\nservices:\n- name: s\n  url: http://{server}\n  routes: [{{name: r, paths: [{path}]}}]\n"
    )
}

fn apisix_yaml(server: std::net::SocketAddr, path: &str) -> String {
    format!(
        "routes:\n- id: r\n  uri: {path}\n  upstream: {{type: roundrobin, nodes: {{'{server}': 1}}}}\n#END\n"
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join("new"), text).expect("written");
    std::fs::rename(folder.join("new"), folder.join(name)).expect("renamed");
}

/// With a store in addition to the file, and with a store that lasts.
#[test]
fn a_kong_yml_has_an_admin_api() {
    for more in [&[][..], &["--data", "data", "--console", "127.0.0.1:0"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = upstream("a");
        write(folder.path(), "kong.yml", &kong_yml(server, "/a"));
        let flags = [&["-c", "kong.yml", "--kong-admin", "127.0.0.1:0"], more].concat();
        let weir = Weir::start(folder.path(), &flags);
        let is_served = |path: &str| status_of(&weir.proxy(), path) == Some(200);
        assert!(is_served("/a"), "{more:?}");
        let get = |path: &str| Call::get(&weir.kong(), path).make().expect(200).json();
        assert_eq!(get("/services/s/routes")["data"][0]["name"], "r");
        assert_eq!(get("/")["configuration"]["database"], "off");
        let refusal = Call::new("POST", &weir.kong(), "/services")
            .body("{\"url\": \"http://h\"}")
            .make();
        assert_eq!(
            refusal.expect(405).json()["message"],
            "cannot create 'services' entities when not using a database"
        );
        // A configuration takes the file's place, …
        let body = serde_json::json!({ "config": kong_yml(server, "/b") }).to_string();
        let post = || {
            Call::new("POST", &weir.kong(), "/config?check_hash=1")
                .body(&body)
                .make()
        };
        post().expect(201);
        // … and is served once the call is answered, …
        assert!(is_served("/b") && !is_served("/a"), "{more:?}");
        post().expect(304);
        assert_eq!(get("/routes")["data"][0]["paths"][0], "/b");
        let wrong = "{\"_format_version\": \"3.0\", \"services\": [{\"name\": \"s\"}]}";
        let refusal = Call::new("POST", &weir.kong(), "/config?flatten_errors=1")
            .body(wrong)
            .make();
        assert_eq!(
            refusal.expect(400).json()["flattened_errors"][0]["entity_name"],
            "s"
        );
        assert!(is_served("/b"));
        // … until that changes.
        write(folder.path(), "kong.yml", &kong_yml(server, "/c"));
        until("the file counts again", || {
            is_served("/c") && !is_served("/b") && get("/routes")["data"][0]["paths"][0] == "/c"
        });
    }
}

/// If another program has the usual address of Kong's Admin API, Weir opens none; calls are served all the same.
#[test]
fn two_gateways_serve_a_kong_yml_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    write(folder.path(), "kong.yml", &kong_yml(server, "/a"));
    let both = [0, 1].map(|_| Weir::start(folder.path(), &["-c", "kong.yml"]));
    for weir in &both {
        assert_eq!(status_of(&weir.proxy(), "/a"), Some(200));
    }
    let with_admin = both.iter().filter(|it| it.ready.contains("Kong's Admin API"));
    assert!(with_admin.count() <= 1, "one program has the address");
}

#[test]
fn an_apisix_yaml_has_the_admin_api_of_the_standalone_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    write(folder.path(), "apisix.yaml", &apisix_yaml(server, "/a"));
    let weir = Weir::start(
        folder.path(),
        &["-c", "apisix.yaml", "--apisix-admin", "127.0.0.1:0"],
    );
    let is_served = |path: &str| status_of(&weir.proxy(), path) == Some(200);
    let call =
        |method: &str, path: &str| Call::new(method, &weir.apisix(), path).header("X-API-KEY", STOCK_KEY);
    let configs = || call("GET", "/apisix/admin/configs").make().expect(200);
    assert!(is_served("/a"));
    assert_eq!(configs().json()["routes"][0]["uri"], "/a");
    assert_eq!(
        call("GET", "/apisix/admin/routes").make().expect(200).json()["total"],
        1
    );
    assert_eq!(
        call("GET", "/v1/routes").make().expect(200).json()[0]["value"]["uri"],
        "/a"
    );
    for write in [
        "PUT /apisix/admin/routes/1",
        "POST /apisix/admin/routes",
        "DELETE /apisix/admin/routes/r",
    ] {
        let (method, path) = write.split_once(' ').expect("a call");
        call(method, path).body("{}").make().expect(404);
    }
    let whole = |path: &str, version: u32| {
        let route = serde_json::json!({
            "id": "r", "uri": path, "modifiedIndex": version, "upstream": {"type": "roundrobin", "nodes": {server.to_string(): 1}}
        });
        serde_json::json!({ "routes": [route], "routes_conf_version": version }).to_string()
    };
    let put = |digest: &str, body: &str| {
        let call = call("PUT", "/apisix/admin/configs").header("X-Digest", digest);
        call.body(body).make()
    };
    put("1", &whole("/b", 5)).expect(202);
    until("it is served", || is_served("/b") && !is_served("/a"));
    put("1", &whole("/b", 5)).expect(204);
    assert_eq!(configs().header("X-Digest").as_deref(), Some("1"));
    assert_eq!(put("2", &whole("/x", 4)).status, 400);
    assert_eq!(configs().json()["routes"][0]["uri"], "/b");
    call("POST", "/apisix/admin/configs/validate")
        .body(&whole("/x", 6))
        .make()
        .expect(200);
    write(folder.path(), "apisix.yaml", &apisix_yaml(server, "/c"));
    until("the file counts again", || is_served("/c") && !is_served("/b"));
    // The Admin API shows it once it is served.
    until("it is shown", || configs().json()["routes"][0]["uri"] == "/c");
    put("1", &whole("/d", 9)).expect(202);
    until("it is served", || is_served("/d"));
}

/// With and without Admin APIs, `/status` has the same notes about files, and one more about what has replaced one.
#[test]
fn the_status_has_the_notes_about_files() {
    let server = upstream("a");
    let kong = kong_yml(server, "/a") + "plugins: [{name: pre-function, config: {access: [return]}}]\n";
    let apisix = apisix_yaml(server, "/a").replace("#END", "plugin_metadata: [{id: no-such-plugin}]\n#END");
    for (file, text, admin, dialect) in [
        ("kong.yml", &kong, "--console", "pre-function"),
        ("kong.yml", &kong, "--kong-admin", "pre-function"),
        ("apisix.yaml", &apisix, "--apisix-admin", "no-such-plugin"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), file, text);
        let flags = ["-c", file, admin, "127.0.0.1:0"];
        let notes_of = |weir: &Weir| {
            let status = Call::get(&weir.status(), "/status").make().json();
            let notes = status["configuration"]["notes"].as_array().expect("a list");
            notes
                .iter()
                .map(|it| it.as_str().expect("a text").to_owned())
                .collect::<Vec<_>>()
        };
        let alone = notes_of(&Weir::start(folder.path(), &flags[..2]));
        assert!(alone.iter().any(|it| it.contains(dialect)), "{alone:?}");
        let weir = Weir::start(folder.path(), &flags);
        assert_eq!(notes_of(&weir), alone, "{flags:?}");
        match admin {
            "--kong-admin" => {
                let body = serde_json::json!({ "config": kong_yml(server, "/b") }).to_string();
                Call::new("POST", &weir.kong(), "/config")
                    .body(&body)
                    .make()
                    .expect(201);
            }
            "--apisix-admin" => {
                let put =
                    Call::new("PUT", &weir.apisix(), "/apisix/admin/configs").header("X-API-KEY", STOCK_KEY);
                put.header("X-Digest", "1")
                    .body("{\"routes\": []}")
                    .make()
                    .expect(202);
            }
            _ => continue,
        }
        until("it is noted", || {
            notes_of(&weir)
                .iter()
                .any(|it| it.contains("an Admin API has replaced"))
        });
        write(folder.path(), file, text);
        until("the file counts again", || notes_of(&weir) == alone);
    }
}

/// Routes that get no calls are named in the notes.
#[test]
fn routes_without_a_listener_are_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = "- name: t\n  url: tcp://127.0.0.1:1\n  routes:\n  - {name: stream, protocols: [tcp], destinations: [{port: 9000}]}\n\
                - name: u\n  url: http://127.0.0.1:1\n  routes: [{name: secure, protocols: [https], paths: [/u]}]\n";
    let text = kong_yml(upstream("a"), "/a") + more;
    write(folder.path(), "kong.yml", &text);
    let weir = Weir::start(folder.path(), &["-c", "kong.yml"]);
    let status = Call::get(&weir.status(), "/status").make().json();
    assert_eq!(
        status["configuration"]["notes"],
        serde_json::json!([
            "warning: no listener has calls for 'secure': give --listen-tls",
            "warning: no listener has calls for 'stream': give --listen-stream with their protocols",
        ])
    );
}

/// A running Weir explains calls by its files, too. A store alone is not taken for both.
#[test]
fn what_is_served_from_files_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "kong.yml", &kong_yml(upstream("a"), "/a"));
    let flags = ["-c", "kong.yml", "--console", "127.0.0.1:0", "--data", "data"];
    let weir = Weir::start(folder.path(), &flags);
    let url = format!("http://{}", weir.console());
    let file = folder.path().join("kong.yml");
    let (file, data) = (file.to_str().expect("text"), folder.path().join("data"));
    let data = data.to_str().expect("text");
    for (flags, code, stdout_part, stderr_part) in [
        (&["--control", url.as_str()][..], 0, "Route r (kong)", ""),
        (&["--control", &url, "--json"], 0, "\"name\": \"r\"", ""),
        (
            &["--control", &url, "-c", file],
            0,
            "Route r (kong)",
            "the files of the running Weir are used",
        ),
        (
            &["--control", &url, "--environment", "a,b"],
            2,
            "",
            "the environment 'a' does not exist",
        ),
        (
            &["--data", data, "-c", file],
            2,
            "",
            "a store is explained without files: leave out -c",
        ),
    ] {
        let output = weir.ask(
            None,
            &[&["explain", "http://h.test/a", "-H", "x-a: 1"], flags].concat(),
        );
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {stdout}{stderr}");
        assert!(
            stdout.contains(stdout_part) && stderr.contains(stderr_part),
            "{flags:?}: {stdout}{stderr}"
        );
    }
}

/// The same of a running Weir as of the file alone: the plugin that is written is named, not only what stands for it.
#[test]
fn plugins_that_are_not_served_are_named_by_a_running_weir() {
    let folder = tempfile::tempdir().expect("a folder");
    let file =
        kong_yml(upstream("a"), "/a") + "plugins: [{name: pre-function, config: {access: [return]}}]\n";
    write(folder.path(), "kong.yml", &file);
    let flags = ["-c", "kong.yml", "--console", "127.0.0.1:0", "--data", "data"];
    let weir = Weir::start(folder.path(), &flags);
    let url = format!("http://{}", weir.console());
    let file = folder.path().join("kong.yml");
    for source in [["--control", &url], ["-c", file.to_str().expect("text")]] {
        let output = weir.ask(None, &["explain", "http://h.test/a", source[0], source[1]]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        for part in [
            ": pre-function there is not served, so calls are refused\n",
            "answers this call with 503",
        ] {
            assert!(stdout.contains(part), "{source:?}: {stdout}");
        }
    }
}

/// The page for beginners of APISIX shows calls without a key, to a server whose configuration asks for none.
#[test]
fn apisix_keys_are_those_of_its_configuration() {
    let route = "{\"id\": \"getting-started-ip\", \"uri\": \"/ip\", \"upstream\": {\"type\": \"roundrobin\", \"nodes\": {\"127.0.0.1:1\": 1}}}";
    let admin_key =
        "admin_key: [{name: admin, key: a-secret, role: admin}, {name: viewer, key: a-view, role: viewer}]";
    let put = |weir: &Weir, key: Option<&str>| {
        let call = Call::new("PUT", &weir.apisix(), "/apisix/admin/routes");
        let call = key
            .into_iter()
            .fold(call, |call, key| call.header("X-API-KEY", key));
        call.body(route).make().status
    };
    for (configured, key, status) in [
        ("admin_key_required: false", None, 201),
        (admin_key, None, 401),
        (admin_key, Some(STOCK_KEY), 401),
        (admin_key, Some("a-view"), 401),
        (admin_key, Some("a-secret"), 201),
        (
            "admin_key: [{name: admin, key: '', role: admin}]",
            Some(STOCK_KEY),
            201,
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write(
            folder.path(),
            "config.yaml",
            &format!("deployment:\n  role: traditional\n  admin:\n    {configured}\n"),
        );
        let flags = ["--apisix-config", "config.yaml", "--apisix-admin", "127.0.0.1:0"];
        let weir = Weir::start(folder.path(), &flags);
        assert_eq!(put(&weir, key), status, "{configured} {key:?}");
    }
}
