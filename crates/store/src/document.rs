//! The content of a store: documents, the changes that make them, and the record of changes made.

use crate::store::StoreError;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A point in a store's life. Every commit takes a greater one than all before; 0 is before the first. Two
/// revisions of one store can be compared; how far apart they are means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The name of a document: segments separated by `/`, such as `kong/default/routes/6f2c…`. Keys compare by their
/// bytes, and so are documents listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// A text that is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a key: {0:?} (segments of visible characters, separated by \"/\", at most {max} bytes)", max = Key::MAX_LENGTH)]
pub struct BadKey(pub String);

impl Key {
    /// The longest key, in bytes.
    pub const MAX_LENGTH: usize = 1024;

    /// A key.
    ///
    /// # Errors
    /// When the text is empty or too long, has an empty segment, or a control character.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let is_good = text.len() <= Self::MAX_LENGTH
            && !text.contains(char::is_control)
            && text.split('/').all(|segment| !segment.is_empty());
        if is_good {
            Ok(Self(text.into()))
        } else {
            Err(BadKey(text.into()))
        }
    }

    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// So that keys can be looked up, and ranges begun, by a text.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A document as it is now.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub key: Key,
    /// The bytes that its dialect wrote.
    pub value: Arc<[u8]>,
    /// The commit that brought it in.
    pub created: Revision,
    /// The last commit that changed it.
    pub modified: Revision,
}

/// Values may hold secrets.
impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Document")
            .field("key", &self.key)
            .field("length", &self.value.len())
            .field("modified", &self.modified)
            .finish_non_exhaustive()
    }
}

/// A change of one document.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes a document, whether there was one or not.
    Put {
        /// Its name.
        key: Key,
        /// Its value.
        value: Arc<[u8]>,
        /// How long it stays; then it goes as if it had been deleted. `None`: until it is deleted.
        time_to_live: Option<Duration>,
    },
    /// Removes a document; one that is not there is no error.
    Delete {
        /// Its name.
        key: Key,
    },
}

impl Change {
    /// Writes a document that stays.
    pub fn put(key: Key, value: impl Into<Arc<[u8]>>) -> Self {
        Self::Put {
            key,
            value: value.into(),
            time_to_live: None,
        }
    }

    /// The document that it changes.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// Changes that take effect together.
#[derive(Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The author of the changes: a user's name, for the record.
    pub author: String,
    /// The reason, in a few words for the record (such as `PUT /routes/blue`).
    pub note: String,
    /// When.
    pub time: SystemTime,
    /// The changes; at most one for a key.
    pub changes: Vec<Change>,
}

/// Values may hold secrets.
impl fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transaction")
            .field("author", &self.author)
            .field("note", &self.note)
            .field("changes", &self.changes.len())
            .finish_non_exhaustive()
    }
}

impl Transaction {
    /// Whether it keeps to what a transaction is.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let mut keys = HashSet::with_capacity(self.changes.len());
        match self.changes.iter().find(|change| !keys.insert(change.key())) {
            Some(change) => Err(StoreError::Failed(format!("two changes of {}", change.key()))),
            None => Ok(()),
        }
    }

    /// Whether it writes a document that does not stay.
    pub(crate) fn has_end(&self) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| {
            matches!(
                change,
                Change::Put {
                    time_to_live: Some(_),
                    ..
                }
            )
        })
    }

    /// The one that removes what was to stay only so long.
    pub(crate) fn expiry(time: SystemTime, changes: Vec<Change>) -> Self {
        Self {
            author: String::new(),
            note: "time to live".into(),
            time,
            changes,
        }
    }
}

/// A change that was made, from the history.
#[derive(Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The commit that made it.
    pub revision: Revision,
    /// When.
    pub time: SystemTime,
    /// Who.
    pub author: String,
    /// The reason.
    pub note: String,
    /// The document.
    pub key: Key,
    /// The value before; `None`: it was not there.
    pub before: Option<Arc<[u8]>>,
    /// The value after; `None`: it was removed.
    pub after: Option<Arc<[u8]>>,
}

/// Values may hold secrets.
impl fmt::Debug for HistoryEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Recorded")
            .field("revision", &self.revision)
            .field("key", &self.key)
            .field("author", &self.author)
            .field("note", &self.note)
            .field("before", &self.before.as_ref().map(|value| value.len()))
            .field("after", &self.after.as_ref().map(|value| value.len()))
            .finish_non_exhaustive()
    }
}
