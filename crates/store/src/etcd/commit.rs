//! Making a commit in etcd, in as many of its transactions as needed, so that readers see all of it or nothing.

use super::Shared;
use super::client::ClientError;
use super::layout::{compare, delete, get, name_of, put};
use super::record::{ChangeRecord, Record};
use super::state::{LargeCommits, Pending, number_of, revision_of};
use super::wire::{
    Compare, CompareResult, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, Operation, RequestOp,
    TxnRequest, TxnResponse,
};
use crate::document::{Change, Document, Key, Revision, Transaction};
use crate::store::{CommitError, StoreError};
use prost::Message;
use std::collections::HashMap;
use std::time::Duration;

/// How many documents one transaction of etcd changes. Its limit is 128 of all that is done in it.
pub const DOCUMENTS_AT_ONCE: usize = 100;
/// How many bytes one transaction of etcd writes. Its limit is 1.5 MiB for the message.
pub const BYTES_AT_ONCE: usize = 1 << 20;
/// The largest document. One that etcd did not take would be found only after its commit was made.
pub const LARGEST_DOCUMENT: usize = 1_400_000;
/// How often to begin again because another program wrote what is changed.
const ATTEMPTS: usize = 8;

/// The current state of the documents that a transaction changes.
struct CommitState {
    documents: HashMap<Key, Document>,
    /// The revision of each in etcd; 0 for one that is not there.
    revisions: HashMap<Key, i64>,
    /// The last commit. 0: there was none.
    head: i64,
    pending: Option<Pending>,
    /// The revision of etcd.
    now: Revision,
}

impl CommitState {
    /// The last that was changed by a commit, or of the documents by whomever.
    fn newest(&self) -> Revision {
        let modified = self.documents.values().map(|document| document.modified);
        modified.fold(revision_of(self.head), Revision::max)
    }
}

/// The result of a transaction that makes a commit.
enum TransactionResult {
    At(Revision),
    /// Another commit was made.
    Conflict(Revision),
    /// Something is pending, or another program changed a document.
    Again,
}

impl From<ClientError> for CommitError {
    /// Of a call that does not make the commit.
    fn from(fault: ClientError) -> Self {
        Self::Store(fault.into_error())
    }
}

impl Shared {
    pub async fn commit(
        &self,
        transaction: Transaction,
        expected: Revision,
    ) -> Result<Revision, CommitError> {
        let name = name_of(expected, transaction.time, random()?);
        for attempt in 0..ATTEMPTS {
            let found = self.find(&transaction.changes).await?;
            if let Some(pending) = &found.pending {
                self.finish_large_commit(pending).await?;
                continue;
            }
            let current = found.newest();
            if current > expected || expected > found.now {
                // A member may have made an earlier attempt after it was given up.
                let made = self.client.range(self.layout.attempts(&name).range(1, 0)).await?;
                let made = made.kvs.first().map(|kv| revision_of(kv.mod_revision));
                return made.ok_or(CommitError::Conflict { current });
            }
            if transaction.changes.is_empty() {
                return Ok(expected);
            }
            let record = Record::new(&transaction, &found.documents);
            match self
                .make(&record, &format!("{name}-{attempt}"), expected, &found)
                .await?
            {
                TransactionResult::At(revision) => return Ok(revision),
                TransactionResult::Conflict(current) => return Err(CommitError::Conflict { current }),
                TransactionResult::Again => {}
            }
        }
        let text = "another program keeps changing the same documents";
        Err(StoreError::Failed(text.into()).into())
    }

    async fn make(
        &self,
        record: &Record,
        name: &str,
        expected: Revision,
        found: &CommitState,
    ) -> Result<TransactionResult, CommitError> {
        let written: usize = record.changes.iter().map(ChangeRecord::length).sum();
        let bytes = record.encode_to_vec();
        if record.changes.len() <= DOCUMENTS_AT_ONCE && bytes.len() + written <= BYTES_AT_ONCE {
            self.make_small(record, bytes, name, expected, found).await
        } else {
            self.make_large(record, &bytes, name, expected).await
        }
    }

    /// All in one transaction.
    async fn make_small(
        &self,
        record: &Record,
        bytes: Vec<u8>,
        name: &str,
        expected: Revision,
        found: &CommitState,
    ) -> Result<TransactionResult, CommitError> {
        let mut leases = Leases::default();
        let mut compares = Vec::new();
        let mut changes = Vec::new();
        for written in &record.changes {
            let key = written.name()?;
            let revision = found.revisions.get(&key).copied().unwrap_or(0);
            let path = self.layout.document(&written.key);
            compares.push(compare(path.clone(), CompareResult::Equal, revision));
            changes.push(match &written.after {
                Some(value) => put(
                    path,
                    value.clone(),
                    leases.grant(self, written.time_to_live()).await?,
                ),
                None => delete(path),
            });
        }
        changes.push(put(self.layout.record(name), bytes, 0));
        let made = self.move_head(name, expected, compares, changes).await;
        if !matches!(made, Ok(TransactionResult::At(_)) | Err(CommitError::Unknown(_))) {
            leases.revoke(self).await;
        }
        made
    }

    /// The record first, piece by piece, then all at once by naming it.
    async fn make_large(
        &self,
        record: &Record,
        bytes: &[u8],
        name: &str,
        expected: Revision,
    ) -> Result<TransactionResult, CommitError> {
        if let Some(large) = record.changes.iter().find(|it| it.length() > LARGEST_DOCUMENT) {
            let refusal = StoreError::TooLarge {
                document: large.key.clone(),
                bytes: large.length(),
                most: LARGEST_DOCUMENT,
            };
            return Err(refusal.into());
        }
        let chunks: Vec<&[u8]> = bytes.chunks(BYTES_AT_ONCE).collect();
        for (number, chunk) in chunks.iter().enumerate() {
            let write = TxnRequest {
                success: vec![put(self.layout.chunk(name, number), chunk.to_vec(), 0)],
                ..TxnRequest::default()
            };
            if let Err(fault) = self.client.change(write).await {
                self.drop_chunks(name).await;
                return Err(fault.into());
            }
        }
        let changes = vec![
            put(
                self.layout.record(name),
                record.opening(chunks.len()).encode_to_vec(),
                0,
            ),
            put(self.layout.pending(), name.into(), 0),
        ];
        let made = self.move_head(name, expected, Vec::new(), changes).await;
        match &made {
            Ok(TransactionResult::At(revision)) => {
                let pending = Pending {
                    commit: name.to_owned(),
                    revision: number_of(*revision),
                };
                if let Err(fault) = self.write_record(&pending, record).await {
                    let error = fault.into_error();
                    tracing::warn!(%error, "a commit is made, but its documents could not be written yet");
                }
            }
            Err(CommitError::Unknown(_)) => {}
            _ => self.drop_chunks(name).await,
        }
        made
    }

    /// No reader knows of them yet. What is left of them goes when the store is compacted.
    async fn drop_chunks(&self, name: &str) {
        let delete = TxnRequest {
            success: vec![self.layout.chunks(name).delete()],
            ..TxnRequest::default()
        };
        if let Err(fault) = self.client.txn(delete).await {
            tracing::debug!(error = %fault.into_error(), "chunks of a failed commit cannot be removed");
        }
    }

    /// The transaction that makes a commit. It may be sent more than once, since a member that is lost does not say
    /// whether it was done; only one of them can succeed, and the record shows afterwards that one did.
    async fn move_head(
        &self,
        name: &str,
        expected: Revision,
        mut compares: Vec<Compare>,
        mut changes: Vec<RequestOp>,
    ) -> Result<TransactionResult, CommitError> {
        let next = number_of(expected).saturating_add(1);
        compares.push(compare(self.layout.last(), CompareResult::Less, next));
        compares.push(compare(self.layout.pending(), CompareResult::Equal, 0));
        changes.push(put(self.layout.last(), name.into(), 0));
        let txn = TxnRequest {
            compare: compares,
            success: changes,
            failure: vec![get(&self.layout.last()), get(&self.layout.record(name))],
        };
        let answer: TxnResponse = match self.client.change(txn).await {
            Ok(answer) => answer,
            Err(ClientError::Lost(error)) => return Err(CommitError::Unknown(error)),
            Err(fault) => return Err(fault.into()),
        };
        if answer.succeeded {
            return Ok(TransactionResult::At(revision_of(answer.revision())));
        }
        let mut ranges = answer
            .ranges()
            .map(|range| range.kvs.first().map(|kv| kv.mod_revision));
        let (head, record) = (ranges.next().flatten(), ranges.next().flatten());
        Ok(match (record, head) {
            (Some(revision), _) => TransactionResult::At(revision_of(revision)),
            (None, Some(head)) if head >= next => TransactionResult::Conflict(revision_of(head)),
            _ => TransactionResult::Again,
        })
    }

    /// Reads the documents that are changed, the head, and what is pending.
    async fn find(&self, changes: &[Change]) -> Result<CommitState, CommitError> {
        let mut found = CommitState {
            documents: HashMap::new(),
            revisions: HashMap::new(),
            head: 0,
            pending: None,
            now: Revision::default(),
        };
        // All of those that are changed come from a store without anything pending, or the head has moved.
        let first = changes.get(..DOCUMENTS_AT_ONCE).unwrap_or(changes);
        let others = changes[first.len()..].chunks(DOCUMENTS_AT_ONCE);
        let mut large_commits = LargeCommits::default();
        for (number, changes) in std::iter::once(first).chain(others).enumerate() {
            let mut reads = vec![
                get(&self.layout.last()),
                get(&self.layout.pending()),
                Operation::Range(self.layout.large_commits().range(0, 0)).into(),
            ];
            if number > 0 {
                reads.clear();
            }
            reads.extend(
                changes
                    .iter()
                    .map(|it| get(&self.layout.document(it.key().as_str()))),
            );
            let txn = TxnRequest {
                success: reads,
                ..TxnRequest::default()
            };
            let answer = self.client.txn(txn).await?;
            let now = revision_of(answer.revision());
            let mut ranges = answer.ranges();
            if number == 0 {
                let mut one = || ranges.next().and_then(|range| range.kvs.into_iter().next());
                found.head = one().map_or(0, |kv| kv.mod_revision);
                found.pending = one().map(Pending::new).transpose()?;
                for kv in ranges.next().unwrap_or_default().kvs {
                    if let Some(commit) = self.layout.large_commit_of(&kv.key) {
                        large_commits.add(kv.mod_revision, commit);
                    }
                }
                found.now = now;
                if found.pending.is_some() {
                    return Ok(found);
                }
            }
            for kv in ranges.flat_map(|range| range.kvs) {
                if let Some(key) = self.layout.document_key(&kv.key) {
                    found.revisions.insert(key.clone(), kv.mod_revision);
                    found
                        .documents
                        .insert(key.clone(), large_commits.document(key, kv));
                }
            }
        }
        Ok(found)
    }
}

fn random() -> Result<u128, StoreError> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| StoreError::Failed("no random numbers".into()))?;
    Ok(u128::from_be_bytes(bytes))
}

/// The leases of the documents of one transaction that do not stay, one for each time to live.
#[derive(Debug, Default)]
pub struct Leases(HashMap<Duration, i64>);

impl Leases {
    /// The lease of a document. 0: it stays.
    pub async fn grant(
        &mut self,
        shared: &Shared,
        time_to_live: Option<Duration>,
    ) -> Result<i64, StoreError> {
        let Some(time_to_live) = time_to_live else {
            return Ok(0);
        };
        if let Some(lease) = self.0.get(&time_to_live) {
            return Ok(*lease);
        }
        // etcd knows whole seconds, and makes more of them than it was asked for when they are very few.
        let seconds = time_to_live.as_secs() + u64::from(time_to_live.subsec_nanos() > 0);
        let ttl = i64::try_from(seconds).unwrap_or(i64::MAX);
        let path = "/etcdserverpb.Lease/LeaseGrant";
        let granted: Result<LeaseGrantResponse, ClientError> =
            shared.client.call(path, LeaseGrantRequest { ttl }).await;
        let granted = granted.map_err(ClientError::into_error)?;
        if !granted.error.is_empty() {
            return Err(StoreError::Failed(granted.error));
        }
        self.0.insert(time_to_live, granted.id);
        Ok(granted.id)
    }

    /// Revokes them, since no document came of it.
    async fn revoke(self, shared: &Shared) {
        for id in self.0.into_values() {
            let path = "/etcdserverpb.Lease/LeaseRevoke";
            let revoked: Result<super::wire::EmptyResponse, ClientError> =
                shared.client.call(path, LeaseRevokeRequest { id }).await;
            if let Err(fault) = revoked {
                tracing::debug!(error = %fault.into_error(), "an unused lease cannot be revoked; it expires by itself");
            }
        }
    }
}
