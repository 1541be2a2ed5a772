//! `/vault-auth/{vault}/credentials`: pairs of tokens go into the vault and out of it, and nowhere else.

use crate::conversation::Conversation;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use weir_dialect::{HttpAnswer, HttpCall, HttpClient};
use weir_kong::admin::{AdminOptions, Node};

/// A vault with engines of both versions: what it holds, by URL.
#[derive(Default)]
struct Vault {
    secrets: Mutex<BTreeMap<String, Value>>,
    /// The last versions of secrets of the second engine, also of deleted ones.
    versions: Mutex<BTreeMap<String, u64>>,
}

impl Vault {
    /// Deletes a secret as `vault kv delete` does: its versions stay.
    fn delete(&self, url: &str) {
        let deleted = self.secrets.lock().expect("whole").remove(url);
        assert!(deleted.is_some(), "{url}");
    }
}

impl HttpClient for Vault {
    fn make(&self, call: HttpCall) -> HttpAnswer {
        let mut kept = self.secrets.lock().expect("whole");
        let mut versions = self.versions.lock().expect("whole");
        let is_known = call.headers.contains(&("X-Vault-Token", "t".to_owned()));
        // All versions of a secret go together.
        let url = call.url.replace("/metadata/", "/data/");
        let last = versions.get(&url).copied();
        let (mut status, mut answer) = (StatusCode::NO_CONTENT, json!({ "errors": [] }));
        match call.method {
            _ if !is_known => status = StatusCode::FORBIDDEN,
            Method::GET if kept.contains_key(&url) => status = StatusCode::OK,
            Method::GET => {
                status = StatusCode::NOT_FOUND;
                if let Some(version) = last {
                    answer =
                        json!({"data": {"data": null, "metadata": {"destroyed": false, "version": version}}});
                }
            }
            Method::POST => {
                let body: Value = serde_json::from_slice(&call.json.expect("a secret")).expect("JSON");
                let wanted = body["options"]["cas"].as_u64();
                if wanted.is_some_and(|wanted| wanted != last.unwrap_or(0)) {
                    status = StatusCode::BAD_REQUEST;
                    answer = json!({"errors": ["check-and-set parameter did not match the current version"]});
                } else {
                    if wanted.is_some() {
                        versions.insert(url.clone(), last.unwrap_or(0) + 1);
                    }
                    kept.insert(url, body);
                }
            }
            _ => {
                kept.remove(&url);
                versions.remove(&url);
            }
        }
        // Other calls come in between.
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok((status, Bytes::from(answer.to_string())))
        })
    }
}

async fn json_of(response: Response<Body>) -> Value {
    let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    serde_json::from_slice(&body).unwrap_or_default()
}

type Expected = (&'static str, &'static str, u16, &'static [&'static str]);

/// Calls with their bodies, the status of the answer, and what the vault holds then.
const CALLS: &[Expected] = &[
    (
        "POST /vault-auth/one/credentials/alice",
        r#"{"access_token":"a","secret_token":"s","ttl":60}"#,
        201,
        &["one/a"],
    ),
    // It may be another consumer's.
    (
        "POST /vault-auth/one/credentials/alice",
        r#"{"access_token":"a"}"#,
        409,
        &["one/a"],
    ),
    (
        "POST /vault-auth/two/credentials/alice",
        "form access_token=b",
        201,
        &["one/a", "two/data/b"],
    ),
    (
        "POST /vault-auth/two/credentials/alice",
        r#"{"access_token":"../b"}"#,
        400,
        &["one/a", "two/data/b"],
    ),
    (
        "POST /vault-auth/two/credentials/alice",
        r#"{"token":"b"}"#,
        400,
        &["one/a", "two/data/b"],
    ),
    (
        "POST /vault-auth/two/credentials/bob",
        "",
        404,
        &["one/a", "two/data/b"],
    ),
    (
        "POST /vault-auth/three/credentials/alice",
        "",
        404,
        &["one/a", "two/data/b"],
    ),
    (
        "POST /vault-auth/wrong/credentials/alice",
        "",
        502,
        &["one/a", "two/data/b"],
    ),
    (
        "POST /vault-auth/env/credentials/alice",
        "",
        400,
        &["one/a", "two/data/b"],
    ),
    (
        "GET /vault-auth/one/credentials/alice",
        "",
        405,
        &["one/a", "two/data/b"],
    ),
    (
        "DELETE /vault-auth/one/credentials/token/none",
        "",
        404,
        &["one/a", "two/data/b"],
    ),
    ("DELETE /vault-auth/two/credentials/token/b", "", 204, &["one/a"]),
];

/// A workspace with a consumer and connections to vaults.
async fn conversation(vault: &Arc<Vault>) -> (Conversation, Value) {
    conversation_with(Some(Arc::clone(vault) as Arc<dyn HttpClient>)).await
}

async fn conversation_with(http: Option<Arc<dyn HttpClient>>) -> (Conversation, Value) {
    let node = Node {
        http,
        ..Node::default()
    };
    let conversation = Conversation::with(AdminOptions {
        node,
        ..AdminOptions::default()
    })
    .await;
    let alice = conversation.call("POST /consumers", r#"{"username":"alice"}"#);
    let alice = json_of(alice.await).await;
    for (name, fields) in [
        ("one", json!({"kv": "v1", "vault_token": "t"})),
        ("two", json!({"kv": "v2", "vault_token": "t"})),
        ("wrong", json!({"vault_token": "other"})),
        (
            "env",
            json!({"vault_token": "{vault://env/no-such-variable-here}"}),
        ),
    ] {
        let mut body = json!({"name": name, "host": "v.test", "mount": name});
        for (field, value) in fields.as_object().expect("fields") {
            body[field] = value.clone();
        }
        let made = conversation.call("POST /vault-auth", &body.to_string()).await;
        assert_eq!(made.status(), StatusCode::CREATED, "{name}");
    }
    (conversation, alice)
}

/// A vault may be asked by two calls at once: one of them gets the token, whatever the engine.
#[tokio::test]
async fn one_of_two_gets_a_token() {
    let vault = Arc::new(Vault::default());
    let (conversation, _) = conversation(&vault).await;
    for engine in ["one", "two"] {
        let call = format!("POST /vault-auth/{engine}/credentials/alice");
        let pairs = ["s", "t"].map(|secret| format!(r#"{{"access_token":"a","secret_token":"{secret}"}}"#));
        let answers = tokio::join!(
            conversation.call(&call, &pairs[0]),
            conversation.call(&call, &pairs[1])
        );
        let mut statuses = [answers.0.status().as_u16(), answers.1.status().as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{engine}");
    }
}

/// The answer to a dry run says that it was one, so that no change is recorded; the vault keeps what it has.
#[tokio::test]
async fn dry_runs_say_so() {
    let vault = Arc::new(Vault::default());
    let (conversation, _) = conversation(&vault).await;
    for (call, status, is_tried, held) in [
        ("POST /vault-auth/one/credentials/alice", 201, true, 0),
        ("POST /vault-auth/two/credentials/alice", 201, true, 0),
        ("POST /vault-auth/two/credentials/alice", 201, false, 1),
        ("DELETE /vault-auth/two/credentials/token/a", 204, true, 1),
        ("DELETE /vault-auth/two/credentials/token/a", 204, false, 0),
    ] {
        let line = match is_tried {
            true => format!("{call} Weir-Dry-Run=true"),
            false => call.to_owned(),
        };
        let answer = conversation.call(&line, r#"{"access_token":"a"}"#).await;
        let says_so = answer.headers().contains_key("weir-dry-run");
        assert_eq!((answer.status().as_u16(), says_so), (status, is_tried), "{line}");
        assert_eq!(vault.secrets.lock().expect("whole").len(), held, "{line}");
    }
}

/// Who may write an address must not learn what is there.
#[tokio::test]
async fn all_vaults_that_cannot_be_asked_get_one_answer() {
    let (refuses, none) = (Arc::new(Vault::default()), Node::default().http);
    let (first, _) = conversation(&refuses).await;
    let second = conversation_with(none).await.0;
    let mut answers = Vec::new();
    for conversation in [first, second] {
        let call = "POST /vault-auth/wrong/credentials/alice";
        let answer = conversation.call(call, "").await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
        answers.push(json_of(answer).await);
    }
    assert_eq!(answers[0], answers[1]);
}

/// A deleted secret keeps its versions in the second engine: its token can be given again, and another one that came in
/// between is not written over.
#[tokio::test]
async fn tokens_of_deleted_secrets_can_be_given_again() {
    let vault = Arc::new(Vault::default());
    let (conversation, _) = conversation(&vault).await;
    for (engine, url) in [
        ("one", "http://v.test:8200/v1/one/a"),
        ("two", "http://v.test:8200/v1/two/data/a"),
    ] {
        let call = format!("POST /vault-auth/{engine}/credentials/alice");
        for (secret, expected, is_deleted) in [
            ("first", 201, false),
            ("second", 409, true),
            ("third", 201, true),
            ("fourth", 201, false),
        ] {
            let body = format!(r#"{{"access_token":"a","secret_token":"{secret}"}}"#);
            let answer = conversation.call(&call, &body).await;
            assert_eq!(answer.status().as_u16(), expected, "{engine}: {secret}");
            if expected == 201 {
                let kept = vault.secrets.lock().expect("whole")[url].to_string();
                assert!(kept.contains(secret), "{engine}: {kept}");
            }
            if is_deleted {
                vault.delete(url);
            }
        }
        let line = format!("DELETE /vault-auth/{engine}/credentials/token/a");
        assert_eq!(conversation.call(&line, "").await.status().as_u16(), 204);
    }
    assert!(vault.versions.lock().expect("whole").is_empty());
}

#[tokio::test]
async fn pairs_are_written_into_the_vault_and_taken_out() {
    let vault = Arc::new(Vault::default());
    let (conversation, alice) = conversation(&vault).await;
    for (call, body, status, keys) in CALLS {
        let answer = conversation.call(call, body).await;
        assert_eq!(answer.status().as_u16(), *status, "{call} {body}");
        let kept = vault.secrets.lock().expect("whole");
        let kept: Vec<&str> = kept
            .keys()
            .filter_map(|url| url.strip_prefix("http://v.test:8200/v1/"))
            .collect();
        assert_eq!(kept, *keys, "{call} {body}");
    }
    let kept = vault.secrets.lock().expect("whole")["http://v.test:8200/v1/one/a"].clone();
    assert_eq!(
        (
            &kept["access_token"],
            &kept["secret_token"],
            &kept["ttl"],
            &kept["consumer"]["id"]
        ),
        (&json!("a"), &json!("s"), &json!(60), &alice["id"])
    );
    let made = conversation
        .call("POST /vault-auth/two/credentials/alice", "")
        .await;
    let made = json_of(made).await["data"].clone();
    let lengths = ["access_token", "secret_token"].map(|field| made[field].as_str().map(str::len));
    assert_eq!(lengths, [Some(32), Some(32)]);
    let kept = vault.secrets.lock().expect("whole");
    let url = format!(
        "http://v.test:8200/v1/two/data/{}",
        made["access_token"].as_str().expect("a token")
    );
    assert_eq!(kept[&url]["data"]["secret_token"], made["secret_token"]);
}
