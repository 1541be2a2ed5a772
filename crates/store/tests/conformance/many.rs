//! Commits of many documents, and of large ones.

use crate::fixture::{Fixture, commit, delete, key, next, put, text, transaction};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use weir_store::{Change, CommitError, Revision, Store, StoreError};

const MANY: usize = 5_000;

fn all(value: &str) -> Vec<Change> {
    (0..MANY)
        .map(|number| put(&format!("many/{number:05}"), value))
        .collect()
}

/// All have the value and the revisions.
async fn assert_all(store: &Arc<dyn Store>, value: &str, created: Revision, modified: Revision) {
    let (documents, _) = store.read("many/").await.expect("it is read");
    assert_eq!(documents.len(), MANY);
    for document in documents {
        assert_eq!(&document.value[..], value.as_bytes(), "{document:?}");
        assert_eq!(
            (document.created, document.modified),
            (created, modified),
            "{document:?}"
        );
    }
}

pub async fn many_documents_are_one_commit(it: Fixture) {
    let start = it.commit(vec![put("few/1", "0")]).await;
    let mut watch = it.watch("many/", start).await;
    let first = it.commit(all("first")).await;
    let event = next(&mut watch).await;
    assert_eq!((event.revision, event.documents.len()), (first, MANY));
    assert!(
        event
            .documents
            .iter()
            .all(|(_, it)| it.as_ref().is_some_and(|it| it.created == first))
    );
    assert_all(&it.another(), "first", first, first).await;

    // A writer that comes too late, and one that has seen it.
    let refused = it.store.commit(transaction(all("late")), start).await;
    assert!(
        matches!(refused, Err(CommitError::Conflict { current }) if current == first),
        "{refused:?}"
    );
    let small = it.store.commit(transaction(vec![put("few/1", "1")]), first).await;
    let small = small.expect("it is on top of what it has seen");
    let second = it.store.commit(transaction(all("second")), small).await;
    let second = second.expect("it is on top of what it has seen");
    assert_all(&it.store, "second", first, second).await;
    assert_eq!(next(&mut watch).await.revision, small);
    let event = next(&mut watch).await;
    assert_eq!((event.revision, event.documents.len()), (second, MANY));
    assert!(
        event
            .documents
            .iter()
            .all(|(_, it)| it.as_ref().is_some_and(|it| it.created == first))
    );
    // The steps by which it was done are not reported.
    let third = it.commit(vec![put("many/00000", "third")]).await;
    let event = next(&mut watch).await;
    assert_eq!((event.revision, event.documents.len()), (third, 1));
    assert_eq!(event.documents[0].1.as_ref().map(|it| it.created), Some(first));

    let history = it
        .store
        .history("many/", Some(third), 1)
        .await
        .expect("the history");
    assert_eq!(history.len(), MANY);
    assert!(
        history
            .iter()
            .all(|it| it.revision == second && it.before.as_deref() == Some(&b"first"[..]))
    );
    // From the past it is reported alike.
    let mut again = it
        .another()
        .watch("many/00001", start)
        .await
        .expect("it is watched");
    for (revision, count) in [(first, 1), (small, 0), (second, 1), (third, 0)] {
        let event = next(&mut again).await;
        assert_eq!((event.revision, event.documents.len()), (revision, count));
    }
}

pub async fn many_documents_go_at_once(it: Fixture) {
    let start = it.commit(all("first")).await;
    let others = (0..MANY).map(|number| delete(&format!("many/{number:05}")));
    let changes = others.chain([put("other", "1")]).collect();
    let gone = commit(&*it.another(), changes).await;
    assert_eq!(it.texts("").await, crate::fixture::texts(&[("other", "1")]));
    let mut watch = it.watch("many/", start).await;
    let event = next(&mut watch).await;
    assert_eq!((event.revision, event.documents.len()), (gone, MANY));
    assert!(event.documents.iter().all(|(_, document)| document.is_none()));
    it.store
        .compact(std::time::SystemTime::now())
        .await
        .expect("it forgets");
    let back = it.commit(all("back")).await;
    assert_all(&it.another(), "back", back, back).await;
}

/// As if its process had died, at each point at which a commit waits for something.
pub async fn a_commit_that_is_given_up_is_whole(it: Fixture) {
    const SOME: usize = 250;
    let start = it.commit(vec![put("start", "")]).await;
    let mut last = "none".to_owned();
    for polls in 1.. {
        let value = polls.to_string();
        let (_, revision) = it.store.read("none").await.expect("it is read");
        let changes = (0..SOME).map(|number| put(&format!("some/{number}"), &value));
        let mut commit = it.store.commit(transaction(changes.collect()), revision);
        let mut count = 0;
        let made = poll_fn(|context| {
            count += 1;
            match commit.as_mut().poll(context) {
                Poll::Ready(made) => Poll::Ready(Some(made)),
                Poll::Pending if count == polls => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        let made = made.await;
        drop(commit);
        for store in [&it.store, &it.another()] {
            let found: Vec<String> = {
                let (documents, _) = store.read("some/").await.expect("it is read");
                documents.iter().map(|document| text(document).1).collect()
            };
            let first = found.first().cloned().unwrap_or_else(|| last.clone());
            assert!(
                first == last || first == value,
                "{first} after {last}, given up: {value}"
            );
            assert!(found.is_empty() || found.len() == SOME && found.iter().all(|it| *it == first));
        }
        let found = it.texts("some/0").await;
        last = found.first().map_or(last, |(_, value)| value.clone());
        if let Some(made) = made {
            // Something that was given up may have been made just before.
            assert!(
                matches!(made, Ok(_) | Err(CommitError::Conflict { .. })),
                "{made:?}"
            );
            if made.is_ok() {
                break;
            }
        }
    }
    // Every one that was made is reported whole.
    let end = it.commit(vec![put("end", "")]).await;
    let mut watch = it.watch("some/", start).await;
    loop {
        let event = next(&mut watch).await;
        assert!([0, SOME].contains(&event.documents.len()));
        if event.revision == end {
            break;
        }
    }
}

pub async fn large_documents_are_one_commit(it: Fixture) {
    let value: Vec<u8> = (0..600_000u32).map(|number| (number % 251) as u8).collect();
    let changes = (0..5).map(|number| Change::put(key(&format!("large/{number}")), &value[..]));
    let start = it.commit(changes.collect()).await;
    let changes = (1..5).map(|number| Change::put(key(&format!("large/{number}")), &value[1..]));
    let end = it.commit(changes.chain([delete("large/0")]).collect()).await;
    let (documents, _) = it.another().read("large/").await.expect("it is read");
    assert_eq!(documents.len(), 4);
    assert!(
        documents
            .iter()
            .all(|it| it.value[..] == value[1..] && it.created == start && it.modified == end)
    );
    let history = it.store.history("large/", None, 100).await.expect("the history");
    assert_eq!(history.len(), 10);
    assert!(
        history[..5]
            .iter()
            .all(|it| it.before.as_deref() == Some(&value[..]))
    );
}

/// The largest document that a store names is taken, also by a store that is sealed, and a larger one is refused as such.
pub async fn the_largest_document_is_taken(it: Fixture) {
    let name = "large/document";
    let Some(most) = it.store.largest_document() else {
        return;
    };
    let change = |length: usize| vec![Change::put(key(name), vec![b'x'; length - name.len()])];
    let head = it.commit(change(most)).await;
    let refused = it.store.commit(transaction(change(most + 1)), head).await;
    let Err(CommitError::Store(StoreError::TooLarge {
        document,
        bytes,
        most,
    })) = refused
    else {
        panic!("{refused:?}");
    };
    assert!(document == name && bytes == most + 1, "{document} {bytes} {most}");
}
