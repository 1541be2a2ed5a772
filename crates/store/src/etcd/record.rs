//! The record of a commit: its author and every change with what was there before. For a large commit it is
//! also what its documents are made from afterwards.

use super::layout::{from_millis, to_millis};
use crate::document::{Change, Document, HistoryEntry, Key, Revision, Transaction};
use crate::store::{Changes, StoreError};
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A record, or the opening of one whose changes are in chunks.
#[derive(Clone, PartialEq, Message)]
pub struct Record {
    #[prost(string, tag = "1")]
    pub author: String,
    #[prost(string, tag = "2")]
    pub note: String,
    /// Milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub time: u64,
    /// In the order of their keys.
    #[prost(message, repeated, tag = "4")]
    pub changes: Vec<ChangeRecord>,
    /// How many chunks hold the rest. 0: it is all here.
    #[prost(uint64, tag = "5")]
    pub chunks: u64,
}

/// A change.
#[derive(Clone, PartialEq, Message)]
pub struct ChangeRecord {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub before: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub after: Option<Vec<u8>>,
    /// The commit that brought in what was there before. 0: there was nothing.
    #[prost(uint64, tag = "4")]
    pub created: u64,
    /// How long it stays, in milliseconds. 0: until it is deleted.
    #[prost(uint64, tag = "5")]
    pub time_to_live: u64,
}

fn damaged(what: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!("the record of a commit: {what}"))
}

impl Record {
    /// The record of a transaction that finds these documents.
    pub fn new(transaction: &Transaction, found: &HashMap<Key, Document>) -> Self {
        let mut changes: Vec<ChangeRecord> = transaction
            .changes
            .iter()
            .filter_map(|change| ChangeRecord::new(change, found.get(change.key())))
            .collect();
        changes.sort_by(|one, other| one.key.cmp(&other.key));
        Self {
            author: transaction.author.clone(),
            note: transaction.note.clone(),
            time: to_millis(transaction.time),
            changes,
            chunks: 0,
        }
    }

    /// The opening of a record in so many chunks.
    pub fn opening(&self, chunks: usize) -> Self {
        Self {
            author: self.author.clone(),
            note: self.note.clone(),
            time: self.time,
            changes: Vec::new(),
            chunks: chunks as u64,
        }
    }

    pub fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        Self::decode(bytes).map_err(damaged)
    }

    /// The changes of the commit below a prefix.
    pub fn changes(&self, revision: Revision, prefix: &str) -> Result<Changes, StoreError> {
        let wanted = self.changes.iter().filter(|it| it.key.starts_with(prefix));
        let documents: Result<Vec<_>, StoreError> = wanted
            .map(|written| Ok((written.name()?, written.document(revision)?)))
            .collect();
        Ok(Changes {
            revision,
            documents: documents?,
        })
    }

    /// The changes below a prefix, for the history.
    pub fn recorded(&self, revision: Revision, prefix: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        let wanted = self.changes.iter().filter(|it| it.key.starts_with(prefix));
        wanted
            .map(|written| {
                Ok(HistoryEntry {
                    revision,
                    time: from_millis(self.time),
                    author: self.author.clone(),
                    note: self.note.clone(),
                    key: written.name()?,
                    before: written.before.as_deref().map(Into::into),
                    after: written.after.as_deref().map(Into::into),
                })
            })
            .collect()
    }
}

impl ChangeRecord {
    /// `None`: it removes what is not there.
    fn new(change: &Change, found: Option<&Document>) -> Option<Self> {
        let (after, time_to_live) = match change {
            Change::Put {
                value, time_to_live, ..
            } => (Some(value.to_vec()), *time_to_live),
            Change::Delete { .. } => {
                found?;
                (None, None)
            }
        };
        Some(Self {
            key: change.key().as_str().to_owned(),
            before: found.map(|found| found.value.to_vec()),
            after,
            created: found.map_or(0, |found| found.created.0),
            time_to_live: time_to_live.map_or(0, |time| time.as_millis().try_into().unwrap_or(u64::MAX)),
        })
    }

    pub fn name(&self) -> Result<Key, StoreError> {
        Key::new(&self.key).map_err(damaged)
    }

    /// The document that the commit of a revision made of it.
    pub fn document(&self, revision: Revision) -> Result<Option<Document>, StoreError> {
        let Some(value) = &self.after else {
            return Ok(None);
        };
        Ok(Some(Document {
            key: self.name()?,
            value: Arc::from(&value[..]),
            created: if self.created == 0 {
                revision
            } else {
                Revision(self.created)
            },
            modified: revision,
        }))
    }

    /// How long it stays.
    pub fn time_to_live(&self) -> Option<Duration> {
        (self.time_to_live > 0).then(|| Duration::from_millis(self.time_to_live))
    }

    /// How many bytes it takes to write it.
    pub fn length(&self) -> usize {
        self.key.len() + self.after.as_ref().map_or(0, Vec::len)
    }
}
