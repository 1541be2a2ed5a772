//! Callers who may only read see no secret, in any dialect and at any endpoint.

use crate::plane::{Plane, certificate};
use serde_json::{Value, json};
use weir_control::access::{EVERYWHERE, Role};

/// Stands in every secret.
const SECRET: &str = "s3cr3t";

/// What is written, each with a secret: where to, and what.
fn secrets() -> Vec<(&'static str, Value)> {
    let (certificate, key) = certificate();
    let of = |name: &str| format!("{SECRET}-{name}");
    let tls = json!({"client_cert": certificate, "client_key": key});
    let nodes = json!({"127.0.0.1:1": 1});
    let redis = json!({"count": 1, "time_window": 60, "policy": "redis", "redis_host": "redis.test", "redis_password": of("redis")});
    let limits = json!({"limit-count": redis});
    let logged = json!({"http-logger": {"uri": "http://h", "auth_header": of("header")}});
    let hex = "ab".repeat(16);
    vec![
        ("/consumers/c", json!({"username": "c"})),
        (
            "/consumers/c/key-auth/5f3e1c80-0000-4000-8000-000000000001",
            json!({"key": of("key")}),
        ),
        ("/consumers/c/basic-auth/u", json!({"password": of("password")})),
        ("/consumers/c/hmac-auth/u", json!({"secret": of("hmac")})),
        ("/consumers/c/jwt/j", json!({"secret": of("jwt")})),
        (
            "/consumers/c/oauth2/o",
            json!({"name": "o", "client_secret": of("oauth2"), "redirect_uris": ["http://h/"]}),
        ),
        (
            "/certificates/5f3e1c80-0000-4000-8000-000000000002",
            json!({"cert": certificate, "key": key}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000003",
            json!({"name": "http-log", "config": {"http_endpoint": format!("http://u:{SECRET}@h/"), "headers": {"Authorization": of("log")}}}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000004",
            json!({"name": "rate-limiting", "config": {"minute": 1, "policy": "redis", "redis": {"host": "h", "password": of("redis")}}}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000005",
            json!({"name": "session", "config": {"secret": of("session")}}),
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000006",
            json!({"name": "request-transformer", "config": {"add": {"headers": [format!("Authorization:Basic {SECRET}")]}}}),
        ),
        (
            "/apisix/admin/consumers/c",
            json!({"username": "c", "plugins": {"key-auth": {"key": of("key")}}}),
        ),
        (
            "/apisix/admin/consumers/c/credentials/d",
            json!({"plugins": {"basic-auth": {"username": "u", "password": of("password")}}}),
        ),
        (
            "/apisix/admin/secrets/vault/1",
            json!({"uri": "http://h", "prefix": "p", "token": of("vault")}),
        ),
        (
            "/apisix/admin/upstreams/1",
            json!({"type": "roundrobin", "nodes": nodes, "tls": tls}),
        ),
        (
            "/apisix/admin/routes/1",
            json!({"uri": "/", "plugins": limits, "upstream": {"type": "roundrobin", "nodes": nodes, "tls": tls}}),
        ),
        (
            "/apisix/admin/services/1",
            json!({"plugins": limits, "upstream": {"type": "roundrobin", "nodes": nodes}}),
        ),
        ("/apisix/admin/global_rules/1", json!({"plugins": logged})),
        (
            "/apisix/admin/plugin_configs/1",
            json!({"plugins": {"csrf": {"key": of("csrf")}}}),
        ),
        ("/apisix/admin/consumer_groups/1", json!({"plugins": limits})),
        (
            "/apisix/admin/ssls/1",
            json!({"snis": ["a.test"], "cert": certificate, "key": key}),
        ),
        (
            "/api/v1/resources/consumers/c",
            json!({"name": "c", "credentials": [
                {"key-auth": {"key": of("key")}},
                {"basic-auth": {"username": "u", "password": of("password")}},
                {"hmac-auth": {"key": "h", "secret": of("hmac")}},
                {"jwt": {"key": "j", "algorithm": "HS256", "secret": of("jwt")}},
                {"jwe-decrypt": {"key": "e", "secret": hex}},
            ]}),
        ),
        (
            "/api/v1/resources/certificates/b",
            json!({"key_pairs": [{"certificate": certificate, "key": key}], "names": ["b.test"]}),
        ),
    ]
}

#[tokio::test]
async fn readers_see_no_secret_in_any_dialect() {
    let plane = Plane::new().await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane.add("writer", &[(EVERYWHERE, Role::Write)]);
    plane.add("reader", &[(EVERYWHERE, Role::Read)]);
    plane.add("guest", &[("default", Role::Read)]);
    let written = secrets();
    let mut paths: Vec<String> = Vec::new();
    for (path, body) in &written {
        plane.expect("writer", "PUT", path, body).await;
        let (list, _) = path.rsplit_once('/').expect("a list");
        paths.extend([(*path).to_owned(), list.to_owned()]);
    }
    paths.retain(|path| path != "/apisix/admin/secrets/vault");
    let more = [
        "/key-auths",
        "/basic-auths",
        "/hmac-auths",
        "/jwts",
        "/oauth2",
        "/config",
        "/apisix/admin/secrets",
        "/apisix/admin/configs",
        "/v1/routes",
        "/v1/route/1",
        "/v1/services",
        "/v1/service/1",
        "/v1/upstreams",
        "/v1/upstream/1",
        "/api/v1/diff?from=0",
        "/api/v1/history",
    ];
    paths.extend(more.map(str::to_owned));
    let is_telling =
        |body: &str| body.contains(SECRET) || body.contains("PRIVATE KEY") || body.contains("abababab");
    let mut shown = 0;
    for path in &paths {
        for who in ["reader", "guest"] {
            let (status, _, body) = plane.call(who, "GET", path, &Value::Null).await;
            let is_elsewhere = who == "guest" && (path.starts_with("/api/") || path == "/config");
            assert_eq!(
                status,
                if is_elsewhere { 403 } else { 200 },
                "{who} {path}: {body}"
            );
            assert!(!is_telling(&body), "{who} {path}: {body}");
        }
        shown += usize::from(is_telling(
            &plane.expect("writer", "GET", path, &Value::Null).await,
        ));
    }
    // Clients of the originals compare what they read with what they are about to write.
    assert!(shown > paths.len() / 2, "{shown} of {}", paths.len());
    for path in [
        "/consumers/c/key-auth",
        "/config",
        "/apisix/admin/consumers/c",
        "/apisix/admin/upstreams/1",
        "/api/v1/resources/consumers/c",
    ] {
        let body = plane.expect("writer", "GET", path, &Value::Null).await;
        assert!(is_telling(&body), "{path}: {body}");
    }
    // Keys can stand in paths; those are recorded without them.
    let named = format!("/consumers/c/key-auth/{SECRET}-named");
    plane.expect("writer", "PUT", &named, &json!({})).await;
    let history = plane
        .expect("reader", "GET", "/api/v1/history", &Value::Null)
        .await;
    assert!(!history.contains(SECRET), "{history}");
}
