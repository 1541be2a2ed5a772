//! What the answer to a write says of what is stored and not served as it is written.

use crate::api::Api;
use serde_json::json;

/// What is written, and a part of the warning; empty: there is none.
const WRITES: &[(&str, &str, &str)] = &[
    ("routes/1", r#"{"uri": "/", UPSTREAM}"#, ""),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"key-auth": {}}}"#,
        "",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"ai-proxy": {"provider": "openai", "auth": {"header": {"a": "b"}}}}}"#,
        "plugin 'ai-proxy' LACKS",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"example-plugin": {"i": 1}}}"#,
        "calls are served without",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"grpc-transcode": {"proto_id": "99", "service": "a", "method": "b"}}}"#,
        "failed to find proto by id: 99",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"proxy-rewrite": {"regex_uri": ["(?=a)", "b"]}}}"#,
        "AROUND",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"uri-blocker": {"block_rules": ["(?!a)"]}}}"#,
        "AROUND",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"request-validation": {"body_schema": {"properties": {"a": {"pattern": "(?!a)"}}}}}}"#,
        "AROUND",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"response-rewrite": {"filters": [{"regex": "(?<=a)b", "replace": "c"}]}}}"#,
        "AROUND",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"body-transformer": {"request": {"template": "{% goto a %}"}}}}"#,
        "plugins.body-transformer: ",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"key-auth": {"_meta": {"pre_function": "return function() end"}}}}"#,
        "'pre_function' (a function in Lua) LACKS",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"csrf": {"key": "$secret://vault/9/a/b"}}}"#,
        "$secret://vault/9/a/b: there is no 'vault/9'",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"csrf": {"key": "$secret://aws/9/a/b"}}}"#,
        "vaults of the kind 'aws",
    ),
    (
        "secrets/vault/9",
        r#"{"uri": "http://127.0.0.1:8200", "prefix": "p", "token": "t"}"#,
        "",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"csrf": {"key": "$secret://vault/9/a/b"}}}"#,
        "",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"file-logger": {"path": "/tmp/x.log"}}}"#,
        "nothing is written to /tmp/x.log",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "plugins": {"google-cloud-logging": {"auth_file": "/nowhere/x"}}}"#,
        "/nowhere/x cannot be used",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "filter_func": "function(vars) return true end"}"#,
        "'filter_func' (a function in Lua) LACKS",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "script": "local _M = {} return _M"}"#,
        "'script' (a function in Lua) LACKS",
    ),
    (
        "routes/1",
        r#"{"uri": "/", UPSTREAM, "vars": [["arg_a", "~~", "(?=a)"]]}"#,
        "AROUND",
    ),
    (
        "routes/1",
        r#"{"uri": "/", "upstream": {"discovery_type": "nacos", "service_name": "x"}}"#,
        "the service discovery 'nacos' LACKS",
    ),
    (
        "upstreams/1",
        r#"{"scheme": "kafka", "nodes": {"127.0.0.1:1": 1}}"#,
        "the upstream scheme 'kafka' LACKS",
    ),
    // What stands elsewhere is said of that which stands there.
    ("routes/2", r#"{"uri": "/2", "upstream_id": "1"}"#, ""),
    (
        "services/1",
        r#"{"plugins": {"uri-blocker": {"block_rules": ["(?!a)"]}}}"#,
        "AROUND",
    ),
    (
        "plugin_configs/1",
        r#"{"plugins": {"cors": {"allow_origins_by_regex": ["(?!a)"]}}}"#,
        "AROUND",
    ),
    (
        "global_rules/1",
        r#"{"plugins": {"redirect": {"regex_uri": ["(?!a)", "/b"]}}}"#,
        "AROUND",
    ),
    (
        "consumers/jack",
        r#"{"username": "jack", "plugins": {"uri-blocker": {"block_rules": ["(?!a)"]}}}"#,
        "AROUND",
    ),
];

/// The short forms in the table.
const SHORT: [(&str, &str); 3] = [
    ("UPSTREAM", r#""upstream": {"nodes": {"127.0.0.1:1": 1}}"#),
    ("AROUND", "look-around in a regular expression LACKS"),
    ("LACKS", "is not available in this version of Weir"),
];

fn in_full(text: &str) -> String {
    SHORT
        .iter()
        .fold(text.to_owned(), |text, (short, long)| text.replace(short, long))
}

#[tokio::test]
async fn writes_say_what_is_not_served() {
    let api = Api::open().await;
    for (key, body, expected) in WRITES {
        let (body, expected) = (in_full(body), in_full(expected));
        let answer = api.call(&format!("PUT {key}"), &body, &[]).await;
        assert!([200, 201].contains(&answer.status), "{body}: {}", answer.text);
        let warning = answer.header("warning").map(str::to_owned);
        assert_eq!(warning.is_some(), !expected.is_empty(), "{body}: {warning:?}");
        let warning = warning.unwrap_or_default();
        assert!(warning.contains(&expected), "{body}: {warning}");
    }
}

/// The defect: a certificate was stored without a word, and no one was shown it.
#[tokio::test]
async fn writes_say_that_a_short_key_is_not_served() {
    let api = Api::open().await;
    let short = include_str!("../../../saml/tests/data/short.crt.pem");
    let long = include_str!("../../../saml/tests/data/idp.crt.pem");
    let key = "$env://THE_KEY_OF_THIS_CERTIFICATE_HAS_A_NAME_OF_MORE_THAN_64_LETTERS";
    let nodes = json!({"127.0.0.1:1": 1});
    let tls = |certificate: &str| json!({"client_cert": certificate, "client_key": key});
    for (document, body, is_short) in [
        (
            "ssls/1",
            json!({"sni": "a.test", "cert": short, "key": key}),
            true,
        ),
        (
            "ssls/1",
            json!({"sni": "a.test", "cert": long, "key": key}),
            false,
        ),
        (
            "ssls/1",
            json!({"sni": "a.test", "cert": long, "key": key, "certs": [short], "keys": [key]}),
            true,
        ),
        (
            "ssls/2",
            json!({"type": "client", "cert": short, "key": key}),
            true,
        ),
        ("upstreams/1", json!({"nodes": nodes, "tls": tls(short)}), true),
        ("upstreams/1", json!({"nodes": nodes, "tls": tls(long)}), false),
        (
            "services/1",
            json!({"upstream": {"nodes": nodes, "tls": tls(short)}}),
            true,
        ),
    ] {
        let answer = api.call(&format!("PUT {document}"), &body.to_string(), &[]).await;
        assert!([200, 201].contains(&answer.status), "{body}: {}", answer.text);
        let warning = answer.header("warning").unwrap_or_default();
        let is_named = warning.contains("an RSA key of fewer than 2048 bits is not served");
        assert_eq!(is_named, is_short, "{body}: {warning}");
    }
}
