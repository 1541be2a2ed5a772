//! The API together with others that write to the same store.

use crate::api::{Api, clock};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use weir_apisix::AdminOptions;
use weir_store::memory::MemoryStore;
use weir_store::{Change, Key, Store, Transaction};

async fn pair() -> (Api, Api) {
    let store = Arc::new(MemoryStore::new());
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    let one = Api::with(options.clone(), store.clone()).await;
    (one, Api::with(options, store).await)
}

#[tokio::test]
async fn two_apis_see_each_other() {
    let (one, other) = pair().await;
    for round in 0..20 {
        let (writer, reader) = if round % 2 == 0 {
            (&one, &other)
        } else {
            (&other, &one)
        };
        let path = format!("routes/{round}");
        let answer = writer
            .call(&format!("PUT {path}"), r#"{"uri": "/", "plugins": {}}"#, &[])
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        // The other one has not looked yet perhaps, but what it writes is checked against what is there.
        let answer = reader
            .call(&format!("PATCH {path}/desc"), "\"x\"", &["if-match: *"])
            .await;
        assert!([200, 404].contains(&answer.status), "{}", answer.text);
        let seen = async {
            while reader.call(&format!("GET {path}"), "", &[]).await.status != 200 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), seen)
            .await
            .expect("the change is seen");
    }
    assert_eq!(one.call("GET routes", "", &[]).await.json()["total"], 20);
}

#[tokio::test]
async fn of_two_writers_with_one_revision_one_wins() {
    let (one, other) = pair().await;
    let body = r#"{"uri": "/", "plugins": {}}"#;
    assert_eq!(one.call("PUT routes/1", body, &[]).await.status, 201);
    let tag = ["if-match: \"1\""];
    let (first, second) = tokio::join!(
        one.call("PUT routes/1", body, &tag),
        other.call("PUT routes/1", body, &tag)
    );
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
}

#[tokio::test]
async fn what_was_written_has_an_author_and_may_go() {
    let api = Api::open().await;
    let body = r#"{"uri": "/", "plugins": {}}"#;
    assert_eq!(api.call("PUT routes/1", body, &[]).await.status, 201);
    let history = api.store.history("apisix/", None, 10).await.expect("a history");
    assert_eq!(history[0].author, "anonymous");
    assert_eq!(history[0].note, "PUT /apisix/admin/routes/1");
    assert_eq!(history[0].key.as_str(), "apisix/routes/1");
    assert_eq!(api.call("PUT routes/2?ttl=0", body, &[]).await.status, 201);
    let (documents, _) = api.store.read("apisix/").await.expect("documents");
    assert_eq!(documents.len(), 1);
    // Who reads the history can see when it ends; no answer shows it.
    let put = api.call("PUT routes/3?ttl=100", body, &[]).await;
    assert_eq!(put.status, 201);
    let (documents, _) = api.store.read("apisix/routes/3").await.expect("documents");
    let end = weir_apisix::end_of(&documents[0].value).expect("an end");
    assert_eq!(end, clock() + std::time::Duration::from_secs(100));
    assert_eq!(
        weir_apisix::end_of(&api.store.read("apisix/routes/1").await.expect("documents").0[0].value),
        None
    );
    let again = Api::with(AdminOptions::new(clock), api.store.clone()).await;
    for shown in [put.text, again.call("GET routes/3", "", &[]).await.text] {
        assert!(!shown.contains("_ends_at"), "{shown}");
    }
}

#[tokio::test]
async fn what_is_no_json_is_passed_over() {
    let store = Arc::new(MemoryStore::new());
    let put = |name: &str, value: &[u8]| Change::put(Key::new(name).expect("a key"), value);
    let transaction = Transaction {
        author: String::new(),
        note: String::new(),
        time: clock(),
        changes: vec![
            put("apisix/routes/1", b"{"),
            put("apisix/routes/2", b"{\"id\": \"2\"}"),
            put("kong/default/routes/3", b"{}"),
        ],
    };
    store
        .commit(transaction, Default::default())
        .await
        .expect("a commit");
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    let api = Api::with(options, store).await;
    let listing = api.call("GET routes", "", &[]).await.json();
    assert_eq!(listing["list"][0]["value"], json!({"id": "2"}));
    assert_eq!(listing["total"], 1);
    assert_eq!(
        api.call("PUT routes/1", r#"{"uri": "/", "plugins": {}}"#, &[])
            .await
            .status,
        201
    );
}
