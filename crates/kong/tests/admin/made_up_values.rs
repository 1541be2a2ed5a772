//! Values that a configuration leaves out and that are made up: a second import keeps them, and a dry run shows none that the
//! import would not store.

use crate::conversation::Conversation;
use axum::body::to_bytes;
use serde_json::{Value, json};

const DRY: &str = "POST /config Weir-Dry-Run=true";
const IMPORT: &str = "POST /config";
const MADE: &str = "(made when it is imported)";

/// The credentials of a list after a configuration with these.
async fn take(conversation: &Conversation, line: &str, list: &str, credentials: &[Value]) -> Vec<Value> {
    let mut document = json!({
        "_format_version": "3.0",
        "consumers": [{"username": "alice"}, {"username": "bob"}],
    });
    document[list] = credentials.into();
    let answer = conversation.call(line, &document.to_string()).await;
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    assert_eq!(status, 201, "{list}: {}", String::from_utf8_lossy(&body));
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let members = body[list].as_object().expect("credentials");
    members.values().cloned().collect()
}

/// A list, what is given of a credential in addition to its consumer, and what is made up.
fn credentials() -> [(&'static str, Value, &'static [&'static str]); 6] {
    [
        ("keyauth_credentials", json!({}), &["key"]),
        (
            "keyauth_credentials",
            json!({"id": "5f3e1c80-0000-4000-8000-000000000002"}),
            &["key"],
        ),
        ("jwt_secrets", json!({}), &["key", "secret"]),
        ("jwt_secrets", json!({"key": "k"}), &["secret"]),
        ("hmacauth_credentials", json!({"username": "u"}), &["secret"]),
        (
            "oauth2_credentials",
            json!({"name": "n", "hash_secret": true}),
            &["client_id", "client_secret"],
        ),
    ]
}

#[tokio::test]
async fn imports_keep_what_was_made_up() {
    for (list, given, made) in credentials() {
        let conversation = Conversation::open().await;
        let mut credential = given.clone();
        credential["consumer"] = "alice".into();
        let of_alice = [credential.clone()];
        credential["consumer"] = "bob".into();
        let of_bob = [credential];
        let values = |found: &[Value]| -> Vec<Value> { made.iter().map(|it| found[0][it].clone()).collect() };

        let shown = values(&take(&conversation, DRY, list, &of_alice).await);
        assert!(shown.iter().all(|it| it == MADE), "{list} {given}: {shown:?}");
        let first = values(&take(&conversation, IMPORT, list, &of_alice).await);
        let is_made = |it: &Value| it.as_str().is_some_and(|it| it.len() >= 32 && it != MADE);
        assert!(first.iter().all(is_made), "{list} {given}: {first:?}");
        for line in [DRY, IMPORT, DRY] {
            let again = values(&take(&conversation, line, list, &of_alice).await);
            assert_eq!(again, first, "{list} {given}: {line}");
        }
        // Another consumer never gets them, wherever his credential stands.
        let other = values(&take(&conversation, DRY, list, &of_bob).await);
        assert!(other.iter().all(|it| it == MADE), "{list} {given}: {other:?}");
        let other = values(&take(&conversation, IMPORT, list, &of_bob).await);
        assert!(
            other.iter().all(|it| is_made(it) && !first.contains(it)),
            "{list} {given}"
        );
    }
}

/// A key that was made up and is then given to another credential is that one's alone.
#[tokio::test]
async fn a_key_that_the_file_gives_is_not_kept_for_another() {
    for (list, key) in [("keyauth_credentials", "key"), ("jwt_secrets", "key")] {
        let conversation = Conversation::open().await;
        let first = take(&conversation, IMPORT, list, &[json!({"consumer": "alice"})]).await;
        let made = first[0][key].as_str().expect("a key").to_owned();
        let both = [
            json!({"consumer": "alice"}),
            json!({"consumer": "bob", key: made}),
        ];
        let found = take(&conversation, IMPORT, list, &both).await;
        let holders = found.iter().filter(|it| it[key] == made.as_str());
        assert_eq!((found.len(), holders.count()), (2, 1), "{list}: {found:?}");
    }
}
