//! The records of commits: reading them, and forgetting the old ones.

use super::Shared;
use super::client::ClientError;
use super::layout::{KeyRange, delete, get, time_of};
use super::record::Record;
use super::state::{Pending, number_of, revision_of};
use super::wire::{CompactionRequest, EmptyResponse, RangeRequest, RangeResponse, TxnRequest};
use crate::document::{HistoryEntry, Revision};
use crate::store::StoreError;
use std::collections::HashSet;
use std::time::SystemTime;

/// How many records are read at once, and how many names of records.
const PAGE: i64 = 64;
const NAMES_PAGE: i64 = 10_000;

/// The location of a record.
struct RecordLocation {
    commit: String,
    revision: i64,
}

impl Shared {
    pub async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let before = before.map_or(i64::MAX, number_of);
        let mut rest = self
            .layout
            .records((before < i64::MAX).then(|| revision_of(before)));
        let mut history = Vec::new();
        loop {
            let page = self.client.range(rest.range(PAGE, 0)).await;
            let page = page.map_err(ClientError::into_error)?;
            if let Some(last) = page.kvs.last() {
                rest = rest.after(&last.key);
            }
            for kv in page.kvs.into_iter().filter(|kv| kv.mod_revision < before) {
                if history.len() >= limit {
                    return Ok(history);
                }
                let (Some(commit), record) = (self.layout.commit_name(&kv.key), Record::read(&kv.value)?)
                else {
                    continue;
                };
                let record = self.complete(&commit, record).await;
                if let Some(record) = record.map_err(ClientError::into_error)? {
                    history.extend(record.recorded(revision_of(kv.mod_revision), prefix)?);
                }
            }
            if !page.more {
                return Ok(history);
            }
        }
    }

    pub async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        self.compact_or_fail(before)
            .await
            .map_err(ClientError::into_error)
    }

    async fn compact_or_fail(&self, before: SystemTime) -> Result<(), ClientError> {
        let pending = TxnRequest {
            success: vec![get(&self.layout.pending())],
            ..TxnRequest::default()
        };
        let pending = self.client.txn(pending).await?.ranges().next();
        if let Some(pending) = pending.and_then(|range| range.kvs.into_iter().next()) {
            self.finish_large_commit(&Pending::new(pending).map_err(ClientError::Refused)?)
                .await?;
        }
        let Some(latest) = self.latest_before(before).await? else {
            return Ok(());
        };
        let forget = TxnRequest {
            success: vec![
                self.layout.records_from(&latest.commit).delete(),
                self.layout.chunks_from(&latest.commit).delete(),
            ],
            ..TxnRequest::default()
        };
        self.client.txn(forget).await?;
        self.drop_marks().await?;
        let compaction = CompactionRequest {
            revision: latest.revision,
        };
        let done: Result<EmptyResponse, ClientError> =
            self.client.call("/etcdserverpb.KV/Compact", compaction).await;
        match done {
            // Another process has already forgotten more.
            Ok(_) | Err(ClientError::Compacted) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// The next keys of a span, which begins after them then.
    async fn next_names(&self, rest: &mut KeyRange) -> Result<RangeResponse, ClientError> {
        let names = RangeRequest {
            keys_only: true,
            ..rest.range(NAMES_PAGE, 0)
        };
        let page = self.client.range(names).await?;
        if let Some(last) = page.kvs.last() {
            *rest = rest.after(&last.key);
        }
        Ok(page)
    }

    /// The latest record that is, with all that are older, from before a time.
    async fn latest_before(&self, before: SystemTime) -> Result<Option<RecordLocation>, ClientError> {
        let (mut rest, mut latest) = (self.layout.records(None), None);
        loop {
            let page = self.next_names(&mut rest).await?;
            for kv in page.kvs {
                let Some(commit) = self.layout.commit_name(&kv.key) else {
                    continue;
                };
                if time_of(&commit).is_none_or(|time| time >= before) {
                    latest = None;
                } else if latest.is_none() {
                    latest = Some(RecordLocation {
                        commit,
                        revision: kv.mod_revision,
                    });
                }
            }
            if !page.more {
                return Ok(latest);
            }
        }
    }

    /// Removes the marks of large commits of which no document is left. If another process finishes a large commit
    /// meanwhile, its marks are newer than what is read here, and stay.
    async fn drop_marks(&self) -> Result<(), ClientError> {
        let marks = self.client.range(self.layout.large_commits().range(0, 0)).await?;
        if marks.kvs.is_empty() {
            return Ok(());
        }
        let (mut rest, mut used) = (self.layout.documents(""), HashSet::new());
        loop {
            let page = self.next_names(&mut rest).await?;
            used.extend(
                page.kvs
                    .iter()
                    .flat_map(|kv| [kv.create_revision, kv.mod_revision]),
            );
            if !page.more {
                break;
            }
        }
        let unused: Vec<String> = marks
            .kvs
            .into_iter()
            .filter(|mark| !used.contains(&mark.mod_revision))
            .filter_map(|mark| String::from_utf8(mark.key).ok())
            .collect();
        for marks in unused.chunks(super::commit::DOCUMENTS_AT_ONCE) {
            let drop = TxnRequest {
                success: marks.iter().cloned().map(delete).collect(),
                ..TxnRequest::default()
            };
            self.client.txn(drop).await?;
        }
        Ok(())
    }
}
