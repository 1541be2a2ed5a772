//! That no call looks at every entity.

use crate::conversation::Conversation;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;
use weir_kong::admin::{Admin, AdminOptions};
use weir_store::{Change, Key, Revision, Transaction};

const ROUTES: u128 = 20_000;

/// Generous: the aim is a hundredth of what looking at all routes takes.
#[tokio::test]
async fn calls_do_not_look_at_every_entity() {
    let mut conversation = Conversation::open().await;
    let changes = (0..ROUTES)
        .map(|number| {
            let id = Uuid::from_u128((4 << 76) | (2 << 62) | number);
            let mut route = format!("{{\"id\":\"{id}\",\"name\":\"r{number}\",\"paths\":[\"/r{number}\"]");
            let _ = write!(route, ",\"tags\":[\"t{}\"]}}", number % 7);
            let key = Key::new(&format!("kong/default/routes/{id}")).expect("a key");
            Change::put(key, route.into_bytes())
        })
        .collect();
    let transaction = Transaction {
        author: "test".to_owned(),
        note: String::new(),
        time: std::time::SystemTime::now(),
        changes,
    };
    conversation
        .store
        .commit(transaction, Revision::default())
        .await
        .expect("stored");
    conversation.admin = Admin::open(Arc::clone(&conversation.store), AdminOptions::default())
        .await
        .expect("opened");
    for (line, body) in [
        ("PUT /routes/r77", "{\"paths\":[\"/new\"]}"),
        ("GET /routes", ""),
        ("GET /routes?tags=t1,t2", ""),
        ("DELETE /routes/r78", ""),
    ] {
        conversation.call(line, body).await;
        let begin = Instant::now();
        for _ in 0..10 {
            assert!(
                conversation.call(line, body).await.status().is_success(),
                "{line}"
            );
        }
        let each = begin.elapsed() / 10;
        eprintln!("{line}: {each:?}");
        assert!(each.as_millis() < 100, "{line}: {each:?}");
    }
}
