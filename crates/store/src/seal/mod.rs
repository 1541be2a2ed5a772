//! A store whose values are encrypted at rest: keys, tokens and passwords are in documents, and anyone who copies
//! the store's disk, or may read the etcd, is not to have them.
//!
//! A sealed value is [`MAGIC`], which key sealed it (4 bytes), a nonce (12 bytes), and the value encrypted with
//! AES-256-GCM together with its tag (16 bytes). The document's key is authenticated with it, so that a sealed value
//! cannot be moved to another document. Values in the history are sealed likewise.
//!
//! **What it does not do**: names of documents, authors, notes and times are readable. A value that is not sealed is
//! handed on as it is, so that a store can be sealed from now on: who may write to the store can write what is not
//! sealed. A value that none of the keys opens is handed on as it is too, after the file of keys was read again
//! if it is another one by now; its dialect finds it broken, and the others go on.

mod keys;

pub use keys::{KeyError, SealingKeys};

use crate::document::{Change, Document, HistoryEntry, Revision, Transaction};
use crate::store::{Changes, CommitError, Store, StoreError, Watch, WatchError};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::SystemTime;

/// The first bytes of a sealed value. No text begins so.
pub const MAGIC: &[u8] = b"\0weir-sealed-1\0";

/// Whether a value is sealed.
pub fn is_sealed(value: &[u8]) -> bool {
    value.starts_with(MAGIC)
}
/// A store whose values are sealed.
#[derive(Debug, Clone)]
pub struct Sealed {
    store: Arc<dyn Store>,
    keys: SealingKeys,
}

impl Sealed {
    /// Seals what is written to a store from now on.
    pub fn new(store: Arc<dyn Store>, keys: SealingKeys) -> Self {
        Self { store, keys }
    }

    /// The same transaction with its values sealed.
    fn sealed(&self, mut transaction: Transaction) -> Result<Transaction, StoreError> {
        for change in &mut transaction.changes {
            if let Change::Put { key, value, .. } = change {
                *value = self.keys.seal(key, value)?;
            }
        }
        Ok(transaction)
    }
}

#[async_trait]
impl Store for Sealed {
    fn is_sealed(&self) -> bool {
        true
    }

    fn largest_document(&self) -> Option<usize> {
        let most = self.store.largest_document()?;
        Some(most.saturating_sub(keys::OVERHEAD))
    }

    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        let (mut documents, revision) = self.store.read(prefix).await?;
        for document in &mut documents {
            document.value = self.keys.open(&document.key, document.value.clone());
        }
        Ok((documents, revision))
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(SealedWatch {
            watch: self.store.watch(prefix, after).await?,
            keys: self.keys.clone(),
        }))
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        self.store.commit(self.sealed(transaction)?, expected).await
    }

    async fn append(&self, transaction: Transaction) -> Result<Revision, CommitError> {
        self.store.append(self.sealed(transaction)?).await
    }

    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let mut history = self.store.history(prefix, before, limit).await?;
        for recorded in &mut history {
            let key = &recorded.key;
            let open = |value: Arc<[u8]>| self.keys.open(key, value);
            recorded.before = recorded.before.take().map(open);
            recorded.after = recorded.after.take().map(open);
        }
        Ok(history)
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        self.store.compact(before).await
    }
}

struct SealedWatch {
    watch: Box<dyn Watch>,
    keys: SealingKeys,
}

#[async_trait]
impl Watch for SealedWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        let mut changes = self.watch.next().await?;
        for (key, document) in &mut changes.documents {
            if let Some(document) = document {
                document.value = self.keys.open(key, document.value.clone());
            }
        }
        Ok(changes)
    }
}
