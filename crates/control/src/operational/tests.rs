//! The operational store, in memory and in a file. The crate of the stores tests that each kind keeps the contract.

use super::*;
use std::time::UNIX_EPOCH;
use weir_store::sqlite::{OPERATIONAL_FILE_NAME, Options, SqliteStore};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

fn key(name: &str) -> Key {
    Key::new(name).expect("a key")
}

fn bound(max: usize, when_full: OverflowPolicy) -> DocumentLimit<'static> {
    DocumentLimit {
        prefix: "a/",
        max,
        when_full,
    }
}

async fn names(store: &OperationalStore, now: SystemTime) -> Vec<String> {
    let entries = store.list::<u32>("a/", now).await.expect("entries");
    entries.iter().map(|it| it.key.as_str().to_owned()).collect()
}

/// Runs a case on a store in memory and on one in a file.
async fn on_each<F: Future<Output = ()>>(case: impl Fn(OperationalStore) -> F) {
    case(OperationalStore::in_memory()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        file_name: OPERATIONAL_FILE_NAME,
        ..Options::default()
    };
    let store = SqliteStore::open_with(folder.path(), options).expect("a store");
    case(OperationalStore::new(Arc::new(store))).await;
    assert!(folder.path().join("operational.db").exists());
}

#[tokio::test]
async fn documents_end_by_the_callers_clock() {
    on_each(async |store| {
        let (now, later) = (at(0), at(100));
        store
            .put(&key("a/1"), &1_u32, (Some(later), now))
            .await
            .expect("written");
        store
            .put(&key("a/2"), &2_u32, (None, now))
            .await
            .expect("written");
        store
            .put(&key("a/3"), &3_u32, (Some(now), now))
            .await
            .expect("it has ended already");
        assert_eq!(names(&store, now).await, ["a/1", "a/2"]);
        assert_eq!(names(&store, later).await, ["a/2"]);
        let read = store
            .read::<u32>(&key("a/1"), at(99))
            .await
            .expect("read")
            .expect("there");
        assert_eq!((read.value, read.ends), (1, Some(later)));
        assert_eq!(store.read::<u32>(&key("a/1"), later).await.expect("read"), None);
        assert_eq!(
            store.read::<u32>(&key("a"), now).await.expect("read"),
            None,
            "a prefix is not a valid name"
        );
        store
            .remove([key("a/2"), key("a/9")], now)
            .await
            .expect("removed");
        assert_eq!(names(&store, now).await, ["a/1"]);
        assert_eq!(
            store.list::<String>("a/", now).await.expect("read"),
            [],
            "of another type"
        );
    })
    .await;
}

#[tokio::test]
async fn there_are_no_more_than_the_bound_says() {
    on_each(async |store| {
        for number in 0..3_u32 {
            let (name, ends) = (key(&format!("a/{number}")), at(u64::from(number) + 1));
            store
                .create(
                    &name,
                    &number,
                    (Some(ends), at(0)),
                    bound(3, OverflowPolicy::Refuse),
                )
                .await
                .expect("there is room");
        }
        store
            .put(&key("b/1"), &1_u32, (None, at(0)))
            .await
            .expect("what is elsewhere does not count");
        let one_more = |name, now, max, when_full| {
            let store = store.clone();
            async move {
                let done = store
                    .create(&key(name), &9_u32, (None, now), bound(max, when_full))
                    .await;
                done.map_err(|error| error.to_string())
            }
        };
        let refused = one_more("a/9", at(0), 3, OverflowPolicy::Refuse).await;
        assert!(refused.is_err_and(|it| it.contains("3 of them")));
        let refused = one_more("a/2", at(0), 9, OverflowPolicy::Refuse).await;
        assert!(refused.is_err_and(|it| it.contains("a/2 exists")));
        one_more("a/x", at(0), 3, OverflowPolicy::RemoveOldest)
            .await
            .expect("the oldest goes");
        assert_eq!(names(&store, at(0)).await, ["a/1", "a/2", "a/x"]);
        // What has ended does not count, is not in the way, and goes.
        one_more("a/1", at(2), 3, OverflowPolicy::Refuse)
            .await
            .expect("it has ended");
        assert_eq!(names(&store, at(2)).await, ["a/1", "a/2", "a/x"]);
        assert!(
            one_more("a/9", at(2), 0, OverflowPolicy::RemoveOldest)
                .await
                .is_err()
        );
    })
    .await;
}

#[tokio::test]
async fn what_counts_once_is_taken_once() {
    on_each(async |store| {
        store
            .put(&key("a/1"), &7_u32, (Some(at(9)), at(0)))
            .await
            .expect("written");
        let tries: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { store.take::<u32>(&key("a/1"), at(1)).await })
            })
            .collect();
        let mut got = Vec::new();
        for one in tries {
            got.extend(one.await.expect("it ends").expect("no fault"));
        }
        assert_eq!(got.iter().map(|it| it.value).collect::<Vec<_>>(), [7]);
        store
            .put(&key("a/1"), &7_u32, (Some(at(9)), at(0)))
            .await
            .expect("written");
        assert_eq!(
            store.take::<u32>(&key("a/1"), at(9)).await.expect("no fault"),
            None,
            "too late"
        );
    })
    .await;
}

#[tokio::test]
async fn changes_of_many_add_up() {
    on_each(async |store| {
        let tries: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    let add = |known: Option<&OperationalEntry<u32>>| {
                        Some((known.map_or(0, |it| it.value) + 1, None))
                    };
                    store.update(&key("a/1"), at(0), add).await
                })
            })
            .collect();
        for one in tries {
            one.await.expect("it ends").expect("no fault");
        }
        let none = store
            .update::<u32>(&key("a/1"), at(0), |_| None)
            .await
            .expect("no fault");
        assert_eq!(none, Some(8));
    })
    .await;
}
