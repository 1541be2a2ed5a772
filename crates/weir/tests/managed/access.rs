//! Users and their rights, on every door; and the audit log.

use crate::support::{Call, STOCK_KEY, Weir, until};
use std::process::{Command, Output};

fn user(weir: &Weir, token: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let url = format!("http://{}", weir.console());
    command
        .arg("user")
        .args(arguments)
        .env_clear()
        .env("WEIR_URL", url);
    if let Some(token) = token {
        command.env("WEIR_TOKEN", token);
    }
    command.output().expect("the binary runs")
}

#[track_caller]
fn token_of(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn users_may_what_their_roles_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--data",
        "data",
        "--kong-admin",
        "127.0.0.1:0",
        "--apisix-admin",
        "127.0.0.1:0",
        "--console",
        "127.0.0.1:0",
    ];
    let weir = Weir::start(folder.path(), &flags);
    let (kong, apisix, console) = (weir.kong(), weir.apisix(), weir.console());
    // Nobody yet: this machine is let in, as in the originals.
    Call::get(&kong, "/services").make().expect(200);
    Call::get(&apisix, "/apisix/admin/routes").make().expect(401);
    Call::get(&apisix, "/apisix/admin/routes")
        .header("X-API-KEY", STOCK_KEY)
        .make()
        .expect(200);
    Call::get(&kong, "/services")
        .header("Sec-Fetch-Site", "cross-site")
        .make()
        .expect(403);
    assert!(
        !user(&weir, None, &["add", "r", "--role", "read"])
            .status
            .success()
    );

    let admin = token_of(&user(&weir, None, &["add", "root", "--role", "admin"]));
    let as_admin = Some(admin.as_str());
    let reader = token_of(&user(&weir, as_admin, &["add", "reader", "--role", "read"]));
    let team = token_of(&user(
        &weir,
        as_admin,
        &["add", "team", "--role", "write", "--workspace", "team"],
    ));
    let gateway = token_of(&user(&weir, as_admin, &["add", "edge", "--role", "gateway"]));
    let names = String::from_utf8_lossy(&user(&weir, as_admin, &["list"]).stdout).into_owned();
    assert_eq!(
        names,
        "edge: gateway in *\nreader: read in *\nroot: admin in *\nteam: write in team\n"
    );

    let service = "{\"name\": \"s\", \"url\": \"http://h\"}";
    let kong_call = |method: &str, path: &str, token: &str| {
        Call::new(method, &kong, path)
            .header("Kong-Admin-Token", token)
            .body(service)
            .make()
            .status
    };
    let apisix_call = |method: &str, token: &str| {
        let body = "{\"nodes\": {\"127.0.0.1:1\": 1}, \"type\": \"roundrobin\"}";
        let call = Call::new(method, &apisix, "/apisix/admin/upstreams/1");
        call.header("X-API-KEY", token).body(body).make().status
    };
    let native_call = |method: &str, path: &str, token: &str| {
        let call = Call::new(method, &console, path).header("Authorization", &format!("Bearer {token}"));
        call.body("{\"url\": \"http://h\"}").make().status
    };
    until("all processes know", || {
        kong_call("GET", "/services", "none") == 401
    });
    for (who, token, expected) in [
        ("admin", &admin, [200, 201, 201, 200, 201, 200]),
        ("reader", &reader, [200, 403, 401, 200, 403, 403]),
        ("team", &team, [403, 403, 401, 401, 403, 403]),
        ("gateway", &gateway, [403, 403, 401, 401, 403, 403]),
    ] {
        let kong_write = kong_call("POST", "/services", token);
        let statuses = [
            kong_call("GET", "/services", token),
            kong_write,
            apisix_call("PUT", token),
            apisix_call("GET", token),
            native_call("PUT", &format!("/api/v1/resources/services/{who}"), token),
            native_call("GET", "/api/v1/audit", token),
        ];
        assert_eq!(statuses, expected, "{who}");
    }
    assert_eq!(
        apisix_call("GET", STOCK_KEY),
        401,
        "keys that everybody knows let nobody in"
    );
    assert_eq!(native_call("GET", "/api/v1/sync", &reader), 403);

    until("the log is written", || {
        let call = Call::get(&console, "/audit").header("Authorization", &format!("Bearer {admin}"));
        let log = call.make().expect(200).json();
        let entries = log["items"].as_array().expect("entries");
        let has = |who: &str, what: &str, status: u64| {
            entries.iter().any(|it| {
                it["who"] == who && it["what"] == what && it["status"] == status && it["from"] == "127.0.0.1"
            })
        };
        has("root", "POST /services", 201)
            && has("reader", "POST /services", 403)
            && has("unknown", "GET /services", 401)
    });
    let history = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "history",
            "--url",
            &format!("http://{console}"),
            "--token",
            &admin,
        ])
        .env_clear()
        .output()
        .expect("the binary runs");
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains("by root (POST /services)"), "{history}");
    assert!(
        !user(&weir, as_admin, &["remove", "root"]).status.success(),
        "somebody has to manage the others"
    );
    assert!(user(&weir, as_admin, &["remove", "reader"]).status.success());
    until("the token is worth nothing", || {
        kong_call("GET", "/services", &reader) == 401
    });
}

#[test]
fn keys_of_the_door_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--apisix-admin",
        "127.0.0.1:0",
        "--apisix-admin-key",
        "a-key",
        "--apisix-viewer-key",
        "v-key",
    ];
    let weir = Weir::start(folder.path(), &flags);
    let call = |method: &str, key: &str| {
        let call = Call::new(method, &weir.apisix(), "/apisix/admin/upstreams/1").header("X-API-KEY", key);
        call.body("{\"nodes\": {\"127.0.0.1:1\": 1}, \"type\": \"roundrobin\"}")
            .make()
    };
    call("PUT", "a-key").expect(201);
    call("GET", "v-key").expect(200);
    let refused = call("PUT", "v-key").expect(401).json();
    assert_eq!(refused["description"], "invalid method for role viewer");
    assert_eq!(
        call("GET", STOCK_KEY).expect(401).json()["description"],
        "wrong apikey"
    );
}
