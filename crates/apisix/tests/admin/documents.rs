//! Writing and reading single resources and collections.

use crate::api::{Api, KEY, clock};
use serde_json::json;
use std::sync::Arc;
use weir_apisix::AdminOptions;
use weir_store::memory::MemoryStore;

#[tokio::test]
async fn resources_are_written_and_read() {
    Api::open()
        .await
        .play(
            r#"
GET routes -> 200 {"total": 0, "list": []}
GET routes/1 -> 404 {"message": "Key not found"}
PUT routes/1 {"uri": "/a", "upstream": {"nodes": {"127.0.0.1:80": 1}}} -> 201
    {"key": "/apisix/routes/1", "value": {"id": "1", "uri": "/a", "create_time": 1700000000, "update_time": 1700000000}}
GET routes/1 -> 200 {"key": "/apisix/routes/1", "value": {"uri": "/a", "priority": null, "upstream": {"type": null}}, "createdIndex": 1, "modifiedIndex": 1}
PUT routes/1 {"uri": "/b", "upstream": {"nodes": {"127.0.0.1:80": 1}}} -> 200 {"value": {"uri": "/b"}}
GET routes/1 -> 200 {"createdIndex": 1, "modifiedIndex": 2}
PUT routes {"id": 7, "uri": "/c", "plugins": {}} -> 201 {"key": "/apisix/routes/7", "value": {"id": 7}}
POST routes {"uri": "/d", "plugins": {}} -> 201 {"key": "/apisix/routes/00000000000000000004", "value": {"id": "00000000000000000004"}}
GET routes -> 200 {"total": 3, "list": [{"key": "/apisix/routes/00000000000000000004"}, {"key": "/apisix/routes/1"}, {"key": "/apisix/routes/7"}]}
DELETE routes/7 -> 200 {"deleted": "1", "key": "/apisix/routes/7"}
DELETE routes/7 -> 404 {"message": "Key not found"}
PUT consumers {"username": "jack", "plugins": {"key-auth": {"key": "k"}}} -> 201
    {"key": "/apisix/consumers/jack", "value": {"username": "jack", "plugins": {"key-auth": {"key": "tZ7iIxl59pM0W3CLbQZrbw=="}}}}
GET consumers/jack -> 200 {"value": {"plugins": {"key-auth": {"key": "k"}}}}
PUT consumers/jack {"username": "jack", "desc": "x"} -> 200
GET consumers/jack/credentials -> 404 {"message": "Key not found"}
PUT consumers/jack/credentials/c {"plugins": {"key-auth": {"key": "one"}}} -> 201 {"key": "/apisix/consumers/jack/credentials/c"}
GET consumers/jack/credentials -> 200 {"total": 1}
GET consumers -> 200 {"total": 1, "list": [{"key": "/apisix/consumers/jack"}]}
PUT consumers/jill/credentials/c {"plugins": {}} -> 404 {"error_msg": "consumer not found"}
DELETE consumers/jack -> 200
GET consumers/jack/credentials/c -> 404
PUT plugin_metadata/http-logger {"log_format": {"host": "$host"}} -> 201 {"value": {"id": "http-logger", "create_time": null}}
PUT secrets/vault/v {"uri": "http://127.0.0.1:8200", "prefix": "p", "token": "t"} -> 201 {"key": "/apisix/secrets/vault/v", "value": {"id": "vault/v"}}
PATCH secrets/vault/v/token "u" -> 200 {"value": {"token": "u"}}
GET secrets -> 200 {"total": 1, "list": [{"key": "/apisix/secrets/vault/v"}]}
PUT protos/1 {"content": "syntax = \"proto3\";"} -> 201
PUT stream_routes/1 {"server_port": 9100, "upstream": {"nodes": {"127.0.0.1:1": 1}}} -> 201
PUT services/1 {"name": "s"} -> 201
PUT services/1/graphql_cost_decorations/d {"field_path": "Query.a"} -> 201 {"key": "/apisix/services/1/graphql_cost_decorations/d", "value": {"service_id": "1"}}
GET services -> 200 {"total": 1}
DELETE services/1 -> 200
GET services/1/graphql_cost_decorations -> 404
"#,
        )
        .await;
}

#[tokio::test]
async fn parts_are_changed() {
    Api::open()
        .await
        .play(
            r#"
PUT upstreams/1 {"nodes": {"a:80": 1, "b:80": 1}, "retries": 1, "labels": {"x": "y"}} -> 201
PATCH upstreams/1 {"nodes": {"a:80": null, "c:80": 2}, "retries": null, "desc": "new"} -> 200
    {"value": {"nodes": {"a:80": null, "b:80": 1, "c:80": 2}, "retries": null, "desc": "new", "labels": {"x": "y"}}}
PATCH upstreams/1/nodes {"d:80": 1} -> 200 {"value": {"nodes": {"b:80": null, "d:80": 1}}}
PATCH upstreams/1/labels/x "z" -> 200 {"value": {"labels": {"x": "z"}}}
PATCH upstreams/1/desc/x "z" -> 400 {"error_msg": "invalid sub-path: /desc"}
PATCH upstreams/1 [] -> 200
PATCH upstreams/1 1 -> 400 {"error_msg": "invalid configuration"}
PATCH upstreams/1 -> 400 {"error_msg": "missing new configuration"}
PATCH upstreams/1 {"id": "2"} -> 400 {"error_msg": "wrong upstream id"}
PATCH upstreams/1 {"retries": -1} -> 400 {"error_msg": "invalid configuration: property \"retries\" validation failed: expected -1 to be at least 0"}
PATCH upstreams/2 {"retries": 1} -> 404 {"message": "Key not found"}
PATCH upstreams {"retries": 1} -> 400 {"error_msg": "missing upstream id"}
PATCH consumers/x {"desc": "y"} -> 405 {"error_msg": "not supported `PATCH` method for consumer"}
"#,
        )
        .await;
}

#[tokio::test]
async fn collections_are_filtered_and_paged() {
    let api = Api::open().await;
    for index in 0..25 {
        let body = json!({
            "uri": format!("/path-{index}"),
            "name": format!("route-{index}"),
            "labels": {format!("label-{}", index % 2): "x"},
            "service_id": (index < 3).then_some("s"),
            "plugins": {},
        });
        let mut body = body;
        if body["service_id"].is_null() {
            body.as_object_mut().expect("a map").remove("service_id");
        } else if index == 0 {
            api.call("PUT services/s", "{}", &[]).await;
        }
        let answer = api
            .call(&format!("PUT routes/{index}"), &body.to_string(), &[])
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    for (query, total, first, count) in [
        ("", 25, "0", 25),
        ("?page=1&page_size=10", 25, "0", 10),
        ("?page=3&page_size=10", 25, "20", 5),
        ("?page=4&page_size=10", 25, "", 0),
        ("?page=0&page_size=10", 25, "0", 10),
        ("?page=1", 25, "0", 25),
        ("?name=route-2$", 1, "2", 1),
        ("?name=(", 0, "", 0),
        ("?label=label-1", 12, "1", 12),
        ("?uri=path-2.", 5, "20", 5),
        ("?filter=service_id%3Ds", 3, "0", 3),
        ("?filter=service_id%3Ds%26name%3Dx", 3, "0", 3),
        ("?filter=service_id%3Dx", 0, "", 0),
    ] {
        let answer = api.call(&format!("GET routes{query}"), "", &[]).await.json();
        let list = answer["list"].as_array().expect("a list");
        let id = list
            .first()
            .map_or("", |item| item["value"]["id"].as_str().expect("an id"));
        assert_eq!(
            (&answer["total"], id, list.len()),
            (&json!(total), first, count),
            "{query}"
        );
    }
    api.play("GET routes?page=1&page_size=9 -> 400 page_size must be between 10 and 500")
        .await;
}

#[tokio::test]
async fn headers_have_version_and_revision() {
    let api = Api::open().await;
    let body = r#"{"uri": "/a", "plugins": {}}"#;
    let answer = api.call("PUT routes/1", body, &[]).await;
    for (name, value) in [
        ("server", "APISIX/3.18.0"),
        ("content-type", "application/json"),
        ("x-api-version", "v3"),
        ("etag", "\"1\""),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(api.call("HEAD /apisix/admin", "", &[]).await.status, 200);
    for (headers, status) in [
        (&["if-match: \"2\""][..], 412),
        (&["if-match: \"1\"", "weir-dry-run: true"], 200),
        (&["if-match: \"1\""], 200),
        (&["if-match: \"1\""], 412),
        (&["if-match: *"], 200),
    ] {
        let answer = api.call("PUT routes/1", body, headers).await;
        assert_eq!(answer.status, status, "{headers:?} {}", answer.text);
    }
    assert_eq!(api.call("PUT routes/2", body, &["if-match: *"]).await.status, 412);
    let answer = api.call("PUT routes/2", body, &["weir-dry-run: true"]).await;
    assert_eq!(
        (answer.status, answer.header("weir-dry-run")),
        (201, Some("true"))
    );
    assert_eq!(api.call("GET routes/2", "", &[]).await.status, 404);
}

#[tokio::test]
async fn keys_let_calls_in() {
    let api = Api::with(AdminOptions::new(clock), Arc::new(MemoryStore::new())).await;
    let viewer = "4054f7cf07e344346cd3f287985e76a2";
    let body = r#"{"uri": "/a", "plugins": {}}"#;
    for (call, header, wanted) in [
        ("PUT routes/1", String::new(), Some("missing apikey")),
        ("PUT routes/1", "x-api-key: x".to_owned(), Some("wrong apikey")),
        (
            "PUT routes/1",
            format!("x-api-key: {viewer}"),
            Some("invalid method for role viewer"),
        ),
        ("PUT routes/1", format!("x-api-key: {KEY}"), None),
        ("PUT routes/1", format!("cookie: a=b; x_api_key={KEY}"), None),
        ("GET routes/1", format!("x-api-key: {viewer}"), None),
        (
            "GET routes/1?api_key=4054f7cf07e344346cd3f287985e76a2",
            String::new(),
            None,
        ),
        ("GET plugins/list", String::new(), Some("missing apikey")),
        ("HEAD configs", String::new(), Some("missing apikey")),
        ("HEAD /apisix/admin", String::new(), None),
    ] {
        let headers: Vec<&str> = Some(header.as_str())
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect();
        let answer = api.call(call, body, &headers).await;
        match wanted {
            None => assert!(answer.status < 300, "{call} {header}"),
            Some(words) => {
                assert_eq!(answer.status, 401, "{call} {header}");
                let error = json!({"error_msg": "failed to check token", "description": words});
                assert!(
                    call.starts_with("HEAD") || answer.json() == error,
                    "{}",
                    answer.text
                );
            }
        }
    }
}

#[tokio::test]
async fn private_keys_are_not_read() {
    let api = Api::open().await;
    let body = json!({
        "sni": "a.com",
        "cert": format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", "A".repeat(160)),
        "key": "x".repeat(64),
    });
    let answer = api.call("PUT ssls/1", &body.to_string(), &[]).await;
    assert_eq!(
        (answer.status, answer.json()),
        (
            400,
            json!({"error_msg": "failed to parse cert: PEM_read_bio_X509_AUX() failed"})
        )
    );
    let reference = json!({"sni": "a.com", "cert": "$secret://vault/1/a/c", "key": "$secret://vault/1/a/k"});
    let answer = api.call("PUT ssls/1", &reference.to_string(), &[]).await;
    assert_eq!(
        (answer.status, &answer.json()["value"]["key"]),
        (201, &reference["key"])
    );
    let answer = api.call("GET ssls/1", "", &[]).await.json();
    assert_eq!(answer["value"].get("key"), None);
}
