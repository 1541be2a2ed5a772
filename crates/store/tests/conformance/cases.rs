//! Documents and commits.

use crate::fixture::{Fixture, Kind, commit, delete, key, next, put, text, texts, transaction};
use std::time::Duration;
use weir_store::{Change, CommitError, Revision, StoreError};

pub async fn documents_are_as_written(it: Fixture) {
    let (documents, start) = it.store.read("").await.expect("it is read");
    assert!(documents.is_empty());
    let first = it.commit(vec![put("a/1", "one"), put("a/2", "two")]).await;
    assert!(first > start);
    let second = it
        .commit(vec![put("a/1", "uno"), delete("a/2"), put("a/3", "tre")])
        .await;
    assert!(second > first);
    let (documents, revision) = it.store.read("").await.expect("it is read");
    assert!(revision >= second);
    let revisions: Vec<_> = documents.iter().map(|it| (it.created, it.modified)).collect();
    assert_eq!(
        documents.iter().map(text).collect::<Vec<_>>(),
        texts(&[("a/1", "uno"), ("a/3", "tre")])
    );
    assert_eq!(revisions, [(first, second), (second, second)]);
    // What comes back after it was deleted is new.
    let third = it.commit(vec![put("a/2", "due")]).await;
    let (documents, _) = it.store.read("a/2").await.expect("it is read");
    assert_eq!((documents[0].created, documents[0].modified), (third, third));
}

pub async fn prefixes_select(it: Fixture) {
    let names = ["a/1", "a/10", "a/2", "ab/1", "b/1", "b/ü", "ba"];
    it.commit(names.iter().map(|name| put(name, "")).collect()).await;
    let cases: [(&str, &[&str]); 8] = [
        ("", &names),
        ("a/", &["a/1", "a/10", "a/2"]),
        ("a/1", &["a/1", "a/10"]),
        ("a", &["a/1", "a/10", "a/2", "ab/1"]),
        ("b/", &["b/1", "b/ü"]),
        ("b/ü", &["b/ü"]),
        ("c", &[]),
        ("a%", &[]),
    ];
    for (prefix, expected) in cases {
        let found = it.texts(prefix).await;
        let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, expected, "{prefix}");
    }
}

pub async fn a_stale_writer_changes_nothing(it: Fixture) {
    let first = it.commit(vec![put("a", "1")]).await;
    let second = it.commit(vec![put("a", "2")]).await;
    for expected in [Revision(0), first, Revision(second.0 + 1_000)] {
        let changes = vec![put("a", "3"), put("b", "3"), delete("c")];
        let refused = it.store.commit(transaction(changes), expected).await;
        let Err(CommitError::Conflict { current }) = refused else {
            panic!("{expected}: {refused:?}");
        };
        assert_eq!(current, second);
        assert_eq!(it.texts("").await, texts(&[("a", "2")]));
    }
    let history = it.store.history("", None, 10).await.expect("the history");
    assert_eq!(history.len(), 2);
    // Deletions make others stale too.
    let third = it.commit(vec![delete("a")]).await;
    let refused = it.store.commit(transaction(vec![put("z", "4")]), second).await;
    assert!(matches!(refused, Err(CommitError::Conflict { current }) if current == third));
    let made = it.store.commit(transaction(vec![put("z", "4")]), third).await;
    assert!(made.expect("it is made") > third);
}

pub async fn one_of_two_writers_wins(it: Fixture) {
    let mut expected = it.commit(vec![put("counter", "0")]).await;
    let others = [it.store.clone(), it.another(), it.another()];
    for round in 1..=20 {
        let value = round.to_string();
        let writes = others.iter().enumerate().map(|(number, store)| {
            let changes = vec![put("counter", &value), put(&format!("by/{number}"), &value)];
            let store = store.clone();
            tokio::spawn(async move { store.commit(transaction(changes), expected).await })
        });
        let (mut made, mut refused) = (Vec::new(), 0);
        for write in writes.collect::<Vec<_>>() {
            match write.await.expect("it ends") {
                Ok(revision) => made.push(revision),
                Err(CommitError::Conflict { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((made.len(), refused), (1, 2), "round {round}");
        expected = made[0];
        let by: Vec<_> = it.texts("by/").await;
        assert_eq!(by.iter().filter(|(_, last)| *last == value).count(), 1);
    }
    let history = it.store.history("counter", None, 100).await.expect("the history");
    assert_eq!(history.len(), 21);
}

pub async fn nothing_to_do_is_no_commit(it: Fixture) {
    let revision = it.commit(vec![put("a", "1")]).await;
    let same = it.store.commit(transaction(Vec::new()), revision).await;
    assert_eq!(same.expect("nothing is refused"), revision);
    let stale = it.store.commit(transaction(Vec::new()), Revision(0)).await;
    assert!(matches!(stale, Err(CommitError::Conflict { current }) if current == revision));
    // Removing what is not there is a commit of nothing.
    let after = it.commit(vec![delete("b")]).await;
    assert!(after > revision);
    assert_eq!(
        it.store.history("", None, 10).await.expect("the history").len(),
        1
    );
    let mut watch = it.watch("", revision).await;
    let event = next(&mut watch).await;
    assert_eq!((event.revision, event.documents.len()), (after, 0));
}

pub async fn what_is_no_transaction_is_refused(it: Fixture) {
    let revision = it.commit(vec![put("a", "1")]).await;
    let twice = transaction(vec![put("b", "1"), put("a", "2"), delete("b")]);
    let refused = it.store.commit(twice, revision).await;
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Failed(_)))),
        "{refused:?}"
    );
    assert_eq!(it.texts("").await, texts(&[("a", "1")]));
}

pub async fn values_are_bytes(it: Fixture) {
    let all: Vec<u8> = (0..=255).collect();
    let values = [Vec::new(), all, vec![b'x'; 400_000]];
    let changes = values.iter().enumerate();
    let changes = changes.map(|(number, value)| Change::put(key(&format!("v/{number}")), &value[..]));
    it.commit(changes.collect()).await;
    let (documents, _) = it.another().read("v/").await.expect("it is read");
    let found: Vec<Vec<u8>> = documents.iter().map(|it| it.value.to_vec()).collect();
    assert_eq!(found, values);
    assert!(
        !format!("{documents:?}").contains("xxxx"),
        "values stay out of logs"
    );
}

pub async fn documents_end(it: Fixture) {
    let short = |name: &str, value: &str| Change::Put {
        key: key(name),
        value: value.as_bytes().into(),
        time_to_live: Some(Duration::from_secs(1)),
    };
    let changes = vec![
        short("ends/1", "1"),
        short("ends/2", "2"),
        short("stays/1", "1"),
        put("stays/2", "2"),
    ];
    it.commit(changes).await;
    // Written without an end, it stays.
    let revision = it.commit(vec![put("stays/1", "uno")]).await;
    let mut watch = it.watch("", revision).await;
    let mut gone = Vec::new();
    while gone.len() < 2 {
        let event = next(&mut watch).await;
        assert!(event.revision > revision);
        for (key, document) in event.documents {
            assert_eq!(document, None);
            gone.push(key.as_str().to_owned());
        }
    }
    gone.sort();
    assert_eq!(gone, ["ends/1", "ends/2"]);
    assert_eq!(it.texts("").await, texts(&[("stays/1", "uno"), ("stays/2", "2")]));
    // A reader that has seen that may commit on top of it.
    let (_, revision) = it.store.read("").await.expect("it is read");
    let after = it
        .store
        .commit(transaction(vec![put("ends/1", "new")]), revision)
        .await;
    assert!(after.expect("it is made") > revision);
}

pub async fn what_is_committed_stays(it: Fixture) {
    let revision = it.commit(vec![put("a", "1"), put("b", "2")]).await;
    let other = it.another();
    let (documents, read) = other.read("").await.expect("it is read");
    assert!(read >= revision);
    assert_eq!(
        documents.iter().map(text).collect::<Vec<_>>(),
        texts(&[("a", "1"), ("b", "2")])
    );
    let Fixture { kind, store, .. } = &it;
    if *kind == Kind::Memory {
        return;
    }
    let revision = commit(&*other, vec![put("a", "2")]).await;
    drop(other);
    assert_eq!(it.texts("a").await, texts(&[("a", "2")]));
    assert!(
        store
            .commit(transaction(vec![delete("a")]), revision)
            .await
            .is_ok()
    );
}
