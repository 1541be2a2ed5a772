//! What rights are worth: calls that are only tried change nothing, a user who may only read sees no private keys, and
//! a right that was taken away is gone at once.

use crate::support::{ALL_APIS, Answer, Call, STOCK_KEY, Weir, status_of, until, upstream};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

fn token_of(weir: &Weir, token: Option<&str>, name: &str, role: &str) -> String {
    let output = weir.ask(token, &["user", "add", name, "--role", role]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A call to a console with a user's token, and the status that is expected.
fn native(weir: &Weir, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    Call::new(method, &weir.console(), path)
        .header("Authorization", &format!("Bearer {token}"))
        .body(&body.to_string())
        .make()
}

#[test]
fn what_is_only_tried_changes_nothing_and_all_else_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    let kong = |method: &str, path: &str, body: &str| {
        let call = Call::new(method, &weir.kong(), path).body(body).make();
        assert!(call.status < 300, "{call:?}");
    };
    kong(
        "PUT",
        "/upstreams/u",
        r#"{"healthchecks": {"passive": {"unhealthy": {"tcp_failures": 1}}}}"#,
    );
    kong("POST", "/upstreams/u/targets", "{\"target\": \"127.0.0.1:1\"}");
    let root = token_of(&weir, None, "root", "admin");
    let rights = json!({"rights": [{"workspace": "*", "role": "admin"}]});
    let report = json!({"revision": 1, "hash": "", "skipped": 0, "state": "serving", "version": "", "address": "", "time": 0});
    for (address, method, path, body, status) in [
        (weir.console(), "POST", "/api/v1/users/mallory", &rights, 201),
        (weir.console(), "DELETE", "/api/v1/users/root", &json!({}), 204),
        (weir.console(), "POST", "/api/v1/gateways/none", &report, 200),
        (
            weir.kong(),
            "PUT",
            "/upstreams/u/targets/127.0.0.1:1/unhealthy",
            &json!({}),
            204,
        ),
        (weir.kong(), "PUT", "/consumers/mallory", &json!({}), 200),
        (
            weir.apisix(),
            "PUT",
            "/apisix/admin/plugins/reload",
            &json!({}),
            200,
        ),
    ] {
        let answer = Call::new(method, &address, path)
            .header("Authorization", &format!("Bearer {root}"))
            .header("X-API-KEY", &root)
            .header("Weir-Dry-Run", "true")
            .body(&body.to_string())
            .make()
            .expect(status);
        let is_tried = answer.header("weir-dry-run").as_deref() == Some("true");
        assert_eq!(is_tried, !path.ends_with("reload"), "{path}");
        assert!(!answer.body.contains("token"), "{answer:?}");
    }
    let users = String::from_utf8_lossy(&weir.ask(Some(&root), &["user", "list"]).stdout).into_owned();
    assert_eq!(users, "root: admin in *\n");
    let gateways = native(&weir, &root, "GET", "/gateways", &Value::Null).json();
    assert!(!gateways.to_string().contains("none"), "{gateways}");
    let health = Call::get(&weir.kong(), "/upstreams/u/health").header("Kong-Admin-Token", &root);
    assert!(!health.make().expect(200).body.contains("UNHEALTHY"));
    until("what could not be tried is recorded", || {
        let log = native(&weir, &root, "GET", "/audit", &Value::Null)
            .expect(200)
            .json();
        let entries = log["items"].as_array().expect("entries");
        assert!(
            !entries
                .iter()
                .any(|it| it["what"].to_string().contains("mallory")),
            "{log}"
        );
        entries
            .iter()
            .any(|it| it["what"] == "PUT /apisix/admin/plugins/reload")
    });
}

#[test]
fn private_keys_are_for_whoever_may_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["a.test".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("signed").pem();
    let key = key.serialize_pem();
    let nodes = json!({"127.0.0.1:1": 1});
    let put = |path: &str, body: &Value| {
        let call = Call::new("PUT", &weir.apisix(), path).header("X-API-KEY", STOCK_KEY);
        call.body(&body.to_string()).make().expect(201);
    };
    let tls = json!({"client_cert": certificate, "client_key": key});
    put(
        "/apisix/admin/ssls/1",
        &json!({"snis": ["a.test"], "cert": certificate, "key": key}),
    );
    put(
        "/apisix/admin/upstreams/1",
        &json!({"type": "roundrobin", "nodes": nodes, "scheme": "https", "tls": tls}),
    );
    put(
        "/apisix/admin/routes/1",
        &json!({"uri": "/", "upstream": {"type": "roundrobin", "nodes": nodes, "tls": tls}}),
    );
    let own = json!({"key_pairs": [{"certificate": certificate, "key": key}], "names": ["b.test"]});
    let own = Call::new("PUT", &weir.console(), "/api/v1/resources/certificates/b").body(&own.to_string());
    let first = own.make();
    assert!(first.status < 300, "{first:?}");
    let root = token_of(&weir, None, "root", "admin");
    let as_root = Some(root.as_str());
    let tokens = [
        (root.clone(), true, true),
        (token_of(&weir, as_root, "writer", "write"), true, false),
        (token_of(&weir, as_root, "reader", "read"), false, false),
    ];
    let has_key = |answer: Answer| answer.expect(200).body.contains("PRIVATE KEY");
    for (token, may_write, is_admin) in tokens {
        for (path, expected) in [
            ("/apisix/admin/configs", may_write),
            ("/apisix/admin/upstreams/1", may_write),
            ("/apisix/admin/upstreams", may_write),
            ("/apisix/admin/routes/1", may_write),
            ("/apisix/admin/ssls/1", false),
            ("/v1/upstreams", false),
            ("/v1/routes", false),
        ] {
            let call = Call::get(&weir.apisix(), path).header("X-API-KEY", &token);
            assert_eq!(has_key(call.make()), expected, "{path} {may_write}");
        }
        for (path, expected) in [
            ("/api/v1/resources/certificates/b", may_write),
            ("/api/v1/resources/certificates", may_write),
            ("/api/v1/diff?from=0", is_admin),
        ] {
            let answer = native(&weir, &token, "GET", path, &Value::Null);
            assert_eq!(has_key(answer), expected, "{path} {may_write}");
        }
    }
}

#[test]
fn a_gateway_whose_user_is_gone_gets_no_more_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let flags = [
        "--role",
        "control",
        "--data",
        "control",
        "--console",
        "127.0.0.1:0",
    ];
    let plane = Weir::start(folder.path(), &flags);
    let root = token_of(&plane, None, "root", "admin");
    let edge = token_of(&plane, Some(&root), "edge", "gateway");
    let put = |path: &str| {
        let body = json!({"url": format!("http://{server}"), "routes": [{"name": "r", "paths": [path]}]});
        let put = native(&plane, &root, "PUT", "/api/v1/resources/services/s", &body);
        assert!(put.status < 300, "{put:?}");
    };
    put("/one");
    let url = format!("http://{}", plane.console());
    let gateway = Weir::start(
        folder.path(),
        &[
            "--role",
            "gateway",
            "--control",
            &url,
            "--token",
            &edge,
            "--name",
            "edge-1",
        ],
    );
    until("it is served", || {
        status_of(&gateway.proxy(), "/one") == Some(200)
    });
    let report = json!({"revision": 1, "hash": "", "skipped": 0, "state": "serving", "version": "1".repeat(257), "address": "", "time": 0});
    native(&plane, &edge, "POST", "/api/v1/gateways/edge", &report).expect(400);
    assert!(
        plane
            .ask(Some(&root), &["user", "remove", "edge"])
            .status
            .success()
    );
    until("it is cut off", || {
        let status = Call::get(&gateway.status(), "/status").make().json();
        status["store"]["contact"] == "unreachable"
    });
    until("it is recorded, and no report is", || {
        let log = native(&plane, &root, "GET", "/audit", &Value::Null)
            .expect(200)
            .json();
        let entries = log["items"].as_array().expect("entries");
        let has = |what: &str| entries.iter().any(|it| it["what"] == what && it["status"] == 204);
        assert!(!has("POST /api/v1/gateways/edge-1"), "{log}");
        has("DELETE /api/v1/users/edge")
    });
    put("/two");
    assert_eq!(status_of(&gateway.proxy(), "/one"), Some(200));
    assert_eq!(status_of(&gateway.proxy(), "/two"), Some(404));
}
