//! Writing the documents of a large commit that is made already. Any process may do it, and several at once.

use super::Shared;
use super::client::ClientError;
use super::commit::{BYTES_AT_ONCE, DOCUMENTS_AT_ONCE, Leases};
use super::layout::{compare, delete, get, put};
use super::record::{ChangeRecord, Record};
use super::state::Pending;
use super::wire::{CompareResult, Operation, RangeRequest, TxnRequest};
use std::collections::HashSet;

impl Shared {
    /// Finishes what is pending.
    pub async fn finish_large_commit(&self, pending: &Pending) -> Result<(), ClientError> {
        let record = self.pending_record(pending).await?;
        self.write_record(pending, &record).await
    }

    pub async fn write_record(&self, pending: &Pending, record: &Record) -> Result<(), ClientError> {
        let done = self.client.range(self.layout.large_commits().range(0, 0)).await?;
        let done: HashSet<Vec<u8>> = done.kvs.into_iter().map(|kv| kv.key).collect();
        for (number, part) in parts(&record.changes).into_iter().enumerate() {
            let mark = self.layout.large_commit(pending.revision, number);
            if !done.contains(mark.as_bytes()) && !self.write_part(pending, &mark, part).await? {
                return Ok(());
            }
        }
        let finish = TxnRequest {
            compare: vec![self.is_pending(pending)],
            success: vec![delete(self.layout.pending())],
            ..TxnRequest::default()
        };
        self.client.change(finish).await.map(|_| ())
    }

    fn is_pending(&self, pending: &Pending) -> super::wire::Compare {
        compare(self.layout.pending(), CompareResult::Equal, pending.revision)
    }

    /// Writes a part and its mark, unless that is done. `false`: the whole commit is finished.
    async fn write_part(
        &self,
        pending: &Pending,
        mark: &str,
        part: &[ChangeRecord],
    ) -> Result<bool, ClientError> {
        let mut left: Vec<&ChangeRecord> = part.iter().collect();
        let mut leases = Leases::default();
        loop {
            let mut compares = vec![
                self.is_pending(pending),
                compare(mark.to_owned(), CompareResult::Equal, 0),
            ];
            let mut changes = Vec::with_capacity(left.len() + 1);
            for written in &left {
                let path = self.layout.document(&written.key);
                let next = pending.revision.saturating_add(1);
                compares.push(compare(path.clone(), CompareResult::Less, next));
                changes.push(match &written.after {
                    Some(value) => {
                        let lease = leases.grant(self, written.time_to_live()).await;
                        put(path, value.clone(), lease.map_err(ClientError::Refused)?)
                    }
                    None => delete(path),
                });
            }
            changes.push(put(mark.to_owned(), Vec::new(), 0));
            let mut reads = vec![get(&self.layout.pending()), get(mark)];
            reads.extend(left.iter().map(|written| {
                Operation::Range(RangeRequest {
                    key: self.layout.document(&written.key).into(),
                    keys_only: true,
                    ..RangeRequest::default()
                })
                .into()
            }));
            let txn = TxnRequest {
                compare: compares,
                success: changes,
                failure: reads,
            };
            let answer = self.client.change(txn).await?;
            if answer.succeeded {
                return Ok(true);
            }
            let mut ranges = answer
                .ranges()
                .map(|range| range.kvs.first().map_or(0, |kv| kv.mod_revision));
            if ranges.next() != Some(pending.revision) {
                return Ok(false);
            }
            if ranges.next() != Some(0) {
                return Ok(true);
            }
            // What another program has changed since is newer, and stays.
            let is_newer: Vec<bool> = ranges.map(|revision| revision > pending.revision).collect();
            let mut newer = is_newer.into_iter();
            left.retain(|_| newer.next() != Some(true));
        }
    }
}

/// The changes in the parts in which they are written; the same for every process.
fn parts(changes: &[ChangeRecord]) -> Vec<&[ChangeRecord]> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, written) in changes.iter().enumerate() {
        bytes += written.length();
        if at > start && (at - start >= DOCUMENTS_AT_ONCE || bytes > BYTES_AT_ONCE) {
            parts.push(&changes[start..at]);
            (start, bytes) = (at, written.length());
        }
    }
    parts.push(&changes[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_small_and_lose_nothing() {
        let cases: [(usize, usize, &[usize]); 5] = [
            (0, 10, &[0]),
            (100, 10, &[100]),
            (101, 10, &[100, 1]),
            (3, BYTES_AT_ONCE / 2, &[1, 1, 1]),
            (2, BYTES_AT_ONCE * 2, &[1, 1]),
        ];
        for (count, length, expected) in cases {
            let written = ChangeRecord {
                key: "k".into(),
                after: Some(vec![0; length]),
                ..ChangeRecord::default()
            };
            let changes = vec![written; count];
            let lengths: Vec<usize> = parts(&changes).iter().map(|part| part.len()).collect();
            assert_eq!(lengths, expected, "{count} of {length}");
        }
    }
}
