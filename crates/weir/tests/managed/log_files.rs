//! Files that logging plugins write: in the operator's folder and nowhere else, no matter who names them.

use crate::support::{ALL_APIS, Call, STOCK_KEY, Weir, until};
use serde_json::{Value, json};
use std::path::Path;

fn kong(weir: &Weir, method: &str, path: &str, body: &Value) -> u16 {
    Call::new(method, &weir.kong(), path)
        .body(&body.to_string())
        .make()
        .status
}

/// A route that answers by itself.
fn answer_all(weir: &Weir) {
    assert_eq!(kong(weir, "PUT", "/routes/r", &json!({"paths": ["/r"]})), 200);
    let plugin = json!({"name": "request-termination", "config": {"status_code": 200}});
    assert_eq!(kong(weir, "POST", "/routes/r/plugins", &plugin), 201);
}

const PLUGIN: &str = "/plugins/00000000-0000-4000-8000-000000000001";

fn log_to(weir: &Weir, workspace: &str, path: &str) -> u16 {
    let config = json!({"path": path, "reopen": true});
    let plugin = json!({"name": "file-log", "config": config});
    kong(weir, "PUT", &format!("{workspace}{PLUGIN}"), &plugin)
}

fn dropped(weir: &Weir) -> u64 {
    let text = Call::get(&weir.status(), "/metrics").make().body;
    let lines = text.lines().filter(|line| {
        line.starts_with("weir_log_entries_total") && line.contains("\"file\"") && line.contains("dropped")
    });
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

#[test]
fn files_are_written_in_the_folder_for_them_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    answer_all(&weir);
    let call = || Call::get(&weir.proxy(), "/r").make().status;
    until("the route is served", || call() == 200);
    let logs = folder.path().join("data/logs");
    for (path, file) in [
        ("calls.log", "calls.log"),
        ("logs/of/calls.log", "logs/of/calls.log"),
        (logs.join("absolute.log").to_str().expect("text"), "absolute.log"),
    ] {
        assert_eq!(log_to(&weir, "", path), 200, "{path}");
        until("it is written", || call() == 200 && size(&logs.join(file)) > 0);
    }
    // Elsewhere nothing is written, and that is counted.
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "kept").expect("written");
    std::fs::write(logs.join("foreign.log"), "kept").expect("written");
    std::os::unix::fs::symlink(&victim, logs.join("link.log")).expect("a link");
    for path in [victim.to_str().expect("text"), "foreign.log", "link.log"] {
        let before = dropped(&weir);
        assert_eq!(log_to(&weir, "", path), 200, "{path}");
        until("entries are dropped", || call() == 200 && dropped(&weir) > before);
        for file in [&victim, &logs.join("foreign.log")] {
            assert_eq!(std::fs::read_to_string(file).expect("text"), "kept", "{path}");
        }
    }
    for path in ["../store.db", "/var/../etc/passwd", ".weir-log-files"] {
        assert_eq!(log_to(&weir, "", path), 400, "{path}");
        let plugin = json!({"file-logger": {"path": path}});
        let route = json!({"uri": "/x", "plugins": plugin, "upstream": {"nodes": {"127.0.0.1:1": 1}}});
        let put = Call::new("PUT", &weir.apisix(), "/apisix/admin/routes/1").header("X-API-KEY", STOCK_KEY);
        put.body(&route.to_string()).make().expect(400);
    }
    assert_eq!(call(), 200);
}

#[test]
fn files_are_not_for_workspaces() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    assert_eq!(kong(&weir, "POST", "/workspaces", &json!({"name": "team"})), 201);
    assert_eq!(log_to(&weir, "/team", "calls.log"), 400);
    assert_eq!(log_to(&weir, "/team", "/dev/stdout"), 200);
    assert_eq!(log_to(&weir, "", "calls.log"), 200);
}

#[test]
fn the_folder_is_not_that_of_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [&ALL_APIS[..], &["--log-dir", "data"]].concat();
    let output = Weir::command(folder.path(), &flags)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_a_store_holds_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    answer_all(&weir);
    let url = format!("http://{}", weir.console());
    let data = folder.path().join("data");
    let store = format!("sqlite:{}", data.display());
    let data = data.to_str().expect("text");
    let places = [
        ["--control", url.as_str()],
        ["--data", data],
        ["--store", store.as_str()],
    ];
    for place in places {
        let output = weir.ask(None, &["explain", place[0], place[1], "http://localhost/r"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{place:?}: {output:?}");
        assert!(
            text.contains("Route r (kong)") && text.contains("request-termination"),
            "{place:?}: {text}"
        );
    }
    let nowhere = weir.ask(None, &["explain", "--data", "/nowhere", "http://localhost/r"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("there is no store in /nowhere"));
}

#[test]
fn the_ready_line_names_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    assert!(
        weir.ready.contains("Weir's API on http://") && weir.ready.contains("the console on http://"),
        "{}",
        weir.ready
    );
}

/// A Weir with users, and the tokens of one who may write everywhere and of one who may write in one workspace.
fn with_writers(folder: &Path) -> (Weir, String, String) {
    let weir = Weir::start(folder, &ALL_APIS);
    let add = |token: Option<&str>, arguments: &[&str]| {
        let output = weir.ask(token, &[&["user", "add"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let root = add(None, &["root", "--role", "admin"]);
    let everywhere = add(Some(&root), &["everywhere", "--role", "write"]);
    let confined = add(
        Some(&root),
        &["confined", "--role", "write", "--workspace", "default"],
    );
    (weir, everywhere, confined)
}

#[test]
fn files_are_not_for_who_may_write_in_one_workspace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (weir, everywhere, confined) = with_writers(folder.path());
    for (token, path, statuses) in [
        (&confined, "calls.log", [403, 403]),
        (&confined, "/dev/stdout", [200, 201]),
        (&everywhere, "calls.log", [200, 200]),
    ] {
        let plugin = json!({"name": "file-log", "config": {"path": path}});
        let put = Call::new("PUT", &weir.kong(), PLUGIN).header("Kong-Admin-Token", token);
        put.body(&plugin.to_string()).make().expect(statuses[0]);
        let route = json!({"uri": "/x", "plugins": {"file-logger": {"path": path}}, "upstream": {"nodes": {"127.0.0.1:1": 1}}});
        let put = Call::new("PUT", &weir.apisix(), "/apisix/admin/routes/1").header("X-API-KEY", token);
        put.body(&route.to_string()).make().expect(statuses[1]);
    }
}

#[test]
fn addresses_of_vaults_are_not_for_who_may_write_in_one_workspace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (weir, everywhere, confined) = with_writers(folder.path());
    let address =
        json!({"name": "hcv", "prefix": "far", "config": {"host": "127.0.0.1", "port": 1, "token": "t"}});
    let environment = json!({"name": "env", "prefix": "near", "config": {"prefix": "A_"}});
    let vault = json!({"uri": "http://127.0.0.1:1", "prefix": "kv/apisix", "token": "t"});
    for (token, statuses) in [(&confined, [403, 200, 403]), (&everywhere, [200, 200, 201])] {
        for (prefix, body, status) in [
            ("far", &address, statuses[0]),
            ("near", &environment, statuses[1]),
        ] {
            let put = Call::new("PUT", &weir.kong(), &format!("/vaults/{prefix}"));
            let put = put.header("Kong-Admin-Token", token).body(&body.to_string());
            put.make().expect(status);
        }
        let put = Call::new("PUT", &weir.apisix(), "/apisix/admin/secrets/vault/1");
        let put = put.header("X-API-KEY", token).body(&vault.to_string());
        put.make().expect(statuses[2]);
    }
    let log = json!({"tcp": {"host": "127.0.0.1", "port": 1}});
    for (token, status) in [(&confined, 403), (&everywhere, 201)] {
        let put = Call::new(
            "PUT",
            &weir.apisix(),
            "/apisix/admin/plugin_metadata/error-log-logger",
        );
        let put = put.header("X-API-KEY", token).body(&log.to_string());
        put.make().expect(status);
    }
    // One that is there can be given another address only by who may write everywhere; anyone may do without it.
    let change = |method: &str, body: &Value| {
        let call = Call::new(method, &weir.kong(), "/vaults/far").header("Kong-Admin-Token", &confined);
        call.body(&body.to_string()).make().status
    };
    assert_eq!(change("PATCH", &json!({"config": {"host": "127.0.0.2"}})), 403);
    assert_eq!(change("DELETE", &Value::Null), 204);
}
