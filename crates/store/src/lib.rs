//! Weir's store: versioned documents, read and watched by revision, committed whole or not at all.
//!
//! A [`Store`] keeps [`Document`]s under [`Key`]s. Every commit is a [`Transaction`] of any number of changes; it
//! takes effect as one [`Revision`] or not at all, and only if nothing was committed since the revision that its
//! writer had seen. A [`Watch`] reports the revisions after one, in order. Every change stays in the history for a
//! while: who, when, before, after.
//!
//! **What it is not**: it does not know what a document means. Dialects own the names below their first segment
//! (`kong/…`, `apisix/…`, `native/…`); references, uniqueness and validity are theirs.

mod author;
mod declared;
mod document;
pub mod etcd;
mod feed;
pub mod folder_watch;
pub mod follow;
pub mod memory;
mod open;
pub mod seal;
pub mod sqlite;
mod store;

pub use author::{Author, WorkspaceScoped};
pub use declared::{DeclaredConfig, Replacement};
pub use document::{BadKey, Change, Document, HistoryEntry, Key, Revision, Transaction};
pub use open::{open, open_operational};
pub use store::{Changes, CommitError, Store, StoreError, Watch, WatchError};
