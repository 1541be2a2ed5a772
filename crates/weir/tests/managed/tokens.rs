//! Tokens of Kong's `oauth2` that calls have got: all gateways of a store know them, they outlive a restart, and the
//! Admin API lists and removes them.

use crate::cluster::Etcd;
use crate::ports::free_port;
use crate::support::{Answer, Call, Weir, status_of, until, upstream};
use serde_json::{Value, json};
use std::path::Path;

/// A text that looks like a token and belongs to none.
const UNKNOWN: &str = "Unknown0Unknown0Unknown0Unknown0";
/// Another one. A gateway remembers for a while which tokens the store did not know.
const NEVER_ASKED_FOR: &str = "Another0Another0Another0Another0";

/// A control plane with an application of a consumer, and two gateways.
struct Group {
    plane: Weir,
    gateways: [Weir; 2],
}

fn gateway(folder: &Path, store: &str, name: &str) -> Weir {
    Weir::start(
        folder,
        &[
            "--role", "gateway", "--store", store, "--data", name, "--name", name,
        ],
    )
}

impl Group {
    fn start(folder: &Path, store: &str) -> Self {
        let plane = Weir::start(
            folder,
            &[
                "--role",
                "control",
                "--store",
                store,
                "--kong-admin",
                "127.0.0.1:0",
                "--console",
                "127.0.0.1:0",
            ],
        );
        let server = upstream("a").to_string();
        for (method, path, body) in [
            ("PUT", "/services/s", json!({"url": format!("http://{server}")})),
            ("PUT", "/services/s/routes/r", json!({"paths": ["/api"]})),
            ("PUT", "/consumers/bob", json!({})),
            (
                "POST",
                "/consumers/bob/oauth2",
                json!({"name": "app", "client_id": "app", "client_secret": "s", "redirect_uris": ["http://a.test/cb"]}),
            ),
            (
                "POST",
                "/services/s/plugins",
                json!({"name": "oauth2", "config": {
                    "enable_authorization_code": true, "enable_client_credentials": true, "provision_key": "p",
                    "accept_http_if_already_terminated": true, "scopes": ["email"]}}),
            ),
        ] {
            let answer = Call::new(method, &plane.kong(), path)
                .body(&body.to_string())
                .make();
            assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        }
        let gateways = ["a", "b"].map(|name| gateway(folder, store, name));
        for gateway in &gateways {
            until("the application is known", || {
                status_of(&gateway.proxy(), "/api") == Some(401)
                    && post(gateway, "token", &json!({"grant_type": "client_credentials"})).status == 200
            });
        }
        Self { plane, gateways }
    }

    fn tokens(&self) -> Vec<Value> {
        let list = Call::get(&self.plane.kong(), "/oauth2_tokens")
            .make()
            .expect(200)
            .json();
        list["data"].as_array().expect("a list").clone()
    }
}

/// A call of an endpoint by the application.
fn post(gateway: &Weir, endpoint: &str, body: &Value) -> Answer {
    let mut body = body.clone();
    for (name, value) in [("client_id", "app"), ("client_secret", "s"), ("scope", "email")] {
        body[name] = value.into();
    }
    let call = Call::new("POST", &gateway.proxy(), &format!("/api/oauth2/{endpoint}"));
    call.header("X-Forwarded-Proto", "https")
        .body(&body.to_string())
        .make()
}

fn text(answer: &Answer, member: &str) -> String {
    answer.json()[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member}: {answer:?}"))
        .to_owned()
}

fn code(gateway: &Weir) -> String {
    let body = json!({"provision_key": "p", "authenticated_userid": "ada", "response_type": "code"});
    let uri = text(&post(gateway, "authorize", &body).expect(200), "redirect_uri");
    let (_, code) = uri.split_once("code=").expect("a code");
    code.to_owned()
}

fn redeem(gateway: &Weir, code: &str) -> Answer {
    post(
        gateway,
        "token",
        &json!({"grant_type": "authorization_code", "code": code}),
    )
}

fn with(gateway: &Weir, token: &str) -> u16 {
    let call = Call::get(&gateway.proxy(), "/api/x");
    call.header("Authorization", &format!("Bearer {token}"))
        .make()
        .status
}

fn all_know(group: &Group) {
    let [a, b] = &group.gateways;
    // A code of one gateway is good at the other one, once.
    let code = code(a);
    let first = redeem(b, &code).expect(200);
    let token = text(&first, "access_token");
    assert_eq!((with(a, &token), with(b, &token)), (200, 200));
    redeem(a, &code).expect(400);
    for gateway in [a, b] {
        until("the token is taken back", || with(gateway, &token) == 401);
    }
    // So is a refresh token.
    let first = redeem(a, &self::code(b)).expect(200);
    let refresh = json!({"grant_type": "refresh_token", "refresh_token": text(&first, "refresh_token")});
    let second = post(b, "token", &refresh).expect(200);
    post(a, "token", &refresh).expect(400);
    post(b, "token", &refresh).expect(400);
    let (old, new) = (text(&first, "access_token"), text(&second, "access_token"));
    for gateway in [a, b] {
        assert_eq!(with(gateway, &new), 200);
        until("the old token is none", || with(gateway, &old) == 401);
        assert_eq!(with(gateway, UNKNOWN), 401);
    }
}

fn the_admin_api_lists_and_removes(group: &Group) {
    let [a, b] = &group.gateways;
    let granted = redeem(a, &code(a)).expect(200);
    let token = text(&granted, "access_token");
    let kong = group.plane.kong();
    let path = format!("/oauth2_tokens/{token}");
    until("the control plane knows it", || {
        Call::get(&kong, &path).make().status == 200
    });
    let listed = Call::get(&kong, &path).make().expect(200).json();
    for (field, expected) in [
        ("authenticated_userid", json!("ada")),
        ("scope", json!("email")),
        ("token_type", json!("bearer")),
        ("expires_in", json!(7_200)),
        ("access_token", Value::Null),
        ("refresh_token", Value::Null),
    ] {
        assert_eq!(listed[field], expected, "{field}: {listed}");
    }
    let id = listed["id"].as_str().expect("an id");
    assert!(group.tokens().iter().any(|it| it["id"] == id));
    // Page by page, each is listed once.
    let (mut address, mut ids) = ("/oauth2_tokens?size=1".to_owned(), Vec::new());
    loop {
        let page = Call::get(&kong, &address).make().expect(200).json();
        ids.extend(
            page["data"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|it| it["id"].to_string()),
        );
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut address),
            None => break,
        }
    }
    let all: Vec<String> = group.tokens().iter().map(|it| it["id"].to_string()).collect();
    assert_eq!(ids, all);
    let removal = || Call::new("DELETE", &kong, &format!("/oauth2_tokens/{id}"));
    // A dry run says that it is one, so that no removal is recorded.
    let tried = removal().header("Weir-Dry-Run", "true").make().expect(204);
    assert_eq!(tried.header("weir-dry-run").as_deref(), Some("true"));
    assert_eq!(Call::get(&kong, &path).make().status, 200);
    removal().make().expect(204);
    for gateway in [a, b] {
        until("it is removed", || with(gateway, &token) == 401);
    }
    Call::get(&kong, &path).make().expect(404);
}

#[test]
fn gateways_on_one_file_share_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store").display());
    let mut group = Group::start(folder.path(), &store);
    all_know(&group);
    the_admin_api_lists_and_removes(&group);
    // They outlive all gateways.
    let token = text(
        &redeem(&group.gateways[0], &code(&group.gateways[1])).expect(200),
        "access_token",
    );
    for (place, name) in ["a", "b"].into_iter().enumerate() {
        group.gateways[place].child.kill().expect("it runs");
        group.gateways[place] = gateway(folder.path(), &store, name);
    }
    for gateway in &group.gateways {
        assert_eq!(with(gateway, &token), 200);
    }
}

#[test]
fn gateways_on_etcd_share_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, peers) = (free_port(), free_port());
    let Some(etcd) = Etcd::start(folder.path(), port, peers) else {
        return;
    };
    let group = Group::start(folder.path(), &format!("etcd://127.0.0.1:{port}"));
    all_know(&group);
    let [a, b] = &group.gateways;
    let token = text(&redeem(a, &code(b)).expect(200), "access_token");
    assert_eq!((with(a, &token), with(b, &token)), (200, 200));
    // What is known stays good; nothing new is given that others would not know.
    drop(etcd);
    for gateway in [a, b] {
        assert_eq!(with(gateway, &token), 200);
        let refused = post(gateway, "token", &json!({"grant_type": "client_credentials"}));
        assert_eq!(refused.status, 503, "{refused:?}");
        assert_eq!(with(gateway, NEVER_ASKED_FOR), 503);
        assert_eq!(with(gateway, "no token"), 401);
    }
}
