//! Users and their rights, on every dialect; and the audit log.

use crate::support::{ALL_APIS, Call, STOCK_KEY, Weir, until};
use std::process::{Command, Output};

fn user(weir: &Weir, token: Option<&str>, arguments: &[&str]) -> Output {
    weir.ask(token, &[&["user"][..], arguments].concat())
}

#[track_caller]
fn token_of(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn kong(weir: &Weir, method: &str, path: &str, token: &str) -> u16 {
    Call::new(method, &weir.kong(), path)
        .header("Kong-Admin-Token", token)
        .body("{\"name\": \"s\", \"url\": \"http://h\"}")
        .make()
        .status
}

fn apisix(weir: &Weir, method: &str, token: &str) -> u16 {
    Call::new(method, &weir.apisix(), "/apisix/admin/upstreams/1")
        .header("X-API-KEY", token)
        .body("{\"nodes\": {\"127.0.0.1:1\": 1}, \"type\": \"roundrobin\"}")
        .make()
        .status
}

fn native(weir: &Weir, method: &str, path: &str, token: &str) -> u16 {
    Call::new(method, &weir.console(), path)
        .header("Authorization", &format!("Bearer {token}"))
        .body("{\"url\": \"http://h\"}")
        .make()
        .status
}

#[test]
fn without_users_this_machine_is_let_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    assert_eq!(kong(&weir, "GET", "/services", ""), 200);
    assert_eq!(apisix(&weir, "PUT", STOCK_KEY), 201);
    Call::get(&weir.apisix(), "/apisix/admin/routes")
        .make()
        .expect(401);
    Call::get(&weir.kong(), "/services")
        .header("Sec-Fetch-Site", "cross-site")
        .make()
        .expect(403);
    let added = user(&weir, None, &["add", "r", "--role", "read"]);
    assert!(!added.status.success(), "the first has to be an admin");
}

#[test]
fn users_may_what_their_roles_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    let admin = token_of(&user(&weir, None, &["add", "root", "--role", "admin"]));
    let as_admin = Some(admin.as_str());
    let add = |arguments: &[&str]| token_of(&user(&weir, as_admin, arguments));
    let reader = add(&["add", "reader", "--role", "read"]);
    let team = user(
        &weir,
        as_admin,
        &["add", "team", "--role", "write", "--workspace", "team"],
    );
    let warned = String::from_utf8_lossy(&team.stderr).into_owned();
    assert_eq!(warned, "weir: warning: the workspace 'team' is empty\n");
    let team = token_of(&team);
    let gateway = add(&["add", "edge", "--role", "gateway"]);
    let names = String::from_utf8_lossy(&user(&weir, as_admin, &["list"]).stdout).into_owned();
    assert_eq!(
        names,
        "edge: gateway in *\nreader: read in *\nroot: admin in *\nteam: write in team\n"
    );
    for (who, token, expected) in [
        ("admin", &admin, [201, 200, 201, 200, 201, 200]),
        ("reader", &reader, [403, 200, 401, 200, 403, 403]),
        ("team", &team, [403, 403, 401, 401, 403, 403]),
        ("gateway", &gateway, [403, 403, 401, 401, 403, 403]),
        ("stranger", &STOCK_KEY.to_owned(), [401, 401, 401, 401, 401, 401]),
    ] {
        let statuses = [
            kong(&weir, "POST", "/services", token),
            kong(&weir, "GET", "/services", token),
            apisix(&weir, "PUT", token),
            apisix(&weir, "GET", token),
            native(&weir, "PUT", &format!("/api/v1/resources/services/{who}"), token),
            native(&weir, "GET", "/api/v1/audit", token),
        ];
        assert_eq!(statuses, expected, "{who}");
    }
    assert_eq!(native(&weir, "GET", "/api/v1/sync", &reader), 403);
    who_did_what_is_recorded(&weir, &admin);
    let removed = user(&weir, as_admin, &["remove", "root"]);
    assert!(!removed.status.success(), "somebody has to manage the others");
    assert!(user(&weir, as_admin, &["remove", "reader"]).status.success());
    until("the token is worth nothing", || {
        kong(&weir, "GET", "/services", &reader) == 401
    });
}

fn who_did_what_is_recorded(weir: &Weir, admin: &str) {
    until("the log is written", || {
        let call = Call::get(&weir.console(), "/audit").header("Authorization", &format!("Bearer {admin}"));
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
    let url = format!("http://{}", weir.console());
    let history = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["history", "--url", &url, "--token", admin])
        .env_clear()
        .output()
        .expect("the binary runs");
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains("by root (POST /services)"), "{history}");
}

#[test]
fn keys_of_the_admin_api_itself() {
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
