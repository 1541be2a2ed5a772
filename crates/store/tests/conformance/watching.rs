//! Watches.

use crate::fixture::{Fixture, changed, commit, delete, next, put};
use std::time::Duration;
use weir_store::{Revision, WatchError};

fn owned_pairs(texts: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    let texts = texts.iter();
    texts
        .map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)))
        .collect()
}

pub async fn every_commit_is_reported_in_order(it: Fixture) {
    let (_, start) = it.store.read("").await.expect("it is read");
    let (mut all, mut some) = (it.watch("", start).await, it.watch("a/", start).await);
    let revisions = [
        it.commit(vec![put("b/1", "1"), put("a/1", "1")]).await,
        it.commit(vec![put("b/1", "2")]).await,
        it.commit(vec![delete("a/1"), put("a/2", "3"), delete("b/1")])
            .await,
    ];
    let of_all = [
        owned_pairs(&[("a/1", Some("1")), ("b/1", Some("1"))]),
        owned_pairs(&[("b/1", Some("2"))]),
        owned_pairs(&[("a/1", None), ("a/2", Some("3")), ("b/1", None)]),
    ];
    let of_some = [
        owned_pairs(&[("a/1", Some("1"))]),
        owned_pairs(&[]),
        owned_pairs(&[("a/1", None), ("a/2", Some("3"))]),
    ];
    for ((revision, of_all), of_some) in revisions.into_iter().zip(of_all).zip(of_some) {
        for (watch, expected) in [(&mut all, of_all), (&mut some, of_some)] {
            let next = next(watch).await;
            assert_eq!((next.revision, changed(&next)), (revision, expected));
        }
    }
}

pub async fn a_watch_begins_in_the_past(it: Fixture) {
    let mut revisions = Vec::new();
    for number in 0..10 {
        revisions.push(it.commit(vec![put("a", &number.to_string())]).await);
    }
    for (at, revision) in revisions.iter().enumerate() {
        let mut watch = it.another().watch("a", *revision).await.expect("it is watched");
        for later in &revisions[at + 1..] {
            let next = next(&mut watch).await;
            assert_eq!(next.revision, *later);
            let document = next.documents[0].1.as_ref().expect("it is there");
            assert_eq!((document.created, document.modified), (revisions[0], *later));
        }
    }
}

pub async fn another_process_gets_the_commit(it: Fixture) {
    let (_, start) = it.store.read("").await.expect("it is read");
    let other = it.another();
    let (mut here, mut there) = (
        it.watch("", start).await,
        other.watch("", start).await.expect("it is watched"),
    );
    for number in 0..20 {
        let value = number.to_string();
        let store = if number % 2 == 0 { &it.store } else { &other };
        let revision = commit(&**store, vec![put("a", &value)]).await;
        for watch in [&mut here, &mut there] {
            let next = next(watch).await;
            assert_eq!(
                (next.revision, changed(&next)),
                (revision, owned_pairs(&[("a", Some(&value))]))
            );
        }
    }
}

pub async fn a_dropped_wait_loses_nothing(it: Fixture) {
    let (_, start) = it.store.read("").await.expect("it is read");
    let mut watch = it.watch("", start).await;
    let mut expected = Vec::new();
    for number in 0..50 {
        expected.push(it.commit(vec![put("a", &number.to_string())]).await);
    }
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        // Polled once or twice and given up.
        let wait = Duration::from_micros(seen.len() as u64 * 7 % 200);
        if let Ok(next) = tokio::time::timeout(wait, watch.next()).await {
            seen.push(next.expect("the watch goes on").revision);
        }
    }
    assert_eq!(seen, expected);
}

pub async fn a_slow_watch_misses_nothing_unseen(it: Fixture) {
    let (_, start) = it.store.read("").await.expect("it is read");
    let mut watch = it.watch("", start).await;
    let mut expected = Vec::new();
    for round in 0..60 {
        let value = round.to_string();
        let changes = (0..900).map(|number| put(&format!("a/{number}"), &value));
        expected.push(it.commit(changes.collect()).await);
    }
    let mut seen = 0;
    let end = loop {
        match watch.next().await {
            Ok(next) => {
                assert_eq!((next.revision, next.documents.len()), (expected[seen], 900));
                seen += 1;
            }
            Err(error) => break Some(error),
        }
        if seen == expected.len() {
            break None;
        }
    };
    // It gets everything, or a notice that it does not.
    assert!(matches!(end, None | Some(WatchError::Compacted)), "{end:?}");
    let mut new = it.watch("", expected[58]).await;
    assert_eq!(next(&mut new).await.revision, expected[59]);
}

pub async fn a_revision_to_come_cannot_be_watched(it: Fixture) {
    let revision = it.commit(vec![put("a", "1")]).await;
    let watch = it.store.watch("", Revision(revision.0 + 1_000)).await;
    assert!(matches!(watch, Err(WatchError::Compacted)));
}
