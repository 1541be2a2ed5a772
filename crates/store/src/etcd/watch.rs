//! Watching: etcd's events about its keys, put together to commits.

use super::Shared;
use super::client::ClientError;
use super::state::{LargeCommits, Pending, number_of, revision_of};
use super::wire::{Event, Operation, RangeRequest, TxnRequest, WatchCreateRequest, WatchResponse};
use crate::document::Revision;
use crate::store::{Changes, StoreError, Watch, WatchError};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::sync::Arc;
use tonic::{Status, Streaming};

/// `Event.kind` of a key that is gone.
const DELETED: i32 = 1;

pub struct EtcdWatch {
    shared: Arc<Shared>,
    prefix: String,
    stream: Streaming<WatchResponse>,
    large_commits: LargeCommits,
    /// The events of revisions that are yet to be reported, each revision whole.
    waiting: VecDeque<Vec<Event>>,
}

impl From<ClientError> for WatchError {
    fn from(fault: ClientError) -> Self {
        match fault {
            ClientError::Compacted => Self::Compacted,
            ClientError::Lost(error) | ClientError::Refused(error) => Self::Store(error),
        }
    }
}

impl EtcdWatch {
    pub async fn open(shared: &Arc<Shared>, prefix: &str, after: Revision) -> Result<Self, WatchError> {
        // Whether etcd still knows that revision, and already: it refuses to read as of any other.
        let at = number_of(after).max(1);
        let reads = TxnRequest {
            success: vec![
                Operation::Range(RangeRequest {
                    key: shared.layout.last().into(),
                    revision: at,
                    ..RangeRequest::default()
                })
                .into(),
                Operation::Range(shared.layout.large_commits().range(0, 0)).into(),
            ],
            ..TxnRequest::default()
        };
        let mut large_commits = LargeCommits::default();
        let known = shared.client.txn(reads).await?.ranges().nth(1);
        for mark in known.unwrap_or_default().kvs {
            if let Some(commit) = shared.layout.large_commit_of(&mark.key) {
                large_commits.add(mark.mod_revision, commit);
            }
        }
        let watched = shared.layout.watched();
        let create = WatchCreateRequest {
            key: watched.from,
            range_end: watched.to,
            start_revision: number_of(after).saturating_add(1),
        };
        Ok(Self {
            stream: shared.client.watch(create).await?,
            shared: shared.clone(),
            prefix: prefix.to_owned(),
            large_commits,
            waiting: VecDeque::new(),
        })
    }

    /// Waits for events.
    async fn receive(&mut self) -> Result<(), WatchError> {
        let message = self.stream.message().await;
        let lost = |status: &Status| WatchError::from(self.shared.client.watch_lost(status));
        let response = match message {
            Ok(Some(response)) => response,
            Ok(None) => return Err(lost(&Status::unavailable("the watch ended"))),
            Err(status) => return Err(lost(&status)),
        };
        if response.compact_revision > 0 {
            return Err(WatchError::Compacted);
        }
        if response.canceled {
            return Err(lost(&Status::unavailable(response.cancel_reason)));
        }
        let revision = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
        let mut events = response.events.into_iter().peekable();
        while let Some(first) = events.next() {
            let at = revision(&first);
            let mut group = vec![first];
            while let Some(next) = events.next_if(|event| revision(event) == at) {
                group.push(next);
            }
            self.waiting.push_back(group);
        }
        Ok(())
    }

    /// The changes in the events of a revision. `None`: nothing that a reader does not know yet.
    async fn commit(
        &self,
        events: &[Event],
        large_commits: &LargeCommits,
    ) -> Result<Option<Changes>, WatchError> {
        let (last, pending) = (self.shared.layout.last(), self.shared.layout.pending());
        let written = |key: &str| {
            let mut kvs = events
                .iter()
                .filter(|event| event.kind != DELETED)
                .filter_map(|event| event.kv.as_ref());
            kvs.find(|kv| kv.key == key.as_bytes())
        };
        let Some(revision) = events.iter().find_map(|event| event.kv.as_ref()) else {
            return Ok(None);
        };
        let revision = revision.mod_revision;
        if let Some(pending) = written(&pending) {
            let pending = Pending::new(pending.clone())?;
            // What is no longer there is no longer known.
            let record = self.shared.chunked(&pending.commit).await?;
            let record = record.ok_or(WatchError::Compacted)?;
            return Ok(Some(record.changes(revision_of(revision), &self.prefix)?));
        }
        if large_commits.stands_for_another(revision) {
            return Ok(None);
        }
        let mut is_news = written(&last).is_some();
        let mut changes = Changes {
            revision: revision_of(revision),
            documents: Vec::new(),
        };
        for event in events {
            let Some(kv) = &event.kv else { continue };
            let Some(key) = self.shared.layout.document_key(&kv.key) else {
                continue;
            };
            is_news = true;
            if key.as_str().starts_with(&self.prefix) {
                let document =
                    (event.kind != DELETED).then(|| large_commits.document(key.clone(), kv.clone()));
                changes.documents.push((key, document));
            }
        }
        changes.documents.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(is_news.then_some(changes))
    }
}

#[async_trait]
impl Watch for EtcdWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        loop {
            let Some(events) = self.waiting.front() else {
                self.receive().await?;
                continue;
            };
            let mut large_commits = Vec::new();
            for event in events.iter().filter(|event| event.kind != DELETED) {
                let Some(kv) = &event.kv else { continue };
                if let Some(commit) = self.shared.layout.large_commit_of(&kv.key) {
                    large_commits.push((kv.mod_revision, commit));
                }
            }
            for (revision, commit) in large_commits {
                self.large_commits.add(revision, commit);
            }
            // It stays in front until it is reported: dropping this in between loses nothing.
            let events = self.waiting.front().map_or(&[][..], Vec::as_slice);
            let changes = self.commit(events, &self.large_commits).await?;
            self.waiting.pop_front();
            if let Some(changes) = changes {
                return Ok(changes);
            }
        }
    }
}

impl From<StoreError> for ClientError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}
