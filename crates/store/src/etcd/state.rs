//! Reading documents: what is in their keys, and what is pending over it.

use super::Shared;
use super::client::ClientError;
use super::layout::get;
use super::record::Record;
use super::wire::{KeyValue, Operation, TxnRequest};
use crate::document::{Document, Key, Revision};
use crate::store::StoreError;
use std::collections::{BTreeMap, HashMap};

/// How many keys are read at once.
const PAGE: i64 = 2_000;
/// How many chunks of a record are read at once.
const CHUNK_PAGE: i64 = 8;

/// Documents as they are at a revision.
#[derive(Debug)]
pub struct EtcdState {
    pub documents: BTreeMap<Key, Document>,
    pub revision: Revision,
}

/// Which revisions of etcd stand for that of a large commit.
#[derive(Debug, Default, Clone)]
pub struct LargeCommits(HashMap<i64, Revision>);

/// The large commit that is made, but not yet in all of its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its name.
    pub commit: String,
    pub revision: i64,
}

/// A revision of etcd is never negative.
pub fn revision_of(number: i64) -> Revision {
    Revision(number.unsigned_abs())
}

/// Revisions that etcd cannot have come after all that it has.
pub fn number_of(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX - 1)
}

impl LargeCommits {
    pub fn add(&mut self, revision: i64, commit: Revision) {
        self.0.insert(revision, commit);
    }

    pub fn commit(&self, revision: i64) -> Revision {
        self.0
            .get(&revision)
            .copied()
            .unwrap_or_else(|| revision_of(revision))
    }

    pub fn stands_for_another(&self, revision: i64) -> bool {
        self.0.contains_key(&revision)
    }

    pub fn document(&self, key: Key, kv: KeyValue) -> Document {
        Document {
            key,
            value: kv.value.into(),
            created: self.commit(kv.create_revision),
            modified: self.commit(kv.mod_revision),
        }
    }
}

impl Pending {
    pub fn new(kv: KeyValue) -> Result<Self, StoreError> {
        let commit = String::from_utf8(kv.value).map_err(|_| StoreError::Damaged("head/pending".into()))?;
        Ok(Self {
            commit,
            revision: kv.mod_revision,
        })
    }
}

impl Shared {
    /// The documents below a prefix.
    pub async fn read(&self, prefix: &str) -> Result<EtcdState, StoreError> {
        // A compaction between two pages makes it begin again; a third one in a row is no accident.
        for _ in 0..3 {
            match self.read_once(prefix).await {
                Err(ClientError::Compacted) => {}
                other => return other.map_err(ClientError::into_error),
            }
        }
        Err(ClientError::Compacted.into_error())
    }

    async fn read_once(&self, prefix: &str) -> Result<EtcdState, ClientError> {
        let mut rest = self.layout.documents(prefix);
        let ranges = TxnRequest {
            success: vec![
                Operation::Range(rest.range(PAGE, 0)).into(),
                Operation::Range(self.layout.large_commits().range(0, 0)).into(),
                get(&self.layout.pending()),
            ],
            ..TxnRequest::default()
        };
        let answer = self.client.txn(ranges).await?;
        let newest = answer.revision();
        let mut ranges = answer.ranges();
        let mut page = ranges.next().unwrap_or_default();
        let mut large_commits = LargeCommits::default();
        for kv in ranges.next().unwrap_or_default().kvs {
            if let Some(commit) = self.layout.large_commit_of(&kv.key) {
                large_commits.add(kv.mod_revision, commit);
            }
        }
        let pending = ranges.next().and_then(|range| range.kvs.into_iter().next());
        let mut documents = BTreeMap::new();
        loop {
            let next = page.kvs.last().map(|kv| rest.after(&kv.key));
            for kv in page.kvs {
                match self.layout.document_key(&kv.key) {
                    Some(key) => _ = documents.insert(key.clone(), large_commits.document(key, kv)),
                    None => {
                        tracing::debug!(key = %String::from_utf8_lossy(&kv.key), "an etcd key is not the name of a document and is ignored");
                    }
                }
            }
            let (true, Some(next)) = (page.more, next) else {
                break;
            };
            rest = next;
            page = self.client.range(rest.range(PAGE, newest)).await?;
        }
        let mut state = EtcdState {
            documents,
            revision: revision_of(newest),
        };
        if let Some(pending) = pending {
            let pending = Pending::new(pending).map_err(ClientError::Refused)?;
            let record = self.pending_record(&pending).await?;
            state.overlay(&record, revision_of(pending.revision), prefix)?;
        }
        Ok(state)
    }

    /// The record of what is pending. It is there at least until all documents have it.
    pub async fn pending_record(&self, pending: &Pending) -> Result<Record, ClientError> {
        self.chunked(&pending.commit).await?.ok_or_else(|| {
            ClientError::Refused(StoreError::Damaged(
                "the record of a pending commit is gone".into(),
            ))
        })
    }

    /// The record that a commit has in chunks. `None`: it is forgotten by now.
    pub async fn chunked(&self, commit: &str) -> Result<Option<Record>, ClientError> {
        let opening = self.client.range(super::wire::RangeRequest {
            key: self.layout.record(commit).into(),
            ..Default::default()
        });
        let Some(opening) = opening.await?.kvs.into_iter().next() else {
            return Ok(None);
        };
        let opening = Record::read(&opening.value).map_err(ClientError::Refused)?;
        self.complete(commit, opening).await
    }

    /// The record with its changes, in whichever keys they are. `None`: it is forgotten by now.
    pub async fn complete(&self, commit: &str, opening: Record) -> Result<Option<Record>, ClientError> {
        if opening.chunks == 0 {
            return Ok(Some(opening));
        }
        let (mut rest, mut count, mut bytes) = (self.layout.chunks(commit), 0, Vec::new());
        loop {
            let page = self.client.range(rest.range(CHUNK_PAGE, 0)).await?;
            if let Some(last) = page.kvs.last() {
                rest = rest.after(&last.key);
            }
            for chunk in page.kvs {
                bytes.extend(chunk.value);
                count += 1;
            }
            if !page.more {
                break;
            }
        }
        if count != opening.chunks {
            return Ok(None);
        }
        Record::read(&bytes).map(Some).map_err(ClientError::Refused)
    }
}

impl EtcdState {
    /// Puts what is pending over what was read; of what has come since into its documents, nothing changes.
    fn overlay(&mut self, record: &Record, commit: Revision, prefix: &str) -> Result<(), ClientError> {
        let changes = record.changes(commit, prefix).map_err(ClientError::Refused)?;
        for (key, document) in changes.documents {
            let is_newer = self.documents.get(&key).is_some_and(|it| it.modified > commit);
            match document {
                _ if is_newer => {}
                Some(document) => _ = self.documents.insert(key, document),
                None => _ = self.documents.remove(&key),
            }
        }
        Ok(())
    }
}
