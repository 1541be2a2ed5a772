//! The source of documents: a store, or a control plane that passes on a store's documents.

use async_trait::async_trait;
use std::sync::Arc;
use weir_store::{Changes, Document, Key, Revision};

/// An event of a source.
#[derive(Debug)]
pub enum SourceEvent {
    /// All documents as of a revision, in place of all that was heard before.
    Whole {
        /// The documents.
        documents: Vec<(Key, Arc<[u8]>)>,
        /// Their revision.
        revision: Revision,
    },
    /// The changes since; empty: only the revision is new.
    Changed {
        /// The revision that the changes lead to.
        revision: Revision,
        /// Each changed document; `None`: it is gone.
        documents: Vec<(Key, Option<Arc<[u8]>>)>,
    },
    /// The source cannot be reached, and why.
    Unreachable(String),
}

impl SourceEvent {
    /// All documents of a store.
    pub fn whole(documents: Vec<Document>, revision: Revision) -> Self {
        Self::Whole {
            documents: documents.into_iter().map(|it| (it.key, it.value)).collect(),
            revision,
        }
    }

    /// One commit of a store.
    pub fn changed(changes: Changes) -> Self {
        let documents = changes.documents.into_iter();
        Self::Changed {
            revision: changes.revision,
            documents: documents
                .map(|(key, document)| (key, document.map(|it| it.value)))
                .collect(),
        }
    }
}

/// A source of documents. It begins with [`SourceEvent::Whole`], or with [`SourceEvent::Unreachable`] and that as soon as it can.
#[async_trait]
pub trait Source: Send {
    /// The next event. A source that is away comes back by itself: it paces its own attempts.
    async fn next(&mut self) -> SourceEvent;
}
