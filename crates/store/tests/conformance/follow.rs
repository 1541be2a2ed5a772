//! Following a store through all that may happen to it.

use crate::fixture::{Fixture, TIMEOUT, changed, commit, delete, put};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;
use tokio::sync::Notify;
use weir_store::follow::{Subscription, resume, start};
use weir_store::memory::MemoryStore;
use weir_store::{
    Changes, CommitError, Document, HistoryEntry, Key, Revision, Store, StoreError, Transaction, Watch,
    WatchError,
};

/// The documents as a follower has them.
#[derive(Default, PartialEq, Debug)]
pub struct Copy(BTreeMap<Key, Document>);

impl Copy {
    pub fn new(documents: Vec<Document>) -> Self {
        Self(documents.into_iter().map(|it| (it.key.clone(), it)).collect())
    }

    pub fn apply(&mut self, changes: Changes) {
        for (key, document) in changes.documents {
            match document {
                Some(document) => _ = self.0.insert(key, document),
                None => _ = self.0.remove(&key),
            }
        }
    }

    /// Follows until everything up to a revision is reported.
    pub async fn reach(&mut self, following: &mut Subscription, revision: Revision) {
        while following.revision() < revision {
            let next = tokio::time::timeout(TIMEOUT, following.next()).await;
            self.apply(next.expect("something comes"));
        }
    }
}

async fn documents(store: &dyn Store, prefix: &str) -> Copy {
    Copy::new(store.read(prefix).await.expect("it is read").0)
}

pub async fn it_follows(it: Fixture) {
    it.commit(vec![put("a/1", "1"), put("b/1", "1")]).await;
    let (first, revision, mut following) = start(it.store.clone(), "a/").await.expect("it begins");
    assert_eq!((first.len(), following.revision()), (1, revision));
    assert!(following.link().borrow().is_connected());
    let mut copy = Copy::new(first);
    let mut last = revision;
    for number in 0..10 {
        let changes = vec![
            put(&format!("a/{number}"), "2"),
            delete(&format!("a/{}", number / 2)),
        ];
        last = match number % 5 {
            0 => it.commit(vec![put("b/1", &number.to_string())]).await,
            _ => commit(&*it.another(), changes).await,
        };
    }
    copy.reach(&mut following, last).await;
    assert_eq!(copy, documents(&*it.store, "a/").await);
}

pub async fn it_resumes(it: Fixture) {
    it.commit(vec![put("a/1", "1"), put("a/2", "1"), put("a/3", "1")])
        .await;
    let (old, _) = it.store.read("a/").await.expect("it is read");
    it.commit(vec![put("a/2", "2"), delete("a/3"), put("a/4", "4")])
        .await;
    it.store.compact(SystemTime::now()).await.expect("it forgets");
    let mut following = resume(it.another(), "a/", &old);
    assert!(!following.link().borrow().is_connected());
    let first = tokio::time::timeout(TIMEOUT, following.next())
        .await
        .expect("it comes");
    let expected = [("a/2", Some("2")), ("a/3", None), ("a/4", Some("4"))];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
    assert_eq!(changed(&first), expected);
    assert!(following.link().borrow().is_connected());
}

/// A store that can be taken away, and whose watches can be ended.
#[derive(Debug, Clone)]
struct Flaky {
    store: MemoryStore,
    trouble: Arc<Trouble>,
}

#[derive(Debug, Default)]
struct Trouble {
    is_away: AtomicBool,
    /// Watches that are opened are over once they have read everything: the store has forgotten.
    is_forgetful: AtomicBool,
    reads: AtomicUsize,
    end: Notify,
}

impl Flaky {
    fn check(&self) -> Result<(), StoreError> {
        match self.trouble.is_away.load(Ordering::SeqCst) {
            true => Err(StoreError::Unreachable("it is away".into())),
            false => Ok(()),
        }
    }

    fn take_away(&self) {
        self.trouble.is_away.store(true, Ordering::SeqCst);
        self.trouble.end.notify_one();
    }
}

struct FlakyWatch {
    watch: Box<dyn Watch>,
    trouble: Arc<Trouble>,
}

#[async_trait]
impl Watch for FlakyWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        tokio::select! {
            biased;
            () = self.trouble.end.notified() => match self.trouble.is_forgetful.load(Ordering::SeqCst) {
                true => Err(WatchError::Compacted),
                false => Err(StoreError::Unreachable("it is away".into()).into()),
            },
            next = self.watch.next() => next,
        }
    }
}

#[async_trait]
impl Store for Flaky {
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        self.trouble.reads.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        self.store.read(prefix).await
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.check()?;
        Ok(Box::new(FlakyWatch {
            watch: self.store.watch(prefix, after).await?,
            trouble: self.trouble.clone(),
        }))
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        self.check()?;
        self.store.commit(transaction, expected).await
    }

    async fn history(&self, _: &str, _: Option<Revision>, _: usize) -> Result<Vec<HistoryEntry>, StoreError> {
        Ok(Vec::new())
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        self.store.compact(before).await
    }
}

/// Follows until it is noticed that the store is lost.
pub async fn lose(following: &mut Subscription) {
    let mut link = following.link();
    let lost = async {
        tokio::select! {
            changes = following.next() => panic!("{changes:?}"),
            lost = link.wait_for(|link| !link.is_connected()) => assert!(lost.is_ok()),
        }
    };
    tokio::time::timeout(TIMEOUT, lost).await.expect("it is noticed");
}

#[tokio::test]
async fn a_lost_store_is_followed_again() {
    let flaky = Flaky {
        store: MemoryStore::new(),
        trouble: Arc::default(),
    };
    commit(&flaky.store, vec![put("a", "1"), put("b", "1")]).await;
    let (first, _, mut following) = start(Arc::new(flaky.clone()), "").await.expect("it begins");
    let (mut copy, link) = (Copy::new(first), following.link());

    // It goes on from the same point, without reading anything again.
    flaky.take_away();
    let before = SystemTime::now();
    lose(&mut following).await;
    let lost = link.borrow().clone();
    assert!(lost.fault.is_some_and(|fault| fault.contains("away")) && lost.since >= before);
    let last = commit(&flaky.store, vec![put("a", "2"), delete("b")]).await;
    flaky.trouble.is_away.store(false, Ordering::SeqCst);
    copy.reach(&mut following, last).await;
    assert_eq!(copy, documents(&flaky.store, "").await);
    assert!(link.borrow().is_connected());
    assert_eq!(flaky.trouble.reads.load(Ordering::SeqCst), 1);

    // What cannot be had any more is read, and reported as a difference.
    flaky.take_away();
    lose(&mut following).await;
    commit(&flaky.store, vec![put("a", "3"), put("c", "3")]).await;
    let last = commit(&flaky.store, vec![delete("a"), put("d", "4")]).await;
    flaky
        .store
        .compact(SystemTime::now() + TIMEOUT)
        .await
        .expect("it forgets");
    flaky.trouble.is_away.store(false, Ordering::SeqCst);
    let next = following.next().await;
    assert_eq!(next.revision, last);
    let names: Vec<String> = changed(&next).into_iter().map(|(key, _)| key).collect();
    assert_eq!(names, ["a", "c", "d"]);
    copy.apply(next);
    assert_eq!(copy, documents(&flaky.store, "").await);

    // A watch that was too slow.
    flaky.trouble.is_forgetful.store(true, Ordering::SeqCst);
    flaky.trouble.end.notify_one();
    let next = following.next().await;
    assert_eq!((next.revision, next.documents.len()), (last, 0));
    let last = commit(&flaky.store, vec![put("e", "5")]).await;
    copy.reach(&mut following, last).await;
    assert_eq!(copy, documents(&flaky.store, "").await);
}
