//! A store in an etcd cluster, for several control planes and gateways.
//!
//! A document is a key of etcd, with the value that its dialect wrote: what another program puts there is read and
//! reported as it is. A commit is a transaction of etcd; its revision is etcd's. Each commit also writes one more key,
//! the head, and succeeds only if the head is not newer than its writer expects.
//!
//! **Large commits.** etcd makes at most 128 changes and takes about a megabyte in one transaction. A larger commit
//! first writes its record in chunks that no reader looks at. Then one transaction moves the head and names the record
//! as pending: from that revision on the commit is made, since every reader puts what is pending over what it reads,
//! and every watch reports it. After that the documents themselves are written, part by part; each part
//! leaves a mark below `folds/`, so that its revisions are known to stand for the commit's. A process that finds something pending
//! before it commits finishes that first, so that a process may die at any point.
//!
//! **What it does not do**: it does not see a conflict with what another program wrote or what went by itself, except
//! in the very documents that it changes; nor are those changes in the history.

mod client;
mod commit;
mod history;
mod large_commit;
mod layout;
mod location;
mod record;
mod state;
mod watch;
mod wire;

use crate::document::{Document, HistoryEntry, Revision, Transaction};
use crate::store::{CommitError, Store, StoreError, Watch, WatchError};
use async_trait::async_trait;
use client::Client;
use layout::Layout;
use location::Location;
use std::sync::Arc;
use std::time::SystemTime;

/// The store. Clones share its connections.
#[derive(Debug, Clone)]
pub struct EtcdStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Client,
    layout: Layout,
}

impl EtcdStore {
    /// The store of a location: `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX`, or
    /// `etcds://…?ca=FILE&cert=FILE&key=FILE&name=NAME` with TLS, in which all but `ca` may be left out. Connections
    /// are made when they are needed: an etcd that cannot be reached is no error here. Must be called on a runtime.
    ///
    /// # Errors
    /// If the location is invalid, or a file of it cannot be used.
    pub fn connect(location: &str) -> Result<Self, StoreError> {
        Self::at(Location::parse(location)?)
    }

    /// The operational store of a location: it lies next to the store, under its prefix with `-operational` at its end.
    /// It has a head of its own, so that the commits of one never conflict with those of the other.
    ///
    /// # Errors
    /// As [`EtcdStore::connect`].
    pub fn connect_operational(location: &str) -> Result<Self, StoreError> {
        let mut location = Location::parse(location)?;
        // Not below the prefix: who may read the configuration there must not read this.
        location.prefix.push_str("-operational");
        Self::at(location)
    }

    fn at(location: Location) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Shared {
            client: Client::new(&location)?,
            layout: Layout::new(location.prefix),
        })))
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        let state = self.0.read(prefix).await?;
        Ok((state.documents.into_values().collect(), state.revision))
    }

    fn largest_document(&self) -> Option<usize> {
        Some(commit::LARGEST_DOCUMENT)
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(watch::EtcdWatch::open(&self.0, prefix, after).await?))
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        transaction.check()?;
        self.0.commit(transaction, expected).await
    }

    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        self.0.history(prefix, before, limit).await
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        self.0.compact(before).await
    }
}
