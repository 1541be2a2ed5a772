//! The operational store of a location, next to its store.

use crate::fixture::{Fixture, Kind, commit, put, texts, transaction};
use weir_store::{CommitError, Document};

pub async fn two_stores_of_a_location_share_nothing(it: Fixture) {
    let operational = it.operational().await;
    let first = it.commit(vec![put("a/1", "configuration")]).await;
    let mut last = commit(&*operational, vec![put("a/1", "operational")]).await;
    for number in 0..20 {
        last = commit(&*operational, vec![put("a/2", &number.to_string())]).await;
    }
    // However much is written there, who has seen the configuration may write it.
    let second = it.store.commit(transaction(vec![put("a/3", "1")]), first).await;
    let second = second.expect("nothing was committed meanwhile");
    let made = operational
        .commit(transaction(vec![put("a/3", "2")]), last)
        .await
        .expect("nothing was committed meanwhile");
    let stale = operational.commit(transaction(vec![put("a/3", "3")]), last).await;
    assert!(matches!(stale, Err(CommitError::Conflict { current }) if current == made));
    assert_eq!(
        it.texts("").await,
        texts(&[("a/1", "configuration"), ("a/3", "1")])
    );
    let (documents, _) = operational.read("").await.expect("it is read");
    let text = |it: &Document| String::from_utf8_lossy(&it.value).into_owned();
    let values: Vec<String> = documents.iter().map(text).collect();
    assert_eq!(values, ["operational", "19", "2"]);
    let history = it.store.history("", None, 100).await.expect("the history");
    assert_eq!(history.len(), 2);
    assert!(history.iter().all(|entry| entry.revision <= second));
    // Another process finds it again.
    if it.kind != Kind::Memory {
        let (documents, _) = it.operational().await.read("a/1").await.expect("it is read");
        assert_eq!(documents.len(), 1);
    }
}
