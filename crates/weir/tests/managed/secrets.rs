//! Secrets that stand elsewhere: in the environment, in a vault.

use crate::support::{ALL_APIS, Call, STOCK_KEY, Weir, server, until, upstream};
use std::net::SocketAddr;

/// A server that speaks as HashiCorp's vault does, with one secret of version 1.
fn vault() -> SocketAddr {
    server(|head| {
        let is_right =
            head.starts_with("GET /v1/kv/apisix/jack ") && head.contains("\r\nx-vault-token: root\r\n");
        match is_right {
            true => (200, "{\"data\":{\"auth-key\":\"of-jack\"}}".to_owned()),
            false => (403, String::new()),
        }
    })
}

fn status(weir: &Weir, path: &str, key: &str) -> u16 {
    Call::get(&weir.proxy(), path).header("apikey", key).make().status
}

#[test]
fn secrets_are_never_weirs_own_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start_with(
        folder.path(),
        &ALL_APIS,
        &[("WEIR_NAME", "edge-1"), ("A_NAME", "b")],
    );
    let put = |address: &str, path: &str, body: &str| {
        let call = Call::new("PUT", address, path).header("X-API-KEY", STOCK_KEY);
        let answer = call.body(body).make();
        assert!([200, 201].contains(&answer.status), "{path}: {answer:?}");
    };
    for (name, body) in [
        ("own", "{vault://env/weir-name}"),
        ("prefixed", "{vault://env/name?prefix=weir-}"),
        ("other", "{vault://env/a-name}"),
        ("text", "$env://A_NAME"),
    ] {
        put(
            &weir.kong(),
            &format!("/routes/{name}"),
            &format!("{{\"paths\": [\"/{name}\"]}}"),
        );
        let id = format!("/plugins/5f3e1c80-0000-4000-8000-00000000000{}", name.len());
        let plugin = format!(
            "{{\"name\": \"request-termination\", \"route\": {{\"name\": \"{name}\"}}, \"config\": {{\"body\": \"{body}\", \"content_type\": \"text/plain\", \"status_code\": 200}}}}"
        );
        put(&weir.kong(), &id, &plugin);
    }
    put(
        &weir.apisix(),
        "/apisix/admin/consumers/jack",
        "{\"username\": \"jack\", \"plugins\": {\"key-auth\": {\"key\": \"$env://WEIR_NAME\"}}}",
    );
    let get = |path: &str| Call::get(&weir.proxy(), path).make();
    until("all is named", || {
        let status = Call::get(&weir.status(), "/status").make().json();
        status["store"]["left_out"]
            .to_string()
            .matches("WEIR_NAME is Weir's own")
            .count()
            == 3
    });
    assert_eq!((get("/own").status, get("/prefixed").status), (404, 404));
    assert_eq!(
        (get("/other").body.as_str(), get("/text").body.as_str()),
        ("b", "$env://A_NAME")
    );
}

#[test]
fn references_are_resolved_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, vault) = (upstream("a"), vault());
    let weir = Weir::start_with(folder.path(), &ALL_APIS, &[("THE_KEY", "of-the-environment")]);
    let kong = |path: &str, body: &str| {
        let call = Call::new("PUT", &weir.kong(), path).body(body);
        call.make().expect(200);
    };
    kong("/services/s", &format!("{{\"url\": \"http://{server}\"}}"));
    kong("/services/s/routes/r", "{\"paths\": [\"/kong\"]}");
    let plugin = Call::new("POST", &weir.kong(), "/services/s/plugins").body("{\"name\": \"key-auth\"}");
    plugin.make().expect(201);
    kong("/consumers/c", "{}");
    let key = Call::new("POST", &weir.kong(), "/consumers/c/key-auth");
    key.body("{\"key\": \"{vault://env/the-key}\"}")
        .make()
        .expect(201);
    // Before the plugin is served, every call passes.
    until("the variable's value is the key", || {
        status(&weir, "/kong", "wrong") == 401 && status(&weir, "/kong", "of-the-environment") == 200
    });
    assert_eq!(status(&weir, "/kong", "{vault://env/the-key}"), 401);
    let shown = Call::get(&weir.kong(), "/key-auths").make().body;
    assert!(
        shown.contains("{vault://env/the-key}") && !shown.contains("of-the-environment"),
        "{shown}"
    );

    let apisix = |path: &str, body: &str| {
        let call = Call::new("PUT", &weir.apisix(), &format!("/apisix/admin{path}"));
        call.header("X-API-KEY", STOCK_KEY).body(body).make().expect(201);
    };
    apisix(
        "/secrets/vault/1",
        &format!("{{\"uri\": \"http://{vault}\", \"prefix\": \"kv/apisix\", \"token\": \"root\"}}"),
    );
    apisix(
        "/consumers/jack",
        "{\"username\": \"jack\", \"plugins\": {\"key-auth\": {\"key\": \"$secret://vault/1/jack/auth-key\"}}}",
    );
    apisix(
        "/routes/1",
        &format!(
            "{{\"uri\": \"/apisix\", \"plugins\": {{\"key-auth\": {{}}}}, \"upstream\": {{\"type\": \"roundrobin\", \"nodes\": {{\"{server}\": 1}}}}}}"
        ),
    );
    until("the vault's value is the key", || {
        status(&weir, "/apisix", "of-jack") == 200
    });
    assert_eq!(status(&weir, "/apisix", "$secret://vault/1/jack/auth-key"), 401);
    apisix(
        "/consumers/jill",
        "{\"username\": \"jill\", \"plugins\": {\"key-auth\": {\"key\": \"$env://NOT_THERE\"}}}",
    );
    until("what cannot be had is named", || {
        let status = Call::get(&weir.status(), "/status").make().json();
        status["store"]["left_out"]
            .to_string()
            .contains("the variable NOT_THERE is not set")
    });
    assert_eq!(status(&weir, "/apisix", ""), 401);
    assert_eq!(status(&weir, "/apisix", "of-jack"), 200);
    let metrics = Call::get(&weir.status(), "/metrics").make().body;
    assert!(metrics.contains("weir_config_documents_left_out 1"), "{metrics}");
}
