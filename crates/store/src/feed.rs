//! The latest commits of a store, kept for those who watch it.
//!
//! There is one log for all watches, and each watch only remembers how far it has read: a slow reader costs nothing.
//! When the log gets too long its oldest commits go; readers that had not read them get [`NextChange::Gone`].

use crate::document::Revision;
use crate::store::Changes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The log.
#[derive(Debug)]
pub struct Feed {
    log: Mutex<Log>,
    newest: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Log {
    commits: VecDeque<Arc<Changes>>,
    /// All commits after this one are in the log.
    floor: Revision,
    /// Documents in all of the commits, and one more for each commit.
    weight: usize,
    max_weight: usize,
}

/// The next event after a revision.
#[derive(Debug, PartialEq, Eq)]
pub enum NextChange {
    /// This commit, as far as it concerns the prefix.
    Commit(Changes),
    /// Nothing yet.
    Nothing,
    /// The log does not go back that far, or not yet reaches that revision at all.
    Gone,
}

impl Feed {
    /// An empty log of a store that is at a revision. It will hold about so many changed documents, or a single
    /// commit, however large it is.
    pub fn new(at: Revision, max_weight: usize) -> Self {
        let log = Log {
            commits: VecDeque::new(),
            floor: at,
            weight: 0,
            max_weight,
        };
        Self {
            log: Mutex::new(log),
            newest: watch::Sender::new(at),
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // No code that may panic runs under the lock.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a commit, whose revision is greater than all before.
    pub fn push(&self, commit: Changes) {
        let revision = commit.revision;
        self.log().push(commit);
        self.newest.send_replace(revision);
    }

    /// The newest commit; reports newer ones.
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.newest.subscribe()
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.newest.receiver_count() > 0
    }

    /// The newest commit.
    pub fn newest(&self) -> Revision {
        *self.newest.borrow()
    }

    /// The first commit after a revision.
    pub fn after(&self, revision: Revision, prefix: &str) -> NextChange {
        let newest = self.newest();
        let log = self.log();
        if revision < log.floor || revision > newest {
            return NextChange::Gone;
        }
        let at = log.commits.partition_point(|commit| commit.revision <= revision);
        let Some(commit) = log.commits.get(at).cloned() else {
            return NextChange::Nothing;
        };
        drop(log);
        NextChange::Commit(commit.below(prefix))
    }

    /// Forgets all, and goes on at a revision.
    pub fn restart(&self, at: Revision) {
        let mut log = self.log();
        log.commits.clear();
        log.weight = 0;
        log.floor = at;
        drop(log);
        self.newest.send_replace(at);
    }

    /// Forgets the commits up to a revision.
    pub fn forget(&self, up_to: Revision) {
        let mut log = self.log();
        while log.commits.front().is_some_and(|commit| commit.revision <= up_to) {
            log.pop();
        }
        log.floor = log.floor.max(up_to.min(self.newest()));
    }
}

impl Log {
    fn push(&mut self, commit: Changes) {
        self.weight += commit.documents.len() + 1;
        self.commits.push_back(Arc::new(commit));
        while self.weight > self.max_weight && self.commits.len() > 1 {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(commit) = self.commits.pop_front() {
            self.weight -= commit.documents.len() + 1;
            self.floor = commit.revision;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Key;

    fn commit(revision: u64, keys: &[&str]) -> Changes {
        let documents = keys.iter().map(|key| (Key::new(key).unwrap(), None));
        Changes {
            revision: Revision(revision),
            documents: documents.collect(),
        }
    }

    #[test]
    fn announces_what_comes_next() {
        let feed = Feed::new(Revision(5), 100);
        feed.push(commit(6, &["a/1", "b/1"]));
        feed.push(commit(9, &["b/2"]));
        let cases = [
            (4, "", NextChange::Gone),
            (5, "", NextChange::Commit(commit(6, &["a/1", "b/1"]))),
            (5, "b/", NextChange::Commit(commit(6, &["b/1"]))),
            (6, "", NextChange::Commit(commit(9, &["b/2"]))),
            (7, "a/", NextChange::Commit(commit(9, &[]))),
            (9, "", NextChange::Nothing),
            (10, "", NextChange::Gone),
        ];
        for (after, prefix, expected) in cases {
            assert_eq!(feed.after(Revision(after), prefix), expected, "{after} {prefix}");
        }
    }

    #[test]
    fn forgets_the_oldest() {
        let feed = Feed::new(Revision(0), 4);
        for revision in 1..=3 {
            feed.push(commit(revision, &["a"]));
        }
        assert_eq!(feed.after(Revision(0), ""), NextChange::Gone);
        assert_eq!(feed.after(Revision(1), ""), NextChange::Commit(commit(2, &["a"])));
        feed.push(commit(4, &["a", "b", "c", "d", "e"]));
        assert_eq!(feed.after(Revision(2), ""), NextChange::Gone);
        assert!(matches!(feed.after(Revision(3), ""), NextChange::Commit(_)));
        feed.forget(Revision(9));
        assert_eq!(feed.after(Revision(3), ""), NextChange::Gone);
        assert_eq!(feed.after(Revision(4), ""), NextChange::Nothing);
    }
}
