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
        status["store"]["skipped"]
            .to_string()
            .matches("WEIR_NAME is Weir's own")
            .count()
            == 3
    });
    assert_eq!((get("/own").status, get("/prefixed").status), (503, 503));
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
        status["store"]["skipped"]
            .to_string()
            .contains("the variable NOT_THERE is not set")
    });
    assert_eq!(status(&weir, "/apisix", ""), 401);
    assert_eq!(status(&weir, "/apisix", "of-jack"), 200);
    let metrics = Call::get(&weir.status(), "/metrics").make().body;
    assert!(metrics.contains("weir_config_documents_skipped 1"), "{metrics}");
}

/// Each caller has turns of its own for each of them. A minute may end meanwhile, and give them once more.
#[test]
fn turns_of_a_minute_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &["--data", "data", "--console", "127.0.0.1:0"]);
    for (path, body, most, expected) in [
        (
            "/api/v1/secrets/test",
            "{\"reference\": \"{vault://env/PATH}\"}",
            30,
            "30 secrets a minute are tested",
        ),
        (
            "/api/v1/try",
            "{\"url\": \"/\"}",
            30,
            "30 calls a minute can be sent",
        ),
        (
            "/api/v1/documents/fetch",
            "{\"url\": \"http://127.0.0.1:1/\"}",
            20,
            "20 documents a minute are fetched",
        ),
    ] {
        let call = || Call::new("POST", &weir.console(), path).body(body).make();
        let passed = (0..=2 * most).take_while(|_| call().status != 429).count();
        assert!((most..=2 * most).contains(&passed), "{path}: {passed}");
        let refused = call().json()["detail"].to_string();
        assert!(refused.contains(expected), "{path}: {refused}");
    }
}

/// A stand-in for a vault: no real one is built for tests.
fn vault_of_callers() -> SocketAddr {
    server(|head| {
        let is_right = head.starts_with("GET /v1/callers/data/a1 ")
            && head.to_ascii_lowercase().contains("\r\nx-vault-token: root\r\n");
        match is_right {
            true => (
                200,
                "{\"data\":{\"data\":{\"access_token\":\"a1\",\"secret_token\":\"s1\",\
                  \"consumer\":{\"id\":\"5f3e1c80-0000-4000-8000-000000000001\"}}}}"
                    .to_owned(),
            ),
            false => (404, "{\"errors\":[]}".to_owned()),
        }
    })
}

/// What Kong's Admin API answers to a call that must end with this status.
#[track_caller]
fn ask_kong(weir: &Weir, method: &str, path: &str, body: &str, status: u16) -> String {
    let answer = Call::new(method, &weir.kong(), path).body(body).make();
    assert_eq!(answer.status, status, "{path}: {}", answer.body);
    answer.body
}

/// Calls of `/kong` reach this server, by the service `s` and its route `r`.
fn serve_kong(weir: &Weir, server: SocketAddr) {
    let service = format!("{{\"url\": \"http://{server}\"}}");
    ask_kong(weir, "PUT", "/services/s", &service, 200);
    ask_kong(
        weir,
        "PUT",
        "/services/s/routes/r",
        "{\"paths\": [\"/kong\"]}",
        200,
    );
}

#[test]
fn pairs_of_tokens_stand_in_a_vault() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, vault) = (upstream("a"), vault_of_callers());
    let weir = Weir::start_with(folder.path(), &ALL_APIS, &[("VAULT_TOKEN", "root")]);
    let kong =
        |method: &str, path: &str, body: &str, status: u16| ask_kong(&weir, method, path, body, status);
    serve_kong(&weir, server);
    kong(
        "PUT",
        "/consumers/5f3e1c80-0000-4000-8000-000000000001",
        "{\"username\": \"alice\"}",
        200,
    );
    let plugin = "{\"name\": \"vault-auth\", \"config\": {\"vault\": {\"id\": \"5f3e1c80-0000-4000-8000-000000000002\"}}}";
    let refused = kong("POST", "/services/s/plugins", plugin, 400);
    assert!(refused.contains("a vault that does not exist"), "{refused}");
    let entity = format!(
        "{{\"name\": \"v\", \"host\": \"127.0.0.1\", \"port\": {}, \"mount\": \"callers\", \"kv\": \"v2\", \
         \"vault_token\": \"{{vault://env/vault-token}}\"}}",
        vault.port()
    );
    kong(
        "PUT",
        "/vault-auth/5f3e1c80-0000-4000-8000-000000000002",
        &entity,
        200,
    );
    kong("POST", "/services/s/plugins", plugin, 201);
    let status = |access: &str, secret: &str| {
        let call = Call::get(&weir.proxy(), "/kong");
        call.header("access_token", access)
            .header("secret_token", secret)
            .make()
            .status
    };
    // Before the plugin is served, every call passes.
    until("pairs are asked for", || {
        status("a1", "wrong") == 401 && status("a1", "s1") == 200
    });
    assert_eq!((status("a2", "s1"), status("../../sys/a1", "s1")), (401, 401));
    let shown = kong("GET", "/vault-auth/v", "", 200);
    assert!(shown.contains("{vault://env/vault-token}"), "{shown}");
    kong("DELETE", "/vault-auth/v", "", 204);
    until("without the vault, no call goes on", || status("a1", "s1") == 500);
}

/// Who writes the address of a vault may be no operator: without the flag the control plane calls no address of its own network,
/// and no answer says what is there.
#[test]
fn vaults_are_called_where_the_operator_allows() {
    let vault = server(|head| match head.starts_with("GET ") {
        true => (404, "{\"errors\":[]}".to_owned()),
        false => (200, "{}".to_owned()),
    });
    let refuses = server(|_| (403, String::new()));
    let allowed: Vec<&str> = [&ALL_APIS[..], &["--webhook-allow", "127.0.0.0/8"]].concat();
    for (flags, is_allowed) in [(&ALL_APIS[..], false), (&allowed[..], true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let weir = Weir::start_with(folder.path(), flags, &[]);
        ask_kong(&weir, "PUT", "/consumers/alice", "{}", 200);
        let mut answers = Vec::new();
        for (name, host, port, is_vault) in [
            ("right", "127.0.0.1", vault.port(), true),
            ("wrong", "127.0.0.1", refuses.port(), false),
            ("none", "127.0.0.1", 1, false),
            ("metadata", "169.254.169.254", 80, false),
        ] {
            let entity = format!(
                "{{\"name\": \"{name}\", \"host\": \"{host}\", \"port\": {port}, \"mount\": \"m\", \"vault_token\": \"t\"}}"
            );
            ask_kong(&weir, "POST", "/vault-auth", &entity, 201);
            let path = format!("/vault-auth/{name}/credentials/alice");
            let expected = if is_vault && is_allowed { 201 } else { 502 };
            let answer = ask_kong(&weir, "POST", &path, "{\"access_token\": \"a\"}", expected);
            if expected == 502 {
                answers.push(answer);
            }
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
    }
}

#[test]
fn keys_of_a_store_open_and_sign_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let weir = Weir::start_with(folder.path(), &ALL_APIS, &[("OPENING", OPENING)]);
    let kong =
        |method: &str, path: &str, body: &str, status: u16| ask_kong(&weir, method, path, body, status);
    serve_kong(&weir, server);
    let signer = "{\"name\": \"jwt-signer\", \"config\": {\"access_token_optional\": true, \
                  \"access_token_signing_algorithm\": \"HS256\"}}";
    let refused = kong("POST", "/services/s/plugins", signer, 400);
    assert!(refused.contains("key set with the name 'kong'"), "{refused}");
    kong("PUT", "/key-sets/kong", "{}", 200);
    kong(
        "POST",
        "/key-sets/kong/keys",
        "{\"name\": \"k\", \"kid\": \"gateway\", \"jwk\": \"{vault://env/opening}\"}",
        201,
    );
    kong(
        "POST",
        "/key-sets/kong/keys",
        "{\"name\": \"e\", \"kid\": \"e\", \"jwk\": \"{\\\"kty\\\":\\\"OKP\\\",\\\"kid\\\":\\\"e\\\",\\\"x\\\":\\\"X\\\",\\\"d\\\":\\\"D\\\"}\"}",
        201,
    );
    let published: serde_json::Value =
        serde_json::from_str(&kong("GET", "/jwt-signer/jwks/kong", "", 200)).expect("JSON");
    let expected = serde_json::json!({"keys": [{"kty": "OKP", "kid": "e", "x": "X"}], "previous": []});
    assert_eq!(published, expected);
    kong("GET", "/jwt-signer/jwks/none", "", 404);
    kong("POST", "/services/s/plugins", signer, 201);
    let opener = "{\"name\": \"jwe-decrypt\", \"config\": {\"key_sets\": [\"kong\"], \"lookup_header_name\": \"X-Sealed\", \
                  \"forward_header_name\": \"X-Plain\"}}";
    kong("POST", "/services/s/plugins", opener, 201);
    let status = |sealed: &str| {
        let call = Call::get(&weir.proxy(), "/kong");
        call.header("X-Sealed", sealed).make().status
    };
    until("the key opens tokens", || {
        status(SEALED) == 200 && status(&format!("{SEALED}-")) == 403
    });
    assert_eq!(status("junk"), 400);
    assert_eq!(Call::get(&weir.proxy(), "/kong").make().status, 403);
    kong("DELETE", "/key-sets/kong/keys/k", "", 204);
    // What signs cannot be made any more, either.
    until("without the key, no call goes on", || status(SEALED) != 200);
}

/// A secret of 32 bytes, and a token that another library has sealed with it.
const OPENING: &str =
    "{\"kty\":\"oct\",\"kid\":\"gateway\",\"k\":\"dGhpcnR5LXR3by1ieXRlcy1vZi1hLXNlY3JldC1rZXk\"}";
const SEALED: &str = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4Q0JDLUhTMjU2Iiwia2lkIjoiZ2F0ZXdheSJ9..IGk5NYc505zuqALAxUSxdQ.\
                      3HHaUrj7lb3Mzg_-0B89vg.oi4iN2es-rCEgmUF6-Yapg";

/// Without the key of a store on its disk, Weir would serve what is left of it.
#[test]
fn a_sealed_store_does_not_start_without_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let sealed = [
        "--data",
        "data",
        "--console",
        "127.0.0.1:0",
        "--store-key",
        "key.txt",
    ];
    let weir = Weir::start(folder.path(), &sealed);
    let put = Call::new("PUT", &weir.console(), "/api/v1/resources/services/s");
    put.body(r#"{"url": "http://127.0.0.1:1"}"#).make().expect(201);
    weir.kill();
    let (key, elsewhere) = (folder.path().join("key.txt"), folder.path().join("elsewhere.txt"));
    std::fs::rename(&key, &elsewhere).expect("moved");
    for (flags, expected) in [
        (&sealed[..], "--store-key: the file key.txt is missing"),
        (&sealed[..4], "give the file with their key (--store-key FILE)"),
    ] {
        let mut command = Weir::command(folder.path(), flags);
        let ended = command
            .stderr(std::process::Stdio::piped())
            .output()
            .expect("it ends");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && stderr.contains(expected), "{stderr}");
        assert!(!key.exists(), "no key is made beside what it does not open");
    }
    std::fs::rename(&elsewhere, &key).expect("moved back");
    let weir = Weir::start(folder.path(), &sealed);
    Call::get(&weir.console(), "/api/v1/resources/services/s")
        .make()
        .expect(200);
}
