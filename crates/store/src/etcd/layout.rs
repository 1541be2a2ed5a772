//! The keys of a store in etcd, below its prefix:
//!
//! | key | value |
//! |---|---|
//! | `docs/KEY` | a document, as its dialect wrote it |
//! | `head/last` | which commit was the last; every commit writes it |
//! | `head/pending` | which large commit is made, but not yet in all of its documents |
//! | `folds/REVISION/NUMBER` | that a part of the large commit of this revision went into its documents here |
//! | `history/COMMIT` | the record of a commit |
//! | `chunks/COMMIT/NUMBER` | a piece of the record of a large commit |
//!
//! `docs/` to `head/` lie together, so that one watch sees every sign of a change. The name of a commit begins
//! with the revision that it expected, counted down: two commits never expect the same, and the latest comes first.

use super::wire::{
    Compare, CompareResult, DeleteRangeRequest, Operation, PutRequest, RangeRequest, RequestOp, TARGET_MOD,
};
use crate::document::{Key, Revision};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The keys of one store.
#[derive(Debug, Clone)]
pub struct Layout {
    prefix: String,
}

/// Keys from one to before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl KeyRange {
    /// The keys that start with a text, which is not empty.
    fn below(prefix: &str) -> Self {
        let mut to = prefix.as_bytes().to_vec();
        // No byte of UTF-8 is 0xFF, so that the next one is always there.
        if let Some(last) = to.last_mut() {
            *last = last.saturating_add(1);
        }
        Self {
            from: prefix.as_bytes().to_vec(),
            to,
        }
    }

    /// Reads at most so many of its keys (0: all) as of a revision (0: now).
    pub fn range(&self, limit: i64, revision: i64) -> RangeRequest {
        RangeRequest {
            key: self.from.clone(),
            range_end: self.to.clone(),
            limit,
            revision,
            keys_only: false,
        }
    }

    pub fn delete(&self) -> RequestOp {
        Operation::Delete(DeleteRangeRequest {
            key: self.from.clone(),
            range_end: self.to.clone(),
        })
        .into()
    }

    /// The keys after one of them.
    pub fn after(&self, key: &[u8]) -> Self {
        Self {
            from: [key, &[0]].concat(),
            to: self.to.clone(),
        }
    }
}

impl Layout {
    pub fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub fn document(&self, key: &str) -> String {
        format!("{}/docs/{key}", self.prefix)
    }

    /// The document that a key is for; `None`: it is for none, or its name is no good one.
    pub fn document_key(&self, key: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(key).ok()?;
        let name = text.strip_prefix(&self.prefix)?.strip_prefix("/docs/")?;
        Key::new(name).ok()
    }

    pub fn documents(&self, prefix: &str) -> KeyRange {
        KeyRange::below(&self.document(prefix))
    }

    pub fn last(&self) -> String {
        format!("{}/head/last", self.prefix)
    }

    pub fn pending(&self) -> String {
        format!("{}/head/pending", self.prefix)
    }

    pub fn large_commit(&self, revision: i64, number: usize) -> String {
        format!("{}/folds/{revision:016x}/{number:06}", self.prefix)
    }

    pub fn large_commits(&self) -> KeyRange {
        KeyRange::below(&format!("{}/folds/", self.prefix))
    }

    /// The revision of the large commit that a key of `folds/` belongs to.
    pub fn large_commit_of(&self, key: &[u8]) -> Option<Revision> {
        let text = std::str::from_utf8(key).ok()?;
        let rest = text.strip_prefix(&self.prefix)?.strip_prefix("/folds/")?;
        u64::from_str_radix(rest.split('/').next()?, 16)
            .ok()
            .map(Revision)
    }

    /// All that a watch looks at.
    pub fn watched(&self) -> KeyRange {
        KeyRange {
            from: format!("{}/docs/", self.prefix).into(),
            to: KeyRange::below(&format!("{}/head/", self.prefix)).to,
        }
    }

    pub fn record(&self, commit: &str) -> String {
        format!("{}/history/{commit}", self.prefix)
    }

    /// The records of all attempts at a commit.
    pub fn attempts(&self, commit: &str) -> KeyRange {
        KeyRange::below(&self.record(commit))
    }

    /// The commit that a key of `history/` belongs to.
    pub fn commit_name(&self, key: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(key).ok()?;
        let name = text.strip_prefix(&self.prefix)?.strip_prefix("/history/")?;
        Some(name.to_owned())
    }

    /// The records of commits before a revision, and maybe of a few after it, the latest first.
    pub fn records(&self, before: Option<Revision>) -> KeyRange {
        let mut span = KeyRange::below(&format!("{}/history/", self.prefix));
        if let Some(before) = before {
            span.from = self.record(&format!("{:016x}", !before.0)).into();
        }
        span
    }

    /// The records from that of a commit on, and all older ones.
    pub fn records_from(&self, commit: &str) -> KeyRange {
        KeyRange {
            from: self.record(commit).into(),
            to: self.records(None).to,
        }
    }

    pub fn chunk(&self, commit: &str, number: usize) -> String {
        format!("{}/chunks/{commit}/{number:06}", self.prefix)
    }

    pub fn chunks(&self, commit: &str) -> KeyRange {
        KeyRange::below(&format!("{}/chunks/{commit}/", self.prefix))
    }

    /// The pieces of the record of a commit, and of all older ones.
    pub fn chunks_from(&self, commit: &str) -> KeyRange {
        KeyRange {
            from: format!("{}/chunks/{commit}/", self.prefix).into(),
            to: KeyRange::below(&format!("{}/chunks/", self.prefix)).to,
        }
    }
}

/// The name of a commit; each attempt at it appends its number.
pub fn name_of(expected: Revision, time: SystemTime, id: u128) -> String {
    format!("{:016x}/{:012x}/{id:032x}", !expected.0, to_millis(time))
}

/// The time in the name of a commit.
pub fn time_of(commit: &str) -> Option<SystemTime> {
    let millis = commit.split('/').nth(1)?;
    Some(from_millis(u64::from_str_radix(millis, 16).ok()?))
}

/// Times in etcd are milliseconds since 1970.
pub fn to_millis(time: SystemTime) -> u64 {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(millis).unwrap_or(u64::MAX)
}

pub fn from_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

/// Reads one key as of now.
pub fn get(key: &str) -> RequestOp {
    Operation::Range(RangeRequest {
        key: key.into(),
        ..RangeRequest::default()
    })
    .into()
}

pub fn put(key: String, value: Vec<u8>, lease: i64) -> RequestOp {
    Operation::Put(PutRequest {
        key: key.into_bytes(),
        value,
        lease,
    })
    .into()
}

pub fn delete(key: String) -> RequestOp {
    Operation::Delete(DeleteRangeRequest {
        key: key.into_bytes(),
        range_end: Vec::new(),
    })
    .into()
}

/// Compares the revision of a key, which is 0 for one that is not there.
pub fn compare(key: String, result: CompareResult, revision: i64) -> Compare {
    Compare {
        result: result.into(),
        target: TARGET_MOD,
        key: key.into_bytes(),
        mod_revision: Some(revision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back() {
        let layout = Layout::new("/weir".into());
        let key = Key::new("kong/default/routes/1").unwrap();
        let document = layout.document(key.as_str());
        assert_eq!(document, "/weir/docs/kong/default/routes/1");
        assert_eq!(layout.document_key(document.as_bytes()), Some(key));
        assert_eq!(layout.document_key(b"/weir/docs/kong//1"), None);
        assert_eq!(layout.document_key(b"/other/docs/kong"), None);
        let mark = layout.large_commit(77, 3);
        assert_eq!(layout.large_commit_of(mark.as_bytes()), Some(Revision(77)));
        let time = from_millis(1_700_000_000_123);
        let name = name_of(Revision(5), time, 9);
        assert_eq!(time_of(&name), Some(time));
        assert_eq!(layout.commit_name(layout.record(&name).as_bytes()), Some(name));
    }

    #[test]
    fn spans_hold_what_they_should() {
        let layout = Layout::new("/weir".into());
        let holds =
            |span: &KeyRange, key: &str| &span.from[..] <= key.as_bytes() && key.as_bytes() < &span.to[..];
        let watched = layout.watched();
        for key in [
            "/weir/docs/a",
            "/weir/folds/1/2",
            "/weir/head/last",
            "/weir/head/pending",
        ] {
            assert!(holds(&watched, key), "{key}");
        }
        for key in [
            "/weir/chunks/1/2",
            "/weir/history/1",
            "/weirdocs/a",
            "/weir2/docs/a",
        ] {
            assert!(!holds(&watched, key), "{key}");
        }
        assert!(holds(&layout.documents("a/b"), "/weir/docs/a/bc"));
        assert!(!holds(&layout.documents("a/b"), "/weir/docs/a/c"));
        assert!(holds(&layout.documents(""), "/weir/docs/\u{10ffff}"));
    }

    #[test]
    fn the_latest_commit_comes_first() {
        let layout = Layout::new("/weir".into());
        let time = from_millis(1);
        let names = [9, 8, 5, 0].map(|expected| name_of(Revision(expected), time, 0));
        assert!(names.is_sorted(), "{names:?}");
        // What expected 8 or more got revision 9 or more.
        let from = layout.records(Some(Revision(9))).from;
        assert!(layout.record(&names[2]).into_bytes() > from);
        assert!(layout.record(&names[0]).into_bytes() > from);
        assert!(layout.records(Some(Revision(8))).from < layout.record(&names[1]).into_bytes());
    }
}
