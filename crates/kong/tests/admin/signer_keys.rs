//! Keys that the gateway makes for `jwt-signer`: made with the first instance that names them, rotated, removed, never shown.

use super::conversation::Conversation;
use axum::body::to_bytes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use weir_kong::admin::AdminOptions;

const KEYS: &str = "/jwt-signer/jwks/kong";
/// Members that are no one's business.
const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "k"];

async fn call(to: &Conversation, line: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let answer = to.call(line, &body).await;
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// The ids of keys, none of which shows a private part.
fn ids(keys: &Value) -> BTreeSet<String> {
    let keys = keys.as_array().expect("a list");
    let id = |key: &Value| {
        let shown = PRIVATE.iter().find(|name| key.get(**name).is_some());
        assert_eq!(shown, None, "{key}");
        key["kid"].as_str().expect("an id").to_owned()
    };
    keys.iter().map(id).collect()
}

fn signer(config: Value) -> Value {
    let mut plugin = json!({ "name": "jwt-signer", "config": {"access_token_optional": true} });
    for (name, value) in config.as_object().expect("fields") {
        plugin["config"][name] = value.clone();
    }
    plugin
}

#[tokio::test]
async fn keys_are_made_rotated_and_removed() {
    let admin = Conversation::with(AdminOptions::default()).await;
    assert_eq!(call(&admin, &format!("GET {KEYS}"), &Value::Null).await.0, 404);
    assert_eq!(
        call(&admin, &format!("POST {KEYS}/rotate"), &Value::Null).await.0,
        404
    );
    let made = call(&admin, "POST /plugins", &signer(json!({}))).await;
    assert_eq!(made.0, 201, "{made:?}");
    let plugin = format!("/plugins/{}", made.1["id"].as_str().expect("an id"));
    let (status, first) = call(&admin, &format!("GET {KEYS}"), &Value::Null).await;
    assert_eq!((status, &first["previous"]), (200, &json!([])));
    let algorithms: Vec<&str> = first["keys"]
        .as_array()
        .expect("keys")
        .iter()
        .filter_map(|key| key["alg"].as_str())
        .collect();
    assert_eq!(
        algorithms,
        [
            "RS256", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"
        ]
    );
    let first = ids(&first["keys"]);
    // What is there is not made again.
    let changed = json!({ "config": {"access_token_signing_algorithm": "ES256"} });
    assert_eq!(call(&admin, &format!("PATCH {plugin}"), &changed).await.0, 200);
    assert_eq!(
        ids(&call(&admin, &format!("GET {KEYS}"), &Value::Null).await.1["keys"]),
        first
    );
    // Two tokens may name two sets.
    let both = json!({ "config": {
        "access_token_keyset": "one", "channel_token_keyset": "two", "channel_token_request_header": "X-C",
        "channel_token_upstream_header": "X-U",
    }});
    assert_eq!(call(&admin, &format!("PATCH {plugin}"), &both).await.0, 200);
    let (_, list) = call(&admin, "GET /jwt-signer/jwks", &Value::Null).await;
    let list = list["data"].as_array().expect("a list");
    let mut names: Vec<&str> = list.iter().filter_map(|set| set["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["kong", "one", "two"]);
    let all: BTreeSet<String> = list.iter().flat_map(|set| ids(&set["keys"])).collect();
    assert_eq!(all.len(), 27);
    assert!(
        list.iter()
            .all(|set| set["created_at"].is_u64() && set["id"].is_string())
    );
    // The current keys become the previous ones, and the previous ones are forgotten.
    let (status, rotated) = call(&admin, &format!("POST {KEYS}/rotate"), &Value::Null).await;
    assert_eq!((status, ids(&rotated["previous"])), (200, first.clone()));
    let second = ids(&rotated["keys"]);
    assert!(second.is_disjoint(&first));
    let (_, again) = call(&admin, &format!("POST {KEYS}/rotate"), &Value::Null).await;
    assert_eq!(ids(&again["previous"]), second);
    assert_eq!(call(&admin, &format!("GET {KEYS}"), &Value::Null).await.1, again);
    // Keys in use are replaced; others go.
    let named = json!({ "config": {"access_token_keyset": "kong", "channel_token_upstream_header": null} });
    assert_eq!(call(&admin, &format!("PATCH {plugin}"), &named).await.0, 200);
    assert_eq!(call(&admin, &format!("DELETE {KEYS}"), &Value::Null).await.0, 204);
    let (_, fresh) = call(&admin, &format!("GET {KEYS}"), &Value::Null).await;
    assert_eq!((ids(&fresh["keys"]).len(), &fresh["previous"]), (9, &json!([])));
    assert!(ids(&fresh["keys"]).is_disjoint(&ids(&again["keys"])));
    assert_eq!(
        call(&admin, "DELETE /jwt-signer/jwks/two", &Value::Null).await.0,
        204
    );
    assert_eq!(
        call(&admin, "GET /jwt-signer/jwks/two", &Value::Null).await.0,
        404
    );
}

#[tokio::test]
async fn what_is_not_to_be_made_or_changed_is_refused() {
    let admin = Conversation::with(AdminOptions::default()).await;
    let keyset = json!({ "name": "own" });
    assert_eq!(call(&admin, "POST /key-sets", &keyset).await.0, 201);
    for (line, body, status, part) in [
        (
            "POST /plugins",
            signer(json!({"access_token_signing_algorithm": "HS256"})),
            400,
            "key set with the name 'kong'",
        ),
        ("POST /jwt-signer/jwks/own/rotate", Value::Null, 400, "/key-sets"),
        ("DELETE /jwt-signer/jwks/own", Value::Null, 400, "/key-sets"),
        ("DELETE /jwt-signer/jwks/none", Value::Null, 404, "Not found"),
        (
            "POST /jwt-signer/jwks",
            json!({"name": "a"}),
            405,
            "Method not allowed",
        ),
        (
            "PUT /jwt-signer/jwks/a",
            json!({"name": "a"}),
            405,
            "Method not allowed",
        ),
        (
            "PATCH /jwt-signer/jwks/own",
            json!({"name": "a"}),
            405,
            "Method not allowed",
        ),
        (
            "GET /jwt-signer/jwks/own/rotate",
            Value::Null,
            405,
            "Method not allowed",
        ),
        ("GET /jwt-signer/other", Value::Null, 404, "Not found"),
        // What needs no keys makes none.
        (
            "POST /plugins",
            signer(
                json!({"access_token_keyset": "https://a/keys", "access_token_signing_algorithm": "HS256"}),
            ),
            201,
            "jwt-signer",
        ),
    ] {
        let (found, answer) = call(&admin, line, &body).await;
        assert_eq!(found, status, "{line}: {answer}");
        assert!(answer.to_string().contains(part), "{line}: {answer}");
    }
    let (_, list) = call(&admin, "GET /jwt-signer/jwks", &Value::Null).await;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{list}");
}
